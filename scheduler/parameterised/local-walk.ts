// Inserts the tasks of this rank of an instance, and no others: a rank enumerates its own tasks in an order that all ranks share, and
// reads from their edges what other ranks send and take. So its time and memory do not grow with the tasks of other ranks.
//
// Every task runs where the data are owned that it writes, so the versions of a datum are made on one rank, in the order. A version goes to
// each rank that runs one of its targets (local-sends.ts). Before the first of its tasks that takes a version of another rank, the
// rank plans a receive. The values of data from before the graph go to the ranks that `inputs` and `share` name.
// Invariants: sends and receives of a datum between two ranks are planned in the order of its versions on both, one for each version
// and rank (scheduler/ranks/local-rank.ts): the readers of a version come before the task that overwrites it, also in the order. And
// whatever a rank waits for depends on tasks with smaller positions only, so some rank can always go on.

import type { TaskHandle } from '../../devices/handles.js';
import type { Datum } from '../program/datum.js';
import { Datum as DatumClass } from '../program/datum.js';
import type { Graph, TaskArguments, TaskOptions } from '../program/graph.js';
import type { Flows, Parameters } from '../program/task-class.js';
import type { LocalRank } from '../ranks/local-rank.js';
import { FlowEnd, type Indices, type Source } from './ends.js';
import type { GraphClass } from './graph-class.js';
import { insertHomeCopy } from './home-copy.js';
import { LocalChecks } from './local-checks.js';
import { LocalControls } from './local-controls.js';
import type { LocalInputs } from './local-inputs.js';
import {
  againstOrder,
  homeElsewhere,
  nameOf,
  noList,
  notOwned,
  otherDatum,
  staleInput,
} from './local-mistakes.js';
import { LocalSends, type TargetVisitor } from './local-sends.js';
import { LocalTasks, positionOf } from './local-tasks.js';
import { LocalTrees } from './local-trees.js';
import { BEFORE, LocalVersions } from './local-versions.js';
import { Portion } from './portion.js';

/** @internal */
export class LocalWalk implements TargetVisitor {
  private readonly graph: Graph;
  private readonly local: LocalRank;
  private readonly classes: readonly GraphClass[];
  private readonly inputs: LocalInputs;
  private readonly portion: Portion;
  private readonly versions: LocalVersions = new LocalVersions();
  /** The data of the task that is being inserted, by flow. */
  private readonly data: Datum[] = [];
  private readonly sends: LocalSends;
  /** The flow that is being sent. */
  private output = 0;
  private readonly checks: LocalChecks | undefined;
  private readonly trees: LocalTrees;
  private readonly controls: LocalControls;
  /** Undefined before the first task. */
  private tasks: LocalTasks | undefined;
  /** Tasks inserted so far. */
  count = 0;
  /** The task that is being inserted. */
  private cls: GraphClass;
  private indices: Indices = {};
  private position = 0;

  /** `inputs`: data that tasks of other ranks read as they were before the graph. */
  constructor(graph: Graph, local: LocalRank, classes: readonly GraphClass[], inputs: LocalInputs) {
    this.graph = graph;
    this.local = local;
    this.classes = classes;
    this.inputs = inputs;
    this.portion = new Portion(graph);
    this.sends = new LocalSends(local, this.portion);
    this.cls = classes[0];
    this.trees = new LocalTrees(classes, local.treeFrom);
    this.checks = graph.isChecked ? new LocalChecks(classes, inputs, local.rank) : undefined;
    this.controls = new LocalControls(classes, local.rank, this.checks);
  }

  /**
   * Inserts the tasks of this rank; returns their number.
   * @throws HeadraceError the errors of `ParameterisedGraph.insertInto`
   */
  run(): number {
    while (this.advance(Number.POSITIVE_INFINITY));
    return this.count;
  }

  /**
   * Inserts the next tasks of this rank, at most so many. Returns whether it has to be called again.
   * @throws HeadraceError the errors of `ParameterisedGraph.insertInto`
   */
  advance(most: number): boolean {
    const { portion } = this;
    try {
      const tasks = this.tasks ?? this.begin();
      if (!this.insertNext(tasks, most)) return true;
      this.sends.before(Infinity);
      this.checks?.ended();
      this.controls.ended();
    } finally {
      // An error of these tasks comes before that of the walk.
      portion.insert();
    }
    this.local.ended();
    return false;
  }

  private begin(): LocalTasks {
    this.inputs.send(this.local, this.sends, this.trees.areNone);
    this.tasks = new LocalTasks(this.classes, this.local.rank, this.local.size);
    return this.tasks;
  }

  /** Returns whether the last task was inserted. */
  private insertNext(tasks: LocalTasks, most: number): boolean {
    const { checks } = this;
    for (let n = 0; n < most; n++) {
      const cls = tasks.take();
      if (cls === undefined) return true;
      checks?.took(cls, tasks.indices);
      this.cls = cls;
      this.indices = tasks.indices;
      this.position = tasks.position;
      this.insert();
      this.count++;
    }
    return false;
  }

  private get name(): string {
    return nameOf(this.cls, this.indices);
  }

  private insert(): void {
    const { cls, indices, position, versions, data, sends, trees } = this;
    const { from, isWritten, sending } = cls;
    sends.before(position);
    if (cls.runs.lists === undefined) this.place();
    else this.placeLists();
    for (let f = 0; f < from.length; f++) if (isWritten[f]) versions.set(data[f], position);
    for (let n = 0; n < sending.length; n++) {
      const f = sending[n];
      const to = cls.to[f];
      if (to === undefined) continue;
      this.output = f;
      sends.send(data[f], to(indices), !trees.has(cls, f), this);
    }
  }

  private place(): void {
    const { cls, indices, portion, data } = this;
    const { from, isWritten } = cls;
    for (let f = 0; f < from.length; f++) {
      const source = from[f](indices) as Source;
      data[f] = isWritten[f] ? this.overwritten(f, source) : this.input(f, source);
    }
    const given = portion.data;
    for (let f = 0; f < from.length; f++) given[f] = data[f];
    if (cls.hasControls) this.placeOrdered(given);
    else portion.add(cls.runs, cls.params?.(indices), this.options(undefined));
  }

  /** As `place`, for a task with control flows: others may need its handle. */
  private placeOrdered(given: readonly Datum[]): void {
    const { cls, indices, position, graph, portion, controls } = this;
    portion.insert();
    const after = controls.before(cls, indices, position);
    const params = cls.params?.(indices);
    const handle = graph.insertInOrder(cls.runs, given, params, this.options(after));
    controls.inserted(cls, indices, handle);
  }

  /** As `place`, for a task with lists. */
  private placeLists(): void {
    const { cls, indices, position, graph, portion, data, controls } = this;
    const { from, isWritten, runs, params } = cls;
    const args: Record<string, unknown> = { ...params?.(indices) };
    for (let f = 0; f < from.length; f++) {
      const name = this.flow(f);
      const source = from[f](indices);
      if (runs.lists?.[f] === 1) {
        if (!Array.isArray(source)) throw noList(this.name, name, source);
        args[name] = (source as Source[]).map((one) => this.input(f, one));
        continue;
      }
      data[f] = isWritten[f]
        ? this.overwritten(f, source as Source)
        : this.input(f, source as Source);
      args[name] = data[f];
    }
    portion.insert();
    const after = cls.hasControls ? controls.before(cls, indices, position) : undefined;
    const given = args as TaskArguments<Flows, Parameters>;
    const handle = graph.insert(runs, given, this.options(after));
    if (cls.hasControls) controls.inserted(cls, indices, handle);
  }

  private options(after: readonly TaskHandle[] | undefined): TaskOptions {
    const { cls, indices, local } = this;
    const priority = cls.priority === undefined ? 0 : cls.priority(indices);
    // `insert` takes undefined for an option that is not given. One shape of object is the fastest.
    return { priority, device: cls.device?.(indices), rank: local.rank, after } as TaskOptions;
  }

  /** The datum that flow `f` of the task overwrites. */
  private overwritten(f: number, source: Source): Datum {
    const { cls, indices, versions, local } = this;
    const datum = (cls.datum[f] as (of: Indices) => Datum)(indices);
    if (!local.holds(datum)) throw notOwned(this.name, this.flow(f), datum, local.rank);
    let wanted = BEFORE;
    if (source instanceof FlowEnd) {
      const sender = source.cls as GraphClass;
      const its = sender.datum[source.flow]?.(source.indices);
      if (its !== datum) throw otherDatum(this.name, this.flow(f), datum, `'${its?.name}'`);
      wanted = this.positionOf(f, source);
    } else if (source !== datum)
      throw otherDatum(this.name, this.flow(f), datum, sourceName(source));
    if (versions.of(datum) !== wanted) throw staleInput(this.name, this.flow(f), datum);
    return datum;
  }

  /** The datum that flow `f` of the task reads. If its version is on another rank, the next task that reads it receives it. */
  private input(f: number, source: Source): Datum {
    const { versions, local, cls, indices } = this;
    if (!(source instanceof FlowEnd)) {
      const datum = source as Datum;
      if (!local.has(datum)) this.checks?.reads(cls, indices, f, datum);
      if (versions.of(datum) !== BEFORE) throw staleInput(this.name, this.flow(f), datum);
      return datum;
    }
    const sender = source.cls as GraphClass;
    const datum = (sender.datum[source.flow] as (of: Indices) => Datum)(source.indices);
    const wanted = this.positionOf(f, source);
    const here = versions.of(datum);
    if (here === wanted) return datum;
    const rank = sender.rankOf(source.indices) as number;
    if (rank === local.rank || here > wanted) throw staleInput(this.name, this.flow(f), datum);
    // The tasks that read the version before are inserted first.
    this.portion.insert();
    local.comesFrom(datum, rank, !this.trees.has(sender, source.flow));
    versions.set(datum, wanted);
    return datum;
  }

  /** The position of the task that sends the input of flow `f`. */
  private positionOf(f: number, source: FlowEnd): number {
    this.checks?.takes(this.cls, this.indices, f, source);
    const position = positionOf(source.cls as GraphClass, source.indices);
    if (position < this.position) return position;
    throw againstOrder(this.name, this.position, source, position);
  }

  /** The output of a task goes to a flow of another task. */
  target(end: FlowEnd): void {
    this.checks?.sends(this.cls, this.indices, this.output, end);
  }

  /** The output of a task goes home. */
  home(home: Datum): void {
    const { graph, local, portion, versions, position, output: f } = this;
    if (home === this.data[f]) return;
    if (!local.holds(home)) throw homeElsewhere(this.name, this.flow(f), home);
    portion.insert();
    insertHomeCopy(graph, this.data[f], home, () => `'${this.flow(f)}' of ${this.name}`);
    versions.set(home, position);
  }

  private flow(f: number): string {
    return this.cls.runs.flowNames[f];
  }
}

function sourceName(source: Source): string {
  return source instanceof DatumClass ? `'${source.name}'` : 'a temporary';
}
