// Stage 1, alloc: all-or-nothing reservation of device memory.
//
// The task ends this stage with a block and a pin for every datum it touches, or with nothing at all. It never
// holds part of what it needs, so two tasks cannot each sit on half of the memory.
//
//   1. Count the bytes missing here. None: pin and go on (the fast path, also taken past waiting tasks, because
//      it takes no bytes).
//   2. Someone else holds the ticket (is first in line for this space): stand behind.
//   3. Enough can be had by dropping clean copies: drop what is needed last, take the blocks, go on.
//   4. Enough can be had by writing dirty copies back: start exactly as much as is missing, wait.
//   5. What is missing is offered to other ranks: step out of the line until an offer is over.
//   6. Otherwise what is missing is pinned by issued work: wait; its completion wakes the ticket holder.
//
// The first in line is looked at again whenever bytes become free or evictable, and nobody takes bytes past it:
// with the pins of finished work always returning, it gets its turn, then the next (docs/reliability.md).
import { CopyState } from '../devices/coherency.js';
import { NO_BLOCK } from '../devices/directory.js';
import { HeadraceError } from '../devices/errors.js';
import { dropClean, makeRoom, startWriteBack } from '../devices/eviction.js';
import { guards } from '../devices/guards.js';
import { type MemorySpace, NO_TASK } from '../devices/memory-space.js';
import { roundedBytes } from '../devices/zone.js';
import type { StageContext } from './context.js';
import { Outcome } from './stage.js';
import { AccessMode } from './task-table.js';

/** What asking for room came to. */
const Room = { wait: 0, retry: 1, never: 2 } as const;

export function alloc(x: StageContext, row: number): number {
  const { tasks } = x;
  const s = tasks.device[row];
  const space = x.spaces[s];
  const first = tasks.flowStart[row];
  const end = first + x.classes[tasks.classOf[row]].modes.length;
  const id = tasks.idOf(row);
  for (;;) {
    if (space.compactingFor === id) dropAllClean(x, space);
    const missing = missingBytes(x, s, first, end);
    if (missing === 0) {
      const flows = tasks.flowDatum;
      if (guards.taskPins) for (let i = first; i < end; i++) space.pin(flows[i]);
      if (space.compactingFor === id) space.compactingFor = NO_TASK;
      return Outcome.advance;
    }
    const line = space.waiters;
    if (line.length > 0 && line.peek() !== id && guards.ticket) {
      x.waitForMemory(row, s);
      return Outcome.wait;
    }
    const reachable = space.reachable >= missing;
    if (reachable && take(x, space, first, end)) {
      if (space.compactingFor === id) space.compactingFor = NO_TASK;
      return Outcome.advance;
    }
    if (s > 0 && offersAreInTheWay(x, space, first, end)) {
      if (space.compactingFor === id) space.compactingFor = NO_TASK;
      x.stepAside(row, s);
      return Outcome.wait;
    }
    const room = s === 0 ? hostRoom(x) : requestRoom(x, space, missing, reachable, id);
    if (room === Room.retry) continue;
    if (room === Room.never) return outOfHostMemory(x, row, missing);
    if (line.length === 0) x.waitForMemory(row, s);
    else x.waitAtHead(row);
    return Outcome.wait;
  }
}

/**
 * The fast path over alloc and stage-in: when every datum has a block here, and those that are read a value, the
 * task needs no bytes and no transfer. Pins everything and returns true, or changes nothing.
 */
export function allResident(x: StageContext, row: number): boolean {
  const { tasks, directory: dir } = x;
  const { block, state, poison, poisonedData, spaces } = dir;
  const s = tasks.device[row];
  const modes = x.classes[tasks.classOf[row]].modes;
  const flows = tasks.flowDatum;
  const first = tasks.flowStart[row];
  const n = modes.length;
  for (let i = 0; i < n; i++) {
    const d = flows[first + i];
    const c = d * spaces + s;
    // A valid copy has a block.
    if (modes[i] === AccessMode.write) {
      if (block[c] === NO_BLOCK) return false;
    } else if (state[c] === CopyState.invalid || (poisonedData > 0 && poison[d] !== 0)) {
      return false;
    }
  }
  const space = x.spaces[s];
  if (guards.taskPins) for (let i = 0; i < n; i++) space.pin(flows[first + i]);
  return true;
}

/** Takes every missing block, or none: what was taken goes back, and nothing is held while waiting. */
function take(x: StageContext, space: MemorySpace, first: number, end: number): boolean {
  const dir = x.directory;
  const flows = x.tasks.flowDatum;
  const s = space.index;
  // Pin what is resident first: making room must not evict the task's own inputs.
  for (let i = first; i < end; i++) {
    if (dir.block[flows[i] * dir.spaces + s] !== NO_BLOCK && guards.pinBeforeTaking) {
      space.pin(flows[i]);
    }
  }
  for (let taken = first; taken < end; taken++) {
    const d = flows[taken];
    const c = d * dir.spaces + s;
    if (dir.block[c] !== NO_BLOCK) continue;
    const offset = makeRoom(space, x.counters, dir.bytes[d]);
    if (offset < 0) {
      const wake = space.freed;
      if (!guards.allOrNothing) return false;
      // Blocks that were never used need no poison, whose end would be news to the one who waits.
      const { onDrop } = space;
      space.onDrop = undefined;
      for (let i = first; i < end; i++) {
        if (dir.block[flows[i] * dir.spaces + s] !== NO_BLOCK) space.unpin(flows[i]);
      }
      // Giving back what was never used must not look like news to the one who waits: it would spin.
      space.freed = wake;
      space.onDrop = onDrop;
      return false;
    }
    dir.block[c] = offset;
    // One pin per flow of the task that names the datum.
    for (let i = first; i < end; i++) if (flows[i] === d) space.pin(d);
  }
  return true;
}

/**
 * Only offers hold memory of a device for good, and they were granted before a task as large as this one was known: what
 * they leave in one piece is too little. Other ranks take them in their own time, perhaps after tasks behind this one, so
 * it must not hold the ticket meanwhile. New offers leave it room; so the last one in its way will be over.
 */
function offersAreInTheWay(
  x: StageContext,
  space: MemorySpace,
  first: number,
  end: number,
): boolean {
  const { offered, pinnedCopies, zone } = space;
  if (offered.bytes === 0 || pinnedCopies > offered.pinned || !guards.offerAside) return false;
  let needed = 0;
  for (const d of new Set(x.tasks.flowDatum.subarray(first, end)))
    needed += roundedBytes(x.directory.bytes[d]);
  return offered.largestStretch(zone.capacity) < needed;
}

function missingBytes(x: StageContext, s: number, first: number, end: number): number {
  const dir = x.directory;
  const flows = x.tasks.flowDatum;
  let missing = 0;
  for (let i = first; i < end; i++) {
    const d = flows[i];
    if (dir.block[d * dir.spaces + s] !== NO_BLOCK) continue;
    let again = false;
    for (let j = first; j < i; j++) if (flows[j] === d) again = true;
    if (!again) missing += roundedBytes(dir.bytes[d]);
  }
  return missing;
}

/** Nothing lies below the host: what is pinned will come back, the rest will not. */
function hostRoom(x: StageContext): number {
  return nothingComesBack(x) ? Room.never : Room.wait;
}

/**
 * Nothing that is under way will make room on the host. Offers of what is only there do not either; and were they waited
 * for, two ranks whose hosts are full would wait for each other.
 */
export function nothingComesBack(x: StageContext): boolean {
  const { pinnedCopies, poisoning, offered } = x.spaces[0];
  if (poisoning > 0) return false;
  return pinnedCopies === 0 || (pinnedCopies === offered.onlyCopies && guards.hostOffers);
}

/** Starts the write-backs that will make `missing` bytes available. */
function requestRoom(
  x: StageContext,
  space: MemorySpace,
  missing: number,
  fragmented: boolean,
  id: number,
): number {
  let deficit = missing - space.reachable - space.arrivingOut;
  if (fragmented) {
    // The bytes are there, but not in one piece. While others hold pins their return may join the pieces; when only
    // offers do, which may wait for what this task and those behind it are to send, the task's own resident copies are in the way: everything goes out.
    if (space.pinnedCopies > space.offered.pinned || !guards.compaction) return Room.wait;
    space.compactingFor = id;
    deficit = Number.POSITIVE_INFINITY;
  }
  let handedOver = false;
  while (deficit > 0 && guards.writeBack) {
    const live = x.transfers.live;
    const released = startWriteBack(space, x.spaces, x.directory, x.transfers, x.counters, x.now);
    if (released === 0) break;
    if (released < 0) return hostRoom(x);
    if (x.transfers.live === live) handedOver = true;
    deficit -= released;
  }
  if (handedOver) return Room.retry;
  // Compaction with nothing dirty: dropping what is clean is enough, and no completion would come to wake us. With
  // nothing clean either, the rest is being poisoned or written back, and will wake us when it is free.
  return fragmented && space.pinnedCopies <= space.offered.pinned && space.cleanBytes > 0
    ? Room.retry
    : Room.wait;
}

function dropAllClean(x: StageContext, space: MemorySpace): void {
  for (let d = space.lru.oldest(1); d >= 0; d = space.lru.oldest(1)) {
    dropClean(space, x.counters, d);
  }
}

export function outOfHostMemory(
  x: StageContext,
  row: number,
  missing: number,
  stage = 'alloc',
): number {
  const host = x.spaces[0];
  x.hooks.fail(
    row,
    new HeadraceError(
      'ERR_OUT_OF_HOST_MEMORY',
      `task ${x.describe(row)} needs ${missing} bytes, but host memory is full ` +
        `(${host.zone.used} of ${host.zone.capacity} bytes in use)`,
      {
        task: x.describe(row),
        stage,
        bytes: missing,
        limit: host.zone.capacity,
        remedy: 'raise hostMemory or close data that are no longer needed',
        report: x.hooks.memoryText(),
      },
    ),
  );
  return Outcome.fail;
}
