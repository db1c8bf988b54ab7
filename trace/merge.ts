// Puts several ranks on one time axis: rank 0's clock, by the measured offsets. If one offset explains all
// measurements, it holds; else the clocks drift, and offsets are interpolated. Then ranks are shifted by the least amount
// that makes every message arrive after it left.
import { NONE, TransferKind, TransferReason } from './format.js';
import type { ClockRecord } from './records.js';
import type { Trace, TraceRank, TransferColumns } from './trace.js';

/** The parts of a trace that alignment changes. */
type Alignable = Pick<Trace, 'ranks' | 'tasks' | 'transfers' | 'counters' | 'events' | 'stolen'>;

/**
 * Pairs sends with receives: same ordered pair of ranks, same message number. Fills `transfers.partner`.
 * A message number may be reused by later messages only after both sides have recorded the earlier one.
 */
export function matchMessages(trace: { readonly transfers: TransferColumns }): void {
  const { transfers } = trace;
  const open = new Map<string, number>();
  for (let row = 0; row < transfers.count; row++) {
    if (transfers.message[row] === NONE || transfers.peer[row] < 0) continue;
    const sends = transfers.reason[row] === TransferReason.send;
    const from = sends ? transfers.rank[row] : transfers.peer[row];
    const to = sends ? transfers.peer[row] : transfers.rank[row];
    const key = `${from}>${to}:${transfers.message[row]}`;
    const other = open.get(key);
    if (other === undefined) {
      open.set(key, row);
    } else if ((transfers.reason[other] === TransferReason.send) !== sends) {
      transfers.partner[row] = other;
      transfers.partner[other] = row;
      open.delete(key);
    }
  }
}

/**
 * Moves all times of all ranks to rank 0's clock (the lowest rank present), relative to its `clockOrigin`.
 * Appends its repairs to `problems`.
 */
export function alignRanks(trace: Alignable, problems: string[]): void {
  const reference = trace.ranks[0];
  const clocks = trace.ranks.map((rank) => clockOf(rank, reference, problems));
  applyShifts(trace, (rank, time) => clocks[rank].shift(time));
  const constant = causalShifts(trace);
  if (constant.some((shift) => shift !== 0)) {
    applyShifts(trace, (rank, time) => time + constant[rank]);
  }
  const worst = Math.max(...constant.map(Math.abs));
  const bound = Math.max(...clocks.map((clock) => clock.error));
  // Two ranks may each be off by the bound, in opposite directions.
  if (worst > 2 * bound + 1) {
    problems.push(
      `clocks: ranks were moved by up to ${Math.round(worst)} ns so that no message arrives before it leaves ` +
        `(measured offsets are right within ${Math.round(bound)} ns)`,
    );
  }
  const clamped = clampReceives(trace.transfers);
  if (clamped > 0) {
    problems.push(
      `clocks: ${clamped} messages seemed to arrive before they left; their arrival was moved`,
    );
  }
  beginInline(trace.transfers);
}

/** A rank's clock from the view of the reference. */
interface Clock {
  /** Time on the rank's axis (relative to its origin) to time on the reference's axis. */
  readonly shift: (time: number) => number;
  /** Bound of its error; 0 without measurements. */
  readonly error: number;
}

function clockOf(rank: TraceRank, reference: TraceRank, problems: string[]): Clock {
  const origin = rank.header.clockOrigin;
  const base = reference.header.clockOrigin;
  if (rank === reference) return { shift: (time) => time, error: 0 };
  const samples = rank.clocks
    .filter((clock) => clock.peer === reference.rank)
    .sort((a, b) => a.time - b.time);
  if (samples.length === 0) {
    // Simulated ranks may share a clock.
    if (rank.header.clockOffset === 0 && !rank.header.simulated) {
      problems.push(
        `rank ${rank.rank} has no clock measurement against rank ${reference.rank}: equal clocks are assumed`,
      );
    }
    const constant = origin + rank.header.clockOffset - reference.header.clockOffset - base;
    return { shift: (time) => time + constant, error: 0 };
  }
  // Each measurement bounds the offset on both sides. Under load the answers take long and the bounds are far apart. A
  // slope through two of them would be noise, so clocks count as drifting only if no single offset is within all of them.
  const low = Math.max(...samples.map(({ offset, error }) => offset - error));
  const high = Math.min(...samples.map(({ offset, error }) => offset + error));
  if (low <= high) {
    const constant = origin - base + (low + high) / 2;
    return { shift: (time) => time + constant, error: (high - low) / 2 };
  }
  const first = best(samples, 0, Math.ceil(samples.length / 2));
  const last = best(samples, Math.floor(samples.length / 2), samples.length);
  const slope =
    last.time > first.time ? (last.offset - first.offset) / (last.time - first.time) : 0;
  return {
    shift: (time) => time + origin - base + first.offset + slope * (time - first.time),
    error: Math.max(first.error, last.error),
  };
}

// The sample with the smallest error in samples[from .. to).
function best(samples: readonly ClockRecord[], from: number, to: number): ClockRecord {
  let chosen = samples[from];
  for (let i = from; i < to; i++) if (samples[i].error < chosen.error) chosen = samples[i];
  return chosen;
}

function applyShifts(trace: Alignable, shift: (rankIndex: number, time: number) => number): void {
  const indexOf = new Map(trace.ranks.map((rank, index) => [rank.rank, index]));
  const move = (times: Float64Array, ranks: Uint16Array): void => {
    for (let row = 0; row < times.length; row++) {
      times[row] = Math.floor(shift(indexOf.get(ranks[row])!, times[row]));
    }
  };
  for (const column of trace.tasks.times) move(column, trace.tasks.rank);
  const { transfers } = trace;
  for (const column of [transfers.issued, transfers.start, transfers.end]) {
    move(column, transfers.rank);
  }
  move(trace.counters.time, trace.counters.rank);
  move(trace.events.time, trace.events.rank);
  move(trace.stolen.from, trace.stolen.rank);
  move(trace.stolen.to, trace.stolen.rank);
}

// Least shift per rank with which every message arrives after it left: longest paths in the graph of ranks whose
// edge a -> b is the worst violation of a message from a to b. Rank 0 does not move. If no constant shifts
// suffice (the clocks drift against each other), the shifts after one round per rank are returned.
function causalShifts(trace: Alignable): number[] {
  const ranks = trace.ranks.length;
  const indexOf = new Map(trace.ranks.map((rank, index) => [rank.rank, index]));
  const worst = new Map<number, number>();
  const { transfers } = trace;
  for (let row = 0; row < transfers.count; row++) {
    const partner = transfers.partner[row];
    if (partner < 0 || transfers.reason[row] !== TransferReason.send) continue;
    const key = indexOf.get(transfers.rank[row])! * ranks + indexOf.get(transfers.rank[partner])!;
    const violation = transfers.start[row] - transfers.end[partner];
    worst.set(key, Math.max(worst.get(key) ?? Number.NEGATIVE_INFINITY, violation));
  }
  const shifts: number[] = new Array(ranks).fill(0);
  for (let round = 0; round < ranks; round++) {
    let changed = false;
    for (const [key, violation] of worst) {
      const from = Math.floor(key / ranks);
      const to = key % ranks;
      if (shifts[from] + violation > shifts[to]) {
        shifts[to] = shifts[from] + violation;
        changed = true;
      }
    }
    if (!changed) break;
  }
  return shifts.map((shift) => shift - shifts[0]);
}

function clampReceives(transfers: TransferColumns): number {
  let clamped = 0;
  for (let row = 0; row < transfers.count; row++) {
    const partner = transfers.partner[row];
    if (partner < 0 || transfers.reason[row] !== TransferReason.send) continue;
    if (transfers.end[partner] < transfers.start[row]) {
      transfers.end[partner] = transfers.start[row];
      clamped++;
    }
  }
  return clamped;
}

/**
 * A message with its bytes inside is on its way from the moment at which it leaves. The receiving rank asks for nothing and
 * knows only its end, so the begin is that of the send.
 */
function beginInline(transfers: TransferColumns): void {
  for (let row = 0; row < transfers.count; row++) {
    const partner = transfers.partner[row];
    if (partner < 0 || transfers.kind[row] !== TransferKind.inline) continue;
    if (transfers.reason[row] === TransferReason.send) continue;
    transfers.issued[row] = transfers.start[partner];
    transfers.start[row] = transfers.start[partner];
  }
}
