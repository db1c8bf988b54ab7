// Declared graphs: small graphs of named tasks with explicit dependencies, declared in any order. They are validated (an
// error names the cycle), exchanged as JSON, and inserted in a topological order. They use graphlib, whose algorithms
// recurse, so their size is limited. A program inserts big graphs task by task.
// Invariant: node ids have a prefix, so no task name collides with a property of an object.

import { alg, Graph as Graphlib } from '@dagrejs/graphlib';
import { HeadraceError } from '../../devices/errors.js';
import type { TaskHandle } from '../../devices/handles.js';
import { optionsOf, reading, shown } from '../checks.js';
import { checkGraph, type Graph, type TaskArguments, type TaskOptions } from './graph.js';
import { TASK_OPTIONS } from './task-arguments.js';
import type { Flows, Parameters, TaskClass } from './task-class.js';

/** Largest declared graph. */
const MAX_TASKS = 1000;

/** A copy of an array of names; undefined for another value. */
function namesIn(given: unknown, of: string): string[] | undefined {
  const names = reading('ERR_ARGUMENT_TYPE', `after of ${of}`, () =>
    Array.isArray(given) ? [...(given as unknown[])] : undefined,
  );
  return names?.every((name) => typeof name === 'string') === true ? names : undefined;
}

/** One task of a declared graph. */
export interface DeclaredTask {
  readonly name: string;
  /** Names of the tasks that must be over first. */
  readonly after: readonly string[];
}

/** A declared graph without its bodies, for exchange: graphlib's JSON with task names as values. */
export interface GraphJson {
  readonly nodes: readonly { readonly v: string; readonly value: string }[];
  readonly edges: readonly { readonly v: string; readonly w: string }[];
}

type Insert = (graph: Graph, after: readonly TaskHandle[]) => TaskHandle;

/** A graph of named tasks, declared in any order, validated before it is inserted. */
export class DeclaredGraph {
  private readonly inserts: Map<string, Insert> = new Map();
  private readonly afters: Map<string, readonly string[]> = new Map();

  /**
   * Declares a task. `after` may name tasks that are declared later.
   * @throws HeadraceError `ERR_ARGUMENT_TYPE`, `ERR_OPTION`, `ERR_DUPLICATE_TASK`, `ERR_GRAPH_TOO_LARGE`
   */
  add<F extends Flows, P extends Parameters>(
    name: string,
    cls: TaskClass<F, P>,
    args: TaskArguments<F, P>,
    options: Omit<TaskOptions, 'after'> & { readonly after?: readonly string[] } = {},
  ): this {
    if (typeof name !== 'string')
      throw new HeadraceError('ERR_ARGUMENT_TYPE', `a task needs a name, not ${shown(name)}`);
    const of = `the options of task ${shown(name)}`;
    const { after: given, ...rest } = optionsOf(options, TASK_OPTIONS, of);
    const after = given === undefined ? [] : namesIn(given, of);
    if (after === undefined) {
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `task ${shown(name)}: after needs an array of task names, not ${shown(given)}`,
        { remedy: "write after: ['name']" },
      );
    }
    if (this.inserts.has(name)) {
      throw new HeadraceError('ERR_DUPLICATE_TASK', `the graph has a task '${name}' already`, {
        task: name,
      });
    }
    if (this.inserts.size >= MAX_TASKS) {
      throw new HeadraceError(
        'ERR_GRAPH_TOO_LARGE',
        `a declared graph has at most ${MAX_TASKS} tasks`,
        {
          limit: MAX_TASKS,
          remedy: 'insert tasks with graph.insert instead',
        },
      );
    }
    this.afters.set(name, after);
    this.inserts.set(name, (graph, handles) =>
      graph.insert(cls, args, { ...rest, after: handles }),
    );
    return this;
  }

  /** The declared tasks in declaration order. */
  get tasks(): DeclaredTask[] {
    return [...this.afters].map(([name, after]) => ({ name, after }));
  }

  /**
   * Checks that every named predecessor exists and that there is no cycle; returns the names in an order that respects
   * all dependencies.
   * @throws HeadraceError `ERR_UNKNOWN_TASK`, or `ERR_CYCLE` whose `details.cycle` names the tasks in order
   */
  validate(): string[] {
    const graph = this.toGraphlib();
    if (!alg.isAcyclic(graph)) {
      const cycle = findCycle(graph);
      throw new HeadraceError('ERR_CYCLE', `the graph has a cycle: ${cycle.join(' -> ')}`, {
        cycle,
      });
    }
    return alg.topsort(graph).map(nameOf);
  }

  /** Inserts all tasks into a run's graph; returns their handles by name. @throws HeadraceError `ERR_ARGUMENT_TYPE` for a value that is no graph */
  insertInto(graph: Graph): Map<string, TaskHandle> {
    checkGraph(graph, 'a declared graph');
    const handles = new Map<string, TaskHandle>();
    for (const name of this.validate()) {
      const after = (this.afters.get(name) ?? []).map((p) => handles.get(p) as TaskHandle);
      handles.set(name, (this.inserts.get(name) as Insert)(graph, after));
    }
    return handles;
  }

  /** The graph as a graphlib graph: an edge leads from a task to each of its successors. */
  toGraphlib(): Graphlib {
    const graph = new Graphlib({ directed: true });
    for (const name of this.afters.keys()) graph.setNode(idOf(name), name);
    for (const [name, after] of this.afters) {
      for (const predecessor of after) {
        if (!this.afters.has(predecessor)) {
          throw new HeadraceError(
            'ERR_UNKNOWN_TASK',
            `task '${name}' comes after '${predecessor}', which is not declared`,
            {
              task: name,
            },
          );
        }
        graph.setEdge(idOf(predecessor), idOf(name));
      }
    }
    return graph;
  }

  /** Names and dependencies as plain JSON. */
  toJSON(): GraphJson {
    const graph = this.toGraphlib();
    return {
      nodes: graph.nodes().map((v) => ({ v, value: nameOf(v) })),
      edges: graph.edges().map(({ v, w }) => ({ v, w })),
    };
  }
}

function idOf(name: string): string {
  return `t:${name}`;
}

function nameOf(id: string): string {
  return id.slice(2);
}

/** One cycle of a graph that has one; its first and last names are equal. */
function findCycle(graph: Graphlib): string[] {
  const members = new Set(alg.findCycles(graph)[0] ?? graph.nodes());
  const start = members.values().next().value as string;
  const path: string[] = [start];
  const seen = new Set(path);
  for (let at = start; ; ) {
    const onward = (graph.successors(at) ?? []).filter((n) => members.has(n));
    const next = onward.find((n) => n === start) ?? onward.find((n) => !seen.has(n)) ?? onward[0];
    if (next === undefined) return path.map(nameOf);
    if (seen.has(next)) return [...path.slice(path.indexOf(next)), next].map(nameOf);
    path.push(next);
    seen.add(next);
    at = next;
  }
}
