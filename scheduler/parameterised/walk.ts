// Unrolls an instance of a parameterised graph as its tasks become known, and inserts them. A task is inserted when all tasks
// that it has inputs from have been inserted: the engine then orders it behind them by its data, and control flows become
// `after`. On several ranks the walk is the same on all of them.
// Invariant: the order of insertion is a topological order of the graph, so it runs to its end unless the graph has a mistake.

import { HeadraceError } from '../../devices/errors.js';
import type { TaskHandle } from '../../devices/handles.js';
import { shown } from '../checks.js';
import { Datum } from '../program/datum.js';
import type { Graph, TaskArguments, TaskOptions } from '../program/graph.js';
import type { Flows, Parameters } from '../program/task-class.js';
import { FlowEnd, type Source, type Targets, Temporary } from './ends.js';
import { FirstTasks } from './first-tasks.js';
import type { GraphClass } from './graph-class.js';
import { eachControl, type GraphTask } from './graph-task.js';
import { insertHomeCopy } from './home-copy.js';
import { noRank } from './local-mistakes.js';
import { Portion } from './portion.js';
import { PriorityHeap } from './priority-heap.js';
import { type Pruning, pruningOf } from './pruning.js';
import { ReadyQueue, type ReadyTasks } from './ready-tasks.js';
import { LEAST_GAP, Rounds } from './rounds.js';
import { standstill } from './standstill.js';
import { UsedDatum, Value } from './values.js';
import { WaitingTasks } from './waiting-tasks.js';

/** Tasks without predecessors that are taken at a time. */
const FIRST_TASKS = 256;

/** @internal */
export class Walk {
  readonly classes: readonly GraphClass[];
  readonly waiting: WaitingTasks;
  private readonly graph: Graph;
  private readonly ready: ReadyTasks;
  private readonly first: FirstTasks;
  /** The data that are there before the graph. */
  readonly data: Map<Datum, UsedDatum> = new Map();
  /** Those that the instance has made and not freed. */
  private readonly temporaries: Set<Datum> = new Set();
  private readonly pruning: Pruning | undefined;
  private readonly portion: Portion;
  /** Inserted tasks by class, those that this rank skips included. */
  readonly counts: number[];
  readonly isChecked: boolean;
  private readonly rounds: Rounds | undefined;
  /** Insertions before the next look at the rounds. */
  private untilLook: number = LEAST_GAP;

  constructor(graph: Graph, classes: readonly GraphClass[]) {
    this.graph = graph;
    this.classes = classes;
    const hasPriorities = classes.some(({ priority }) => priority !== undefined);
    this.ready = hasPriorities ? new PriorityHeap<GraphTask>() : new ReadyQueue();
    this.waiting = new WaitingTasks(classes, this.ready);
    this.first = new FirstTasks(classes);
    this.pruning = graph.skips() ? pruningOf(graph, classes) : undefined;
    this.counts = classes.map(() => 0);
    this.isChecked = graph.isChecked;
    this.portion = new Portion(graph);
    const isPlain = graph.ranks === 1 && this.pruning === undefined && classes.every(mayRepeat);
    if (isPlain && this.ready instanceof ReadyQueue)
      this.rounds = new Rounds(this, this.ready, this.portion);
  }

  /** Inserts all tasks; returns their number. @throws HeadraceError the errors of `ParameterisedGraph.insertInto` */
  run(): number {
    try {
      this.insertAll();
    } catch (error) {
      try {
        // An error of these tasks comes before that of the walk.
        this.portion.insert();
      } finally {
        // The tasks that would have been the last to use them are not inserted.
        for (const datum of this.temporaries) this.graph.freeTemporary(datum);
      }
      throw error;
    }
    return this.counts.reduce((sum, count) => sum + count, 0);
  }

  private insertAll(): void {
    const { ready, first, portion } = this;
    do {
      while (ready.size > 0) {
        this.insert(ready.take());
        if (--this.untilLook === 0) this.look();
      }
      // The search may take long.
      portion.insert();
      first.take(ready, FIRST_TASKS);
    } while (ready.size > 0);
    const { classes, waiting, first: searched, counts, isChecked } = this;
    const stuck = standstill(classes, waiting, searched.counts, counts, isChecked);
    if (stuck !== undefined) throw stuck;
  }

  private look(): void {
    this.untilLook = this.rounds === undefined ? NEVER : this.rounds.look();
  }

  insert(task: GraphTask): void {
    const { cls, inputs } = task;
    const { isWritten, sending } = cls;
    this.waiting.took(task);
    const handle = cls.runs.lists === undefined ? this.place(task) : this.placeLists(task);
    this.counts[cls.number]++;
    for (let n = 0; n < sending.length; n++) {
      const f = sending[n];
      const s = task.first(f);
      let value = inputs[s] as Value;
      if (isWritten[f]) {
        value = overwritten(task, value.of);
        inputs[s] = value;
      }
      const to = cls.to[f];
      if (to !== undefined) this.send(task, f, value, to(task.indices));
    }
    if (cls.hasControls) this.sendControls(task, handle);
    this.leave(task);
  }

  /** The task has used its values, and has sent them. */
  private leave(task: GraphTask): void {
    const { cls, inputs } = task;
    const { isWritten } = cls;
    for (let f = 0; f < isWritten.length; f++) {
      const end = task.end(f);
      for (let s = task.first(f); s < end; s++) {
        const value = inputs[s] as Value;
        if (!isWritten[f]) value.readers--;
        if (value.readers === 0 && !value.isOver) this.settle(value);
      }
    }
    // The last writer of a datum is kept for messages.
    task.inputs = NONE;
  }

  /** The datum of an input, which must have the version that the task uses. */
  private datumOf(task: GraphTask, flow: number, s: number): Datum {
    const input = task.inputs[s];
    const value = input instanceof Value ? input : this.begin(task, flow, s, input);
    if (value.version !== value.of.version) throw stale(task, flow, value.of, value.version);
    return value.of.datum;
  }

  /** The value of an input that comes from no task: a datum as it was before the graph, or a new temporary. */
  private begin(task: GraphTask, flow: number, s: number, source: Source): Value {
    const isMade = source instanceof Temporary;
    const of = isMade ? this.make(task, flow, source) : this.usedOf(source as Datum);
    if (of.version !== 0) throw stale(task, flow, of, 0);
    const value = new Value(of);
    value.readers = task.cls.isWritten[flow] ? 0 : 1;
    task.inputs[s] = value;
    return value;
  }

  private usedOf(datum: Datum): UsedDatum {
    const known = this.data.get(datum);
    if (known !== undefined) return known;
    const used = new UsedDatum(datum, false);
    this.data.set(datum, used);
    return used;
  }

  private make(task: GraphTask, flow: number, source: Temporary): UsedDatum {
    const { element, length, options } = source;
    const name = `${task.cls.runs.flowNames[flow]} of ${task.name}`;
    const rank = this.rankOf(task) ?? 0;
    const datum = this.graph.makeTemporary(element, length, { ...options, name, rank });
    this.temporaries.add(datum);
    return new UsedDatum(datum, true);
  }

  /** Inserts the task into the run, now or with those that come next, unless this rank may skip it. Returns its handle if it is needed. */
  private place(task: GraphTask): TaskHandle | undefined {
    const { graph, portion, pruning } = this;
    const { cls, indices } = task;
    const { data } = portion;
    for (let f = 0; f < cls.from.length; f++) data[f] = this.datumOf(task, f, f);
    const rank = this.wantedRank(task);
    if (!cls.hasControls && pruning === undefined) {
      portion.add(cls.runs, cls.params?.(indices), this.optionsOf(task, rank));
      return undefined;
    }
    // The rules of pruning ask who has the data, and control flows need the handle.
    portion.insert();
    if (rank !== undefined && pruning?.skips(task, rank) === true) return undefined;
    return graph.insertInOrder(cls.runs, data, cls.params?.(indices), this.optionsOf(task, rank));
  }

  /** As `place`, for a task with lists. */
  private placeLists(task: GraphTask): TaskHandle | undefined {
    const { graph, portion } = this;
    const { runs, params } = task.cls;
    portion.insert();
    const args: Record<string, unknown> = { ...params?.(task.indices) };
    for (let f = 0; f < runs.flowNames.length; f++) {
      const all: Datum[] = [];
      for (let s = task.first(f); s < task.end(f); s++) all.push(this.datumOf(task, f, s));
      args[runs.flowNames[f]] = runs.lists?.[f] === 1 ? all : all[0];
    }
    const rank = this.wantedRank(task);
    if (rank !== undefined && this.pruning?.skips(task, rank) === true) return undefined;
    const given = args as TaskArguments<Flows, Parameters>;
    return graph.insert(runs, given, this.optionsOf(task, rank));
  }

  /** The rank that `on` gives the task. */
  private rankOf({ cls, indices }: GraphTask): number | undefined {
    return cls.rankOf(indices);
  }

  /** The rank for the insertion. Where there is one only, just checked runs ask: the answers take time. */
  private wantedRank(task: GraphTask): number | undefined {
    const { ranks } = this.graph;
    if (ranks > 1) return this.rankOf(task);
    const rank = this.isChecked ? this.rankOf(task) : undefined;
    if (rank !== undefined && rank !== 0) throw noRank(task.name, rank, ranks);
    return undefined;
  }

  /** The options of the insertion, if it needs some. */
  private optionsOf(task: GraphTask, rank: number | undefined): TaskOptions | undefined {
    return task.cls.optionsOf(task.indices, task.priority, rank, task.after);
  }

  private send(task: GraphTask, flow: number, value: Value, targets: Targets): void {
    if (!Array.isArray(targets)) {
      this.sendTo(task, flow, value, targets as Exclude<Targets, readonly Targets[]>);
      return;
    }
    for (let n = 0; n < targets.length; n++) {
      const target: Targets = targets[n];
      if (target instanceof FlowEnd) this.waiting.arrive(target, value, task, flow);
      else this.send(task, flow, value, target);
    }
  }

  private sendTo(
    task: GraphTask,
    flow: number,
    value: Value,
    target: Exclude<Targets, readonly Targets[]>,
  ): void {
    if (target instanceof FlowEnd) this.waiting.arrive(target, value, task, flow);
    else if (target instanceof Datum) this.sendHome(task, flow, value, target);
    else if (target !== undefined && target !== false)
      throw new HeadraceError(
        'ERR_GRAPH_EDGE',
        `${task.name} sends '${task.cls.runs.flowNames[flow]}' to ${shown(target)}`,
        { task: task.name, remedy: 'a target is the flow of another task or a datum' },
      );
  }

  private sendHome(task: GraphTask, flow: number, value: Value, home: Datum): void {
    if (home === value.of.datum) return;
    this.portion.insert();
    insertHomeCopy(
      this.graph,
      value.of.datum,
      home,
      () => `'${task.cls.runs.flowNames[flow]}' of ${task.name}`,
    );
    overwritten(task, this.usedOf(home));
  }

  private sendControls(task: GraphTask, handle: TaskHandle | undefined): void {
    task.cls.controlTo.forEach((to, control) => {
      eachControl(to?.(task.indices), (end) => this.waiting.order(end, handle, task, control));
    });
  }

  /** Its maker has sent the value to all targets, and all readers have been inserted: it goes on to its writer. */
  private settle(value: Value): void {
    const { of, writer } = value;
    if (writer !== undefined) {
      value.isOver = true;
      this.waiting.countDown(writer);
    } else if (of.isTemporary && value.version === of.version) {
      value.isOver = true;
      this.portion.insert();
      this.temporaries.delete(of.datum);
      this.graph.freeTemporary(of.datum);
    }
  }
}

/** Insertions before a look that never comes. */
const NEVER = 2 ** 30;

/** Whether the tasks of a class may come again in rounds: lists and control flows are left to the walk. */
function mayRepeat({ runs, hasControls }: GraphClass): boolean {
  return runs.lists === undefined && !hasControls;
}

const NONE: Value[] = [];

/** The task overwrites a datum: its new version. */
function overwritten(task: GraphTask, of: UsedDatum): Value {
  of.version++;
  of.writer = task;
  return new Value(of);
}

function stale(task: GraphTask, flow: number, of: UsedDatum, version: number): HeadraceError {
  const datum = of.datum.name;
  const writer = of.writer?.name ?? 'another task';
  const which = version === 0 ? 'as it was before the graph' : `in its version ${version}`;
  return new HeadraceError(
    'ERR_GRAPH_VERSION',
    `${task.name} uses datum '${datum}' ${which} as '${task.cls.runs.flowNames[flow]}', but ${writer} has overwritten it, and nothing in the graph puts ${task.name} before ${writer}`,
    { datum, task: task.name, remedy: 'order the two by data or by a control flow' },
  );
}
