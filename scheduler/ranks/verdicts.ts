// On rank 0: the verdict on each run, when all ranks have voted. A run without a failure is over at once. Failed runs are
// kept until no other run is open, and are then settled together: that begins a new era on every rank.

import { guards } from '../../devices/guards.js';
import { Wire } from '../../devices/network/wire.js';
import { causeOf, type RankBallots, type Verdict, type Vote } from './ballots.js';
import type { Epochs } from './epochs.js';
import type { RankEras } from './eras.js';
import type { FailedRuns } from './failed-runs.js';
import type { RankLinks } from './links.js';

/** The parts that verdicts use. */
interface VerdictParts {
  readonly ranks: Pick<RankLinks, 'size' | 'device'>;
  readonly epochs: Epochs;
  readonly ballots: Pick<RankBallots, 'vote'>;
  readonly eras: Pick<RankEras, 'isSpoiled'>;
  readonly failures: FailedRuns;
  /** The verdict on run `number`, as every rank takes it; the next era is `era`. */
  readonly heard: (number: number, era: number, verdict: Verdict) => void;
}

export class RankVerdicts {
  private readonly parts: VerdictParts;
  /** Failed runs, until no other run is open. */
  private readonly held: Map<number, Verdict> = new Map();

  constructor(parts: VerdictParts) {
    this.parts = parts;
  }

  /** The last vote brings the verdict. */
  vote(number: number, rank: number, vote: Vote): void {
    const { ballots, epochs, eras, failures } = this.parts;
    const verdict = ballots.vote(number, rank, vote);
    if (verdict === undefined) return;
    const isSpoiled = verdict.cause === undefined && eras.isSpoiled;
    if (isSpoiled) this.held.set(number, { source: 0, cause: causeOf(failures.apart()) });
    else if (verdict.cause === undefined) this.proclaim(number, epochs.era, verdict);
    else this.held.set(number, verdict);
    this.proclaimFailures();
  }

  private proclaimFailures(): void {
    const { held } = this;
    const { epochs } = this.parts;
    if (held.size === 0) return;
    if (guards.failTogether) {
      for (const { number, run } of epochs.values())
        if (run !== undefined && !held.has(number)) return;
    }
    const failures = [...held];
    held.clear();
    const era = epochs.era + 1;
    for (const [number, verdict] of failures) this.proclaim(number, era, verdict);
  }

  private proclaim(number: number, era: number, verdict: Verdict): void {
    const { ranks, heard } = this.parts;
    for (let r = 1; r < ranks.size; r++)
      ranks.device.wire.write(r, Wire.verdict, [number, era], JSON.stringify(verdict));
    heard(number, era, verdict);
  }
}
