// Whole runs that all ranks play in place of their tasks: how this rank votes, and what it does until the votes are counted
// (scheduler/ranks/play-votes.ts has the rules).
//
// Invariants: at most one run is held back, and no other is open beside it. From its vote for a play until the decision, this rank
// inserts nothing: who must insert something waits for the decision, which comes soon after the vote was taken back.
import { guards } from '../../devices/guards.js';
import type { TaskHandle } from '../../devices/handles.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import type { Ranks } from '../ranks/ranks.js';
import { HeldHandles } from './held-handles.js';
import type { HeldRun } from './held-run.js';

/** The run for whose play this rank has voted. */
interface Awaited {
  readonly held: HeldRun;
  readonly run: RunState;
  readonly number: number;
  plays: boolean | undefined;
}

export class AgreedPlays {
  readonly peers: Ranks;
  readonly handles: HeldHandles;
  private readonly engine: Engine;
  private awaited: Awaited | undefined;
  /** Acts on a decision. */
  private readonly decided: (held: HeldRun, plays: boolean) => void;

  constructor(engine: Engine, peers: Ranks, decided: (held: HeldRun, plays: boolean) => void) {
    this.engine = engine;
    this.peers = peers;
    this.decided = decided;
    this.handles = new HeldHandles(peers.rank, engine.tasks);
    peers.votes.decided = (number, plays) => {
      if (this.awaited?.number === number) this.awaited.plays ??= plays;
    };
    // Other ranks may not play any more, or not hear of a vote.
    peers.whenRunFails = (run) => {
      if (this.awaited?.run === run) this.awaited.plays ??= false;
    };
  }

  /** Insertions of all ranks so far, in all runs. */
  get inserted(): number {
    return this.peers.plan.count;
  }

  isPruned(run: RunState): boolean {
    return this.peers.runs.isPruned(run);
  }

  /** Whether the insertions of a run may be held back: this rank has not said that it inserts them. */
  mayHold(run: RunState): boolean {
    return run.error === undefined && this.peers.votes.isFree(this.peers.runs.numberOf(run));
  }

  /** This rank inserts the tasks of a run. */
  against(run: RunState): void {
    this.peers.votes.against(this.peers.runs.numberOf(run));
  }

  /** All tasks of a run were held back, and its program has ended. */
  supports(held: HeldRun, run: RunState): void {
    const number = this.peers.runs.numberOf(run);
    this.awaited = { held, run, number, plays: undefined };
    this.peers.votes.supports(number, held.vote);
  }

  isAwaited(held: unknown): boolean {
    return this.awaited?.held === held;
  }

  /** A pass is over, which may have brought the decision. */
  passed(): void {
    const { awaited } = this;
    if (awaited?.plays === undefined) return;
    this.awaited = undefined;
    this.decided(awaited.held, awaited.plays);
    // A play begins in a pass.
    this.engine.pump();
  }

  /** Something is to come after the run: waits for the decision. False if that is not possible here, in a pass. */
  decide(): boolean {
    const { awaited, engine, peers } = this;
    if (awaited === undefined) return true;
    if (engine.isUnderWay) return false;
    const { idle } = engine;
    const since = engine.backend.now();
    if (guards.votesBind) peers.votes.takesBack(awaited.number);
    else awaited.plays = false;
    for (;;) {
      this.passed();
      if (this.awaited !== awaited) return true;
      if (engine.pump()) continue;
      idle.block();
      idle.reportBlocked(since, 'a call that waits until the ranks know whether they play a run');
    }
  }

  /** The handles as the engine has them. */
  tasksOf(handles: readonly TaskHandle[]): readonly TaskHandle[] {
    const { handles: held } = this;
    return handles.some((handle) => held.isOne(handle))
      ? handles.map((handle) => held.taskOf(handle))
      : handles;
  }
}
