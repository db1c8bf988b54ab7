// Environments that end around running native threads: nothing may hang, crash, or keep the process alive.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';

const program = fileURLToPath(new URL('./programs/leave-open.mjs', import.meta.url));

test.each(['idle', 'busy', 'exit'])('a process with open cores ends by itself (%s)', (mode) => {
  const result = spawnSync(process.execPath, [program, mode], {
    timeout: 20_000,
    encoding: 'utf8',
  });
  expect(result, result.stderr).toMatchObject({ status: 0, signal: null });
  expect(result.stdout).toContain('end of program');
});

test('four worker threads open cores and end, several times over', async () => {
  for (let round = 0; round < 3; round++) {
    const ends = Array.from({ length: 4 }, (_, i) => {
      const worker = new Worker(program, { workerData: { mode: i % 2 === 0 ? 'busy' : 'idle' } });
      return new Promise<number>((resolve, reject) => {
        worker.once('error', reject);
        worker.once('exit', resolve);
      });
    });
    expect(await Promise.all(ends)).toEqual([0, 0, 0, 0]);
  }
}, 30_000);

test('a worker thread can be terminated in the middle', async () => {
  for (let round = 0; round < 5; round++) {
    const worker = new Worker(program, { workerData: { mode: 'busy' } });
    await new Promise((resolve) => worker.once('message', resolve));
    // Resolves with nothing when the worker got to its end first; either way the thread is gone.
    await worker.terminate();
    expect(worker.threadId).toBe(-1);
  }
}, 30_000);
