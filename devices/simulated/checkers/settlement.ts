// The data on several ranks when failed runs are settled: each has the value of its owner again. That is the last version
// that the owner's program knows, if it was written and is there. Otherwise the datum has no value.
//
// From there on the reference continues as exactly as before (devices/simulated/memory/oracle.ts).
import { AccessMode, TaskStage } from '../../../stages/task-table.js';
import type { DatumId, TaskId } from '../../handles.js';
import { NO_BLOCK } from '../../memory/directory.js';
import type { SimulatedCase } from '../cases/case.js';
import type { RankPlayer } from '../cases/rank-player.js';
import type { SerialOracle } from '../memory/oracle.js';

/** Faults that only change the time of an event, or fail one task. */
const HARMLESS = ['kernel', 'slowHost', 'late'];

export class Settlement {
  private readonly c: SimulatedCase;
  private readonly ranks: readonly RankPlayer[];
  private readonly oracle: SerialOracle;
  /** Runs that failed before the last settlement. */
  private settled = 0;
  /** By rank: the era on which the reference of that rank is. */
  private readonly eras: number[];

  constructor(c: SimulatedCase, ranks: readonly RankPlayer[], oracle: SerialOracle) {
    this.c = c;
    this.ranks = ranks;
    this.oracle = oracle;
    this.eras = ranks.map(() => 0);
  }

  /** All runs are over on all ranks: examines the data of the owners, if some have failed. */
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

  /**
   * Some ranks have settled the failed runs, and others not. A run that begins now fails, but its tasks may run on the
   * ranks that have: there they use the data of the owners.
   */
  lookAhead(): void {
    const { ranks, oracle } = this;
    if (ranks.length === 1) return;
    for (const { rank, isDead, runtime, data, known, engine } of ranks) {
      const era = runtime.peers?.runs.era ?? 0;
      if (isDead || era === this.eras[rank]) continue;
      this.eras[rank] = era;
      for (const [i, datum] of data.entries()) {
        const stamp = known.get(i);
        if (datum === undefined || stamp === undefined || datum.rank !== rank) continue;
        if (engine.directory.poison[datum.row] !== 0 && oracle.rankOf(stamp) !== rank)
          oracle.settleAhead(rank, i, 0);
        else if (oracle.latest(i) !== stamp) oracle.settleAhead(rank, i, stamp);
      }
    }
  }

  private get canTell(): boolean {
    const { faults, network } = this.c;
    const all = [...faults, ...(network?.faults ?? [])];
    return all.every(({ kind }) => HARMLESS.includes(kind));
  }

  private settle(rank: RankPlayer, i: number, d: DatumId, canTell: boolean): void {
    const { oracle } = this;
    const { directory: dir } = rank.engine;
    const known = rank.known.get(i);
    // No rank has written it, or a run that began after the settlement has, elsewhere.
    if (known === undefined || rank.runtime.peers?.plan.data.have[d] === 0) return;
    const isThere = oracle.isGood(known) && oracle.rankOf(known) === rank.rank;
    const writer = stageOfWriter(rank, d);
    if (writer !== TaskStage.free) {
      oracle.settleAs(i, writer === TaskStage.dropped ? 0 : known);
      return;
    }
    if (dir.poison[d] !== 0) {
      if (isThere && canTell)
        rank.problems.push(`d${i} is poisoned, but ${oracle.describe(known)} is with its owner`);
      oracle.settleAs(i, 0);
      return;
    }
    const s = dir.owner(d);
    const block = s < 0 ? NO_BLOCK : dir.block[d * dir.spaces + s];
    const found = block === NO_BLOCK ? 0 : rank.memory.contents(rank.rank, s, block, dir.bytes[d]);
    // After lost bytes any whole version is valid.
    oracle.settleAs(i, canTell ? known : oracle.isGood(found) ? found : 0);
    if (canTell && (found !== known || !oracle.isGood(known)))
      rank.problems.push(
        `d${i} counts as good with its owner, which knows of ${oracle.describe(known)}, but has ${oracle.describe(found)}`,
      );
  }
}

/**
 * The stage of the last task in the table that writes `d` and is not over; `free` without one. A dropped task still waits for
 * users of the datum that came before it: the datum loses its value when these are over. A read, restore or set that the
 * program did not await gives the datum its value later. Every later task comes after both.
 */
function stageOfWriter({ engine }: RankPlayer, d: DatumId): number {
  const { tasks, x } = engine;
  let found: number = TaskStage.free;
  for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
    const row = id & tasks.mask;
    const stage = tasks.stage[row];
    if (stage === TaskStage.free || stage === TaskStage.done || stage === TaskStage.outlived)
      continue;
    const { modes } = x.classes[tasks.classOf[row]];
    const first = tasks.flowStart[row];
    if (modes.some((mode, i) => mode !== AccessMode.read && tasks.flowDatum[first + i] === d))
      found = stage;
  }
  return found;
}
