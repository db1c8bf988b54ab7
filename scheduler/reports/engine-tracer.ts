// Feeds the trace recorder from the engine: tasks when they retire (task-tracer.ts), one record per transfer, samples of
// memory. Stage times taken by the engine are those of its pass; times of kernels and copies are the executor's.
// Invariant: recording never changes a decision and never allocates per task.

import type { HeadraceError } from '../../devices/errors.js';
import type { DatumId, QueueId, SpaceId, TaskId } from '../../devices/handles.js';
import {
  EventKind,
  NO_INDEX,
  NO_PEER,
  NONE,
  TaskTime,
  type TraceHeader,
  TransferKind,
  TransferReason,
} from '../../trace/format.js';
import { TraceRecorder } from '../../trace/recorder.js';
import type { FinishedTransfer, Scratch } from '../../trace/recorder-input.js';
import type { TraceSink } from '../../trace/sinks.js';
import type { Dispatcher } from '../engine/dispatcher.js';
import { EngineObserver, type Payload } from '../engine/observer.js';
import type { QueueChoice } from '../engine/queue-choice.js';
import type { RunState } from '../engine/run-state.js';
import type { EngineState } from '../engine/state.js';
import type { PlayedPart } from '../plans/played-part.js';
import { PlayTracer } from './play-tracer.js';
import { TaskTracer } from './task-tracer.js';
import { lanesOfQueues } from './trace-header.js';

/** Least nanoseconds between two readings of stolen time: each costs 1 to 2 us. */
const STOLEN_INTERVAL = 1_000_000;

/** The state, and the parts that hold ready tasks. */
type Traced = EngineState & {
  readonly dispatcher: Pick<Dispatcher, 'ready'>;
  readonly queueChoice: Pick<QueueChoice, 'lines'>;
};

export class EngineTracer extends EngineObserver {
  readonly recorder: TraceRecorder;
  /** Records tasks. */
  private readonly tasks: TaskTracer;
  /** Records plays. */
  private readonly plays: PlayTracer;
  private readonly engine: Traced;
  /** -1 in a single process. */
  private readonly networkLane: number;
  /** Lane of each queue. */
  private readonly laneOf: Uint8Array;
  /** The transfer that is recorded; filled anew for each. */
  private readonly moved: Scratch<FinishedTransfer> = {
    kind: 0,
    reason: 0,
    lane: 0,
    source: 0,
    destination: 0,
    task: NONE,
    datum: 0,
    version: 0,
    peer: NO_PEER,
    message: NONE,
    bytes: 0,
    issued: 0,
    start: 0,
    end: 0,
  };
  /** Bytes on their way into each space: scratch of a sample. */
  private readonly arriving: Float64Array;
  /** Spans of stolen time: scratch of `takeStolen`. */
  private readonly stolen: Float64Array = new Float64Array(3 * 64);
  private nextStolen = 0;
  /** Insertions that wait for room in the window. A body that inserts can wait inside another insertion. */
  private waiting = 0;

  constructor(engine: Traced, sink: TraceSink, header: TraceHeader) {
    super();
    this.engine = engine;
    this.recorder = new TraceRecorder(sink, header);
    this.networkLane = header.lanes.findIndex(({ kind }) => kind === 'network');
    this.laneOf = lanesOfQueues(engine.backend.queues);
    this.arriving = new Float64Array(engine.spaces.length);
    this.tasks = new TaskTracer(engine, this.recorder, header, (d) => this.describe(d));
    this.plays = new PlayTracer(engine, this.recorder, (d) => this.name(d));
    engine.x.tracing = true;
    engine.backend.setTiming(true);
  }

  override dependency(successor: TaskId, predecessor: TaskId): void {
    this.recorder.dependency(successor, predecessor);
  }

  override evicted(s: SpaceId, d: DatumId): void {
    this.left(EventKind.evict, s, d);
  }

  override spilled(s: SpaceId, d: DatumId): void {
    this.left(EventKind.spill, s, d);
  }

  override inserted(id: TaskId): void {
    this.tasks.inserted(id);
  }

  override published(now: number): void {
    this.tasks.issued(now);
  }

  override windowResized(rows: number): void {
    this.tasks.resize(rows);
  }

  override retired(row: number, status: number): void {
    this.tasks.retired(row, status);
  }

  override retirementsBegin(): void {
    this.tasks.begin();
  }

  override retirementsEnd(): void {
    this.tasks.end();
  }

  /** The program begins or stops waiting for room in the window. */
  override throttled(begins: boolean): void {
    if (begins ? this.waiting++ > 0 : --this.waiting > 0) return;
    const kind = begins ? EventKind.throttleBegin : EventKind.throttleEnd;
    this.recorder.event(kind, this.engine.backend.now());
  }

  /**
   * A pass begins at `now`. If the engine had no core until then, the trace must record that before the pass does
   * anything.
   */
  override passBegins(now: number): void {
    if (now < this.nextStolen) return;
    this.nextStolen = now + STOLEN_INTERVAL;
    this.takeStolen();
  }

  /** Records times at which threads had no core. */
  private takeStolen(): void {
    const { recorder, engine, stolen, laneOf } = this;
    let count: number;
    do {
      count = engine.backend.takeStolen(stolen);
      for (let i = 0; i < 3 * count; i += 3) {
        const lane = stolen[i] < 0 ? NO_INDEX : laneOf[stolen[i]];
        // Without a lane the record would belong to the engine's thread.
        if (stolen[i] < 0 || lane !== NO_INDEX) recorder.stolen(lane, stolen[i + 1], stolen[i + 2]);
      }
    } while (3 * count === stolen.length);
  }

  /** A pass that began at `now` is over. */
  override passEnds(now: number): void {
    this.tasks.passed(now);
    this.counters(now);
  }

  private left(kind: number, s: SpaceId, d: DatumId): void {
    this.name(d);
    const { backend, directory } = this.engine;
    this.recorder.event(kind, backend.now(), { space: s, datum: d, bytes: directory.bytes[d] });
  }

  override bodyStarted(row: number): void {
    this.engine.tasks.stamp(row, TaskTime.execStart, this.engine.backend.now());
  }

  override bodyEnded(row: number): void {
    this.engine.tasks.stamp(row, TaskTime.execEnd, this.engine.backend.now());
  }

  override transferDone(t: number, queue: QueueId, seq: number): void {
    const { engine } = this;
    const { transfers, backend, directory } = engine;
    const source = transfers.source[t];
    const destination = transfers.destination[t];
    const d = transfers.datum[t];
    this.name(d);
    const { moved } = this;
    moved.kind =
      source === 0 ? TransferKind.h2d : destination === 0 ? TransferKind.d2h : TransferKind.d2d;
    moved.reason = transfers.reason[t];
    moved.lane = this.laneOf[queue];
    moved.source = source;
    moved.destination = destination;
    moved.task = transfers.task[t] === 0 ? NONE : transfers.task[t];
    moved.datum = d;
    moved.version = transfers.version[t];
    moved.bytes = directory.bytes[d];
    moved.issued = transfers.issuedAt[t];
    moved.start = backend.startOf(queue, seq);
    moved.end = backend.endOf(queue, seq);
    this.recorder.transfer(moved);
  }

  override sent(payload: Payload): void {
    this.message(TransferReason.send, payload, payload.space, NO_INDEX);
  }

  override received(payload: Payload): void {
    this.message(TransferReason.receive, payload, NO_INDEX, payload.space);
  }

  private message(
    reason: number,
    { d, task, peer, message, way, bytes, start, end }: Payload,
    source: number,
    destination: number,
  ): void {
    const { directory, backend } = this.engine;
    this.name(d);
    this.recorder.transfer({
      kind: TransferKind[way],
      reason,
      lane: this.networkLane,
      source,
      destination,
      task,
      datum: d,
      version: directory.version[d],
      peer,
      message,
      bytes,
      issued: start,
      start,
      end: end === 0 ? backend.now() : end,
    });
  }

  /** One measurement of rank `peer`'s clock: see `TraceRecorder.clock`. */
  override clock(peer: number, time: number, offset: number, error: number): void {
    // Ranks of one world share its clock. Over a slow link a measurement would say less.
    if (this.engine.backend.kind === 'simulated') return;
    this.recorder.clock(peer, time, offset, error);
  }

  override runFailed(_run: RunState, error: HeadraceError): void {
    const kind = error.code === 'ERR_ABORTED' ? EventKind.cancel : EventKind.fail;
    this.recorder.event(kind, this.engine.backend.now(), { text: error.message });
  }

  /** Nothing has moved for a long time. */
  override watchdog(): void {
    this.recorder.event(EventKind.watchdog, this.engine.backend.now());
  }

  override runBegan(): void {
    this.recorder.event(EventKind.runBegin, this.engine.backend.now());
  }

  override insertionEnded(): void {
    this.recorder.event(EventKind.insertEnd, this.engine.backend.now());
  }

  override runEnded(): void {
    this.takeStolen();
    this.recorder.event(EventKind.runEnd, this.engine.backend.now());
  }

  override played(part: PlayedPart): void {
    this.plays.record(part);
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
      // A copy under way holds a pin; this sample counts it once.
      const coming = Math.min(arriving[space.index], space.pinnedBytes);
      recorder.memory({
        space: space.index,
        time: now,
        used: space.zone.used,
        pinned: space.pinnedBytes - coming,
        dirty: space.dirtyBytes,
        clean: space.cleanBytes,
        arriving: coming,
      });
    }
    let ready = 0;
    for (const queue of engine.dispatcher.ready) ready += queue.length;
    for (const line of engine.queueChoice.lines) ready += line.length;
    recorder.progress({
      time: now,
      ready,
      window: engine.tasks.live,
      bytesInFlight: inFlight,
      messagesInFlight: 0,
      inserted: this.tasks.insertedTasks,
      retired: this.tasks.retiredTasks,
    });
  }

  /** Names datum row `d` in the trace before its first use there. */
  private name(d: DatumId): void {
    if (this.engine.directory.described[d] === 0) this.describe(d);
  }

  private describe(d: DatumId): void {
    const { directory, remote } = this.engine;
    directory.described[d] = 1;
    const name = directory.info[d]?.name ?? `#${d}`;
    this.recorder.datum(d, directory.bytes[d], remote?.ownerOf(d) ?? 0, name);
  }
}
