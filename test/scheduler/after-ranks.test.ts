// `after` across ranks behind a failed run: ranks leave its program at different places.
import { expect, test } from 'vitest';
import { type Graph, read, readWrite, task } from '../../index.js';
import { onRanks } from '../support/simulated-ranks.js';

const add = task({
  name: 'add',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'i32', factor: 'f64' },
  kernel: 'add_f64',
});

test.each([{ lanes: 2 }, { lanes: 8 }])(
  'data that are made, and tasks that follow others, after a failed run are the same on all ranks: %j',
  async (machine) => {
    const all = await onRanks({ ranks: 2, seed: 3, machine }, async (runtime) => {
      const x = [0, 1].map((rank) => runtime.data(Float64Array.of(1), { rank }));
      const one = [0, 1].map((rank) => runtime.data(Float64Array.of(1), { rank }));
      /** Each task follows the one before, on the other rank. */
      const zigzag = (graph: Graph, steps: number): void => {
        let before: ReturnType<Graph['insert']>[] = [];
        for (let i = 0; i < steps; i++) {
          const args = { to: x[i % 2], from: one[i % 2], count: 1, factor: 1 };
          before = [graph.insert(add, args, { after: before })];
        }
      };
      const failed = runtime.run((graph) => {
        zigzag(graph, runtime.rank === 0 ? 3 : 9);
        throw new Error('as asked for');
      });
      await expect(failed.done).rejects.toThrow();
      for (const datum of x) await datum.set(Float64Array.of(1));
      const later = runtime.data(Float64Array.of(runtime.rank + 5), { rank: 1 });
      await runtime.run((graph) => {
        zigzag(graph, 6);
        graph.insert(add, { to: x[0], from: later, count: 1, factor: 1 });
      });
      const values = await Promise.all([...x, later].map((datum) => datum.read()));
      return values.map(([value]) => value);
    });
    for (const values of all) expect(values).toEqual([10, 4, 6]);
  },
);
