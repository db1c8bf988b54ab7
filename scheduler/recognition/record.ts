// What recognition has made of a program so far: the plans that it keeps, and what it has given up, and why.
import type { Sequence } from './sequence.js';

/** Limit for what was given up; the last is kept. */
const MOST_KEPT = 16;

/** Tasks that have come again. */
export interface RecognisedTasks {
  /** Name of the run that they were planned in. */
  readonly name: string;
  /** A run as a whole, or a stretch that a run repeats. */
  readonly kind: 'run' | 'stretch';
  /** Tasks of the run, or of one stretch. */
  readonly tasks: number;
  /** Tasks that were played. */
  readonly played: number;
}

/** Tasks that are not played any more, or never were. */
export interface GivenUpTasks extends RecognisedTasks {
  readonly why: string;
}

/** What recognition has made of a program so far. */
export interface RecognitionReport {
  /** Tasks of all runs that are over, and those of them that were played. */
  readonly tasks: number;
  readonly played: number;
  /** New runs are not watched, because recognition has cost more than it has saved. */
  readonly isPaused: boolean;
  /** Plans that wait for their tasks; the last used first. */
  readonly plans: readonly RecognisedTasks[];
  /** The last 16 that were given up, the newest first. */
  readonly givenUp: readonly GivenUpTasks[];
}

export class RecognitionRecord {
  private tasks = 0;
  private played = 0;
  private givenUp: GivenUpTasks[] = [];

  /** A run of so many tasks is over. */
  ran(tasks: number): void {
    this.tasks += tasks;
  }

  /** Tasks of a sequence were played. */
  plays(sequence: Sequence, tasks: number): void {
    this.played += tasks;
    sequence.played += tasks;
  }

  /** A sequence that was planned, or for which no plan could be made, is given up. */
  givesUp(sequence: Sequence, why: string): void {
    this.givenUp = [{ ...recognised(sequence), why }, ...this.givenUp].slice(0, MOST_KEPT);
  }

  report(sequences: readonly Sequence[], isPaused: boolean): RecognitionReport {
    const { tasks, played, givenUp } = this;
    const plans = sequences.filter(({ planned }) => planned !== undefined).map(recognised);
    return { tasks, played, isPaused, plans, givenUp };
  }
}

function recognised({ name, isStretch, count, played }: Sequence): RecognisedTasks {
  return { name, kind: isStretch ? 'stretch' : 'run', tasks: count, played };
}
