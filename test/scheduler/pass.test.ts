// A pass of the engine that fails does not keep later passes from running: the run rejects instead of standing still.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { EngineTracer } from '../../scheduler/reports/engine-tracer.js';
import { onMachine, soon } from '../support/machines.js';
import { add } from '../support/tasks.js';

const COUNT = 64;
const TASKS = 300;

test('an observer that throws at the beginning of a pass ends the run, and the next run works', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headrace-pass-'));
  const options = { driver: 'emulated', gpus: 1, workers: 1, trace: join(folder, 'x.hrtrace') };
  await onMachine({ ...options, driver: 'emulated' }, async (runtime) => {
    const x = runtime.data(new Float64Array(COUNT).fill(1), { name: 'x' });
    const y = runtime.data(new Float64Array(COUNT).fill(1), { name: 'y' });
    const insertMany = (): PromiseLike<unknown> =>
      runtime.run((graph) => {
        for (let i = 0; i < TASKS; i++) graph.insert(add, { to: x, from: y, count: COUNT });
      });
    const passBegins = vi.spyOn(EngineTracer.prototype, 'passBegins').mockImplementationOnce(() => {
      throw new Error('the observer fails');
    });
    await expect(soon(runtime, insertMany())).rejects.toThrow('the observer fails');
    expect(passBegins).toHaveBeenCalled();
    passBegins.mockRestore();
    x.set(new Float64Array(COUNT));
    await soon(runtime, insertMany());
    expect((await x.read())[0]).toBe(TASKS);
  });
  rmSync(folder, { recursive: true });
});
