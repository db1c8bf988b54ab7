// Failures on a CUDA GPU, each in a process of its own: typed errors, an end without a hang, and no GPU memory in use
// afterwards (by nvidia-smi on real GPUs; on the stub driver the native tests count every object).
import { execFile, execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { cudaGpus, isReal } from '../support/cuda.js';
import { cuda, needing } from '../support/needs.js';

const program = fileURLToPath(new URL('programs/failure.mjs', import.meta.url));
const gpus = Math.min(2, cudaGpus);

/** MiB in use on all GPUs; 0 on the stub. */
function memoryInUse(): number {
  if (!isReal) return 0;
  const options = ['--query-gpu=memory.used', '--format=csv,noheader,nounits'];
  const text = execFileSync('nvidia-smi', options, { encoding: 'utf8' });
  return text
    .trim()
    .split('\n')
    .map(Number)
    .reduce((a, b) => a + b);
}

async function seenBy(what: string): Promise<Record<string, unknown>> {
  const before = memoryInUse();
  const line = await new Promise<string>((resolve, reject) => {
    execFile(
      process.execPath,
      [program, what, String(gpus)],
      { timeout: 20_000, killSignal: 'SIGKILL' },
      (error, stdout, stderr) =>
        error === null ? resolve(stdout) : reject(new Error(`${error.message}\n${stderr}`)),
    );
  });
  // The driver gives a dead process's memory back a moment later.
  await expect.poll(memoryInUse, { timeout: 5000, interval: 200 }).toBeLessThanOrEqual(before);
  return JSON.parse(line) as Record<string, unknown>;
}

describe('failures on CUDA', { timeout: 40_000, ...needing(cuda) }, () => {
  it('more memory than the GPU has, and a task larger than the GPU: typed, and the runtime goes on', async () => {
    expect(await seenBy('out-of-memory')).toMatchObject({
      open: 'ERR_OUT_OF_MEMORY',
      giant: 'ERR_TASK_TOO_LARGE',
      after: 7,
      message: expect.stringContaining('cuMemAlloc'),
    });
  });

  it('a kernel that writes to an illegal address: ERR_DEVICE_LOST in the words of CUDA; the host keeps its data', async () => {
    expect(await seenBy('illegal-address')).toMatchObject({
      run: 'ERR_DEVICE_LOST',
      next: 'ERR_DEVICE_LOST',
      host: 3,
      message: expect.stringContaining('ILLEGAL_ADDRESS'),
    });
  });

  it('runs aborted with thousands of kernels queued, and closed at once, three times', async () => {
    expect(await seenBy('teardown')).toMatchObject({ aborted: 'ERR_ABORTED' });
  });

  it('a process that ends in the middle of its work', async () => {
    expect(await seenBy('exit')).toEqual({ left: true });
  });
});
