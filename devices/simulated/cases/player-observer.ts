// Reports the passes and runs of an engine to the rank of a case.
import { EngineObserver } from '../../../scheduler/engine/observer.js';
import type { RunState } from '../../../scheduler/engine/run-state.js';

/** The events that a rank observes. */
interface Watching {
  runOpened(run: RunState): void;
  runFailed(run: RunState): void;
  runClosed(run: RunState): void;
  passBegins(): void;
  /** A pass is over that was not inside another one. */
  passEnds(): void;
}

export class PlayerObserver extends EngineObserver {
  private readonly rank: Watching;
  /** Passes under way: a body may insert, and an insertion may need a pass. */
  private depth = 0;

  constructor(rank: Watching) {
    super();
    this.rank = rank;
  }

  override runOpened(run: RunState): void {
    this.rank.runOpened(run);
  }

  override runFailed(run: RunState): void {
    this.rank.runFailed(run);
  }

  override runClosed(run: RunState): void {
    this.rank.runClosed(run);
  }

  override passBegins(): void {
    this.depth++;
    this.rank.passBegins();
  }

  override passEnds(): void {
    if (--this.depth === 0) this.rank.passEnds();
  }
}
