// Oracles of branches and trees as parameterised graphs.
import {
  type Datum,
  type ParameterisedGraph,
  parameterised,
  type Runtime,
  range,
  read,
  readWrite,
  task,
  temporary,
  write,
} from '../../../index.js';
import { copy, random } from '../tasks.js';
import { COUNT, differences, type Oracle } from './oracle.js';

/** How many of the tasks 0..n-1 rank `rank` runs. */
const shareOf = ({ rank, ranks }: Runtime, n: number): number =>
  range(0, n)
    .map((i) => i)
    .filter((i) => i % ranks === rank).length;

/** A(i) feeds B(2 i) and B(2 i + 1), both feed C(i): n, 2 n and n tasks. */
export const branching: Oracle = async (runtime, options) => {
  const n = 12;
  const { ranks } = runtime;
  const counts = { a: 0, b: 0, c: 0 };
  const first = task({
    name: 'a',
    flows: { to: write('f64') },
    params: { i: 'i32' },
    body: ({ to, i }) => {
      counts.a++;
      to.fill(i + 1);
    },
  });
  const branch = task({
    name: 'b',
    flows: { to: write('f64'), from: read('f64') },
    body: ({ to, from }) => {
      counts.b++;
      to.set(from);
    },
  });
  const join = task({
    name: 'c',
    flows: { to: write('f64'), left: read('f64'), right: read('f64') },
    body: ({ to, left, right }) => {
      counts.c++;
      for (const i of to.keys()) to[i] = left[i] + right[i];
    },
  });
  const results = range(0, n).map((i) => runtime.data('f64', COUNT, { rank: (i + 1) % ranks }));
  const graph = parameterised('branching', (g) => {
    const { a, b, c } = g.declare({
      c: { runs: join, indices: ['i'] },
      b: { runs: branch, indices: ['k'] },
      a: { runs: first, indices: ['i'] },
    });
    const fresh = () => temporary('f64', COUNT);
    g.define(a, {
      ranges: { i: () => range(0, n) },
      on: ({ i }) => i % ranks,
      flows: {
        to: { from: fresh, to: ({ i }) => [b.from({ k: 2 * i }), b.from({ k: 2 * i + 1 })] },
      },
      params: ({ i }) => ({ i }),
    });
    g.define(b, {
      ranges: { k: () => range(0, 2 * n) },
      on: ({ k }) => k % ranks,
      flows: {
        to: { from: fresh, to: ({ k }) => (k % 2 === 0 ? c.left : c.right)({ i: k >> 1 }) },
        from: { from: ({ k }) => a.to({ i: k >> 1 }) },
      },
    });
    g.define(c, {
      ranges: { i: () => range(0, n) },
      on: ({ i }) => results[i],
      flows: {
        to: { from: ({ i }) => results[i], to: ({ i }) => results[i] },
        left: { from: ({ i }) => b.to({ k: 2 * i }) },
        right: { from: ({ i }) => b.to({ k: 2 * i + 1 }) },
      },
    });
  });
  await runtime.run(graph, undefined, options);
  const values = await Promise.all(results.map((one) => one.read()));
  const mine = results.filter(({ rank }) => rank === runtime.rank).length;
  const expected = { a: shareOf(runtime, n), b: shareOf(runtime, 2 * n), c: mine };
  for (const one of results) one.close();
  return [
    ...differences('tasks', counts, expected),
    ...values.flatMap((value, i) =>
      differences(`c(${i})`, [...value], new Array(COUNT).fill(2 * (i + 1))),
    ),
  ];
};

const MOST_LEVELS = 8;
const splits = (value: number, level: number): boolean =>
  level < 2 || (level < MOST_LEVELS && (Math.imul(value, 0x9e3779b1) >>> 8) % 5 < 3);
const childOf = (value: number, side: number): number =>
  (Math.imul(value, 2 + side) + 0x1234567 + side) | 0;

/** A tree whose nodes decide whether they have children: a graph per level. The XOR of its leaves, and their number. */
export const haarTree: Oracle = async (runtime, options) => {
  const { ranks } = runtime;
  const node = task({
    name: 'node',
    flows: { child: write('i32'), parent: read('i32') },
    params: { side: 'i32' },
    body: ({ child, parent, side }) => void child.set([childOf(parent[0], side)]),
  });
  const leaf = task({
    name: 'leaf',
    flows: { result: readWrite('i32'), value: read('i32') },
    body: ({ result, value }) => {
      result[0] ^= value[0];
      result[1]++;
    },
  });
  const result = runtime.data(Int32Array.of(0, 0), { name: 'result', rank: ranks - 1 });
  interface Level {
    readonly parents: readonly Datum<'i32'>[];
    readonly children: readonly Datum<'i32'>[];
    readonly leaves: readonly Datum<'i32'>[];
  }
  const level: ParameterisedGraph<Level> = parameterised(
    'level',
    (g, { parents, children, leaves }) => {
      const { grow, end } = g.declare({
        grow: { runs: node, indices: ['i'] },
        end: { runs: leaf, indices: ['i'] },
      });
      g.define(grow, {
        ranges: { i: () => range(0, children.length) },
        on: ({ i }) => children[i],
        flows: {
          child: { from: ({ i }) => children[i], to: ({ i }) => children[i] },
          parent: { from: ({ i }) => parents[i >> 1] },
        },
        params: ({ i }) => ({ side: i % 2 }),
      });
      g.define(end, {
        ranges: { i: () => range(0, leaves.length) },
        on: () => result,
        flows: {
          result: {
            from: ({ i }) => (i === 0 ? result : end.result({ i: i - 1 })),
            to: ({ i }) => (i + 1 === leaves.length ? result : end.result({ i: i + 1 })),
          },
          value: { from: ({ i }) => leaves[i] },
        },
      });
    },
  );
  const all = [runtime.data(Int32Array.of(77))];
  await runtime.run(async (g) => {
    let nodes = [...all];
    for (let depth = 0; nodes.length > 0; depth++) {
      const values: number[] = [];
      for (const one of nodes) values.push(await g.value(one));
      const parents = nodes.filter((_, i) => splits(values[i], depth));
      const leaves = nodes.filter((_, i) => !splits(values[i], depth));
      const children = range(0, 2 * parents.length).map((i) =>
        runtime.data('i32', 1, { rank: (i + depth) % ranks }),
      );
      level.insertInto(g, { parents, children, leaves });
      all.push(...children);
      nodes = children;
    }
  }, options);
  const serial = (value: number, depth: number): readonly [number, number] => {
    if (!splits(value, depth)) return [value, 1];
    const [l, r] = [0, 1].map((side) => serial(childOf(value, side), depth + 1));
    return [l[0] ^ r[0], l[1] + r[1]];
  };
  const seen = [...(await result.read())];
  for (const one of [result, ...all]) one.close();
  return differences('XOR and leaves', seen, serial(77, 0));
};

/** A piece of an array that is sorted by its parts or, if it is short, as it is. */
interface Piece {
  readonly first: number;
  readonly end: number;
  /** Numbers of its parts, and of the piece that it is a part of. */
  readonly parts: readonly number[];
  readonly whole: number;
}

/** Recursive splitting at random places; a piece stands behind the one that it is a part of. */
function piecesOf(length: number): Piece[] {
  const next = random(3);
  const pieces: Piece[] = [];
  const split = (first: number, end: number, whole: number): number => {
    const number = pieces.length;
    pieces.push({ first, end, parts: [], whole });
    if (end - first < 20) return number;
    const middle = first + 1 + Math.floor(next() * (end - first - 1));
    const parts = [split(first, middle, number), split(middle, end, number)];
    pieces[number] = { first, end, parts, whole };
    return number;
  };
  split(0, length, -1);
  return pieces;
}

/** Pieces of uneven size. They pass native tasks, which run on GPUs where there are some. */
export const mergeSort: Oracle = async (runtime, options) => {
  const { ranks } = runtime;
  const next = random(9);
  const numbers = Float64Array.from({ length: 300 }, () => Math.floor(next() * 1e6));
  const pieces = piecesOf(numbers.length);
  const lengthOf = (n: number): number => pieces[n].end - pieces[n].first;
  const short = [...pieces.keys()].filter((n) => pieces[n].parts.length === 0);
  const long = [...pieces.keys()].filter((n) => pieces[n].parts.length > 0);
  const sort = task({
    name: 'sort',
    flows: { of: readWrite('f64') },
    body: ({ of }) => void of.sort(),
  });
  const merge = task({
    name: 'merge',
    flows: { to: write('f64'), a: read('f64'), b: read('f64') },
    body: ({ to, a, b }) => void to.set([...a, ...b].sort((one, other) => one - other)),
  });
  const inputs = short.map((n) =>
    runtime.data(numbers.slice(pieces[n].first, pieces[n].end), { rank: n % ranks }),
  );
  const result = runtime.data('f64', numbers.length, { name: 'sorted', rank: ranks - 1 });
  const graph = parameterised('merge sort', (g) => {
    const { load, sorted, merged, moved } = g.declare({
      moved: { runs: copy, indices: ['m'] },
      merged: { runs: merge, indices: ['m'] },
      sorted: { runs: sort, indices: ['s'] },
      load: { runs: copy, indices: ['s'] },
    });
    const pieceOf = (n: number) =>
      pieces[n].parts.length === 0
        ? sorted.of({ s: short.indexOf(n) })
        : moved.to({ m: long.indexOf(n) });
    const taker = (n: number) => {
      const { whole } = pieces[n];
      const side = pieces[whole].parts[0] === n ? merged.a : merged.b;
      return side({ m: long.indexOf(whole) });
    };
    g.define(load, {
      ranges: { s: () => range(0, short.length) },
      on: ({ s }) => inputs[s],
      flows: {
        to: {
          from: ({ s }) => temporary('f64', lengthOf(short[s])),
          to: ({ s }) => sorted.of({ s }),
        },
        from: { from: ({ s }) => inputs[s] },
      },
      params: ({ s }) => ({ bytes: 8 * lengthOf(short[s]) }),
    });
    g.define(sorted, {
      ranges: { s: () => range(0, short.length) },
      on: ({ s }) => (short[s] + 1) % ranks,
      flows: { of: { from: ({ s }) => load.to({ s }), to: ({ s }) => taker(short[s]) } },
    });
    g.define(merged, {
      ranges: { m: () => range(0, long.length) },
      on: ({ m }) => long[m] % ranks,
      flows: {
        to: {
          from: ({ m }) => temporary('f64', lengthOf(long[m])),
          to: ({ m }) => moved.from({ m }),
        },
        a: { from: ({ m }) => pieceOf(pieces[long[m]].parts[0]) },
        b: { from: ({ m }) => pieceOf(pieces[long[m]].parts[1]) },
      },
    });
    g.define(moved, {
      ranges: { m: () => range(0, long.length) },
      on: ({ m }) => (m === 0 ? result : (long[m] + 1) % ranks),
      flows: {
        to: {
          from: ({ m }) => (m === 0 ? result : temporary('f64', lengthOf(long[m]))),
          to: ({ m }) => (m === 0 ? result : taker(long[m])),
        },
        from: { from: ({ m }) => merged.to({ m }) },
      },
      params: ({ m }) => ({ bytes: 8 * lengthOf(long[m]) }),
    });
  });
  await runtime.run(graph, undefined, options);
  const seen = await result.read();
  for (const one of [result, ...inputs]) one.close();
  return differences('sorted', [...seen], [...numbers.slice().sort()]);
};
