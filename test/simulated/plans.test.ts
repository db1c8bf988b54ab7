// Plans on simulated machines whose memory has bytes: what is played gives what is inserted, whatever the machine's delays.
// And the guards of plans: without each of them a check fails.
import { partOf } from '../support/grids.js';
import '../support/removable-guards.js';
import { afterEach, describe, expect, test } from 'vitest';
import type { Guards } from '../../devices/guards.js';
import {
  planKernels,
  planMachine,
  planProblem,
  planRuntime,
} from '../../devices/simulated/cases/plan-cases.js';
import { axpy, copy, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { computed, inserted, played } from '../../devices/simulated/cases/plan-ways.js';
import { guardNames, setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend, type SimulatedKernel } from '../../devices/simulated/machine/backend.js';
import {
  type Datum,
  type Graph,
  Runtime,
  readWrite,
  slot,
  type TaskGraph,
  task,
} from '../../index.js';
import { overlaps, playedIterations, taskTexts, tracedWith } from '../support/played-traces.js';

test.each([false, true])(
  'what is played is what is inserted, with delays: %s',
  async (delays) => {
    for (let seed = 1; seed <= partOf(60, 24); seed++)
      expect(
        await planProblem(new PlanProgram(seed), delays ? seed : undefined),
        `seed ${seed}`,
      ).toBe('');
  },
  120_000,
);

test.each([false, true])(
  'and so it is with bodies on script workers, with delays: %s',
  async (delays) => {
    const outcomes = new Set<string>();
    for (let seed = 1; seed <= partOf(60, 24); seed++) {
      const program = new PlanProgram(seed, { bodies: true });
      const outcome = (recognition: string): unknown => outcomes.add(recognition);
      const problem = await planProblem(program, delays ? seed : undefined, { outcome });
      expect(problem, `seed ${seed}`).toBe('');
    }
    expect([...outcomes]).toContain('played');
  },
  120_000,
);

test('a simulated queue that completes records while it wakes others leaves none of them waiting', async () => {
  expect(await planProblem(new PlanProgram(546001569))).toBe('');
});

test('a trace of plays has the tasks of as many runs, which follow their predecessors in time', async () => {
  for (let seed = 1; seed <= partOf(30, 12); seed++) {
    const program = new PlanProgram(seed, { hazards: false });
    const { rounds } = await computed(program);
    const [first, second] = await Promise.all(
      [false, true].map((plays) =>
        tracedWith(
          (trace) => planRuntime(program, { seed, trace }),
          (runtime) =>
            plays ? played(program, rounds, runtime, () => {}) : inserted(program, rounds, runtime),
        ),
      ),
    );
    expect(taskTexts(second), `seed ${seed}`).toEqual(taskTexts(first));
    expect(overlaps(second), `seed ${seed}`).toEqual([]);
  }
}, 120_000);

/** Tasks of a traced play that began before a task that they follow had ended. A ring has room for a few iterations. */
async function tracedPlay(): Promise<string[]> {
  const program = new PlanProgram(1);
  const trace = await tracedWith(
    (file) => planRuntime(program, { trace: file }),
    async (runtime) => {
      const [x, y] = [1, 2].map((v) => runtime.data(new Float64Array(8).fill(v)));
      const plan = await runtime.plan((graph) => {
        for (let i = 0; i < 10; i++)
          graph.insert(axpy, { y, x, n: 8, a: slot('t') }, { device: 'host' });
      });
      await plan.run({ times: 50 });
    },
  );
  expect(playedIterations(trace)).toEqual(new Map([['plan', new Array(50).fill(10)]]));
  return overlaps(trace);
}

test('a trace has the times of records whose slots were used again', async () => {
  expect(await tracedPlay()).toEqual([]);
});

/** y, x, and 'copy' for y := x instead of y += 0.1 x, or the device. */
type Wanted = readonly [number, number, ('copy' | 'host' | number)?];
interface Returning {
  readonly gpus: number;
  readonly gpuMemory: number;
  readonly sizes: readonly number[];
  readonly tasks: readonly Wanted[];
}

/** d3 and d1 leave; d0 comes back while the task that reads its older value may be under way. */
const elsewhere: Returning = {
  gpus: 1,
  gpuMemory: 7931,
  sizes: [64, 256, 256, 256, 192, 64, 64],
  tasks: [
    ...([
      [3, 4],
      [1, 3],
      [0, 1, 'copy'],
      [3, 0, 'host'],
      [0, 6, 'copy'],
    ] as const),
    ...([
      [1, 2, 'copy'],
      [4, 5],
      [1, 0],
      [0, 3, 'host'],
      [1, 3],
      [3, 0],
    ] as const),
  ],
};
/** d9 is written on another GPU and comes back to memory that overlaps its own. */
const overlapping: Returning = {
  gpus: 2,
  gpuMemory: 2 ** 20,
  sizes: [192, 192, 64, 256, 256, 128, 64, 128, 256, 256, 128],
  tasks: [
    ...([
      [9, 4, 'copy'],
      [1, 2],
      [3, 6],
      [2, 3, 1],
      [9, 5, 1],
      [1, 4, 'copy'],
    ] as const),
    ...([
      [1, 2, 0],
      [1, 9, 'host'],
      [9, 2],
      [9, 7, 0],
      [5, 8, 'copy'],
      [9, 8],
    ] as const),
    ...([
      [1, 10],
      [10, 4, 'copy'],
      [0, 3, 'copy'],
      [5, 10, 1],
      [8, 7, 1],
    ] as const),
  ],
};

test.each([
  ['other memory than it had', elsewhere],
  ['memory that overlaps its own', overlapping],
])(
  'a datum that leaves a GPU comes back to %s',
  async (_name, { gpus, gpuMemory, sizes, tasks }) => {
    const machine = { ...planMachine(new PlanProgram(1)), gpus, gpuMemory };
    const read = async (plays: boolean): Promise<string> => {
      const backend = new SimulatedBackend({
        machine: { ...machine, workers: 1, computeStreams: 1 },
        ringRecords: 128,
        kernels: planKernels,
      });
      const runtime = Runtime.over(backend, { checked: true, window: 8 });
      const data = sizes.map((n, i) =>
        runtime.data(Float64Array.from({ length: n }, (_, k) => i + 1 + k / 64)),
      );
      const insert = (graph: Pick<Graph, 'insert'>): void => {
        for (const [to, from, what] of tasks) {
          const [y, x] = [data[to], data[from]];
          const n = Math.min(sizes[to], sizes[from]);
          if (what === 'copy') graph.insert(copy, { y, x, bytes: sizes[to] * 8 });
          else graph.insert(axpy, { y, x, n, a: 0.1 }, what === undefined ? {} : { device: what });
        }
      };
      // Leaves copies on the GPUs, whose memory the play takes over. The plan is made meanwhile.
      const before = runtime.run(insert);
      await (plays ? (await runtime.plan(insert)).run() : runtime.run(insert));
      // Uses the copies that the play has left.
      await runtime.run(insert);
      const values = await Promise.all(data.map((d) => d.read()));
      await before;
      await runtime.close();
      return values.join();
    };
    expect(await read(true)).toBe(await read(false));
  },
);

/** A play of 5000 iterations of one task, which is aborted in the 20th. The number of kernels that ran. */
async function aborted(): Promise<{ error: string; ran: number }> {
  const program = new PlanProgram(1);
  const controller = new AbortController();
  let ran = 0;
  const add_f64: SimulatedKernel = (call) => {
    if (++ran === 20) controller.abort(new Error('enough'));
    return planKernels.add_f64(call);
  };
  const counting = { ...planKernels, add_f64 };
  const backend = new SimulatedBackend({
    machine: planMachine(program),
    ringRecords: 128,
    kernels: counting,
  });
  const runtime = Runtime.over(backend, { window: 16, checked: true });
  const [x, y] = [1, 2].map((v) => runtime.data(new Float64Array(8).fill(v)));
  const plan = await runtime.plan((graph) => {
    graph.insert(axpy, { y, x, n: 8, a: slot('t') }, { device: 'host' });
  });
  const error = await plan.run({ times: 5000, signal: controller.signal }).then(
    () => '',
    (e: Error) => `${e.name}: ${e.message}`,
  );
  await runtime.close();
  return { error, ran };
}

test('an aborted play ends between two commands', async () => {
  const { error, ran } = await aborted();
  expect(error).toBe("AbortError: the play of plan 'plan' was aborted: enough");
  expect(ran).toBeLessThan(5000);
});

/**
 * A play of x += y, and behind it a task that should change x, and is cancelled while the play waits for a body. What the play says,
 * and x before and after it is restored.
 */
async function droppedBehindPlay(): Promise<string[]> {
  const machine = planMachine(new PlanProgram(1));
  const runtime = Runtime.over(new SimulatedBackend({ machine, kernels: planKernels }), {
    checked: true,
  });
  const [x, y, z] = [1, 2, 3].map((v) => runtime.data(new Float64Array(8).fill(v)));
  const plan = await runtime.plan((graph) => void graph.insert(axpy, { y: x, x: y, n: 8, a: 1 }));
  let end = (): void => {};
  const cancelled = new Promise<void>((resolve) => {
    end = resolve;
  });
  const wait = task({ name: 'wait', flows: { z: readWrite('f64') }, body: () => cancelled });
  const touch = task({ name: 'touch', flows: { x: readWrite('f64') }, body: () => {} });
  const before = runtime.run((graph) => void graph.insert(wait, { z }));
  const outcome = async (promise: Promise<unknown>): Promise<string> =>
    promise.then(
      () => 'ok',
      ({ code }) => code,
    );
  const play = outcome(plan.run());
  const behind = runtime.run((graph) => void graph.insert(touch, { x }));
  const reads = [outcome(x.read())];
  behind.cancel();
  await outcome(behind.done);
  reads.push(outcome(x.read()));
  end();
  await before;
  const found = [await play, ...(await Promise.all(reads))];
  await x.restore();
  found.push((await x.read()).join(' '));
  await runtime.close();
  return found;
}
const DROPPED_BEHIND = ['ok', 'ERR_DATUM_POISONED', 'ERR_DATUM_POISONED', '3 3 3 3 3 3 3 3'];

test('a task behind a play that is cancelled before the play begins does not concern the play', async () => {
  expect(await droppedBehindPlay()).toEqual(DROPPED_BEHIND);
});

describe('a body for which a play waits', () => {
  /** The body, called with the data behind an `await`; x is written behind the play, and z by the play. */
  async function beside(
    body: (data: Record<'x' | 'y' | 'z', Datum<'f64'>>, graph: TaskGraph) => Promise<unknown>,
  ): Promise<string[]> {
    const machine = planMachine(new PlanProgram(1));
    const backend = new SimulatedBackend({ machine, kernels: planKernels });
    const runtime = Runtime.over(backend, { checked: true });
    const [x, y, z] = [1, 2, 3].map((v) => runtime.data(new Float64Array(8).fill(v)));
    const plan = await runtime.plan((graph) => void graph.insert(axpy, { y: z, x: y, n: 8, a: 1 }));
    const look = task({
      name: 'look',
      flows: {},
      body: async (_, { graph }) => {
        // A turn of the event loop: the play is called while the body is under way.
        await new Promise((resolve) => setTimeout(resolve));
        await body({ x, y, z }, graph);
      },
    });
    const outcome = (promise: PromiseLike<unknown>): Promise<string> =>
      Promise.resolve(promise).then(
        () => 'ok',
        ({ code }) => code,
      );
    const calls = [runtime.run((graph) => void graph.insert(look, {})), plan.run()];
    calls.push(runtime.run((graph) => void graph.insert(axpy, { y: x, x: z, n: 8, a: 1 })));
    const outcomes = await Promise.all(calls.map(outcome));
    const values = await Promise.all([x, y, z].map(async (datum) => (await datum.read())[0]));
    await runtime.close();
    return [...outcomes, values.join(' ')];
  }

  test('gets ERR_AWAITS_ITSELF if it reads what a task behind the play writes', async () => {
    expect(await beside(({ x }) => x.read())).toEqual(['ERR_AWAITS_ITSELF', 'ok', 'ok', '6 2 5']);
  });

  test('inserts a task that follows one behind the play: it comes behind the play, too', async () => {
    const follow = async (
      { x, y }: Record<'x' | 'y', Datum<'f64'>>,
      graph: TaskGraph,
    ): Promise<void> => void graph.insert(axpy, { y, x, n: 8, a: 1 });
    expect(await beside(follow)).toEqual(['ok', 'ok', 'ok', '6 8 5']);
  });
});

describe('guards', () => {
  afterEach(() => {
    for (const name of guardNames) setGuard(name, true);
  });

  /** The first problem of a random program without a guard. */
  async function without(guard: keyof Guards): Promise<string> {
    setGuard(guard, false);
    for (let seed = 1; seed <= 60; seed++) {
      const found = await planProblem(new PlanProgram(seed), seed);
      if (found !== '') return found;
    }
    return '';
  }

  test.each([
    ['planLoop', 'an iteration overtakes the one before'],
    ['planRepeats', 'an iteration begins where its data are not'],
    ['planDealt', 'a task overwrites what another one is still to read'],
    ['planPlaces', 'a plan uses the memory of other data'],
    ['planAlone', 'a play and a run use the same data at the same time'],
  ] as const)(
    'without %s: %s',
    async (guard, _) => {
      expect(await without(guard)).not.toBe('');
    },
    120_000,
  );

  test('without planLoop, on a machine without delays: no edge orders two iterations', async () => {
    setGuard('planLoop', false);
    const found: string[] = [];
    for (let seed = 1; seed <= 20; seed++) found.push(await planProblem(new PlanProgram(seed)));
    expect(found.join()).toContain('and no edge orders them');
  });

  test('without planCancel: an aborted play goes on to its last iteration', async () => {
    setGuard('planCancel', false);
    expect((await aborted()).ran).toBe(5000);
  });

  test('without planDropped: a later task that is cancelled fails the play', async () => {
    setGuard('planDropped', false);
    expect(await droppedBehindPlay()).not.toEqual(DROPPED_BEHIND);
  });

  test('without planTimes: a trace has the times of other records', async () => {
    setGuard('planTimes', false);
    expect(await tracedPlay()).not.toEqual([]);
  });
});
