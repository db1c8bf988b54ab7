// Planned reads and restores: all ranks want the latest version of a datum, or its owner does.
//
// Invariant: reads before the first run of an era leave no trace, and their transfers match by the position of the call:
// some ranks may have made them in the era before (eras.ts). At that time every datum is with its owner.

import { guards } from '../../devices/guards.js';
import { type DatumId, HOST } from '../../devices/handles.js';
import { sequenceOfCall } from '../../devices/network/keys.js';
import type { RunState } from '../engine/run-state.js';
import { NO_GID, type RankData } from './data.js';
import type { PlannedTransfers } from './planned-transfers.js';

/** The parts that reads use. */
interface ReadParts {
  readonly data: RankData;
  readonly transfers: PlannedTransfers;
  readonly runs: {
    /** A run has begun in the present era, or no run has failed so far. */
    readonly isUnderWay: boolean;
  };
  readonly rank: number;
  /** Number of ranks. */
  readonly size: number;
}

export class PlannedReads {
  private readonly data: RankData;
  private readonly transfers: PlannedTransfers;
  private readonly runs: ReadParts['runs'];
  private readonly rank: number;
  private readonly size: number;

  constructor({ data, transfers, runs, rank, size }: ReadParts) {
    this.data = data;
    this.transfers = transfers;
    this.runs = runs;
    this.rank = rank;
    this.size = size;
  }

  /** All ranks want the latest version of `d`, in the call at position `call`. */
  read(d: DatumId, run: RunState, call: number): void {
    const { data } = this;
    if (data.gid[d] === NO_GID) return;
    const isApart = !this.runs.isUnderWay && guards.tornReads;
    if (data.producer[d] !== this.rank) {
      if (isApart || data.have[d] === 0)
        this.transfers.receive(d, run, 0, HOST, undefined, { position: call, isApart });
    } else if (isApart) this.transfers.sendToAll(d, run, sequenceOfCall(call));
    else this.transfers.sendToOthers(d, run);
  }

  /** The owner of `d` takes the latest version, from any rank, as its value again. */
  restore(d: DatumId, run: RunState, call: number): void {
    const { data } = this;
    const owner = data.owner[d];
    if (data.gid[d] !== NO_GID) {
      if (this.rank !== owner) {
        if (data.producer[d] === this.rank) this.transfers.sendTo(d, owner, run, 0, false);
      } else if (data.have[d] === 0)
        this.transfers.receive(d, run, 0, HOST, undefined, { position: call, isApart: false });
    }
    this.transfers.written(d, owner);
  }

  /** All ranks want `d`, which belongs to this rank and has no value. Ranks that cannot know this get a message. */
  refuse(
    d: DatumId,
    call: number,
    poison: (gid: number, destinations: readonly number[]) => void,
  ): void {
    const gid = this.data.gid[d];
    const isApart = !this.runs.isUnderWay && guards.tornReads;
    for (let to = 0; to < this.size; to++) {
      if (to === this.rank) continue;
      const sequence = isApart ? sequenceOfCall(call) : this.transfers.skipSend(d, to);
      poison(gid, [to, sequence]);
    }
  }
}
