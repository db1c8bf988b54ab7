// The tasks that are known and not inserted: outputs arrive here, and tasks with all inputs become ready.
// Invariant: a task is here exactly from its first input until it is inserted. So an output that arrives twice meets the task that has
// it, and memory is that of the active tasks.

import { HeadraceError } from '../../devices/errors.js';
import type { TaskHandle } from '../../devices/handles.js';
import type { ClassShift } from './class-shift.js';
import type { ControlEnd, FlowEnd, Indices } from './ends.js';
import type { GraphClass } from './graph-class.js';
import { endName, GraphTask } from './graph-task.js';
import { KnownTasks } from './known-tasks.js';
import type { ReadyTasks } from './ready-tasks.js';
import { taskName } from './task-key.js';
import { type UsedDatum, Value } from './values.js';

/** @internal */
export class WaitingTasks {
  private readonly classes: readonly GraphClass[];
  private readonly ready: ReadyTasks;
  private readonly byClass: readonly KnownTasks[];
  /** Tasks that became known so far. */
  count = 0;

  constructor(classes: readonly GraphClass[], ready: ReadyTasks) {
    this.classes = classes;
    this.ready = ready;
    this.byClass = classes.map(({ indexNames }) => new KnownTasks(indexNames));
  }

  /**
   * A value arrives at the flow of a task.
   * @throws HeadraceError `ERR_GRAPH_EDGE`, `ERR_GRAPH_RANGE`, `ERR_GRAPH_VERSION`
   */
  arrive(end: FlowEnd, value: Value, producer: GraphTask, produced: number): void {
    const task = this.taskOf(end, producer);
    const { flow } = end;
    const slot = task.slotOf(flow, producer, produced);
    if (slot < 0) {
      const wrong = task.expects(flow, producer, produced) ? twice : unexpected;
      throw wrong(end, producer, producer.cls.runs.flowNames[produced]);
    }
    task.inputs[slot] = value;
    if (!task.cls.isWritten[flow]) {
      value.readers++;
      this.countDown(task);
    } else if (value.writer === undefined) value.writer = task;
    else throw twoWriters(value, value.writer, task);
  }

  /** An order arrives at a control flow. `handle`: the task that comes before, if this rank has inserted it. */
  order(
    end: ControlEnd,
    handle: TaskHandle | undefined,
    producer: GraphTask,
    produced: number,
  ): void {
    const task = this.taskOf(end, producer);
    const awaited = task.awaitedOf(end.control, producer, produced);
    const name = producer.cls.controlNames[produced];
    if (awaited === undefined) throw unexpected(end, producer, name);
    if (awaited.arrived) throw twice(end, producer, name);
    awaited.arrived = true;
    if (handle !== undefined) {
      task.after ??= [];
      task.after.push(handle);
    }
    this.countDown(task);
  }

  /** One of the inputs of a task may be used. */
  countDown(task: GraphTask): void {
    if (--task.missing === 0) this.ready.add(task);
  }

  /** A ready task is inserted. */
  took(task: GraphTask): void {
    if (task.turn >= 0) this.byClass[task.cls.number].delete(task);
  }

  /** The known task at an end. */
  find({ cls, indices }: FlowEnd): GraphTask | undefined {
    return this.byClass[cls.number].find(indices);
  }

  /** All known tasks take their places that many rounds of `length` tasks later, with the versions of their data. */
  move(
    rounds: number,
    length: number,
    shifts: readonly ClassShift[],
    versions: ReadonlyMap<UsedDatum, number>,
  ): void {
    const turns = rounds * length;
    const values = new Set<Value>();
    for (const known of this.byClass)
      known.move((task) => {
        task.move(rounds, turns, shifts);
        for (const input of task.inputs) if (input instanceof Value) values.add(input);
      });
    for (const value of values) value.version += versions.get(value.of) ?? 0;
    this.count += turns;
  }

  private taskOf(end: FlowEnd | ControlEnd, producer: GraphTask): GraphTask {
    const cls = this.classes[end.cls.number];
    if (cls !== end.cls)
      throw new HeadraceError(
        'ERR_GRAPH_EDGE',
        `${producer.name} sends to class '${end.cls.name}' of another instance`,
        { task: producer.name },
      );
    const { indices } = end;
    const all = this.byClass[cls.number];
    const known = all.find(indices);
    return known === undefined ? this.add(all, cls, indices, producer) : known;
  }

  /** Adds a task that was looked for just now. */
  private add(all: KnownTasks, cls: GraphClass, indices: Indices, producer: GraphTask): GraphTask {
    checkRange(cls, indices, producer);
    const task = new GraphTask(cls, indices);
    task.turn = this.count++;
    all.add(task);
    return task;
  }

  /** The tasks, in the order in which they became known class by class. */
  *all(): Generator<GraphTask> {
    for (const known of this.byClass) yield* [...known.all()].sort((a, b) => a.turn - b.turn);
  }
}

/** @throws HeadraceError `ERR_GRAPH_RANGE` */
function checkRange(cls: GraphClass, indices: Indices, producer: GraphTask): void {
  const index = cls.outside(indices);
  if (index === undefined) return;
  throw new HeadraceError(
    'ERR_GRAPH_RANGE',
    `${producer.name} sends to ${taskName(cls.name, cls.indexNames, indices)}, whose ${index} is outside of its range`,
    { task: producer.name },
  );
}

function unexpected(end: FlowEnd | ControlEnd, producer: GraphTask, flow: string): HeadraceError {
  return new HeadraceError(
    'ERR_GRAPH_EDGE',
    `${producer.name} sends '${flow}' to ${endName(end)}, which does not expect it`,
    { task: producer.name, remedy: 'correct the `to` of the one or the `from` of the other' },
  );
}

function twice(end: FlowEnd | ControlEnd, producer: GraphTask, flow: string): HeadraceError {
  return new HeadraceError(
    'ERR_GRAPH_EDGE',
    `${producer.name} sends '${flow}' twice to ${endName(end)}`,
    { task: producer.name },
  );
}

function twoWriters(value: Value, one: GraphTask, other: GraphTask): HeadraceError {
  const datum = value.of.datum.name;
  return new HeadraceError(
    'ERR_GRAPH_VERSION',
    `${one.name} and ${other.name} both overwrite version ${value.version} of datum '${datum}'`,
    { datum, task: other.name },
  );
}
