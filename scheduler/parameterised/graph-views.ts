// An instance of a parameterised graph as a graphlib graph, to be drawn or looked through: its classes, or its tasks.
// Invariant: the name of a node has parentheses, so none collides with a property of an object.

import { Graph as Graphlib } from '@dagrejs/graphlib';
import type { GraphClass } from './graph-class.js';
import { type TaskEdge, Unrolled } from './unrolled.js';

/** A node of `classGraph`. */
export interface ClassNode {
  /** Name of the class in its graph. */
  readonly class: string;
  /** Name of the task class that its tasks run. */
  readonly runs: string;
  /** Names of its indices. */
  readonly indices: readonly string[];
  /** Number of its tasks in the instance. */
  readonly tasks: number;
}

/** A node of `taskGraph`. */
export interface TaskNode {
  /** Name of the class in its graph. */
  readonly class: string;
  /** Name of the task class that the task runs. */
  readonly runs: string;
  /** The indices of the task, by name. */
  readonly indices: Readonly<Record<string, number>>;
}

/** The label of an edge of `classGraph` and `taskGraph`. */
export interface FlowLabel {
  /** The flow or control flow of the sender. */
  readonly output: string;
  /** The flow or control flow of the receiver. */
  readonly input: string;
  /** An order without data. */
  readonly isControl: boolean;
  /** How many edges between two tasks it stands for. */
  readonly count: number;
  /** How many of them are a mistake: only one of their two tasks names them. `verify` says which. */
  readonly unmatched: number;
}

/** @internal */
export function classGraph(
  name: string,
  classes: readonly GraphClass[],
): Graphlib<string, ClassNode, FlowLabel> {
  const graph = emptyGraph<ClassNode>(name);
  const { tasks, edges } = new Unrolled(classes);
  const counts = classes.map(() => 0);
  for (const { cls } of tasks) counts[cls.number]++;
  const names = classes.map((cls) => `${cls.name}(${cls.indexNames.join(', ')})`);
  for (const cls of classes) {
    const { runs, indexNames, number } = cls;
    graph.setNode(names[number], {
      ...{ class: cls.name, runs: runs.name },
      ...{ indices: indexNames, tasks: counts[number] },
    });
  }
  const nameOf = (task: number): string => names[tasks[task].cls.number];
  for (const edge of edges) addEdge(graph, nameOf(edge.from), nameOf(edge.to), edge);
  return graph;
}

/** @internal */
export function taskGraph(
  name: string,
  classes: readonly GraphClass[],
): Graphlib<string, TaskNode, FlowLabel> {
  const graph = emptyGraph<TaskNode>(name);
  const { tasks, edges } = new Unrolled(classes);
  for (const task of tasks) {
    const { cls, indices } = task;
    graph.setNode(task.name, { class: cls.name, runs: cls.runs.name, indices });
  }
  for (const edge of edges) addEdge(graph, tasks[edge.from].name, tasks[edge.to].name, edge);
  return graph;
}

function emptyGraph<N>(name: string): Graphlib<string, N, FlowLabel> {
  const graph = new Graphlib<string, N, FlowLabel>({ directed: true, multigraph: true });
  return graph.setGraph(name);
}

/** Adds the edge, or counts it if the two nodes have one between these flows. */
function addEdge<N>(
  graph: Graphlib<string, N, FlowLabel>,
  from: string,
  to: string,
  { output, input, isControl, isMatched }: TaskEdge,
): void {
  const name = `${output} -> ${input}`;
  const known: FlowLabel | undefined = graph.edge(from, to, name);
  const count = (known?.count ?? 0) + 1;
  const unmatched = (known?.unmatched ?? 0) + (isMatched ? 0 : 1);
  graph.setEdge(from, to, { output, input, isControl, count, unmatched }, name);
}
