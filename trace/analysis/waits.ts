// Why a lane was idle before a task, or why a task waited: splits a span of time into named reasons.
//
// At each moment before a task X runs, the first of these that holds is the reason:
//   X was not inserted yet             submission, or throttled while the task window was full
//   a predecessor was still running    noTask (also one on another rank whose result X received, or whose result a send
//                                      of X's data waited for)
//   a send or receive before X was     network
//     not over
//   X was not ready                    noTask
//   X had no memory                    memory
//   a transfer X needed was not done   h2d, d2h, d2d or network: by the transfer under way (of several, the one that
//                                      ends last, of these the first recorded), or by the next to start
//   X had not finished comm-in         network, if the rank has one
//   otherwise                          scheduler (deciding, issuing, launching)
// Instead of these, the reason is `stolen` while the thread that should have ended it had no core: the engine's before
// X was inserted or ready, the engine's or that of X's lane at the end, the predecessor's or the transfer's while that
// stood still, and the engine's until a transfer starts.
// The spans tile the time exactly: whole nanoseconds, no overlap, no rest.
import { group, type Lists } from '../columns.js';
import { EventKind, TaskTime, TransferKind, TransferReason } from '../format.js';
import type { Trace } from '../trace.js';
import { type TaskGraph, taskGraph } from './graph.js';
import { cut, type Spans, StolenTime } from './stolen.js';

/** Reasons of idle time, by number; the order is that of reports. */
export const idleReasons = [
  'noTask',
  'h2d',
  'd2h',
  'd2d',
  'network',
  'memory',
  'scheduler',
  'submission',
  'throttled',
  'stolen',
] as const;

/** Name of a reason. */
export type IdleReason = (typeof idleReasons)[number];

/** Number of a reason. */
export const IdleReasonNumber: { readonly [reason in IdleReason]: number } = {
  noTask: 0,
  h2d: 1,
  d2h: 2,
  d2d: 3,
  network: 4,
  memory: 5,
  scheduler: 6,
  submission: 7,
  throttled: 8,
  stolen: 9,
};

/** The meaning of a reason, and the remedy for much of it. */
export const idleAdvice: { readonly [reason in IdleReason]: { title: string; advice: string } } = {
  noTask: {
    title: 'no ready task',
    advice:
      'not enough parallel work: smaller tiles, look-ahead, priorities along the critical path',
  },
  h2d: {
    title: 'waiting for host to device',
    advice: 'prefetch, place tasks where their data are, larger tiles, more device memory',
  },
  d2h: {
    title: 'waiting for device to host',
    advice:
      'keep consecutive tasks on one device; spills: use less memory per device or more devices',
  },
  d2d: {
    title: 'waiting for device to device',
    advice: 'place tasks that share data on one device; check that peer access is on',
  },
  network: {
    title: 'waiting for the network',
    advice: 'another distribution, larger tiles, more look-ahead so that messages travel earlier',
  },
  memory: {
    title: 'waiting for device memory',
    advice: 'smaller tiles, more devices, a smaller window, release data earlier',
  },
  scheduler: {
    title: 'scheduling and launching',
    advice: 'tasks are too short for the runtime: larger tiles, or several operations per task',
  },
  submission: {
    title: 'program inserts too slowly',
    advice: 'insert earlier: fewer awaits between inserts, cheaper loops, several tasks per call',
  },
  throttled: {
    title: 'task window full',
    advice: 'raise the window, or insert in an order that lets early tasks retire',
  },
  stolen: {
    title: 'thread without a core',
    advice: 'threads outnumber the cores: fewer workers, or fewer other programs on the machine',
  },
};

/** A reason in words: its name in JSON, tables and the viewer, and its meaning. */
export function reasonText(reason: IdleReason): string {
  return `${reason} (${idleAdvice[reason].title})`;
}

/** The reason a transfer of each kind stands for. */
export const reasonOfKind: readonly number[] = [
  IdleReasonNumber.h2d,
  IdleReasonNumber.d2h,
  IdleReasonNumber.d2d,
  IdleReasonNumber.network,
  IdleReasonNumber.network,
  IdleReasonNumber.network,
  IdleReasonNumber.network,
];

// An insertion this long after the window had room again still counts as held back by it.
const THROTTLE_SLACK = 1000;

/** Receives one span of waiting: `[from, to)` nanoseconds. */
export type SpanVisitor = (from: number, to: number, reason: number) => void;

/** Answers why a task waited. Built once per trace; O(tasks + edges + transfers). */
export class Waits {
  readonly graph: TaskGraph;
  readonly stolen: StolenTime;
  readonly #trace: Trace;
  readonly #ofTask: Lists;
  readonly #ofDatum: Lists;
  // Ranks with a network: on the others comm-in takes no time.
  readonly #networked: ReadonlySet<number>;
  readonly #throttled: Map<number, { from: number; to: number }[]>;
  /** For each send and receive, the task before it that ended last, -1 without any. Undefined if there are none. */
  readonly #producers: Int32Array | undefined;

  constructor(trace: Trace, graph: TaskGraph = taskGraph(trace)) {
    this.#trace = trace;
    this.graph = graph;
    this.stolen = new StolenTime(trace);
    const { transfers } = trace;
    const rows = Int32Array.from({ length: transfers.count }, (_, row) => row);
    this.#ofTask = group(trace.tasks.count, transfers.task, rows);
    this.#ofDatum = group(trace.data.count, transfers.datum, rows);
    const { start, items } = this.#ofDatum;
    for (let datum = 0; datum < trace.data.count; datum++) {
      const part = items.subarray(start[datum], start[datum + 1]);
      if (part.length > 1) part.sort((a, b) => transfers.end[a] - transfers.end[b] || a - b);
    }
    this.#throttled = throttledSpans(trace);
    this.#networked = new Set(
      trace.lanes.filter((lane) => lane.kind === 'network').map((lane) => lane.rank),
    );
    this.#producers = this.#findProducers();
  }

  /** Sends and receives are tasks on the lanes of the network. */
  #isMovement(row: number): boolean {
    return this.#trace.lanes[this.#trace.tasks.lane[row]]?.kind === 'network';
  }

  // Sends follow receives, and receives sends, so the walk goes through the tasks in their order.
  #findProducers(): Int32Array | undefined {
    const { tasks } = this.#trace;
    let producers: Int32Array | undefined;
    for (const row of this.graph.order) {
      if (!this.#isMovement(row)) continue;
      producers ??= new Int32Array(tasks.count).fill(-1);
      producers[row] = this.#lastTask(row, producers);
    }
    return producers;
  }

  /** True when a full task window held back an insertion at `time`. */
  wasThrottled(rank: number, time: number): boolean {
    const spans = this.#throttled.get(rank) ?? [];
    const after = firstEndingAfter(spans, time);
    if (after < spans.length && spans[after].from < time) return true;
    return after > 0 && time - spans[after - 1].to <= THROTTLE_SLACK;
  }

  /** The first time at which the task window of a rank was full, Infinity if never. */
  firstThrottle(rank: number): number {
    return this.#throttled.get(rank)?.[0]?.from ?? Number.POSITIVE_INFINITY;
  }

  /** Of the predecessors of a task, those behind sends and receives included, the one that ended last; -1 without any. */
  #lastTask(row: number, producers: Int32Array | undefined): number {
    const { start, items } = this.graph.predecessors;
    const ends = this.#trace.tasks.times[TaskTime.execEnd];
    let last = -1;
    for (let i = start[row]; i < start[row + 1]; i++) {
      const before = items[i];
      const task = producers !== undefined && this.#isMovement(before) ? producers[before] : before;
      if (task >= 0 && (last < 0 || ends[task] > ends[last])) last = task;
    }
    return last;
  }

  /** When the last send or receive among the predecessors of a task was over; -Infinity without any. */
  #lastMessage(row: number): number {
    let latest = Number.NEGATIVE_INFINITY;
    if (this.#producers === undefined) return latest;
    const { start, items } = this.graph.predecessors;
    const ends = this.#trace.tasks.times[TaskTime.execEnd];
    for (let i = start[row]; i < start[row + 1]; i++) {
      if (this.#isMovement(items[i])) latest = Math.max(latest, ends[items[i]]);
    }
    return latest;
  }

  /**
   * The transfers that a task waited for: those made for it, and the transfers of its data to its memory space that ended
   * while it waited, although they were made for another task (it joined them). Sends and spills do not count.
   */
  transfersBefore(row: number): number[] {
    const { tasks, transfers } = this.#trace;
    const start = tasks.times[TaskTime.execStart][row];
    const ready = tasks.times[TaskTime.ready][row];
    const found: number[] = [];
    for (let i = this.#ofTask.start[row]; i < this.#ofTask.start[row + 1]; i++) {
      const transfer = this.#ofTask.items[i];
      if (transfers.end[transfer] <= start && feeds(transfers.reason[transfer])) {
        found.push(transfer);
      }
    }
    const { accesses } = tasks;
    for (let a = accesses.start[row]; a < accesses.start[row + 1]; a++) {
      const datum = accesses.items[a];
      for (let i = this.#firstEndAfter(datum, ready); i < this.#ofDatum.start[datum + 1]; i++) {
        const transfer = this.#ofDatum.items[i];
        if (transfers.end[transfer] > start) break;
        if (
          transfers.task[transfer] !== row &&
          transfers.destination[transfer] === tasks.space[row] &&
          feeds(transfers.reason[transfer])
        ) {
          found.push(transfer);
        }
      }
    }
    return found;
  }

  /** Splits `[from, to)` before task `row` ran into spans by reason. */
  split(row: number, from: number, to: number, visit: SpanVisitor): void {
    const { times, rank, lane } = this.#trace.tasks;
    const { noTask, network } = IdleReasonNumber;
    const engine = this.stolen.engine(rank[row]);
    let at = this.#beforeInsert(row, from, Math.min(to, times[TaskTime.inserted][row]), visit);
    at = this.#untilPredecessor(this.#lastTask(row, this.#producers), at, to, visit);
    at = span(at, Math.min(to, this.#lastMessage(row)), network, visit);
    at = unlessStolen(engine, at, Math.min(to, times[TaskTime.ready][row]), noTask, visit);
    at = span(at, Math.min(to, times[TaskTime.alloc][row]), IdleReasonNumber.memory, visit);
    if (at >= to) return;
    const { transfers } = this.#trace;
    const needed = this.transfersBefore(row);
    needed.sort((a, b) => transfers.end[b] - transfers.end[a] || a - b);
    if (needed.length > 0) at = this.#untilTransfers(needed, at, to, visit);
    at = span(at, Math.min(to, this.#waitsForNetwork(row)), network, visit);
    const { scheduler } = IdleReasonNumber;
    unlessStolen(this.stolen.laneOrEngine(lane[row]), at, to, scheduler, visit);
  }

  // While the predecessor ran: it may have stood still. Before it ran it waited for reasons of its own.
  #untilPredecessor(row: number, from: number, to: number, visit: SpanVisitor): number {
    if (row < 0) return from;
    const { times, lane } = this.#trace.tasks;
    const { noTask } = IdleReasonNumber;
    const at = span(from, Math.min(to, times[TaskTime.execStart][row]), noTask, visit);
    const still = this.stolen.standstill(lane[row]);
    return unlessStolen(still, at, Math.min(to, times[TaskTime.execEnd][row]), noTask, visit);
  }

  // Walks back from the end of the last transfer: a transfer under way is the reason (of several, the one that
  // ends last); before the first starts and between two, the next one is. `needed` is sorted by end, latest first.
  #untilTransfers(needed: readonly number[], from: number, to: number, visit: SpanVisitor): number {
    const { transfers } = this.#trace;
    const until = Math.min(to, transfers.end[needed[0]]);
    if (until <= from) return from;
    const starts: number[] = [];
    const owners: number[] = [];
    let upTo = Number.POSITIVE_INFINITY;
    for (const transfer of needed) {
      if (transfers.start[transfer] >= upTo) continue;
      if (starts.length > 0 && transfers.end[transfer] < upTo) {
        starts[starts.length - 1] = transfers.end[transfer];
      }
      upTo = transfers.start[transfer];
      starts.push(upTo);
      owners.push(transfer);
    }
    let at = from;
    for (let i = owners.length - 1; i >= 0; i--) {
      const end = i === 0 ? until : Math.min(until, starts[i - 1]);
      at = this.#untilTransfer(owners[i], at, end, visit);
    }
    return at;
  }

  // A message that has not left yet because its producer is still running is no fault of the network.
  #untilTransfer(transfer: number, from: number, to: number, visit: SpanVisitor): number {
    const { transfers, tasks } = this.#trace;
    const partner = transfers.partner[transfer];
    let at = from;
    const sender = partner < 0 ? -1 : transfers.task[partner];
    const producer =
      sender >= 0 && this.#isMovement(sender) ? this.#lastTask(sender, this.#producers) : sender;
    if (producer >= 0) {
      const produced = tasks.times[TaskTime.execEnd][producer];
      at = span(at, Math.min(to, produced), IdleReasonNumber.noTask, visit);
    }
    const reason = reasonOfKind[transfers.kind[transfer]];
    if (isNetworkKind(transfers.kind[transfer])) return span(at, to, reason, visit);
    const lane = transfers.lane[transfer];
    const start = Math.min(to, transfers.start[transfer]);
    at = unlessStolen(this.stolen.laneOrEngine(lane), at, start, reason, visit);
    return unlessStolen(this.stolen.standstill(lane), at, to, reason, visit);
  }

  #waitsForNetwork(row: number): number {
    const { times, rank } = this.#trace.tasks;
    if (!this.#networked.has(rank[row])) return Number.NEGATIVE_INFINITY;
    const commIn = times[TaskTime.commIn][row];
    return commIn > times[TaskTime.stageIn][row] ? commIn : Number.NEGATIVE_INFINITY;
  }

  #beforeInsert(row: number, from: number, to: number, visit: SpanVisitor): number {
    let at = from;
    const rank = this.#trace.tasks.rank[row];
    const { submission } = IdleReasonNumber;
    const engine = this.stolen.engine(rank);
    const spans = this.#throttled.get(rank) ?? [];
    for (let i = firstEndingAfter(spans, from); i < spans.length && at < to; i++) {
      if (spans[i].from >= to) break;
      at = unlessStolen(engine, at, Math.min(to, spans[i].from), submission, visit);
      at = span(at, Math.min(to, spans[i].to), IdleReasonNumber.throttled, visit);
    }
    return unlessStolen(engine, at, to, submission, visit);
  }

  #firstEndAfter(datum: number, time: number): number {
    const { start, items } = this.#ofDatum;
    const { end } = this.#trace.transfers;
    let low = start[datum];
    let high = start[datum + 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (end[items[middle]] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

function feeds(reason: number): boolean {
  return (
    reason !== TransferReason.send &&
    reason !== TransferReason.spill &&
    reason !== TransferReason.writeThrough &&
    reason !== TransferReason.readBack
  );
}

function span(from: number, to: number, reason: number, visit: SpanVisitor): number {
  if (to <= from) return from;
  visit(from, to, reason);
  return to;
}

// A span of one reason, except while the thread that should have ended it had no core.
function unlessStolen(
  stolen: Spans,
  from: number,
  to: number,
  reason: number,
  visit: SpanVisitor,
): number {
  if (to <= from) return from;
  if (stolen.from.length === 0) return span(from, to, reason, visit);
  cut(stolen, from, to, (start, end, isStolen) => {
    visit(start, end, isStolen ? IdleReasonNumber.stolen : reason);
  });
  return to;
}

/** Per rank, the spans during which its task window was full, in time order. */
function throttledSpans(trace: Trace): Map<number, { from: number; to: number }[]> {
  const spans = new Map<number, { from: number; to: number }[]>();
  const open = new Map<number, number>();
  const { events } = trace;
  for (let row = 0; row < events.count; row++) {
    const rank = events.rank[row];
    if (events.kind[row] === EventKind.throttleBegin) {
      open.set(rank, events.time[row]);
    } else if (events.kind[row] === EventKind.throttleEnd && open.has(rank)) {
      const list = spans.get(rank) ?? [];
      spans.set(rank, list);
      list.push({ from: open.get(rank)!, to: events.time[row] });
      open.delete(rank);
    }
  }
  for (const [rank, from] of open) {
    const list = spans.get(rank) ?? [];
    spans.set(rank, list);
    list.push({ from, to: trace.end });
  }
  for (const list of spans.values()) list.sort((a, b) => a.from - b.from);
  return spans;
}

function firstEndingAfter(spans: readonly { to: number }[], time: number): number {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (spans[middle].to > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** True for kinds that cross between ranks. */
export function isNetworkKind(kind: number): boolean {
  return kind >= TransferKind.ipc;
}
