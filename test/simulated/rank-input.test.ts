// Wrong insertions on several ranks: every rank refuses them before it plans anything, so the ranks stay in step and
// later insertions give the right report.
import { expect, test } from 'vitest';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { World } from '../../devices/simulated/machine/world.js';
import { SimulatedNetwork } from '../../devices/simulated/network/network.js';
import { type Graph, type HeadraceError, Runtime, readWrite, task } from '../../index.js';

const step = task({
  name: 'step',
  flows: { a: readWrite('f64'), b: readWrite('f64') },
  kernel: 'step',
});

test('ranks that are given anything for a rank, a handle or an option stay in step', async () => {
  const world = new World();
  const machine = { ...presets['h200-1'], gpus: 0, workers: 1, lanes: 4, hostMemory: 2 ** 20 };
  const backends = [0, 1].map(() => new SimulatedBackend({ machine, world }));
  const link = { bandwidth: 1e9, latency: 1e-6 };
  const { adversary } = backends[0];
  const network = new SimulatedNetwork(world, backends, { link, ranksPerHost: 1, adversary });
  const runtimes = backends.map((backend, r) => Runtime.over(backend, {}, network.ports[r]));
  const codes: string[][] = [[], []];
  const runs = runtimes.map((runtime, r) => {
    const a = runtime.data(new Float64Array(8), { name: 'a', rank: 0 });
    const b = runtime.data(new Float64Array(8), { name: 'b', rank: 1 });
    return runtime.run((graph: Graph) => {
      const first = graph.insert(step, { a, b });
      const second = graph.insert(step, { a: b, b: a }, { after: [first] });
      const wrong: unknown[] = [
        { rank: 2 },
        { rank: Number.NaN },
        { rank: '1' },
        { after: first },
        { after: [2 ** 40 + 2] },
        { after: [first, second, undefined] },
        { priority: 0.5 },
        { prio: 1 },
        null,
      ];
      for (const options of wrong) {
        try {
          graph.insert(step, { a, b }, options as never);
          codes[r].push('taken');
        } catch (error) {
          codes[r].push((error as HeadraceError).code);
        }
      }
      graph.insert(step, { a, b }, { after: [first, second], rank: 1 });
    });
  });
  const reports = await Promise.all(runs);
  expect(reports.reduce((sum, { tasks }) => sum + tasks, 0)).toBe(3);
  const expected = [
    ...Array<string>(3).fill('ERR_NO_RANK'),
    'ERR_ARGUMENT_TYPE',
    'ERR_UNKNOWN_TASK',
    'ERR_ARGUMENT_TYPE',
    ...Array<string>(3).fill('ERR_OPTION'),
  ];
  expect(codes).toEqual([expected, expected]);
  await Promise.all(runtimes.map((runtime) => runtime.close()));
});
