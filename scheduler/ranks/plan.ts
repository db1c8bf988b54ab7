// Planning, in program order: the rank of each task, and the movements that it needs.
//
// A task belongs to the rank that owns the first datum it writes. Inserting a task of another rank costs a send for each
// input whose latest version is here and not there yet; inserting a task of this rank costs a receive for each input
// whose latest version is elsewhere. Both are tasks on the data they move, so the graph's own order keeps versions
// apart: a later writer waits for the send, a reader for the receive (planned-transfers.ts). Reads and restores of the
// program need transfers, too (planned-reads.ts).

import { guards } from '../../devices/guards.js';
import {
  type Column,
  type DatumId,
  FIRST_DATUM,
  FIRST_GPU,
  HOST,
  type SpaceId,
  type TaskId,
} from '../../devices/handles.js';
import { ALIGNMENT } from '../../devices/memory/zone.js';
import { homeOfWritten } from '../../stages/home.js';
import { AccessMode, type TaskClassRow } from '../../stages/task-table.js';
import type { RunState } from '../engine/run-state.js';
import type { TaskInsertion } from '../engine/task-insertion.js';
import { markElsewhere } from '../failure/poison.js';
import { RankData } from './data.js';
import type { GraphCounts } from './graph-counts.js';
import type { RankHost } from './host.js';
import type { Movements } from './movements.js';
import { PlannedReads } from './planned-reads.js';
import { NO_CALL, PlannedTransfers, type ReadCall } from './planned-transfers.js';
import type { PullGroup, RankPulls } from './pull-admission.js';

/** Tasks of other ranks between two passes of the engine; a power of two. */
const PASS_EVERY = 64;

/** The runs of all ranks (agreement.ts), as the plan uses them. */
interface PlannedRuns {
  /** Counts of a run's tasks and transfers, which are compared with the other ranks. */
  readonly graphs: Pick<GraphCounts, 'count' | 'sent' | 'expected'>;
  /** A run has begun in the present era, or no run has failed so far. */
  readonly isUnderWay: boolean;
}

/** The parts that the plan sets in motion. */
interface PlanParts {
  readonly engine: RankHost;
  readonly movements: Movements;
  readonly pulls: RankPulls;
  readonly runs: PlannedRuns;
}

interface PlanOptions {
  readonly rank: number;
  /** Number of ranks. */
  readonly size: number;
  /** Number of destinations from which on a tree is used. */
  readonly treeFrom: number;
  /** Whether a datum of that many bytes travels in its announcement. */
  readonly isInline: (bytes: number) => boolean;
  /** Per space, the bytes of the largest task so far; the plan keeps it up to date. */
  readonly largest: Float64Array;
}

export class RankPlan {
  readonly data: RankData;
  readonly transfers: PlannedTransfers;
  readonly reads: PlannedReads;
  /** The call of the program to which the tasks belong that are planned. */
  call: ReadCall = NO_CALL;
  private readonly engine: RankHost;
  private readonly pulls: RankPulls;
  private readonly runs: PlannedRuns;
  private readonly rank: number;
  private readonly isInline: (bytes: number) => boolean;
  /** Per space, the bytes of the largest task so far. */
  private readonly largest: Float64Array;
  private elsewhere = 0;
  /** Tasks of all ranks that were inserted. */
  count = 0;
  /** Pulled inputs of the task that is about to be inserted. */
  private opened: PullGroup | undefined;

  constructor(
    { engine, movements, pulls, runs }: PlanParts,
    { rank, size, treeFrom, isInline, largest }: PlanOptions,
  ) {
    this.engine = engine;
    this.pulls = pulls;
    this.runs = runs;
    this.rank = rank;
    this.isInline = isInline;
    this.largest = largest;
    const data = new RankData(rank);
    const { graphs } = runs;
    const transfers = new PlannedTransfers({
      ...{ engine, movements, data, graphs },
      ...{ rank, size, treeFrom, isInline },
    });
    this.data = data;
    this.transfers = transfers;
    this.reads = new PlannedReads({ data, transfers, runs, rank, size });
  }

  /** Movements planned so far. */
  get figures(): { readonly sends: number; readonly receives: number } {
    return this.transfers.figures;
  }

  /** Returns true at intervals, for a program that inserts no tasks on this rank. */
  skipsTurn(): boolean {
    this.elsewhere = (this.elsewhere + 1) & (PASS_EVERY - 1);
    return this.elsewhere === 0;
  }

  /** The rank of a task. */
  rankOf(cls: TaskClassRow, flows: Column<Int32Array, DatumId>): number {
    const { modes } = cls;
    const { owner } = this.data;
    for (let i = 0; i < modes.length; i++) if (modes[i] !== AccessMode.read) return owner[flows[i]];
    return modes.length > 0 ? owner[flows[0]] : 0;
  }

  /**
   * Plans the movements of a task of rank `target` that all ranks are about to insert. `writes` follows. Returns true if the task
   * belongs to this rank and must be inserted; `inserted` follows then.
   */
  plan(insertion: TaskInsertion, target: number): boolean {
    const { data } = this;
    const { cls, run, flows, params, priority } = insertion;
    this.runs.graphs.count(run, cls, flows, params, data.gid, target);
    this.count++;
    const { modes } = cls;
    const local = target === this.rank;
    this.opened = undefined;
    let pulled = false;
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.write) continue;
      const d = flows[i];
      if (local) {
        if (data.have[d] === 1 && (guards.receiveOnce || data.producer[d] === this.rank)) continue;
        if (this.isPulled(cls, flows, d)) pulled = true;
        else this.receive(d, insertion);
      } else if (data.producer[d] === this.rank)
        this.transfers.sendTo(d, target, run, priority, this.isPulled(cls, flows, d));
    }
    if (local) {
      const bytes = this.noteSize(cls, flows);
      if (pulled) this.pull(insertion, bytes);
    }
    return local;
  }

  private receive(d: DatumId, { cls, run, flows, priority, device }: TaskInsertion): void {
    const space = this.wantedSpace(cls, flows, device);
    this.transfers.receive(d, run, priority, space, undefined, this.call);
  }

  /**
   * The task planned last is inserted now, on rank `target`. This is not done earlier: if the window has no room, a body may run
   * meanwhile and insert readers of the older version, and this rank may have no such reader.
   */
  writes({ modes }: TaskClassRow, flows: Column<Int32Array, DatumId>, target: number): void {
    for (let i = 0; i < modes.length; i++)
      if (modes[i] !== AccessMode.read) this.transfers.written(flows[i], target);
  }

  /**
   * Whether all flows of a task that read `d` pull it. Data that travel in their announcement need no request. Both ranks
   * find the same.
   */
  private isPulled(
    { pulls, modes }: TaskClassRow,
    flows: Column<Int32Array, DatumId>,
    d: DatumId,
  ): boolean {
    if (pulls === undefined || this.isInline(this.engine.directory.bytes[d])) return false;
    for (let i = 0; i < modes.length; i++)
      if (flows[i] === d && modes[i] !== AccessMode.write && pulls[i] !== 1) return false;
    return true;
  }

  /** The pulled inputs of a task. They are received behind a gate that opens when the task's other inputs are there. */
  private pull(
    { cls, run, flows, priority, device, after: named }: TaskInsertion,
    bytes: number,
  ): void {
    const { dependencies } = this.engine;
    const { have } = this.data;
    const after: TaskId[] = [];
    if (named !== undefined && guards.pullLast) after.push(...named);
    for (let i = 0; i < cls.modes.length; i++) {
      const d = flows[i];
      if (cls.modes[i] !== AccessMode.read) after.push(...dependencies.users(d));
      else if (have[d] === 1) after.push(...dependencies.writers(d));
    }
    const space = this.wantedSpace(cls, flows, device);
    const { group, gate } = this.pulls.open(run, space, bytes, priority, after);
    for (let i = 0; i < cls.modes.length; i++) {
      const d = flows[i];
      if (cls.modes[i] === AccessMode.write || have[d] === 1) continue;
      this.transfers.receive(d, run, priority, space, { group, gate });
    }
    this.opened = group;
  }

  /** The insertion of the task planned last is over, also if the task was not inserted. */
  insertionEnds(): void {
    this.pulls.inserted();
  }

  /** The task planned last was inserted. */
  inserted(run: RunState, priority: number, task: TaskId): void {
    const group = this.opened;
    if (group === undefined) return;
    this.opened = undefined;
    this.pulls.close(group, run, priority, task);
  }

  /** Offers that are granted from now on leave room for the task. Returns the bytes of its data. */
  noteSize(cls: TaskClassRow, flows: Column<Int32Array, DatumId>): number {
    const { largest, engine } = this;
    let bytes = 0;
    for (let i = 0; i < cls.modes.length; i++)
      bytes += engine.directory.bytes[flows[i]] + ALIGNMENT;
    if (bytes > largest[HOST]) largest[HOST] = bytes;
    for (let s = 1; s < largest.length; s++)
      if (cls.kernels[s] >= 0 && bytes > largest[s]) largest[s] = bytes;
    return bytes;
  }

  /** Space on which the consumer will probably run: the home of its first written datum. */
  private wantedSpace(
    cls: TaskClassRow,
    flows: Column<Int32Array, DatumId>,
    device: SpaceId,
  ): SpaceId {
    if (device >= 0) return device;
    const { kernels } = cls;
    let gpu: SpaceId = HOST;
    for (let s = FIRST_GPU; s < kernels.length && gpu === 0; s++) if (kernels[s] >= 0) gpu = s;
    if (gpu === HOST) return HOST;
    const home = homeOfWritten(this.engine.directory, cls.modes, flows, 0);
    return home > 0 && kernels[home] >= 0 ? home : gpu;
  }

  /**
   * Every datum has its owner's value again, and transfers are counted from 0. If the latest version was to come from
   * another rank, the owner's copy is no value: no rank can tell whether it was written, and no rank asks for it.
   */
  beginEra(): void {
    const { directory: dir, tasks } = this.engine;
    for (let d = FIRST_DATUM; d < dir.length; d++) {
      if (dir.live[d] === 0 || !this.data.isBehind(d)) continue;
      markElsewhere(dir, d, ((tasks.next - 1) | 0) as TaskId);
    }
    this.transfers.beginEra();
    this.data.reset();
  }
}
