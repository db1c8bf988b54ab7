// Whether runs of several ranks take less time when they are played. While a program inserts a run, its first tasks run already, and nothing
// of a run that is to be played does. So a run of long tasks is over sooner if it is inserted. Nobody can tell before: so rank 0, whose
// vote suffices, has a plan's tasks inserted now and then after some plays, and compares the shortest times.

/** Plays of a plan before runs of its tasks are inserted for a trial, and how many of them. */
const PLAYS = 8;
const TRIALS = 2;
/** Plays may take that many times as long: less time of the processor is worth something. */
const AS_LONG = 1.03;

export class Trials {
  private plays = 0;
  private inserted = 0;
  private shortestPlay: number = Number.POSITIVE_INFINITY;
  private shortestInserted: number = Number.POSITIVE_INFINITY;

  /** The next run is to be inserted. */
  get isDue(): boolean {
    return this.plays >= PLAYS && this.inserted < TRIALS;
  }

  /** A run was played in that time. */
  played(time: number): void {
    this.plays++;
    this.shortestPlay = Math.min(this.shortestPlay, time);
  }

  /** A run was inserted for a trial in that time. True if the plan is not worth while. */
  tried(time: number): boolean {
    this.inserted++;
    this.shortestInserted = Math.min(this.shortestInserted, time);
    return this.inserted === TRIALS && this.shortestPlay > AS_LONG * this.shortestInserted;
  }
}
