// What data are on several ranks when failed runs are settled: each is again what its owner has. That is the last version of
// which the owner's program has heard, if it was written and is there; otherwise the datum has no value.
//
// From there on the reference goes on as exactly as before (devices/simulated/oracle.ts).
import { NO_BLOCK } from '../../devices/directory.js';
import type { SerialOracle } from '../../devices/simulated/oracle.js';
import type { SimulatedCase } from './case.js';
import type { RankPlayer } from './rank-player.js';

/** Faults that change nothing but when something happens, or fail one task. */
const HARMLESS = ['kernel', 'slowHost', 'late'];

export class Settlement {
  private readonly c: SimulatedCase;
  private readonly ranks: readonly RankPlayer[];
  private readonly oracle: SerialOracle;
  /** Runs that failed before the last settlement. */
  private settled = 0;

  constructor(c: SimulatedCase, ranks: readonly RankPlayer[], oracle: SerialOracle) {
    this.c = c;
    this.ranks = ranks;
    this.oracle = oracle;
  }

  /** All runs are over on all ranks: looks at what the owners have, if some have failed. */
  look(): void {
    const failed = this.ranks[0].runs.filter((run) => run?.outcome !== '').length;
    if (this.ranks.length === 1 || failed === this.settled) return;
    this.settled = failed;
    const { canTell } = this;
    for (const rank of this.ranks) {
      if (rank.isDead) continue;
      for (const [i, datum] of rank.data.entries())
        if (datum !== undefined && datum.rank === rank.rank)
          this.settle(rank, i, datum.row, canTell);
    }
    if (canTell) this.ranks[0].memory.forgive();
  }

  private get canTell(): boolean {
    const { faults, network } = this.c;
    const all = [...faults, ...(network?.faults ?? [])];
    return all.every(({ kind }) => HARMLESS.includes(kind));
  }

  private settle(rank: RankPlayer, i: number, d: number, canTell: boolean): void {
    const { oracle } = this;
    const { directory: dir } = rank.engine;
    const known = rank.known.get(i);
    // Nobody has written it, or a run that began after the settlement has, elsewhere.
    if (known === undefined || rank.engine.ranks?.plan.data.have[d] === 0) return;
    const isThere = oracle.isGood(known) && oracle.rankOf(known) === rank.rank;
    if (dir.poison[d] !== 0) {
      if (isThere && canTell)
        rank.problems.push(`d${i} is poisoned, but ${oracle.describe(known)} is with its owner`);
      oracle.settleAs(i, 0);
      return;
    }
    const s = dir.owner(d);
    const block = s < 0 ? NO_BLOCK : dir.block[d * dir.spaces + s];
    const found = block === NO_BLOCK ? 0 : rank.memory.contents(rank.rank, s, block, dir.bytes[d]);
    // After lost bytes it is any whole version.
    oracle.settleAs(i, canTell ? known : oracle.isGood(found) ? found : 0);
    if (canTell && (found !== known || !oracle.isGood(known)))
      rank.problems.push(
        `d${i} counts as good with its owner, which knows of ${oracle.describe(known)}, but has ${oracle.describe(found)}`,
      );
  }
}
