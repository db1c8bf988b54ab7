// Eviction: which copy leaves a device when room is needed, and how.
//
// The rule is furthest next use, as far as the program is known (L. A. Belady, "A study of replacement algorithms for a
// virtual-storage computer", 1966), least recently used among those without one, clean before dirty: a clean copy is
// dropped at once, a dirty one (the only place where its value lives) is handed over to another valid copy when there
// is one, else written back to the host first. To change the rule, change `victim`.
// Invariant: only copies in the LRU are touched, and those have no pins: nothing issued still uses them.

import { TransferReason } from '../trace/format.js';
import { CopyState } from './coherency.js';
import { type Directory, NO_BLOCK } from './directory.js';
import { guards } from './guards.js';
import { LruList } from './lru.js';
import type { MemorySpace } from './memory-space.js';
import type { Transfers } from './transfers.js';
import { roundedBytes } from './zone.js';

/** Told about every copy that leaves a space to make room. */
export interface EvictionObserver {
  /** The clean copy of datum `d` is about to be dropped from space `s`. */
  evicted(s: number, d: number): void;
  /** The dirty copy of datum `d` is on its way from space `s` to the host. */
  spilled(s: number, d: number): void;
}

/** Tells when a copy will be needed. */
export interface Forecast {
  /** How far ahead the next use of the copy of datum `d` in space `s` is; Infinity when none is known. */
  nextUse(d: number, s: number): number;
}

/** What deciding on an eviction takes, and what is counted and told of it. */
export interface EvictionCounter {
  evictions: number;
  readonly forecast: Forecast;
  observer: EvictionObserver | undefined;
}

/** Copies that are compared, at most: those used least recently. */
const CANDIDATES = 64;

/** The datum whose copy should leave next, or -1. */
export function victim(space: MemorySpace, list: number, forecast: Forecast): number {
  const { lru, index } = space;
  const oldest = lru.oldest(list);
  // Copies on the host are where values rest, not where tasks of GPUs need them.
  if (index === 0 || lru.count[list] < 2) return oldest;
  let chosen = oldest;
  let furthest = -1;
  let compared = 0;
  for (let d = oldest; d >= 0 && compared < CANDIDATES; d = lru.newer(d)) {
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
export function dropClean(space: MemorySpace, counter: EvictionCounter, d: number): void {
  counter.observer?.evicted(space.index, d);
  space.drop(d);
  counter.evictions++;
  space.evictions++;
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
  // It is on its way to the host already, from another device: its arrival makes this copy clean.
  if (dir.state[home] === CopyState.arriving) return 0;
  if (dir.block[home] === NO_BLOCK) {
    const offset = makeRoom(spaces[0], counter, dir.bytes[d]);
    if (offset < 0) return -1;
    dir.block[home] = offset;
  }
  if (!transfers.canIssue(0, space.index)) return 0;
  transfers.issue(d, 0, space.index, TransferReason.spill, 0, now);
  counter.evictions++;
  space.evictions++;
  counter.observer?.spilled(space.index, d);
  return bytes;
}

/**
 * A space other than `s` whose copy of `d` has the value already, or -1. A device where someone waits for memory would
 * hand it over in turn; so that two of them do not go on with that for ever, only the one of higher number may do it.
 */
function anotherCopy(dir: Directory, d: number, s: number, spaces: readonly MemorySpace[]): number {
  let mask = dir.validMask[d] & ~(1 << s);
  while (mask !== 0) {
    const other = mask & 1 ? 0 : 31 - Math.clz32(mask);
    mask &= ~(1 << other);
    const mayTake = other < s || spaces[other].waiters.length === 0 || !guards.handOverOneWay;
    if (mayTake && dir.state[d * dir.spaces + other] === CopyState.shared) return other;
  }
  return -1;
}
