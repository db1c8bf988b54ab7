// Planned transfers: each send and receive of a version becomes a task on the datum that it moves, in program order.
//
// Invariants:
// - the n-th send of a datum from rank a to rank b matches the n-th receive of it on b from a: both count in program
//   order, so no version numbers travel;
// - a send that the stages do not have yet takes further destinations of the same version;
// - one receive per version and rank serves all consumers on that rank.

import {
  type Column,
  type DatumId,
  HOST,
  type SpaceId,
  type TaskId,
} from '../../devices/handles.js';
import { keyOf, MAX_RANKS, sequenceOfCall } from '../../devices/network/keys.js';
import { AccessMode, ANY_DEVICE, NetworkRole, type TaskClassRow } from '../../stages/task-table.js';
import type { RunState } from '../engine/run-state.js';
import { NOT_SENT, type RankData } from './data.js';
import type { GraphCounts } from './graph-counts.js';
import type { RankHost } from './host.js';
import type { Movement, Movements } from './movements.js';
import type { PullGroup } from './pull-admission.js';

/** The read or restore to which a transfer belongs. */
export interface ReadCall {
  readonly position: number;
  /** The transfer matches by this position, and not by the number of transfers before it. */
  readonly isApart: boolean;
}

export const NO_CALL: ReadCall = { position: -1, isApart: false };

/** The parts that transfers use, and where they are planned. */
interface TransferParts {
  readonly engine: RankHost;
  readonly movements: Movements;
  readonly data: RankData;
  /** Counts the transfers of a run, which are compared with the other ranks. */
  readonly graphs: Pick<GraphCounts, 'sent' | 'expected'>;
  readonly rank: number;
  /** Number of ranks. */
  readonly size: number;
  /** Number of destinations from which on a tree is used. */
  readonly treeFrom: number;
  /** Whether a datum of that many bytes travels in its announcement. */
  readonly isInline: (bytes: number) => boolean;
}

export class PlannedTransfers {
  /** Movements planned so far. */
  readonly figures = { sends: 0, receives: 0 };
  private readonly engine: RankHost;
  private readonly movements: Movements;
  private readonly data: RankData;
  private readonly graphs: Pick<GraphCounts, 'sent' | 'expected'>;
  private readonly rank: number;
  private readonly size: number;
  /** Number of destinations from which on a tree is used. */
  readonly treeFrom: number;
  private readonly isInline: (bytes: number) => boolean;
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

  constructor(parts: TransferParts) {
    this.engine = parts.engine;
    this.movements = parts.movements;
    this.data = parts.data;
    this.graphs = parts.graphs;
    this.rank = parts.rank;
    this.size = parts.size;
    this.treeFrom = parts.treeFrom;
    this.isInline = parts.isInline;
    this.sendClass = this.networkClass('send', AccessMode.read, NetworkRole.send);
    this.receiveClass = this.networkClass('receive', AccessMode.write, NetworkRole.receive);
    this.forwardClass = this.networkClass('forward', AccessMode.read, NetworkRole.forward);
  }

  /** Whether a version goes along a tree if all other ranks get it. */
  get hasTrees(): boolean {
    return this.size - 1 >= this.treeFrom;
  }

  /** How many movements are live. */
  get live(): Pick<Movements, 'live'> {
    return this.movements;
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

  /** The latest version of `d` in program order is written by `rank`. */
  written(d: DatumId, rank: number): void {
    this.data.written(d, rank);
    this.engine.directory.written[d] = 1;
  }

  /** The latest version of `d`, which is here, goes to rank `to`; if `apart`, never along a tree. */
  sendTo(d: DatumId, to: number, run: RunState, priority: number, apart: boolean): void {
    const send = this.planSend(d, to, run, apart);
    if (send !== undefined) this.insert(this.sendClass, send, run, priority, undefined);
  }

  /**
   * The latest version of `d`, which is here, goes to all ranks that do not have it. All sends are counted before the insertion: the
   * era may change in it, and those counted later would be the first ones of the new era on this rank only.
   */
  sendToOthers(d: DatumId, run: RunState): void {
    let send: Movement | undefined;
    for (let i = 1; i < this.size; i++)
      send = this.planSend(d, (this.rank + i) % this.size, run, false) ?? send;
    if (send !== undefined) this.insert(this.sendClass, send, run, 0, undefined);
  }

  /** Counts a send. Returns its movement, unless one that takes more destinations brings the version along. */
  private planSend(d: DatumId, to: number, run: RunState, apart: boolean): Movement | undefined {
    const { data, movements } = this;
    if (!data.markSent(d, to)) return undefined;
    const sequence = next(this.sendCounts, data.gid[d] * MAX_RANKS + to);
    this.graphs.sent(run, to);
    this.figures.sends++;
    const open = data.openSend[d] === NOT_SENT ? undefined : movements.at(data.openSend[d]);
    const isOpen =
      open !== undefined && open.parcel === undefined && open.run === run.slot && open.d === d;
    if (isOpen) {
      movements.addDestination(open, to, sequence, apart);
      return undefined;
    }
    const send = this.newSend(d, run);
    movements.addDestination(send, to, sequence, apart);
    data.openSend[d] = send.index;
    return send;
  }

  private newSend(d: DatumId, run: RunState): Movement {
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
    const { data, movements, engine } = this;
    const origin = data.producer[d];
    const gid = data.gid[d];
    if (!call.isApart) data.have[d] = 1;
    const sequence = call.isApart
      ? sequenceOfCall(call.position)
      : next(this.receiveCounts, gid * MAX_RANKS + origin);
    this.graphs.expected(run, origin);
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
    });
    movements.expect(receive);
    // A tree may require this rank to pass the datum on; the announcement says so. The message layer passes short versions on.
    const mayPassOn = !this.isInline(engine.directory.bytes[d]);
    const isStraight = data.straight[d] === 1;
    const hasForward = pull === undefined && !isStraight && mayPassOn && this.hasTrees;
    // The pass of an insertion may end the receive: it is named before.
    receive.isNamed = hasForward || pull !== undefined;
    if (pull !== undefined) {
      pull.group.members.push(receive);
      pull.group.missing++;
    }
    const after = pull === undefined ? undefined : [pull.gate];
    const task = this.insert(this.receiveClass, receive, run, priority, after);
    if (hasForward) {
      const forward = movements.add({
        role: NetworkRole.forward,
        d,
        gid,
        run: run.slot,
        origin,
        key: receive.key,
        call: NO_CALL.position,
        wanted: HOST,
        receive,
        pull: undefined,
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

  /** The latest version of `d` goes to all ranks; the transfers match by `sequence`. */
  sendToAll(d: DatumId, run: RunState, sequence: number): void {
    const send = this.newSend(d, run);
    for (let i = 1; i < this.size; i++)
      this.movements.addDestination(send, (this.rank + i) % this.size, sequence, false);
    this.figures.sends += this.size - 1;
    this.insert(this.sendClass, send, run, 0, undefined);
  }

  /** The number of the next send of `d` to rank `to`, which is not planned as a movement. */
  skipSend(d: DatumId, to: number): number {
    return next(this.sendCounts, this.data.gid[d] * MAX_RANKS + to);
  }

  /** Transfers are counted from 0 again. */
  beginEra(): void {
    this.sendCounts.clear();
    this.receiveCounts.clear();
  }
}

/** The next number of a counter, from 0. */
function next(counters: Map<number, number>, key: number): number {
  const value = counters.get(key) ?? 0;
  counters.set(key, value + 1);
  return value;
}
