// Planning, in program order: the rank of each task, and the movements that it needs.
//
// A task belongs to the rank that owns the first datum it writes. Inserting a task of another rank costs a send for each
// input whose latest version is here and not there yet; inserting a task of this rank costs a receive for each input
// whose latest version is elsewhere. Both are tasks on the data they move, so the graph's own order keeps versions
// apart: a later writer waits for the send, a reader for the receive.
//
// Invariants:
// - the n-th send of a datum from rank a to rank b matches the n-th receive of it on b from a: both count in program
//   order, so no version numbers travel;
// - reads before the first run of an era leave no trace, and their transfers match by the position of the call: some ranks
//   may have made them in the era before (eras.ts). At that time every datum is with its owner;
// - a send that has not started takes further destinations of the same version;
// - one receive per version and rank serves all consumers on that rank.

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
import { keyOf, MAX_RANKS, sequenceOfCall } from '../../devices/network/announcement.js';
import { homeOfWritten } from '../../stages/home.js';
import { AccessMode, ANY_DEVICE, NetworkRole, type TaskClassRow } from '../../stages/task-table.js';
import type { RunState } from '../engine/run-state.js';
import type { TaskInsertion } from '../engine/task-insertion.js';
import { markUnwritten } from '../failure/poison.js';
import { NO_GID, NOT_SENT, RankData } from './data.js';
import type { RankHost } from './host.js';
import type { Movement, Movements } from './movements.js';
import type { PullGroup, RankPulls } from './pull-admission.js';

/** Tasks of other ranks between two passes of the engine; a power of two. */
const PASS_EVERY = 64;
/** Limit for the bytes of a block in addition to its datum's bytes. */
const BLOCK_SLACK = 512;

/** Counts of a run's tasks and transfers, which are compared with the other ranks (agreement.ts). */
interface RunCounts {
  count(
    run: RunState,
    cls: TaskClassRow,
    flows: Column<Int32Array, DatumId>,
    params: Float64Array,
    gid: Int32Array,
    target: number,
  ): void;
  sent(run: RunState, to: number): void;
  expected(run: RunState, from: number): void;
  /** A run has begun in the present era, or no run has failed so far. */
  readonly isUnderWay: boolean;
}

/** The parts that the plan sets in motion. */
interface PlanParts {
  readonly engine: RankHost;
  readonly movements: Movements;
  readonly pulls: RankPulls;
  readonly runs: RunCounts;
}

/** The read or restore to which a transfer belongs. */
interface ReadCall {
  readonly position: number;
  /** The transfer matches by this position, and not by the number of transfers before it. */
  readonly isApart: boolean;
}

const NO_CALL: ReadCall = { position: -1, isApart: false };

interface PlanOptions {
  readonly rank: number;
  /** Number of ranks. */
  readonly size: number;
  /** Number of destinations from which on a tree is used. */
  readonly treeFrom: number;
  /** Whether a datum of that many bytes travels in its announcement. */
  readonly isInline: (bytes: number) => boolean;
  /** Whether a version travels on lanes: a datum, the slot of its run, and the position of its call or -1. */
  readonly onLane: (d: DatumId, run: number, call: number) => boolean;
  /** Per space, the bytes of the largest task so far; the plan keeps it up to date. */
  readonly largest: Float64Array;
}

export class RankPlan {
  readonly data: RankData;
  /** Movements planned so far. */
  readonly figures = { sends: 0, receives: 0 };
  private readonly engine: RankHost;
  private readonly movements: Movements;
  private readonly pulls: RankPulls;
  private readonly runs: RunCounts;
  private readonly rank: number;
  private readonly size: number;
  private readonly treeFrom: number;
  private readonly isInline: (bytes: number) => boolean;
  private readonly onLane: (d: DatumId, run: number, call: number) => boolean;
  /** Per space, the bytes of the largest task so far. */
  private readonly largest: Float64Array;
  private readonly sendClass: TaskClassRow;
  private readonly receiveClass: TaskClassRow;
  private readonly forwardClass: TaskClassRow;
  private readonly sendCounts: Map<number, number> = new Map();
  private readonly receiveCounts: Map<number, number> = new Map();
  private readonly oneFlow: Column<Int32Array, DatumId> = new Int32Array(1) as Column<
    Int32Array,
    DatumId
  >;
  private readonly oneParam: Float64Array = new Float64Array(1);
  private elsewhere = 0;
  /** Pulled inputs of the task that is about to be inserted. */
  private opened: PullGroup | undefined;

  constructor(
    { engine, movements, pulls, runs }: PlanParts,
    { rank, size, treeFrom, isInline, onLane, largest }: PlanOptions,
  ) {
    this.engine = engine;
    this.movements = movements;
    this.pulls = pulls;
    this.runs = runs;
    this.rank = rank;
    this.size = size;
    this.treeFrom = treeFrom;
    this.isInline = isInline;
    this.onLane = onLane;
    this.largest = largest;
    this.data = new RankData(rank);
    this.sendClass = this.networkClass('send', AccessMode.read, NetworkRole.send);
    this.receiveClass = this.networkClass('receive', AccessMode.write, NetworkRole.receive);
    this.forwardClass = this.networkClass('forward', AccessMode.read, NetworkRole.forward);
  }

  private networkClass(name: string, mode: number, network: number): TaskClassRow {
    const { engine } = this;
    const row: TaskClassRow = {
      id: engine.x.classes.length,
      name,
      flowNames: ['datum'],
      paramNames: ['movement'],
      modes: [mode],
      kernels: new Int32Array(engine.backend.spaces.length).fill(-1),
      body: () => {},
      explain: undefined,
      failureCode: undefined,
      network,
    };
    engine.x.classes.push(row);
    return row;
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
   * Plans the movements of a task of rank `target` that all ranks are about to insert. Returns true if the task belongs
   * to this rank and must be inserted; `inserted` follows then.
   */
  plan(insertion: TaskInsertion, target: number): boolean {
    const { data } = this;
    const { cls, run, flows, params, priority, device } = insertion;
    this.runs.count(run, cls, flows, params, data.gid, target);
    const { modes } = cls;
    const local = target === this.rank;
    this.opened = undefined;
    let pulled = false;
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.write) continue;
      const d = flows[i];
      if (local) {
        if (data.have[d] === 1 && (guards.receiveOnce || data.producer[d] === this.rank)) continue;
        if (this.isPulled(cls, i, d)) pulled = true;
        else this.receive(d, run, priority, this.wantedSpace(cls, flows, device), undefined);
      } else if (data.producer[d] === this.rank)
        this.sendTo(d, target, run, priority, this.isPulled(cls, i, d));
    }
    if (local) {
      const bytes = this.noteSize(cls, flows);
      if (pulled) this.pull(cls, run, flows, priority, device, bytes);
    }
    if (!local) this.writes(cls, flows, target);
    return local;
  }

  /**
   * The task planned last is inserted now. This is not done earlier: if the window has no room, a body may run meanwhile
   * and insert readers of the older version, and this rank may have no such reader.
   */
  writes({ modes }: TaskClassRow, flows: Column<Int32Array, DatumId>, target: number): void {
    for (let i = 0; i < modes.length; i++)
      if (modes[i] !== AccessMode.read) this.written(flows[i], target);
  }

  /** Data that travel in their announcement need no request. */
  private isPulled({ pulls }: TaskClassRow, flow: number, d: DatumId): boolean {
    return pulls?.[flow] === 1 && !this.isInline(this.engine.directory.bytes[d]);
  }

  /** The pulled inputs of a task. They are received behind a gate that opens when the task's other inputs are there. */
  private pull(
    cls: TaskClassRow,
    run: RunState,
    flows: Column<Int32Array, DatumId>,
    priority: number,
    device: SpaceId,
    bytes: number,
  ): void {
    const { dependencies } = this.engine;
    const { have } = this.data;
    const after: TaskId[] = [];
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
      this.receive(d, run, priority, space, { group, gate });
    }
    this.opened = group;
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
      bytes += engine.directory.bytes[flows[i]] + BLOCK_SLACK;
    if (bytes > largest[HOST]) largest[HOST] = bytes;
    for (let s = 1; s < largest.length; s++)
      if (cls.kernels[s] >= 0 && bytes > largest[s]) largest[s] = bytes;
    return bytes;
  }

  /** The latest version of `d` in program order is written by `rank`. */
  written(d: DatumId, rank: number): void {
    this.data.written(d, rank);
    this.engine.directory.written[d] = 1;
  }

  /** The latest version of `d` is here, or will be here without another rank's help. */
  isHere(d: DatumId): boolean {
    return this.data.producer[d] === this.rank || this.data.have[d] === 1;
  }

  /** All ranks want the latest version of `d`, in the call at position `call`. */
  planRead(d: DatumId, run: RunState, call: number): void {
    const { data } = this;
    if (data.gid[d] === NO_GID) return;
    const isApart = !this.runs.isUnderWay && guards.tornReads;
    if (data.producer[d] !== this.rank) {
      if (isApart || data.have[d] === 0)
        this.receive(d, run, 0, HOST, undefined, { position: call, isApart });
    } else if (isApart) this.sendToAll(d, run, sequenceOfCall(call));
    else
      for (let i = 1; i < this.size; i++)
        this.sendTo(d, (this.rank + i) % this.size, run, 0, false);
  }

  private sendToAll(d: DatumId, run: RunState, sequence: number): void {
    const send = this.newSend(d, run, 0);
    for (let i = 1; i < this.size; i++)
      send.destinations.push((this.rank + i) % this.size, sequence);
    this.figures.sends += this.size - 1;
    this.insert(this.sendClass, send, run, 0, undefined);
  }

  /** The owner of `d` takes the latest version, from any rank, as its value again. */
  planRestore(d: DatumId, run: RunState, call: number): void {
    const { data } = this;
    const owner = data.owner[d];
    if (data.gid[d] !== NO_GID) {
      if (this.rank !== owner) {
        if (data.producer[d] === this.rank) this.sendTo(d, owner, run, 0, false);
      } else if (data.have[d] === 0)
        this.receive(d, run, 0, HOST, undefined, { position: call, isApart: false });
    }
    this.written(d, owner);
  }

  /** All ranks want `d`, which belongs to this rank and has no value. Ranks that cannot know this get a message. */
  refuseRead(
    d: DatumId,
    call: number,
    poison: (gid: number, destinations: readonly number[]) => void,
  ): void {
    const gid = this.data.gid[d];
    const isApart = !this.runs.isUnderWay && guards.tornReads;
    for (let to = 0; to < this.size; to++) {
      if (to === this.rank) continue;
      const sequence = isApart ? sequenceOfCall(call) : next(this.sendCounts, gid * MAX_RANKS + to);
      poison(gid, [to, sequence]);
    }
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

  /** The latest version of `d`, which is here, goes to rank `to`. */
  sendTo(d: DatumId, to: number, run: RunState, priority: number, apart: boolean): void {
    const { data, movements } = this;
    if (!data.markSent(d, to)) return;
    const sequence = next(this.sendCounts, data.gid[d] * MAX_RANKS + to);
    this.runs.sent(run, to);
    this.figures.sends++;
    const open = data.openSend[d] === NOT_SENT ? undefined : movements.at(data.openSend[d]);
    if (open !== undefined && !open.started && open.run === run.slot && open.d === d) {
      (apart ? open.apart : open.destinations).push(to, sequence);
      return;
    }
    const send = this.newSend(d, run);
    (apart ? send.apart : send.destinations).push(to, sequence);
    data.openSend[d] = send.index;
    this.insert(this.sendClass, send, run, priority, undefined);
  }

  private newSend(d: DatumId, run: RunState, call: number = NO_CALL.position): Movement {
    return this.movements.add({
      role: NetworkRole.send,
      d,
      gid: this.data.gid[d],
      run: run.slot,
      origin: this.rank,
      key: 0,
      call: NO_CALL.position,
      wanted: HOST,
      receive: undefined,
      pull: undefined,
      onLane: this.onLane(d, run.slot, call),
    });
  }

  /** The latest version of `d` comes from elsewhere; returns the task that receives it. */
  receive(
    d: DatumId,
    run: RunState,
    priority: number,
    wanted: SpaceId,
    pull: { readonly group: PullGroup; readonly gate: TaskId } | undefined,
    call: ReadCall = NO_CALL,
  ): TaskId {
    const { data, movements } = this;
    const origin = data.producer[d];
    const gid = data.gid[d];
    if (!call.isApart) data.have[d] = 1;
    const sequence = call.isApart
      ? sequenceOfCall(call.position)
      : next(this.receiveCounts, gid * MAX_RANKS + origin);
    this.runs.expected(run, origin);
    this.figures.receives++;
    const receive = movements.add({
      role: NetworkRole.receive,
      d,
      gid,
      run: run.slot,
      origin,
      key: keyOf(gid, sequence),
      call: call.position,
      wanted,
      receive: undefined,
      pull: pull?.group,
      onLane: this.onLane(d, run.slot, call.position),
    });
    movements.expect(receive);
    if (pull !== undefined) {
      pull.group.members.push(receive);
      pull.group.missing++;
    }
    const after = pull === undefined ? undefined : [pull.gate];
    const task = this.insert(this.receiveClass, receive, run, priority, after);
    // A tree may require this rank to pass the datum on; the announcement says so.
    if (pull === undefined && !receive.onLane && this.size - 1 >= this.treeFrom) {
      const forward = movements.add({
        role: NetworkRole.forward,
        d,
        gid,
        run: run.slot,
        origin,
        key: 0,
        call: NO_CALL.position,
        wanted: HOST,
        receive,
        pull: undefined,
        onLane: false,
      });
      this.insert(this.forwardClass, forward, run, priority, undefined);
    }
    return task;
  }

  private insert(
    cls: TaskClassRow,
    movement: Movement,
    run: RunState,
    priority: number,
    after: readonly TaskId[] | undefined,
  ): TaskId {
    const { oneFlow, oneParam, engine } = this;
    engine.reserveRow(cls);
    oneFlow[0] = movement.d;
    oneParam[0] = movement.index;
    // The consumer's class defines the written data; a receive is not a write of the program.
    run.movements++;
    return engine.insert({
      cls,
      run,
      flows: oneFlow,
      params: oneParam,
      priority,
      device: ANY_DEVICE,
      after,
    });
  }

  /**
   * Every datum has its owner's value again, and transfers are counted from 0. If the latest version was to come from
   * another rank, the owner's copy is no value: no rank can tell whether it was written, and no rank asks for it.
   */
  beginEra(): void {
    const { directory: dir, tasks } = this.engine;
    for (let d = FIRST_DATUM; d < dir.length; d++) {
      if (dir.live[d] === 0 || !this.data.isBehind(d)) continue;
      markUnwritten(dir, d, ((tasks.next - 1) | 0) as TaskId);
    }
    this.sendCounts.clear();
    this.receiveCounts.clear();
    this.data.reset();
  }
}

/** The next number of a counter, from 0. */
function next(counters: Map<number, number>, key: number): number {
  const value = counters.get(key) ?? 0;
  counters.set(key, value + 1);
  return value;
}
