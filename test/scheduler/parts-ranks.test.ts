// Parts of data on several ranks: random programs, what travels, failures, and what is refused.
import '../support/removable-guards.js';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, test } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { type Datum, type Graph, type Runtime, read, reduce, task } from '../../index.js';
import { nothingLeft, nothingPinned, soon } from '../support/machines.js';
import { codeOf } from '../support/outcomes.js';
import { partKernels, playParts } from '../support/part-programs.js';
import { onRanks } from '../support/simulated-ranks.js';
import { add, fail, fill, random } from '../support/tasks.js';

describe.each([1, 2, 3, 4])('random programs on %i ranks', (ranks) => {
  it.each([1, 2, 3])('%i has the results of plain arrays', async (seed) => {
    await onRanks({ ranks, seed, kernels: partKernels }, async (runtime) => {
      await nothingLeft(runtime, await playParts(runtime, 10 * seed + ranks, 40));
    });
  });
});

/** What two ranks know in the end, of which one makes a part before the other. */
async function madeAtOtherTimes(first: number): Promise<string[]> {
  return await onRanks({ ranks: 2, seed: 1, kernels: partKernels }, async (runtime) => {
    const x = runtime.data(new Float64Array(8).fill(1), { name: 'x', rank: 0 });
    const y = runtime.data(new Float64Array(8).fill(1), { name: 'y', rank: 1 });
    if (runtime.rank === first) x.part(0, 2);
    for (let round = 0; round < 2; round++) {
      await runtime.run((graph) => {
        graph.insert(add, { to: y, from: x, count: 8 }, { rank: 1 });
        graph.insert(fill, { to: x.part(0, 2), count: 2, value: 5 }, { rank: 0 });
        graph.insert(add, { to: y, from: x, count: 8 }, { rank: 1 });
      });
      x.part(0, 2).close();
      if (runtime.rank === first) x.part(1, 2);
    }
    return [x, y].reduce(
      async (text, datum) => `${await text} ${[...(await datum.read())].join(' ')}`,
      Promise.resolve(''),
    );
  });
}

it.each([0, 1])('ranks may make a part at other times: rank %i makes it first', async (first) => {
  const all = await madeAtOtherTimes(first);
  const expected = ' 5 5 1 1 1 1 1 1 17 17 5 5 5 5 5 5';
  expect(all).toEqual([expected, expected]);
});

/** Two ranks plan parts of `x` and `y`, and rank 0 has made parts of `x` before. Returns the values in the end. */
async function plannedBesideOldParts(): Promise<string[]> {
  return await onRanks({ ranks: 2, seed: 1, kernels: partKernels }, async (runtime) => {
    const [x, y, sum] = ['x', 'y', 'sum'].map((name, rank) =>
      runtime.data(new Float64Array(8).fill(1), { name, rank: rank % 2 }),
    );
    if (runtime.rank === 0) x.part(0, 2);
    const plan = await runtime.plan((graph) => {
      graph.insert(add, { to: sum, from: x, count: 8 });
      for (const [datum, value] of [
        [y, 3],
        [x, 5],
      ] as const)
        graph.insert(fill, { to: datum.part(2, 3), count: 3, value });
    });
    await plan.run();
    plan.close();
    const texts: string[] = [];
    for (const datum of [x, y, sum]) texts.push([...(await datum.read())].join(' '));
    return texts.join(', ');
  });
}

it('plans on ranks of which one has had parts before', async () => {
  const expected = '1 1 5 5 5 1 1 1, 1 1 3 3 3 1 1 1, 2 2 2 2 2 2 2 2';
  expect(await plannedBesideOldParts()).toEqual([expected, expected]);
});

test('without partsInOrder: ranks that have had other parts plan different graphs', async () => {
  setGuard('partsInOrder', false);
  try {
    expect(await codeOf(plannedBesideOldParts())).toBe('ERR_GRAPH_MISMATCH');
  } finally {
    setGuard('partsInOrder', true);
  }
});

describe('what travels', () => {
  const [rows, columns] = [16, 8];
  const edge = rows * 8;
  const ones = (): Float64Array => new Float64Array(rows * columns).fill(1);

  /** Bytes that each of two ranks sends in a run. */
  async function sent(make: (runtime: Runtime) => (graph: Graph) => void): Promise<number[]> {
    return await onRanks({ ranks: 2, seed: 1, kernels: partKernels }, async (runtime) => {
      const { network } = await runtime.run(make(runtime));
      await nothingPinned(runtime);
      return network?.sentBytes ?? -1;
    });
  }

  it('of a tile whose edge another rank reads, the edge', async () => {
    const bytes = await sent((runtime) => {
      const tiles = [0, 1].map((rank) => runtime.data(ones(), { rows, rank }));
      const edges = [columns - 1, 0].map((column, i) => tiles[i].block({ column, columns: 1 }));
      return (graph) => {
        for (let step = 0; step < 10; step++) {
          graph.insert(add, { to: tiles[0], from: edges[1], count: rows });
          graph.insert(add, { to: tiles[1], from: edges[0], count: rows });
        }
      };
    });
    expect(bytes).toEqual([10 * edge, 10 * edge]);
  });

  it('of a tile whose edge another rank writes, the edge', async () => {
    const bytes = await sent((runtime) => {
      const [tile, other] = [0, 1].map(() => runtime.data(ones(), { rows }));
      const part = tile.block({ column: 3, columns: 1 });
      return (graph) => {
        for (let value = 0; value < 5; value++) {
          graph.insert(fill, { to: part, count: rows, value }, { rank: 1 });
          graph.insert(add, { to: tile, from: other, count: rows });
        }
      };
    });
    expect(bytes).toEqual([0, 5 * edge]);
  });

  it('a tile once to the rank that writes an edge of it and reads it all', async () => {
    const bytes = await sent((runtime) => {
      const tile = runtime.data(ones(), { rows });
      const to = runtime.data(ones(), { rows, rank: 1 });
      const part = tile.block({ column: 3, columns: 1 });
      return (graph) => {
        for (let value = 0; value < 5; value++) {
          graph.insert(fill, { to: part, count: rows, value }, { rank: 1 });
          graph.insert(add, { to, from: tile, count: rows });
        }
      };
    });
    expect(bytes).toEqual([columns * edge, 0]);
  });

  it('of two parts that overlap, what they have in common', async () => {
    const bytes = await sent((runtime) => {
      const x = runtime.data(ones());
      const [left, right] = [x.part(0, 60), x.part(50, 60)];
      const to = runtime.data(ones(), { rank: 1 });
      return (graph) => {
        graph.insert(add, { to, from: right, count: 1 });
        for (let value = 0; value < 3; value++) {
          graph.insert(fill, { to: left, count: 60, value });
          graph.insert(add, { to: right, from: to, count: 1 }, { rank: 1 });
        }
      };
    });
    // First all of the right part goes there. It is at home there then, and 10 elements come each time.
    expect(bytes).toEqual([8 * (60 + 3 * 10), 0]);
  });
});

it('runs that ranks insert in different orders use parts of different data', async () => {
  await onRanks({ ranks: 2, seed: 4, kernels: partKernels }, async (runtime) => {
    const data = [0, 1].map((rank) => runtime.data(new Float64Array(12), { rank }));
    const runs = data.map(
      (x, i) =>
        runtime.run(async (graph) => {
          for (let step = 0; step < 5; step++) {
            // Each rank begins with another one.
            for (let k = 0; k < (i === runtime.rank ? 20 : 0); k++) await setImmediate();
            const to = x.part(2 * step, 3);
            graph.insert(fill, { to, count: 3, value: step }, { rank: 1 - i });
            graph.insert(add, { to: x.part(0, 2), from: x.part(10, 2), count: 2 });
          }
        }).done,
    );
    await Promise.all(runs);
    for (const x of data)
      expect([...(await x.read())]).toEqual([4, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 0]);
  });
});

describe('several ranks refuse', () => {
  const refusals = async (
    run: (runtime: Runtime, x: Datum<'f64'>) => PromiseLike<unknown>,
  ): Promise<void> => {
    const all = await onRanks({ ranks: 2, seed: 1, kernels: partKernels }, async (runtime) => {
      const x = runtime.data(new Float64Array(4), { name: 'x' });
      return await codeOf(run(runtime, x));
    });
    for (const code of all) expect(code).toMatch(/^ERR_PART$|^ERR_PEER_FAILED$/);
    expect(all).toContain('ERR_PART');
  };

  it('parts in a pruned run', async () => {
    await refusals((runtime, x) =>
      runtime.run((graph) => void graph.insert(fill, { to: x.part(0, 2), count: 2, value: 1 }), {
        pruned: true,
      }),
    );
  });

  it('to restore a part', async () => {
    await refusals((_, x) => x.part(0, 2).restore());
  });
});

const summed = task({
  name: 'summed',
  flows: { to: reduce('f64', 'sum', { partials: 2 }), from: read('f64') },
  params: { count: 'i32' },
  kernel: 'add_f64',
});

describe.each([2, 3, 4])('plans on %i ranks', (ranks) => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9])('random plan %i gives what runs give', async (seed) => {
    const machine = { lanes: 4 };
    await onRanks({ ranks, seed, kernels: partKernels, machine }, async (runtime) => {
      const [length, count] = [12, 15];
      const make = (name: string): Datum<'f64'>[] =>
        [0, 1].map((i) =>
          runtime.data(new Float64Array(length).fill(1), { rank: i % ranks, name }),
        );
      const program = (wholes: readonly Datum<'f64'>[], graph: Pick<Graph, 'insert'>): void => {
        const next = random(seed);
        const below = (n: number): number => Math.floor(next() * n);
        const views = wholes.map((x) => [
          x,
          x.part(0, 6),
          x.part(6, 6),
          x.part(3, 5),
          x.part(10, 1),
        ]);
        for (let i = 0; i < count; i++) {
          const which = below(2);
          const [to, from] = [views[which][below(5)], views[1 - which][below(5)]];
          const rank = below(ranks);
          if (below(3) === 0)
            graph.insert(fill, { to, count: to.length, value: below(9) }, { rank });
          else if (seed > 3 && below(2) === 0)
            for (let k = 0; k < 4; k++) {
              const [on, of] = [views[which][below(5)], views[1 - which][below(5)]];
              const args = { to: on, from: of, count: Math.min(on.length, of.length) };
              graph.insert(summed, args, { rank: below(ranks) });
            }
          else graph.insert(add, { to, from, count: Math.min(to.length, from.length) }, { rank });
        }
      };
      const [planned, run] = [make('planned'), make('run')];
      const plan = await runtime.plan((graph) => program(planned, graph));
      const part = planned[0].part(2, 5);
      for (const times of [1, 3]) {
        for (const [datum, count] of [
          [part, 5],
          [run[0].part(2, 5), 5],
        ] as const)
          await runtime.run(
            (graph) => void graph.insert(fill, { to: datum, count, value: times }, { rank: 1 }),
          );
        await plan.run({ times });
        for (let k = 0; k < times; k++) await runtime.run((graph) => program(run, graph));
        expect([...(await part.read())]).toEqual([...(await run[0].part(2, 5).read())]);
        for (const [i, x] of planned.entries())
          expect([...(await x.read())]).toEqual([...(await run[i].read())]);
      }
      await nothingPinned(runtime);
    });
  });
});

/** What a read gives: the values, or the code of its error. */
interface Seen {
  readonly isSure: boolean;
  text: string;
}

/** Runs on data and their parts that fail on some rank, and calls that may not wait for their ends; what this rank has read. */
async function playFailures(runtime: Runtime, seed: number, rounds: number): Promise<Seen[]> {
  const { ranks } = runtime;
  const length = 12;
  const seen: Seen[] = [];
  const wholes = [0, 1].map((i) =>
    runtime.data(new Float64Array(length).fill(1), { rank: i % ranks, name: `whole-${i}` }),
  );
  const views = wholes.flatMap((x) => [x, x.part(0, 6), x.part(6, 6), x.part(3, 5), x.part(10, 1)]);
  const read = (datum: Datum<'f64'>, isSure: boolean): Promise<void> => {
    const one: Seen = { isSure, text: '' };
    seen.push(one);
    return datum.read().then(
      (values) => {
        one.text = `${datum.name}: ${[...values].join(' ')}`;
      },
      (error: { code: string }) => {
        one.text = error.code;
      },
    );
  };
  /** Ranks leave it at different tasks. */
  const program = (next: () => number, graph: Graph): void => {
    const below = (n: number): number => Math.floor(next() * n);
    const failsAt = below(30);
    for (let i = 0; i < 20; i++) {
      const [to, from] = [views[below(5)], views[5 + below(5)]];
      const rank = below(ranks);
      const count = Math.min(to.length, from.length);
      if (i === failsAt) graph.insert(fail, { of: to, code: 3 }, { rank });
      else if (below(3) === 0)
        graph.insert(fill, { to, count: to.length, value: below(9) }, { rank });
      else if (below(2) === 0) graph.insert(add, { to, from, count }, { rank });
      else graph.insert(add, { to: from, from: to, count }, { rank });
    }
  };
  for (let round = 0; round < rounds; round++) {
    const next = random(100 * seed + round);
    const below = (n: number): number => Math.floor(next() * n);
    const isHasty = below(3) === 0;
    const run = runtime.run((graph) => program(random(1000 * seed + round), graph));
    const ended = codeOf(run.done);
    const ends: Promise<unknown>[] = [];
    if (!isHasty) await soon(runtime, ended);
    for (let i = below(4); i > 0; i--) {
      const call = read(views[below(10)], !isHasty);
      if (isHasty) ends.push(call);
      else await soon(runtime, call);
    }
    const set = views[below(10)];
    ends.push(set.set(new Float64Array(set.length).fill(round)));
    await soon(runtime, Promise.all([ended, ...ends]));
    for (const [i, x] of wholes.entries()) {
      if (!isHasty) await soon(runtime, read(x, true));
      void x.set(new Float64Array(length).map((_, at) => 100 * i + at));
      for (const view of views.slice(5 * i, 5 * i + 5)) await soon(runtime, read(view, true));
    }
    expect([...(await soon(runtime, views[3].read()))]).toEqual([3, 4, 5, 6, 7]);
  }
  await nothingLeft(runtime, wholes);
  return seen;
}

async function agreeAfterFailures(ranks: number, seed: number): Promise<void> {
  const all = await onRanks({ ranks, seed, kernels: partKernels }, (runtime) =>
    playFailures(runtime, seed, 6),
  );
  for (const [i, { isSure, text }] of all[0].entries())
    for (const other of all.map((seen) => seen[i].text)) {
      const [fails, otherFails] = [text, other].map((each) => each.startsWith('ERR_'));
      if (!fails && !otherFails) expect(other).toBe(text);
      else if (isSure) expect([fails, i], `${text}, ${other}`).toEqual([otherFails, i]);
    }
}

describe.each([2, 3, 4])('failures on %i ranks', (ranks) => {
  it.each([1, 2, 3, 4])('%i leave all ranks with the same values', async (seed) => {
    await agreeAfterFailures(ranks, 10 * ranks + seed);
  });
});

describe('guards', () => {
  /**
   * A run fails before rank 1 inserts anything. Or (`isTorn`) rank 0 makes the next call before the run fails, and rank 1 after
   * that.
   */
  const afterFailure = async (isTorn: boolean): Promise<string> => {
    const all = await onRanks({ ranks: 2, seed: 3, kernels: partKernels }, async (runtime) => {
      const x = runtime.data(new Float64Array(8).fill(1), { name: 'x', rank: 1 });
      const to = runtime.data(new Float64Array(8), { rank: 1 });
      const scrap = runtime.data(new Float64Array(1));
      const part = x.part(0, 3);
      const isLate = runtime.rank === 1;
      const failed = runtime.run(async (graph) => {
        for (let i = 0; i < (isLate ? 500 : 0); i++) await setImmediate();
        if (!isTorn) graph.insert(fill, { to: part, count: 3, value: 2 }, { rank: 0 });
        graph.insert(fail, { of: scrap, code: 3 }, { rank: isTorn ? 1 : 0 });
      });
      const ended = codeOf(failed.done);
      if (isLate || !isTorn) await ended;
      if (isTorn) void part.set(Float64Array.of(5, 5, 5));
      await ended;
      const from = isTorn ? x : part;
      await runtime.run((graph) => void graph.insert(add, { to, from, count: 3 }));
      await runtime.run((graph) => void graph.insert(add, { to: x, from: to, count: 1 }));
      return [...(await part.read())].join(' ');
    });
    return all.join(', ');
  };

  test('with them all ranks know the same', async () => {
    expect(await afterFailure(false)).toBe('2 1 1, 2 1 1');
    expect(await afterFailure(true)).toBe('10 5 5, 10 5 5');
  });

  /** Rank 0 reads a part in the program of a run that fails, which rank 1 leaves before. Then both use its elements. */
  const afterPart = async (): Promise<string> => {
    const all = await onRanks({ ranks: 2, seed: 3, kernels: partKernels }, async (runtime) => {
      const x = runtime.data(new Float64Array(8).fill(1), { name: 'x', rank: 1 });
      const to = runtime.data(new Float64Array(8), { rank: 1 });
      const scrap = runtime.data(new Float64Array(1));
      const failed = runtime.run((graph) => {
        if (runtime.rank === 0) void x.part(1, 1);
        graph.insert(fail, { of: scrap, code: 3 });
      });
      await codeOf(failed.done);
      await runtime.run((graph) => {
        const [later, sooner] = [x.part(1, 5), x.part(0, 2)];
        graph.insert(fill, { to: later, count: 5, value: 2 });
        // Element 1 is copied by way of a part with this element only, for each of these tasks.
        graph.insert(add, { to, from: sooner, count: 2 });
        graph.insert(add, { to, from: x, count: 8 });
      });
      return [...(await to.read())].join(' ');
    });
    return all.join(', ');
  };

  test('with partUses a part that some ranks have made is no other', async () => {
    expect(await afterPart()).toBe('2 4 2 2 2 2 1 1, 2 4 2 2 2 2 1 1');
  });

  test('without partsBegin: the ranks disagree', async () => {
    setGuard('partsBegin', false);
    try {
      const message = await madeAtOtherTimes(0).catch((error: Error) => error.message);
      expect(message).toMatch(/the graphs differ/);
    } finally {
      setGuard('partsBegin', true);
    }
  });

  test('without partUses: the ranks disagree', async () => {
    setGuard('partUses', false);
    try {
      const message = await afterPart().catch((error: Error) => error.message);
      expect(message).toMatch(/the graphs differ/);
    } finally {
      setGuard('partUses', true);
    }
  });

  test.each([
    ['partEras', false],
    ['partsApart', true],
  ] as const)('without %s: the ranks disagree', async (guard, isTorn) => {
    setGuard(guard, false);
    try {
      const message = await afterFailure(isTorn).catch((error: Error) => error.message);
      expect(message).toMatch(/the graphs differ/);
    } finally {
      setGuard(guard, true);
    }
  });
});
