// Feeds the trace recorder from the engine: tasks when they retire (task-tracer.ts), one record per transfer, samples of
// memory. Stage times taken by the engine are those of its pass; times of kernels and copies are the executor's.
// Invariant: recording never changes a decision and never allocates per task.
import type { HeadraceError } from '../devices/errors.js';
import type { NetworkWay } from '../devices/network-context.js';
import {
  EventKind,
  NO_INDEX,
  NONE,
  TaskTime,
  type TraceHeader,
  TransferKind,
  TransferReason,
} from '../trace/format.js';
import { TraceRecorder } from '../trace/recorder.js';
import type { TraceSink } from '../trace/sinks.js';
import type { Engine } from './engine.js';
import type { Movement } from './rank-movements.js';
import { TaskTracer } from './task-tracer.js';
import { lanesOfQueues } from './trace-header.js';

/** Least nanoseconds between two looks at stolen time: each costs 1 to 2 us. */
const STOLEN_INTERVAL = 1_000_000;

export class EngineTracer {
  readonly recorder: TraceRecorder;
  /** Where tasks go. */
  readonly tasks: TaskTracer;
  private readonly engine: Engine;
  /** -1 in a single process. */
  private readonly networkLane: number;
  /** Lane of each queue. */
  private readonly laneOf: Uint8Array;
  /** Bytes on their way into each space: scratch of a sample. */
  private readonly arriving: Float64Array;
  /** Spans of stolen time: scratch of `takeStolen`. */
  private readonly stolen: Float64Array = new Float64Array(3 * 64);
  private nextStolen = 0;
  /** Insertions that wait for room in the window: bodies that insert can wait inside others. */
  private throttled = 0;

  constructor(engine: Engine, sink: TraceSink, header: TraceHeader) {
    this.engine = engine;
    this.recorder = new TraceRecorder(sink, header);
    this.networkLane = header.lanes.findIndex(({ kind }) => kind === 'network');
    this.laneOf = lanesOfQueues(engine.backend.queues);
    this.arriving = new Float64Array(engine.spaces.length);
    this.tasks = new TaskTracer(engine, this.recorder, header, (d) => this.describe(d));
    engine.x.tracing = true;
    engine.backend.setTiming(true);
    engine.dependencies.listener = (successor, predecessor) =>
      this.recorder.dependency(successor, predecessor);
    engine.x.counters.observer = {
      evicted: (s, d) => this.left(EventKind.evict, s, d),
      spilled: (s, d) => this.left(EventKind.spill, s, d),
    };
  }

  /** The program begins or ends to wait for room in the window. */
  throttle(begins: boolean): void {
    if (begins ? this.throttled++ > 0 : --this.throttled > 0) return;
    const kind = begins ? EventKind.throttleBegin : EventKind.throttleEnd;
    this.recorder.event(kind, this.engine.backend.now());
  }

  /** A pass begins at `now`. If the engine had no core until then, that must be seen before it does anything. */
  begins(now: number): void {
    if (now < this.nextStolen) return;
    this.nextStolen = now + STOLEN_INTERVAL;
    this.takeStolen();
  }

  /** Writes down when threads had no core. */
  private takeStolen(): void {
    const { recorder, engine, stolen, laneOf } = this;
    let count: number;
    do {
      count = engine.backend.takeStolen(stolen);
      for (let i = 0; i < 3 * count; i += 3) {
        const lane = stolen[i] < 0 ? NO_INDEX : laneOf[stolen[i]];
        // Without a lane it would be taken for the engine's thread.
        if (stolen[i] < 0 || lane !== NO_INDEX) recorder.stolen(lane, stolen[i + 1], stolen[i + 2]);
      }
    } while (3 * count === stolen.length);
  }

  /** A pass that began at `now` is over. */
  passed(now: number): void {
    this.tasks.passed(now);
    this.counters(now);
  }

  private left(kind: number, s: number, d: number): void {
    this.name(d);
    const { backend, directory } = this.engine;
    this.recorder.event(kind, backend.now(), s, undefined, d, directory.bytes[d]);
  }

  bodyStarted(row: number): void {
    this.engine.tasks.stamp(row, TaskTime.execStart, this.engine.backend.now());
  }

  bodyEnded(row: number): void {
    this.engine.tasks.stamp(row, TaskTime.execEnd, this.engine.backend.now());
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
      this.laneOf[queue],
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
    this.takeStolen();
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
      this.tasks.insertedTasks,
      this.tasks.retiredTasks,
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
