// The open runs: their slots, and how they end.
//
// Invariant: the end of a run is reported exactly once: when it is sealed and its last task is over; on several
// ranks, when all of them agree.
import { HeadraceError } from '../../devices/errors.js';
import { INTERNAL_RUN, RUN_SLOTS, RunState } from './run-state.js';
import type { EngineState } from './state.js';

export class Runs {
  private readonly state: EngineState;
  private readonly over: RunState[] = [];
  /** All open runs have slots up to this one. */
  private highest = 0;

  constructor(state: EngineState) {
    this.state = state;
  }

  /** @throws HeadraceError `ERR_TOO_MANY_RUNS` */
  open(): RunState {
    const { runs, backend, observer } = this.state;
    for (let slot = 1; slot < RUN_SLOTS; slot++) {
      if (runs[slot] !== undefined) continue;
      const run = new RunState(slot);
      runs[slot] = run;
      this.highest = Math.max(this.highest, slot);
      backend.setCancelled(slot, false);
      observer?.runOpened(run);
      return run;
    }
    throw new HeadraceError('ERR_TOO_MANY_RUNS', `more than ${RUN_SLOTS - 1} runs are open`, {
      limit: RUN_SLOTS - 1,
      remedy: 'await earlier runs first',
    });
  }

  /** The run inserts no more tasks; `onOver` is called when its last task is over. */
  seal(run: RunState): void {
    run.sealed = true;
    if (run.isDone) this.isOver(run);
    this.reportOver();
  }

  /** Gives back the slot of a run that is over. */
  close(run: RunState): void {
    const { runs, backend, observer } = this.state;
    backend.setCancelled(run.slot, false);
    runs[run.slot] = undefined;
    while (this.highest > 0 && runs[this.highest] === undefined) this.highest--;
    observer?.runClosed(run);
  }

  /** A task of the run is over. */
  taskIsOver(run: RunState): void {
    run.retired++;
    if (run.sealed && run.isDone) this.isOver(run);
  }

  private isOver(run: RunState): void {
    if (run.over || run.slot === INTERNAL_RUN) return;
    run.over = true;
    const { remote } = this.state;
    if (remote !== undefined) remote.runEnded(run);
    else this.over.push(run);
  }

  /** All ranks agree that a run is over. */
  isSettled(run: RunState): void {
    this.over.push(run);
    this.state.wake();
  }

  /** Notifies the programs whose runs are over. */
  reportOver(): void {
    while (this.over.length > 0) this.over.shift()?.onOver?.();
  }

  /** Notifies the programs of all open runs of progress. */
  reportProgress(): void {
    const { runs } = this.state;
    for (let slot = 1; slot <= this.highest; slot++) runs[slot]?.onProgress?.();
  }
}
