// Random programs of tasks that run where the data are owned that they write, as parameterised graphs with an order: a rank may start
// with its own tasks.
import type { Random } from '../../devices/simulated/machine/random.js';
import {
  commute,
  type Datum,
  type Flow,
  type ParameterisedGraph,
  parameterised,
  type Runtime,
  range,
  read,
  readWrite,
  task,
  write,
} from '../../index.js';

const MODULUS = 1_000_003;
/** Elements of datum `d`: some data travel in their announcement, others do not. */
const lengthOf = (d: number): number => (d % 2 === 0 ? 3 : 9);

interface Arrays {
  readonly x?: Float64Array;
  readonly y?: Float64Array;
  readonly to?: Float64Array;
  readonly sum?: Float64Array;
  readonly a?: Readonly<Float64Array>;
  readonly b?: Readonly<Float64Array>;
  readonly plus: number;
}

/** When the body of each node ran last, in turns of all bodies: by a number of the program and the node. */
const turns: Map<number, number> = new Map();
let turn = 0;
/** More than the nodes of a program. */
const NODES = 1000;

function compute({ x, y, to, sum, a, b, plus }: Arrays): void {
  if (plus < 0) throw new Error('as asked for');
  const all = (i: number): number => plus + i + (a?.[i] ?? 0) + 3 * (b?.[i] ?? 0);
  for (const i of to?.keys() ?? []) (to as Float64Array)[i] = all(i) % MODULUS;
  x?.forEach((value, i) => {
    x[i] = (5 * value + all(i)) % MODULUS;
  });
  y?.forEach((value, i) => {
    y[i] = (7 * value + all(i) + (x?.[i] ?? 0)) % MODULUS;
  });
  sum?.forEach((value, i) => {
    sum[i] = (value + all(i)) % MODULUS;
  });
}

type Shape = 'one' | 'two' | 'pair' | 'fresh' | 'commutes';
const r = read('f64');
const rw = readWrite('f64');
const SHAPES: Readonly<Record<Shape, Readonly<Record<string, Flow<'f64'>>>>> = {
  one: { x: rw, a: r },
  two: { x: rw, a: r, b: r },
  pair: { x: rw, y: rw, a: r },
  fresh: { to: write('f64'), a: r, b: r },
  commutes: { sum: commute('f64'), a: r },
};
const NAMES = Object.keys(SHAPES) as Shape[];
const classesOf = (fetch: 'push' | 'pull'): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    NAMES.map((name) => [
      name,
      task({
        name,
        // Some classes pull.
        fetch: name === 'two' || name === 'fresh' ? fetch : 'push',
        flows: SHAPES[name] as { readonly x: typeof rw },
        params: { plus: 'f64', node: 'i32' },
        body: (args) => {
          turns.set(args.node, ++turn);
          compute(args as Arrays);
        },
      }),
    ]),
  );
const classes = { push: classesOf('push'), pull: classesOf('pull') };
const isWritten = (flow: string): boolean => ['x', 'y', 'to', 'sum'].includes(flow);

interface End {
  readonly node: number;
  readonly flow: string;
}

interface Node {
  readonly shape: Shape;
  readonly index: number;
  readonly position: number;
  plus: number;
  /** The datum of each flow. */
  readonly data: Record<string, number>;
  /** Where the values come from; a number: a datum as it was before. */
  readonly from: Record<string, End | number>;
  readonly to: Record<string, End[]>;
  /** Flows that go home. */
  readonly homes: Set<string>;
  /** Nodes of the same rank before and behind, without data. */
  readonly after: number[];
  readonly before: number[];
}

interface LocalProgram {
  /** The same on all ranks, and most likely another one for another program. */
  readonly first: number;
  readonly nodes: readonly Node[];
  /** Owners of the data, modulo the number of ranks; constants stand last. */
  readonly owners: readonly number[];
  readonly constants: number;
  /** Number of constants that all ranks get. */
  readonly shared: number;
  readonly fetch: 'push' | 'pull';
}

/** The datum whose owner runs a node. */
function homeOf({ data }: Node): number {
  return data['x'] ?? data['to'] ?? data['sum'];
}

/** A random program. */
export function localProgram(random: Random): LocalProgram {
  const written = 3 + random.below(6);
  const constants = 2 + random.below(3);
  const shared = random.below(constants);
  const owners = Array.from({ length: written + constants }, () => random.below(7));
  const last: (End | undefined)[] = owners.map(() => undefined);
  const nodes: Node[] = [];
  const counts = new Map<Shape, number>();
  let position = 0;
  for (let number = 4 + random.below(60); number > 0; number--) {
    let shape = NAMES[random.below(NAMES.length)];
    const x = random.below(written);
    const y = owners.findIndex((owner, d) => d < written && d !== x && owner === owners[x]);
    if (shape === 'pair' && y < 0) shape = 'two';
    const index = counts.get(shape) ?? 0;
    counts.set(shape, index + 1);
    position += 1 + random.below(3);
    const node: Node = {
      ...{ shape, index, position, plus: random.below(100) },
      ...{ data: {}, from: {}, to: {}, homes: new Set(), after: [], before: [] },
    };
    const me = nodes.length;
    for (const flow of Object.keys(SHAPES[shape])) {
      let d = flow === 'y' ? y : x;
      if (!isWritten(flow)) {
        const known = last.flatMap((end, n) =>
          end !== undefined && !Object.values(node.data).includes(n) ? [n] : [],
        );
        d =
          known.length > 0 && random.below(4) > 0
            ? known[random.below(known.length)]
            : written + random.below(constants);
      }
      node.data[flow] = d;
      const from = last[d];
      node.from[flow] = from ?? d;
      if (from !== undefined) nodes[from.node].to[from.flow].push({ node: me, flow });
    }
    nodes.push(node);
    for (const [flow, d] of Object.entries(node.data)) {
      if (!isWritten(flow)) continue;
      node.to[flow] = [];
      last[d] = { node: me, flow };
    }
  }
  for (const end of last) if (end !== undefined) nodes[end.node].homes.add(end.flow);
  const fetch = random.below(3) === 0 ? 'pull' : 'push';
  // A third of the nodes follow up to two others, some of which others follow, too.
  for (const [n, node] of nodes.entries()) {
    for (let tries = random.below(3) === 0 ? 2 : 0; tries > 0 && n > 0; tries--) {
      const other = random.below(n);
      const isNear = owners[homeOf(nodes[other])] === owners[homeOf(node)];
      if (!isNear || node.after.includes(other)) continue;
      node.after.push(other);
      nodes[other].before.push(n);
    }
  }
  return { first: NODES * random.below(10_000), nodes, owners, constants, shared, fetch };
}

/** What the program leaves, computed task by task. */
function computeLocally({ nodes }: LocalProgram, values: Float64Array[]): void {
  for (const { data, plus } of nodes) {
    const arrays = Object.fromEntries(Object.entries(data).map(([flow, d]) => [flow, values[d]]));
    compute({ ...arrays, plus } as unknown as Arrays);
  }
}

/** A mistake to plant. */
export interface Planted {
  readonly order?: (position: number, node: number) => number;
  readonly own?: (rank: number, indices: readonly number[]) => readonly number[];
  readonly datum?: (d: number, node: number) => number;
  /** Constants go to nobody. */
  readonly isMute?: boolean;
}

/** The program as a graph of data. */
export function localGraph(
  { first: firstNumber, nodes, owners, constants, shared, fetch }: LocalProgram,
  ranks: number,
  planted: Planted = {},
): ParameterisedGraph<readonly Datum<'f64'>[]> {
  const mine = Object.fromEntries(
    NAMES.map((name) => [name, nodes.filter(({ shape }) => shape === name)]),
  );
  const numbers = new Map(nodes.map((node, n) => [node, n]));
  // biome-ignore lint/suspicious/noExplicitAny: classes and flows have names that are not known to the compiler.
  return parameterised<readonly Datum<'f64'>[]>('local', (graph: any, data) => {
    const declared = graph.declare(
      Object.fromEntries(
        NAMES.map((name) => [
          name,
          { runs: classes[fetch][name], indices: ['i'], controls: ['come', 'go'] },
        ]),
      ),
    );
    const endOf = (end: End | number): unknown => {
      if (typeof end === 'number') return data[end];
      const { shape, index } = nodes[end.node];
      return declared[shape][end.flow]({ i: index });
    };
    const controlOf = (control: string) => (node: number) => {
      const { shape, index } = nodes[node];
      return declared[shape][control]({ i: index });
    };
    const first = owners.length - constants;
    if (planted.isMute !== true) graph.share(...data.slice(first, first + shared));
    graph.inputs({
      indices: ['c'],
      ranges: { c: () => range(first + shared, owners.length) },
      on: ({ c }: { c: number }) => data[c],
      datum: ({ c }: { c: number }) => data[c],
      to: ({ c }: { c: number }) =>
        planted.isMute !== true &&
        nodes.flatMap(({ from }, node) =>
          Object.entries(from).map(([flow, end]) => end === c && endOf({ node, flow })),
        ),
    });
    for (const name of NAMES) {
      const of = mine[name];
      const rankOf = (i: number): number => owners[homeOf(of[i])] % ranks;
      const flows = Object.fromEntries(
        Object.keys(SHAPES[name]).map((flow) => [
          flow,
          {
            from: ({ i }: { i: number }) => endOf(of[i].from[flow]),
            ...(isWritten(flow)
              ? {
                  to: ({ i }: { i: number }) => [
                    of[i].to[flow].map(endOf),
                    of[i].homes.has(flow) && data[of[i].data[flow]],
                  ],
                  datum: ({ i }: { i: number }) => {
                    const d = of[i].data[flow];
                    return data[planted.datum?.(d, numbers.get(of[i]) as number) ?? d];
                  },
                }
              : {}),
          },
        ]),
      );
      const all = [...of.keys()];
      graph.define(declared[name], {
        ranges: { i: () => range(0, of.length) },
        order: ({ i }: { i: number }) => {
          const { position } = of[i];
          return planted.order?.(position, numbers.get(of[i]) as number) ?? position;
        },
        own: {
          i: (_: object, rank: number) => {
            const own = all.filter((i) => rankOf(i) === rank);
            return planted.own?.(rank, own) ?? own;
          },
        },
        on: ({ i }: { i: number }) => rankOf(i),
        flows,
        controls: {
          come: { from: ({ i }: { i: number }) => of[i].after.map(controlOf('go')) },
          go: { to: ({ i }: { i: number }) => of[i].before.map(controlOf('come')) },
        },
        params: ({ i }: { i: number }) => {
          return { plus: of[i].plus, node: firstNumber + (numbers.get(of[i]) as number) };
        },
        priority: ({ i }: { i: number }) => (i * 7) % 3,
      });
    }
  }) as never;
}

/** The data of a program on a runtime, with their values. */
export function dataOf(
  { owners }: LocalProgram,
  runtime: Runtime,
): { readonly data: Datum<'f64'>[]; readonly values: Float64Array[] } {
  const values = owners.map((_, d) =>
    Float64Array.from({ length: lengthOf(d) }, (_, i) => 10 * d + i),
  );
  const data = values.map((value, d) =>
    runtime.data(value.slice(), { name: `d${d}`, rank: owners[d] % runtime.ranks }),
  );
  return { data, values };
}

/** The nodes of this rank that ran before one that they follow. */
function disorder({ first, nodes, owners }: LocalProgram, { rank, ranks }: Runtime): string[] {
  const turnOf = (node: number): number => turns.get(first + node) ?? 0;
  return nodes.flatMap((node, n) =>
    owners[homeOf(node)] % ranks === rank
      ? node.after.flatMap((other) =>
          turnOf(other) < turnOf(n) ? [] : [`node ${n} ran before node ${other}`],
        )
      : [],
  );
}

const addOne = task({
  name: 'add one',
  flows: { x: rw },
  body: ({ x }) => {
    x[0]++;
  },
});

/**
 * What differs from the program after runs of it one after the other: `local` is pruned, `all` not, and `inserted` adds 1 to some of the
 * data, anywhere. Every rank looks at some data between the runs.
 */
export async function localDifferences(
  runtime: Runtime,
  program: LocalProgram,
  runs: readonly ('local' | 'all' | 'inserted')[],
  random: Random,
): Promise<string[]> {
  const graph = localGraph(program, runtime.ranks);
  const { data, values } = dataOf(program, runtime);
  const wrong: string[] = [];
  if (graph.whyNotLocal(data) !== undefined) wrong.push(String(graph.whyNotLocal(data)));
  for (const [n, run] of runs.entries()) {
    if (run === 'inserted') {
      const d = random.below(data.length);
      await runtime.run((g) => {
        g.insert(addOne, { x: data[d] });
      });
      values[d][0]++;
    } else {
      computeLocally(program, values);
      await runtime.run(graph, data, { pruned: run === 'local' });
    }
    if (run !== 'inserted')
      wrong.push(...disorder(program, runtime).map((one) => `run ${n}, ${one}`));
    for (const [d, datum] of data.entries()) {
      if (random.below(3) > 0 && n + 1 < runs.length) continue;
      const value = (await datum.read()).join();
      if (value !== values[d].join())
        wrong.push(`run ${n}, ${run}, d${d}: ${value}, not ${values[d].join()}`);
    }
  }
  return wrong;
}
