// A datum and its parts as views of the same elements, each with memory of its own.

import type { Loss } from './losses.js';
import type { Region } from './region.js';
import type { RegionIndex } from './region-index.js';
import type { Versions } from './versions.js';

/** A datum that has parts, or a part: its place in the whole datum. `D` is the class of data. */
export interface View<D> {
  readonly datum: D;
  readonly region: Region;
  readonly family: Family<D>;
  /** It was made for a take-over by way of it, and is closed after that. */
  isOwn: boolean;
}

/** A whole datum and its parts. */
interface Family<D> {
  readonly whole: View<D>;
  /** By their regions; the datum itself is not among them. */
  readonly parts: Map<string, View<D>>;
  /** The datum and its parts by place. */
  readonly views: RegionIndex<View<D>>;
  /** On several ranks a failed run ends the record (on-ranks.ts). */
  versions: Versions<View<D>>;
  /** The views that have not got what they should have taken over, and what of it is not settled (losses.ts). */
  readonly broken: Map<View<D>, readonly Loss[]>;
}
