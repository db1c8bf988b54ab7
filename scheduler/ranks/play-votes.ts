// Runs in whose place all ranks play a plan (scheduler/recognition/). Each rank finds by itself that it has a plan of the tasks of a
// run. That may depend on the moment: on what was under way when the run began, or on how long its program took. So the ranks
// agree, once per run: rank 0 collects their votes.
//
// Invariants:
// - A plan is played in place of a run on all ranks or on none. Rank 0 decides once, and only if all ranks have voted for the same
//   plan with the same parameters they play it. A rank that has voted for a play does nothing with the tasks of the run until it
//   knows the decision.
// - Every vote for a play is answered. A rank that inserts the tasks of a run has voted against before it inserts the first one, or does
//   so when it is asked; and rank 0 asks a rank once that has never voted. So no rank waits for one that waits for it.
// - A rank may take its vote for a play back. Then no rank plays, or all have voted for it before.
import { guards } from '../../devices/guards.js';
import { Wire, type WireRecord } from '../../devices/network/wire.js';
import type { RankHost } from './host.js';
import type { RankLinks } from './links.js';

/** In place of a plan: the rank does not play. */
const NO_PLAN = 0;

/** What a rank would play. */
export interface PlayVote {
  /** A number that stands for the plan, and one for the parameters that it leaves open. */
  readonly plan: number;
  readonly values: number;
}

/** What this rank has to say of a run: nothing yet, that it does not play if it is asked, or it has voted. */
type Said = 'nothing' | 'against' | 'vote';

interface Ballot {
  /** The votes for a play, by rank. */
  readonly votes: Map<number, PlayVote>;
  decision: boolean | undefined;
}

export class PlayVotes {
  /** Told of each decision on a run for whose play this rank has voted. Without it the rank plays nothing. */
  decided: ((number: number, plays: boolean) => void) | undefined;
  private readonly engine: Pick<RankHost, 'wake'>;
  private readonly ranks: Pick<RankLinks, 'rank' | 'size' | 'device'>;
  /** This rank has voted, or was asked: from now on it votes in every run. */
  private isAsked = false;
  /** The runs of this rank that are not over. */
  private readonly runs: Map<number, Said> = new Map();
  /** On rank 0: the runs in which a rank has voted, and the ranks that vote without being asked. */
  private readonly ballots: Map<number, Ballot> = new Map();
  private readonly voting: Set<number> = new Set();

  constructor(engine: Pick<RankHost, 'wake'>, ranks: Pick<RankLinks, 'rank' | 'size' | 'device'>) {
    this.engine = engine;
    this.ranks = ranks;
  }

  // --- This rank ----------------------------------------------------------------------------------------------

  begins(number: number): void {
    this.runs.set(number, 'nothing');
    if (this.decided === undefined) this.against(number);
  }

  ends(number: number): void {
    this.runs.delete(number);
    this.ballots.delete(number);
  }

  /** Whether this rank may still vote for a play in place of a run. */
  isFree(number: number): boolean {
    return this.runs.get(number) === 'nothing';
  }

  /** This rank inserts the tasks of a run. */
  against(number: number): void {
    if (!this.isFree(number)) return;
    this.runs.set(number, 'against');
    if (this.isAsked) this.tell(number);
  }

  /** This rank would play in place of a run, whose program has ended; `decided` follows. */
  supports(number: number, vote: PlayVote): void {
    this.runs.set(number, 'vote');
    this.isVoting();
    this.cast(number, vote);
  }

  /** This rank cannot wait any longer; `decided` follows. */
  takesBack(number: number): void {
    this.cast(number, { plan: NO_PLAN, values: 0 });
  }

  /** Others wait for this rank. */
  private isVoting(): void {
    this.isAsked = true;
    for (const [number, said] of this.runs) if (said === 'against') this.tell(number);
  }

  private tell(number: number): void {
    this.runs.set(number, 'vote');
    this.cast(number, { plan: NO_PLAN, values: 0 });
  }

  private cast(number: number, vote: PlayVote): void {
    const { rank, device } = this.ranks;
    if (rank === 0) this.count(0, number, vote);
    else device.wire.write(0, Wire.wouldPlay, [number, vote.plan, vote.values]);
    this.engine.wake();
  }

  // --- Messages -----------------------------------------------------------------------------------------------

  take(from: number, { kind, words, at }: WireRecord): void {
    const number = words[at + 2];
    if (kind === Wire.wouldPlay) {
      this.count(from, number, { plan: words[at + 3], values: words[at + 4] });
      this.engine.wake();
    } else if (kind === Wire.asksForVotes) this.isVoting();
    else this.decided?.(number, words[at + 3] === 1);
  }

  // --- Rank 0 -------------------------------------------------------------------------------------------------

  private count(from: number, number: number, vote: PlayVote): void {
    this.voting.add(from);
    const ballot = this.ballots.get(number) ?? { votes: new Map(), decision: undefined };
    this.ballots.set(number, ballot);
    const { votes } = ballot;
    const isFor = vote.plan !== NO_PLAN;
    if (ballot.decision !== undefined) {
      if (isFor) this.answer(from, number, ballot.decision);
      return;
    }
    const others = [...votes.values()];
    if (isFor) votes.set(from, vote);
    const isOther = ({ plan, values }: PlayVote): boolean =>
      plan !== vote.plan || values !== vote.values;
    const isRefused = !isFor || others.some(isOther);
    if (isRefused && guards.allPlay) this.decide(number, ballot, false);
    else if (votes.size === this.ranks.size || !guards.allPlay) this.decide(number, ballot, true);
    else this.askOthers();
  }

  private decide(number: number, ballot: Ballot, plays: boolean): void {
    ballot.decision = plays;
    for (const rank of ballot.votes.keys()) this.answer(rank, number, plays);
  }

  private answer(to: number, number: number, plays: boolean): void {
    if (to === 0) this.decided?.(number, plays);
    else this.ranks.device.wire.write(to, Wire.allPlay, [number, plays ? 1 : 0]);
  }

  private askOthers(): void {
    if (!guards.votesAsked) return;
    const { size, device } = this.ranks;
    for (let rank = 0; rank < size; rank++) {
      if (this.voting.has(rank)) continue;
      this.voting.add(rank);
      if (rank === 0) this.isVoting();
      else device.wire.write(rank, Wire.asksForVotes, []);
    }
  }
}
