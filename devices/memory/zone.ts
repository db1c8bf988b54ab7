// Zone allocator: hands out byte ranges of one memory space by offset, never touching the memory itself.
// Two-level segregated fit (Masmano et al., "TLSF", ECRTS 2004) with one change: the allocator searches the bin of a
// size for a fitting block before it takes larger bins, because a device that holds three tiles must not
// lose one of them to rounding. A device's short blocks lie at the end of the segment they are cut from. So tiles that are a number of
// pages long begin with a page, as long as they need not go between short data: copies between ranks whose ends lie in the same way are
// faster. Host memory begins with the page-locked bytes, so everything is placed from its begin on.
// Invariants: segments tile [0, capacity) in address order; no two neighbouring segments are both free.

import { resized } from '../resized.js';

/** Block alignment in bytes: suits GPU copies and BLAS libraries, and an IPC offset must be a multiple of it. */
export const ALIGNMENT = 512;

/** Blocks shorter than this, in units of ALIGNMENT, lie at the end of a segment. */
const SHORT = 65_536 / ALIGNMENT;

const SUB_BITS = 4;
const SUB = 1 << SUB_BITS;
/** Levels of sizes: units up to 2^44, which are 2^53 bytes. */
const LEVELS = 45;
/** Shifts take integers below this. */
const SHIFTABLE = 2 ** 31;
/** Larger sizes are divided by 2^FAR first. */
const FAR = 20;
const NIL = -1;

/** Bytes that a block of `bytes` occupies. */
export function roundedBytes(bytes: number): number {
  return bytes <= ALIGNMENT ? ALIGNMENT : Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

export class Zone {
  /** Usable bytes, a multiple of ALIGNMENT. */
  readonly capacity: number;
  /** Bytes handed out. */
  used = 0;
  /** Largest `used` so far. */
  highWater = 0;

  // Segments in units of ALIGNMENT; exact up to 2^53 bytes.
  private start: Float64Array = new Float64Array(64);
  private size: Float64Array = new Float64Array(64);
  private before: Int32Array = new Int32Array(64);
  private after: Int32Array = new Int32Array(64);
  private free: Int32Array = new Int32Array(64);
  private binNext: Int32Array = new Int32Array(64);
  private binPrevious: Int32Array = new Int32Array(64);
  private spare: number[] = [];
  private count = 0;
  private readonly bins: Int32Array = new Int32Array(LEVELS * SUB).fill(NIL);
  private readonly levelMask: Int32Array = new Int32Array(LEVELS);
  private readonly segmentAt: Map<number, number> = new Map();

  /** Where short blocks lie in a segment. */
  private readonly shortAtEnd: boolean;

  constructor(capacity: number, shortAtEnd = true) {
    this.shortAtEnd = shortAtEnd;
    const units = Math.floor(capacity / ALIGNMENT);
    this.capacity = units * ALIGNMENT;
    if (units > 0) this.addFree(this.newSegment(0, units, NIL, NIL));
  }

  /** Bytes not handed out. */
  get available(): number {
    return this.capacity - this.used;
  }

  /** Offset in bytes of a block of at least `bytes`, or -1 when no free segment is large enough. */
  allocate(bytes: number): number {
    const units = roundedBytes(bytes) / ALIGNMENT;
    let segment = this.find(units);
    if (segment === NIL) return -1;
    this.removeFree(segment);
    const rest = this.size[segment] - units;
    if (rest > 0) {
      const isShort = units < SHORT && this.shortAtEnd;
      const tail = this.cut(segment, isShort ? rest : units);
      this.addFree(isShort ? segment : tail);
      if (isShort) segment = tail;
    }
    this.segmentAt.set(this.start[segment], segment);
    this.used += units * ALIGNMENT;
    if (this.used > this.highWater) this.highWater = this.used;
    return this.start[segment] * ALIGNMENT;
  }

  /** Returns a block obtained from `allocate`. */
  release(offset: number): void {
    const segment = this.segmentAt.get(offset / ALIGNMENT);
    if (segment === undefined) throw new Error(`zone: no block at offset ${offset}`);
    this.segmentAt.delete(offset / ALIGNMENT);
    this.used -= this.size[segment] * ALIGNMENT;
    let merged = segment;
    const next = this.after[merged];
    if (next !== NIL && this.free[next] === 1) this.absorb(merged, next);
    const previous = this.before[merged];
    if (previous !== NIL && this.free[previous] === 1) {
      this.removeFree(previous);
      this.mergeInto(previous, merged);
      merged = previous;
    }
    this.addFree(merged);
  }

  /** Bytes of the block at `offset`, which was handed out. */
  bytesAt(offset: number): number {
    const segment = this.segmentAt.get(offset / ALIGNMENT);
    return segment === undefined ? 0 : this.size[segment] * ALIGNMENT;
  }

  /** Largest block that `allocate` could hand out now, in bytes. Linear; for reports and tests. */
  largestFree(): number {
    let largest = 0;
    for (let bin = 0; bin < this.bins.length; bin++) {
      for (let s = this.bins[bin]; s !== NIL; s = this.binNext[s]) {
        if (this.size[s] > largest) largest = this.size[s];
      }
    }
    return largest * ALIGNMENT;
  }

  /** Throws when an invariant does not hold. For tests. */
  validate(): void {
    let at = 0;
    let used = 0;
    let segment = this.count === 0 ? NIL : 0;
    let wasFree = false;
    while (segment !== NIL && this.before[segment] !== NIL) segment = this.before[segment];
    for (; segment !== NIL; segment = this.after[segment]) {
      if (this.start[segment] !== at) throw new Error(`zone: gap or overlap at unit ${at}`);
      const isFree = this.free[segment] === 1;
      if (isFree && wasFree) throw new Error(`zone: free neighbours at unit ${at}`);
      if (!isFree) used += this.size[segment];
      wasFree = isFree;
      at += this.size[segment];
    }
    if (at * ALIGNMENT !== this.capacity) throw new Error('zone: segments do not cover the zone');
    if (used * ALIGNMENT !== this.used) throw new Error('zone: used bytes are miscounted');
  }

  /** Cuts a segment behind so many units; returns the rest of it. */
  private cut(segment: number, units: number): number {
    const end = this.start[segment] + units;
    const next = this.after[segment];
    const tail = this.newSegment(end, this.size[segment] - units, segment, next);
    if (next !== NIL) this.before[next] = tail;
    this.after[segment] = tail;
    this.size[segment] = units;
    return tail;
  }

  private find(units: number): number {
    const bin = this.binOf(units);
    for (let s = this.bins[bin]; s !== NIL; s = this.binNext[s]) {
      if (this.size[s] >= units) return s;
    }
    let level = bin >> SUB_BITS;
    let mask = this.levelMask[level] & ~((2 << (bin & (SUB - 1))) - 1);
    while (mask === 0) {
      if (++level >= LEVELS) return NIL;
      mask = this.levelMask[level];
    }
    return this.bins[level * SUB + (31 - Math.clz32(mask & -mask))];
  }

  private binOf(units: number): number {
    if (units >= SHIFTABLE) return this.binOf(Math.floor(units / 2 ** FAR)) + FAR * SUB;
    const level = 31 - Math.clz32(units);
    const sub =
      level >= SUB_BITS
        ? (units >>> (level - SUB_BITS)) & (SUB - 1)
        : (units << (SUB_BITS - level)) & (SUB - 1);
    return level * SUB + sub;
  }

  private newSegment(start: number, size: number, before: number, after: number): number {
    let s = this.spare.pop();
    if (s === undefined) {
      s = this.count++;
      if (s === this.start.length) {
        this.start = resized(this.start, 2 * s);
        this.size = resized(this.size, 2 * s);
        this.before = resized(this.before, 2 * s);
        this.after = resized(this.after, 2 * s);
        this.free = resized(this.free, 2 * s);
        this.binNext = resized(this.binNext, 2 * s);
        this.binPrevious = resized(this.binPrevious, 2 * s);
      }
    }
    this.start[s] = start;
    this.size[s] = size;
    this.before[s] = before;
    this.after[s] = after;
    this.free[s] = 0;
    return s;
  }

  private addFree(s: number): void {
    const bin = this.binOf(this.size[s]);
    const first = this.bins[bin];
    this.free[s] = 1;
    this.binPrevious[s] = NIL;
    this.binNext[s] = first;
    if (first !== NIL) this.binPrevious[first] = s;
    this.bins[bin] = s;
    this.levelMask[bin >> SUB_BITS] |= 1 << (bin & (SUB - 1));
  }

  private removeFree(s: number): void {
    const bin = this.binOf(this.size[s]);
    const next = this.binNext[s];
    const previous = this.binPrevious[s];
    if (next !== NIL) this.binPrevious[next] = previous;
    if (previous !== NIL) this.binNext[previous] = next;
    else {
      this.bins[bin] = next;
      if (next === NIL) this.levelMask[bin >> SUB_BITS] &= ~(1 << (bin & (SUB - 1)));
    }
    this.free[s] = 0;
  }

  private absorb(segment: number, next: number): void {
    this.removeFree(next);
    this.mergeInto(segment, next);
  }

  private mergeInto(left: number, right: number): void {
    this.size[left] += this.size[right];
    this.after[left] = this.after[right];
    if (this.after[right] !== NIL) this.before[this.after[right]] = left;
    this.spare.push(right);
  }
}
