// Rank 0 compares the calls of all ranks. It fetches the calls whose agreement is unknown, piece by piece, and tells all
// ranks of the first difference.
//
// Invariants: rank 0 asks a rank again only after its answer; the first `agreed` calls are equal on all ranks; all other
// ranks learn of a mismatch before it takes effect on rank 0, so that no rank learns of it by the end of this process.
import { guards } from '../../devices/guards.js';
import { Wire } from '../../devices/network/wire.js';
import { type CallLog, wordsOf } from './call-log.js';
import type { RankHost } from './host.js';
import type { CallCount, Judging, RankLinks } from './links.js';

/** A piece of a rank's calls, in the form of its answer. */
export interface CallsOf {
  /** Number of calls that the rank has made so far. */
  readonly made: number;
  /** Kind, subject, more, words. */
  readonly calls: readonly (readonly [number, number, number, string])[];
}

/** Rank 0's knowledge of one log of one rank. */
interface Known {
  agreed: number;
  isAsked: boolean;
  /** The rank's digest was different. If the kept calls agree, the error says only that. */
  doubt: string;
}

/** The calls of this rank, and the effects of a verdict on it (calls.ts). */
interface JudgedCalls {
  logOf(number: number): CallLog | undefined;
  /** The logs of the program itself (0) and of the open runs. */
  numbers(): number[];
  outOfStep(message: string, rank: number): void;
  /** This rank may leave. */
  leave(): void;
}

export class RankJudge implements Judging {
  private readonly engine: RankHost;
  private readonly ranks: RankLinks;
  private readonly calls: JudgedCalls;
  /** By number of the run (0: the program itself), then by rank, for the ranks that were asked. */
  private readonly known: Map<number, Map<number, Known>> = new Map();
  /** That many calls of the program itself are equal on all ranks. */
  private agreed = 0;
  private readonly leavers: Map<number, CallCount> = new Map();
  /**
   * The mismatch that was sent to the others and takes effect here later: the text, the rank, and the number of missing
   * answers.
   */
  private verdict:
    | { readonly text: string; readonly rank: number; missing: number; looks: number }
    | undefined;
  private isOver = false;

  constructor(engine: RankHost, ranks: RankLinks, calls: JudgedCalls) {
    this.engine = engine;
    this.ranks = ranks;
    this.calls = calls;
  }

  // --- Questions ----------------------------------------------------------------------------------------------------

  /** A rank waits: asks all ranks for their calls. */
  inquire(): void {
    if (this.verdict !== undefined || this.isOver) return;
    for (const number of this.calls.numbers())
      for (let rank = 1; rank < this.ranks.size; rank++) this.ask(rank, number);
  }

  /** `text`: the error if the numbers of calls or the digests differ and no single call shows the difference. */
  suspect(rank: number, number: number, text: string): void {
    this.of(rank, number).doubt = text;
    this.ask(rank, number);
  }

  private of(rank: number, number: number): Known {
    let ranks = this.known.get(number);
    if (ranks === undefined) {
      ranks = new Map();
      this.known.set(number, ranks);
    }
    let known = ranks.get(rank);
    if (known === undefined) {
      known = { agreed: 0, isAsked: false, doubt: '' };
      ranks.set(rank, known);
    }
    if (number === 0) known.agreed = Math.max(known.agreed, this.agreed);
    return known;
  }

  private ask(rank: number, number: number): void {
    const known = this.of(rank, number);
    if (known.isAsked) return;
    known.isAsked = true;
    this.ranks.device.wire.write(rank, Wire.ask, [number, known.agreed]);
    this.engine.wake();
  }

  /** A run is over: its own calls are no longer needed, and the calls before it agree. */
  forget(number: number, agreed: CallCount | undefined): void {
    this.known.delete(number);
    if (agreed !== undefined) this.agreed = Math.max(this.agreed, agreed.made);
  }

  // --- Answers ------------------------------------------------------------------------------------------------------

  hear(rank: number, number: number, from: number, { made, calls }: CallsOf): void {
    const log = this.calls.logOf(number);
    if (log === undefined || this.verdict !== undefined || this.isOver) return;
    const known = this.of(rank, number);
    known.isAsked = false;
    // Ranks leave the program of a failed run at different points.
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

  /** A rank has received the mismatch. */
  heard(): void {
    if (this.verdict !== undefined && --this.verdict.missing === 0) this.carryOut();
  }

  /** This rank has polled. A rank that computes answers late; rank 0 does not wait for it. */
  looked(): void {
    if (this.verdict === undefined) return;
    // Virtual time stands still only when no rank will answer any more.
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
