// Moves copies between memory spaces: chooses the queue, orders the copy after its source's writer and its
// destination's users, and updates the directory when the copy is over.
//
// The four edges of a copy a -> b (docs/architecture.md, "Edges of a copy"): it follows the event that wrote a
// (read-after-write) and every event that used b (write-after-read, write-after-write); its own event becomes
// the write event of b and a reader event of a. Both copies stay pinned until the end is observed.
// A queue of the destination device drives peer copies.
//
// A failed copy makes its destination invalid, and at once all copies that others under way have made of that
// destination (`doomed`): no task joins them any more. Their own ends are no news: the failure has been reported, and the
// tasks behind them are marked. Runs that begin after the failure are not concerned.

import { TransferReason } from '../../trace/format.js';
import { Status } from '../backend.js';
import { guards } from '../guards.js';
import {
  type Column,
  type DatumId,
  FIRST_QUEUE,
  HOST,
  NO_DATUM,
  NO_QUEUE,
  NO_SPACE,
  type QueueId,
  type SpaceId,
  type TaskId,
} from '../handles.js';
import { resized } from '../resized.js';
import type { Submission } from '../submission.js';
import { CopyEvent, CopyState } from './coherency.js';
import { type Directory, NO_BLOCK, Poison } from './directory.js';
import { afterReaders } from './readers.js';
import type { MemorySpace } from './space.js';
import { roundedBytes } from './zone.js';

/** Not a transfer: a freed block is filled with poison (checked mode). */
const POISON = 255;

/** Bytes moved so far, by kind. */
export interface BytesByKind {
  h2d: number;
  d2h: number;
  d2d: number;
  ipc: number;
  direct: number;
  staged: number;
  inline: number;
}

export function noBytes(): BytesByKind {
  return { h2d: 0, d2h: 0, d2d: 0, ipc: 0, direct: 0, staged: 0, inline: 0 };
}

/** Gets a call for every finished transfer. */
interface TransferObserver {
  transferDone(t: number, queue: QueueId, seq: number, status: number): void;
}

const INITIAL = 256;

function spaceColumn(length: number): Column<Int16Array, SpaceId> {
  return new Int16Array(length) as Column<Int16Array, SpaceId>;
}

export class Transfers {
  readonly bytes: BytesByKind = noBytes();
  /** Bytes into each space from the host or another device, and out of it. */
  readonly bytesIn: Float64Array;
  readonly bytesOut: Float64Array;
  /** Transfers under way. */
  live = 0;
  /** Dirty copies written back to make room. */
  spills = 0;
  observer: TransferObserver | undefined;

  // Per transfer row.
  datum: Column<Int32Array, DatumId> = new Int32Array(INITIAL) as Column<Int32Array, DatumId>;
  source: Column<Int16Array, SpaceId> = spaceColumn(INITIAL);
  destination: Column<Int16Array, SpaceId> = spaceColumn(INITIAL);
  version: Int32Array = new Int32Array(INITIAL);
  reason: Uint8Array = new Uint8Array(INITIAL);
  task: Column<Int32Array, TaskId> = new Int32Array(INITIAL) as Column<Int32Array, TaskId>;
  /** Block being poisoned. */
  offset: Float64Array = new Float64Array(INITIAL);
  issuedAt: Float64Array = new Float64Array(INITIAL);
  /** 1: its source is the copy that a failed transfer should have made, so it carries garbage. */
  private doomed: Uint8Array = new Uint8Array(INITIAL);
  private used = 0;
  private readonly freeRows: number[] = [];

  private readonly directory: Directory;
  private readonly spaces: readonly MemorySpace[];
  private readonly submission: Submission;
  /** queueFor[destination * spaces + source], or NO_QUEUE if the pair has no link. */
  private readonly queueFor: Column<Int16Array, QueueId>;

  constructor(directory: Directory, spaces: readonly MemorySpace[], submission: Submission) {
    this.directory = directory;
    this.spaces = spaces;
    this.submission = submission;
    const n = spaces.length;
    this.bytesIn = new Float64Array(n);
    this.bytesOut = new Float64Array(n);
    this.queueFor = new Int16Array(n * n).fill(NO_QUEUE) as Column<Int16Array, QueueId>;
    const { queues } = submission.backend;
    for (let q = FIRST_QUEUE; q < queues.length; q++) {
      const queue = queues[q];
      if (queue.kind === 'h2d') this.queueFor[queue.space * n] = q;
      else if (queue.kind === 'd2h') this.queueFor[queue.space] = q;
      else if (queue.kind === 'peer') this.queueFor[queue.space * n + queue.peer] = q;
    }
  }

  /** The queue that copies from one space to another, or NO_QUEUE: then the copy goes through the host. */
  queue(destination: SpaceId, source: SpaceId): QueueId {
    return this.queueFor[destination * this.spaces.length + source];
  }

  /** Whether the queue between two spaces has room for one more copy and its waits. */
  canIssue(destination: SpaceId, source: SpaceId): boolean {
    const queue = this.queue(destination, source);
    return this.submission.room(queue) >= this.submission.worstCase(0);
  }

  /**
   * The space from which datum `d` is fetched for space `s`: a peer device whose copy is there, else one whose copy is
   * under way, else the host. -1 when no copy can be reached directly.
   */
  chooseSource(d: DatumId, s: SpaceId): SpaceId {
    const dir = this.directory;
    const base = d * dir.spaces;
    let best: SpaceId = NO_SPACE;
    let bestCost = 1 << 30;
    let mask = dir.validMask[d] & ~(1 << s);
    while (mask !== 0) {
      const from = (31 - Math.clz32(mask)) as SpaceId;
      mask &= ~(1 << from);
      if (this.queue(s, from) === NO_QUEUE) continue;
      const c = base + from;
      const there = this.submission.happened(dir.writeQueue[c], dir.writeSeq[c]);
      const cost = (from === 0 ? 4 : 0) + (there ? 0 : 2);
      if (cost < bestCost) {
        bestCost = cost;
        best = from;
      }
    }
    return best;
  }

  /**
   * Commands the copy of datum `d` from one space to another. The destination has a block and is invalid; the
   * source is not invalid; the queue has room. Afterwards the destination is `arriving`.
   */
  issue(
    d: DatumId,
    destination: SpaceId,
    source: SpaceId,
    reason: number,
    task: TaskId,
    now: number,
  ): void {
    const dir = this.directory;
    const to = d * dir.spaces + destination;
    const from = d * dir.spaces + source;
    if (dir.block[to] === NO_BLOCK)
      throw new Error(`transfer: datum ${d} has no block in space ${destination}`);
    const t = this.newRow();
    this.datum[t] = d;
    this.doomed[t] = 0;
    this.source[t] = source;
    this.destination[t] = destination;
    this.version[t] = dir.version[d];
    this.reason[t] = reason;
    this.task[t] = task;
    this.issuedAt[t] = now;

    const queue = this.queue(destination, source);
    const sub = this.submission;
    dir.apply(d, source, CopyEvent.read);
    dir.apply(d, destination, CopyEvent.fetch);
    sub.begin(queue);
    if (guards.copyReadAfterWrite) sub.after(dir.writeQueue[from], dir.writeSeq[from]);
    if (guards.copyWriteAfterWrite) sub.after(dir.writeQueue[to], dir.writeSeq[to]);
    if (guards.copyWriteAfterRead) afterReaders(sub, dir, to);
    const bytes = dir.bytes[d];
    const seq = sub.copy(t, destination, dir.block[to], source, dir.block[from], bytes);
    if (guards.copyRegistersWrite) dir.setWriter(to, queue, seq);
    if (guards.copyRegistersRead) dir.addReader(from, queue, seq);
    if (guards.copyPins) {
      this.spaces[destination].pin(d);
      this.spaces[source].pin(d);
    }
    if (reason === TransferReason.spill) {
      this.spills++;
      this.spaces[source].arrivingOut += roundedBytes(bytes);
    }
    if (source === 0) this.bytes.h2d += bytes;
    else if (destination === 0) this.bytes.d2h += bytes;
    else this.bytes.d2d += bytes;
    this.bytesIn[destination] += bytes;
    this.bytesOut[source] += bytes;
    this.live++;
  }

  /** Commands the poisoning of a block that was just given up; it is free again when that is over. */
  poison(space: SpaceId, queue: QueueId, offset: number, bytes: number): void {
    const t = this.newRow();
    this.datum[t] = NO_DATUM;
    this.destination[t] = space;
    this.reason[t] = POISON;
    this.offset[t] = offset;
    this.submission.fill(queue, t, offset, bytes, 0xa5);
    this.spaces[space].poisoning++;
    this.live++;
  }

  /** Brings the directory up to date after transfer `t`. */
  finish(t: number, queue: QueueId, seq: number, status: number): void {
    const dir = this.directory;
    const destination = this.destination[t];
    this.live--;
    if (this.reason[t] === POISON) {
      this.spaces[destination].zone.release(this.offset[t]);
      this.spaces[destination].poisoning--;
      this.spaces[destination].wakeLine();
      this.freeRows.push(t);
      return;
    }
    const d = this.datum[t];
    const source = this.source[t];
    const isDoomed = this.doomed[t] === 1;
    if (isDoomed) status = Status.ok;
    this.observer?.transferDone(t, queue, seq, status);
    if (this.reason[t] === TransferReason.spill)
      this.spaces[source].arrivingOut -= roundedBytes(dir.bytes[d]);
    if (status !== Status.ok) {
      this.failed(d, destination, this.version[t]);
    } else if (!isDoomed && dir.version[d] === this.version[t]) {
      dir.apply(d, destination, CopyEvent.arrived);
      // Values rest on the host: once it has the current version, device copies may be dropped freely.
      if (destination === 0 && dir.state[d * dir.spaces] === CopyState.shared)
        this.handOver(d, HOST);
    }
    if (guards.copyPins) {
      this.spaces[destination].unpin(d);
      this.spaces[source].unpin(d);
    }
    this.datum[t] = NO_DATUM;
    this.freeRows.push(t);
  }

  /** Visits the rows of all copies that are under way. */
  forEachLive(visit: (t: number) => void): void {
    for (let t = 0; t < this.used; t++) if (this.datum[t] >= 0) visit(t);
  }

  /** Bytes of the blocks of space `s` that are being poisoned. */
  poisoningBytes(s: SpaceId): number {
    if (this.spaces[s].poisoning === 0) return 0;
    const free = new Set(this.freeRows);
    let bytes = 0;
    for (let t = 0; t < this.used; t++) {
      if (this.reason[t] !== POISON || this.destination[t] !== s || free.has(t)) continue;
      bytes += this.spaces[s].zone.bytesAt(this.offset[t]);
    }
    return bytes;
  }

  /** Makes the copy in space `s` the owner; it must be shared or arriving with the value. */
  handOver(d: DatumId, s: SpaceId): void {
    const dir = this.directory;
    const owner = dir.owner(d);
    if (owner === s) return;
    if (owner >= 0) dir.apply(d, owner, CopyEvent.yieldOwnership);
    dir.apply(d, s, CopyEvent.takeOwnership);
    if (owner >= 0) this.spaces[owner].settle(d);
    this.spaces[s].settle(d);
  }

  /** The copy of version `version` of `d` does not arrive in space `s`, nor in the spaces that copy it from there. */
  private failed(d: DatumId, s: SpaceId, version: number): void {
    const dir = this.directory;
    const c = d * dir.spaces + s;
    // Tasks that counted on it must check again.
    for (const space of this.spaces) space.wakeLine();
    if (dir.version[d] === version && dir.state[c] !== CopyState.invalid) {
      // It was to become the owner, and the copy that it came from may be given up.
      if (dir.state[c] === CopyState.owned) dir.setPoison(d, Poison.transferFailed);
      dir.apply(d, s, CopyEvent.fail);
    }
    for (let t = 0; t < this.used; t++) {
      if (this.datum[t] !== d || this.source[t] !== s || this.version[t] !== version) continue;
      if (this.doomed[t] === 1) continue;
      this.doomed[t] = 1;
      this.failed(d, this.destination[t], version);
    }
  }

  private newRow(): number {
    const row = this.freeRows.pop() ?? this.used++;
    if (row >= this.datum.length) {
      const length = this.datum.length * 2;
      this.datum = resized(this.datum, length);
      this.source = resized(this.source, length);
      this.destination = resized(this.destination, length);
      this.version = resized(this.version, length);
      this.reason = resized(this.reason, length);
      this.task = resized(this.task, length);
      this.doomed = resized(this.doomed, length);
      this.offset = resized(this.offset, length);
      this.issuedAt = resized(this.issuedAt, length);
    }
    return row;
  }
}
