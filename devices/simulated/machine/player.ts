// Plays on a simulated machine, as native/queues/feed.cpp has them: a queue that has no records left gets the next ones of
// its list, until all iterations are written, the run is cancelled, or the condition no longer holds.
import {
  execRecords,
  RecordLayout as Layout,
  type NativePlay,
  Opcode,
  PlanElement,
  PlanOpen,
  Status,
  RecordTimes as Times,
} from '../../backend.js';
import { guards } from '../../guards.js';
import type { QueueId } from '../../handles.js';
import type { Executor } from './executor.js';
import { ARGS, Op } from './records.js';

const OPS: Readonly<Record<number, number>> = {
  [Opcode.wait]: Op.wait,
  [Opcode.copy]: Op.copy,
  [Opcode.send]: Op.send,
  [Opcode.receive]: Op.receive,
  [Opcode.deliver]: Op.deliver,
};

/** One queue of a play. */
interface Feed {
  readonly queue: QueueId;
  readonly words: Int32Array;
  readonly doubles: Float64Array;
  readonly open: Int32Array;
  readonly length: number;
  readonly base: number;
  /** Takes the times of all records, if somebody wants them. */
  readonly times: Float64Array | undefined;
  /** Records whose times are kept. */
  kept: number;
  iteration: number;
  index: number;
  nextOpen: number;
  hasArrived: boolean;
  isOver: boolean;
  succeeded: number;
  status: number;
}

export class Player {
  private readonly executor: Executor;
  private readonly now: () => number;
  /** Watches the issue of records. */
  private readonly issued: (queue: QueueId, seq: number, onQueue: QueueId, onSeq: number) => void;
  private play: NativePlay | undefined;
  private feeds: Feed[] = [];
  private readonly byQueue: (Feed | undefined)[] = [];
  /** Iterations so far; no more may come once that is final. */
  private times = 0;
  private isFinal = false;
  private allowed = 0;
  private ended = false;
  private arrivals = 0;

  constructor(
    executor: Executor,
    now: () => number,
    issued: (queue: QueueId, seq: number, onQueue: QueueId, onSeq: number) => void,
  ) {
    this.executor = executor;
    this.now = now;
    this.issued = issued;
    executor.refill = (q, at) => this.refill(q, at);
  }

  begin(play: NativePlay): void {
    const { executor } = this;
    this.play = play;
    this.ended = false;
    this.arrivals = 0;
    this.times = play.times;
    this.isFinal = play.room === 0;
    const { condition } = play;
    this.allowed =
      condition === undefined
        ? play.times
        : condition.first
          ? 0
          : Math.min(play.times, condition.every);
    this.feeds = play.queues.map(({ queue, records, open }, i) => ({
      queue: queue as QueueId,
      words: records,
      doubles: new Float64Array(records.buffer, records.byteOffset, records.length / 2),
      open,
      length: records.length / Layout.words,
      base: executor.done[queue],
      times: play.recordTimes[i],
      kept: 0,
      iteration: 0,
      index: 0,
      nextOpen: 0,
      hasArrived: false,
      isOver: false,
      succeeded: 0,
      status: Status.ok,
    }));
    for (const feed of this.feeds) this.byQueue[feed.queue] = feed;
    this.wakeAll(this.now());
  }

  extend(times: number): boolean {
    if (this.isFinal) return false;
    this.times = times;
    this.allowed = times;
    return true;
  }

  /** Whether a queue has its records from a play. */
  plays(queue: QueueId): boolean {
    return this.byQueue[queue] !== undefined;
  }

  outcome(): Float64Array {
    const result = [this.allowed];
    for (const feed of this.feeds) {
      this.settle(feed);
      this.keepTimes(feed, feed.iteration * feed.length + feed.index);
      result.push(feed.succeeded, feed.status);
      this.byQueue[feed.queue] = undefined;
    }
    this.feeds = [];
    this.play = undefined;
    return Float64Array.from(result);
  }

  private isCancelled(): boolean {
    const run = this.play?.run ?? -1;
    return run >= 0 && this.executor.cancelled[run] !== 0;
  }

  private wakeAll(at: number): void {
    for (const { queue } of this.feeds) this.executor.look(queue, at);
  }

  private refill(q: QueueId, at: number): boolean {
    const feed = this.byQueue[q];
    const { play } = this;
    if (feed === undefined || play === undefined || feed.isOver) return false;
    if (this.isCancelled()) {
      this.skip(feed, at);
      return false;
    }
    if (feed.index === 0 && feed.iteration === this.allowed) {
      if (!feed.hasArrived) {
        feed.hasArrived = true;
        this.arrive(play, at);
      }
      if (feed.isOver) return false;
      if (this.ended) {
        this.skip(feed, at);
        return false;
      }
      if (feed.iteration === this.allowed) return false;
    }
    feed.hasArrived = false;
    return this.fill(feed, play);
  }

  private arrive(play: NativePlay, at: number): void {
    this.arrivals++;
    if (this.arrivals < this.feeds.length) return;
    this.arrivals = 0;
    if (this.holds(play))
      this.allowed = Math.min(play.times, this.allowed + (play.condition?.every ?? 1));
    else this.ended = true;
    this.wakeAll(at);
  }

  private holds({ condition }: NativePlay): boolean {
    const memory = condition === undefined ? undefined : this.executor.bytes[condition.space];
    if (condition === undefined || memory === undefined) return true;
    const view = new DataView(memory.buffer, memory.byteOffset + condition.offset);
    const read = {
      [PlanElement.f64]: () => view.getFloat64(0, true),
      [PlanElement.f32]: () => view.getFloat32(0, true),
      [PlanElement.i32]: () => view.getInt32(0, true),
      [PlanElement.u32]: () => view.getUint32(0, true),
      [PlanElement.u8]: () => view.getUint8(0),
    }[condition.element] as () => number;
    return condition.below ? read() < condition.limit : read() > condition.limit;
  }

  private fill(feed: Feed, play: NativePlay): boolean {
    const { executor } = this;
    const { queue } = feed;
    const inFlight = (executor.published[queue] - executor.done[queue]) | 0;
    const room = executor.records.capacity - inFlight;
    if (guards.planTimes)
      this.keepTimes(feed, feed.iteration * feed.length + feed.index - inFlight);
    let written = 0;
    while (feed.iteration < this.allowed) {
      const head = feed.words[feed.index * Layout.words + Layout.head];
      const opcode = head & 0xff;
      const span = opcode === Opcode.exec ? execRecords(head >>> 20) : 1;
      if (written + span > room) break;
      this.write(feed, play, span);
      written += span;
      feed.index += span;
      if (feed.index < feed.length) continue;
      feed.index = 0;
      feed.nextOpen = 0;
      feed.iteration++;
    }
    if (feed.iteration === this.times) {
      feed.isOver = true;
      this.isFinal = true;
    }
    return written > 0;
  }

  /** Keeps the times of the completed records before `end`: their slots are about to be used again. */
  private keepTimes(feed: Feed, end: number): void {
    const { times, queue, base } = feed;
    if (times === undefined) return;
    const { records } = this.executor;
    for (; feed.kept < end; feed.kept++) {
      const slot = records.slotOf(queue, (base + feed.kept + 1) | 0);
      times[feed.kept * Times.doubles + Times.start] = records.startAt[slot];
      times[feed.kept * Times.doubles + Times.end] = records.endAt[slot];
    }
  }

  private write(feed: Feed, play: NativePlay, span: number): void {
    const { executor } = this;
    const { records } = executor;
    const { queue, words, doubles } = feed;
    const at = feed.index * Layout.words;
    const head = words[at + Layout.head];
    const kernel = words[at + Layout.kernel];
    const onQueue = ((kernel >> 16) - 1) as QueueId;
    let onSeq = 0;
    if (onQueue >= 0) {
      const other = this.byQueue[onQueue] as Feed;
      onSeq =
        (other.base + Math.imul(feed.iteration, other.length) + words[at + Layout.waitSeq]) | 0;
    }
    const seq = (executor.published[queue] + 1) | 0;
    const opcode = head & 0xff;
    const op = OPS[opcode] ?? Op.exec;
    const slot = records.write(queue, seq, op, words[at + Layout.task], play.run, onQueue, onSeq);
    this.issued(queue, seq, onQueue, onSeq);
    executor.published[queue] = (seq + span - 1) | 0;
    if (op === Op.wait) return;
    const count = head >>> 20;
    const list = new Float64Array(count);
    const base = feed.index * Layout.doubles;
    const placeOf = (i: number): number =>
      i < Layout.inlineArguments
        ? base + Layout.argument + i
        : base + Layout.doubles + (i - Layout.inlineArguments);
    for (let i = 0; i < count; i++) list[i] = doubles[placeOf(i)];
    const turn = play.room === 0 ? feed.iteration : feed.iteration % play.room;
    const parameters = play.parameters.subarray(turn * play.slots);
    for (; feed.nextOpen < feed.open.length; feed.nextOpen += PlanOpen.words) {
      const record = feed.open[feed.nextOpen + PlanOpen.record];
      if (record >= feed.index + span) break;
      const place = record * Layout.doubles + feed.open[feed.nextOpen + PlanOpen.argument];
      const slotOf = feed.open[feed.nextOpen + PlanOpen.slot];
      for (let i = 0; i < count; i++) if (placeOf(i) === place) list[i] = parameters[slotOf];
    }
    records.what[slot] = kernel & 0xffff;
    records.span[slot] = span;
    if (op === Op.copy) {
      for (let i = 0; i < count; i++) records.args[slot * ARGS + i] = list[i];
      return;
    }
    records.flows[slot] = (head >> 8) & 0xfff;
    records.arguments[slot] = count;
    records.setArguments(queue, slot, list, count);
  }

  private skip(feed: Feed, at: number): void {
    const { executor } = this;
    feed.isOver = true;
    this.isFinal = true;
    this.settle(feed);
    const last = (feed.base + Math.imul(this.times, feed.length)) | 0;
    executor.skip(feed.queue, last, at);
    this.wakeAll(at);
  }

  /** Keeps the number of records that succeeded, before their slots are used again. */
  private settle(feed: Feed): void {
    if (feed.succeeded > 0 || feed.status !== Status.ok) return;
    const { records } = this.executor;
    const written = feed.iteration * feed.length + feed.index;
    feed.succeeded = written;
    let index = 0;
    const begin = Math.max(0, written - records.capacity);
    for (let at = Math.floor(begin / feed.length) * feed.length; at < written; ) {
      const head = feed.words[index * Layout.words + Layout.head];
      const slot = records.slotOf(feed.queue, (feed.base + at + 1) | 0);
      if (at >= begin && records.outcome[slot] !== Status.ok) {
        feed.succeeded = at;
        feed.status = records.outcome[slot];
        return;
      }
      const span = (head & 0xff) === Opcode.exec ? execRecords(head >>> 20) : 1;
      at += span;
      index = (index + span) % feed.length;
    }
  }
}
