// A datum and its parts as views of the same elements, each with memory of its own.

import type { TaskId } from '../../../devices/handles.js';
import type { Loss } from './losses.js';
import type { Region } from './region.js';
import type { RegionIndex } from './region-index.js';
import type { Versions } from './versions.js';

/** A datum that has parts, or a part: its place in the whole datum. `D` is the class of data. */
export interface View<D> {
  readonly datum: D;
  readonly region: Region;
  readonly family: Family<D>;
  /**
   * No task or call of the program has used it: it serves take-overs by way of it, and its version ends after that. The same on all
   * ranks, so that they infer the same take-overs.
   */
  isOwn: boolean;
  /** The program has it: it is not closed before the program closes it. */
  isHeld: boolean;
  /** Number of open plans that have it (plan-parts.ts). */
  plans: number;
  /** A task or call of the program has used it in this era, and not only plans. The same on all ranks. */
  isCalled: boolean;
}

/** A whole datum and its parts. */
export interface Family<D> {
  readonly whole: View<D>;
  /** By their regions; the datum itself is not among them. */
  readonly parts: Map<string, View<D>>;
  /** The datum and its parts by place. */
  readonly views: RegionIndex<View<D>>;
  /** On several ranks a failed run ends the record (on-ranks.ts). */
  versions: Versions<View<D>>;
  /** The program and plans have closed all parts (ended-parts.ts). */
  isEnded: boolean;
  /** The views that have not got what they should have taken over, and what of it is not settled (losses.ts). */
  readonly broken: Map<View<D>, readonly Loss[]>;
}

/** A part of use to the family of one task only (body-parts.ts). */
export interface PartOfBody<D> {
  readonly task: TaskId;
  /** The datum of that task, or of its family, of which it is a part. */
  readonly whole: D;
  readonly region: Region;
}
