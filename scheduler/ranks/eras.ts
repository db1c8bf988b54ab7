// The beginning of an era. A failed run ends an era on every rank, but each rank learns of that after another number of
// its program's calls. So one rank may make a call in the old era, and another rank the same call in the new one. Each
// rank tells rank 0 how many calls it had made when the era began there. The largest of these numbers is the position of
// the first common call: rank 0 tells it to all ranks. Calls before it are torn when the new era is theirs.
//
// Invariants:
// - a read or restore resolves only if every rank made it in the same era, or is rejected on the ranks that made it in the
//   newer one: on this rank it waits until the first common call is known, and it is rejected if it comes before that;
// - a run that is open in an era and comes before its first common call fails. The plans of the ranks differ after it, so
//   this era is spoiled: all of its reads are rejected and all of its runs fail, and its runs receive nothing. Their
//   failure ends it;
// - after the first common call the plans of the ranks are equal, because a torn call leaves no trace in them (planned-reads.ts);
// - a read that is made after this rank has learned of a failure, and before the next era, is rejected;
// - after the loss of a rank no era begins. Open runs fail on each rank at another call, so the plans differ for ever: every
//   read or restore that this rank makes after it has learned of the loss is rejected (datum-calls.ts).
import type { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { Wire, type WireRecord } from '../../devices/network/wire.js';
import type { FailedRuns } from './failed-runs.js';
import type { RankHost } from './host.js';
import type { RankLinks } from './links.js';

/** The parts on which the beginning of an era has effects (agreement.ts). */
export interface EraRuns {
  /** Fails the open runs that began before call `first`; true if there are any. */
  failTorn(first: number): boolean;
}

/** A read or restore that may prove to be torn. */
export class Doubt {
  readonly position: number;
  readonly datum: string;
  private isSure = false;
  private refusal: HeadraceError | undefined;
  private resolve: (() => void) | undefined;
  private reject: ((error: HeadraceError) => void) | undefined;

  constructor(position: number, datum: string) {
    this.position = position;
    this.datum = datum;
  }

  /** The value is there: calls one of both as soon as the doubt is over. */
  settle(resolve: () => void, reject: (error: HeadraceError) => void): void {
    if (this.refusal !== undefined) reject(this.refusal);
    else if (this.isSure) resolve();
    else {
      this.resolve = resolve;
      this.reject = reject;
    }
  }

  ends(refusal: HeadraceError | undefined): void {
    this.isSure = refusal === undefined;
    this.refusal = refusal;
    if (refusal === undefined) this.resolve?.();
    else this.reject?.(refusal);
  }
}

export class RankEras {
  /** The present era has a run that ranks began in different eras. */
  isSpoiled = false;
  private readonly engine: RankHost;
  private readonly ranks: RankLinks;
  private readonly runs: EraRuns;
  private readonly failures: Pick<FailedRuns, 'torn'>;
  private era = 0;
  /** Position of the first common call of the present era; undefined while unknown. */
  private first: number | undefined = 0;
  private readonly doubts: Set<Doubt> = new Set();
  /** On rank 0: the number of calls that each rank had made when the present era began there. */
  private readonly made: Map<number, number> = new Map();

  constructor(
    engine: RankHost,
    ranks: RankLinks,
    runs: EraRuns,
    failures: Pick<FailedRuns, 'torn'>,
  ) {
    this.engine = engine;
    this.ranks = ranks;
    this.runs = runs;
    this.failures = failures;
  }

  /** The first common call of the present era is not known yet. */
  get isOpen(): boolean {
    return this.first === undefined;
  }

  /** Whether the call at a position is known to be torn, as all are in a spoiled era; -1: a transfer of a run. */
  isTorn(position: number): boolean {
    if (!guards.tornReads) return false;
    if (this.isSpoiled) return true;
    return this.first !== undefined && position >= 0 && position < this.first;
  }

  /** Whether a transfer of a run may come from a rank that plans otherwise, because a run before it is torn. */
  isUnsure(position: number): boolean {
    return guards.tornReads && position < 0 && this.first === undefined;
  }

  /** The present era begins on this rank. */
  begin(era: number): void {
    this.endDoubts(() => true);
    this.era = era;
    this.first = undefined;
    this.isSpoiled = false;
    this.made.clear();
  }

  /** Rank 0 learns how many calls this rank had made when the present era began. */
  tellCalls(): void {
    const { era, ranks } = this;
    const made = ranks.calls.length;
    if (ranks.rank === 0) this.enters(0, era, made);
    else ranks.device.wire.write(0, Wire.enters, [era, made]);
    this.engine.wake();
  }

  take(from: number, { kind, words, at }: WireRecord): void {
    if (kind === Wire.enters) this.enters(from, words[at + 2], words[at + 3]);
    else this.opens(words[at + 2], words[at + 3]);
  }

  /** On rank 0: a rank had made `made` calls when the era began there. */
  private enters(rank: number, era: number, made: number): void {
    if (era !== this.era) return;
    const { ranks } = this;
    this.made.set(rank, made);
    if (this.made.size < ranks.size) return;
    const first = Math.max(...this.made.values());
    for (let r = 1; r < ranks.size; r++) ranks.device.wire.write(r, Wire.opens, [era, first]);
    this.opens(era, first);
  }

  /** Call `first` is the first one that all ranks make in the era. */
  private opens(era: number, first: number): void {
    if (era !== this.era || this.first !== undefined) return;
    this.first = first;
    this.isSpoiled = this.runs.failTorn(first);
    if (guards.tornReads) this.ranks.dropTorn(first);
    this.endDoubts(({ position }) => this.isSpoiled || position < first);
    this.engine.wake();
  }

  /** A run begins at a position; true if it must fail. */
  spoils(position: number): boolean {
    if (this.first !== undefined && position < this.first && guards.oneEra) this.isSpoiled = true;
    return this.isSpoiled;
  }

  /**
   * A read or restore of a datum at a position; undefined when it is not torn.
   * @throws HeadraceError `ERR_PEER_FAILED` when it is
   */
  doubt(position: number, datum: string): Doubt | undefined {
    if (!guards.tornReads) return undefined;
    if (this.isTorn(position)) throw this.failures.torn(datum);
    if (this.first !== undefined) return undefined;
    const doubt = new Doubt(position, datum);
    this.doubts.add(doubt);
    return doubt;
  }

  private endDoubts(isRefused: (doubt: Doubt) => boolean): void {
    const doubts = [...this.doubts];
    this.doubts.clear();
    for (const doubt of doubts)
      doubt.ends(isRefused(doubt) ? this.failures.torn(doubt.datum) : undefined);
  }

  /** A rank was lost or made different calls: no rank tells this one anything any more. */
  lost(error: HeadraceError): void {
    this.first = 0;
    const doubts = [...this.doubts];
    this.doubts.clear();
    for (const doubt of doubts) doubt.ends(error);
  }
}
