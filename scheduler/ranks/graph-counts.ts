// The digest of each run's graph, which rank 0 compares with those of the other ranks: tasks in program order, and the
// transfers of each pair of ranks.

import { Wire } from '../../devices/network/wire.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import type { RunState } from '../engine/run-state.js';
import type { RankBallots, Told } from './ballots.js';
import { mix } from './call-log.js';
import type { Epoch, Epochs } from './epochs.js';
import type { RankLinks } from './links.js';

/** Tasks between two checks of the digest. */
const CHECK_EVERY = 4096;
/** Characters of a class's name that are sent to other ranks. */
const MOST_NAME = 1000;

function countOne(counts: Map<number, number>, rank: number): void {
  counts.set(rank, (counts.get(rank) ?? 0) + 1);
}

function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash | 0;
}

export class GraphCounts {
  private readonly ranks: Pick<RankLinks, 'rank' | 'device'>;
  private readonly epochs: Epochs;
  /** On rank 0. */
  private readonly ballots: Pick<RankBallots, 'compare'> | undefined;
  private readonly classHashes: number[] = [];
  private readonly bits: DataView = new DataView(new ArrayBuffer(8));

  constructor(
    ranks: Pick<RankLinks, 'rank' | 'device'>,
    epochs: Epochs,
    ballots: Pick<RankBallots, 'compare'> | undefined,
  ) {
    this.ranks = ranks;
    this.epochs = epochs;
    this.ballots = ballots;
  }

  /** Adds a task to the digest of its run. */
  count(
    run: RunState,
    cls: TaskClassRow,
    flows: Int32Array,
    params: Float64Array,
    gid: Int32Array,
    target: number,
  ): void {
    const epoch = this.epochs.of(run);
    if (epoch === undefined) return;
    const { graph } = epoch;
    this.classHashes[cls.id] ??= hashText(cls.name);
    let hash = mix(graph.digest, this.classHashes[cls.id] + target);
    for (let i = 0; i < cls.modes.length; i++) hash = mix(hash, gid[flows[i]]);
    for (let i = 0; i < cls.paramNames.length; i++) hash = this.mixNumber(hash, params[i]);
    graph.digest = hash;
    graph.lastClass = cls.name;
    graph.does = undefined;
    if (++graph.tasks % CHECK_EVERY === 0 && !epoch.pruned) this.tell(epoch, false);
  }

  /** Adds what all ranks must do alike, such as a play, to the digest of its run, and tells the digest at once. `text` and `words` say what. */
  does(run: RunState, text: string, words: readonly number[]): void {
    const epoch = this.epochs.of(run);
    if (epoch === undefined) return;
    const { graph } = epoch;
    graph.digest = words.reduce((hash, word) => this.mixNumber(hash, word), graph.digest);
    graph.lastClass = text;
    graph.does = text.slice(0, MOST_NAME);
    graph.tasks++;
    this.tell(epoch, false);
  }

  private mixNumber(hash: number, value: number): number {
    this.bits.setFloat64(0, value);
    return mix(mix(hash, this.bits.getInt32(0)), this.bits.getInt32(4));
  }

  /** A version goes to rank `to` in a run. */
  sent(run: RunState, to: number): void {
    const epoch = this.epochs.of(run);
    if (epoch !== undefined) countOne(epoch.graph.sentTo, to);
  }

  /** A version comes from rank `from` in a run. */
  expected(run: RunState, from: number): void {
    const epoch = this.epochs.of(run);
    if (epoch !== undefined) countOne(epoch.graph.expectedFrom, from);
  }

  /** Tells rank 0 the graph of a run so far; `isSealed`: it is complete. */
  tell({ number, graph, pruned, before, era }: Epoch, isSealed: boolean): void {
    const { ranks } = this;
    const { tasks, digest, lastClass, does, sentTo, expectedFrom } = graph;
    const told: Told = {
      rank: ranks.rank,
      tasks: pruned ? 0 : tasks,
      digest: pruned ? 0 : digest,
      lastClass: lastClass.slice(0, MOST_NAME),
      does,
      sentTo: isSealed ? [...sentTo] : [],
      expectedFrom: isSealed ? [...expectedFrom] : [],
      before,
      era,
    };
    if (this.ballots !== undefined) this.ballots.compare(number, told, isSealed);
    else ranks.device.wire.write(0, Wire.check, [number], JSON.stringify({ ...told, isSealed }));
  }
}
