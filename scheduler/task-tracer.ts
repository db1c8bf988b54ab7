// Feeds the tasks that retire to the trace recorder, many with one record where they have most in common. While a task
// is under way nothing is noted of one that waits for nothing: when it was inserted and issued is known from its number
// and its event, as all of a pass share the time of that pass. Other times are stamped into the task's row.
// Invariant: recording never changes a decision and never allocates per task.
import { Status } from '../devices/backend.js';
import { Stamp, type TaskClassRow, TaskStage } from '../stages/task-table.js';
import { TaskFlag, TaskTime, type TraceHeader } from '../trace/format.js';
import { MOST_DATA, MOST_PARAMETERS, SHORT_LIFE } from '../trace/group-recorder.js';
import type { TraceRecorder } from '../trace/recorder.js';
import type { Engine } from './engine.js';
import { StepTimes } from './step-times.js';
import { lanesOfQueues } from './trace-header.js';

const COUNT = TaskTime.count;
/** Tasks recorded in one go. A ring holds many more, so that the times of the first are still there with the last. */
const BATCH = 256;
const ALL_STAGES = 6;
/** Above this mean time between insertions the clock is read at every one: it then costs nothing to speak of. */
const SLOW_INSERTION_NS = 2000;

export class TaskTracer {
  /** Tasks inserted and recorded so far. */
  insertedTasks = 0;
  retiredTasks = 0;
  private readonly engine: Engine;
  private readonly recorder: TraceRecorder;
  /** Says in the trace what a datum is called, before it is used there. */
  private readonly describe: (d: number) => void;
  private readonly scriptLane: number;
  private readonly networkLane: number;
  private readonly knownClasses: boolean[] = [];
  /** When tasks were inserted, by id. */
  private readonly insertions: StepTimes;
  private insertionTime = Number.NaN;
  /** The program inserts so slowly that the time of the first insertion after a pass is not that of the others. */
  private slowInsertion = true;
  /** Time of the first insertion after the last pass. */
  private firstInsertion = 0;
  private isFirst = true;
  /** Id of the next task, at the last pass. */
  private passNext: number;
  /** Queues that run tasks; when their commands were published, and how many are, by queue. */
  private readonly queues: readonly number[];
  /** Lane of each queue. */
  private readonly laneOf: Uint8Array;
  private readonly issues: readonly StepTimes[];
  private readonly published: Int32Array;
  /** Retired tasks that are not recorded yet: their rows. All went well, and all were finalized in this pass. */
  private readonly rows: Int32Array = new Int32Array(BATCH);
  private noted = 0;
  private collecting = false;

  constructor(
    engine: Engine,
    recorder: TraceRecorder,
    { lanes }: TraceHeader,
    describe: (d: number) => void,
  ) {
    const { backend, tasks } = engine;
    this.engine = engine;
    this.recorder = recorder;
    this.describe = describe;
    this.scriptLane = lanes.findIndex(({ kind }) => kind === 'script');
    this.networkLane = lanes.findIndex(({ kind }) => kind === 'network');
    this.laneOf = lanesOfQueues(backend.queues);
    this.insertions = new StepTimes(tasks.window);
    this.queues = [...backend.queues.keys()].filter(
      (q) => backend.queues[q].kind === 'worker' || backend.queues[q].kind === 'compute',
    );
    this.issues = backend.queues.map(
      (_, q) => new StepTimes(this.queues.includes(q) ? backend.ringRecords : 1),
    );
    this.published = Int32Array.from(backend.issued);
    this.passNext = tasks.next;
    tasks.traceTimes();
  }

  /** The window has `rows` rows now. */
  resize(rows: number): void {
    this.insertions.grow(rows);
  }

  inserted(id: number): void {
    const { x, backend } = this.engine;
    if (this.slowInsertion) x.now = backend.now();
    if (x.now !== this.insertionTime) this.insertionStep(id);
  }

  private insertionStep(id: number): void {
    const { x, tasks } = this.engine;
    this.insertionTime = x.now;
    if (this.isFirst) this.firstInsertion = x.now;
    this.isFirst = false;
    this.insertions.begin(id, x.now, tasks.head);
  }

  /** A pass that began at `now` is over. */
  passed(now: number): void {
    const { next } = this.engine.tasks;
    const insertions = (next - this.passNext) | 0;
    this.isFirst = true;
    if (insertions === 0) return;
    this.slowInsertion = now - this.firstInsertion > insertions * SLOW_INSERTION_NS;
    this.passNext = next;
    this.insertedTasks += insertions;
  }

  /** What was issued so far has been published in the pass of time `now`. */
  issued(now: number): void {
    const { backend, submission } = this.engine;
    for (const q of this.queues) {
      const last = backend.issued[q];
      if (last === this.published[q]) continue;
      this.issues[q].begin((this.published[q] + 1) | 0, now, (submission.seen[q] + 1) | 0);
      this.published[q] = last;
    }
  }

  /** A task is over, and its row is about to be given back. Between `begin` and `end` that is noted for later. */
  retired(row: number, status: number): void {
    const stage = this.engine.tasks.stage[row];
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
    // What ended before its first stage, like a forward to nobody, passed none.
    let flags = stage >= TaskStage.stageOut ? ALL_STAGES : Math.max(0, stage - TaskStage.alloc);
    if (status !== Status.ok)
      flags |= status === Status.cancelled ? TaskFlag.cancelled : TaskFlag.failed;
    this.rows[this.noted++] = row;
    this.record(flags);
  }

  /**
   * Many tasks may retire from here to `end`: recording them in one loop costs less than as many calls. No row is taken,
   * no datum forgotten and no command issued meanwhile, so what rows, directory and rings say of them stays as it is.
   */
  begin(): void {
    this.collecting = true;
  }

  end(): void {
    this.collecting = false;
    this.record(ALL_STAGES);
  }

  /** Records the tasks that were noted. */
  private record(flags: number): void {
    const count = this.noted;
    this.noted = 0;
    for (let i = 0; i < count; ) i = this.recordFrom(i, count, flags);
    this.retiredTasks += count;
  }

  /** Records the task noted at `from`, and those after it that can share its record; returns where the next is. */
  private recordFrom(from: number, until: number, flags: number): number {
    const { tasks, x } = this.engine;
    const row = this.rows[from];
    const cls = x.classes[tasks.classOf[row]];
    this.describeUses(cls, row);
    this.completeTimes(row, cls);
    const queue = tasks.queue[row];
    let lane: number;
    if (queue >= 0) lane = this.laneOf[queue];
    else {
      lane = cls.network === undefined ? this.scriptLane : this.networkLane;
      if (cls.network === undefined) flags |= TaskFlag.script;
    }
    if (tasks.hinted[row] === 1) flags |= TaskFlag.hinted;
    if (this.fitsGroup(row, cls)) return this.recordGroup(from, until, cls, lane, flags);
    this.recordLong(row, cls, lane, flags);
    return from + 1;
  }

  /** Brings together in `tasks.times` what is known of the task in `row`, and what it shares with others. */
  private completeTimes(row: number, cls: TaskClassRow): void {
    const { tasks, x, backend } = this.engine;
    const { times } = tasks;
    const at = row * COUNT;
    const q = tasks.queue[row];
    this.insertions.find(tasks.idOf(row));
    times[at + TaskTime.inserted] = this.insertions.time;
    if ((tasks.stamped[row] & Stamp.ready) === 0) times[at + TaskTime.ready] = this.insertions.time;
    if (q >= 0) {
      const seq = tasks.seq[row];
      this.issues[q].find(seq);
      times[at + TaskTime.issued] = this.issues[q].time;
      times[at + TaskTime.execStart] = backend.startOf(q, seq);
      times[at + TaskTime.execEnd] = backend.endOf(q, seq);
    } else if (cls.network === undefined) {
      times[at + TaskTime.issued] = times[at + TaskTime.execStart];
    } else {
      // Its time on the lane is that of its transfers.
      times[at + TaskTime.issued] = 0;
      times[at + TaskTime.execStart] = x.now;
      times[at + TaskTime.execEnd] = x.now;
    }
    times[at + TaskTime.stageOut] = x.now;
    times[at + TaskTime.finalized] = x.now;
  }

  /** It waited for no memory and no copy, and its times are in order: what most tasks are. */
  private fitsGroup(row: number, { modes }: TaskClassRow): boolean {
    const { times, stamped, queue } = this.engine.tasks;
    const at = row * COUNT;
    const inserted = times[at + TaskTime.inserted];
    const ready = times[at + TaskTime.ready];
    const issued = times[at + TaskTime.issued];
    const start = times[at + TaskTime.execStart];
    const end = times[at + TaskTime.execEnd];
    const finalized = times[at + TaskTime.finalized];
    return (
      queue[row] >= 0 &&
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
    const { tasks } = this.engine;
    const { modes, paramNames } = cls;
    const id = tasks.idOf(row);
    const { device, releasedBy, times } = tasks;
    recorder.taskRow(id, cls.id, device[row], lane, flags, releasedBy[row], times, row * COUNT);
    recorder.accesses(id, tasks.flowDatum, tasks.flowStart[row], modes);
    if (paramNames.length > 0) {
      const count = Math.min(paramNames.length, MOST_PARAMETERS);
      const p = tasks.params;
      const at = tasks.paramStart[row];
      recorder.parameters(id, count, p[at], p[at + 1], p[at + 2], p[at + 3], p[at + 4], p[at + 5]);
    }
    tasks.stamped[row] = 0;
  }

  /**
   * Records the task noted at `from`, and those after it of its class and queue that were inserted, became ready and were
   * issued in the same passes; returns where the next is.
   */
  private recordGroup(
    from: number,
    until: number,
    { id: classId, modes, paramNames }: TaskClassRow,
    lane: number,
    flags: number,
  ): number {
    const { recorder, rows, insertions } = this;
    const { tasks, backend, directory } = this.engine;
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
    let w = recorder.openGroup(
      classId,
      tasks.device[row],
      lane,
      flags,
      modes,
      nParams,
      isReleased,
      inserted,
      ready,
      times[row * COUNT + TaskTime.issued],
      finalized,
      room,
    );
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
      // The trace has to say first what they are: by a record of its own.
      if (isDescribed === 0) break;
      const firstParam = paramStart[row];
      for (let k = 0; k < nParams; k++) words[p++] = params[firstParam + k];
      stamped[row] = 0;
      w = p;
      if (++next - from === room) break;
      row = rows[next];
      if (queue[row] !== q || classOf[row] !== classId || hinted[row] !== hint) break;
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

  /** Says what the class and the data of the task in `row` are called, where the trace does not know. */
  private describeUses(cls: TaskClassRow, row: number): void {
    if (this.knownClasses[cls.id] !== true) {
      this.knownClasses[cls.id] = true;
      // Where there are data, they tell a task from others of its class better than its parameters, which may be sizes
      // and strides.
      this.recorder.taskClass(cls.id, cls.name, cls.paramNames, cls.modes.length === 0);
    }
    const { tasks, directory } = this.engine;
    const first = tasks.flowStart[row];
    for (let k = 0; k < cls.modes.length; k++) {
      const d = tasks.flowDatum[first + k];
      if (directory.described[d] === 0) this.describe(d);
    }
  }
}
