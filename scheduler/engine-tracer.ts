// Feeds the trace recorder from the engine: one record per task when it retires, one per transfer, samples of
// memory. Stage times taken by the engine are those of its pass; times of kernels and copies are the executor's.
// Invariant: recording never changes a decision and never allocates per task.
import { Status } from '../devices/backend.js';
import type { HeadraceError } from '../devices/errors.js';
import type { NetworkWay } from '../devices/network-context.js';
import { type TaskClassRow, TaskStage } from '../stages/task-table.js';
import {
  EventKind,
  NO_INDEX,
  NONE,
  TaskFlag,
  TaskTime,
  type TraceHeader,
  TransferKind,
  TransferReason,
} from '../trace/format.js';
import { TraceRecorder } from '../trace/recorder.js';
import type { TraceSink } from '../trace/sinks.js';
import type { Engine } from './engine.js';
import type { Movement } from './rank-movements.js';

const COUNT = TaskTime.count;
/** Tasks recorded in one go. A ring holds many more, so that the times of the first are still there with the last. */
const BATCH = 64;
/** Above this mean time between insertions the clock is read at every one: it then costs nothing to speak of. */
const SLOW_INSERTION_NS = 2000;

export class EngineTracer {
  readonly recorder: TraceRecorder;
  private readonly engine: Engine;
  private readonly scriptLane: number;
  /** -1 in a single process. */
  private readonly networkLane: number;
  private readonly knownClasses: boolean[] = [];
  /** Bytes on their way into each space: scratch of a sample. */
  private readonly arriving: Float64Array;
  /** Retired tasks that are not recorded yet: their rows, and flags that only the moment knew. */
  private readonly rows: Int32Array = new Int32Array(BATCH);
  private readonly flags: Uint8Array = new Uint8Array(BATCH);
  private noted = 0;
  private collecting = false;
  private retiredTasks = 0;
  private insertedTasks = 0;
  /** Of the last pass: its time, and the id of the next task. */
  private passTime = 0;
  private passNext: number;
  /** The program inserts so slowly that the time of the last pass is not the time of an insertion. */
  private slowInsertion = true;
  /** Insertions that wait for room in the window: bodies that insert can wait inside others. */
  private throttled = 0;

  constructor(engine: Engine, sink: TraceSink, header: TraceHeader) {
    this.engine = engine;
    this.recorder = new TraceRecorder(sink, header);
    this.scriptLane = header.lanes.findIndex(({ kind }) => kind === 'script');
    this.networkLane = header.lanes.findIndex(({ kind }) => kind === 'network');
    this.arriving = new Float64Array(engine.spaces.length);
    engine.tasks.times = new Float64Array(engine.tasks.window * COUNT);
    this.passNext = engine.tasks.next;
    engine.x.tracing = true;
    engine.backend.setTiming(true);
    engine.dependencies.listener = (successor, predecessor) =>
      this.recorder.dependency(successor, predecessor);
    engine.x.counters.observer = {
      evicted: (s, d) => this.left(EventKind.evict, s, d),
      spilled: (s, d) => this.left(EventKind.spill, s, d),
    };
  }

  inserted(row: number): void {
    const { x, tasks, backend } = this.engine;
    if (this.slowInsertion) x.now = backend.now();
    // Older times that are left in the row count as passed: readers clamp them.
    tasks.times[row * COUNT + TaskTime.inserted] = x.now;
  }

  /** The program begins or ends to wait for room in the window. */
  throttle(begins: boolean): void {
    if (begins ? this.throttled++ > 0 : --this.throttled > 0) return;
    const kind = begins ? EventKind.throttleBegin : EventKind.throttleEnd;
    this.recorder.event(kind, this.engine.backend.now());
  }

  /** A pass that began at `now` is over. */
  passed(now: number): void {
    const { next } = this.engine.tasks;
    const insertions = (next - this.passNext) | 0;
    if (insertions > 0) {
      this.slowInsertion = now - this.passTime > insertions * SLOW_INSERTION_NS;
      this.passNext = next;
      this.insertedTasks += insertions;
    }
    this.passTime = now;
    this.counters(now);
  }

  private left(kind: number, s: number, d: number): void {
    this.name(d);
    const { backend, directory } = this.engine;
    this.recorder.event(kind, backend.now(), s, undefined, d, directory.bytes[d]);
  }

  bodyStarted(row: number): void {
    const now = this.engine.backend.now();
    const { times } = this.engine.tasks;
    times[row * COUNT + TaskTime.issued] = now;
    times[row * COUNT + TaskTime.execStart] = now;
  }

  bodyEnded(row: number): void {
    this.engine.tasks.times[row * COUNT + TaskTime.execEnd] = this.engine.backend.now();
  }

  /** A task is over, and its row is about to be given back. Between `begin` and `end` that is noted for later. */
  retired(row: number, status: number): void {
    const { tasks, x } = this.engine;
    tasks.times[row * COUNT + TaskTime.finalized] = x.now;
    const n = this.noted++;
    this.rows[n] = row;
    let flags: number =
      tasks.stage[row] >= TaskStage.stageOut ? 6 : tasks.stage[row] - TaskStage.alloc;
    if (status !== Status.ok)
      flags |= status === Status.cancelled ? TaskFlag.cancelled : TaskFlag.failed;
    this.flags[n] = flags;
    if (!this.collecting || n + 1 === BATCH) this.record();
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
    this.record();
  }

  /** Records the tasks that were noted. */
  private record(): void {
    const { engine, recorder, rows, knownClasses } = this;
    const { tasks, x, backend } = engine;
    const { times, classOf, device, releasedBy, flowStart, flowDatum } = tasks;
    const { described } = engine.directory;
    const count = this.noted;
    this.noted = 0;
    for (let i = 0; i < count; i++) {
      const row = rows[i];
      const at = row * COUNT;
      const queue = tasks.queue[row];
      const cls = x.classes[classOf[row]];
      if (knownClasses[cls.id] !== true) this.describeClass(cls);
      let flags = this.flags[i];
      let lane = queue;
      if (queue >= 0) {
        const seq = tasks.seq[row];
        times[at + TaskTime.execStart] = backend.startOf(queue, seq);
        times[at + TaskTime.execEnd] = backend.endOf(queue, seq);
      } else if (cls.network !== undefined) {
        // Its time on the lane is that of its transfers.
        const end = times[at + TaskTime.finalized];
        times[at + TaskTime.execStart] = end;
        times[at + TaskTime.execEnd] = end;
        lane = this.networkLane;
      } else {
        lane = this.scriptLane;
        flags |= TaskFlag.script;
      }
      if (tasks.hinted[row] === 1) flags |= TaskFlag.hinted;
      const id = tasks.idOf(row);
      const first = flowStart[row];
      const { modes } = cls;
      for (let k = 0; k < modes.length; k++) {
        if (described[flowDatum[first + k]] === 0) this.describe(flowDatum[first + k]);
      }
      const by = releasedBy[row];
      recorder.taskAndData(
        id,
        cls.id,
        device[row],
        lane,
        flags,
        by,
        times,
        at,
        flowDatum,
        first,
        modes,
      );
      const params = cls.paramNames.length;
      if (params > 0) this.parameters(id, tasks.paramStart[row], params);
    }
    this.retiredTasks += count;
  }

  private describeClass(cls: TaskClassRow): void {
    this.knownClasses[cls.id] = true;
    // Where there are data, they tell a task from others of its class better than its parameters, which may be sizes
    // and strides.
    this.recorder.taskClass(cls.id, cls.name, cls.paramNames, cls.modes.length === 0);
  }

  private parameters(id: number, at: number, count: number): void {
    const p = this.engine.tasks.params;
    const n = Math.min(count, 6);
    this.recorder.parameters(id, n, p[at], p[at + 1], p[at + 2], p[at + 3], p[at + 4], p[at + 5]);
  }

  transferDone(t: number, queue: number, seq: number): void {
    const { engine } = this;
    const { transfers, backend, directory } = engine;
    const source = transfers.source[t];
    const destination = transfers.destination[t];
    const d = transfers.datum[t];
    this.name(d);
    this.recorder.transfer(
      source === 0 ? TransferKind.h2d : destination === 0 ? TransferKind.d2h : TransferKind.d2d,
      transfers.reason[t],
      queue,
      source,
      destination,
      transfers.task[t] === 0 ? NONE : transfers.task[t],
      d,
      transfers.version[t],
      -1,
      NONE,
      directory.bytes[d],
      transfers.issuedAt[t],
      backend.startOf(queue, seq),
      backend.endOf(queue, seq),
    );
  }

  /** A payload left for rank `to`, which knows it by the same number. `end` 0: now. */
  sent(
    movement: Movement,
    space: number,
    to: number,
    message: number,
    way: NetworkWay,
    bytes: number,
    start: number,
    end: number,
  ): void {
    this.message(
      TransferReason.send,
      movement,
      space,
      NO_INDEX,
      to,
      message,
      way,
      bytes,
      start,
      end,
    );
  }

  /** A payload has come from rank `from`. */
  received(
    movement: Movement,
    space: number,
    from: number,
    message: number,
    way: NetworkWay,
    bytes: number,
    start: number,
    end: number,
  ): void {
    const { receive } = TransferReason;
    this.message(receive, movement, NO_INDEX, space, from, message, way, bytes, start, end);
  }

  private message(
    reason: number,
    { d, task }: Movement,
    source: number,
    destination: number,
    peer: number,
    message: number,
    way: NetworkWay,
    bytes: number,
    start: number,
    end: number,
  ): void {
    const { directory, backend } = this.engine;
    this.name(d);
    this.recorder.transfer(
      TransferKind[way],
      reason,
      this.networkLane,
      source,
      destination,
      task,
      d,
      directory.version[d],
      peer,
      message,
      bytes,
      start,
      start,
      end === 0 ? backend.now() : end,
    );
  }

  /** One measurement of rank `peer`'s clock: see `TraceRecorder.clock`. */
  clock(peer: number, time: number, offset: number, error: number): void {
    this.recorder.clock(peer, time, offset, error);
  }

  runFailed(error: HeadraceError, now: number): void {
    const kind = error.code === 'ERR_ABORTED' ? EventKind.cancel : EventKind.fail;
    this.recorder.event(kind, now, undefined, undefined, undefined, 0, error.message);
  }

  /** Nothing has moved for a long time. */
  watchdog(): void {
    this.recorder.event(EventKind.watchdog, this.engine.backend.now());
  }

  runBegan(): void {
    this.recorder.event(EventKind.runBegin, this.engine.backend.now());
  }

  insertionEnded(): void {
    this.recorder.event(EventKind.insertEnd, this.engine.backend.now());
  }

  runEnded(): void {
    this.recorder.event(EventKind.runEnd, this.engine.backend.now());
  }

  /** Samples memory and progress when a sample is due. */
  private counters(now: number): void {
    const { recorder, engine } = this;
    if (!recorder.counterDue(now)) return;
    const { arriving } = this;
    const { transfers, directory } = engine;
    let inFlight = 0;
    arriving.fill(0);
    transfers.forEachLive((t) => {
      const bytes = directory.bytes[transfers.datum[t]];
      arriving[transfers.destination[t]] += bytes;
      inFlight += bytes;
    });
    for (const space of engine.spaces) {
      // A copy on its way holds a pin; here it counts once.
      const coming = Math.min(arriving[space.index], space.pinnedBytes);
      recorder.memory(
        space.index,
        now,
        space.zone.used,
        space.pinnedBytes - coming,
        space.dirtyBytes,
        space.cleanBytes,
        coming,
      );
    }
    let ready = 0;
    for (const queue of engine.starter.ready) ready += queue.length;
    for (const line of engine.placement.lines) ready += line.length;
    recorder.progress(
      now,
      ready,
      engine.tasks.live,
      inFlight,
      0,
      this.insertedTasks,
      this.retiredTasks,
    );
  }

  /** Says in the trace what datum row `d` is called, before it is used there. */
  private name(d: number): void {
    if (this.engine.directory.described[d] === 0) this.describe(d);
  }

  private describe(d: number): void {
    const { directory, ranks } = this.engine;
    directory.described[d] = 1;
    const name = directory.info[d]?.name ?? `#${d}`;
    this.recorder.datum(d, directory.bytes[d], ranks?.ownerOf(d) ?? 0, name);
  }
}
