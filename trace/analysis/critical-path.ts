// The chain of tasks, transfers and messages that determined the makespan. The walk goes backwards from the node that
// ended last: before each node comes the cause that ended latest before it started. The steps, the gaps between them and
// the tail tile the makespan exactly.
import { TaskTime, transferKindNames, transferReasonNames } from '../format.js';
import { datumName, laneName, type Trace, taskName } from '../trace.js';
import { type CauseKind, Causes, causeKinds } from './causes.js';
import { type IdleReason, idleReasons, reasonOfKind, Waits } from './waits.js';

/** The release of a step: by a cause, or by the program inserting it, or by the window having room again. */
export type Release = CauseKind | 'submission' | 'throttled';

/** One step of the path. Times in nanoseconds from the start of the trace. */
export interface PathStep {
  readonly type: 'task' | 'transfer' | 'message';
  /** Row of the task, or of the transfer (for a message: of its receive). */
  readonly row: number;
  readonly name: string;
  readonly rank: number;
  readonly lane: string;
  readonly start: number;
  readonly end: number;
  /** The way in which the step before it in the list released this one. */
  readonly releasedBy: Release;
  /** Nanoseconds between the end of the step before it (or the start of the trace) and this start. */
  readonly gap: number;
  /** The gap by reason; only reasons with time. */
  readonly gapReasons: { readonly [reason in IdleReason]?: number };
}

/** The path, first step first. */
export interface CriticalPath {
  readonly makespan: number;
  readonly steps: readonly PathStep[];
  /** From the end of the last step to the end of the trace. */
  readonly tail: number;
  /** Nanoseconds on the path in kernels, in transfers and messages, in gaps, and per reason of gaps. */
  readonly kernels: number;
  readonly transfers: number;
  readonly gaps: number;
  readonly gapReasons: { readonly [reason in IdleReason]: number };
  /** Kernel time on the path per class, most first. */
  readonly classes: readonly {
    readonly name: string;
    readonly count: number;
    readonly total: number;
  }[];
}

/** Finds the critical path. O(path x causes) after the causes are built. */
export function criticalPath(
  trace: Trace,
  causes: Causes = new Causes(trace, new Waits(trace)),
): CriticalPath {
  const steps: PathStep[] = [];
  const seen = new Set<number>();
  const retirements = new Retirements(trace);
  let node = lastNode(causes);
  const tail = node < 0 ? 0 : trace.end - causes.end[node];
  while (node >= 0 && !seen.has(node)) {
    seen.add(node);
    const sender = causes.senderOf(node);
    if (sender >= 0) seen.add(sender);
    const found = latestCause(causes, node, sender, seen, retirements);
    steps.push(makeStep(causes, node, sender, found));
    node = found.node;
  }
  steps.reverse();
  return summarizePath(trace, steps, tail);
}

interface Found {
  readonly node: number;
  readonly release: Release;
}

// The node whose work or whose completion ended last.
function lastNode(causes: Causes): number {
  const { tasks } = causes.trace;
  const finalized = tasks.times[TaskTime.finalized];
  let last = -1;
  let latest = Number.NEGATIVE_INFINITY;
  for (let node = 0; node < causes.count; node++) {
    const end = causes.isTask(node) ? finalized[node] : causes.end[node];
    if (end > latest) {
      latest = end;
      last = node;
    }
  }
  return last;
}

function latestCause(
  causes: Causes,
  node: number,
  sender: number,
  seen: Set<number>,
  retirements: Retirements,
): Found {
  const { tasks } = causes.trace;
  // A message is one step: the cause that held either side back until the sender started held it back.
  const limit =
    sender >= 0 ? Math.min(causes.start[node], causes.start[sender]) : causes.start[node];
  let best = -1;
  let bestKind = 0;
  let latest = Number.NEGATIVE_INFINITY;
  const consider = (kind: number, cause: number, moment: number): void => {
    if (causeKinds[kind] === 'message' || seen.has(cause)) return;
    if (moment < latest || (moment === latest && kind >= bestKind)) return;
    best = cause;
    bestKind = kind;
    latest = moment;
  };
  causes.forEach(node, consider, limit);
  if (sender >= 0) causes.forEach(sender, consider, limit);
  const task = causes.taskOf(node);
  const inserted = task >= 0 ? tasks.times[TaskTime.inserted][task] : Number.NEGATIVE_INFINITY;
  if (inserted > latest && inserted <= limit) {
    const freed = causes.waits.wasThrottled(tasks.rank[task], inserted)
      ? retirements.lastBefore(tasks.rank[task], inserted, seen)
      : -1;
    return freed >= 0 ? { node: freed, release: 'throttled' } : { node: -1, release: 'submission' };
  }
  if (best < 0) return { node: -1, release: 'submission' };
  return { node: best, release: causeKinds[bestKind] };
}

// Finds the task of a rank that retired last before a moment: it made room in the window.
class Retirements {
  readonly #trace: Trace;
  #order: Uint32Array | undefined;

  constructor(trace: Trace) {
    this.#trace = trace;
  }

  lastBefore(rank: number, time: number, seen: Set<number>): number {
    const { tasks } = this.#trace;
    const finalized = tasks.times[TaskTime.finalized];
    this.#order ??= Uint32Array.from({ length: tasks.count }, (_, row) => row).sort(
      (a, b) => finalized[a] - finalized[b] || a - b,
    );
    let low = 0;
    let high = this.#order.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (finalized[this.#order[middle]] > time) high = middle;
      else low = middle + 1;
    }
    for (let at = low - 1; at >= 0; at--) {
      const row = this.#order[at];
      if (tasks.rank[row] === rank && !seen.has(row)) return row;
    }
    return -1;
  }
}

function makeStep(causes: Causes, node: number, sender: number, found: Found): PathStep {
  const { trace } = causes;
  const start =
    sender >= 0 ? Math.min(causes.start[node], causes.start[sender]) : causes.start[node];
  const from = found.node >= 0 ? causes.end[found.node] : trace.start;
  const gapReasons: { [reason in IdleReason]?: number } = {};
  const add = (a: number, b: number, reason: number): void => {
    const name = idleReasons[reason];
    gapReasons[name] = (gapReasons[name] ?? 0) + b - a;
  };
  const task = causes.taskOf(node);
  const row = causes.isTask(node) ? node : causes.transferRow(node);
  if (start > from) {
    if (task >= 0 && sender < 0) causes.waits.split(task, from, start, add);
    else add(from, start, causes.isTask(node) ? 0 : reasonOfKind[trace.transfers.kind[row]]);
  }
  const { transfers } = trace;
  return {
    type: causes.isTask(node) ? 'task' : sender >= 0 ? 'message' : 'transfer',
    row,
    name: causes.isTask(node)
      ? taskName(trace, row)
      : `${transferKindNames[transfers.kind[row]]} ${datumName(trace, transfers.datum[row])} ` +
        `(${transferReasonNames[transfers.reason[row]]})`,
    rank: causes.isTask(node) ? trace.tasks.rank[row] : transfers.rank[row],
    lane: laneName(trace, causes.isTask(node) ? trace.tasks.lane[row] : transfers.lane[row]),
    start: start - trace.start,
    end: causes.end[node] - trace.start,
    releasedBy: found.release,
    gap: start - from,
    gapReasons,
  };
}

function summarizePath(trace: Trace, steps: readonly PathStep[], tail: number): CriticalPath {
  const reasons = Object.fromEntries(idleReasons.map((reason) => [reason, 0])) as {
    [reason in IdleReason]: number;
  };
  const classes = new Map<string, { name: string; count: number; total: number }>();
  let kernels = 0;
  let transfers = 0;
  let gaps = 0;
  for (const step of steps) {
    const length = step.end - step.start;
    gaps += step.gap;
    for (const reason of idleReasons) reasons[reason] += step.gapReasons[reason] ?? 0;
    if (step.type !== 'task') {
      transfers += length;
      continue;
    }
    kernels += length;
    const name = trace.classes[trace.tasks.taskClass[step.row]].name;
    const use = classes.get(name) ?? { name, count: 0, total: 0 };
    classes.set(name, use);
    use.count++;
    use.total += length;
  }
  return {
    makespan: trace.end - trace.start,
    steps,
    tail,
    kernels,
    transfers,
    gaps,
    gapReasons: reasons,
    classes: [...classes.values()].sort((a, b) => b.total - a.total),
  };
}
