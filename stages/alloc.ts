// Stage 1, alloc: all-or-nothing reservation of device memory.
//
// The task ends this stage with a block and a pin for every datum that it touches, or with nothing at all. It never
// holds part of its memory, so two tasks cannot each hold half of the memory.
//
//   1. Count the bytes that the task lacks here. If it lacks none, pin and go on. This fast path may pass waiting tasks,
//      because it takes no bytes.
//   2. If another task holds the ticket (is first in line for this space), stand behind it.
//   3. If dropping clean copies gives enough bytes, drop the copies needed last, take the blocks, and go on.
//   4. If writing dirty copies back gives enough bytes, start exactly as many write-backs as needed, and wait.
//   5. If offers to other ranks hold the bytes, step out of the line until an offer is over.
//   6. Otherwise issued work pins the bytes: wait. Its completion wakes the ticket holder.
//
// The engine calls the first task in line again whenever bytes become free or evictable, and no other task takes bytes
// before it. The pins of finished work always return, so it gets its turn, then the next one (docs/reliability.md).

import { HeadraceError } from '../devices/errors.js';
import { guards } from '../devices/guards.js';
import { type DatumId, HOST, type TaskId } from '../devices/handles.js';
import { CopyState } from '../devices/memory/coherency.js';
import { NO_BLOCK } from '../devices/memory/directory.js';
import { distinctBytes, missingBytes } from '../devices/memory/distinct-bytes.js';
import { dropClean, startWriteBack } from '../devices/memory/eviction.js';
import type { MemorySpace } from '../devices/memory/space.js';
import type { StageContext } from './context.js';
import { roomFor } from './next-use.js';
import { Outcome } from './stage.js';
import { AccessMode } from './task-table.js';

/** Result of a request for room. */
const Room = { wait: 0, retry: 1, never: 2 } as const;

export function alloc(x: StageContext, row: number): number {
  const { tasks } = x;
  const s = tasks.device[row];
  const space = x.spaces[s];
  const first = tasks.flowStart[row];
  const end = first + x.classes[tasks.classOf[row]].modes.length;
  const id = tasks.idOf(row);
  for (;;) {
    if (space.isCompactingFor(id)) dropAllClean(x, space);
    const missing = missingBytes(x.directory, tasks.flowDatum, first, end, s);
    if (missing === 0) {
      const flows = tasks.flowDatum;
      if (guards.taskPins) for (let i = first; i < end; i++) space.pin(flows[i]);
      space.endCompaction(id);
      return Outcome.advance;
    }
    const line = space.waiters;
    if (line.length > 0 && line.peek() !== id && guards.ticket) {
      x.waitForMemory(row, s);
      return Outcome.wait;
    }
    const reachable = space.reachable >= missing;
    if (reachable && take(x, space, first, end)) {
      space.endCompaction(id);
      return Outcome.advance;
    }
    if (s > 0 && offersAreInTheWay(x, space, first, end)) {
      space.endCompaction(id);
      x.stepAside(row, s);
      return Outcome.wait;
    }
    const room = s === 0 ? hostRoom(x, id) : requestRoom(x, space, missing, reachable, id);
    if (room === Room.retry) continue;
    if (room === Room.never) return outOfHostMemory(x, row, lacking(x, first, end), missing);
    if (line.length === 0) x.waitForMemory(row, s);
    else x.waitAtHead(row);
    return Outcome.wait;
  }
}

/**
 * The fast path over alloc and stage-in. If every datum has a block here, and every datum to be read has a value, the
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

/** Takes every missing block, or none: it returns a partial set of blocks, and the task holds nothing while it waits. */
function take(x: StageContext, space: MemorySpace, first: number, end: number): boolean {
  const dir = x.directory;
  const flows = x.tasks.flowDatum;
  const s = space.index;
  // Pin the resident copies first: making room must not evict the task's own inputs.
  for (let i = first; i < end; i++) {
    if (dir.block[flows[i] * dir.spaces + s] !== NO_BLOCK && guards.pinBeforeTaking) {
      space.pin(flows[i]);
    }
  }
  for (let taken = first; taken < end; taken++) {
    const d = flows[taken];
    const c = d * dir.spaces + s;
    if (dir.block[c] !== NO_BLOCK) continue;
    const offset = roomFor(x, space, dir.bytes[d]);
    if (offset < 0) {
      if (!guards.allOrNothing) return false;
      space.returnUnused(() => {
        for (let i = first; i < end; i++) {
          if (dir.block[flows[i] * dir.spaces + s] !== NO_BLOCK) space.unpin(flows[i]);
        }
      });
      return false;
    }
    dir.block[c] = offset;
    // One pin per flow of the task that names the datum.
    for (let i = first; i < end; i++) if (flows[i] === d) space.pin(d);
  }
  return true;
}

/**
 * Whether only offers hold memory of a device that the task needs. The offers were granted before a task as large as this
 * one was known, so they leave too little in one piece. Other ranks take them at their own time, perhaps after tasks
 * behind this one, so this task must not hold the ticket meanwhile. New offers leave it room, so the last one in its way
 * will be over.
 */
function offersAreInTheWay(
  x: StageContext,
  space: MemorySpace,
  first: number,
  end: number,
): boolean {
  const { offered, pinnedCopies, zone } = space;
  if (offered.bytes === 0 || pinnedCopies > offered.pinned || !guards.offerAside) return false;
  const needed = distinctBytes(x.directory, x.tasks.flowDatum, first, end);
  return !offered.hasStretch(needed, zone.capacity);
}

/** No memory lies below the host: pinned bytes return, and no other bytes do. */
function hostRoom(x: StageContext, id: TaskId): number {
  return nothingComesBack(x, id) ? Room.never : Room.wait;
}

/**
 * Whether no work under way, and no close of a datum, will make room on the host for task `id`. Offers of the only copy of a
 * datum make none. If tasks waited for them, two ranks with full hosts would wait for each other. Receives on lanes that come
 * after the task make none either: their versions may depend on it.
 */
export function nothingComesBack(x: StageContext, id: TaskId): boolean {
  const { pinnedCopies, poisoning, offered } = x.spaces[0];
  if (poisoning > 0 || x.hooks.closesAreReleased()) return false;
  if (pinnedCopies === 0) return true;
  const behind = x.hasLanes ? x.hooks.receivesBehind(id) : 0;
  return pinnedCopies === offered.onlyCopies + behind && guards.hostOffers;
}

/** Starts the write-backs that will make `missing` bytes available. */
function requestRoom(
  x: StageContext,
  space: MemorySpace,
  missing: number,
  fragmented: boolean,
  id: TaskId,
): number {
  let deficit = missing - space.reachable - space.arrivingOut;
  if (fragmented) {
    // The bytes are there, but not in one piece. While others hold pins, their return may join the pieces. If only offers
    // hold pins, they may wait for data that this task and those behind it have yet to send. Then the task's own resident
    // copies are in the way, and everything goes out.
    if (space.pinnedCopies > space.offered.pinned || !guards.compaction) return Room.wait;
    space.beginCompaction(id);
    deficit = Number.POSITIVE_INFINITY;
  }
  if (deficit > 0) x.ahead.look();
  let handedOver = false;
  while (deficit > 0 && guards.writeBack) {
    const live = x.transfers.live;
    const released = startWriteBack(space, x.spaces, x.directory, x.transfers, x.counters, x.now);
    if (released === 0) break;
    // Behind the pins of tasks under way the device may have copies that need no room on the host.
    if (released < 0)
      return space.pinnedCopies > space.offered.pinned || space.poisoning > 0
        ? Room.wait
        : hostRoom(x, id);
    if (x.transfers.live === live) handedOver = true;
    deficit -= released;
  }
  if (handedOver) return Room.retry;
  // Compaction without dirty copies: dropping the clean ones is enough, and no completion would wake this task. Without
  // clean ones either, the other blocks are being poisoned or written back, and their end will wake it.
  return fragmented && space.pinnedCopies <= space.offered.pinned && space.cleanBytes > 0
    ? Room.retry
    : Room.wait;
}

function dropAllClean(x: StageContext, space: MemorySpace): void {
  for (let d = space.lru.oldest(1); d >= 0; d = space.lru.oldest(1)) {
    dropClean(space, x.counters, d);
  }
}

/** The data of flows `first .. end` without a block on the host. */
function lacking({ tasks, directory: dir }: StageContext, first: number, end: number): DatumId[] {
  const data = tasks.flowDatum.slice(first, end) as Iterable<DatumId>;
  return [...new Set(data)].filter((d) => dir.block[d * dir.spaces + HOST] === NO_BLOCK);
}

/** Names listed in a message. */
const MOST_NAMED = 3;

/** Task `row` fails: there is no room on the host for `data`, of `missing` bytes together. */
export function outOfHostMemory(
  x: StageContext,
  row: number,
  data: readonly DatumId[],
  missing: number,
  stage = 'alloc',
): number {
  const host = x.spaces[0];
  const names = data.slice(0, MOST_NAMED).map((d) => `'${x.directory.info[d]?.name ?? `#${d}`}'`);
  if (data.length > names.length) names.push(`${data.length - names.length} more`);
  x.hooks.fail(
    row,
    new HeadraceError(
      'ERR_OUT_OF_HOST_MEMORY',
      `task ${x.describe(row)} needs ${missing} bytes for ${names.join(', ')}, but host memory is full ` +
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
