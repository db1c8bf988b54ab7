// Traces of plays on real threads: the records of inserted tasks, marked with plan and iteration.
import { describe, expect, test } from 'vitest';
import { axpy, failing, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { computed, inserted, played } from '../../devices/simulated/cases/plan-ways.js';
import { type PlanGraph, Runtime, type RuntimeOptions, slot } from '../../index.js';
import { criticalPath, summarize } from '../../trace/analysis/index.js';
import {
  cropToRuns,
  EventKind,
  playedAs,
  TaskFlag,
  TaskTime,
  type Trace,
} from '../../trace/index.js';
import { overlaps, playedIterations, taskTexts, tracedWith } from '../support/played-traces.js';

const options: RuntimeOptions = { workers: 2, hostMemory: '64MiB' };
const opens =
  (more: RuntimeOptions = {}) =>
  (trace: string): Promise<Runtime> =>
    Runtime.create({ ...options, ...more, trace });

/** Rows of the tasks whose flags have a bit. */
const flagged = ({ tasks }: Trace, flag: number): number[] =>
  Array.from({ length: tasks.count }, (_, row) => row).filter((row) => tasks.flags[row] & flag);

test('random programs: the tasks of plays are those of as many runs, and follow their predecessors in time', async () => {
  let edges = 0;
  for (let seed = 1001; seed <= 1030; seed++) {
    const program = new PlanProgram(seed, { hazards: false });
    const { gpus, workers, computeStreams, gpuMemory, window } = program;
    const { rounds } = await computed(program);
    const [ran, plays] = await Promise.all(
      [false, true].map((isPlayed) =>
        tracedWith(opens({ gpus, workers, computeStreams, gpuMemory, window }), (runtime) =>
          isPlayed
            ? played(program, rounds, runtime, () => {})
            : inserted(program, rounds, runtime),
        ),
      ),
    );
    expect(taskTexts(plays), `seed ${seed}`).toEqual(taskTexts(ran));
    expect(overlaps(ran), `seed ${seed}`).toEqual([]);
    expect(overlaps(plays), `seed ${seed}`).toEqual([]);
    expect(plays.problems).toEqual([]);
    edges += plays.tasks.predecessors.items.length;
  }
  expect(edges).toBeGreaterThan(1000);
}, 120_000);

describe('a trace', () => {
  /** Blocks on two GPUs that exchange values: some tasks on the host, some on each GPU. */
  const twoGpus = async (runtime: Runtime, plays: boolean): Promise<number> => {
    const blocks = Array.from({ length: 6 }, (_, i) =>
      runtime.data(new Float64Array(64).fill(i + 1), { name: `b${i}` }),
    );
    const insert = (graph: PlanGraph): void => {
      for (let b = 0; b < 6; b++) {
        const device = b % 3 === 2 ? 'host' : b % 3;
        const flows = { y: blocks[b], x: blocks[(b + 5) % 6] };
        graph.insert(axpy, { ...flows, n: 64, a: 1 }, { device });
      }
    };
    if (!plays) {
      for (let i = 0; i < 40; i++) await runtime.run((graph) => insert(graph as PlanGraph));
      return 0;
    }
    const plan = await runtime.plan(insert, { name: 'exchange' });
    for (let k = 0; k < 2; k++) await plan.run({ times: 20 });
    const { h2d, d2h, d2d } = plan.report.bytes;
    return h2d + d2h + d2d;
  };

  test('has the devices, copies and bytes of plays', async () => {
    const open = opens({ gpus: 2, gpuMemory: '1MiB' });
    const inserted = await tracedWith(open, (runtime) => twoGpus(runtime, false));
    let bytes = 0;
    const played = await tracedWith(open, async (runtime) => {
      bytes = await twoGpus(runtime, true);
    });
    expect(taskTexts(played, true)).toEqual(taskTexts(inserted, true));
    expect(overlaps(played)).toEqual([]);
    const { transfers, tasks, lanes } = played;
    const copied = transfers.bytes.reduce((sum, each) => sum + each, 0);
    // The first play brings the data to their places.
    expect(copied).toBeGreaterThanOrEqual(40 * bytes);
    expect(copied).toBeLessThanOrEqual(40 * bytes + 12 * 512);
    expect(bytes).toBeGreaterThan(0);
    for (let row = 0; row < transfers.count; row++) {
      expect(transfers.datum[row]).toBeGreaterThanOrEqual(0);
      expect(transfers.end[row]).toBeGreaterThanOrEqual(transfers.start[row]);
      expect(lanes[transfers.lane[row]].space).toBe(
        Math.max(
          transfers.source[row] * Number(transfers.kind[row] === 1),
          transfers.destination[row],
        ),
      );
    }
    expect(new Set(tasks.lane).size).toBeGreaterThanOrEqual(3);
    expect(playedIterations(played)).toEqual(new Map([['exchange', new Array(20).fill(12)]]));
  });

  test('has a critical path through plays, and reasons for all idle time', async () => {
    const trace = await tracedWith(opens({ gpus: 2, gpuMemory: '1MiB' }), (runtime) =>
      twoGpus(runtime, true),
    );
    // A play counts as a run: the tools analyse the time from the first one to the last one.
    const kinds = [...trace.events.kind];
    for (const kind of [EventKind.runBegin, EventKind.runEnd])
      expect(kinds.filter((each) => each === kind)).toHaveLength(2);
    const cropped = cropToRuns(trace);
    expect(cropped.tasks.count).toBe(trace.tasks.count);
    const path = criticalPath(cropped);
    expect(path.kernels + path.transfers + path.gaps + path.tail).toBe(path.makespan);
    expect(path.steps.filter(({ type }) => type === 'task').length).toBeGreaterThanOrEqual(40);
    expect(path.steps.some((step) => step.type === 'task' && step.releasedBy === 'transfer')).toBe(
      true,
    );
    const { lanes, makespan, plans } = summarize(cropped);
    for (const { busy, idle } of lanes)
      expect(Object.values(idle).reduce((sum, each) => sum + each, busy)).toBe(makespan);
    expect(plans).toEqual([{ plan: 'exchange', plays: 2, iterations: 40, tasks: 240 }]);
  });

  test('has the values of open parameters, and names the iterations of a condition', async () => {
    const trace = await tracedWith(opens(), async (runtime) => {
      const x = runtime.data(new Float64Array(8).fill(1), { name: 'x' });
      const y = runtime.data(new Float64Array(8), { name: 'y' });
      const plan = await runtime.plan(
        (graph) => {
          graph.insert(axpy, { y, x, n: slot('n'), a: slot('t') });
          graph.insert(failing, { y, code: 0 });
        },
        { name: 'open' },
      );
      const values = { n: (i: number) => 1 + (i % 3), t: 7 };
      await plan.run({ times: 4, values });
      const found = await plan.run({ values, while: { datum: y, below: 99, every: 5 } });
      expect(found.iterations).toBe(15);
    });
    const { tasks } = trace;
    const seen = Array.from({ length: tasks.count }, (_, row) => {
      const { start, items } = tasks.parameters;
      const played = playedAs(trace, row);
      return `${played?.plan} ${played?.iteration} ${items.subarray(start[row], start[row + 1]).join()}`;
    });
    const expected = [4, 15].flatMap((times) =>
      Array.from({ length: times }, (_, i) => [`open ${i} ${1 + (i % 3)},7`, `open ${i} 0`]).flat(),
    );
    expect(seen).toEqual(expected);
    expect(flagged(trace, TaskFlag.played)).toHaveLength(tasks.count);
  });

  test('orders plays and runs as the program does', async () => {
    const trace = await tracedWith(opens(), async (runtime) => {
      const x = runtime.data(new Float64Array(8).fill(1), { name: 'x' });
      const y = runtime.data(new Float64Array(8), { name: 'y' });
      const plan = await runtime.plan((graph) => {
        graph.insert(axpy, { y, x, n: 8, a: 1 });
        graph.insert(axpy, { y, x, n: 8, a: 1 });
      });
      const run = (): PromiseLike<unknown> =>
        runtime.run((graph) => {
          graph.insert(axpy, { y, x, n: 8, a: 0 });
        });
      for (let k = 0; k < 3; k++) {
        run();
        plan.run({ times: 2 });
      }
      await run();
    });
    // Every task but the first follows exactly the one before it in the program.
    const { tasks } = trace;
    const { start, items } = tasks.predecessors;
    let row = Array.from({ length: tasks.count }, (_, r) => r).find(
      (r) => !tasks.predecessors.items.includes(r),
    );
    const chain: string[] = [];
    while (row !== undefined) {
      const played = playedAs(trace, row);
      chain.unshift(played === undefined ? 'run' : `${played.iteration}`);
      row = start[row] < start[row + 1] ? items[start[row]] : undefined;
    }
    const play = ['0', '0', '1', '1'];
    expect(chain).toEqual(['run', ...play, 'run', ...play, 'run', ...play, 'run']);
  });

  test('ends with the task that failed', async () => {
    for (const gpus of [0, 1]) {
      const trace = await tracedWith(opens({ gpus }), async (runtime) => {
        const x = runtime.data(new Float64Array(8).fill(1), { name: 'x' });
        const y = runtime.data(new Float64Array(8), { name: 'y' });
        const z = runtime.data(new Float64Array(8), { name: 'z' });
        const device = gpus === 0 ? ('host' as const) : 0;
        const plan = await runtime.plan(
          (graph) => {
            graph.insert(axpy, { y, x, n: 8, a: 1 }, { device });
            graph.insert(failing, { y, code: slot('code') }, { device });
            graph.insert(axpy, { y: z, x: y, n: 8, a: 1 }, { device });
          },
          { name: 'step' },
        );
        const code = (i: number): number => (i === 70 ? 7 : 0);
        await expect(plan.run({ times: 1000, values: { code } })).rejects.toThrow('iteration 70');
        // A play that begins with a failed datum has no tasks.
        await expect(plan.run({ times: 5, values: { code } })).rejects.toThrow('y');
      });
      const failed = flagged(trace, TaskFlag.failed);
      expect(failed.map((row) => playedAs(trace, row))).toEqual([{ plan: 'step', iteration: 70 }]);
      const counts = playedIterations(trace).get('step') as number[];
      expect(counts.slice(0, 70)).toEqual(new Array(70).fill(3));
      // A GPU executes what was submitted before the failure.
      if (gpus === 0) expect(counts.slice(70)).toEqual([2]);
      expect(overlaps(trace)).toEqual([]);
      const { failed: summed } = summarize(trace);
      expect(summed).toBe(1);
    }
  });

  test('has what an aborted play has done', async () => {
    const tasks = 1000;
    const trace = await tracedWith(opens({ workers: 1 }), async (runtime) => {
      const x = runtime.data(new Float64Array(1).fill(1), { name: 'x' });
      const y = runtime.data(new Float64Array(1), { name: 'y' });
      const plan = await runtime.plan((graph) => {
        for (let i = 0; i < tasks; i++) graph.insert(axpy, { y, x, n: 1, a: slot('a') });
      });
      const abort = new AbortController();
      // The values of later iterations are computed when those before are over.
      const a = (i: number): number => {
        if (i === 300) abort.abort();
        return 0;
      };
      await expect(plan.run({ times: 1e9, values: { a }, signal: abort.signal })).rejects.toThrow(
        'aborted',
      );
    });
    const counts = playedIterations(trace).get('plan') as number[];
    expect(counts.length).toBeGreaterThanOrEqual(250);
    expect(counts.length).toBeLessThan(600);
    expect(counts.slice(0, -1)).toEqual(new Array(counts.length - 1).fill(tasks));
    expect(flagged(trace, TaskFlag.cancelled | TaskFlag.failed)).toEqual([]);
    const { events } = trace;
    expect([...events.kind].filter((kind) => kind === EventKind.cancel)).toHaveLength(1);
  });

  test('is complete when a condition is looked at less often than tasks are recorded', async () => {
    const tasks = 1000;
    const trace = await tracedWith(opens({ workers: 2 }), async (runtime) => {
      const x = runtime.data(new Float64Array(1).fill(1), { name: 'x' });
      const y = runtime.data(new Float64Array(1), { name: 'y' });
      const plan = await runtime.plan((graph) => {
        for (let i = 0; i < tasks; i++) graph.insert(axpy, { y, x, n: 1, a: 1 });
      });
      // After 40, 80 and 120 iterations.
      const { iterations } = await plan.run({
        while: { datum: y, below: 80 * tasks + 0.5, every: 40 },
      });
      expect(iterations).toBe(120);
      const limited = await plan.run({ times: 50, while: { datum: y, above: 0, every: 40 } });
      expect(limited.iterations).toBe(50);
    });
    expect(trace.plays.count).toBeGreaterThan(4);
    const counts = playedIterations(trace).get('plan') as number[];
    expect(counts).toEqual([
      ...new Array<number>(50).fill(2 * tasks),
      ...new Array<number>(70).fill(tasks),
    ]);
  });

  test('is complete when a play has more tasks than are recorded at once', async () => {
    const tasks = 1000;
    const times = 100;
    const trace = await tracedWith(opens({ workers: 1 }), async (runtime) => {
      const x = runtime.data(new Float64Array(1).fill(1), { name: 'x' });
      const y = runtime.data(new Float64Array(1), { name: 'y' });
      const plan = await runtime.plan((graph) => {
        for (let i = 0; i < tasks; i++) graph.insert(axpy, { y, x, n: 1, a: 1 });
      });
      await plan.run({ times });
      expect((await y.read())[0]).toBe(tasks * times);
    });
    expect(trace.plays.count).toBeGreaterThan(2);
    expect(playedIterations(trace)).toEqual(new Map([['plan', new Array(times).fill(tasks)]]));
    // One worker: each task begins after the one before it, and none has the times of another.
    const starts = trace.tasks.times[TaskTime.execStart];
    const ends = trace.tasks.times[TaskTime.execEnd];
    for (let row = 1; row < trace.tasks.count; row++)
      if (starts[row] < ends[row - 1])
        expect.fail(`task ${row} began before task ${row - 1} ended`);
  }, 60_000);
});
