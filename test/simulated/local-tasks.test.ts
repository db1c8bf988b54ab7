// Parameterised graphs of which a rank looks at its own tasks only, on simulated ranks with disturbed clocks: the results of one rank.
import { afterEach, describe, expect, test, vi } from 'vitest';
import '../support/removable-guards.js';
import {
  choleskyGraph,
  gemmGraph,
  luGraph,
  stencil2dGraph,
  stencilGraph,
  triangularSolveGraph,
} from '../../algorithms/index.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { Random } from '../../devices/simulated/machine/random.js';
import { World } from '../../devices/simulated/machine/world.js';
import {
  type BlockCyclic,
  type Datum,
  type Graph,
  type HeadraceError,
  list,
  type ParameterisedGraph,
  parameterised,
  Runtime,
  range,
  read,
  TiledMatrix,
  task,
  write,
} from '../../index.js';
import { LocalRank } from '../../scheduler/ranks/local-rank.js';
import { seenOnRanks, settledOnRanks } from '../support/dataflow-ranks.js';
import {
  dataOf,
  localDifferences,
  localGraph,
  localProgram,
  type Planted,
} from '../support/local-programs.js';
import { RecordingPort } from '../support/recording-port.js';
import { rankMachine } from '../support/simulated-ranks.js';
import { random } from '../support/tasks.js';

/** A matrix of tiles of one element, with `n` more on the diagonal. */
function matrix(
  runtime: Runtime,
  [rows, columns]: readonly [number, number],
  seed: number,
  rankGrid?: BlockCyclic,
): TiledMatrix<'f64'> {
  const options = { rows, columns, tile: 1, name: `m${seed}` };
  const given = rankGrid === undefined ? options : { ...options, rankGrid };
  return new TiledMatrix(runtime, 'f64', given, (values, i, j) => {
    const symmetric = random(seed + Math.max(i, j) * 1000 + Math.min(i, j))();
    values[0] = symmetric + (i === j ? rows : 0);
  });
}

/** The results of the algorithms, one after the other. */
async function algorithms(runtime: Runtime, pruned: boolean): Promise<number[][]> {
  const n = 7;
  const { ranks } = runtime;
  const [A, B, C] = [
    matrix(runtime, [n, n], 1),
    matrix(runtime, [n, 4], 2),
    matrix(runtime, [n, 4], 3),
  ];
  const rankGrid = { rows: 1, columns: ranks, blockColumns: 2, originColumn: 1 };
  const F = matrix(runtime, [n, n], 4, rankGrid);
  const U = matrix(runtime, [5, 6], 5);
  const V = matrix(runtime, [5, 6], 6, { rows: ranks, columns: 1, blockRows: 2 });
  const beyond = runtime.data(Float64Array.of(0.5), { rank: ranks - 1 });
  const blocks = [0, 1, 2, 3, 4].map((b) =>
    runtime.data(Float64Array.of(b, 2), { rank: b % ranks }),
  );
  const scratch = blocks.map((_, b) => runtime.data('f64', 2, { rank: (2 * b) % ranks }));
  const weights = runtime.data(Float64Array.of(0.25, 0.5, 0.125), { rank: ranks - 1 });
  const middle = { middle: 0.4, up: 0.3, down: -0.2, left: 0.7, right: 0.1 };
  const runs = [
    [gemmGraph, { A, B, C }],
    [choleskyGraph, { A }],
    [triangularSolveGraph, { A, B: C }],
    [luGraph, { A: F }],
    [triangularSolveGraph, { A: F, B }],
    [stencil2dGraph, { U, V, weights: middle, beyond, steps: 5 }],
    [stencil2dGraph, { U: V, V: U, weights: middle, beyond, steps: 2 }],
    [stencilGraph, { blocks, scratch, weights, beyond, steps: 5 }],
  ] as const;
  for (const [graph, given] of runs) {
    expect(graph.whyNotLocal(given as never)).toBeUndefined();
    await runtime.run(graph as typeof gemmGraph, given as never, { pruned });
  }
  const results: number[][] = [];
  for (const m of [A, B, C, F, U, V]) results.push([...(await m.read())]);
  for (const datum of scratch) results.push([...(await datum.read())]);
  return results;
}

const RUNS = ['local', 'inserted', 'local', 'all', 'local', 'local', 'inserted'] as const;

/** What differs on any rank. */
async function wrongOf(ranks: number, seed: number, checked: boolean): Promise<string[]> {
  const program = localProgram(new Random(seed));
  const seen = await seenOnRanks({ ranks, seed, checked }, (runtime) =>
    localDifferences(runtime, program, RUNS, new Random(seed)),
  );
  return seen.flat();
}

describe.each([2, 3, 4, 6])('%i ranks', (ranks) => {
  test.each([0, 2])('algorithms have the bits of one rank, %i GPUs', async (gpus) => {
    const [expected] = await seenOnRanks({ ranks: 1, seed: 0 }, (runtime) =>
      algorithms(runtime, false),
    );
    for (const checked of [true, false])
      for (const seen of await seenOnRanks(
        { ranks, seed: ranks + gpus, gpus, checked },
        (runtime) => algorithms(runtime, true),
      ))
        expect(seen).toEqual(expected);
  });

  test('random programs leave what their tasks do one after the other', async () => {
    for (let seed = 1; seed <= 12; seed++) {
      const early = vi.spyOn(LocalRank.prototype, 'mayPlanEarly', 'get');
      if (seed % 2 === 0) early.mockReturnValue(false);
      expect(await wrongOf(ranks, seed, seed % 3 > 0), `seed ${seed}`).toEqual([]);
      early.mockRestore();
    }
  });
});

test.each([2, 3, 4])(
  'a task that fails on one of %i ranks fails the run on all, and later programs are right',
  async (ranks) => {
    for (let seed = 1; seed <= 10; seed++) {
      const failing = localProgram(new Random(seed));
      failing.nodes[seed % failing.nodes.length].plus = -1;
      const seen = await seenOnRanks({ ranks, seed, checked: seed % 2 > 0 }, async (runtime) => {
        const { data } = dataOf(failing, runtime);
        const run = runtime.run(localGraph(failing, ranks), data, { pruned: true });
        const code = await run.done.then(
          () => 'none',
          (error: HeadraceError) => error.code,
        );
        const program = localProgram(new Random(seed + 100));
        const wrong = await localDifferences(runtime, program, RUNS, new Random(seed));
        return { code, wrong };
      });
      const codes = seen.map(({ code }) => code);
      expect(codes, `seed ${seed}`).toContain('ERR_TASK_FAILED');
      for (const { code, wrong } of seen) {
        expect(['ERR_TASK_FAILED', 'ERR_PEER_FAILED'], `seed ${seed}`).toContain(code);
        expect(wrong, `seed ${seed}`).toEqual([]);
      }
    }
  },
);

test('ownRows and ownColumns are the lines in which a rank owns tiles', async () => {
  const random = new Random(7);
  for (let n = 0; n < 30; n++) {
    const rankGrid = {
      ...{ rows: 1 + random.below(3), columns: 1 + random.below(2) },
      ...{ originRow: random.below(4), originColumn: random.below(4) },
      ...{ blockRows: 1 + random.below(3), blockColumns: 1 + random.below(3) },
    };
    await seenOnRanks({ ranks: 6, seed: n }, async (runtime) => {
      const A = new TiledMatrix(runtime, 'f64', { rows: 11, columns: 9, tile: 1, rankGrid });
      const rows = range(random.below(5), random.below(12));
      const columns = range(random.below(5), random.below(10));
      for (let rank = 0; rank < 6; rank++) {
        const own = [...rows].filter((i) =>
          [...Array(9).keys()].some((j) => A.rankOf(i, j) === rank),
        );
        expect([...A.ownRows(rank, rows)]).toEqual(own);
        const mine = [...columns].filter((j) =>
          [...Array(11).keys()].some((i) => A.rankOf(i, j) === rank),
        );
        expect([...A.ownColumns(rank, columns)]).toEqual(mine);
      }
    });
  }
});

/** What a rank among many inserts, and how often it asks for tiles and their owners, for the same share of a stencil. */
async function workAmong(
  side: number,
): Promise<{ readonly tasks: number; readonly calls: number }> {
  const backend = new SimulatedBackend({ machine: rankMachine, world: new World() });
  const port = new RecordingPort({ size: side * side });
  const runtime = Runtime.over(backend, { workers: 1, window: 4096 }, port);
  const rankGrid = { rows: side, columns: side, blockRows: 2, blockColumns: 2 };
  const [U, V] = ['U', 'V'].map(
    (name) =>
      new TiledMatrix(runtime, 'f64', { rows: 8 * side, tile: 4, rankGrid, name }, () => {}),
  );
  const beyond = runtime.data(new Float64Array(64));
  const weights = { middle: 1, up: 1, down: 1, left: 1, right: 1 };
  const spies = (['at', 'rankOf'] as const).map((name) => vi.spyOn(TiledMatrix.prototype, name));
  let tasks = 0;
  const run = runtime.run(
    (graph) => {
      tasks = stencil2dGraph.insertInto(graph, { U, V, weights, beyond, steps: 9 });
    },
    { pruned: true },
  );
  // Nobody answers: it does not end.
  void run.done.catch(() => {});
  const calls = spies.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  for (const spy of spies) spy.mockRestore();
  return { tasks, calls };
}

test('a rank in the corner does the same among 9 ranks and among 1024', async () => {
  const few = await workAmong(3);
  expect(few.tasks).toBe(9 * 4);
  const many = await workAmong(32);
  expect(many.tasks).toBe(few.tasks);
  // The sample of tasks that says whether versions go along trees differs a little.
  expect(Math.abs(many.calls - few.calls)).toBeLessThan(5);
});

/** Movements of the first of 64 ranks by role, all of them inserted. */
function movementsOf(insert: (graph: Graph, runtime: Runtime) => void): Record<string, number> {
  const backend = new SimulatedBackend({ machine: rankMachine, world: new World() });
  const port = new RecordingPort({ size: 64 });
  const runtime = Runtime.over(backend, { workers: 1, window: 4096 }, port);
  const { tasks, x } = runtime.engine;
  const run = runtime.run((graph) => insert(graph, runtime), { pruned: true });
  // Nobody answers: it does not end.
  void run.done.catch(() => {});
  const counts: Record<string, number> = { send: 0, receive: 0, forward: 0 };
  for (let task = 0; task < tasks.next; task++) {
    const { name } = x.classes[tasks.classOf[task & tasks.mask]];
    if (name in counts) counts[name]++;
  }
  return counts;
}

describe('a version goes along a tree', () => {
  test('not in a stencil: a rank has no forwards for what its neighbours send', () => {
    const { send, receive, forward } = movementsOf((graph, runtime) => {
      const rankGrid = { rows: 8, columns: 8, blockRows: 2, blockColumns: 2 };
      const given = { rows: 16 * 64, tile: 64, rankGrid };
      const [U, V] = ['U', 'V'].map(
        (name) => new TiledMatrix(runtime, 'f64', { ...given, name }, () => {}),
      );
      const beyond = runtime.data(new Float64Array(64));
      const weights = { middle: 1, up: 1, down: 1, left: 1, right: 1 };
      stencil2dGraph.insertInto(graph, { U, V, weights, beyond, steps: 9 });
    });
    expect(send).toBeGreaterThan(20);
    // Those of the data from before the graph may be passed on.
    expect(forward).toBeLessThan(receive / 4);
  });

  test('in a Cholesky factorisation: a rank has a forward for each receive', () => {
    const { receive, forward } = movementsOf((graph, runtime) => {
      // Tiles of 32 KiB: the message layer itself passes short versions on.
      const given = { rows: 64 * 64, tile: 64, lower: true };
      const A = new TiledMatrix(runtime, 'f64', given, () => {});
      choleskyGraph.insertInto(graph, { A });
    });
    expect(receive).toBeGreaterThan(100);
    expect(forward).toBe(receive);
  });
});

describe('guards', () => {
  afterEach(() => setGuard('localCopies', true));

  test('without localCopies: random programs leave old values, or stand still', async () => {
    setGuard('localCopies', false);
    let noticed = '';
    for (let seed = 1; seed <= 30 && noticed === ''; seed++) {
      try {
        noticed = (await wrongOf(3, seed, true)).join();
      } catch (error) {
        noticed = String(error);
      }
    }
    expect(noticed).not.toBe('');
  });
});

const sumOfAll = task({
  name: 'sum of all',
  flows: { to: write('f64'), parts: list(read('f64')) },
  body: ({ to, parts }) => {
    to[0] = parts.reduce((sum, [part]) => 10 * sum + part, 0);
  },
});

interface Parts {
  readonly parts: readonly Datum<'f64'>[];
  readonly results: readonly Datum<'f64'>[];
  readonly isMute?: boolean;
  readonly isSingle?: boolean;
}

/** Every result is the sum of all parts, as they were before the graph. */
const sums: ParameterisedGraph<Parts> = parameterised(
  'sums',
  (graph, { parts, results, isMute = false, isSingle = false }) => {
    const { sum } = graph.declare({ sum: { runs: sumOfAll, indices: ['i'] } });
    graph.inputs({
      indices: ['p'],
      ranges: { p: () => range(0, isMute ? 0 : parts.length) },
      on: ({ p }) => parts[p],
      datum: ({ p }) => parts[p],
      to: () => results.map((_, i) => sum.parts({ i })),
    });
    graph.define(sum, {
      ranges: { i: () => range(0, results.length) },
      on: ({ i }) => results[i],
      order: ({ i }) => i,
      flows: {
        to: {
          datum: ({ i }) => results[i],
          from: ({ i }) => results[i],
          to: ({ i }) => results[i],
        },
        parts: { from: () => (isSingle ? (parts[0] as never) : parts) },
      },
    });
  },
);

describe('a list', () => {
  const onThree = <T>(program: (runtime: Runtime, given: Parts) => Promise<T>): Promise<T[]> =>
    seenOnRanks({ ranks: 3, seed: 1 }, (runtime) => {
      const ranks = [0, 1, 2];
      const parts = [2, 0, 1].map((rank, p) => runtime.data(Float64Array.of(p + 1), { rank }));
      const results = ranks.map((rank) => runtime.data('f64', 1, { rank }));
      return program(runtime, { parts, results });
    });

  test('reads data of other ranks', async () => {
    const seen = await onThree(async (runtime, given) => {
      expect(sums.whyNotLocal(given)).toBeUndefined();
      expect(sums.verify(given).problems).toEqual([]);
      await runtime.run(sums, given, { pruned: true });
      return Promise.all(given.results.map(async (one) => (await one.read())[0]));
    });
    expect(seen).toEqual(new Array(3).fill([123, 123, 123]));
  });

  test('of data that nobody sends is a mistake, and so is one that is no array', async () => {
    const seen = await onThree(async (runtime, given) => {
      const kinds = sums.verify({ ...given, isMute: true }).problems.map(({ kind }) => kind);
      const codes: unknown[] = [];
      for (const planted of [{ isMute: true }, { isSingle: true }]) {
        const run = runtime.run(sums, { ...given, ...planted }, { pruned: true });
        await run.done.catch((error: HeadraceError) => codes.push(error.code));
      }
      return { kinds, codes };
    });
    for (const { kinds } of seen) expect(new Set(kinds)).toEqual(new Set(['datum']));
    const codes = seen.flatMap((one) => one.codes);
    expect(codes).toContain('ERR_GRAPH_LOCAL');
    expect(codes).toContain('ERR_GRAPH_EDGE');
  });

  test('goes into a datum whose value its owner has: another rank may have written it before', async () => {
    const seen = await onThree(async (runtime, given) => {
      const { parts, results } = given;
      await runtime.run((graph) => {
        graph.insert(sumOfAll, { to: results[0], parts }, { rank: 1 });
      });
      const codes: unknown[] = [sums.whyNotLocal(given)];
      const run = runtime.run(sums, given, { pruned: true });
      await run.done.catch((error: HeadraceError) => codes.push(error.code));
      await results[0].set(Float64Array.of(0));
      await runtime.run(sums, given, { pruned: true });
      return { codes, value: (await results[0].read())[0] };
    });
    expect(seen[0].codes).toEqual([undefined, 'ERR_GRAPH_LOCAL']);
    expect(seen.map(({ value }) => value)).toEqual([123, 123, 123]);
  });
});

test.each([7, -1, 0.5])(
  'a task of rank %s, which does not exist, is refused, not left out',
  async (wrong) => {
    const make = task({ name: 'make', flows: { x: write('f64') }, body: () => {} });
    const settled = await settledOnRanks({ ranks: 2, seed: 1, checked: false }, async (runtime) => {
      const x = [0, 1, 0].map((rank) => runtime.data('f64', 1, { rank }));
      const at = ({ i }: { readonly i: number }) => x[i];
      const astray = parameterised('astray', (graph) => {
        const { p } = graph.declare({ p: { runs: make, indices: ['i'] } });
        graph.define(p, {
          ranges: { i: () => range(0, 3) },
          order: ({ i }) => i,
          on: ({ i }) => (i === 2 ? wrong : i),
          flows: { x: { from: at, to: at, datum: at } },
        });
      });
      return runtime.run(astray, undefined, { pruned: true }).done.then(
        () => 'none',
        ({ code }: HeadraceError) => code,
      );
    });
    const codes = settled.map((one) => (one.status === 'fulfilled' ? one.value : 'thrown'));
    expect(codes).toContain('ERR_NO_RANK');
    for (const code of codes) expect(['ERR_NO_RANK', 'ERR_PEER_FAILED']).toContain(code);
  },
);

/** The error of each rank; fails unless there is one. */
async function errorsOf(
  planted: Planted,
  { checked = true, seed = 3 }: { readonly checked?: boolean; readonly seed?: number } = {},
): Promise<string[]> {
  const program = localProgram(new Random(seed));
  const settled = await settledOnRanks({ ranks: 3, seed, checked }, async (runtime) => {
    const graph = localGraph(program, runtime.ranks, planted);
    const { data } = dataOf(program, runtime);
    const kinds = new Set(graph.verify(data).problems.map(({ kind }) => kind));
    const error = await runtime.run(graph, data, { pruned: true }).done.then(
      () => undefined,
      (one: HeadraceError) => one,
    );
    return [...kinds, error?.code];
  });
  return settled.flatMap((one) => (one.status === 'fulfilled' ? one.value.map(String) : []));
}

describe('mistakes that verify finds, and a checked run', () => {
  test('an order that does not put the sender first', async () => {
    const { nodes } = localProgram(new Random(3));
    const late = nodes.findIndex(({ from }) =>
      Object.values(from).some((end) => typeof end !== 'number'),
    );
    const wrong = await errorsOf({ order: (position, node) => (node === late ? -1 : position) });
    expect(wrong).toContain('order');
    expect(wrong).toContain('ERR_GRAPH_ORDER');
  });

  test('one position for two tasks', async () => {
    const wrong = await errorsOf({ order: (position) => position >> 3 });
    expect(wrong).toContain('order');
    expect(wrong).toContain('ERR_GRAPH_ORDER');
  });

  test('positions that are no numbers', async () => {
    const wrong = await errorsOf({ order: () => Number.NaN });
    expect(wrong).toContain('order');
    expect(wrong).toContain('ERR_GRAPH_ORDER');
  });

  test('a share without a task of the rank', async () => {
    const wrong = await errorsOf({ own: (_, own) => own.slice(1) });
    expect(wrong).toContain('own');
    expect(wrong.some((code) => code === 'ERR_GRAPH_LOCAL' || code === 'ERR_GRAPH_VERSION')).toBe(
      true,
    );
  });

  test('data that nobody sends', async () => {
    const wrong = await errorsOf({ isMute: true });
    expect(wrong).toContain('datum');
    expect(wrong).toContain('ERR_GRAPH_LOCAL');
  });

  test('a flow in another datum', async () => {
    const wrong = await errorsOf({ datum: (d, node) => (node === 4 ? (d + 1) % 3 : d) });
    expect(wrong).toContain('datum');
    expect(wrong).toContain('ERR_GRAPH_LOCAL');
  });
});
