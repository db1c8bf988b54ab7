// The lanes of this rank to others, and who has them. Sends and receives of versions are commands there: the message layer
// carries them out, and queues follow their events (devices/backend.ts, stages/exec-message.ts). Short versions go into the
// message. Long ones are announced, and their receives fetch them. If a rank has GPUs, the receive of a long version gets memory
// where the version is needed, if there is room (stages/comm-in.ts): before its announcement if a lane is free, else after it.
//
// Another receive is commanded when no task before it uses its copy, long before its version comes. Until then it holds host
// memory and a place in a lane. So receives ahead of tasks that were not issued hold only what leaves room for these tasks. Those in
// one lane have one datum, and one block of memory.
//
// A receive with memory may be in line for a lane. If the holder of the last lane waited for that memory, both would wait for
// ever. So the last free lane is taken after the memory, also by a receive before which every task has been issued.
//
// Invariants:
// - a parcel belongs to one movement that is not over;
// - receives ahead leave, whatever blocks they hold, one stretch of host memory for the largest task, and one lane. They hold
//   at most the network's share of host memory, because programs create data meanwhile;
// - the receives ahead that wait for a lane or for that room are held, in program order.

import { findQueues } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import {
  type DatumId,
  HOST,
  NO_DATUM,
  NO_QUEUE,
  type QueueId,
  type TaskId,
} from '../../devices/handles.js';
import { ALIGNMENT } from '../../devices/memory/zone.js';
import { keyOf, laneEra } from '../../devices/network/keys.js';
import { NetOutcome, type NetworkPort } from '../../devices/network/port.js';
import { ReceiveLanes } from '../../devices/network/receive-lanes.js';
import type { NetworkCredits } from '../../stages/comm-in.js';
import type { Parcel, ParcelArrival } from '../../stages/parcel.js';
import { NetworkRole, TaskStage } from '../../stages/task-table.js';
import { INTERNAL_RUN } from '../engine/run-state.js';
import type { RankHost } from './host.js';
import type { Movement } from './movements.js';

/** Of the lanes, one in so many is for sends; at least one, and at most eight. */
const SENDS = 4;
const MOST_SENDS = 8;

/** Whether any rank has memory besides its host's. */
type Ranks = Pick<NetworkPort, 'hostOnly'>;

export class RankLanes {
  private readonly engine: RankHost;
  private readonly credits: NetworkCredits;
  private readonly isInline: (bytes: number) => boolean;
  private readonly port: Ranks;
  private readonly sends: readonly QueueId[];
  private readonly receives: ReceiveLanes;
  /** Parcels that may be used again. A parcel of a send keeps its list, and most sends have one destination. */
  private readonly spareSends: OwnParcel[] = [];
  private readonly spareReceives: OwnParcel[] = [];
  /** Blocks of host memory that receives ahead hold or wait for, and their bytes: one for each of their lanes. */
  private ahead = 0;
  private aheadBytes = 0;
  /** The lane in which the last receive that was asked about may stand behind another one, or NO_QUEUE. */
  private behind: QueueId = NO_QUEUE;

  constructor(
    engine: RankHost,
    credits: NetworkCredits,
    isInline: (bytes: number) => boolean,
    port: Ranks,
  ) {
    this.engine = engine;
    this.credits = credits;
    this.isInline = isInline;
    this.port = port;
    const lanes = findQueues(engine.backend.queues, ({ kind }) => kind === 'lane');
    const sends = Math.min(MOST_SENDS, Math.max(1, Math.floor(lanes.length / SENDS)));
    if (lanes.length <= sends)
      throw new HeadraceError('ERR_INTERNAL', `several ranks need 2 lanes, not ${lanes.length}`);
    this.sends = lanes.slice(0, sends);
    this.receives = new ReceiveLanes(lanes.slice(sends), engine.backend.queues.length);
    engine.x.receiveLanes = this.receives;
  }

  /** Whether the receive of `d` waits for its announcement. */
  awaitsNews(d: DatumId): boolean {
    return !this.port.hostOnly && this.isLong(d);
  }

  /** Whether a version of `d` does not travel in its message. */
  isLong(d: DatumId): boolean {
    return !this.isInline(this.engine.directory.bytes[d]);
  }

  /** Number of a lane, from 0, as the message layer counts. */
  numberOf(lane: QueueId): number {
    return lane - this.sends[0];
  }

  /** The lane for a send: an idle one, else the one with the fewest commands. */
  sendLane(): QueueId {
    const { outstanding } = this.engine.submission;
    let best = this.sends[0];
    for (const lane of this.sends) if (outstanding[lane] < outstanding[best]) best = lane;
    return best;
  }

  /**
   * Whether the receive in `row` may begin, ahead of its version: it gets a lane by `laneAhead`, and then memory. Otherwise it is
   * held, and `next` names it when its turn has come.
   */
  begins(row: number): boolean {
    const { tasks } = this.engine;
    const id = tasks.idOf(row);
    if (this.hasTurn(row)) return true;
    const { held } = this.receives;
    let i = held.length;
    while (i > 0 && ((held[i - 1] - id) | 0) > 0) i--;
    held.splice(i, 0, id);
    return false;
  }

  /**
   * Takes a place in a lane for the receive in `row`, right after `begins`. NO_QUEUE: only the last lane is free, and it takes one after its
   * memory.
   */
  laneAhead(row: number): QueueId {
    const { receives } = this;
    const { tasks } = this.engine;
    const id = tasks.idOf(row);
    const { behind } = this;
    if (behind !== NO_QUEUE) {
      receives.join(behind, id);
      return behind;
    }
    const d = this.datumOf(row);
    this.ahead++;
    this.aheadBytes += this.bytesOf(d);
    if (receives.isOneLeft && guards.lastLane) return NO_QUEUE;
    const lane = receives.free;
    receives.take(lane, id, this.ofRead(row) ? NO_DATUM : d);
    return lane;
  }

  /**
   * A place in a lane for the receive in `row`, which has been granted memory on a device. The caller has asked `hasLaneOnDevice`.
   */
  laneOnDevice(row: number): QueueId {
    const { receives } = this;
    const id = this.engine.tasks.idOf(row);
    const behind = this.laneBehind(row);
    if (behind !== NO_QUEUE) {
      receives.join(behind, id);
      return behind;
    }
    const lane = receives.free;
    receives.take(lane, id, this.datumOf(row));
    return lane;
  }

  /** Whether a receive in `row` with memory on a device finds a lane ahead of its version: such receives leave half of the lanes to others. */
  hasLaneOnDevice(row: number): boolean {
    return this.laneBehind(row) !== NO_QUEUE || this.receives.isHalfFree;
  }

  /** Whether the receive in `row` is for a `read`: it may be withdrawn, so it has its lane for itself. */
  private ofRead(row: number): boolean {
    return this.engine.tasks.run[row] === INTERNAL_RUN;
  }

  /** The lane in which the receive in `row` may stand behind another one, or NO_QUEUE. */
  private laneBehind(row: number): QueueId {
    if (this.ofRead(row)) return NO_QUEUE;
    return this.receives.behind(this.engine.tasks.idOf(row), this.datumOf(row));
  }

  private datumOf(row: number): DatumId {
    const { tasks } = this.engine;
    return tasks.flowDatum[tasks.flowStart[row]];
  }

  /** Any lane for receives. */
  get anyLane(): QueueId {
    return this.receives.all[0];
  }

  /** The receive in `row` is over, or was dropped. `lane`: it has a place there. `isAhead`: it began ahead of its version. */
  ended(row: number, lane: QueueId, isAhead: boolean): void {
    const isLast = lane === NO_QUEUE || this.receives.giveBack(lane, this.engine.tasks.idOf(row));
    if (!isAhead || !isLast) return;
    this.ahead--;
    this.aheadBytes -= this.bytesOf(this.datumOf(row));
  }

  /**
   * Marks the lane at whose end the engine looks for held receives: the middle one of the receives that come before them.
   * So it wakes once for many messages, and no lane waits for a receive behind a held one.
   */
  markLanes(wakes: Uint8Array): void {
    const { receives } = this;
    const first = receives.held.at(0);
    if (receives.heldWithMemory.length > 0) for (const lane of receives.all) wakes[lane] = 1;
    if (first === undefined) return;
    const before = receives.before(first);
    if (before === NO_QUEUE) for (const lane of receives.all) wakes[lane] = 1;
    else wakes[before] = 1;
  }

  /** On how many lists of held receives task `id` stands. */
  waitLists(id: TaskId): number {
    const { held, heldWithMemory } = this.receives;
    return [...held, ...heldWithMemory].filter((each) => each === id).length;
  }

  /** Removes a held receive whose turn has come; returns its row, or -1. */
  next(): number {
    const { held, heldWithMemory } = this.receives;
    const { tasks } = this.engine;
    while (heldWithMemory.length > 0 && (held.length === 0 || guards.pullPasses)) {
      const id = heldWithMemory[0];
      const isOver = !tasks.contains(id) || tasks.stage[id & tasks.mask] !== TaskStage.exec;
      if (!isOver && this.receives.free === NO_QUEUE) return -1;
      heldWithMemory.shift();
      if (!isOver) return id & tasks.mask;
    }
    while (held.length > 0) {
      const id = held[0];
      const row = id & tasks.mask;
      const isOver = !tasks.contains(id) || tasks.stage[row] !== TaskStage.ready;
      if (!isOver && !this.hasTurn(row)) return -1;
      held.shift();
      if (!isOver) return row;
    }
    return -1;
  }

  private bytesOf(d: DatumId): number {
    return this.engine.directory.bytes[d] + ALIGNMENT;
  }

  /** Whether the receive in `row` may begin: every task before it is issued or over, or it leaves these a lane and room. */
  private hasTurn(row: number): boolean {
    const { receives, engine } = this;
    this.behind = this.laneBehind(row);
    const joins = this.behind !== NO_QUEUE;
    if (!joins && receives.free === NO_QUEUE) return false;
    if (!guards.arrivalCredit || engine.arrivals.isReached(engine.tasks.idOf(row))) return true;
    return (
      (joins || !receives.isOneLeft) && this.leavesRoom(this.bytesOf(this.datumOf(row)), joins)
    );
  }

  /**
   * Whether host memory has one stretch for the largest task, wherever the blocks of receives ahead lie, and has that much
   * room now. `isCounted`: the block of `bytes` is among them.
   */
  private leavesRoom(bytes: number, isCounted: boolean): boolean {
    const { zone, reachable } = this.engine.spaces[HOST];
    const { credits } = this;
    const aheadBytes = this.aheadBytes + (isCounted ? 0 : bytes);
    if (aheadBytes > credits.limit[HOST]) return false;
    const floor = credits.floor[HOST];
    const stretches = this.ahead + (isCounted ? 1 : 2);
    if ((zone.capacity - aheadBytes) / stretches < floor) return false;
    return reachable - bytes >= floor;
  }

  /** The parcel of a movement. `arrival`: how its version comes, if that is announced. */
  parcelOf(movement: Movement, arrival: ParcelArrival | undefined): Parcel {
    const { role, d, index, era, gid, origin, key, destinations, apart } = movement;
    const spare = role === NetworkRole.receive ? this.spareReceives : this.spareSends;
    const parcel = spare.pop() ?? newParcel();
    const values = destinations.length + apart.length;
    if (parcel.destinations.length !== values) parcel.destinations = new Array(values).fill(0);
    putPairs(parcel.destinations, 0, gid, destinations);
    putPairs(parcel.destinations, destinations.length, gid, apart);
    if (role === NetworkRole.receive) parcel.kind = 'receive';
    else parcel.kind = this.isLong(d) ? 'offer' : 'send';
    parcel.era = laneEra(era, origin);
    parcel.key = key;
    parcel.number = index;
    parcel.arrival = arrival;
    parcel.apart = destinations.length;
    parcel.hasLane = false;
    parcel.isHeld = false;
    parcel.next = 0;
    parcel.open = 0;
    parcel.outcome = NetOutcome.ok;
    return parcel;
  }

  /** The movement of the parcel is over: another one gets its record. */
  parcelIsOver(parcel: Parcel): void {
    (parcel.kind === 'receive' ? this.spareReceives : this.spareSends).push(parcel as OwnParcel);
  }
}

/** A parcel as this file fills it. */
type OwnParcel = { -readonly [K in keyof Parcel]: Parcel[K] } & { destinations: number[] };

function newParcel(): OwnParcel {
  return {
    kind: 'receive',
    era: 0,
    key: 0,
    number: 0,
    arrival: undefined,
    destinations: [],
    apart: 0,
    hasLane: false,
    isHeld: false,
    next: 0,
    open: 0,
    outcome: NetOutcome.ok,
  };
}

/** Puts pairs (rank, key) at place `at`, for pairs (rank, sequence) of datum `gid`. */
function putPairs(into: number[], at: number, gid: number, pairs: readonly number[]): void {
  for (let i = 0; i < pairs.length; i += 2) {
    into[at + i] = pairs[i];
    into[at + i + 1] = keyOf(gid, pairs[i + 1]);
  }
}
