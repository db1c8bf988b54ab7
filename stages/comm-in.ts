// Stage 3, comm-in: data that other ranks produce.
//
// A receive is a task of its own on the network device. It writes the datum, so the graph orders it against local
// readers and writers. Therefore a consumer finds its remote inputs in local memory here, and holds nothing while it
// waits for them. A receive gets memory on a device before its bytes are announced if that is free and few bytes are held so: its copy counts
// as offered, because both are held until other ranks have done their part. Otherwise it gets memory after the announcement, so a
// slow rank blocks little memory. This file decides the space of that memory.

import { guards } from '../devices/guards.js';
import { type DatumId, HOST, type SpaceId } from '../devices/handles.js';
import { NO_BLOCK } from '../devices/memory/directory.js';
import type { MemorySpace } from '../devices/memory/space.js';
import { roundedBytes } from '../devices/memory/zone.js';
import type { StageContext } from './context.js';
import { roomFor } from './next-use.js';
import { Outcome } from './stage.js';

/** Share of a device's memory that receives under way may hold. Copies offered to other ranks may hold as much. */
const CREDIT_SHARE = 0.25;
/** Share of the credits of offers that receives before their announcement may take. */
const AHEAD_SHARE = 0.5;

/**
 * Byte credits of the network, per space. An offered copy stays pinned until the other rank has taken it. That may take
 * long, because the other rank may need memory for earlier tasks. If offers to each other held all memory of two ranks,
 * neither could go on. So offers, like receives, hold no more than their share of a device, and never the room that the
 * largest task needs in one piece. Further data are offered from host memory.
 *
 * Invariant: on a device, the bytes in flight and the bytes offered never exceed `limit` each.
 */
export class NetworkCredits {
  /** Bytes that the network must leave for tasks: the bytes of the largest task so far. */
  readonly floor: Float64Array;
  readonly limit: Float64Array;
  readonly inFlight: Float64Array;
  /** Receives that went to the host because the device had no room for them. */
  spilled = 0;

  constructor(x: StageContext) {
    const n = x.spaces.length;
    this.floor = new Float64Array(n);
    this.inFlight = new Float64Array(n);
    this.limit = Float64Array.from(x.spaces, (space) => space.zone.capacity * CREDIT_SHARE);
  }
}

export function commIn(_x: StageContext, _row: number): number {
  return Outcome.advance;
}

/**
 * Grants memory on device `s` for a receive of datum `d` that is not announced yet; false: it waits for its announcement. Such receives
 * take a part of the credits of offers.
 */
export function grantAhead(
  x: StageContext,
  credits: NetworkCredits,
  d: DatumId,
  s: SpaceId,
): boolean {
  const dir = x.directory;
  const space = x.spaces[s];
  if (space.waiters.length > 0) return false;
  if (guards.aheadRoom && !leavesRoom(space, credits, roundedBytes(dir.bytes[d]))) return false;
  const c = d * dir.spaces + s;
  if (dir.block[c] === NO_BLOCK) {
    // Nothing leaves the device for data that may come late.
    const offset = space.zone.allocate(dir.bytes[d]);
    if (offset < 0) return false;
    dir.block[c] = offset;
  }
  if (guards.aheadHeld) space.offered.add(d);
  return true;
}

/** Whether `bytes` more may be held for another rank's time, wherever they lie: the largest task finds room in one piece. */
function leavesRoom(
  { index: s, offered, zone, reachable }: MemorySpace,
  credits: NetworkCredits,
  bytes: number,
): boolean {
  const floor = credits.floor[s];
  const withinShare = offered.bytes + bytes <= credits.limit[s] * AHEAD_SHARE;
  const hasRoomNow = reachable - bytes >= floor;
  const least = floor + credits.inFlight[s];
  return withinShare && hasRoomNow && offered.leaveStretches(least, zone.capacity, bytes);
}

/** The space from which datum `d` is offered: its own space while the credits last, else the host. Takes the credits. */
export function grantOffer(x: StageContext, credits: NetworkCredits, d: DatumId): SpaceId {
  const dir = x.directory;
  const s = dir.owner(d);
  if (s <= 0) return HOST;
  const { offered, zone } = x.spaces[s];
  if (offered.bytes + roundedBytes(dir.bytes[d]) > credits.limit[s]) return HOST;
  const needed = credits.floor[s] + credits.inFlight[s];
  if (guards.offerRoom && !offered.hasStretch(needed, zone.capacity, d)) return HOST;
  offered.add(d);
  return s;
}

/** An offer from the host is about to be commanded. Its copy counts as offered; on a device it has since it was granted. */
export function holdOffer(x: StageContext, d: DatumId): void {
  const host = x.spaces[HOST];
  host.offered.add(d);
  // A task that waits for room here may have nothing else to wait for now.
  host.wakeLine();
}

/** An offer of datum `d` from space `s` is over, or a receive there that had its memory ahead: the tasks that stepped aside for it stand in line again. */
export function returnOffer(x: StageContext, s: SpaceId, d: DatumId): void {
  const { offered, aside } = x.spaces[s];
  offered.remove(d);
  while (aside.length > 0) x.woken.push(aside.shift());
}

/**
 * The space into which datum `d` is received: the predicted space of its consumer if it has room now without touching the
 * floor, else the host (the consumer's stage-in copies it from there: the spill path). This function grants the block on
 * a device. On the host alloc grants it, because waiting is fair there.
 */
export function grantReceive(
  x: StageContext,
  credits: NetworkCredits,
  d: DatumId,
  wanted: SpaceId,
): SpaceId {
  if (wanted <= 0) return HOST;
  const dir = x.directory;
  const space = x.spaces[wanted];
  const c = d * dir.spaces + wanted;
  if (dir.block[c] !== NO_BLOCK) return wanted;
  const bytes = roundedBytes(dir.bytes[d]);
  const fits =
    space.waiters.length === 0 &&
    credits.inFlight[wanted] + bytes <= credits.limit[wanted] &&
    space.reachable - bytes >= credits.floor[wanted];
  const offset = fits ? roomFor(x, space, dir.bytes[d]) : -1;
  if (offset < 0) {
    credits.spilled++;
    return HOST;
  }
  dir.block[c] = offset;
  return wanted;
}
