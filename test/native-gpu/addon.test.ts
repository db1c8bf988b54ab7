// The CUDA side of the addon from TypeScript, on the stub driver libraries (npm run setup -- --with-stubs
// builds them).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Control, Opcode, Record } from '../../native/contract.js';
import type { NativeCore, NativeKernelSource, NativeModule } from '../../native/index.js';
import { needing, stub, stubDriver } from '../support/needs.js';

const cache = mkdtempSync(join(tmpdir(), 'headrace-addon-'));
afterAll(() => rmSync(cache, { recursive: true, force: true }));

/** The libraries are looked for once per process, so this comes before the addon is loaded. */
async function load(): Promise<NativeModule> {
  process.env['HEADRACE_CUDA_LIBRARY'] = stub('stub_cuda');
  process.env['HEADRACE_NVRTC_LIBRARY'] = stub('stub_nvrtc');
  process.env['HEADRACE_CUBLAS_LIBRARY'] = stub('stub_blas');
  process.env['HEADRACE_CUSOLVER_LIBRARY'] = stub('stub_blas');
  process.env['HEADRACE_CACHE'] = cache;
  return (await import('../../native/index.js')).loadNative();
}

function open(native: NativeModule): NativeCore {
  return native.open({
    driver: 'cuda',
    gpus: 2,
    gpuBytes: 1 << 20,
    hostBytes: 1 << 20,
    pinnedBytes: 1 << 20,
    workers: 0,
    computeStreams: 1,
    ringRecords: 64,
    checked: true,
  });
}

/** Writes one record to a queue and waits until it is finished; its status. */
async function perform(
  core: NativeCore,
  queue: number,
  head: number,
  kernel: number,
  values: readonly number[],
): Promise<number> {
  const ring = core.rings[queue]!;
  const sequence = core.control[queue * Control.words + Control.published]! + 1;
  const at = ((sequence - 1) & 63) * Record.words;
  ring.fill(0, at, at + Record.words);
  ring[at + Record.head] = head;
  ring[at + Record.kernel] = kernel;
  ring[at + Record.run] = -1;
  const doubles = new Float64Array(ring.buffer, ring.byteOffset + at * 4, Record.doubles);
  for (let i = 0; i < values.length; i++) doubles[Record.argument + i] = values[i]!;
  Atomics.store(core.control, queue * Control.words + Control.published, sequence);
  core.wake(queue);
  while (Atomics.load(core.control, queue * Control.words + Control.completed) < sequence) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return ring[at + Record.status]!;
}

const scale: NativeKernelSource = {
  name: 'scale.cu',
  source:
    'extern "C" __global__ void scale(double* to, float factor, int count, long long offset) {}',
  kernels: [
    {
      name: 'scale',
      signature: ['pointer', 'f32', 'i32', { type: 'i64', index: 2 }],
      grid: [{ param: 1, divisor: 64 }],
      block: [64],
    },
  ],
};

describe('the addon on CUDA', needing(stubDriver), () => {
  it('reports the GPUs of the machine', async () => {
    const { drivers, cuda } = (await load()).probe();
    expect(drivers.find(({ name }) => name === 'cuda')).toMatchObject({ found: true, devices: 2 });
    expect(cuda.devices).toHaveLength(2);
    expect(cuda.devices[1]).toMatchObject({
      name: 'Stub GPU 1',
      capability: '9.0',
      rdmaSupported: true,
      rdmaFlushOptions: 1,
      rdmaOrdering: 100,
      peers: [true, true],
    });
    expect(cuda.nvrtc.found && cuda.cublas.found && cuda.cusolver.found).toBe(true);
  });

  it('compiles a kernel from source and runs it', async () => {
    const core = open(await load());
    try {
      expect(core.compileKernels(scale)).toEqual(['scale']);
      expect(core.ipcExport(1)?.handle).toHaveLength(64);
      expect(core.ipcExport(1)?.generation).not.toBe(core.ipcExport(2)?.generation);
      expect(core.ipcExport(0)).toBeNull();
      const [compute, h2d, d2h] = [0, 1, 2];
      const host = new Float64Array(core.hostView(0, 80));
      host.set([1, 2, 3, 4]);
      expect(await perform(core, h2d, Opcode.copy, 1, [0, 0, 32])).toBe(0);
      const head = Opcode.exec | (1 << 8) | (4 << 20);
      expect(await perform(core, compute, head, core.kernel('scale', 1), [0, 2, 4, 1])).toBe(0);
      expect(await perform(core, d2h, Opcode.copy, 1 << 8, [0, 0, 32])).toBe(0);
      expect([...host.subarray(0, 4)]).toEqual([3, 5, 7, 9]);
    } finally {
      core.close();
    }
  });

  it('reports sources that do not compile and wrong declarations by code', async () => {
    const core = open(await load());
    try {
      const broken = { ...scale, source: '\n#error no\n' };
      expect(() => core.compileKernels(broken)).toThrow(/scale\.cu\(2\): error/);
      const wrong = {
        ...scale,
        kernels: [{ ...scale.kernels[0]!, signature: ['nothing' as 'f64'] }],
      };
      expect(() => core.compileKernels(wrong)).toThrow(
        expect.objectContaining({ code: 'INVALID_OPTION' }),
      );
    } finally {
      core.close();
    }
  });
});
