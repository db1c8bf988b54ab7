// Rank 0 compares the calls of all ranks: it fetches those that it does not know to agree, one piece after the other, and
// tells everybody of the first call that is not the same.
//
// Invariants: a rank is asked again only when it has answered; `agreed` calls were seen to be equal; a mismatch is told
// to all others before it ends anything here, so that nobody hears of it by the end of this process.
import { guards } from '../devices/guards.js';
import { Wire } from '../devices/network-wire.js';
import { type CallLog, wordsOf } from './call-log.js';
import type { Engine } from './engine.js';
import type { CallCount, RankCalls } from './rank-calls.js';
import type { Ranks } from './ranks.js';

/** A piece of a rank's calls, as it answers. */
export interface CallsOf {
  /** Calls it has made so far. */
  readonly made: number;
  /** Kind, subject, more, words. */
  readonly calls: readonly (readonly [number, number, number, string])[];
}

/** What is known of one log of one rank. */
interface Known {
  agreed: number;
  isAsked: boolean;
  /** Its digest was another one: where the calls agree as far as they are kept, that much is said. */
  doubt: string;
}

export class RankJudge {
  private readonly engine: Engine;
  private readonly ranks: Ranks;
  private readonly calls: RankCalls;
  /** By number of the run (0: the program itself), then by rank. */
  private readonly known: Map<number, Known[]> = new Map();
  private readonly leavers: Map<number, CallCount> = new Map();
  /** What was told to the others and is still to be done here: the text, the rank, and how many have not answered. */
  private verdict:
    | { readonly text: string; readonly rank: number; missing: number; looks: number }
    | undefined;
  private isOver = false;

  constructor(engine: Engine, ranks: Ranks, calls: RankCalls) {
    this.engine = engine;
    this.ranks = ranks;
    this.calls = calls;
  }

  // --- Questions ----------------------------------------------------------------------------------------------------

  /** Somebody waits: where is everybody? */
  inquire(): void {
    if (this.verdict !== undefined || this.isOver) return;
    for (const number of this.calls.numbers())
      for (let rank = 1; rank < this.ranks.size; rank++) this.ask(rank, number);
  }

  /** `text`: the ranks' numbers of calls or digests differ, and what is to be said if no call shows it. */
  suspect(rank: number, number: number, text: string): void {
    this.of(rank, number).doubt = text;
    this.ask(rank, number);
  }

  private of(rank: number, number: number): Known {
    let list = this.known.get(number);
    if (list === undefined) {
      list = Array.from({ length: this.ranks.size }, () => ({
        agreed: 0,
        isAsked: false,
        doubt: '',
      }));
      this.known.set(number, list);
    }
    return list[rank];
  }

  private ask(rank: number, number: number): void {
    const known = this.of(rank, number);
    if (known.isAsked) return;
    known.isAsked = true;
    this.ranks.device.wire.write(rank, Wire.ask, [number, known.agreed]);
    this.engine.wake();
  }

  /** A run is over: its own calls are of no interest, and those before it agree. */
  forget(number: number, agreed: CallCount | undefined): void {
    this.known.delete(number);
    if (agreed === undefined) return;
    for (let rank = 1; rank < this.ranks.size; rank++) {
      const known = this.of(rank, 0);
      known.agreed = Math.max(known.agreed, agreed.made);
    }
  }

  // --- Answers ------------------------------------------------------------------------------------------------------

  hear(rank: number, number: number, from: number, { made, calls }: CallsOf): void {
    const log = this.calls.logOf(number);
    if (log === undefined || this.verdict !== undefined || this.isOver) return;
    const known = this.of(rank, number);
    known.isAsked = false;
    // Ranks leave the program of a failed run at different places.
    if (this.ranks.runs.failureIn(number) !== undefined) return;
    let position = from;
    for (const [kind, subject, more, words] of calls) {
      const own = log.at(position);
      if (own === undefined && position >= log.first) break;
      const isSame =
        own === undefined || (own.kind === kind && own.subject === subject && own.more === more);
      if (!isSame) {
        const place = log.place(position);
        this.decide(
          `rank 0 is at ${wordsOf(own)} (${place}), rank ${rank} is at ${words} (${place})`,
          rank,
        );
        return;
      }
      position++;
    }
    known.agreed = Math.max(known.agreed, position);
    if (calls.length > 0 && position < Math.min(made, log.length)) this.ask(rank, number);
    else if (known.doubt !== '') this.decide(this.doubted(known.doubt, log, made, rank), rank);
  }

  private doubted(doubt: string, log: CallLog, made: number, rank: number): string {
    return `rank 0 has made ${log.length} calls${log.where}, rank ${rank} ${made}: ${doubt}`;
  }

  private decide(text: string, rank: number): void {
    const message = `the ranks do not make the same calls: ${text}`;
    const { size, device } = this.ranks;
    this.verdict = { text: message, rank, missing: size - 1, looks: 0 };
    for (let r = 1; r < size; r++) device.wire.write(r, Wire.apart, [rank], message);
    this.engine.wake();
  }

  /** A rank has heard of the mismatch. */
  heard(): void {
    if (this.verdict !== undefined && --this.verdict.missing === 0) this.carryOut();
  }

  /** This rank has looked around: one that computes answers late, and is not waited for. */
  looked(): void {
    if (this.verdict === undefined) return;
    // Virtual time stands still only when nobody will answer any more.
    if (++this.verdict.looks > 1 || this.engine.backend.kind === 'simulated') this.carryOut();
  }

  /** The mismatch takes effect here. */
  carryOut(): void {
    const { verdict } = this;
    if (verdict === undefined) return;
    this.verdict = undefined;
    this.isOver = true;
    this.calls.outOfStep(verdict.text, verdict.rank);
    this.letGo();
  }

  // --- Leaving ------------------------------------------------------------------------------------------------------

  /** A rank has closed its runtime and is quiet. */
  leaves(rank: number, count: CallCount): void {
    this.leavers.set(rank, count);
    this.letGo();
  }

  private letGo(): void {
    const { leavers, ranks } = this;
    const own = leavers.get(0);
    if (leavers.size < ranks.size || own === undefined) return;
    if (!this.isOver && guards.callOrder) {
      for (const [rank, { made, digest }] of leavers) {
        if (made === own.made && digest === own.digest) continue;
        this.suspect(rank, 0, 'those before the close of the runtime are not the same');
        return;
      }
    }
    leavers.clear();
    for (let r = 1; r < ranks.size; r++) ranks.device.wire.write(r, Wire.left, []);
    this.engine.wake();
    this.calls.leave();
  }
}
