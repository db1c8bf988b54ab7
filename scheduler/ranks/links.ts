// The interfaces between the parts of a rank. `Ranks` makes the parts and joins them; no part knows `Ranks`.
import type { HeadraceError } from '../../devices/errors.js';
import type { NetworkDevice } from '../../devices/network/device.js';

/** Number of calls that a rank made, and a digest of them. */
export interface CallCount {
  readonly made: number;
  readonly digest: number;
}

/** Compares the calls of all ranks (judge.ts); on rank 0 only. */
export interface Judging {
  /** A rank waits: asks every rank for its calls. */
  inquire(): void;
  /** A rank's calls before or in run `number` differ; `text` is the error if no single call shows the difference. */
  suspect(rank: number, number: number, text: string): void;
}

/** The calls that every rank must make (calls.ts), as the runs use them. */
export interface CallNotes {
  readonly mismatch: HeadraceError | undefined;
  /** The program knows of the mismatch: a promise was rejected with it. */
  told: boolean;
  readonly judge: Judging | undefined;
  /** Number of the program's own calls so far. */
  readonly length: number;
  /** Records the beginning of a run; returns the calls before it. */
  runBegins(number: number, name: string, pruned: boolean): CallCount;
  programEnds(number: number): void;
  countOf(number: number): CallCount;
  runEnds(number: number, agreed: CallCount | undefined): void;
}

/** The runs of this rank (agreement.ts), as the calls use them. */
export interface RunNotes {
  /** The program function of run `number` has begun here and not ended. */
  programIsOpen(number: number): boolean;
  /** The failure of run `number`, as far as this rank knows it. */
  failureIn(number: number): HeadraceError | undefined;
}

/** This rank, its messages, and the other parts. */
export interface RankLinks {
  readonly rank: number;
  readonly size: number;
  readonly device: { readonly wire: Pick<NetworkDevice['wire'], 'write'> };
  readonly calls: CallNotes;
  readonly runs: RunNotes;
  readonly clocks: { measure(): void };
  /** Votes on plays in place of runs (play-votes.ts). */
  readonly votes: { begins(number: number): void; ends(number: number): void };
  /** Set once a rank was lost or made different calls. */
  readonly lostError: HeadraceError | undefined;
  /** A rank's process has ended. */
  readonly isLost: boolean;
  /** This rank waits for another rank. */
  readonly expecting: boolean;
  /** The ranks are out of step. True if a promise of the program rejects because of it. */
  breaksOff(error: HeadraceError): boolean;
  /** A run has failed: reads after it end. */
  failLaterReads(): void;
  /** A failed run is settled: every datum has its owner's value again. */
  beginEra(era: number): void;
  /** Calls before `first` are torn (eras.ts): their transfers end. */
  dropTorn(first: number): void;
}
