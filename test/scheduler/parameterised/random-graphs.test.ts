// Random parameterised graphs against brute force: a graph must compute what its tasks do one after the other, and `verify` must
// find every mistake that is planted into its edges.

import { describe, expect, it } from 'vitest';
import {
  type End,
  graphOf,
  type Node,
  type Program,
  randomProgram,
  start,
} from '../../../devices/simulated/cases/random-graphs.js';
import { Random } from '../../../devices/simulated/machine/random.js';
import type { Datum, HeadraceError, Runtime, RuntimeOptions } from '../../../index.js';
import { partOf } from '../../support/grids.js';
import { nothingLeft, onMachine, soon } from '../../support/machines.js';

const MACHINES: readonly RuntimeOptions[] = [
  { workers: 1, checked: true },
  { workers: 2, window: 8 },
  { workers: 1, gpus: 2, driver: 'emulated', gpuMemory: '8KiB' },
];

/** Plants a mistake into an edge between tasks; false if there is no place for it. */
function plant({ nodes }: Program, mistake: 'missing' | 'twice' | 'elsewhere', r: Random): boolean {
  const lists = nodes.flatMap(({ to }) => Object.values(to));
  const edges = lists.flatMap((list) => list.map((end, at) => ({ list, at, end })));
  const between = edges.filter(({ end }) => typeof end === 'object');
  if (between.length === 0) return false;
  const { list, at, end } = between[r.below(between.length)];
  const target = end as Exclude<End, number>;
  if (mistake === 'missing') list.splice(at, 1);
  else if (mistake === 'twice') list.push(target);
  else {
    const { shape } = nodes[target.node];
    const others = nodes.flatMap((node, n) =>
      node.shape === shape && n !== target.node ? [n] : [],
    );
    if (others.length === 0) return false;
    list[at] = { ...target, node: others[r.below(others.length)] };
  }
  return true;
}

async function values(data: readonly Datum<'f64'>[]): Promise<string[]> {
  return (await Promise.all(data.map((datum) => datum.read()))).map((value) => value.join());
}

function make(runtime: Runtime, { data }: Program): { data: Datum<'f64'>[] } {
  return { data: start(data).map((value, d) => runtime.data(value, { name: `d${d}` })) };
}

const SEEDS = partOf(60, 24);

describe('random parameterised graphs', () => {
  it.each(MACHINES)('compute what the tasks do one after the other: %o', async (options) => {
    await onMachine(options, async (runtime) => {
      for (let seed = 1; seed <= SEEDS; seed++) {
        const program = randomProgram(new Random(seed));
        const graph = graphOf(program);
        const given = make(runtime, program);
        const expected = start(program.data);
        expect(graph.verify(given).problems, `seed ${seed}`).toEqual([]);
        for (let round = 0; round < 2; round++) {
          program.run(expected);
          const report = await soon(runtime, runtime.run(graph, given).done);
          expect(report.tasks, `seed ${seed}`).toBeGreaterThanOrEqual(program.nodes.length);
          expect(await values(given.data), `seed ${seed}`).toEqual(expected.map((v) => v.join()));
        }
        for (const datum of given.data) datum.close();
      }
      await nothingLeft(runtime, []);
    });
  });

  it.each(MACHINES)('leave nothing behind when a task of theirs fails: %o', async (options) => {
    await onMachine(options, async (runtime) => {
      for (let seed = 1; seed <= SEEDS; seed++) {
        const r = new Random(seed);
        const program = randomProgram(r);
        const nodes = program.nodes as Node[];
        const failing = r.below(nodes.length);
        nodes[failing] = { ...nodes[failing], plus: -1 };
        const given = make(runtime, program);
        const { done } = runtime.run(graphOf(program), given);
        await expect(done).rejects.toMatchObject({ code: 'ERR_TASK_FAILED' });
        await expect(runtime.plan(graphOf(program), given)).rejects.toMatchObject({
          code: 'ERR_PLAN_BODY',
        });
        for (const datum of given.data) datum.close();
      }
      await nothingLeft(runtime, []);
    });
  });

  it.each(['missing', 'twice', 'elsewhere'] as const)(
    'with an end that is %s have a problem, and do not run to their end',
    async (mistake) => {
      let planted = 0;
      await onMachine({ workers: 1 }, async (runtime) => {
        for (let seed = 1; seed <= SEEDS; seed++) {
          const r = new Random(seed);
          const program = randomProgram(r);
          if (!plant(program, mistake, r)) continue;
          planted++;
          const graph = graphOf(program);
          const given = make(runtime, program);
          expect(graph.verify(given).problems.length, `seed ${seed}`).toBeGreaterThan(0);
          const error = await soon(
            runtime,
            runtime.run(graph, given).done.then(
              () => undefined,
              (cause) => cause as HeadraceError,
            ),
          );
          expect(error?.code, `seed ${seed}`).toMatch(/^ERR_GRAPH_/);
          for (const datum of given.data) datum.close();
        }
        await nothingLeft(runtime, []);
      });
      expect(planted).toBeGreaterThan(SEEDS / 3);
    },
  );
});
