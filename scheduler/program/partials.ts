// The partial results of reductions: temporary data, each on one rank.
//
// A partial result of few bytes is kept for the next reduction into the same datum, a large one gives its memory back.
// Invariants: every partial result is closed with its datum at the latest. On several ranks its name follows from that of the
// datum and its rank alone, because ranks leave the program of a failed run at different points and may have made
// different ones.
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { roundedBytes } from '../../devices/memory/zone.js';
import { mix } from '../ranks/call-log.js';
import type { Ranks } from '../ranks/ranks.js';
import type { Datum } from './datum.js';
import type { DatumOptions } from './datum-options.js';
import type { ElementType } from './element-type.js';

/** Partial results up to this size are kept, */
const KEPT_BYTES = 65_536;
/** as long as those that no reduction uses have at most this share of the host memory. */
const KEPT_SHARE = 1 / 16;
/** Names of partial results, apart from those of all other data. */
const FIRST_NAME = 2 ** 30;

/** Makes and closes data. */
interface DataMaker {
  empty(element: ElementType, length: number, options: DatumOptions, shared?: number): Datum;
  end(datum: Datum): void;
}

/** The partial results of one datum. */
interface Kept {
  /** Those that no reduction uses, by rank. */
  readonly free: Map<number, Datum[]>;
  made: number;
}

export class Partials {
  private readonly data: DataMaker;
  private readonly peers: Ranks | undefined;
  private readonly mostBytes: number;
  private readonly mostInAll: number;
  private readonly of: WeakMap<Datum, Kept> = new WeakMap();
  /** Those of this rank that no reduction uses, and others that were closed with their data; and their bytes. */
  private readonly idle: Set<Datum> = new Set();
  private idleBytes = 0;

  /** `host`: bytes of host memory; undefined to keep also large ones, for a plan that is played again and again. */
  constructor(data: DataMaker, peers: Ranks | undefined, host: number | undefined) {
    this.data = data;
    this.peers = peers;
    this.mostBytes = host === undefined ? Number.POSITIVE_INFINITY : KEPT_BYTES;
    this.mostInAll = host === undefined ? Number.POSITIVE_INFINITY : host * KEPT_SHARE;
  }

  /** A partial result of a datum on a rank. Its value is that of an earlier reduction, or it has none. */
  take(datum: Datum, rank: number): Datum {
    const kept = this.of.get(datum) ?? { free: new Map(), made: 0 };
    this.of.set(datum, kept);
    const free = kept.free.get(rank)?.pop();
    if (free !== undefined) {
      this.isIdle(free, false);
      return free;
    }
    const { element, length, rows } = datum;
    const { peers } = this;
    const name = `${datum.name}, partial ${kept.made++}`;
    const made =
      peers === undefined
        ? this.data.empty(element, length, { name, rows })
        : this.data.empty(
            element,
            length,
            { name: `${name} of rank ${rank}`, rows, rank },
            nameOnRanks(datum, peers, rank),
          );
    datum.partials ??= new Set();
    datum.partials.add(made);
    made.partialOf = datum;
    return made;
  }

  /** No reduction needs the partial result of a datum any more. */
  giveBack(datum: Datum, partial: Datum): void {
    const kept = this.of.get(datum);
    if (kept === undefined || partial.closed) return;
    const { rank, bytes } = partial;
    const isHere = this.peers === undefined || this.peers.rank === rank;
    if (isHere && (bytes > this.mostBytes || !this.hasRoom(bytes))) {
      datum.partials?.delete(partial);
      this.data.end(partial);
      return;
    }
    if (isHere) this.isIdle(partial, true);
    const free = kept.free.get(rank);
    if (free === undefined) kept.free.set(rank, [partial]);
    else free.push(partial);
  }

  /** Whether one more partial result may be kept. */
  private hasRoom(bytes: number): boolean {
    if (!guards.fewPartials || this.idleBytes + bytes <= this.mostInAll) return true;
    for (const partial of this.idle) if (partial.closed) this.isIdle(partial, false);
    return this.idleBytes + bytes <= this.mostInAll;
  }

  private isIdle(partial: Datum, idle: boolean): void {
    if (idle === this.idle.has(partial)) return;
    const bytes = roundedBytes(partial.bytes);
    this.idleBytes += idle ? bytes : -bytes;
    if (idle) this.idle.add(partial);
    else this.idle.delete(partial);
  }
}

/**
 * The name of the partial results of a datum on a rank. They share it: only one of them travels, the one into which the
 * rank combines the others.
 */
function nameOnRanks(datum: Datum, { plan, size }: Ranks, rank: number): number {
  const gid = plan.data.gid[datum.row];
  // The name of a part is large. Two data may have the same name: transfers are matched by their order in the program.
  if (datum.whole !== undefined) return FIRST_NAME + (mix(mix(0, gid), rank) & (FIRST_NAME - 1));
  const name = FIRST_NAME + gid * size + rank;
  if (name < 2 ** 31) return name;
  throw new HeadraceError(
    'ERR_TOO_MANY_DATA',
    `a reduction into datum '${datum.name}' needs names for its partial results, and there are too many data before it: ${gid}`,
    { datum: datum.name, remedy: 'make the datum before the others' },
  );
}
