// The data of the viewer: a small JSON object and columns of integers, each compressed by itself. Rows are in drawing
// order (by lane, then by time), times are whole quanta of 1 ns or, for long traces, a few, so that they fit 32 bits.
import { gzipSync } from 'node:zlib';
import { Causes, causeKinds } from '../analysis/causes.js';
import { criticalPath } from '../analysis/critical-path.js';
import { forEachIdle } from '../analysis/lanes.js';
import { summarize, type TraceSummary } from '../analysis/summary.js';
import { summaryText } from '../analysis/summary-text.js';
import { reasonText, Waits } from '../analysis/waits.js';
import { CounterKind, TaskTime, transferKindNames, transferReasonNames } from '../format.js';
import { NO_ROW, type Trace, tasksByLane, transfersByLane } from '../trace.js';

type Numbers = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array;

/** One column as it is stored in the page. */
export interface PayloadColumn {
  readonly name: string;
  /** Name of the typed array, such as `Uint32Array`. */
  readonly type: string;
  readonly length: number;
  /** Each value is stored as the difference to the one before it. */
  readonly delta: boolean;
  /** gzip of the bytes, one plane per byte of a value: first all lowest bytes, then all second bytes ... */
  readonly bytes: Uint8Array;
}

/** The input of the viewer. */
export interface Payload {
  /** For the page's JSON. */
  readonly meta: Readonly<Record<string, unknown>>;
  /** For people without JavaScript, and for printing. */
  readonly text: string;
  readonly summary: TraceSummary;
  /** Yields the columns one by one, so that only one is in memory compressed. */
  columns(): Generator<PayloadColumn>;
}

/** Prepares the viewer's data. Throws nothing for any loaded trace. */
export function buildPayload(trace: Trace): Payload {
  const waits = new Waits(trace);
  const summary = summarize(trace, waits);
  const quantum = Math.max(1, Math.ceil((trace.end - trace.start) / 0xfffffffe));
  const first = trace.ranks[0].header;
  const meta = {
    program: first.program,
    started: first.started,
    simulated: first.simulated,
    quantum,
    span: Math.floor((trace.end - trace.start) / quantum),
    ranks: trace.ranks.map(({ rank, header }) => ({ rank, host: header.hostname })),
    lanes: trace.lanes,
    spaces: trace.spaces,
    classes: trace.classes,
    names: trace.data.names,
    plays: trace.plays.plan.map((plan, row) => ({
      plan,
      first: trace.plays.first[row],
      tasks: trace.plays.tasks[row],
      iteration: trace.plays.iteration[row],
    })),
    kinds: transferKindNames,
    reasons: transferReasonNames,
    releases: causeKinds,
    idle: summary.advice.map(({ reason, text }) => ({
      reason,
      title: reasonText(reason),
      advice: text,
    })),
    summary: { ...summary, text: undefined },
  };
  return {
    meta,
    text: summaryText(summary),
    summary,
    *columns() {
      for (const [name, values, delta] of new Columns(trace, waits, quantum).all()) {
        yield encode(name, values, delta);
      }
    },
  };
}

function encode(name: string, values: Numbers, delta: boolean): PayloadColumn {
  const width = values.BYTES_PER_ELEMENT;
  let source = values;
  if (delta) {
    const differences = values.slice();
    for (let i = values.length - 1; i > 0; i--) differences[i] = values[i] - values[i - 1];
    source = differences;
  }
  const bytes = new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  const planes = new Uint8Array(bytes.length);
  for (let plane = 0; plane < width; plane++) {
    const base = plane * values.length;
    for (let i = 0, at = plane; i < values.length; i++, at += width) planes[base + i] = bytes[at];
  }
  return {
    name,
    type: values.constructor.name,
    length: values.length,
    delta,
    bytes: gzipSync(planes, { level: 4 }),
  };
}

type Column = readonly [name: string, values: Numbers, delta: boolean];

class Columns {
  readonly #trace: Trace;
  readonly #waits: Waits;
  readonly #quantum: number;
  // Rows of the trace in the viewer's order, and the inverse.
  readonly #tasks: Int32Array;
  readonly #taskPlace: Int32Array;
  readonly #transfers: Int32Array;
  readonly #transferPlace: Int32Array;
  readonly #taskLanes: Uint32Array;
  readonly #transferLanes: Uint32Array;

  constructor(trace: Trace, waits: Waits, quantum: number) {
    this.#trace = trace;
    this.#waits = waits;
    this.#quantum = quantum;
    const tasks = tasksByLane(trace);
    const transfers = transfersByLane(trace);
    this.#tasks = withRest(tasks.items, trace.tasks.lane);
    this.#transfers = withRest(transfers.items, trace.transfers.lane);
    this.#taskPlace = inverse(this.#tasks);
    this.#transferPlace = inverse(this.#transfers);
    this.#taskLanes = Uint32Array.from(tasks.start);
    this.#transferLanes = Uint32Array.from(transfers.start);
  }

  *all(): Generator<Column> {
    yield* this.#taskColumns();
    yield* this.#transferColumns();
    yield* this.#dataColumns();
    yield* this.#idleColumns();
    yield* this.#counterColumns();
    yield* this.#pathColumns();
  }

  *#taskColumns(): Generator<Column> {
    const { tasks } = this.#trace;
    const at =
      (which: number) =>
      (row: number): number =>
        this.#time(tasks.times[which][row]);
    const column = (value: (row: number) => number): Uint32Array => fill32(this.#tasks, value);
    const start = at(TaskTime.execStart);
    const end = at(TaskTime.execEnd);
    yield ['tLane', this.#taskLanes, false];
    yield ['tStart', column(start), true];
    yield ['tDur', column((row) => end(row) - start(row)), false];
    // Stages before the kernel: their distance before its start; stages after it: their distance after its end.
    for (const [name, which] of [
      ['tInserted', TaskTime.inserted],
      ['tReady', TaskTime.ready],
      ['tAlloc', TaskTime.alloc],
      ['tStageIn', TaskTime.stageIn],
      ['tCommIn', TaskTime.commIn],
      ['tIssued', TaskTime.issued],
    ] as const) {
      const time = at(which);
      yield [name, column((row) => start(row) - time(row)), false];
    }
    yield ['tStageOut', column((row) => at(TaskTime.stageOut)(row) - end(row)), false];
    yield ['tFinal', column((row) => at(TaskTime.finalized)(row) - end(row)), false];
    yield ['tClass', fill16(this.#tasks, (row) => tasks.taskClass[row]), false];
    yield ['tFlags', fill16(this.#tasks, (row) => tasks.flags[row]), false];
    yield ['tSpace', fill16(this.#tasks, (row) => tasks.space[row]), false];
    yield ['tId', column((row) => tasks.id[row]), true];
    yield ['tPlay', signed(this.#tasks, (row) => tasks.play[row]), false];
    const place = this.#taskPlace;
    yield ['tReleased', signed(this.#tasks, (row) => placeOf(place, tasks.releasedBy[row])), false];
    const { predecessors } = this.#waits.graph;
    yield* lists('tPred', this.#tasks, predecessors, (item) => place[item]);
    yield* lists('tAcc', this.#tasks, tasks.accesses, (item) => item);
    const modes = new Uint8Array(tasks.accesses.items.length);
    let filled = 0;
    for (const row of this.#tasks) {
      for (let a = tasks.accesses.start[row]; a < tasks.accesses.start[row + 1]; a++) {
        modes[filled++] = tasks.accessModes[a];
      }
    }
    yield ['tAccMode', modes, false];
    yield* lists('tPar', this.#tasks, tasks.parameters, (item) => item);
  }

  *#transferColumns(): Generator<Column> {
    const { transfers } = this.#trace;
    const rows = this.#transfers;
    const start = (row: number): number => this.#time(transfers.start[row]);
    yield ['xLane', this.#transferLanes, false];
    yield ['xStart', fill32(rows, start), true];
    yield ['xDur', fill32(rows, (row) => this.#time(transfers.end[row]) - start(row)), false];
    yield [
      'xWait',
      fill32(rows, (row) => Math.max(0, start(row) - this.#time(transfers.issued[row]))),
      false,
    ];
    yield ['xKind', Uint8Array.from(rows, (row) => transfers.kind[row]), false];
    yield ['xReason', Uint8Array.from(rows, (row) => transfers.reason[row]), false];
    yield ['xSource', fill16(rows, (row) => transfers.source[row]), false];
    yield ['xDest', fill16(rows, (row) => transfers.destination[row]), false];
    yield ['xTask', signed(rows, (row) => placeOf(this.#taskPlace, transfers.task[row])), false];
    yield ['xDatum', signed(rows, (row) => transfers.datum[row]), false];
    yield ['xVersion', fill32(rows, (row) => transfers.version[row]), false];
    yield ['xPeer', signed(rows, (row) => transfers.peer[row]), false];
    yield ['xBytes', Float64Array.from(rows, (row) => transfers.bytes[row]), false];
    yield [
      'xPartner',
      signed(rows, (row) => placeOf(this.#transferPlace, transfers.partner[row])),
      false,
    ];
  }

  *#dataColumns(): Generator<Column> {
    const { data } = this.#trace;
    yield ['dName', data.name, false];
    yield ['dCoord', data.coordinates, false];
    yield ['dBytes', data.bytes, false];
  }

  *#idleColumns(): Generator<Column> {
    const trace = this.#trace;
    let count = 0;
    forEachIdle(trace, this.#waits, () => {
      count++;
    });
    const lanes = new Uint32Array(trace.lanes.length + 1);
    const start = new Uint32Array(count);
    const duration = new Uint32Array(count);
    const reasons = new Uint8Array(count);
    let at = 0;
    forEachIdle(trace, this.#waits, (lane, from, to, reason) => {
      lanes[lane + 1]++;
      start[at] = this.#time(from);
      duration[at] = this.#time(to) - start[at];
      reasons[at++] = reason;
    });
    for (let lane = 0; lane < trace.lanes.length; lane++) lanes[lane + 1] += lanes[lane];
    yield ['iLane', lanes, false];
    yield ['iStart', start, true];
    yield ['iDur', duration, false];
    yield ['iReason', reasons, false];
  }

  *#counterColumns(): Generator<Column> {
    const { counters, spaces, ranks } = this.#trace;
    const rankIndex = new Map(ranks.map(({ rank }, index) => [rank, index]));
    const memory: number[][] = spaces.map(() => []);
    const progress: number[][] = ranks.map(() => []);
    for (let row = 0; row < counters.count; row++) {
      if (counters.kind[row] === CounterKind.progress) {
        progress[rankIndex.get(counters.rank[row])!].push(row);
      } else if (counters.space[row] !== NO_ROW) {
        memory[counters.space[row]].push(row);
      }
    }
    yield* this.#samples('m', memory, 5);
    yield* this.#samples('p', progress, 6);
  }

  *#samples(prefix: string, groups: readonly number[][], values: number): Generator<Column> {
    const { counters } = this.#trace;
    const rows = groups.flat();
    const start = new Uint32Array(groups.length + 1);
    groups.forEach((group, i) => {
      start[i + 1] = start[i] + group.length;
    });
    yield [`${prefix}Start`, start, false];
    yield [`${prefix}Time`, Uint32Array.from(rows, (row) => this.#time(counters.time[row])), true];
    for (let v = 0; v < values; v++) {
      yield [
        `${prefix}Value${v}`,
        Float64Array.from(rows, (row) => counters.values[6 * row + v]),
        false,
      ];
    }
  }

  *#pathColumns(): Generator<Column> {
    const path = criticalPath(this.#trace, new Causes(this.#trace, this.#waits));
    const types = { task: 0, transfer: 1, message: 1 } as const;
    yield ['cType', Uint8Array.from(path.steps, (step) => types[step.type]), false];
    yield [
      'cRow',
      Int32Array.from(path.steps, (step) =>
        step.type === 'task' ? this.#taskPlace[step.row] : this.#transferPlace[step.row],
      ),
      false,
    ];
    const releases = [...causeKinds, 'submission', 'throttled'];
    yield [
      'cRelease',
      Uint8Array.from(path.steps, (step) => releases.indexOf(step.releasedBy)),
      false,
    ];
  }

  #time(time: number): number {
    const { start, end } = this.#trace;
    return Math.floor((Math.min(Math.max(time, start), end) - start) / this.#quantum);
  }
}

// The rows with a lane, lane by lane, then the rows without one.
function withRest(items: Int32Array, laneOf: Uint16Array): Int32Array {
  if (items.length === laneOf.length) return items;
  const all = new Int32Array(laneOf.length);
  all.set(items);
  let at = items.length;
  const listed = new Uint8Array(laneOf.length);
  for (const row of items) listed[row] = 1;
  for (let row = 0; row < laneOf.length; row++) if (!listed[row]) all[at++] = row;
  return all;
}

function inverse(order: Int32Array): Int32Array {
  const place = new Int32Array(order.length);
  for (let at = 0; at < order.length; at++) place[order[at]] = at;
  return place;
}

function placeOf(place: Int32Array, row: number): number {
  return row < 0 ? -1 : place[row];
}

function fill32(rows: Int32Array, value: (row: number) => number): Uint32Array {
  const column = new Uint32Array(rows.length);
  for (let i = 0; i < rows.length; i++) column[i] = value(rows[i]);
  return column;
}

function fill16(rows: Int32Array, value: (row: number) => number): Uint16Array {
  const column = new Uint16Array(rows.length);
  for (let i = 0; i < rows.length; i++) column[i] = value(rows[i]);
  return column;
}

function signed(rows: Int32Array, value: (row: number) => number): Int32Array {
  const column = new Int32Array(rows.length);
  for (let i = 0; i < rows.length; i++) column[i] = value(rows[i]);
  return column;
}

// `${name}Count`: items per row (the viewer sums them up); `${name}`: the items.
function* lists(
  name: string,
  rows: Int32Array,
  from: { readonly start: Int32Array; readonly items: Int32Array },
  map: (item: number) => number,
): Generator<Column> {
  const items = new Int32Array(from.items.length);
  let at = 0;
  for (const row of rows) {
    for (let i = from.start[row]; i < from.start[row + 1]; i++) items[at++] = map(from.items[i]);
  }
  yield [`${name}Count`, fill32(rows, (row) => from.start[row + 1] - from.start[row]), false];
  yield [name, items.subarray(0, at), false];
}
