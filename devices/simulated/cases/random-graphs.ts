// Random programs as parameterised graphs: classes whose functions of the indices look the ends of the edges up in tables.

import {
  type Datum,
  list,
  type ParameterisedGraph,
  parameterised,
  type Runtime,
  range,
  read,
  readWrite,
  type TaskClass,
  task,
  temporary,
  write,
} from '../../../scheduler/index.js';
import { Random } from '../machine/random.js';

const LENGTH = 3;
const MODULUS = 1_000_003;

/** The classes: each has the flows that its tasks use, in this order. A member of `parts` is `parts[i]`. */
const SHAPES = ['x', 'x a', 'x y a', 'x a b', 'x parts', 'new a'] as const;
export type Shape = (typeof SHAPES)[number];

interface Arrays {
  readonly x?: Float64Array;
  readonly y?: Float64Array;
  readonly to?: Float64Array;
  readonly a?: Readonly<Float64Array>;
  readonly b?: Readonly<Float64Array>;
  readonly parts?: readonly Readonly<Float64Array>[];
}

/** What a task does. */
function compute({ x, y, to, a, b, parts }: Arrays, plus: number): void {
  for (let i = 0; i < LENGTH; i++) {
    let all = plus + i + (a?.[i] ?? 0) + 3 * (b?.[i] ?? 0);
    for (const part of parts ?? []) all = (2 * all + part[i]) % MODULUS;
    if (to !== undefined) to[i] = all % MODULUS;
    if (x !== undefined) x[i] = (5 * x[i] + all) % MODULUS;
    if (y !== undefined) y[i] = (7 * y[i] + all + (x?.[i] ?? 0)) % MODULUS;
  }
}

function classOf(shape: Shape): TaskClass {
  const r = read('f64');
  const rw = readWrite('f64');
  const flows = {
    x: { x: rw },
    'x a': { x: rw, a: r },
    'x y a': { x: rw, y: rw, a: r },
    'x a b': { x: rw, a: r, b: r },
    'x parts': { x: rw, parts: list(r) },
    'new a': { to: write('f64'), a: r },
  }[shape];
  return task({
    name: shape,
    flows: flows as never,
    params: { plus: 'f64' },
    body: (args: Arrays & { readonly plus: number }) => {
      if (args.plus < 0) throw new Error('as asked for');
      compute(args, args.plus);
    },
  } as never) as unknown as TaskClass;
}

const classes = Object.fromEntries(SHAPES.map((shape) => [shape, classOf(shape)]));

/** An end of an edge: a flow of a task, or a datum of the program by number. */
export type End = { readonly node: number; readonly flow: string; readonly at?: number } | number;

export interface Node {
  readonly shape: Shape;
  /** Its index within its class. */
  readonly index: number;
  readonly plus: number;
  /** By flow, where the values come from; `temporary` begins a datum of the graph. */
  readonly from: Record<string, (End | 'temporary')[]>;
  readonly to: Record<string, End[]>;
}

export interface Program {
  readonly nodes: readonly Node[];
  readonly data: number;
  /** The values of the data after the program, given those before. */
  run(values: Float64Array[]): void;
}

/** A datum while the program is made: the task that wrote its last version, and how many have read that. */
interface Version {
  writer: End | 'temporary';
  isTemporary: boolean;
  isRead: boolean;
}

/** A random program of tasks one after the other. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: its steps and nodes grow together from the same tables.
export function randomProgram(r: Random): Program {
  const data = 2 + r.below(4);
  const versions: Version[] = Array.from({ length: data }, (_, writer) => ({
    writer,
    isTemporary: false,
    isRead: false,
  }));
  // Data that are only read, by any tasks.
  const constants = 1 + r.below(3);
  const nodes: Node[] = [];
  const counts = new Map<Shape, number>();
  const steps: ((values: Float64Array[]) => void)[] = [];
  const size = 3 + r.below(40);
  for (let number = 0; number < size; number++) {
    const shape = SHAPES[r.below(SHAPES.length)];
    const index = counts.get(shape) ?? 0;
    counts.set(shape, index + 1);
    const node: Node = { shape, index, plus: r.below(100), from: {}, to: {} };
    nodes.push(node);
    const used = new Set<number>();
    const places: Record<string, number[]> = {};
    const link = (v: number, flow: string, at?: number): void => {
      const { writer } = versions[v];
      node.from[flow] ??= [];
      node.from[flow].push(writer);
      if (typeof writer === 'object') {
        const end = { node: number, flow, ...(at === undefined ? {} : { at }) };
        nodes[writer.node].to[writer.flow].push(end);
      }
    };
    const written = (flow: string): void => {
      const free = versions.map((_, v) => v).filter((v) => !used.has(v));
      const v = free[r.below(free.length)];
      used.add(v);
      places[flow] = [v];
      link(v, flow);
      node.to[flow] = [];
    };
    const input = (flow: string, at?: number): void => {
      // Of a datum of the program that nothing has written yet, only a writer may take the value: others would race with it.
      const known = versions
        .map(({ writer }, v) => (typeof writer === 'object' && !used.has(v) ? v : -1))
        .filter((v) => v >= 0);
      places[flow] ??= [];
      const v = known.length > 0 && r.below(4) > 0 ? known[r.below(known.length)] : -1;
      if (v < 0) {
        const constant = data + r.below(constants);
        node.from[flow] ??= [];
        node.from[flow].push(constant);
        places[flow].push(-1 - constant);
        return;
      }
      versions[v].isRead = true;
      places[flow].push(v);
      link(v, flow, at);
    };
    for (const flow of shape.split(' ')) {
      if (flow === 'x' || flow === 'y') {
        if (used.size < versions.length) written(flow);
      } else if (flow === 'new') {
        node.from['to'] = ['temporary'];
        node.to['to'] = [];
        places['to'] = [versions.length];
        versions.push({ writer: { node: number, flow: 'to' }, isTemporary: true, isRead: false });
        used.add(versions.length - 1);
      } else if (flow === 'parts') {
        node.from[flow] = [];
        places[flow] = [];
        for (let at = r.below(4), i = 0; i < at; i++) input(flow, i);
      } else input(flow);
    }
    for (const flow of ['x', 'y'])
      if (places[flow] !== undefined)
        versions[places[flow][0]] = {
          ...versions[places[flow][0]],
          writer: { node: number, flow },
          isRead: false,
        };
    steps.push((values) => {
      const at = (place: number): Float64Array => {
        if (place < 0) return values[-1 - place];
        const slot = place < data ? place : place + constants;
        values[slot] ??= new Float64Array(LENGTH);
        return values[slot];
      };
      const one = (flow: string): Float64Array | undefined =>
        places[flow] === undefined ? undefined : at(places[flow][0]);
      const arrays = { x: one('x'), y: one('y'), to: one('to'), a: one('a'), b: one('b') };
      compute(
        { ...arrays, ...(shape === 'x parts' ? { parts: places['parts'].map(at) } : {}) } as Arrays,
        node.plus,
      );
    });
  }
  // The last versions go home; those of temporaries that nothing reads go into one more task.
  const lost: number[] = [];
  for (const [v, { writer, isTemporary, isRead }] of versions.entries()) {
    if (typeof writer !== 'object') continue;
    if (!isTemporary) nodes[writer.node].to[writer.flow].push(v);
    else if (!isRead) lost.push(v);
  }
  const last: Node = {
    shape: 'x parts',
    index: counts.get('x parts') ?? 0,
    plus: 1,
    from: { parts: [] },
    to: {},
  };
  const end = data + constants;
  last.from['x'] = [end];
  last.to['x'] = [end];
  for (const [at, v] of lost.entries()) {
    const writer = versions[v].writer as { node: number; flow: string };
    last.from['parts'].push(writer);
    nodes[writer.node].to[writer.flow].push({ node: nodes.length, flow: 'parts', at });
  }
  nodes.push(last);
  // Temporaries lie behind the data, the constants and the datum of the last task.
  return {
    nodes,
    data: end + 1,
    run: (given) => {
      const values = [...given.slice(0, end)];
      for (const step of steps) step(values);
      const parts = lost.map((v) => values[v + constants]);
      const home = given[end];
      compute({ x: home, parts }, 1);
    },
  };
}

export interface Arguments {
  readonly data: readonly Datum<'f64'>[];
}

/** The program as a parameterised graph; `on`: the rank of each task, by its number in the program. */
export function graphOf(
  { nodes }: Program,
  on?: (node: number) => number,
): ParameterisedGraph<Arguments> {
  const byClass = SHAPES.map((shape) => nodes.filter((node) => node.shape === shape));
  const nameOf = (shape: Shape): string => `c${SHAPES.indexOf(shape)}`;
  // biome-ignore lint/suspicious/noExplicitAny: classes and flows have random names.
  return parameterised<Arguments>('random', (graph: any, { data }) => {
    const declared = graph.declare(
      Object.fromEntries(
        SHAPES.map((shape) => [nameOf(shape), { runs: classes[shape], indices: ['i'] }]),
      ),
    );
    const endOf = (end: End | 'temporary'): unknown => {
      if (end === 'temporary') return temporary('f64', LENGTH);
      if (typeof end === 'number') return data[end];
      const { shape, index } = nodes[end.node];
      const flow = declared[nameOf(shape)][end.flow];
      return flow({ i: index }, ...(end.at === undefined ? [] : [end.at]));
    };
    for (const [c, shape] of SHAPES.entries()) {
      const mine = byClass[c];
      const flows: Record<string, object> = {};
      for (const flow of classes[shape].flowNames) {
        const isList = flow === 'parts';
        flows[flow] = {
          from: ({ i }: { i: number }) => {
            const ends = (mine[i].from[flow] ?? []).map(endOf);
            return isList ? ends : ends[0];
          },
          ...(classes[shape].modes[classes[shape].flowNames.indexOf(flow)] === 1
            ? {}
            : { to: ({ i }: { i: number }) => (mine[i].to[flow] ?? []).map(endOf) }),
        };
      }
      graph.define(declared[nameOf(shape)], {
        ranges: { i: () => range(0, mine.length) },
        flows,
        params: ({ i }: { i: number }) => ({ plus: mine[i].plus }),
        priority: ({ i }: { i: number }) => (i * 7) % 3,
        ...(on === undefined ? {} : { on: ({ i }: { i: number }) => on(nodes.indexOf(mine[i])) }),
      });
    }
  }) as never;
}

/** The values of the data before the program. */
export const start = (count: number): Float64Array<ArrayBuffer>[] =>
  Array.from({ length: count }, (_, d) =>
    Float64Array.from({ length: LENGTH }, (_, i) => 10 * d + i),
  );

/**
 * What differs from the program after runs of a random graph on several ranks, pruned or not one after the other: its tasks and data lie
 * anywhere. `looks`: whether all ranks read a datum after a run.
 */
export async function differencesOnRanks(
  runtime: Runtime,
  seed: number,
  runs: readonly boolean[],
  looks: (r: Random) => boolean,
): Promise<string[]> {
  const r = new Random(seed);
  const program = randomProgram(r);
  const places = program.nodes.map(() => r.below(runtime.ranks));
  const graph = graphOf(program, (node) => places[node]);
  const expected = start(program.data);
  const data = expected.map((value, d) =>
    runtime.data(value, { name: `d${d}`, rank: r.below(runtime.ranks) }),
  );
  const wrong: string[] = [];
  for (const pruned of runs) {
    program.run(expected);
    await runtime.run(graph, { data }, { pruned });
    for (const [d, datum] of data.entries()) {
      if (!looks(r)) continue;
      const value = (await datum.read()).join();
      if (value !== expected[d].join())
        wrong.push(`seed ${seed}, pruned ${pruned}, d${d}: ${value}, not ${expected[d].join()}`);
    }
  }
  for (const datum of data) datum.close();
  return wrong;
}
