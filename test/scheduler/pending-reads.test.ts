// Programs on 2 to 4 simulated ranks that leave reads pending while runs fail. Every read ends, on every rank: with a whole
// value, the same on all ranks that get one, or with a typed error. Afterwards the ranks work together as before.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { eachRecord, Wire } from '../../devices/network/wire.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { World } from '../../devices/simulated/machine/world.js';
import { SimulatedNetwork } from '../../devices/simulated/network/network.js';
import {
  type Datum,
  type Graph,
  HeadraceError,
  Runtime,
  read,
  readWrite,
  task,
  write,
} from '../../scheduler/index.js';
import { link, rankMachine } from '../support/simulated-ranks.js';

/** `throwsFirst`: one rank inserts no task of the run, and the others insert all. */
type Ending = 'well' | 'throws' | 'throwsFirst' | 'cancelled' | 'fails';

type Step =
  | { readonly kind: 'read' | 'set' | 'restore'; readonly d: number; readonly awaited: boolean }
  | {
      readonly kind: 'run';
      readonly tasks: readonly {
        readonly from: number;
        readonly to: number;
        readonly us: number;
      }[];
      /** Data that the program function reads, without awaiting them. */
      readonly inside: readonly number[];
      /** The program function awaits what was left pending before, and then inserts its tasks. */
      readonly behind: boolean;
      readonly ending: Ending;
      readonly rank: number;
      readonly awaited: boolean;
    };

interface Program {
  readonly ranks: number;
  readonly seed: number;
  readonly treeFrom: number;
  /** Without lanes the engines exchange the versions themselves. */
  readonly lanes: number;
  /** Ranks with GPUs take memory for a long version when it is announced. */
  readonly gpus: number;
  readonly ranksPerHost: number;
  readonly lengths: readonly number[];
  readonly steps: readonly Step[];
  /** A rank is gone some time after it comes to a step. */
  readonly loss?: { readonly rank: number; readonly step: number; readonly ns: number };
}

const machine = { ...rankMachine, hostMemory: 2 ** 20 };

const DATA = 3;
const slow = task({
  name: 'slow',
  flows: { from: read('f64'), to: readWrite('f64') },
  params: { us: 'f64' },
  kernel: 'slow',
});
const fill = task({
  name: 'fill',
  flows: { to: readWrite('f64') },
  params: { value: 'f64' },
  body: ({ to, value }) => void to.fill(value),
});
const failing = task({
  name: 'failing',
  flows: { to: write('f64') },
  body: () => {
    throw new Error('as the program says');
  },
});

function open(
  p: Pick<Program, 'ranks' | 'seed' | 'treeFrom' | 'lanes' | 'gpus' | 'ranksPerHost'>,
  lateBy?: (message: number) => number,
): { readonly world: World; readonly network: SimulatedNetwork; readonly runtimes: Runtime[] } {
  const world = new World();
  const adversary = {
    seed: p.seed,
    spread: 6,
    holdBack: 0.6,
    stall: 0.1,
    stallNs: 1e4,
    spurious: 0.1,
  };
  const backends = Array.from(
    { length: p.ranks },
    (_, rank) =>
      new SimulatedBackend({
        machine: { ...machine, lanes: p.lanes, gpus: p.gpus },
        world,
        kernels: { slow: () => 0 },
        adversary: { ...adversary, seed: p.seed + rank },
      }),
  );
  const network = new SimulatedNetwork(world, backends, {
    link,
    ranksPerHost: p.ranksPerHost,
    treeFrom: p.treeFrom,
    adversary: backends[0].adversary,
    ...(lateBy === undefined ? {} : { lateBy }),
  });
  const { treeFrom } = p;
  const runtimes = backends.map((backend, rank) =>
    Runtime.over(backend, { workers: 1, inlineBytes: 256, treeFrom }, network.ports[rank]),
  );
  return { world, network, runtimes };
}

class Rank {
  readonly errors: HeadraceError[] = [];
  readonly problems: string[] = [];
  /** What the rank waits for; nothing at the end. */
  at = '';
  readonly pending: Map<string, number> = new Map();
  /** The values that reads gave, by name. */
  readonly values: Map<string, number> = new Map();
  private readonly runtime: Runtime;
  private readonly p: Program;
  private readonly comesTo: (step: number) => void;

  constructor(runtime: Runtime, p: Program, comesTo: (step: number) => void) {
    this.runtime = runtime;
    this.p = p;
    this.comesTo = comesTo;
  }

  private noted(name: string, promise: Promise<unknown>): Promise<unknown> {
    this.pending.set(name, (this.pending.get(name) ?? 0) + 1);
    return promise
      .catch((error: unknown) => {
        if (error instanceof HeadraceError && !name.endsWith(' after')) this.errors.push(error);
        else this.problems.push(`${name}: ${String(error)}`);
      })
      .finally(() => {
        const left = (this.pending.get(name) ?? 0) - 1;
        if (left > 0) this.pending.set(name, left);
        else this.pending.delete(name);
      });
  }

  private whole(name: string, promise: Promise<Float64Array>): Promise<unknown> {
    return this.noted(
      name,
      promise.then((values) => {
        if (values.some((value) => value !== values[0])) this.problems.push(`${name} is torn`);
        this.values.set(name, values[0]);
      }),
    );
  }

  async play(): Promise<void> {
    const { p, runtime } = this;
    const data = p.lengths.map((length, d) =>
      runtime.data(new Float64Array(length).fill(d), { rank: d % p.ranks, name: `d${d}` }),
    );
    const all: Promise<unknown>[] = [];
    const uses: Promise<unknown>[] = [];
    for (const [i, step] of p.steps.entries()) {
      const name = `${i} ${step.kind}`;
      this.comesTo(i);
      const done =
        step.kind === 'run'
          ? this.run(name, data, step, i, Promise.all(uses))
          : this.use(name, data, step, i);
      all.push(done);
      if (step.kind !== 'run') uses.push(done);
      this.at = name;
      if (step.awaited) await done;
    }
    this.at = 'the end';
    await Promise.all(all);
    if (p.loss === undefined) await this.afterwards(data);
    else await this.readAll(data);
    for (const datum of data) datum.close();
    this.at = 'close';
    await this.noted('close', runtime.close());
    this.at = '';
  }

  private use(
    name: string,
    data: readonly Datum<'f64'>[],
    step: Exclude<Step, { kind: 'run' }>,
    value: number,
  ): Promise<unknown> {
    const datum = data[step.d];
    if (step.kind === 'read') return this.whole(name, datum.read());
    if (step.kind === 'restore') return this.noted(name, datum.restore());
    return this.noted(name, datum.set(new Float64Array(datum.length).fill(value)));
  }

  private run(
    name: string,
    data: readonly Datum<'f64'>[],
    step: Extract<Step, { kind: 'run' }>,
    i: number,
    before: Promise<unknown>,
  ): Promise<unknown> {
    const throwing = (): void => {
      if (step.rank === this.runtime.rank)
        throw new HeadraceError('ERR_ABORTED', 'as the program says');
    };
    const program = (graph: Graph): void => {
      if (step.ending === 'throwsFirst') throwing();
      for (const { from, to, us } of step.tasks) {
        // Without an input from another rank, a task may be over before its rank learns of a failure.
        if (from !== to) graph.insert(slow, { from: data[from], to: data[to], us });
        graph.insert(fill, { to: data[to], value: 1000 * i + us });
      }
      for (const [k, d] of step.inside.entries())
        void this.whole(`${name} inside ${k}`, data[d].read());
      if (step.ending === 'fails') graph.insert(failing, { to: data[step.tasks[0]?.to ?? 0] });
      if (step.ending === 'throws') throwing();
    };
    const behind = (graph: Graph): Promise<void> => before.then(() => program(graph));
    // The ranks come to what is behind the reads at different times: the program goes on after it.
    const run = this.runtime.run(step.behind && step.awaited ? behind : program);
    const noted = this.noted(name, run.done);
    if (step.ending === 'cancelled' && step.rank === this.runtime.rank)
      run.cancel('as the program says');
    return noted;
  }

  /** After the loss of a rank no run ends well. */
  private async readAll(data: readonly Datum<'f64'>[]): Promise<void> {
    this.at = 'the last reads';
    const reads = data.map((datum, d) => this.whole(`read ${d} at the end`, datum.read()));
    await Promise.all(reads);
  }

  /** The ranks agree on what follows, whatever happened. */
  private async afterwards(data: readonly Datum<'f64'>[]): Promise<void> {
    this.at = 'what comes after';
    for (const [d, datum] of data.entries())
      void this.noted('set after', datum.set(new Float64Array(datum.length).fill(100 + d)));
    for (const [d, datum] of data.entries())
      await this.noted(
        'read after',
        datum.read().then((values) => {
          if (values.some((value) => value !== 100 + d))
            this.problems.push(`d${d} is ${values[0]} afterwards`);
        }),
      );
    const run = this.runtime.run((graph) => {
      for (let d = 0; d < DATA; d++)
        graph.insert(slow, { from: data[d], to: data[(d + 1) % DATA], us: 1 });
    });
    await this.noted('run after', run.done);
    for (const [d, datum] of data.entries()) await this.whole(`last read ${d} after`, datum.read());
  }
}

/** All that went wrong, or was waited for when nothing happened any more. */
async function play(p: Program): Promise<string[]> {
  const { world, network, runtimes } = open(p);
  const { loss } = p;
  const lost = loss?.rank ?? -1;
  const all = runtimes.map(
    (runtime, rank) =>
      new Rank(runtime, p, (step) => {
        if (loss === undefined || rank !== lost || step !== loss.step) return;
        world.at(world.time + loss.ns, () => network.lose(rank));
      }),
  );
  const ranks = all.filter((_, rank) => rank !== lost);
  let isOver = false;
  const stuck = new Promise<string[]>((resolve) => {
    world.onStill = () => {
      // Promises that were just settled go on first.
      setImmediate(() =>
        setImmediate(() => {
          if (isOver || world.next < Number.POSITIVE_INFINITY) return;
          resolve(
            ranks.map(
              ({ at, pending }, r) =>
                `rank ${r} is at ${at}, waits for ${[...pending.keys()].join(', ')}`,
            ),
          );
        }),
      );
    };
  });
  // A lost rank waits for ever, or is stopped in a call.
  if (lost >= 0) void all[lost].play().catch(() => {});
  const played = Promise.all(ranks.map((rank) => rank.play())).then(() => {
    isOver = true;
    return [];
  });
  const hang = await Promise.race([played, stuck]);
  const mismatches = ['ERR_PROGRAM_MISMATCH', 'ERR_GRAPH_MISMATCH', 'ERR_STALLED', 'ERR_INTERNAL'];
  const wrong = ranks.flatMap(({ errors }) =>
    errors.filter(({ code }) => mismatches.includes(code)).map(({ message }) => message),
  );
  for (const [name, value] of ranks.flatMap(({ values }) => [...values])) {
    const others = ranks.map(({ values }) => values.get(name) ?? value);
    if (others.some((other) => other !== value)) wrong.push(`${name} gives ${others.join(', ')}`);
  }
  return [...hang, ...ranks.flatMap(({ problems }) => problems), ...wrong];
}

function programs(awaitsRuns: boolean): fc.Arbitrary<Program> {
  const d = fc.nat(DATA - 1);
  const use = fc.record({
    kind: fc.constantFrom('read' as const, 'read' as const, 'set' as const, 'restore' as const),
    d,
    awaited: fc.boolean(),
  });
  const run = fc.record({
    kind: fc.constant('run' as const),
    tasks: fc.array(fc.record({ from: d, to: d, us: fc.constantFrom(1, 100, 2000) }), {
      maxLength: 4,
    }),
    inside: fc.array(d, { maxLength: 2 }),
    behind: fc.boolean(),
    ending: fc.constantFrom<Ending>('well', 'throws', 'throwsFirst', 'cancelled', 'fails'),
    rank: fc.nat(3),
    awaited: awaitsRuns ? fc.constant(true) : fc.boolean(),
  });
  return fc.record({
    ranks: fc.integer({ min: 2, max: 4 }),
    seed: fc.nat(1_000_000),
    treeFrom: fc.constantFrom(2, 9),
    lanes: fc.constantFrom(2, 3, 12),
    gpus: fc.nat(1),
    ranksPerHost: fc.constantFrom(1, 4),
    lengths: fc.array(fc.constantFrom(8, 4096), { minLength: DATA, maxLength: DATA }),
    steps: fc.array(fc.oneof(use, use, run), { minLength: 1, maxLength: 10 }),
  });
}

/**
 * A rank is lost in a program that leaves copies on all ranks first, and ends with a run of which one rank inserts no task.
 * The lost rank may be late with its part of that run, so the run may never be settled.
 */
const losses: fc.Arbitrary<Program> = fc
  .record({
    p: programs(false),
    lost: fc.nat(3),
    thrower: fc.integer({ min: 1, max: 2 }),
    written: fc.subarray([0, 1, 2], { minLength: 1 }),
    last: fc.boolean(),
    step: fc.nat(20),
    ns: fc.nat(40).map((k) => Math.round(100 * 1.3 ** k)),
  })
  .map(({ p, lost, thrower, written, last, step, ns }) => {
    const ranks = Math.max(3, p.ranks);
    const steps: Step[] = [
      ...[0, 1, 2].map((d) => ({ kind: 'read' as const, d, awaited: true })),
      ...p.steps.slice(0, 4),
      {
        kind: 'run',
        tasks: [
          { from: (lost + 1) % DATA, to: lost % DATA, us: 2000 },
          ...written.map((d) => ({ from: d, to: d, us: 1 })),
        ],
        inside: [],
        behind: false,
        ending: 'throwsFirst',
        rank: (lost + thrower) % ranks,
        awaited: false,
      },
    ];
    const at = last ? steps.length - 1 : step % steps.length;
    return { ...p, ranks, steps, loss: { rank: lost % ranks, step: at, ns } };
  });

describe('reads that are left pending on several ranks', () => {
  test('end when runs fail that the program awaits', async () => {
    await fc.assert(
      fc.asyncProperty(programs(true), async (p) => {
        expect(await play(p)).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });

  test('end when runs fail while the program goes on', async () => {
    await fc.assert(
      fc.asyncProperty(programs(false), async (p) => {
        expect(await play(p)).toEqual([]);
      }),
      { numRuns: 200 },
    );
  }, 120_000);

  test('give one value or none when a rank is lost', async () => {
    await fc.assert(
      fc.asyncProperty(losses, async (p) => {
        expect(await play(p)).toEqual([]);
      }),
      { numRuns: 200 },
    );
  }, 120_000);
});

test('news of a failure that come after its verdict do not fail the next run', async () => {
  // One message after the other is late; one of them is that by which rank 2 hears of rank 1's failure.
  for (let late = 0; late < 12; late++) {
    const { runtimes } = open(
      { ranks: 3, seed: 1, treeFrom: 4, lanes: 8, gpus: 0, ranksPerHost: 1 },
      (nth) => (nth === late ? 1e6 : 0),
    );
    await Promise.all(
      runtimes.map(async (runtime, rank) => {
        const failed = runtime.run(() => {
          if (rank === 1) throw new HeadraceError('ERR_ABORTED', 'as the program says');
        });
        await expect(failed.done).rejects.toBeInstanceOf(HeadraceError);
        await runtime.run(() => {});
      }),
    );
    await Promise.all(runtimes.map((runtime) => runtime.close()));
  }
});

test('news of an era that come before the verdict over the spoiled one before it end the read', async () => {
  const given = { ranks: 3, seed: 1, treeFrom: 4, lanes: 8, gpus: 0, ranksPerHost: 1 };
  const { world, network, runtimes } = open(given);
  // From the verdict over the second run on, messages of rank 0 come to rank 1 when nothing else happens any more.
  const held: Uint8Array[] = [];
  const post = network.post.bind(network);
  network.post = (from, to, bytes, at) => {
    let isHeld = held.length > 0;
    eachRecord(bytes, (record) => {
      if (record.kind === Wire.verdict && record.words[record.at + 2] === 2) isHeld = true;
    });
    if (isHeld && from === 0 && to === 1) held.push(bytes.slice());
    else post(from, to, bytes, at);
  };
  const stuck = new Promise<string[]>((resolve) => {
    world.onStill = () => {
      for (const bytes of held.splice(0)) post(0, 1, bytes, world.time);
      // Promises that were just settled go on first.
      setImmediate(() =>
        setImmediate(() => {
          if (world.next === Number.POSITIVE_INFINITY)
            resolve(runtimes.map((runtime) => runtime.explain()));
        }),
      );
    };
  });
  const codes = runtimes.map(async (runtime, rank) => {
    const [none, from, to] = ['none', 'from', 'to'].map((name) =>
      runtime.data(new Float64Array(8), { name, rank: 2 }),
    );
    const failed = runtime.run((graph) => {
      graph.insert(failing, { to: none });
    });
    const end = failed.done.catch(() => {});
    // Rank 1 begins the second run before it hears of the failure, so the run spoils the era in which the others begin it.
    if (rank !== 1) await end;
    const spoiling = runtime.run((graph) => {
      graph.insert(slow, { from, to, us: 100 });
    });
    await spoiling.done.catch(() => {});
    const code = await none.read().catch((error: unknown) => (error as HeadraceError).code);
    await runtime.close();
    return code;
  });
  expect(await Promise.race([Promise.all(codes), stuck])).toEqual(
    Array(3).fill('ERR_DATUM_POISONED'),
  );
});

test.each([2, 8])(
  'a datum that was without a value, was set and has none again reports the new reason (%i lanes)',
  async (lanes) => {
    const { runtimes } = open({ ranks: 2, seed: 1, treeFrom: 4, lanes, gpus: 0, ranksPerHost: 1 });
    const told = await Promise.all(
      runtimes.map(async (runtime) => {
        const datum = runtime.data(new Float64Array(64), { name: 'twice', rank: 1 });
        const messages: string[] = [];
        const note = async (): Promise<unknown> =>
          datum.read().catch(({ message }: Error) => messages.push(message));
        const failed = (rank: number): Promise<unknown> =>
          runtime
            .run((graph) => {
              graph.insert(failing, { to: datum }, { rank });
              void note();
            })
            .done.catch(() => {});
        // Rank 0 computes it, so that its owner learns by a message that there is no value.
        await failed(0);
        await note();
        await datum.set(new Float64Array(64).fill(1));
        expect((await datum.read())[0]).toBe(1);
        await failed(1);
        messages.length = 0;
        await note();
        await runtime.close();
        return messages;
      }),
    );
    expect(told[1]).toEqual([
      "datum 'twice' has no usable value: the task that wrote it failed (write all of it again before reading it)",
    ]);
    expect(told[0]).toEqual(["datum 'twice' has no usable value on rank 1"]);
  },
);
