// Reductions into many data: the partial results of those that are over leave memory for the next ones.
import '../support/removable-guards.js';
import { afterEach, expect, test } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { Runtime, read, reduce, task } from '../../index.js';
import { codeOf } from '../support/outcomes.js';

const LENGTH = 8192;
const add = task({
  name: 'add',
  flows: { y: reduce('f64', 'sum'), x: read('f64') },
  params: { n: 'i32', a: 'f64' },
  kernel: 'add_f64',
});

afterEach(() => setGuard('fewPartials', true));

/** Reduces into 32 data of 64 KiB, in 8 MiB of memory. */
async function reduceMany(): Promise<void> {
  const runtime = await Runtime.create({ workers: 1, hostMemory: '8MiB' });
  try {
    const x = runtime.data(new Float64Array(LENGTH).fill(1));
    for (let k = 0; k < 32; k++) {
      const y = runtime.data(new Float64Array(LENGTH), { name: `y${k}` });
      await runtime.run((graph) => {
        for (let i = 0; i < 16; i++) graph.insert(add, { y, x, n: LENGTH, a: 1 });
      });
      expect((await y.read())[LENGTH - 1]).toBe(16);
    }
  } finally {
    await runtime.close();
  }
}

test('what no reduction uses any more has a share of the memory', reduceMany);

test('without fewPartials: it fills the memory', async () => {
  setGuard('fewPartials', false);
  expect(await codeOf(reduceMany())).toBe('ERR_OUT_OF_HOST_MEMORY');
});
