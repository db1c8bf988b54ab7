// Stage 3, comm-in: data that other ranks produce.
//
// A receive is a task of its own on the network device (it writes the datum, so ordering against local readers and
// writers is the graph's), which is why a consumer finds its remote inputs already local here and holds nothing while
// it waits for them. A receive itself gets memory only once its bytes are announced, so that what is slow to come
// blocks nobody: this file decides where it gets it.
import { NO_BLOCK } from '../devices/directory.js';
import { makeRoom } from '../devices/eviction.js';
import { guards } from '../devices/guards.js';
import { roundedBytes } from '../devices/zone.js';
import type { StageContext } from './context.js';
import { Outcome } from './stage.js';

/** Share of a device's memory that receives under way may hold, and as much for copies offered to other ranks. */
const CREDIT_SHARE = 0.25;

/**
 * Byte credits of the network, per space. A copy that is offered stays pinned until the other rank has taken it, which
 * may be long: the other rank may need memory for tasks that come before. Were all memory of two ranks held by offers
 * to each other, neither could go on; so offers, like receives, hold no more than their share of a device and never
 * what the largest task needs in one piece. What exceeds that is offered from host memory.
 *
 * Invariant: on a device, the bytes in flight and the bytes offered never exceed `limit` each.
 */
export class NetworkCredits {
  /** Bytes the network must leave for tasks: those of the largest task so far. */
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

/** The space from which datum `d` is offered: where it is while the credits last, else the host. Takes the credits. */
export function grantOffer(x: StageContext, credits: NetworkCredits, d: number): number {
  const dir = x.directory;
  const s = dir.owner(d);
  if (s <= 0) return 0;
  const { offered, zone } = x.spaces[s];
  if (offered.bytes + roundedBytes(dir.bytes[d]) > credits.limit[s]) return 0;
  const room = offered.largestStretch(zone.capacity, d) - credits.inFlight[s];
  if (guards.offerRoom && room < credits.floor[s]) return 0;
  offered.add(d);
  return s;
}

/** An offer of datum `d` from space `s` is over: those that stepped aside for it stand in line again. */
export function returnOffer(x: StageContext, s: number, d: number): void {
  const { offered, aside } = x.spaces[s];
  offered.remove(d);
  while (aside.length > 0) x.woken.push(aside.shift());
}

/**
 * The space into which datum `d` is received: the one that was predicted for its consumer if it has room now without
 * touching the floor, else the host (from where the consumer's stage-in fetches it: the spill path). On a device the
 * block is granted here; on the host alloc does it, where waiting is fair.
 */
export function grantReceive(
  x: StageContext,
  credits: NetworkCredits,
  d: number,
  wanted: number,
): number {
  if (wanted <= 0) return 0;
  const dir = x.directory;
  const space = x.spaces[wanted];
  const c = d * dir.spaces + wanted;
  if (dir.block[c] !== NO_BLOCK) return wanted;
  const bytes = roundedBytes(dir.bytes[d]);
  const fits =
    space.waiters.length === 0 &&
    credits.inFlight[wanted] + bytes <= credits.limit[wanted] &&
    space.reachable - bytes >= credits.floor[wanted];
  const offset = fits ? makeRoom(space, x.counters, dir.bytes[d]) : -1;
  if (offset < 0) {
    credits.spilled++;
    return 0;
  }
  dir.block[c] = offset;
  return wanted;
}
