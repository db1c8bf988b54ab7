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
 * Invariant: on a device, `inFlight` and `offered` never exceed `limit` each.
 */
export class NetworkCredits {
  /** Bytes the network must leave for tasks: those of the largest task so far. */
  readonly floor: Float64Array;
  readonly limit: Float64Array;
  readonly inFlight: Float64Array;
  readonly offered: Float64Array;
  /** Per space, how often each datum is offered from there. */
  readonly offers: readonly Map<number, number>[];
  /** Receives that went to the host because the device had no room for them. */
  spilled = 0;

  constructor(x: StageContext) {
    const n = x.spaces.length;
    this.floor = new Float64Array(n);
    this.inFlight = new Float64Array(n);
    this.offered = new Float64Array(n);
    this.offers = Array.from({ length: n }, () => new Map<number, number>());
    this.limit = Float64Array.from(x.spaces, (space) => space.zone.capacity * CREDIT_SHARE);
  }

  /**
   * Largest stretch of memory of space `s` between copies that are offered, were `d` offered too. Offered copies cannot
   * be moved away, so free bytes to both sides of one are no room for what needs them in one piece.
   */
  roomBeside(x: StageContext, s: number, d: number): number {
    const dir = x.directory;
    const blocks: [offset: number, end: number][] = [];
    for (const other of new Set([d, ...this.offers[s].keys()])) {
      const offset = dir.block[other * dir.spaces + s];
      if (offset !== NO_BLOCK) blocks.push([offset, offset + roundedBytes(dir.bytes[other])]);
    }
    blocks.sort(([a], [b]) => a - b);
    let largest = 0;
    let from = 0;
    for (const [offset, end] of [...blocks, [x.spaces[s].zone.capacity, 0]]) {
      largest = Math.max(largest, offset - from);
      from = end;
    }
    return largest - this.inFlight[s];
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
  const bytes = roundedBytes(dir.bytes[d]);
  const held = credits.offered[s] + bytes;
  if (
    held > credits.limit[s] ||
    (guards.offerRoom && credits.roomBeside(x, s, d) < credits.floor[s])
  )
    return 0;
  credits.offered[s] = held;
  const offers = credits.offers[s];
  offers.set(d, (offers.get(d) ?? 0) + 1);
  return s;
}

/** An offer of datum `d` from space `s` is over. */
export function returnOffer(x: StageContext, credits: NetworkCredits, s: number, d: number): void {
  credits.offered[s] -= roundedBytes(x.directory.bytes[d]);
  const offers = credits.offers[s];
  const left = (offers.get(d) ?? 0) - 1;
  if (left > 0) offers.set(d, left);
  else offers.delete(d);
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
