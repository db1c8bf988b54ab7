// Simulated ranks share a thread. One that blocks it, while another rank waits for its program, ends with an error.
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { readWrite, task } from '../../index.js';
import { disturbedRanks } from '../support/simulated-ranks.js';

const step = task({
  name: 'step',
  flows: { to: readWrite('f64'), from: readWrite('f64') },
  params: {},
  kernel: 'empty',
});

test('an insertion that waits for the program of another simulated rank throws, and says what helps', async () => {
  const runtimes = disturbedRanks({
    ranks: 2,
    seed: 1,
    options: { window: 16 },
    kernels: { empty: () => 0 },
  });
  const seen = runtimes.map(async (runtime, rank) => {
    const [here, there] = [0, 1].map((owner) => runtime.data(new Float64Array(1), { rank: owner }));
    const run = runtime.run(async (graph) => {
      // The other rank's program is not done when this one blocks the thread.
      if (rank === 1) for (let turn = 0; turn < 20; turn++) await setImmediate();
      for (let i = 0; i < 100; i++) graph.insert(step, { to: here, from: there });
    });
    await run;
  });
  const other = seen[1].catch((error) => error);
  await expect(seen[0]).rejects.toThrow(
    /simulation: the engine blocks for ever.* await graph\.space\(\) before each insertion/,
  );
  expect((await other).code).toBe('ERR_PEER_FAILED');
});
