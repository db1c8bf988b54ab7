// All tasks and edges of a small instance, for `verify` and the drawn graphs. Both ends of every edge are looked at, each from its own side.

import { HeadraceError } from '../../devices/errors.js';
import { shown } from '../checks.js';
import { Datum } from '../program/datum.js';
import { type ControlEnd, FlowEnd, type Targets } from './ends.js';
import type { GraphClass } from './graph-class.js';
import { eachControl, endName, flowName, type GraphTask, taskAt } from './graph-task.js';
import { keyOf, type TaskKey, taskName } from './task-key.js';
import { UsedDatum, Value } from './values.js';

/** What is wrong with a graph. */
export interface GraphProblem {
  /**
   * `edge`: two ends that do not fit; `range`: a target outside of the ranges; `start`: a first task outside of `starts`; `cycle`;
   * `race`: two tasks without an order use one datum, or in the wrong order; `temporary`: one that no task reads; `home`: a datum
   * whose last version does not come home; `repeat`: a function that breaks the promise of `repeats`. With an `order` of all classes also `order`: positions that are no order of the tasks; `own`: a task
   * outside of the `own` ranges of its rank, or that writes data of another rank; `datum`: a flow that lies in another datum than it says,
   * or reads one of another rank that is not sent there.
   */
  readonly kind:
    | 'edge'
    | 'range'
    | 'start'
    | 'cycle'
    | 'race'
    | 'temporary'
    | 'home'
    | 'repeat'
    | 'order'
    | 'own'
    | 'datum';
  /** Names the tasks. */
  readonly text: string;
}

/** Tasks of an instance that is unrolled. */
const MOST_TASKS = 10_000;

/** An edge between two tasks of the instance. @internal */
export interface TaskEdge {
  readonly from: number;
  /** Flow or control flow of the sender. */
  readonly output: string;
  readonly to: number;
  /** Flow or control flow of the receiver. */
  readonly input: string;
  readonly isControl: boolean;
  /** Both tasks name it. */
  readonly isMatched: boolean;
}

/** A flow of a task that leaves a value, and the tasks that take it. @internal */
export interface Output {
  readonly task: number;
  readonly flow: number;
  readonly readers: number[];
  readonly writers: number[];
  readonly homes: Datum[];
}

/** Marks an input that has arrived. */
const ARRIVED = new Value(new UsedDatum(undefined as never, false));

/** @internal */
export class Unrolled {
  readonly problems: GraphProblem[] = [];
  readonly tasks: GraphTask[] = [];
  /** Tasks behind each task. */
  readonly after: number[][] = [];
  /** Outputs of each task, by flow. */
  readonly outputs: (Output | undefined)[][] = [];
  readonly edges: TaskEdge[] = [];
  private readonly numbers: readonly Map<TaskKey, number>[];
  private readonly classes: readonly GraphClass[];

  /** @throws HeadraceError `ERR_GRAPH_TOO_LARGE` */
  constructor(classes: readonly GraphClass[]) {
    this.classes = classes;
    this.numbers = classes.map(() => new Map<TaskKey, number>());
    for (const cls of classes)
      for (const of of cls.tasks()) this.guarded(() => this.add(taskAt(cls, of)));
    this.checkStarts();
    for (let n = 0; n < this.tasks.length; n++) this.guarded(() => this.send(n));
    this.tasks.forEach((task, n) => {
      for (const input of task.lacking())
        this.report('edge', `${task.name} expects ${input}, which does not send it`);
      for (const { input, from } of task.missingInputs()) {
        const sender = this.numberAt(from);
        const isControl = !(from instanceof FlowEnd);
        if (sender !== undefined)
          this.edges.push({
            from: sender,
            output: flowName(from),
            to: n,
            input,
            isControl,
            isMatched: false,
          });
      }
    });
  }

  report(kind: GraphProblem['kind'], text: string): void {
    this.problems.push({ kind, text });
  }

  /** The number of the task at an end that is known to be one. */
  numberOf(end: FlowEnd): number {
    return this.numberAt(end) as number;
  }

  private numberAt({ cls, indices }: FlowEnd | ControlEnd): number | undefined {
    const { indexNames, number } = cls as GraphClass;
    if (this.classes[number] !== cls) return undefined;
    return this.numbers[number].get(keyOf(indexNames, indices));
  }

  name(task: number): string {
    return this.tasks[task].name;
  }

  private add(task: GraphTask): void {
    if (this.tasks.length === MOST_TASKS)
      throw new HeadraceError(
        'ERR_GRAPH_TOO_LARGE',
        `the instance has more than ${MOST_TASKS} tasks`,
        { limit: MOST_TASKS, remedy: 'verify or draw a smaller one' },
      );
    this.numbers[task.cls.number].set(task.key, this.tasks.length);
    this.tasks.push(task);
    this.after.push([]);
    this.outputs.push([]);
  }

  /** A mistake that a function of the graph shows becomes a problem. */
  private guarded(call: () => void): void {
    try {
      call();
    } catch (error) {
      const isEdge = error instanceof HeadraceError && error.code === 'ERR_GRAPH_EDGE';
      // Without a task the mistake is looked for among the functions.
      if (!isEdge || error.details.task === undefined) throw error;
      this.report('edge', error.message);
    }
  }

  private checkStarts(): void {
    for (const cls of this.classes) {
      if (!cls.hasStarts) continue;
      const keys = new Set<TaskKey>();
      for (const of of cls.tasks(cls.starts)) keys.add(keyOf(cls.indexNames, of));
      for (const task of this.tasks)
        if (task.cls === cls && task.missing === 0 && !keys.has(task.key))
          this.report('start', `${task.name} has no input from a task and is not in \`starts\``);
    }
  }

  private send(n: number): void {
    const task = this.tasks[n];
    const { cls, indices } = task;
    for (let flow = 0; flow < cls.to.length; flow++) {
      const to = cls.to[flow];
      if (to === undefined && !cls.isWritten[flow]) continue;
      const output: Output = { task: n, flow, readers: [], writers: [], homes: [] };
      this.outputs[n][flow] = output;
      if (to !== undefined) this.follow(output, to(indices));
    }
    cls.controlTo.forEach((to, control) => {
      eachControl(to?.(indices), (end) => this.order(n, control, end));
    });
  }

  private follow(output: Output, targets: Targets): void {
    if (Array.isArray(targets)) for (const one of targets as Targets[]) this.follow(output, one);
    else if (targets instanceof Datum) output.homes.push(targets);
    else if (targets instanceof FlowEnd) this.arrive(output, targets);
    else if (targets !== undefined && targets !== false)
      this.report('edge', `${this.outputName(output)} goes to ${shown(targets)}`);
  }

  private arrive(output: Output, end: FlowEnd): void {
    const target = this.targetOf(end, this.outputName(output));
    if (target === undefined) return;
    const task = this.tasks[target];
    const producer = this.tasks[output.task];
    const slot = task.slotOf(end.flow, producer, output.flow);
    const isMatched = slot >= 0;
    this.edges.push({
      ...{ from: output.task, output: producer.cls.runs.flowNames[output.flow] },
      ...{ to: target, input: flowName(end), isControl: false, isMatched },
    });
    if (!isMatched) {
      const what = `${this.outputName(output)} goes`;
      if (task.expects(end.flow, producer, output.flow))
        this.report('edge', `${what} twice to ${endName(end)}`);
      else this.report('edge', `${what} to ${endName(end)}, which does not expect it`);
    } else {
      task.inputs[slot] = ARRIVED;
      (task.cls.isWritten[end.flow] ? output.writers : output.readers).push(target);
      this.after[output.task].push(target);
    }
  }

  private order(n: number, control: number, end: ControlEnd): void {
    const producer = this.tasks[n];
    const what = `control '${producer.cls.controlNames[control]}' of ${producer.name}`;
    const target = this.targetOf(end, what);
    if (target === undefined) return;
    const awaited = this.tasks[target].awaitedOf(end.control, producer, control);
    const isMatched = awaited?.arrived === false;
    this.edges.push({
      ...{ from: n, output: producer.cls.controlNames[control] },
      ...{ to: target, input: flowName(end), isControl: true, isMatched },
    });
    if (awaited === undefined)
      this.report('edge', `${what} goes to ${endName(end)}, which does not expect it`);
    else if (awaited.arrived) this.report('edge', `${what} goes twice to ${endName(end)}`);
    else {
      awaited.arrived = true;
      this.after[n].push(target);
    }
  }

  /** The number of the task at an end. */
  private targetOf(end: FlowEnd | ControlEnd, what: string): number | undefined {
    const cls = end.cls as GraphClass;
    const number = this.numberAt(end);
    if (number !== undefined && cls.outside(end.indices) === undefined) return number;
    const name = taskName(cls.name, cls.indexNames, end.indices);
    if (this.classes[cls.number] !== cls)
      this.report('edge', `${what} goes to ${name} of another instance`);
    else this.report('range', `${what} goes to ${name}, which is outside of its ranges`);
    return undefined;
  }

  outputName({ task, flow }: Output): string {
    return `'${this.tasks[task].cls.runs.flowNames[flow]}' of ${this.name(task)}`;
  }
}
