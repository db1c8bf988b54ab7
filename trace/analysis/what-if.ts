// Predicts the makespan with faster parts. The recorded graph is evaluated again with changed durations: every task and
// transfer starts when its last cause has ended, plus the delay that was recorded after that moment. Lanes keep their
// order and tasks their places, so the answer is for the same schedule, not for the best one.
// Without a change the result is the recorded makespan exactly.
import { TraceError } from '../errors.js';
import { TaskTime, TransferKind } from '../format.js';
import type { Trace } from '../trace.js';
import { Causes, causeKinds } from './causes.js';
import { IdleReasonNumber, Waits } from './waits.js';

/** The factors of speed: 2 halves the time of a part, Infinity makes it free. Absent: unchanged. */
export interface WhatIf {
  readonly h2d?: number;
  readonly d2h?: number;
  readonly d2d?: number;
  /** Messages and reads of another process's memory. */
  readonly network?: number;
  /** Delays between a task's readiness and its start. */
  readonly scheduler?: number;
  /** Waiting for device memory. `Infinity`: memory without end. */
  readonly memory?: number;
  /** Only Infinity makes sense: all tasks were inserted at the start. */
  readonly submission?: number;
  /** Kernels by class name. */
  readonly classes?: Readonly<Record<string, number>>;
}

/** Nanoseconds. */
export interface WhatIfResult {
  readonly recorded: number;
  readonly predicted: number;
  /** recorded / predicted. */
  readonly speedup: number;
}

const directions = ['h2d', 'd2h', 'd2d', 'network', 'scheduler', 'memory', 'submission'] as const;

/**
 * Parses settings such as `network=2`, `gemm=free`, `transfers=1.5` (all four directions) into one scenario.
 * A name that is neither a direction nor `transfers` is a task class; `class:h2d` names a class called h2d.
 * Throws `TraceError` ERR_TRACE_USAGE for anything else.
 */
export function parseWhatIf(settings: readonly string[], trace: Trace): WhatIf {
  const scenario: { [name in (typeof directions)[number]]?: number } = {};
  const classes: Record<string, number> = {};
  for (const setting of settings) {
    const equals = setting.lastIndexOf('=');
    const name = setting.slice(0, Math.max(0, equals)).trim();
    const text = setting.slice(equals + 1).trim();
    const factor = text === 'free' ? Number.POSITIVE_INFINITY : Number(text);
    if (equals <= 0 || text === '' || !(factor > 0)) {
      throw new TraceError(
        'ERR_TRACE_USAGE',
        `"${setting}" is not a what-if setting. Write name=factor or name=free, such as network=2 or gemm=free.`,
      );
    }
    const direction = directions.find((known) => known === name);
    if (direction) {
      scenario[direction] = factor;
    } else if (name === 'transfers') {
      for (const each of ['h2d', 'd2h', 'd2d', 'network'] as const) scenario[each] = factor;
    } else {
      const className = name.startsWith('class:') ? name.slice('class:'.length) : name;
      if (!trace.classes.some((taskClass) => taskClass.name === className)) {
        const known = trace.classes.map((taskClass) => taskClass.name).join(', ');
        throw new TraceError(
          'ERR_TRACE_USAGE',
          `"${name}" is neither a task class (${known}) nor one of ${directions.join(', ')}, transfers.`,
        );
      }
      classes[className] = factor;
    }
  }
  return { ...scenario, classes };
}

/** Evaluates scenarios on one trace. Building it is O(nodes + causes); each evaluation is one sweep. */
export class WhatIfModel {
  readonly #trace: Trace;
  readonly #causes: Causes;
  readonly #order: Uint32Array;
  // Causes per node in compressed form: start[n] .. start[n + 1]; anchored at the cause's start if the bit is set.
  readonly #first: Uint32Array;
  readonly #cause: Uint32Array;
  readonly #kind: Uint8Array;
  // Recorded delay after the last cause, split by its parts.
  readonly #other: Float64Array;
  readonly #scheduler: Float64Array;
  readonly #memory: Float64Array;

  constructor(trace: Trace, causes: Causes = new Causes(trace, new Waits(trace))) {
    this.#trace = trace;
    this.#causes = causes;
    const { count, start, end } = causes;
    this.#order = Uint32Array.from({ length: count }, (_, node) => node).sort(
      (a, b) => start[a] - start[b] || end[a] - end[b] || a - b,
    );
    const position = new Uint32Array(count);
    this.#order.forEach((node, at) => {
      position[node] = at;
    });
    this.#first = new Uint32Array(count + 1);
    this.#other = new Float64Array(count);
    this.#scheduler = new Float64Array(count);
    this.#memory = new Float64Array(count);
    let list = new Uint32Array(4 * count + 16);
    let kinds = new Uint8Array(4 * count + 16);
    let used = 0;
    for (let node = 0; node < count; node++) {
      this.#first[node] = used;
      let latest = this.#inserted(node, false);
      causes.forEach(node, (kind, cause, moment) => {
        // Equal times can put a cause behind its node; such an edge cannot be evaluated in one sweep.
        if (position[cause] >= position[node]) return;
        if (used === list.length) {
          const longer = new Uint32Array(2 * used);
          longer.set(list);
          list = longer;
          const longerKinds = new Uint8Array(2 * used);
          longerKinds.set(kinds);
          kinds = longerKinds;
        }
        list[used] = cause;
        kinds[used++] = kind;
        if (moment > latest) latest = moment;
      });
      this.#splitDelay(node, latest);
    }
    this.#first[count] = used;
    this.#cause = list.subarray(0, used);
    this.#kind = kinds.subarray(0, used);
  }

  /** Evaluates one scenario. */
  evaluate(scenario: WhatIf): WhatIfResult {
    const { start: recordedStart, end: recordedEnd, count } = this.#causes;
    const trace = this.#trace;
    const start = new Float64Array(count);
    const end = new Float64Array(count);
    const freeInsert = scenario.submission === Number.POSITIVE_INFINITY;
    const schedulerFactor = 1 / (scenario.scheduler ?? 1);
    const memoryFactor = 1 / (scenario.memory ?? 1);
    const noSpills = scenario.memory === Number.POSITIVE_INFINITY;
    const factors = this.#durationFactors(scenario);
    const finalized = trace.tasks.times[TaskTime.finalized];
    let latestEnd = trace.start;
    let recordedLatest = trace.start;
    for (const node of this.#order) {
      let from = this.#inserted(node, freeInsert);
      for (let i = this.#first[node]; i < this.#first[node + 1]; i++) {
        const kind = causeKinds[this.#kind[i]];
        if (noSpills && (kind === 'memory' || kind === 'retirement')) continue;
        const cause = this.#cause[i];
        let moment = kind === 'message' ? start[cause] : end[cause];
        if (kind === 'retirement') moment += finalized[cause] - recordedEnd[cause];
        if (moment > from) from = moment;
      }
      const delay =
        this.#other[node] +
        this.#scheduler[node] * schedulerFactor +
        this.#memory[node] * memoryFactor;
      start[node] = from + delay;
      end[node] = start[node] + (recordedEnd[node] - recordedStart[node]) * factors(node);
      const tail = this.#causes.isTask(node) ? finalized[node] - recordedEnd[node] : 0;
      latestEnd = Math.max(latestEnd, end[node] + tail);
      recordedLatest = Math.max(recordedLatest, recordedEnd[node] + tail);
    }
    const recorded = trace.end - trace.start;
    const predicted = latestEnd - trace.start + (trace.end - recordedLatest);
    return { recorded, predicted, speedup: predicted > 0 ? recorded / predicted : 1 };
  }

  // The time at which the program let the node begin: the insertion of its task. After a full window the time of an
  // insertion depends on the tasks before it, so it is no fixed moment.
  #inserted(node: number, free: boolean): number {
    const trace = this.#trace;
    const task = this.#causes.taskOf(node);
    if (task < 0 || free) return trace.start;
    const inserted = trace.tasks.times[TaskTime.inserted][task];
    if (inserted > this.#causes.start[node]) return trace.start;
    if (inserted > this.#causes.waits.firstThrottle(trace.tasks.rank[task])) return trace.start;
    return inserted;
  }

  #splitDelay(node: number, from: number): void {
    const to = this.#causes.start[node];
    const task = this.#causes.taskOf(node);
    if (task < 0 || to <= from) {
      this.#other[node] = Math.max(0, to - from);
      return;
    }
    this.#causes.waits.split(task, from, to, (a, b, reason) => {
      if (reason === IdleReasonNumber.scheduler) this.#scheduler[node] += b - a;
      else if (reason === IdleReasonNumber.memory) this.#memory[node] += b - a;
      else this.#other[node] += b - a;
    });
  }

  #durationFactors(scenario: WhatIf): (node: number) => number {
    const { tasks, transfers, classes } = this.#trace;
    const byClass = classes.map((taskClass) => 1 / (scenario.classes?.[taskClass.name] ?? 1));
    const byKind: number[] = new Array(TransferKind.count).fill(1 / (scenario.network ?? 1));
    byKind[TransferKind.h2d] = 1 / (scenario.h2d ?? 1);
    byKind[TransferKind.d2h] = 1 / (scenario.d2h ?? 1);
    byKind[TransferKind.d2d] = 1 / (scenario.d2d ?? 1);
    return (node) =>
      node < tasks.count
        ? byClass[tasks.taskClass[node]]
        : (byKind[transfers.kind[node - tasks.count]] ?? 1);
  }
}
