// A second analysis, written from the definitions without regard for speed: one nanosecond and one task at a time,
// without code of trace/analysis. Tests compare the real analysis with it on small traces.
import { idleReasons } from '../../trace/analysis/index.js';
import type { Trace } from '../../trace/index.js';

const INSERTED = 0;
const READY = 1;
const ALLOC = 2;
const STAGE_IN = 3;
const COMM_IN = 4;
const START = 6;
const END = 7;

function time(trace: Trace, which: number, row: number): number {
  return trace.tasks.times[which][row];
}

function allTasks(trace: Trace): number[] {
  return Array.from({ length: trace.tasks.count }, (_, row) => row);
}

function allTransfers(trace: Trace): number[] {
  return Array.from({ length: trace.transfers.count }, (_, row) => row);
}

/** Predecessor rows of a task: recorded ones and the release. */
export function slowPredecessors(trace: Trace, row: number): number[] {
  const { start, items } = trace.tasks.predecessors;
  const found = new Set(items.subarray(start[row], start[row + 1]));
  if (trace.tasks.releasedBy[row] >= 0) found.add(trace.tasks.releasedBy[row]);
  return [...found];
}

function accessesOf(trace: Trace, row: number): { datum: number; mode: number }[] {
  const { start, items } = trace.tasks.accesses;
  const list: { datum: number; mode: number }[] = [];
  for (let a = start[row]; a < start[row + 1]; a++) {
    list.push({ datum: items[a], mode: trace.tasks.accessModes[a] });
  }
  return list;
}

// Reasons 1 spill, 2 write-through, 3 read-back and 6 send bring nothing to a task.
function brings(reason: number): boolean {
  return ![1, 2, 3, 6].includes(reason);
}

/** A send or a receive. */
function isMovement(trace: Trace, row: number): boolean {
  return trace.lanes[trace.tasks.lane[row]].kind === 'network';
}

/** The rows that are tasks of the program, and instead of each send and receive those before it. */
function tasksBehind(trace: Trace, rows: readonly number[]): number[] {
  return rows.flatMap((row) =>
    isMovement(trace, row) ? tasksBehind(trace, slowPredecessors(trace, row)) : [row],
  );
}

/** Why lane `lane` idles at moment `t`, or 'busy'. */
function slowReason(trace: Trace, lane: number, t: number): string {
  const { transfers } = trace;
  const mine = allTasks(trace).filter((row) => trace.tasks.lane[row] === lane);
  if (mine.some((row) => time(trace, START, row) <= t && t < time(trace, END, row))) return 'busy';
  const later = mine.filter((row) => time(trace, START, row) > t);
  if (later.length === 0) return 'noTask';
  const next = later.reduce((a, b) => {
    const [sa, sb] = [time(trace, START, a), time(trace, START, b)];
    if (sa !== sb) return sa < sb ? a : b;
    const [ea, eb] = [time(trace, END, a), time(trace, END, b)];
    if (ea !== eb) return ea < eb ? a : b;
    return Math.min(a, b);
  });
  if (t < time(trace, INSERTED, next)) {
    let begin = -1;
    for (let e = 0; e < trace.events.count; e++) {
      if (trace.events.kind[e] === 6) begin = trace.events.time[e];
      if (trace.events.kind[e] === 7 && begin <= t && t < trace.events.time[e]) return 'throttled';
    }
    return 'submission';
  }
  const before = slowPredecessors(trace, next);
  if (tasksBehind(trace, before).some((p) => t < time(trace, END, p))) return 'noTask';
  if (before.some((p) => isMovement(trace, p) && t < time(trace, END, p))) return 'network';
  if (t < time(trace, READY, next)) return 'noTask';
  if (t < time(trace, ALLOC, next)) return 'memory';
  const data = accessesOf(trace, next).map((access) => access.datum);
  const needed = allTransfers(trace).filter((row) => {
    if (!brings(transfers.reason[row]) || transfers.end[row] > time(trace, START, next))
      return false;
    if (transfers.task[row] === next) return true;
    return (
      data.includes(transfers.datum[row]) &&
      transfers.destination[row] === trace.tasks.space[next] &&
      transfers.end[row] > time(trace, READY, next)
    );
  });
  const kinds = ['h2d', 'd2h', 'd2d', 'network', 'network', 'network', 'network'];
  const underWay = needed.filter((row) => transfers.start[row] <= t && t < transfers.end[row]);
  const latest = (a: number, b: number): number => (transfers.end[b] > transfers.end[a] ? b : a);
  if (underWay.length > 0) return kinds[transfers.kind[underWay.reduce(latest)]];
  const waiting = needed.filter((row) => transfers.end[row] > t && transfers.start[row] > t);
  if (waiting.length > 0) {
    const first = Math.min(...waiting.map((row) => transfers.start[row]));
    const starting = waiting.filter((row) => transfers.start[row] === first);
    return kinds[transfers.kind[starting.reduce(latest)]];
  }
  if (t < time(trace, COMM_IN, next) && time(trace, COMM_IN, next) > time(trace, STAGE_IN, next)) {
    return 'network';
  }
  return 'scheduler';
}

/** Nanoseconds of each reason (and 'busy') on a lane. */
export function slowLane(trace: Trace, lane: number): Map<string, number> {
  const sums = new Map<string, number>([['busy', 0], ...idleReasons.map((r) => [r, 0] as const)]);
  for (let t = trace.start; t < trace.end; t++) {
    const reason = slowReason(trace, lane, t);
    sums.set(reason, sums.get(reason)! + 1);
  }
  return sums;
}

/** Longest chain of kernels by trying every path from every task. */
export function slowLongestChain(trace: Trace): number {
  const memory = new Map<number, number>();
  const chain = (row: number): number => {
    if (!memory.has(row)) {
      const before = slowPredecessors(trace, row).map(chain);
      memory.set(row, Math.max(0, ...before) + time(trace, END, row) - time(trace, START, row));
    }
    return memory.get(row)!;
  };
  return Math.max(0, ...allTasks(trace).map(chain));
}

/** Nanoseconds with a transfer, with a kernel, with both; over the rows the filters pick. */
export function slowOverlap(
  trace: Trace,
  transferPicked: (row: number) => boolean,
  taskPicked: (row: number) => boolean,
): { communication: number; execution: number; both: number } {
  const { start, end } = trace.transfers;
  const sums = { communication: 0, execution: 0, both: 0 };
  for (let t = trace.start; t < trace.end; t++) {
    const moving = allTransfers(trace).some(
      (row) => transferPicked(row) && start[row] <= t && t < end[row],
    );
    const running = allTasks(trace).some(
      (row) => taskPicked(row) && time(trace, START, row) <= t && t < time(trace, END, row),
    );
    if (moving) sums.communication++;
    if (running) sums.execution++;
    if (moving && running) sums.both++;
  }
  return sums;
}

/** Required bytes by replaying the run with sets of valid spaces. */
export function slowRequired(trace: Trace): Record<'h2d' | 'd2h' | 'd2d' | 'network', number> {
  const { tasks, transfers, data } = trace;
  type Step = { at: number; order: number; run: () => void };
  const valid = new Map<number, Set<number>>();
  const arrived = new Set<string>();
  const required = { h2d: 0, d2h: 0, d2d: 0, network: 0 };
  const read = (datum: number, space: number): void => {
    const where = valid.get(datum) ?? new Set([0]);
    valid.set(datum, where);
    if (where.has(space)) return;
    const way = space === 0 ? 'd2h' : where.has(0) ? 'h2d' : 'd2d';
    required[way] += data.bytes[datum];
    where.add(space);
  };
  const steps: Step[] = [];
  for (const row of allTasks(trace)) {
    steps.push({
      at: time(trace, START, row),
      order: steps.length,
      run: () => {
        const space = tasks.space[row];
        for (const { datum, mode } of accessesOf(trace, row)) if (mode !== 2) read(datum, space);
        for (const { datum, mode } of accessesOf(trace, row)) {
          if (mode !== 1) valid.set(datum, new Set([space]));
        }
      },
    });
  }
  for (const row of allTransfers(trace)) {
    if (![3, 4, 5].includes(transfers.reason[row])) continue;
    steps.push({
      at: transfers.end[row],
      order: steps.length,
      run: () => {
        const datum = transfers.datum[row];
        const to = transfers.destination[row];
        if (transfers.kind[row] < 3) {
          read(datum, to);
          return;
        }
        const key = `${datum} ${transfers.version[row]}`;
        if (!arrived.has(key)) required.network += transfers.bytes[row];
        arrived.add(key);
        valid.set(datum, new Set([to]));
      },
    });
  }
  steps.sort((a, b) => a.at - b.at || a.order - b.order);
  for (const step of steps) step.run();
  return required;
}
