// The account of recognition: what it costs must be earned. Recording, following, comparing and planning take time, and only plays
// give it back. A program that is never played, or rarely, must not become slower by it.
//
// The unit is the time of inserting and running one empty task. The costs are rounded up from measurements, the gains down.
// Invariant: costs <= ALLOWANCE + SHARE * (all that was inserted) + gains + the costs of one run, of one plan, and of trying each plan
// twice. Nothing else that costs begins while the balance is below zero, and what has begun goes on to the end of its run. While there is
// a plan, runs are watched whatever the balance; that costs no more than IDLE and the gains before the plan is given up.

/** Part of the work of the program that recognition may cost. */
const SHARE = 0.02;
/** What it may cost besides: some ten milliseconds. The balance never exceeds it, so that gains of long ago are not spent. */
const ALLOWANCE = 2 ** 15;
/** What a run takes besides its tasks. */
export const RUN = 10;
/** What it costs to watch a run, besides its tasks. */
const WATCHED_RUN = 20;
/** What it costs to look whether a stretch begins with an insertion. */
const ASKED = 0.05;
/** What plans may cost while nothing is played. */
const IDLE = 2 ** 13;

/** What is done with a task, and what it costs. */
export const Cost = {
  /** Recorded and looked at for a period, or compared with the recorded one. */
  seen: 0.35,
  /** Held back, and inserted after all. */
  heldInVain: 0.5,
  planned: 4,
} as const;

/** What a played task saves, and the tasks that a play must have to save anything. */
const PLAYED = 0.4;

export class Account {
  private balance = ALLOWANCE;
  /** What plans have cost that were not played, less what plays have saved. */
  private idle = 0;

  /** Whether recognition may begin something. */
  get isOpen(): boolean {
    return this.balance >= 0;
  }

  /** A run is over, with that many tasks that are not accounted for. */
  ran(tasks: number, isWatched: boolean): void {
    this.add(SHARE * (RUN + tasks) - (isWatched ? WATCHED_RUN : 0));
  }

  /** That many tasks of a run were inserted, and it goes on. */
  inserted(tasks: number): void {
    this.add(SHARE * tasks);
  }

  /** Recognition has done that with so many tasks. */
  pay(each: number, tasks: number): void {
    this.add(-each * tasks);
  }

  /** A run of that many tasks is played. */
  played(tasks: number): void {
    this.add(PLAYED * tasks);
    this.idle = Math.max(0, this.idle - PLAYED * tasks);
  }

  /** There are plans, and a run was watched of which nothing was played. */
  waitedForRun(): void {
    this.idle += WATCHED_RUN;
  }

  /** So many insertions were looked at, of which no stretch began with any. */
  waited(insertions: number): void {
    this.idle += ASKED * insertions;
  }

  /** Whether plans are worth waiting for. */
  get keepsPlans(): boolean {
    return this.idle <= IDLE;
  }

  letPlansGo(): void {
    this.idle = 0;
  }

  private add(amount: number): void {
    this.balance = Math.min(ALLOWANCE, this.balance + amount);
  }
}
