// A read that one rank begins in one era and ends in the next: a failed run is settled while the read waits for room in the window.
// It leaves no trace in the new era, in which the ranks count their transfers from 0.
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { World } from '../../devices/simulated/machine/world.js';
import { SimulatedNetwork } from '../../devices/simulated/network/network.js';
import { Runtime, readWrite, task } from '../../scheduler/index.js';
import { copyOf, paint } from '../support/body-tasks.js';
import { link, rankMachine } from '../support/simulated-ranks.js';

const RANKS = 3;
const SMALL = 16;
/** Data that are set before the read, so that each insertion of the read is once the one that waits. */
const SETS = [10, 11, 12, 13, 14];
/** Elements of a datum that travels in its message, and of one that is announced and goes along a tree. */
const LENGTHS = [1, 1000];
const LONG = 20_000;

const failing = task({
  name: 'failing',
  flows: { to: readWrite('f64') },
  body: () => {
    throw new Error('as the program says');
  },
});

interface Case {
  /** The rank with the small window. */
  readonly waits: number;
  /** Elements of the datum that is read. */
  readonly length: number;
  /** Data that are set before the read. */
  readonly sets: number;
  /** Whether the last rank makes the read in the new era. */
  readonly isLate: boolean;
  /**
   * What is read: a datum; a part that takes over what was written to the whole; or one that rank 1 has, and that takes over what rank
   * 2 has written to its first half.
   */
  readonly of: 'whole' | 'part' | 'halves';
}

interface Seen {
  /** The era has changed within the call. */
  readonly isWithin: boolean;
  /** What the read gives. */
  readonly value: number | string;
  /** What a second read gives, in the new era. */
  readonly again: number | string;
  /** What the ranks read in a run of the new era. */
  readonly copies: string;
}

async function program(
  runtime: Runtime,
  meet: () => Promise<void>,
  { waits, length, sets, isLate, of }: Case,
): Promise<Seen> {
  const { rank } = runtime;
  const era = (): number | undefined => runtime.peers?.runs.era;
  const whole = runtime.data(new Float64Array(length).fill(1), { name: 'datum', rank: 0 });
  const datum = of === 'whole' ? whole : whole.part(0, length);
  if (of !== 'whole') {
    await runtime.run((graph) => {
      graph.insert(paint, { to: datum, value: 5 }, { rank: of === 'halves' ? 1 : 0 });
      if (of === 'part') graph.insert(paint, { to: whole, value: 1 });
      else graph.insert(paint, { to: whole.part(0, length / 2), value: 1 }, { rank: 2 });
    });
    await meet();
  }
  const own = runtime.data(new Float64Array(1), { name: 'own', rank: waits });
  const scrap = runtime.data(new Float64Array(1), { name: 'scrap', rank: 1 });
  const copies = Array.from({ length: RANKS }, (_, i) =>
    runtime.data(new Float64Array(length), { name: `copy ${i}`, rank: i }),
  );
  const long = runtime.data(new Float64Array(LONG), { name: 'long', rank: 1 });
  // Its tasks are the first of the window: no row is free before they are over.
  const pending = long.read();
  const failed = runtime.run((graph) => void graph.insert(failing, { to: scrap }));
  if (isLate && rank === RANKS - 1) await failed.done.catch(() => {});
  for (let i = 0; i < sets; i++) void own.set(Float64Array.of(i));
  const before = era();
  const reading = (): Promise<number | string> =>
    datum.read().then(
      ([first]) => first,
      (error: { readonly code: string }) => error.code,
    );
  const value = reading();
  const isWithin = era() !== before;
  await Promise.allSettled([failed.done, value, pending]);
  const again = await reading();
  await runtime.run((graph) => {
    graph.insert(paint, { to: datum, value: 2 });
    for (const to of copies) graph.insert(copyOf, { to, from: datum });
  });
  const values = await Promise.all(copies.map((each) => each.read()));
  return { isWithin, value: await value, again, copies: values.map(([first]) => first).join(' ') };
}

/** What each rank sees. The rank that waits comes last: the others have made their calls then. */
async function onRanks(given: Case, seed = 10): Promise<Seen[]> {
  const world = new World();
  const delays = { spread: 3, holdBack: 0.3, stall: 0.1, stallNs: 20_000, spurious: 0.05 };
  const backends = Array.from(
    { length: RANKS },
    (_, rank) =>
      new SimulatedBackend({
        machine: rankMachine,
        world,
        kernels: { '*': () => 0 },
        adversary: { seed: seed + rank, ...delays },
      }),
  );
  const { adversary } = backends[0];
  const { ports } = new SimulatedNetwork(world, backends, { link, treeFrom: 2, adversary });
  const options = { checked: true, inlineBytes: 64, treeFrom: 2, plans: 'off' } as const;
  const runtimes = backends.map((backend, rank) =>
    Runtime.over(
      backend,
      rank === given.waits ? { ...options, window: SMALL } : options,
      ports[rank],
    ),
  );
  const here: (() => void)[] = [];
  const meet = (rank: number): Promise<void> =>
    new Promise((resolve) => {
      if (rank === given.waits) here.push(resolve);
      else here.unshift(resolve);
      // The last one awaits it by then, too.
      if (here.length === RANKS)
        queueMicrotask(() => {
          for (const goOn of here) goOn();
        });
    });
  const played: Promise<Seen>[] = [];
  const others = runtimes.filter(({ rank }) => rank !== given.waits);
  for (const runtime of [...others, runtimes[given.waits]])
    played[runtime.rank] = program(runtime, () => meet(runtime.rank), given);
  let seen: Seen[] | undefined;
  const over = Promise.all(played).then((all) => {
    seen = all;
  });
  for (let i = 0; i < 50_000 && seen === undefined; i++) await Promise.race([over, setImmediate()]);
  if (seen === undefined)
    throw new Error(`still waiting: ${runtimes.map((each) => each.explain()).join('\n')}`);
  await Promise.all(runtimes.map((runtime) => runtime.close()));
  return seen;
}

describe.each(LENGTHS)(
  'a read of %i elements that waits while a failed run is settled',
  (length) => {
    const test = async (waits: number, isLate: boolean): Promise<void> => {
      const within: boolean[] = [];
      for (const sets of SETS) {
        const all = await onRanks({ waits, length, sets, isLate, of: 'whole' });
        within.push(all[waits].isWithin);
        for (const { value, copies } of all) {
          expect([1, 'ERR_PEER_FAILED'], `${sets} sets`).toContain(value);
          expect(copies, `${sets} sets`).toBe('2 2 2');
        }
      }
      expect(within).toContain(true);
    };

    it.each([false, true])(
      'on the rank that sends counts no send in the new era (another rank is late: %s)',
      (isLate) => test(0, isLate),
    );

    it('on a rank that receives counts no receive in the new era', () => test(2, false));
  },
);

it.each([
  ['the rank of the datum', 0],
  ['another rank', 2],
])(
  'a read of a part on %s gives nothing in the era after the one in which it began',
  async (_rank, waits) => {
    const within: boolean[] = [];
    for (const sets of SETS) {
      const all = await onRanks({ waits, length: 1, sets, isLate: false, of: 'part' });
      within.push(all[waits].isWithin);
      for (const { value, copies } of all) {
        expect([1, 'ERR_PEER_FAILED'], `${sets} sets`).toContain(value);
        expect(copies, `${sets} sets`).toBe('2 2 2');
      }
    }
    expect(within).toContain(true);
  },
);

it('a rank that receives for a read of a part counts no writer of it in the new era', async () => {
  for (const seed of [10, 40, 180, 200, 280]) {
    const within: boolean[] = [];
    for (const sets of SETS) {
      const all = await onRanks({ waits: 1, length: 2, sets, isLate: false, of: 'halves' }, seed);
      within.push(all[1].isWithin);
      for (const { again, copies } of all) {
        expect(again, `${sets} sets, seed ${seed}`).toBe('ERR_DATUM_POISONED');
        expect(copies, `${sets} sets, seed ${seed}`).toBe('2 2 2');
      }
    }
    expect(within).toContain(true);
  }
});
