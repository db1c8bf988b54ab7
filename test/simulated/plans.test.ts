// Plans on simulated machines whose memory has bytes: what is played gives what is inserted, whatever the machine's delays.
// And the guards of plans: without each of them a check fails.
import '../support/removable-guards.js';
import { afterEach, describe, expect, test } from 'vitest';
import type { Guards } from '../../devices/guards.js';
import { guardNames, setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend, type SimulatedKernel } from '../../devices/simulated/machine/backend.js';
import type { MachineDescription } from '../../devices/simulated/machine/machine.js';
import { Runtime, slot } from '../../index.js';
import { axpy, PlanProgram } from '../support/plan-programs.js';
import { overlaps, playedIterations, taskTexts, tracedWith } from '../support/played-traces.js';

/** Turns of the event loop after which a program counts as one that hangs. */
const TURNS = 20_000;

const doubles = (memory: Uint8Array, offset: number, n: number): Float64Array =>
  new Float64Array(memory.buffer, memory.byteOffset + offset, n);

const kernels = {
  add_f64: ({ memory, flows: [y, x], params: [n, a] }) => {
    const to = doubles(memory, y, n);
    const from = doubles(memory, x, n);
    for (let i = 0; i < n; i++) to[i] += a * from[i];
    return 0;
  },
  copy_bytes: ({ memory, flows: [y, x], params: [bytes] }) => {
    memory.copyWithin(y, x, x + bytes);
    return 0;
  },
  fail: ({ params: [code] }) => code,
} satisfies Record<string, SimulatedKernel>;

function machine(p: PlanProgram): MachineDescription {
  const link = { bandwidth: 1e9, latency: 1e-6 };
  return {
    name: 'plans',
    gpus: p.gpus,
    gpuMemory: p.gpuMemory,
    hostMemory: 2 ** 20,
    workers: p.workers,
    computeStreams: p.computeStreams,
    h2d: link,
    d2h: link,
    d2d: link,
    engine: { command: 1e-7, wake: 1e-6, launch: 1e-6 },
    kernels: { '*': 1e-5 },
  };
}

/** A machine for the program; with a seed, one that delays what it can. */
function open(p: PlanProgram, seed?: number, trace?: string): Runtime {
  const adversary =
    seed === undefined
      ? {}
      : {
          adversary: {
            seed,
            spread: 3,
            holdBack: 0.3,
            stall: 0.1,
            stallNs: 20_000,
            spurious: 0.05,
          },
        };
  const backend = new SimulatedBackend({
    machine: machine(p),
    ringRecords: 128,
    kernels,
    ...adversary,
  });
  const traced = trace === undefined ? {} : { trace };
  return Runtime.over(backend, { window: p.window, checked: true, ...traced });
}

/** What is wrong with a played program: nothing, other values than those of insertion, or an error. */
async function problem(seed: number, delays: boolean): Promise<string> {
  const program = new PlanProgram(seed);
  const results: string[][] = [];
  for (const plays of [false, true]) {
    const runtime = open(program, delays ? seed : undefined);
    const result = program.result(runtime, plays);
    let values: string[] | Error | undefined;
    result.then(
      (given) => {
        values = given;
      },
      (error: Error) => {
        values = error;
      },
    );
    for (let i = 0; i < TURNS && values === undefined; i++)
      await new Promise((resolve) => setImmediate(resolve));
    if (values === undefined) return 'hangs';
    if (values instanceof Error) return values.message;
    results.push(values);
    await runtime.close();
  }
  const other = results[1].findIndex((value, i) => value !== results[0][i]);
  return other < 0 ? '' : `value ${other} differs`;
}

test.each([false, true])(
  'what is played is what is inserted, with delays: %s',
  async (delays) => {
    for (let seed = 1; seed <= 60; seed++)
      expect(await problem(seed, delays), `seed ${seed}`).toBe('');
  },
  120_000,
);

test('a trace of plays has the tasks of as many runs, which follow their predecessors in time', async () => {
  for (let seed = 1; seed <= 30; seed++) {
    const program = new PlanProgram(seed);
    const [inserted, played] = await Promise.all(
      [false, true].map((plays) =>
        tracedWith(
          (trace) => open(program, seed, trace),
          (runtime) => program.result(runtime, plays),
        ),
      ),
    );
    expect(taskTexts(played), `seed ${seed}`).toEqual(taskTexts(inserted));
    expect(overlaps(played), `seed ${seed}`).toEqual([]);
  }
}, 120_000);

/** Tasks of a traced play that began before a task that they follow had ended. A ring has room for a few iterations. */
async function tracedPlay(): Promise<string[]> {
  const program = new PlanProgram(1);
  const trace = await tracedWith(
    (file) => open(program, undefined, file),
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

/** A play of 5000 iterations of one task, which is aborted in the 20th. The number of kernels that ran. */
async function aborted(): Promise<{ error: string; ran: number }> {
  const program = new PlanProgram(1);
  const controller = new AbortController();
  let ran = 0;
  const add_f64: SimulatedKernel = (call) => {
    if (++ran === 20) controller.abort(new Error('enough'));
    return kernels.add_f64(call);
  };
  const counting = { ...kernels, add_f64 };
  const backend = new SimulatedBackend({
    machine: machine(program),
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

describe('guards', () => {
  afterEach(() => {
    for (const name of guardNames) setGuard(name, true);
  });

  /** The first problem of a random program without a guard. */
  async function without(guard: keyof Guards): Promise<string> {
    setGuard(guard, false);
    for (let seed = 1; seed <= 60; seed++) {
      const found = await problem(seed, true).catch((error: Error) => error.message);
      if (found !== '') return found;
    }
    return '';
  }

  test.each([
    ['planLoop', 'an iteration overtakes the one before'],
    ['planRepeats', 'an iteration begins where its data are not'],
    ['planPlaces', 'a plan uses the memory of other data'],
    ['planAlone', 'a play and a run use the same data at the same time'],
  ] as const)(
    'without %s: %s',
    async (guard, _) => {
      expect(await without(guard)).not.toBe('');
    },
    120_000,
  );

  test('without planCancel: an aborted play goes on to its last iteration', async () => {
    setGuard('planCancel', false);
    expect((await aborted()).ran).toBe(5000);
  });

  test('without planTimes: a trace has the times of other records', async () => {
    setGuard('planTimes', false);
    expect(await tracedPlay()).not.toEqual([]);
  });
});
