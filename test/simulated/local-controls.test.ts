// Control flows and `after` in pruned runs, on simulated ranks with several workers: tasks without common data run in their order.
import { afterEach, describe, expect, test } from 'vitest';
import '../support/removable-guards.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import {
  type Datum,
  type Graph,
  type HeadraceError,
  type ParameterisedGraph,
  parameterised,
  type Runtime,
  range,
  readWrite,
  task,
} from '../../index.js';
import { onRanks } from '../support/simulated-ranks.js';

const RANKS = 3;
const WIDTH = 4;
const classOf = (kernel: string) =>
  task({ name: kernel, flows: { x: readWrite('f64') }, params: { id: 'i32' }, kernel });
const [slow, fast] = ['slow', 'fast'].map(classOf);

/** Numbers of the tasks by rank: first the slow ones, then the gate, then the fast ones. */
const idOf = (r: number, place: number): number => 100 * r + place;

type Mistake = 'elsewhere' | 'unsent' | 'unexpected' | 'twice' | 'late';
interface Given {
  readonly data: readonly (readonly Datum<'f64'>[])[];
  readonly mistake?: Mistake;
}

/** On each rank a gate follows slow tasks, and fast tasks follow the gate. No two tasks have common data. */
const gates: ParameterisedGraph<Given> = parameterised('gates', (graph, { data, mistake }) => {
  const { before, gate, behind } = graph.declare({
    before: { runs: slow, indices: ['r', 'i'], controls: ['go'] },
    gate: { runs: fast, indices: ['r'], controls: ['come', 'go'] },
    behind: { runs: fast, indices: ['r', 'i'], controls: ['come'] },
  });
  const ranks = () => range(0, data.length);
  const columns = () => range(0, WIDTH);
  const flowOf = (at: (of: { readonly r: number; readonly i: number }) => Datum<'f64'>) => {
    return { x: { datum: at, from: at, to: at } };
  };
  const shift = mistake === 'elsewhere' ? 1 : 0;
  const next = (r: number): number => (r + shift) % data.length;
  const previous = (r: number): number => (r + data.length - shift) % data.length;
  graph.define(before, {
    ranges: { r: ranks, i: columns },
    on: ({ r }) => r,
    order: ({ r, i }) => idOf(r, (mistake === 'late' ? 50 : 0) + i),
    flows: flowOf(({ r, i }) => data[r][i]),
    controls: { go: { to: ({ r }) => mistake !== 'unsent' && gate.come({ r }) } },
    params: ({ r, i }) => ({ id: idOf(r, i) }),
  });
  graph.define(gate, {
    ranges: { r: ranks },
    on: ({ r }) => r,
    order: ({ r }) => idOf(r, WIDTH),
    flows: { x: flowOf(({ r }) => data[r][WIDTH]).x as never },
    controls: {
      come: {
        from: ({ r }) =>
          range(mistake === 'unexpected' ? 1 : 0, WIDTH).map((i) => [
            before.go({ r, i }),
            mistake === 'twice' && before.go({ r, i }),
          ]),
      },
      go: { to: ({ r }) => range(0, WIDTH).map((i) => behind.come({ r: next(r), i })) },
    },
    params: ({ r }) => ({ id: idOf(r, WIDTH) }),
  });
  graph.define(behind, {
    ranges: { r: ranks, i: columns },
    on: ({ r }) => r,
    order: ({ r, i }) => idOf(r, WIDTH + 1 + i),
    flows: flowOf(({ r, i }) => data[r][WIDTH + 1 + i]),
    controls: {
      come: { from: ({ r }) => gate.go({ r: previous(r) }) },
    },
    params: ({ r, i }) => ({ id: idOf(r, WIDTH + 1 + i) }),
  });
});

/** The same, inserted. */
function insertGates(graph: Graph, { data }: Given): void {
  for (const [r, own] of data.entries()) {
    if (graph.skips(own[0])) continue;
    const go = (cls: typeof slow, place: number, after: ReturnType<Graph['insert']>[]) =>
      graph.insert(cls, { x: own[place], id: idOf(r, place) }, { after });
    const all = [...range(0, WIDTH)].map((i) => go(slow, i, []));
    const gate = go(fast, WIDTH, all);
    for (const i of range(0, WIDTH)) go(fast, WIDTH + 1 + i, [gate]);
  }
}

/** Runs a program on ranks with three workers each; returns the numbers of its tasks in the order of their ends. */
async function endsOf(
  program: (runtime: Runtime, given: Given) => PromiseLike<unknown>,
  { seed = 1, checked = true }: { readonly seed?: number; readonly checked?: boolean } = {},
): Promise<number[]> {
  const ends: number[] = [];
  const note = ({ params: [id] }: { readonly params: readonly number[] }): number => {
    ends.push(id);
    return 0;
  };
  const machine = { workers: 3, kernels: { slow: 1e-4, fast: 1e-6, '*': 1e-6 } };
  await onRanks(
    {
      ranks: RANKS,
      seed,
      machine,
      kernels: { slow: note, fast: note },
      options: { workers: 3, checked },
    },
    async (runtime) => {
      const data = Array.from({ length: RANKS }, (_, rank) =>
        Array.from({ length: 2 * WIDTH + 1 }, () => runtime.data(Float64Array.of(0), { rank })),
      );
      await program(runtime, { data });
    },
  );
  return ends;
}

/** Tasks that ended before one that they follow. */
function early(ends: readonly number[]): number[] {
  const place = (id: number): number => ends.indexOf(id);
  return [...range(0, RANKS)].flatMap((r) => {
    const gate = place(idOf(r, WIDTH));
    return [...range(0, WIDTH)].flatMap((i) => [
      ...(place(idOf(r, i)) > gate ? [idOf(r, WIDTH)] : []),
      ...(place(idOf(r, WIDTH + 1 + i)) < gate ? [idOf(r, WIDTH + 1 + i)] : []),
    ]);
  });
}

const asGraph = (runtime: Runtime, given: Given) => {
  expect(gates.whyNotLocal(given)).toBeUndefined();
  expect(gates.verify(given).problems).toEqual([]);
  return runtime.run(gates, given, { pruned: true });
};
const inserted = (runtime: Runtime, given: Given) =>
  runtime.run((graph) => insertGates(graph, given), { pruned: true });
const programs = {
  'a graph whose ranks look at their own tasks': asGraph,
  'inserted tasks': inserted,
};

describe.each(Object.entries(programs))('%s', (_, program) => {
  afterEach(() => setGuard('prunedAfter', true));

  test('follow tasks without common data', async () => {
    for (const seed of [1, 2, 3]) {
      const ends = await endsOf(program, { seed, checked: seed > 1 });
      expect(ends.length).toBe(RANKS * (2 * WIDTH + 1));
      expect(early(ends)).toEqual([]);
    }
  });

  test('without prunedAfter: tasks run before those that they follow', async () => {
    setGuard('prunedAfter', false);
    expect(early(await endsOf(program))).not.toEqual([]);
  });
});

describe('a mistake is found', () => {
  const codes = {
    elsewhere: 'ERR_AFTER_ELSEWHERE',
    unsent: 'ERR_GRAPH_EDGE',
    unexpected: 'ERR_GRAPH_EDGE',
    twice: 'ERR_GRAPH_EDGE',
    late: 'ERR_GRAPH_ORDER',
  } as const;
  const cases = Object.entries(codes).flatMap(([mistake, code]) =>
    [true, false].map((checked) => [mistake as Mistake, code, checked] as const),
  );
  test.each(cases)('%s: %s, checked: %s', async (mistake, code, checked) => {
    const found = new Set<string>();
    const program = async (runtime: Runtime, { data }: Given): Promise<void> => {
      const run = runtime.run(gates, { data, mistake }, { pruned: true });
      await run.done.catch((error: HeadraceError) => found.add(error.code));
    };
    await endsOf(program, { checked });
    expect([...found]).toContain(code);
  });
});
