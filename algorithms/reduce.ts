// Reduction of small data that lie on several ranks, element by element: `reduce` writes the sum, minimum, maximum or norm of all
// inputs to one datum, `allReduce` to several.
//
// The inputs are combined in a binary tree: neighbours in pairs, then the results in pairs, and so on; the last one of an
// odd number goes up a level as it is. Five inputs give ((0 + 1) + (2 + 3)) + 4.
// Invariant: the tree depends on the number of inputs only, and every task combines two values. So the result has the same
// bits for any number of ranks and workers, and for any timing.
import { Datum, type ElementType, type Graph, HeadraceError, Runtime } from '../scheduler/index.js';
import { checkGraph, checkList, wrongType } from './arguments.js';
import {
  combinationOf,
  copyOf,
  isReduceOperation,
  type ReduceOperation,
} from './reduce-classes.js';

/** Data of `reduce`. All have the same element type and shape. */
export interface ReduceData<E extends ElementType = ElementType> {
  /** The values, in the order of their combination; at least one. They are only read, and may lie on any ranks. */
  readonly inputs: readonly Datum<E>[];
  /**
   * Room for the inner nodes of the tree: at least `inputs.length - 2` data, which need no values. `reducePartials` makes
   * them. A combination runs on the owner of the datum that it writes. Reductions that follow each other may share them.
   */
  readonly partials: readonly Datum<NoInfer<E>>[];
  /** Gets the result; needs no value. Its owner is the root. */
  readonly result: Datum<NoInfer<E>>;
}

/** Data of `allReduce`. All have the same element type and shape. */
export interface AllReduceData<E extends ElementType = ElementType>
  extends Omit<ReduceData<E>, 'result'> {
  /** Each gets the result: one datum per rank, as a rule. At least one; they need no values. */
  readonly results: readonly Datum<NoInfer<E>>[];
}

/**
 * Makes the `partials` of reductions of these inputs, each on the rank of the first input that it stands for. Call it before
 * the run, on every rank, as `Runtime.data`. Close the data when no reduction needs them any more.
 *
 * @throws HeadraceError `ERR_ARGUMENT_TYPE`, `ERR_DATUM_CLOSED`, and the errors of `Runtime.data`
 */
export function reducePartials<E extends ElementType>(
  runtime: Runtime,
  inputs: readonly Datum<E>[],
): Datum<E>[] {
  const operation = 'reducePartials';
  if (!(runtime instanceof Runtime)) throw wrongType(operation, 'runtime', 'a Runtime', runtime);
  const nodes = checkList(operation, 'inputs', inputs);
  for (const [i, input] of nodes.entries()) {
    if (!(input instanceof Datum)) throw wrongType(operation, `inputs[${i}]`, 'a datum', input);
    if (!input.closed) continue;
    throw new HeadraceError(
      'ERR_DATUM_CLOSED',
      `${operation}: datum '${input.name}' of inputs[${i}] is closed`,
      { datum: input.name },
    );
  }
  const count = nodes.length;
  // The last combination writes the result.
  for (const [i, [left]] of treeOf(count).slice(0, -1).entries()) {
    const { element, length, rows, rank } = nodes[left];
    nodes.push(runtime.data<E>(element, length, { name: `partial ${i}`, rows, rank }));
  }
  return nodes.slice(count);
}

/**
 * Inserts the tasks that combine the inputs, element by element, into `result`: `inputs.length - 1` tasks with the name of the
 * operation, or a copy of the only input. Their bodies are JavaScript and run on the hosts of the ranks.
 *
 * Sums of f64 and f32 are rounded once per combination, in the order ((0 + 1) + (2 + 3)) + 4 of the inputs. They have the same
 * bits for any number of ranks and workers. Sums of i32, u32 and u8 are those modulo 2^32 and 2^8. A NaN makes the result a
 * NaN, also for 'min' and 'max' (IEEE 754-2019, 9.6). It is always the same quiet NaN. 'hypot' of an infinity and a NaN is an
 * infinity (IEEE 754-2019, 9.2), and of anything else it does not overflow as long as the result does not. -0 is less than +0. A copy of the
 * only input keeps its bits.
 *
 * In a pruned run every rank inserts all of the tasks.
 *
 * @throws HeadraceError `ERR_SHAPE` when there is no input, the shapes differ or partials are missing; `ERR_DUPLICATE_DATUM`
 *   when a datum that is written comes twice; `ERR_ARGUMENT_TYPE`, also for different element types, and the errors of
 *   `Graph.check`, each before the first task is inserted
 */
export function reduce<E extends ElementType>(
  graph: Graph,
  data: ReduceData<E>,
  operation: ReduceOperation,
): void {
  checkCall('reduce', graph, data, operation);
  const { inputs, partials, result } = data;
  const lists = checkLists(
    'reduce',
    graph,
    { inputs, partials, results: [result] },
    () => 'result',
  );
  insertTree(graph, lists, operation);
}

/**
 * Does what `reduce` does, and writes the result to each of `results`: the tree writes the first, and a copy on the rank of
 * each other one follows. If `treeFrom` ranks or more want it, it travels to them along a tree.
 *
 * @throws HeadraceError as `reduce`, and `ERR_SHAPE` when `results` is empty
 */
export function allReduce<E extends ElementType>(
  graph: Graph,
  data: AllReduceData<E>,
  operation: ReduceOperation,
): void {
  checkCall('allReduce', graph, data, operation);
  const { inputs, partials, results } = data;
  const lists = checkLists(
    'allReduce',
    graph,
    { inputs, partials, results },
    (i) => `results[${i}]`,
  );
  insertTree(graph, lists, operation);
  const [from, ...others] = lists.results;
  for (const to of others) graph.insert(copyOf(from.element), { to, from });
}

/** The operands of each combination. Numbers up to `count` are inputs; number `count + i` is the result of combination i. */
function treeOf(count: number): [left: number, right: number][] {
  const pairs: [number, number][] = [];
  let level = Array.from({ length: count }, (_, i) => i);
  while (level.length > 1) {
    const above: number[] = [];
    for (let i = 0; i + 1 < level.length; i += 2) {
      above.push(count + pairs.length);
      pairs.push([level[i], level[i + 1]]);
    }
    if (level.length % 2 === 1) above.push(level[level.length - 1]);
    level = above;
  }
  return pairs;
}

interface Lists {
  readonly inputs: readonly Datum[];
  readonly partials: readonly Datum[];
  readonly results: readonly Datum[];
}

function insertTree(
  graph: Graph,
  { inputs, partials, results }: Lists,
  operation: ReduceOperation,
): void {
  const [result] = results;
  const { element } = result;
  const pairs = treeOf(inputs.length);
  if (pairs.length === 0) graph.insert(copyOf(element), { to: result, from: inputs[0] });
  const nodes = [...inputs];
  for (const [i, [left, right]] of pairs.entries()) {
    const to = i === pairs.length - 1 ? result : partials[i];
    graph.insert(combinationOf(operation, element), { to, left: nodes[left], right: nodes[right] });
    nodes.push(to);
  }
}

function checkCall(name: string, graph: Graph, data: unknown, operation: unknown): void {
  checkGraph(name, graph);
  if (typeof data !== 'object' || data === null) throw wrongType(name, 'data', 'an object', data);
  if (isReduceOperation(operation)) return;
  throw wrongType(name, 'operation', "'sum', 'min', 'max' or 'hypot'", operation);
}

/** Copies of the lists, whose data all tasks can use: what is checked is what is used. */
function checkLists(
  name: string,
  graph: Graph,
  given: Lists,
  resultName: (i: number) => string,
): Lists {
  const inputs = checkList(name, 'inputs', given.inputs);
  const partials = checkList(name, 'partials', given.partials);
  const results = checkList(name, 'results', given.results);
  if (inputs.length === 0) throw new HeadraceError('ERR_SHAPE', `${name} needs at least one input`);
  if (results.length === 0)
    throw new HeadraceError('ERR_SHAPE', `${name} needs at least one of results`);
  const least = Math.max(0, inputs.length - 2);
  if (partials.length < least) {
    throw new HeadraceError(
      'ERR_SHAPE',
      `${name} of ${inputs.length} inputs needs ${least} partials, not ${partials.length}`,
      { remedy: 'make them with reducePartials' },
    );
  }
  const checker = new Checker(name, graph);
  return {
    inputs: inputs.map((input, i) => checker.check(`inputs[${i}]`, input, true)),
    partials: partials.map((partial, i) => checker.check(`partials[${i}]`, partial, false)),
    results: results.map((result, i) => checker.check(resultName(i), result, false)),
  };
}

/** Looks at the data one by one: each can be used, is like the first, and is no other one if it is written. */
class Checker {
  private readonly operation: string;
  private readonly graph: Graph;
  private readonly seen: Map<Datum, string> = new Map();

  constructor(operation: string, graph: Graph) {
    this.operation = operation;
    this.graph = graph;
  }

  check(name: string, datum: unknown, reads: boolean): Datum {
    const { operation, graph, seen } = this;
    if (!(datum instanceof Datum)) throw wrongType(operation, name, 'a datum', datum);
    graph.check(datum, reads, `${operation}: datum '${datum.name}' of ${name}`);
    const before = seen.get(datum);
    if (before !== undefined && !reads) {
      throw new HeadraceError(
        'ERR_DUPLICATE_DATUM',
        `${operation}: ${before} and ${name} are both datum '${datum.name}'`,
        { datum: datum.name },
      );
    }
    seen.set(datum, name);
    this.checkLikeFirst(name, datum);
    return datum;
  }

  private checkLikeFirst(name: string, datum: Datum): void {
    const [[first]] = this.seen;
    const one = first.element === datum.element && first.length === datum.length;
    if (one && first.rows === datum.rows) return;
    const shown = ({ name: called, element, rows, columns }: Datum): string =>
      `'${called}' (${rows} x ${columns} of ${element})`;
    throw new HeadraceError(
      first.element === datum.element ? 'ERR_SHAPE' : 'ERR_ARGUMENT_TYPE',
      `${this.operation}: ${name} must be like inputs[0], but they are ${shown(datum)} and ${shown(first)}`,
      { datum: datum.name },
    );
  }
}
