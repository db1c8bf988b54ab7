// A parameterised graph: classes of tasks indexed by integers, whose edges are functions of the indices. It is never a list of
// tasks: an instance is unrolled as it is inserted (walk.ts).

import type { Graph as Graphlib } from '@dagrejs/graphlib';
import { HeadraceError } from '../../devices/errors.js';
import { describeThrown } from '../../trace/thrown.js';
import { checkText, entriesOf, isInstance, isRecord, shown } from '../checks.js';
import { promiseOf } from '../engine/thenable.js';
import { Datum } from '../program/datum.js';
import type { ElementType } from '../program/element-type.js';
import { checkGraph, type Graph } from '../program/graph.js';
import { functionMistake } from './class-functions.js';
import type {
  ClassDeclaration,
  ClassDefinition,
  ClassEnds,
  Declarations,
  InputDefinition,
} from './definition.js';
import { ControlEnd, FlowEnd, type Indices } from './ends.js';
import { GraphClass, type LooseDefinition } from './graph-class.js';
import {
  type ClassNode,
  classGraph,
  type FlowLabel,
  type TaskNode,
  taskGraph,
} from './graph-views.js';
import { LocalInputs, type LooseInputs } from './local-inputs.js';
import { whyNotLocal } from './local-rules.js';
import { LocalWalk } from './local-walk.js';
import { checkPromises } from './repeat-checks.js';
import { type GraphCheck, verify } from './verify.js';
import { Walk } from './walk.js';

/** Tasks of a rank between two looks at the room in its window. With their movements they take a small part of the smallest one. */
const TURN = 32;

/** Codes of errors that a value of a function may cause without being named. */
const OF_FUNCTIONS: readonly string[] = [
  ...['ERR_NO_TILE', 'ERR_OPTION', 'ERR_ARGUMENT_TYPE', 'ERR_MISSING_ARGUMENT', 'ERR_NO_DEVICE'],
  ...['ERR_DATUM_CLOSED', 'ERR_GRAPH_EDGE', 'ERR_GRAPH_TOO_LARGE', 'ERR_GRAPH_CLASS'],
];

/** Takes the classes of one instance. */
export class ClassBuilder {
  /** @internal */
  readonly classes: GraphClass[] = [];
  /** @internal */
  readonly inputTable: LocalInputs = new LocalInputs();
  private readonly byEnds: Map<object, GraphClass> = new Map();

  /**
   * Declares classes of tasks. The result has, by the name of each class, functions from the indices of a task to its flows and
   * control flows, for the edges of all classes.
   * @throws HeadraceError `ERR_GRAPH_CLASS`
   */
  declare<const D extends Declarations>(
    declarations: D,
  ): { readonly [K in keyof D]: ClassEnds<D[K]> } {
    if (!isRecord(declarations))
      throw new HeadraceError(
        'ERR_GRAPH_CLASS',
        `declare needs an object of declarations, not ${shown(declarations)}`,
        { remedy: "declare({ name: { runs: taskClass, indices: ['i'] } })" },
      );
    const all: Record<string, object> = {};
    for (const [name, declaration] of entriesOf(
      declarations,
      'ERR_GRAPH_CLASS',
      'the declarations',
    )) {
      const cls = new GraphClass(name, this.classes.length, declaration as ClassDeclaration);
      this.classes.push(cls);
      const ends: Record<string, (of: Indices) => FlowEnd | ControlEnd> = {};
      cls.runs.flowNames.forEach((flow, f) => {
        ends[flow] = (of) => new FlowEnd(cls, f, of);
      });
      cls.controlNames.forEach((control, c) => {
        ends[control] = (of) => new ControlEnd(cls, c, of);
      });
      this.byEnds.set(ends, cls);
      all[name] = ends;
    }
    return all as { readonly [K in keyof D]: ClassEnds<D[K]> };
  }

  /**
   * Defines a declared class.
   * @throws HeadraceError `ERR_GRAPH_CLASS`, `ERR_OPTION`
   */
  define<D extends ClassDeclaration>(cls: ClassEnds<D>, definition: ClassDefinition<D>): void {
    const known = this.byEnds.get(cls);
    if (known === undefined)
      throw new HeadraceError('ERR_GRAPH_CLASS', `${shown(cls)} is no declared class`, {
        remedy: 'declare it with `declare` of the same builder',
      });
    known.define(definition as unknown as LooseDefinition);
  }

  /**
   * Data that tasks on any ranks read as they were before the graph, such as constants. Where ranks look at their own tasks only
   * (`order` of a class), every rank gets them when the instance begins; otherwise it has no effect.
   * @throws HeadraceError `ERR_ARGUMENT_TYPE`
   */
  share(...data: readonly Datum[]): void {
    const wrong = data.find((one) => !isInstance(one, Datum));
    if (wrong !== undefined || data.includes(undefined as never))
      throw new HeadraceError('ERR_ARGUMENT_TYPE', `share takes data, not ${shown(wrong)}`);
    this.inputTable.shared.push(...data);
  }

  /**
   * Data that tasks of other ranks read as they were before the graph, with the flows that take them. Where ranks look at their own tasks
   * only (`order` of a class), the owner of a datum finds its readers here; otherwise it has no effect.
   * @throws HeadraceError `ERR_GRAPH_CLASS`, `ERR_OPTION`
   */
  inputs<const I extends readonly string[], E extends ElementType>(
    definition: InputDefinition<I, E>,
  ): void {
    this.inputTable.add(definition as unknown as LooseInputs);
  }
}

/** A task graph in functions of indices. Made by `parameterised`. */
export class ParameterisedGraph<A = void> {
  /** Shown in errors. */
  readonly name: string;
  private readonly build: (builder: ClassBuilder, args: A) => void;

  /** @internal Use `parameterised`. */
  constructor(name: string, build: (builder: ClassBuilder, args: A) => void) {
    this.name = checkText(name, 'the name of a graph');
    if (typeof build !== 'function')
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `graph '${name}' needs a function that builds it, not ${shown(build)}`,
      );
    this.build = build;
  }

  /**
   * Inserts the tasks of an instance into a run or a plan, after all tasks inserted so far and before all later ones. Returns
   * their number.
   *
   * @throws HeadraceError the errors of `Graph.insert`; `ERR_ARGUMENT_TYPE` for a value that is no graph; `ERR_GRAPH_CLASS` for a class
   *   that is not defined; and for mistakes of edges `ERR_GRAPH_EDGE`, `ERR_GRAPH_RANGE`, `ERR_GRAPH_VERSION` and, if tasks are left, `ERR_GRAPH_STALLED`; in a checked runtime
   *   `ERR_GRAPH_REPEAT` for a class that does not repeat as it promises. The run then has the tasks before the mistake.
   */
  insertInto(graph: Graph, args: A): number {
    checkGraph(graph, `graph '${this.name}'`);
    const builder = this.built(args);
    return this.named(builder, () => this.walk(graph, builder).run());
  }

  /**
   * As `insertInto`, and serves the event loop whenever half a window of tasks waits to be run. So several ranks of one process insert
   * in turn, and the memory of each is in proportion to its window. Until it resolves, nothing else may be inserted on any rank: the
   * ranks would not agree on what comes before the instance and what behind it. An instance in which a rank walks over all tasks is
   * inserted at once.
   *
   * @internal
   */
  async insertInTurns(graph: Graph, args: A): Promise<number> {
    const builder = this.built(args);
    const walk = this.named(builder, () => this.walk(graph, builder));
    if (walk instanceof Walk) return this.named(builder, () => walk.run());
    while (this.named(builder, () => walk.advance(TURN))) await graph.space();
    return walk.count;
  }

  private walk(graph: Graph, { classes, inputTable }: ClassBuilder): Walk | LocalWalk {
    if (graph.isChecked) checkPromises(classes);
    const local = whyNotLocal(classes) === undefined ? graph.local() : undefined;
    return local === undefined
      ? new Walk(graph, classes)
      : new LocalWalk(graph, local, classes, inputTable);
  }

  /**
   * Why every rank walks over all tasks of an instance, in words. Undefined if in a pruned run a rank looks at its own tasks only
   * (docs/parameterised-graphs.md has the rules).
   *
   * @throws HeadraceError `ERR_GRAPH_CLASS`
   */
  whyNotLocal(args: A): string | undefined {
    return whyNotLocal(this.instance(args));
  }

  /**
   * Unrolls a small instance, runs nothing, and says what is wrong with it: edges that only one of their ends knows, inputs that
   * arrive twice, targets outside of the ranges, first tasks outside of `starts`, a cycle, data that tasks use without an
   * order, temporaries that no task reads, classes that do not repeat as they promise, and data whose last version does not come home; and, if all classes have an `order`, wrong
   * positions, `own` ranges and data of flows. Cycles are looked for when the edges are right, the rest when there is no cycle.
   *
   * @throws HeadraceError `ERR_GRAPH_CLASS`; `ERR_GRAPH_TOO_LARGE` for more than 10 000 tasks
   */
  verify(args: A): GraphCheck {
    const builder = this.built(args);
    return this.named(builder, () => verify(builder.classes, builder.inputTable));
  }

  /**
   * The classes as nodes and their flows as edges: a directed graphlib multigraph. A node is called as in `trsm(k, i)`, an edge as in
   * `b -> a`; parallel edges are parallel flows. Functions of indices say nothing before they are called, so the edges are those of the
   * instance: it has to be large enough for every edge, and small. Sources and targets that are data are no edges.
   *
   * @throws HeadraceError `ERR_GRAPH_CLASS`; `ERR_GRAPH_TOO_LARGE` for more than 10 000 tasks
   */
  classGraph(args: A): Graphlib<string, ClassNode, FlowLabel> {
    const builder = this.built(args);
    return this.named(builder, () => classGraph(this.name, builder.classes));
  }

  /**
   * As `classGraph`, with the tasks of the instance as nodes, called as in `trsm(k=0, i=2)`.
   *
   * @throws HeadraceError `ERR_GRAPH_CLASS`; `ERR_GRAPH_TOO_LARGE` for more than 10 000 tasks
   */
  taskGraph(args: A): Graphlib<string, TaskNode, FlowLabel> {
    const builder = this.built(args);
    return this.named(builder, () => taskGraph(this.name, builder.classes));
  }

  /** Whether an instance needs arguments. @internal */
  get takesArguments(): boolean {
    return this.build.length > 1;
  }

  /** @internal */
  instance(args: A): readonly GraphClass[] {
    return this.built(args).classes;
  }

  /** What `use` returns. If it throws because of a function of a class, the error names that. */
  private named<T>({ classes }: ClassBuilder, use: () => T): T {
    try {
      return use();
    } catch (cause) {
      const isKnown = isInstance(cause, HeadraceError);
      const isNamed = isKnown && cause.details.task !== undefined;
      if (isNamed || (isKnown && !OF_FUNCTIONS.includes(cause.code))) throw cause;
      const mistake = functionMistake(classes);
      if (mistake !== undefined || isKnown) throw mistake ?? cause;
      const text = `the functions of graph '${this.name}' failed: ${describeThrown(cause)}`;
      throw new HeadraceError('ERR_GRAPH_CLASS', text, { cause });
    }
  }

  private built(args: A): ClassBuilder {
    const builder = new ClassBuilder();
    let result: unknown;
    try {
      result = this.build(builder, args);
    } catch (cause) {
      if (isInstance(cause, HeadraceError)) throw cause;
      throw new HeadraceError(
        'ERR_GRAPH_CLASS',
        `graph '${this.name}' cannot be built from its arguments: ${describeThrown(cause)}`,
        { cause },
      );
    }
    const later = promiseOf(result);
    if (later !== undefined) {
      // Nobody awaits it.
      later.catch(() => {});
      throw new HeadraceError(
        'ERR_GRAPH_CLASS',
        `the function that builds graph '${this.name}' returns a promise`,
        { remedy: 'await what it needs before, and pass that as arguments' },
      );
    }
    const open = builder.classes.find(({ isDefined }) => !isDefined);
    if (open === undefined) return builder;
    throw new HeadraceError(
      'ERR_GRAPH_CLASS',
      `class '${open.name}' of graph '${this.name}' is declared and not defined`,
    );
  }
}

/**
 * A graph of tasks whose edges are functions of indices (docs/parameterised-graphs.md). `build` declares and defines the classes of
 * an instance, from the arguments of that instance.
 */
export function parameterised<A = void>(
  name: string,
  build: (builder: ClassBuilder, args: A) => void,
): ParameterisedGraph<A> {
  return new ParameterisedGraph(name, build);
}
