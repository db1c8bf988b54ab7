// Feeds retired tasks to the trace recorder, and writes one record for many tasks with common values. The tracer stores
// nothing for a task under way that never waits: all tasks of a pass share the time of the pass, so the times of
// insertion and issue follow from the task's number and event. Other times are stamped into the task's row.
// Invariant: recording never changes a decision and never allocates per task.

import { executesKernels, findQueues, Status } from '../../devices/backend.js';
import type { DatumId, QueueId, TaskId } from '../../devices/handles.js';
import { Execution, Stamp, type TaskClassRow, TaskStage } from '../../stages/task-table.js';
import { TaskFlag, TaskTime, type TraceHeader } from '../../trace/format.js';
import { MOST_DATA, MOST_PARAMETERS, SHORT_LIFE } from '../../trace/group-recorder.js';
import type { TraceRecorder } from '../../trace/recorder.js';
import type { GroupHead, Scratch, TaskHead } from '../../trace/recorder-input.js';
import type { EngineState } from '../engine/state.js';
import { StepTimes } from './step-times.js';
import { lanesOfQueues } from './trace-header.js';

const COUNT = TaskTime.count;
/** Tasks per record. A ring holds many more, so the times of the first task are still there at the last one. */
const BATCH = 256;
/** Stages of a task that has passed them all. */
export const ALL_STAGES = 6;
/** Above this mean time between insertions the clock is read at every one; then the cost is negligible. */
const SLOW_INSERTION_NS = 2000;

export class TaskTracer {
  /** Number of tasks inserted and recorded so far. */
  insertedTasks = 0;
  retiredTasks = 0;
  private readonly state: EngineState;
  private readonly recorder: TraceRecorder;
  /** Names a datum in the trace before its first use there. */
  private readonly describe: (d: DatumId) => void;
  private readonly scriptLane: number;
  private readonly networkLane: number;
  private readonly knownClasses: boolean[] = [];
  /** When tasks were inserted, by id. */
  private readonly insertions: StepTimes;
  private insertionTime = Number.NaN;
  /** The program inserts so slowly that the first insertion after a pass and later ones have different times. */
  private slowInsertion = true;
  /** Time of the first insertion after the last pass. */
  private firstInsertion = 0;
  private isFirst = true;
  /** Id of the next task, at the last pass. */
  private passNext: number;
  /** Queues that run tasks; the publishing times and numbers of their commands, by queue. */
  private readonly queues: readonly QueueId[];
  /** Lane of each queue. */
  private readonly laneOf: Uint8Array;
  private readonly issues: readonly StepTimes[];
  private readonly published: Int32Array;
  /** Rows of retired tasks that are not recorded yet. All succeeded, and all were finalized in this pass. */
  private readonly rows: Int32Array = new Int32Array(BATCH);
  private noted = 0;
  private collecting = false;
  // Filled anew for every record.
  private readonly head: Scratch<TaskHead> = {
    id: 0,
    taskClass: 0,
    device: 0,
    lane: 0,
    flags: 0,
    releasedBy: 0,
  };
  private readonly group: Scratch<GroupHead> = {
    taskClass: 0,
    device: 0,
    lane: 0,
    flags: 0,
    modes: [],
    parameters: 0,
    isReleased: false,
    inserted: 0,
    ready: 0,
    issued: 0,
    finalized: 0,
  };

  constructor(
    state: EngineState,
    recorder: TraceRecorder,
    { lanes }: TraceHeader,
    describe: (d: DatumId) => void,
  ) {
    const { backend, tasks } = state;
    this.state = state;
    this.recorder = recorder;
    this.describe = describe;
    this.scriptLane = lanes.findIndex(({ kind }) => kind === 'script');
    this.networkLane = lanes.findIndex(({ kind }) => kind === 'network');
    this.laneOf = lanesOfQueues(backend.queues);
    this.insertions = new StepTimes(tasks.window);
    this.queues = findQueues(backend.queues, executesKernels);
    this.issues = backend.queues.map(
      (queue) => new StepTimes(executesKernels(queue) ? backend.ringRecords : 1),
    );
    this.published = Int32Array.from(backend.issued);
    this.passNext = tasks.next;
    tasks.traceTimes();
  }

  /** The window has a new number of rows. */
  resize(rows: number): void {
    this.insertions.grow(rows);
  }

  inserted(id: TaskId): void {
    const { x, backend } = this.state;
    if (this.slowInsertion) x.now = backend.now();
    if (x.now !== this.insertionTime) this.insertionStep(id);
  }

  private insertionStep(id: TaskId): void {
    const { x, tasks } = this.state;
    this.insertionTime = x.now;
    if (this.isFirst) this.firstInsertion = x.now;
    this.isFirst = false;
    this.insertions.begin(id, x.now, tasks.head);
  }

  /** A pass that began at `now` is over. */
  passed(now: number): void {
    const { next } = this.state.tasks;
    const insertions = (next - this.passNext) | 0;
    this.isFirst = true;
    if (insertions === 0) return;
    this.slowInsertion = now - this.firstInsertion > insertions * SLOW_INSERTION_NS;
    this.passNext = next;
    this.insertedTasks += insertions;
  }

  /** The commands issued so far were published in the pass of time `now`. */
  issued(now: number): void {
    const { backend, submission } = this.state;
    for (const q of this.queues) {
      const last = backend.issued[q];
      if (last === this.published[q]) continue;
      this.issues[q].begin((this.published[q] + 1) | 0, now, (submission.seen[q] + 1) | 0);
      this.published[q] = last;
    }
  }

  /** A task is over, and its row is about to be given back. Between `begin` and `end` the task is recorded later. */
  retired(row: number, status: number): void {
    const stage = this.state.tasks.stage[row];
    if (status !== Status.ok || stage < TaskStage.stageOut) {
      this.retiredEarly(row, status, stage);
      return;
    }
    this.rows[this.noted++] = row;
    if (!this.collecting || this.noted === BATCH) this.record(ALL_STAGES);
  }

  /** A task that did not pass all stages, or failed in one. */
  private retiredEarly(row: number, status: number, stage: number): void {
    this.record(ALL_STAGES);
    // A task that ended before its first stage, such as a forward without destinations, passed no stage.
    let flags = stage >= TaskStage.stageOut ? ALL_STAGES : Math.max(0, stage - TaskStage.alloc);
    if (status !== Status.ok)
      flags |= status === Status.cancelled ? TaskFlag.cancelled : TaskFlag.failed;
    this.rows[this.noted++] = row;
    this.record(flags);
  }

  /**
   * Many tasks may retire from here to `end`; one loop records them faster than single calls. Meanwhile no row is taken,
   * no datum is forgotten and no command is issued, so rows, directory and rings keep their values for them.
   */
  begin(): void {
    this.collecting = true;
  }

  end(): void {
    this.collecting = false;
    this.record(ALL_STAGES);
  }

  /** Records the tasks that are kept for later. */
  private record(flags: number): void {
    const count = this.noted;
    this.noted = 0;
    for (let i = 0; i < count; ) i = this.recordFrom(i, count, flags);
    this.retiredTasks += count;
  }

  /** Records the task kept at `from` and the following tasks that can share its record; returns the next index. */
  private recordFrom(from: number, until: number, flags: number): number {
    const { tasks, x } = this.state;
    const row = this.rows[from];
    const cls = x.classes[tasks.classOf[row]];
    this.describeUses(cls, row);
    this.completeTimes(row, cls);
    let lane: number;
    if (cls.network !== undefined) lane = this.networkLane;
    else if (tasks.execution[row] === Execution.command) lane = this.laneOf[tasks.queue[row]];
    else {
      lane = this.scriptLane;
      flags |= TaskFlag.script;
    }
    if (tasks.hinted[row] === 1) flags |= TaskFlag.hinted;
    if (this.fitsGroup(row, cls)) return this.recordGroup(from, until, cls, lane, flags);
    this.recordLong(row, cls, lane, flags);
    return from + 1;
  }

  /** Collects in `tasks.times` all times of the task in `row`, its own and those that it shares with others. */
  private completeTimes(row: number, cls: TaskClassRow): void {
    const { tasks, x, backend } = this.state;
    const { times } = tasks;
    const at = row * COUNT;
    this.insertions.find(tasks.idOf(row));
    times[at + TaskTime.inserted] = this.insertions.time;
    if ((tasks.stamped[row] & Stamp.ready) === 0) times[at + TaskTime.ready] = this.insertions.time;
    const isCommand = tasks.execution[row] === Execution.command;
    const q = tasks.queue[row];
    const seq = tasks.seq[row];
    if (cls.network !== undefined) {
      // Its time on the lane is the time of its transfers, which end before it or with it.
      const end = isCommand ? backend.endOf(q, seq) : x.now;
      times[at + TaskTime.issued] = 0;
      times[at + TaskTime.execStart] = end;
      times[at + TaskTime.execEnd] = end;
    } else if (isCommand) {
      this.issues[q].find(seq);
      times[at + TaskTime.issued] = this.issues[q].time;
      times[at + TaskTime.execStart] = backend.startOf(q, seq);
      times[at + TaskTime.execEnd] = backend.endOf(q, seq);
    } else {
      times[at + TaskTime.issued] = times[at + TaskTime.execStart];
    }
    times[at + TaskTime.stageOut] = x.now;
    times[at + TaskTime.finalized] = x.now;
  }

  /** The task waited for no memory and no copy, and its times are in order. This holds for most tasks. */
  private fitsGroup(row: number, { modes, network }: TaskClassRow): boolean {
    const { times, stamped, execution } = this.state.tasks;
    const at = row * COUNT;
    const inserted = times[at + TaskTime.inserted];
    const ready = times[at + TaskTime.ready];
    const issued = times[at + TaskTime.issued];
    const start = times[at + TaskTime.execStart];
    const end = times[at + TaskTime.execEnd];
    const finalized = times[at + TaskTime.finalized];
    return (
      execution[row] === Execution.command &&
      network === undefined &&
      stamped[row] <= Stamp.ready &&
      modes.length <= MOST_DATA &&
      inserted >= this.recorder.origin &&
      ready >= inserted &&
      issued >= ready &&
      finalized >= issued &&
      start >= inserted &&
      end >= start &&
      finalized >= end &&
      finalized - inserted < SHORT_LIFE
    );
  }

  private recordLong(row: number, cls: TaskClassRow, lane: number, flags: number): void {
    const { recorder } = this;
    const { tasks } = this.state;
    const { modes, paramNames } = cls;
    const id = tasks.idOf(row);
    const { head } = this;
    head.id = id;
    head.taskClass = cls.id;
    head.device = tasks.device[row];
    head.lane = lane;
    head.flags = flags;
    head.releasedBy = tasks.releasedBy[row];
    recorder.taskRow(head, tasks.times, row * COUNT);
    recorder.accesses(id, tasks.flowDatum, tasks.flowStart[row], modes);
    if (paramNames.length > 0) {
      const count = Math.min(paramNames.length, MOST_PARAMETERS);
      recorder.parameters(id, tasks.params, tasks.paramStart[row], count);
    }
    tasks.stamped[row] = 0;
  }

  /**
   * Records the task kept at `from` and the following tasks of the same class and queue that were inserted, became ready
   * and were issued in the same passes; returns the next index.
   */
  private recordGroup(
    from: number,
    until: number,
    { id: classId, modes, paramNames }: TaskClassRow,
    lane: number,
    flags: number,
  ): number {
    const { recorder, rows, insertions } = this;
    const { tasks, backend, directory } = this.state;
    const { classOf, queue, stamped, hinted, releasedBy, times } = tasks;
    const { flowStart, flowDatum, paramStart, params } = tasks;
    const { described } = directory;
    const nData = modes.length;
    const nParams = Math.min(paramNames.length, MOST_PARAMETERS);
    let row = rows[from];
    const q = queue[row];
    const stamp = stamped[row];
    const isReleased = stamp === Stamp.ready;
    const hint = hinted[row];
    const inserted = times[row * COUNT + TaskTime.inserted];
    const ready = times[row * COUNT + TaskTime.ready];
    const finalized = times[row * COUNT + TaskTime.finalized];
    const base = Math.floor(inserted);
    const { first: firstId, end: endId } = insertions;
    const { first: firstSeq, end: endSeq } = this.issues[q];
    const room = Math.min(until - from, recorder.roomForGroup(isReleased, nData, nParams));
    const { group } = this;
    group.taskClass = classId;
    group.device = tasks.device[row];
    group.lane = lane;
    group.flags = flags;
    group.modes = modes;
    group.parameters = nParams;
    group.isReleased = isReleased;
    group.inserted = inserted;
    group.ready = ready;
    group.issued = times[row * COUNT + TaskTime.issued];
    group.finalized = finalized;
    let w = recorder.openGroup(group, room);
    const { words } = recorder;
    let id = tasks.idOf(row);
    let start = times[row * COUNT + TaskTime.execStart];
    let end = times[row * COUNT + TaskTime.execEnd];
    let next = from;
    for (;;) {
      let p = w;
      words[p++] = id;
      if (isReleased) words[p++] = releasedBy[row];
      words[p++] = start - base;
      words[p++] = end - base;
      const firstFlow = flowStart[row];
      let isDescribed = 1;
      for (let k = 0; k < nData; k++) {
        const d = flowDatum[firstFlow + k];
        isDescribed &= described[d];
        words[p++] = d;
      }
      // The trace first needs their names, in a record of its own.
      if (isDescribed === 0) break;
      const firstParam = paramStart[row];
      for (let k = 0; k < nParams; k++) words[p++] = params[firstParam + k];
      stamped[row] = 0;
      w = p;
      if (++next - from === room) break;
      row = rows[next];
      if (!tasks.isOn(row, q) || classOf[row] !== classId || hinted[row] !== hint) break;
      if (stamped[row] !== stamp) break;
      if (isReleased && times[row * COUNT + TaskTime.ready] !== ready) break;
      id = tasks.idOf(row);
      if (((id - firstId) | 0) < 0 || ((endId - id) | 0) <= 0) break;
      const seq = tasks.seq[row];
      if (((seq - firstSeq) | 0) < 0 || ((endSeq - seq) | 0) <= 0) break;
      start = backend.startOf(q, seq);
      end = backend.endOf(q, seq);
      if (!(start >= inserted && end >= start && finalized >= end)) break;
    }
    recorder.closeGroup(next - from, w);
    return next;
  }

  /** Names the class and the data of the task in `row`, if the trace does not know them. */
  private describeUses(cls: TaskClassRow, row: number): void {
    if (this.knownClasses[cls.id] !== true) {
      this.knownClasses[cls.id] = true;
      // If a task has data, they identify it better among tasks of its class than its parameters, which may be sizes and
      // strides.
      this.recorder.taskClass(cls.id, cls.name, cls.paramNames, cls.modes.length === 0);
    }
    const { tasks, directory } = this.state;
    const first = tasks.flowStart[row];
    for (let k = 0; k < cls.modes.length; k++) {
      const d = tasks.flowDatum[first + k];
      if (directory.described[d] === 0) this.describe(d);
    }
  }
}
