// Looks for a stretch of insertions that a run repeats: keeps what the run inserts, finds a period (periods.ts), and cuts out one
// stretch, of one period or of several short ones.
//
// A stretch begins where the period begins for the first time, or where the program has asked for something that needs its tasks to
// run (a break): the next stretch ends before it asks again. No stretch has a break inside.
import type { Column, DatumId } from '../../devices/handles.js';
import type { RunState } from '../engine/run-state.js';
import type { TaskInsertion } from '../engine/task-insertion.js';
import type { TaskClass } from '../program/task-class.js';
import { numberOf, Periods } from './periods.js';
import { Sequence } from './sequence.js';

/** Repetitions of a stretch after which it is looked at. */
const REPETITIONS = 3;
/** Repetitions of it that must have been recorded. */
const RECORDED = 2;
/** A stretch has at least that many tasks: an iteration of a play costs something of its own. */
const LEAST_TASKS = 48;
/** Limit for a stretch of several periods. */
const MOST_EVEN = 340;
/** A longer stretch is taken if the workers have that much more of their time to work. */
const EVENER = 1.005;
/** Tasks of equal stretches after which it is worth while to wait for all tasks that are live, and to play. */
const LEAST_REPEATED = 1024;

/** A search that has found nothing ends after that many times the insertions that were reason for it. */
const PATIENCE = 4;

/** Numbers of tasks that are like no other. */
const UNLIKE = 0x5bd1e995;
const NONE: readonly number[] = [];

export class StretchFinder {
  /** What was inserted. */
  readonly sequence: Sequence = new Sequence();
  private readonly periods: Periods = new Periods();
  /** How often stretches that begin with a task of that class came to nothing. */
  private readonly timesGivenUp: (cls: TaskClass) => number;
  /** The last two breaks: the numbers of the insertions behind them. */
  private breakAt = 0;
  private breakBefore = 0;
  private breaks = 0;
  private isOver = false;
  /** What is recorded is needed for the run as a whole, too. */
  forRun: boolean;
  /** Insertions that were equal before the first one, as it seems. */
  private readonly before: number;
  /** The length of a stretch, and the period and the gap between breaks that it is for. */
  private lengthNow = 0;
  private periodOf = 0;
  private gapOf = -1;
  private readonly workers: number;
  /** Begin of the period, and the insertion with which the search for it began. */
  private first = 0;
  private firstOf = -1;

  /** `workers`: queues of the host that share its tasks. */
  constructor(
    timesGivenUp: (cls: TaskClass) => number,
    forRun: boolean,
    before: number,
    workers: number,
  ) {
    this.workers = workers;
    this.timesGivenUp = timesGivenUp;
    this.forRun = forRun;
    this.before = before;
  }

  /** As `Sequence.add`. */
  add(cls: TaskClass, insertion: TaskInsertion, after: readonly number[], rank?: number): void {
    const { sequence, periods } = this;
    const n = sequence.count;
    // Handles from before a break do not say which insertion they mean: such a task is like no other.
    const isUnknown = after.length > 0 && after.some((before) => before < this.breakAt);
    if (!this.isOver) periods.add(isUnknown ? Math.imul(n, UNLIKE) : numberOf(insertion, after, n));
    sequence.add(cls, insertion, after, rank);
  }

  /** The program has asked for something, or other tasks came between its own. */
  break(): void {
    const { count } = this.sequence;
    if (this.breakAt === count) return;
    this.breakBefore = this.breakAt;
    this.breakAt = count;
    this.breaks++;
  }

  /** Whether it is worth while to ask for a stretch. */
  get mayRepeat(): boolean {
    const { matched } = this.periods;
    return matched + this.before >= LEAST_REPEATED / 2 && matched > 0 && !this.isOver;
  }

  /** No stretch was found, and it is not worth while to go on. */
  get isInVain(): boolean {
    const { count } = this.sequence;
    return (
      !this.forRun && (this.isOver || count > PATIENCE * Math.max(this.before, LEAST_REPEATED))
    );
  }

  /** Goes on to keep what is inserted, without looking for a stretch. */
  stop(): void {
    this.isOver = true;
  }

  /** The number of tasks of the stretch that ends here and may come again now; 0 if there is none. */
  stretch(): number {
    const { periods, breakAt, breakBefore } = this;
    const { period, matched } = periods;
    if (period === 0 || this.isBetween) return 0;
    const length = this.lengthOf(period);
    const { count, classes } = this.sequence;
    if (count < RECORDED * length) return 0;
    const repeated = matched + period + this.before;
    if (repeated < Math.max(LEAST_REPEATED, REPETITIONS * length)) return 0;
    const isBreak = breakAt === count;
    if (count - (isBreak ? breakBefore : breakAt) < length) return 0;
    if (!isBreak && !this.isWhole(length)) return 0;
    const times = this.timesGivenUp(classes[count - length]);
    return repeated < LEAST_REPEATED * 2 ** times ? 0 : length;
  }

  /** The first break of a recording that has begun between two: the next one shows how far they are apart. */
  private get isBetween(): boolean {
    const { before, breaks, breakAt, sequence } = this;
    return before > 0 && breaks === 1 && sequence.count - breakAt < LEAST_REPEATED;
  }

  /**
   * Tasks of a stretch: several short periods, so that the workers have equally many, and so many that the program next asks for
   * something at the end of one.
   */
  private lengthOf(period: number): number {
    const { breakAt, breakBefore } = this;
    const gap = this.before > 0 && this.breaks === 1 ? 0 : breakAt - breakBefore;
    if (period !== this.periodOf || gap !== this.gapOf) {
      this.periodOf = period;
      this.gapOf = gap;
      this.lengthNow = this.evenLength(period, gap) || this.evenLength(period, 0);
    }
    return this.lengthNow;
  }

  /** The shortest length with which hardly a worker waits for others; 0 if none ends with a gap. */
  private evenLength(period: number, gap: number): number {
    const { workers } = this;
    const least = period * Math.ceil(LEAST_TASKS / period);
    const most = Math.max(least, Math.min(MOST_EVEN, gap || MOST_EVEN));
    let best = 0;
    let bestShare = 0;
    for (let length = least; length <= Math.max(most, gap); length += period) {
      if (gap % length !== 0) continue;
      const share = length / workers / Math.ceil(length / workers);
      if (best > 0 && (length > most || share <= bestShare * EVENER)) continue;
      best = length;
      bestShare = share;
    }
    return best;
  }

  /** Whether the stretch begins where the period does, or behind a break. */
  private isWhole(length: number): boolean {
    const { periods, breakAt } = this;
    const { count, matched } = periods;
    if (this.firstOf !== count - matched) {
      this.firstOf = count - matched;
      this.first = periods.first;
    }
    return (count - Math.max(this.first, breakAt)) % length === 0;
  }

  /** The last `length` insertions, if those before them are the same. Parameters that differ are open. */
  cut(length: number, run: RunState): Sequence | undefined {
    const { sequence } = this;
    const stretch = new Sequence();
    const most = Math.max(...sequence.classes.slice(-length).map((cls) => argumentsOf(cls)));
    const record = {
      flows: new Int32Array(most) as Column<Int32Array, DatumId>,
      params: new Float64Array(most),
    } as { -readonly [K in keyof TaskInsertion]: TaskInsertion[K] };
    const begin = sequence.count - length;
    const times = Math.min(REPETITIONS, Math.floor(sequence.count / length));
    for (let back = 0; back < times; back++)
      for (let n = 0; n < length; n++) {
        const first = begin - back * length;
        sequence.insertions.read(first + n, run, record);
        const after = sequence.insertions.after.get(first + n)?.map((b) => b - first) ?? NONE;
        if (after.some((b) => b < 0)) return undefined;
        if (back === 0) stretch.add(sequence.classes[first + n], record, after);
        else if (!stretch.follows(n, record, after)) return undefined;
      }
    return stretch;
  }
}

function argumentsOf({ flowNames, paramNames }: TaskClass): number {
  return Math.max(flowNames.length, paramNames.length);
}
