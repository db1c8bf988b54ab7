// Parameterised graphs on simulated ranks with disturbed clocks: the results of one rank, pruned and not, with temporaries, with writers
// on other ranks than the owner, and random layered graphs against brute force.
import { afterEach, describe, expect, test } from 'vitest';
import '../support/removable-guards.js';
import { reduceGraph, stencilGraph } from '../../algorithms/index.js';
import { differencesOnRanks } from '../../devices/simulated/cases/random-graphs.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import {
  type Datum,
  list,
  type ParameterisedGraph,
  parameterised,
  type Runtime,
  range,
  read,
  task,
  temporary,
  write,
} from '../../index.js';
import { onRanks as onSimulated } from '../support/simulated-ranks.js';
import { random } from '../support/tasks.js';

/** What each rank sees. */
const onRanks = <T>(
  ranks: number,
  seed: number,
  program: (runtime: Runtime) => Promise<T>,
): Promise<T[]> => onSimulated({ ranks, seed }, program);

async function stencilOn(runtime: Runtime, pruned: boolean): Promise<number[][]> {
  const next = random(3);
  const lengths = [4, 5, 3, 6, 4, 3];
  const rank = (b: number): number => b % runtime.ranks;
  const blocks = lengths.map((n, b) =>
    runtime.data(Float64Array.from({ length: n }, next), { rank: rank(b) }),
  );
  const scratch = lengths.map((n, b) => runtime.data('f64', n, { rank: rank(b) }));
  const weights = runtime.data(Float64Array.of(0.2, 0.5, 0.3));
  const beyond = runtime.data(new Float64Array(1));
  const given = { blocks, scratch, weights, beyond, steps: 9 };
  await runtime.run(stencilGraph, given, { pruned });
  return (await Promise.all(scratch.map((d) => d.read()))).map((values) => [...values]);
}

async function reductionOn(runtime: Runtime, pruned: boolean): Promise<number[]> {
  const next = random(5);
  const inputs = Array.from({ length: 11 }, (_, i) =>
    runtime.data(Float64Array.of(next() * 1e9, next()), { rank: i % runtime.ranks }),
  );
  const result = runtime.data('f64', 2, { rank: runtime.ranks - 1 });
  for (let n = 0; n < 3; n++)
    await runtime.run(reduceGraph, { inputs, result, operation: 'sum' }, { pruned });
  return [...(await result.read())];
}

describe.each([2, 3, 4])('%i ranks', (ranks) => {
  test.each([false, true])('stencil and reduction, pruned: %s', async (pruned) => {
    const [blocks] = await onRanks(1, 0, (runtime) => stencilOn(runtime, false));
    const [sum] = await onRanks(1, 0, (runtime) => reductionOn(runtime, false));
    for (let seed = 1; seed <= 3; seed++) {
      for (const seen of await onRanks(ranks, seed, (runtime) => stencilOn(runtime, pruned)))
        expect(seen).toEqual(blocks);
      for (const seen of await onRanks(ranks, seed, (runtime) => reductionOn(runtime, pruned)))
        expect(seen).toEqual(sum);
    }
  });
});

const mix = task({
  name: 'mix',
  flows: { to: write('f64'), from: list(read('f64')) },
  params: { seed: 'i32' },
  body: ({ to, from, seed }) => {
    to[0] = from.reduce((all, [x]) => (all * 31 + x) % 1_000_003, seed);
  },
});

/** A graph of layers: task (t, i) takes some outputs of the layer before, and writes a temporary or the datum of two layers before. */
interface Layers {
  readonly depth: number;
  readonly width: number;
  readonly inputs: readonly (readonly (readonly number[])[])[];
  /** Whether column i overwrites two data in turn. */
  readonly isKept: readonly boolean[];
  /** Rank of each task, modulo the number of ranks. */
  readonly at: readonly (readonly number[])[];
}

function layersOf(seed: number): Layers {
  const next = random(seed);
  const draw = (n: number): number => Math.floor(next() * n);
  const [depth, width] = [2 + draw(6), 1 + draw(6)];
  const layer = <T>(make: (t: number, i: number) => T): T[][] =>
    Array.from({ length: depth }, (_, t) => Array.from({ length: width }, (_, i) => make(t, i)));
  const isKept = Array.from({ length: width }, () => draw(2) === 0);
  const inputs = layer((t) =>
    t === 0 ? [] : Array.from({ length: width }, (_, j) => j).filter(() => draw(2) === 0),
  );
  return { depth, width, isKept, inputs, at: layer(() => draw(100)) };
}

interface Given {
  readonly layers: Layers;
  readonly kept: readonly (readonly Datum<'f64'>[])[];
  readonly results: readonly Datum<'f64'>[];
  readonly ranks: number;
}

const layered: ParameterisedGraph<Given> = parameterised(
  'layers',
  (graph, { layers: { depth, width, inputs, isKept, at }, kept, results, ranks }) => {
    const { cell, last } = graph.declare({
      last: { runs: mix, indices: ['i'] },
      cell: { runs: mix, indices: ['t', 'i'] },
    });
    const takers = (t: number, i: number): number[] =>
      t + 1 < depth ? inputs[t + 1].flatMap((from, j) => (from.includes(i) ? [j] : [])) : [];
    graph.define(cell, {
      ranges: { t: () => range(0, depth), i: () => range(0, width) },
      on: ({ t, i }) => at[t][i] % ranks,
      flows: {
        to: {
          from: ({ t, i }) => {
            if (!isKept[i]) return temporary('f64', 1);
            return t < 2 ? kept[t][i] : cell.to({ t: t - 2, i });
          },
          to: ({ t, i }) => [
            isKept[i] && t + 2 < depth && cell.to({ t: t + 2, i }),
            takers(t, i).map((j) => cell.from({ t: t + 1, i: j })),
            t + 1 === depth && last.from({ i }),
          ],
        },
        from: { from: ({ t, i }) => inputs[t][i].map((j) => cell.to({ t: t - 1, i: j })) },
      },
      params: ({ t, i }) => ({ seed: 7 * t + i }),
    });
    graph.define(last, {
      ranges: { i: () => range(0, width) },
      starts: { i: () => range(0, 0) },
      on: ({ i }) => results[i],
      flows: {
        to: { from: ({ i }) => results[i], to: ({ i }) => results[i] },
        from: { from: ({ i }) => [cell.to({ t: depth - 1, i })] },
      },
      params: () => ({ seed: 1 }),
    });
  },
);

/** The results, computed layer by layer. */
function bruteForce({ depth, width, inputs }: Layers): number[] {
  const combined = (seed: number, from: readonly number[]): number =>
    from.reduce((all, x) => (all * 31 + x) % 1_000_003, seed);
  let values: number[] = [];
  for (let t = 0; t < depth; t++) {
    const before = values;
    values = Array.from({ length: width }, (_, i) =>
      combined(
        7 * t + i,
        inputs[t][i].map((j) => before[j]),
      ),
    );
  }
  return values.map((value) => combined(1, [value]));
}

async function layersOn(runtime: Runtime, layers: Layers, pruned: boolean): Promise<number[]> {
  const { width } = layers;
  const { ranks } = runtime;
  const make = (what: string) =>
    Array.from({ length: width }, (_, i) =>
      runtime.data('f64', 1, { name: `${what} ${i}`, rank: (3 * i) % ranks }),
    );
  const [kept, results] = [[make('even'), make('odd')], make('result')];
  await runtime.run(layered, { layers, kept, results, ranks }, { pruned });
  return (await Promise.all(results.map((d) => d.read()))).map(([value]) => value);
}

/** Every rank has a copy of some of the data between the runs. */
const differences = (runtime: Runtime, seed: number): Promise<string[]> =>
  differencesOnRanks(runtime, seed, [true, false, true, true], (r) => r.below(3) > 0);

describe.each([1, 2, 3, 4])('%i ranks', (ranks) => {
  test('random graphs leave on all ranks what their tasks do one after the other', async () => {
    for (let seed = 1; seed <= 12; seed++) {
      const seen = await onRanks(ranks, seed, (runtime) => differences(runtime, seed));
      for (const wrong of seen) expect(wrong, `seed ${seed}`).toEqual([]);
    }
  });

  test.each([false, true])(
    'random layers give what brute force gives, pruned: %s',
    async (pruned) => {
      for (let seed = 1; seed <= 8; seed++) {
        const layers = layersOf(seed);
        const seen = await onRanks(ranks, seed, (runtime) => layersOn(runtime, layers, pruned));
        for (const values of seen) expect(values, `seed ${seed}`).toEqual(bruteForce(layers));
      }
    },
  );
});

interface Overwriting {
  readonly x: Datum<'f64'>;
  readonly y: Datum<'f64'>;
}

/** x := 5; y := x, on the rank of y; x := 7, which no task takes. */
const overwriting: ParameterisedGraph<Overwriting> = parameterised(
  'overwriting',
  (graph, { x, y }) => {
    const { first, reader, second } = graph.declare({
      first: { runs: mix, indices: [] },
      reader: { runs: mix, indices: [] },
      second: { runs: mix, indices: [] },
    });
    const none = { from: () => [] };
    graph.define(first, {
      ranges: {},
      on: () => x,
      flows: { to: { from: () => x, to: () => [reader.from({}), second.to({})] }, from: none },
      params: () => ({ seed: 5 }),
    });
    graph.define(reader, {
      ranges: {},
      on: () => y,
      flows: { to: { from: () => y, to: () => y }, from: { from: () => [first.to({})] } },
      params: () => ({ seed: 0 }),
    });
    graph.define(second, {
      ranges: {},
      on: () => x,
      flows: { to: { from: () => first.to({}), to: () => x }, from: none },
      params: () => ({ seed: 7 }),
    });
  },
);

test.each([false, true])(
  'a rank that has read a version knows that another rank has overwritten it, pruned: %s',
  async (pruned) => {
    for (let seed = 1; seed <= 3; seed++) {
      const seen = await onRanks(2, seed, async (runtime) => {
        const [x, y] = [0, 1].map((rank) => runtime.data('f64', 1, { rank }));
        await runtime.run(overwriting, { x, y }, { pruned });
        return [...(await x.read()), ...(await y.read())];
      });
      expect(seen).toEqual([
        [7, 5],
        [7, 5],
      ]);
    }
  },
);

describe('guards of pruned graphs', () => {
  const guards = ['prunedSends', 'prunedCopies', 'prunedLast'] as const;
  afterEach(() => {
    for (const guard of guards) setGuard(guard, true);
  });

  test.each(guards)('without %s: random graphs leave old values, or stand still', async (guard) => {
    setGuard(guard, false);
    let noticed = '';
    for (let seed = 1; seed <= 30 && noticed === ''; seed++) {
      try {
        const seen = await onRanks(3, seed, (runtime) => differences(runtime, seed));
        noticed = seen.flat().join();
      } catch (error) {
        noticed = String(error);
      }
    }
    expect(noticed).not.toBe('');
  });
});
