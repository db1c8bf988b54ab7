// Stolen time: spans in which a thread wanted to run and had no core, because threads outnumber cores. The work of such a
// thread looks slow meanwhile, and is not at fault.
//
// One thread serves each worker, one serves all lanes of a GPU, and the engine's thread runs JavaScript bodies too. A
// real GPU continues without its thread, an emulated one stands still.
import { NO_ROW, type Trace } from '../trace.js';

/** Spans of time: sorted, without overlap, nanoseconds. */
export interface Spans {
  readonly from: Float64Array;
  readonly to: Float64Array;
}

const none: Spans = { from: new Float64Array(0), to: new Float64Array(0) };

/** The spans without a core of every thread of a trace. Built once; O(spans log spans). */
export class StolenTime {
  readonly #trace: Trace;
  // By the thread's key: see #thread.
  readonly #threads: Map<string, Spans> = new Map();
  readonly #withEngine: Map<number, Spans> = new Map();

  constructor(trace: Trace) {
    this.#trace = trace;
    const { stolen } = trace;
    const rows = new Map<string, [from: number, to: number][]>();
    for (let row = 0; row < stolen.count; row++) {
      const lane = stolen.lane[row];
      const key = lane === NO_ROW ? engineKey(stolen.rank[row]) : this.#thread(lane);
      const list = rows.get(key) ?? [];
      rows.set(key, list);
      list.push([stolen.from[row], stolen.to[row]]);
    }
    for (const [key, list] of rows) this.#threads.set(key, union(list));
  }

  /** The spans in which the thread of a lane had no core. */
  lane(lane: number): Spans {
    return this.#threads.get(this.#thread(lane)) ?? none;
  }

  /** The spans in which the engine's thread of a rank had none. */
  engine(rank: number): Spans {
    return this.#threads.get(engineKey(rank)) ?? none;
  }

  /** The spans in which either had none: the engine decides nothing for the lane then, or nothing starts on it. */
  laneOrEngine(lane: number): Spans {
    const { lanes } = this.#trace;
    if (lane >= lanes.length) return none;
    let spans = this.#withEngine.get(lane);
    if (spans === undefined) {
      const a = this.lane(lane);
      const b = this.engine(lanes[lane].rank);
      spans = a.from.length === 0 || a === b ? b : b.from.length === 0 ? a : union(pairs(a, b));
      this.#withEngine.set(lane, spans);
    }
    return spans;
  }

  /** The spans in which the work of a lane stood still, because its thread does the work itself. */
  standstill(lane: number): Spans {
    const { lanes, spaces } = this.#trace;
    if (lane >= lanes.length) return none;
    const { kind, space } = lanes[lane];
    const byThread =
      kind === 'worker' ||
      kind === 'script-worker' ||
      kind === 'script' ||
      spaces[space]?.kind === 'emulated';
    return byThread ? this.lane(lane) : none;
  }

  #thread(lane: number): string {
    const { lanes } = this.#trace;
    if (lane >= lanes.length) return '';
    const { kind, space, rank } = lanes[lane];
    if (kind === 'script') return engineKey(rank);
    return kind === 'worker' || kind === 'script-worker' || kind === 'network'
      ? `lane ${lane}`
      : `space ${space}`;
  }
}

function engineKey(rank: number): string {
  return `engine ${rank}`;
}

function pairs(...all: readonly Spans[]): [from: number, to: number][] {
  return all.flatMap(({ from, to }) =>
    Array.from(from, (start, i): [from: number, to: number] => [start, to[i]]),
  );
}

function union(list: [from: number, to: number][]): Spans {
  list.sort((a, b) => a[0] - b[0]);
  const from: number[] = [];
  const to: number[] = [];
  for (const [start, end] of list) {
    const last = to.length - 1;
    if (last >= 0 && start <= to[last]) to[last] = Math.max(to[last], end);
    else {
      from.push(start);
      to.push(end);
    }
  }
  return { from: Float64Array.from(from), to: Float64Array.from(to) };
}

/** Receives one piece of a span, and whether it was stolen. */
export type PieceVisitor = (from: number, to: number, stolen: boolean) => void;

/** Cuts `[from, to)` into pieces inside and outside of `spans`, in time order. */
export function cut(spans: Spans, from: number, to: number, visit: PieceVisitor): void {
  let at = from;
  for (let i = firstEndingAfter(spans.to, from); i < spans.from.length && at < to; i++) {
    if (spans.from[i] >= to) break;
    if (spans.from[i] > at) visit(at, spans.from[i], false);
    const start = Math.max(at, spans.from[i]);
    at = Math.min(to, spans.to[i]);
    if (at > start) visit(start, at, true);
  }
  if (at < to) visit(at, to, false);
}

/** The part of `[from, to)` that lies in `spans`. */
export function covered(spans: Spans, from: number, to: number): number {
  let sum = 0;
  for (let i = firstEndingAfter(spans.to, from); i < spans.from.length; i++) {
    if (spans.from[i] >= to) break;
    sum += Math.min(to, spans.to[i]) - Math.max(from, spans.from[i]);
  }
  return sum;
}

function firstEndingAfter(ends: Float64Array, time: number): number {
  let low = 0;
  let high = ends.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ends[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}
