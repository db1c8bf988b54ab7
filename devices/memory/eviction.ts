// Eviction: the choice of the copy that leaves a device when room is needed, and the way it leaves.
//
// The rule is furthest next use, as far as the program is known (L. A. Belady, "A study of replacement algorithms for a
// virtual-storage computer", 1966). Copies without a known next use go first, least recently used first. Clean copies go
// before dirty ones. A clean copy is dropped at once. A dirty copy (the only place of its value) is handed over to
// another valid copy if there is one, else written back to the host first. To change the rule, change `victim`.
// Invariant: only copies in the LRU are touched, and those have no pins: no issued command still uses them.

import { TransferReason } from '../../trace/format.js';
import { guards } from '../guards.js';
import { type DatumId, HOST, NO_SPACE, NO_TASK, type SpaceId } from '../handles.js';
import { CopyState } from './coherency.js';
import { type Directory, NO_BLOCK } from './directory.js';
import { LruList } from './lru.js';
import type { MemorySpace } from './space.js';
import type { Transfers } from './transfers.js';
import { roundedBytes } from './zone.js';

/** Gets a call for every copy that leaves a space to make room. */
interface EvictionObserver {
  /** The clean copy of datum `d` is about to be dropped from space `s`. */
  evicted(s: SpaceId, d: DatumId): void;
  /** The dirty copy of datum `d` is on its way from space `s` to the host. */
  spilled(s: SpaceId, d: DatumId): void;
}

/** Predicts the next use of a copy. */
export interface Forecast {
  /** The distance of the next use of the copy of datum `d` in space `s`; Infinity when none is known. */
  nextUse(d: DatumId, s: SpaceId): number;
  /** Limit of compared copies, if it is not the usual one. */
  readonly candidates?: number;
}

/** The next uses of all copies as of one look at the program. The stages look (stages/next-use.ts). */
export class NextUses implements Forecast {
  /** Limit of uses per look. */
  readonly most: number;
  private readonly spaces: number;
  /** Per copy: the look that saw it, times `most`, plus the place in it of its first use. */
  private seen: Float64Array = new Float64Array(0);
  private look = 0;

  constructor(spaces: number, most: number) {
    this.spaces = spaces;
    this.most = most;
  }

  /** Forgets all uses. `data`: limit of the numbers of data. */
  begin(data: number): void {
    const copies = data * this.spaces;
    if (this.seen.length < copies) this.seen = new Float64Array(copies);
    this.look += this.most;
  }

  /** The task at place `at` uses the copy of datum `d` in space `s`. Places grow from 0 to `most`. */
  add(d: DatumId, s: SpaceId, at: number): void {
    const c = d * this.spaces + s;
    if (this.seen[c] < this.look) this.seen[c] = this.look + at;
  }

  nextUse(d: DatumId, s: SpaceId): number {
    const seen = this.seen[d * this.spaces + s];
    return seen >= this.look ? seen - this.look : Number.POSITIVE_INFINITY;
  }
}

/** The forecast, the counter and the observer of evictions. */
export interface EvictionCounter {
  evictions: number;
  readonly forecast: Forecast;
  observer: EvictionObserver | undefined;
}

/** Limit of compared copies where the forecast has none: the least recently used ones. */
const CANDIDATES = 64;

/** The datum whose copy should leave next, or -1. */
export function victim(space: MemorySpace, list: number, forecast: Forecast): DatumId {
  const { lru, index } = space;
  const oldest = lru.oldest(list);
  // Values rest on the host, and tasks of GPUs do not use copies there.
  if (index === 0 || lru.count[list] < 2) return oldest;
  let chosen = oldest;
  let furthest = -1;
  const most = forecast.candidates ?? CANDIDATES;
  let compared = 0;
  for (let d = oldest; d >= 0 && compared < most; d = lru.newer(d)) {
    const next = forecast.nextUse(d, index);
    if (next === Number.POSITIVE_INFINITY) return d;
    if (next > furthest) {
      furthest = next;
      chosen = d;
    }
    compared++;
  }
  return chosen;
}

/** Offset of a block of `bytes`, dropping clean copies as needed, or -1 when that is not enough. */
export function makeRoom(space: MemorySpace, counter: EvictionCounter, bytes: number): number {
  let offset = space.zone.allocate(bytes);
  while (offset < 0) {
    const d = victim(space, LruList.clean, counter.forecast);
    if (d < 0) return -1;
    dropClean(space, counter, d);
    offset = space.zone.allocate(bytes);
  }
  return offset;
}

/** Gives up the clean, unpinned copy of datum `d`. */
export function dropClean(space: MemorySpace, counter: EvictionCounter, d: DatumId): void {
  counter.observer?.evicted(space.index, d);
  space.drop(d);
  counter.evictions++;
  space.countEviction();
}

/**
 * Starts making one dirty copy clean. Returns the bytes that will become available by it, 0 when there is no
 * dirty copy to write back (or no queue with room), -1 when the host has no room for it.
 */
export function startWriteBack(
  space: MemorySpace,
  spaces: readonly MemorySpace[],
  dir: Directory,
  transfers: Transfers,
  counter: EvictionCounter,
  now: number,
): number {
  const d = victim(space, LruList.dirty, counter.forecast);
  if (d < 0) return 0;
  const bytes = roundedBytes(dir.bytes[d]);
  const heir = anotherCopy(dir, d, space.index, spaces);
  if (heir >= 0) {
    transfers.handOver(d, heir);
    return bytes;
  }
  const home = d * dir.spaces;
  // It is under way to the host already, from another device: its arrival makes this copy clean.
  if (dir.state[home] === CopyState.arriving) return 0;
  // Before it takes memory: a block without a copy is on no list.
  if (!transfers.canIssue(HOST, space.index)) return 0;
  if (dir.block[home] === NO_BLOCK) {
    const offset = makeRoom(spaces[0], counter, dir.bytes[d]);
    if (offset < 0) return -1;
    dir.block[home] = offset;
  }
  transfers.issue(d, HOST, space.index, TransferReason.spill, NO_TASK, now);
  counter.evictions++;
  space.countEviction();
  counter.observer?.spilled(space.index, d);
  return bytes;
}

/**
 * A space other than `s` whose copy of `d` has the value already, or -1. If tasks wait for memory on that device, it
 * would hand the copy over in turn. Only the device of higher number may do it, so two devices do not go on for ever.
 */
function anotherCopy(
  dir: Directory,
  d: DatumId,
  s: SpaceId,
  spaces: readonly MemorySpace[],
): SpaceId {
  let mask = dir.validMask[d] & ~(1 << s);
  while (mask !== 0) {
    const other = mask & 1 ? HOST : ((31 - Math.clz32(mask)) as SpaceId);
    mask &= ~(1 << other);
    const mayTake = other < s || spaces[other].waiters.length === 0 || !guards.handOverOneWay;
    if (mayTake && dir.state[d * dir.spaces + other] === CopyState.shared) return other;
  }
  return NO_SPACE;
}
