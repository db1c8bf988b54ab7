// The coherency directory: the copies of every datum in every memory space, their states, their users, and the events
// after which their bytes may be read or overwritten. Structure of arrays; the address of a copy is
// datum * spaces + space, so no code ever searches.
//
// Invariants:
//   - `block[c]` is -1 or the offset of memory that belongs to this copy alone;
//   - a copy whose `pins` is not zero keeps its block: a command that is not seen complete uses it;
//   - `writeQueue/writeSeq[c]` is the event after which the bytes are those of the copy's state;
//   - `readerQueue/readerSeq[c]` and, for further queues, the list `readersHead[c]` hold per queue the latest event
//     of a reader issued since the last write: a command that overwrites the block waits for all of them
//     (write-after-read). Only one queue reads most copies, so the first queue has its own columns;
//   - `validMask[d]` has bit s set exactly when the copy in space s is not invalid.
import {
  type Column,
  type DatumId,
  FIRST_DATUM,
  HOST,
  NO_QUEUE,
  NO_SPACE,
  type QueueId,
  type SpaceId,
  type TaskId,
} from '../handles.js';
import { NodePool } from '../node-pool.js';
import { resized } from '../resized.js';
import { type CopyEvent, CopyState, ILLEGAL, nextState } from './coherency.js';

export const NO_BLOCK = -1;
/** No device was advised for a datum. */
export const NO_HOME: SpaceId = NO_SPACE;
const INITIAL_ROWS = 256;

/** The reasons why a datum has no readable value. */
export const Poison = {
  /** It has a value, or will have one when its writers ran. */
  none: 0,
  /** A task that wrote it failed half-way. */
  writerFailed: 1,
  /** The task that should have written it was cancelled, and no older value is left. */
  writerCancelled: 2,
  /** A transfer of its only copy failed. */
  transferFailed: 3,
  /** The same as `writerCancelled`, but no byte was changed: the bytes are those of the value from before. */
  outdated: 4,
  /** What it should have taken over from a part or its whole has no value there; the rest of its elements are good. */
  notTaken: 5,
} as const;

/** The name of a datum in error messages and traces. */
export interface DatumInfo {
  readonly name: string;
  /** Of a part, and of a datum that has parts. */
  readonly view?: unknown;
  /** Tasks before this one may have left a value that is older than that of a part of it (scheduler/program/parts/ended-parts.ts). */
  partsUntil?: TaskId | undefined;
  /** Why the task `by`, which should have copied elements into it, did not; `by` as in `poisonedBy`. */
  loss?: { readonly by: number; readonly cause: unknown } | undefined;
}

/** A mark that no task in the window has made. */
export interface Marked {
  readonly by: TaskId;
  readonly before: number;
  /** The last task before the mark that decided on `before`. */
  readonly decidedBy: number;
}

function queueColumn(length: number): Column<Int32Array, QueueId> {
  return new Int32Array(length).fill(NO_QUEUE) as Column<Int32Array, QueueId>;
}

export class Directory {
  readonly spaces: number;
  /** Event nodes of readers: value = queue, extra = sequence number. */
  readonly readers: NodePool<QueueId> = new NodePool<QueueId>();

  // Per datum.
  bytes: Float64Array = new Float64Array(INITIAL_ROWS);
  validMask: Int32Array = new Int32Array(INITIAL_ROWS);
  version: Int32Array = new Int32Array(INITIAL_ROWS);
  /** Device advised for tasks that write the datum, or NO_HOME. */
  home: Column<Int32Array, SpaceId> = new Int32Array(INITIAL_ROWS) as Column<Int32Array, SpaceId>;
  poison: Uint8Array = new Uint8Array(INITIAL_ROWS);
  /** Last task in program order that decided on `poison` (scheduler/failure/poison.ts). */
  poisonedBy: Int32Array = new Int32Array(INITIAL_ROWS);
  /**
   * By datum that was marked behind task `by`: its poison from before, for that task and earlier ones that wait. What begins or
   * ends among these decides on that one. There is no entry any more once `poison` has changed.
   */
  readonly marked: Map<DatumId, Marked> = new Map();
  /** 1 once a task that writes the datum was inserted, or if the datum was created with a value. */
  written: Uint8Array = new Uint8Array(INITIAL_ROWS);
  live: Uint8Array = new Uint8Array(INITIAL_ROWS);
  /** 1 once the trace has the name of the datum. */
  described: Uint8Array = new Uint8Array(INITIAL_ROWS);
  readonly info: (DatumInfo | undefined)[] = [];

  // Per copy.
  state: Uint8Array;
  pins: Int32Array;
  block: Float64Array;
  writeQueue: Column<Int32Array, QueueId>;
  writeSeq: Int32Array;
  readerQueue: Column<Int32Array, QueueId>;
  readerSeq: Int32Array;
  readersHead: Int32Array;

  /** Bytes of the largest datum so far. */
  largest = 0;
  /** Data whose `poison` is not none. */
  poisonedData = 0;
  private rows = 0;
  private readonly freeRows: DatumId[] = [];

  constructor(spaces: number) {
    this.spaces = spaces;
    this.state = new Uint8Array(INITIAL_ROWS * spaces);
    this.pins = new Int32Array(INITIAL_ROWS * spaces);
    this.block = new Float64Array(INITIAL_ROWS * spaces).fill(NO_BLOCK);
    this.writeQueue = queueColumn(INITIAL_ROWS * spaces);
    this.writeSeq = new Int32Array(INITIAL_ROWS * spaces);
    this.readerQueue = queueColumn(INITIAL_ROWS * spaces);
    this.readerSeq = new Int32Array(INITIAL_ROWS * spaces);
    this.readersHead = new Int32Array(INITIAL_ROWS * spaces).fill(-1);
  }

  /** Data rows ever used; rows that are not live may lie below. */
  get length(): number {
    return this.rows;
  }

  /** Adds a datum without any copy; returns its row. */
  add(bytes: number, info: DatumInfo): DatumId {
    const d = this.freeRows.pop() ?? (this.rows++ as DatumId);
    if (d >= this.bytes.length) this.growTo(this.bytes.length * 2);
    this.bytes[d] = bytes;
    if (bytes > this.largest) this.largest = bytes;
    this.validMask[d] = 0;
    this.version[d] = 0;
    this.home[d] = NO_HOME;
    this.poison[d] = Poison.none;
    this.written[d] = 0;
    this.live[d] = 1;
    this.described[d] = 0;
    this.info[d] = info;
    return d;
  }

  /** Forgets a datum. Its copies must hold no block and no pin. */
  remove(d: DatumId): void {
    for (let s = HOST; s < this.spaces; s++) {
      const c = d * this.spaces + s;
      if (this.block[c] !== NO_BLOCK || this.pins[c] !== 0) {
        throw new Error(`directory: datum ${d} still has memory in space ${s}`);
      }
      this.setState(d, s, CopyState.invalid);
      this.writeQueue[c] = NO_QUEUE;
      this.forgetReaders(c);
    }
    this.setPoison(d, Poison.none);
    this.live[d] = 0;
    this.info[d] = undefined;
    this.freeRows.push(d);
  }

  /** Applies a coherency event to the copy of `d` in space `s`. Throws on an illegal one: that is a defect of Headrace. */
  apply(d: DatumId, s: SpaceId, event: CopyEvent): void {
    const next = nextState(this.state[d * this.spaces + s], event);
    if (next === ILLEGAL) this.refuse(d, s, event);
    this.setState(d, s, next);
  }

  private refuse(d: DatumId, s: SpaceId, event: CopyEvent): never {
    throw new Error(
      `coherency: event ${event} is illegal for datum '${this.info[d]?.name}' in space ${s}, state ${this.state[d * this.spaces + s]}`,
    );
  }

  /** Space of the copy that keeps the value, or -1 when there is none. */
  owner(d: DatumId): SpaceId {
    let mask = this.validMask[d];
    while (mask !== 0) {
      const s = (31 - Math.clz32(mask)) as SpaceId;
      if (this.state[d * this.spaces + s] === CopyState.owned) return s;
      mask &= ~(1 << s);
    }
    return NO_SPACE;
  }

  /** Marks a datum as without a usable value, or (Poison.none) as good again. */
  setPoison(d: DatumId, poison: number): void {
    if ((this.poison[d] === Poison.none) !== (poison === Poison.none)) {
      this.poisonedData += poison === Poison.none ? -1 : 1;
    }
    this.poison[d] = poison;
    if (this.marked.size > 0) this.marked.delete(d);
  }

  /** Records that `queue` reads copy `c` until its record `seq` is complete. */
  addReader(c: number, queue: QueueId, seq: number): void {
    const first = this.readerQueue[c];
    if (first === queue || first === NO_QUEUE) {
      this.readerQueue[c] = queue;
      this.readerSeq[c] = seq;
      return;
    }
    const head = this.readersHead[c];
    const pool = this.readers;
    for (let n = head; n >= 0; n = pool.next[n]) {
      if (pool.value[n] === queue) {
        pool.extra[n] = seq;
        return;
      }
    }
    this.readersHead[c] = pool.push(head, queue, seq);
  }

  /** Records that the bytes of copy `c` are written by record `seq` of `queue`; forgets earlier readers. */
  setWriter(c: number, queue: QueueId, seq: number): void {
    this.writeQueue[c] = queue;
    this.writeSeq[c] = seq;
    this.forgetReaders(c);
  }

  /** No command reads copy `c` any more, or its next user has been ordered after its readers. */
  forgetReaders(c: number): void {
    this.readerQueue[c] = NO_QUEUE;
    if (this.readersHead[c] >= 0) this.readersHead[c] = this.readers.freeList(this.readersHead[c]);
  }

  /** Forgets every event for which `happened` is true; linear in the number of copies. */
  forgetHappened(happened: (queue: QueueId, seq: number) => boolean): void {
    const pool = this.readers;
    for (let c = this.rows * this.spaces - 1; c >= 0; c--) {
      if (happened(this.writeQueue[c], this.writeSeq[c])) this.writeQueue[c] = NO_QUEUE;
      if (happened(this.readerQueue[c], this.readerSeq[c])) this.readerQueue[c] = NO_QUEUE;
      let kept = -1;
      for (let n = this.readersHead[c]; n >= 0; n = pool.free(n)) {
        if (!happened(pool.value[n], pool.extra[n]))
          kept = pool.push(kept, pool.value[n], pool.extra[n]);
      }
      // The list is looked at behind a first reader only.
      if (kept >= 0 && this.readerQueue[c] === NO_QUEUE) {
        this.readerQueue[c] = pool.value[kept] as QueueId;
        this.readerSeq[c] = pool.extra[kept];
        kept = pool.free(kept);
      }
      this.readersHead[c] = kept;
    }
  }

  /** Checks every invariant that involves only the directory; for tests. */
  validate(): void {
    for (let d = FIRST_DATUM; d < this.rows; d++) {
      if (this.live[d] === 0) continue;
      let owners = 0;
      let valid = 0;
      for (let s = HOST; s < this.spaces; s++) {
        const c = d * this.spaces + s;
        const st = this.state[c];
        if (st === CopyState.owned) owners++;
        if (st !== CopyState.invalid) {
          valid++;
          if (this.block[c] === NO_BLOCK)
            throw new Error(`datum ${d}: valid copy without memory in space ${s}`);
        }
        const bit = (this.validMask[d] >> s) & 1;
        if (bit !== (st === CopyState.invalid ? 0 : 1))
          throw new Error(`datum ${d}: validMask is wrong`);
        if (this.pins[c] < 0) throw new Error(`datum ${d}: negative pins in space ${s}`);
        if (this.pins[c] > 0 && this.block[c] === NO_BLOCK) {
          throw new Error(`datum ${d}: pinned without memory in space ${s}`);
        }
      }
      if (valid > 0 && owners !== 1)
        throw new Error(`datum ${d}: ${owners} owners of ${valid} copies`);
    }
  }

  private setState(d: DatumId, s: SpaceId, state: number): void {
    this.state[d * this.spaces + s] = state;
    if (state === CopyState.invalid) this.validMask[d] &= ~(1 << s);
    else this.validMask[d] |= 1 << s;
  }

  private growTo(rows: number): void {
    const copies = rows * this.spaces;
    this.bytes = resized(this.bytes, rows);
    this.validMask = resized(this.validMask, rows);
    this.version = resized(this.version, rows);
    this.home = resized(this.home, rows);
    this.poison = resized(this.poison, rows);
    this.poisonedBy = resized(this.poisonedBy, rows);
    this.written = resized(this.written, rows);
    this.live = resized(this.live, rows);
    this.described = resized(this.described, rows);
    this.state = resized(this.state, copies);
    this.pins = resized(this.pins, copies);
    this.block = resized(this.block, copies, NO_BLOCK);
    this.writeQueue = resized(this.writeQueue, copies, NO_QUEUE);
    this.writeSeq = resized(this.writeSeq, copies);
    this.readerQueue = resized(this.readerQueue, copies, NO_QUEUE);
    this.readerSeq = resized(this.readerSeq, copies);
    this.readersHead = resized(this.readersHead, copies, -1);
  }
}
