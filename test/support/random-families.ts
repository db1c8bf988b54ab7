// Random families of spawned tasks, on any machine, with what plain recursion gives: temporaries, asynchronous bodies, kernels, values read
// in the middle, several runs at a time, and tasks that fail anywhere in a family.

import type { Random } from '../../devices/simulated/machine/random.js';
import {
  type BodyContext,
  type Datum,
  type Flow,
  type Graph,
  HeadraceError,
  type Runtime,
  read,
  readWrite,
  type TaskClass,
  task,
  write,
} from '../../index.js';
import { nothingLeft, soon } from './machines.js';

type Kind = 'one' | 'two' | 'add' | 'init';
type Values = Float64Array<ArrayBuffer>;

/** A task and those that its body spawns. Data are named by their place among the data of the parent. */
interface Node {
  readonly kind: Kind;
  readonly x: string;
  readonly y: string;
  readonly plus: number;
  readonly number: number;
  readonly isAsync: boolean;
  readonly fails: boolean;
  readonly temporaries: readonly string[];
  readonly children: readonly Node[];
}

const MODULUS = 1_000_003;
const AS_ASKED = 'as asked for';

function one(x: Float64Array, plus: number): void {
  for (let i = 0; i < x.length; i++) x[i] = (x[i] * 3 + plus + i) % MODULUS;
}

function two(x: Float64Array, y: Readonly<Float64Array>, plus: number): void {
  for (let i = 0; i < x.length; i++) x[i] = (x[i] * 5 + y[i] + plus) % MODULUS;
}

/** Makes random families; keeps the nodes by number, for the bodies. */
class Families {
  readonly nodes: Node[] = [];
  private readonly r: Random;
  private readonly failing: boolean;
  private readonly mayAwait: boolean;

  constructor(r: Random, failing: boolean, mayAwait: boolean) {
    this.r = r;
    this.failing = failing;
    this.mayAwait = mayAwait;
  }

  /** A task that writes one of `writable`, and may read one of `all`. */
  family(writable: readonly string[], all: readonly string[], depth: number): Node {
    const { r } = this;
    const x = writable[r.below(writable.length)];
    const others = all.filter((name) => name !== x);
    const choice = others.length === 0 ? 3 : r.below(4);
    const kind = choice === 0 ? 'add' : choice < 3 ? 'two' : 'one';
    const y = kind === 'one' ? '' : others[r.below(others.length)];
    const isBody = kind !== 'add';
    const temporaries: string[] = [];
    const children: Node[] = [];
    const size = isBody && depth > 0 ? r.below(5) : 0;
    if (size > 0) {
      for (let i = r.below(3); i > 0; i--) temporaries.push(`temporary ${i}`);
      const mine = ['x', ...temporaries];
      for (const name of temporaries) children.push(this.node({ kind: 'init', x: name }));
      const visible = kind === 'two' ? [...mine, 'y'] : mine;
      for (let i = 0; i < size; i++) children.push(this.family(mine, visible, depth - 1));
    }
    const isAsync = isBody && r.below(6) === 0 && this.mayAwait;
    const fails = isBody && this.failing && r.below(60) === 0;
    return this.node({ kind, x, y, isAsync, fails, temporaries, children });
  }

  private node(given: Pick<Node, 'kind' | 'x'> & Partial<Node>): Node {
    const node: Node = {
      y: '',
      plus: this.r.below(1000),
      number: this.nodes.length,
      isAsync: false,
      fails: false,
      temporaries: [],
      children: [],
      ...given,
    };
    this.nodes.push(node);
    return node;
  }
}

/** Does by recursion what the task and its family do. */
function recurse(node: Node, data: Readonly<Record<string, Float64Array>>): void {
  const [x, y] = [data[node.x], data[node.y]];
  if (node.kind === 'init') x.fill(node.plus);
  else if (node.kind === 'add') for (let i = 0; i < x.length; i++) x[i] += y[i];
  else if (node.kind === 'one') one(x, node.plus);
  else two(x, y, node.plus);
  if (node.fails) throw new Error(AS_ASKED);
  const mine: Record<string, Float64Array> = { x, y };
  for (const name of node.temporaries) mine[name] = new Float64Array(x.length);
  for (const child of node.children) recurse(child, mine);
}

type Named = Readonly<Record<string, Datum<'f64'>>>;

/** Inserts or spawns the task of a node. */
type Insert = (cls: TaskClass, args: object) => void;

/** The task classes of the families of one machine, and how to insert a node. */
function classesOf(
  families: Families,
  length: number,
): (node: Node, data: Named, to: Insert) => void {
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const spawnFamily = (node: Node, context: BodyContext): void => {
    const { data, spawn, temporary } = context;
    const mine: Record<string, Datum<'f64'>> = { ...(data as Named) };
    for (const name of node.temporaries) mine[name] = temporary('f64', length);
    for (const child of node.children) insert(child, mine, spawn as Insert);
  };
  const body = (
    { x, y, number }: { x: Float64Array; y?: Readonly<Float64Array>; number: number },
    context: BodyContext,
  ): void => {
    const node = families.nodes[number];
    if (y === undefined) one(x, node.plus);
    else two(x, y, node.plus);
    if (node.fails) throw new Error(AS_ASKED);
    spawnFamily(node, context);
  };
  const later = async (args: Parameters<typeof body>[0], context: BodyContext): Promise<void> => {
    await turn();
    body(args, context);
    await turn();
  };
  const make = (name: string, flows: Record<string, Flow>, isAsync: boolean): TaskClass =>
    task({
      name,
      flows,
      params: { number: 'i32' },
      body: (isAsync ? later : body) as never,
    }) as unknown as TaskClass;
  const x = readWrite('f64');
  const y = read('f64');
  const classes = [
    { one: make('one', { x }, false), two: make('two', { x, y }, false) },
    { one: make('later one', { x }, true), two: make('later two', { x, y }, true) },
  ];
  const add = task({
    name: 'add',
    flows: { to: readWrite('f64'), from: read('f64') },
    params: { count: 'i32', factor: 'f64' },
    kernel: 'add_f64',
  }) as unknown as TaskClass;
  const init = task({
    name: 'init',
    flows: { x: write('f64') },
    params: { plus: 'f64' },
    body: ({ x, plus }) => void x.fill(plus),
  }) as unknown as TaskClass;
  const insert = (node: Node, data: Named, to: Insert): void => {
    const { kind, number, plus } = node;
    const [x, y] = [data[node.x], data[node.y]];
    if (kind === 'add') to(add, { to: x, from: y, count: length, factor: 1 });
    else if (kind === 'init') to(init, { x, plus });
    else if (kind === 'one') to(classes[node.isAsync ? 1 : 0].one, { x, number });
    else to(classes[node.isAsync ? 1 : 0].two, { x, y, number });
  };
  return insert;
}

const start = (i: number, length: number, plus: number): Values =>
  Float64Array.from({ length }, (_, j) => 100 * i + j + plus);

/** Runs random families and compares with recursion; returns the number of runs that failed. On several ranks each of them calls it. */
export async function compareFamilies(
  runtime: Runtime,
  r: Random,
  seed: number,
  failing: boolean,
): Promise<number> {
  const length = 1 + r.below(8);
  // Simulated ranks share a thread: if one of them blocks it for room in its window, no asynchronous body of another one can end.
  const mayFill = runtime.ranks === 1 || runtime.engine.tasks.window > 512;
  const families = new Families(r, failing, mayFill);
  const names = Array.from({ length: 2 + r.below(4) }, (_, i) => `d${i}`);
  const insert = classesOf(families, length);
  let failures = 0;
  const values: Record<string, Values> = {};
  const data: Record<string, Datum<'f64'>> = {};
  for (const [i, name] of names.entries()) {
    values[name] = start(i, length, 0);
    data[name] = runtime.data(values[name], { name, rank: r.below(runtime.ranks) });
  }
  const ofFailure = (code: string): string[] =>
    runtime.ranks === 1 ? [code] : [code, 'ERR_PEER_FAILED'];
  const side: Promise<unknown>[] = [];
  for (let round = 0; round < 3; round++) {
    const roots = Array.from({ length: 3 + r.below(10) }, () => families.family(names, names, 3));
    const isAlone = failing || !mayFill || r.below(3) > 0;
    // A program that does not await inserts all its tasks before the next run begins.
    const program = async (graph: Graph): Promise<void> => {
      for (const [i, root] of roots.entries()) {
        if (!mayFill) await graph.space();
        insert(root, data, (cls, args) => void graph.insert(cls, args as never));
        if (!mayFill) await graph.space();
        if (isAlone && i % 4 === 3) await graph.value(data[names[0]]).catch(() => {});
        if (isAlone && i % 5 === 4) await graph.space();
      }
    };
    // The values at the points between the tasks of the program. A family that fails leaves its datum without one.
    const points = names.map((name) => new Set([values[name].join()]));
    const lost = new Set<string>();
    for (const root of roots) {
      if (lost.has(root.x) || lost.has(root.y)) lost.add(root.x);
      else
        try {
          recurse(root, values);
        } catch (error) {
          if ((error as Error).message !== AS_ASKED) throw error;
          lost.add(root.x);
        }
      for (const [i, name] of names.entries())
        if (!lost.has(name)) points[i].add(values[name].join());
    }
    const { done } = runtime.run(program);
    if (!isAlone) {
      side.push(done);
      continue;
    }
    const error = await soon(
      runtime,
      done.then(
        () => undefined,
        (cause) => cause as HeadraceError,
      ),
    );
    if ((error !== undefined) !== lost.size > 0) throw new Error(`seed ${seed}: ${error}`);
    if (error === undefined) continue;
    if (!ofFailure('ERR_TASK_FAILED').includes(error.code)) throw error;
    failures++;
    for (const [i, name] of names.entries()) {
      const seen = await data[name].read().then(
        (value) => value.join(),
        (cause) => cause as HeadraceError,
      );
      const isRight =
        seen instanceof HeadraceError
          ? ofFailure('ERR_DATUM_POISONED').includes(seen.code)
          : points[i].has(seen);
      if (!isRight) throw new Error(`seed ${seed}: ${name} is ${seen} after a failed run`);
      values[name] = start(i, length, round);
      await data[name].set(values[name]);
    }
  }
  await Promise.all(side);
  for (const name of names) {
    const seen = (await data[name].read()).join();
    if (seen !== values[name].join())
      throw new Error(`seed ${seed}: ${name} is ${seen}, not ${values[name].join()}`);
  }
  await nothingLeft(runtime, Object.values(data));
  return failures;
}
