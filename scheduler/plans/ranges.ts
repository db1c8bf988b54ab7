// The byte ranges that the commands of a plan use, cut at each other's ends.
//
// A block of memory may serve several data in turn, and blocks of different sizes may overlap. Two ranges have bytes in
// common exactly when they have a segment in common. Ranges that overlap, directly or through others, form a region: the
// unit that is placed when the plan is played.
import { HOST, type SpaceId } from '../../devices/handles.js';

export class Ranges {
  /** Per range. */
  readonly space: SpaceId[] = [];
  readonly offset: number[] = [];
  readonly bytes: number[] = [];
  /** Segments `firstSegment[r]` to `lastSegment[r]`, both included. */
  firstSegment: Int32Array = new Int32Array(0);
  lastSegment: Int32Array = new Int32Array(0);
  region: Int32Array = new Int32Array(0);
  segments = 0;
  /** Per region. */
  regions = 0;
  readonly regionSpace: SpaceId[] = [];
  readonly regionOffset: number[] = [];
  readonly regionBytes: number[] = [];
  private readonly known: Map<number, number[]>[] = [];

  get count(): number {
    return this.space.length;
  }

  /** The number of a range. */
  of(space: SpaceId, offset: number, bytes: number): number {
    const inSpace = this.known[space] ?? new Map<number, number[]>();
    this.known[space] = inSpace;
    const here = inSpace.get(offset);
    for (let i = 0; here !== undefined && i < here.length; i++)
      if (this.bytes[here[i]] === bytes) return here[i];
    const r = this.space.length;
    this.space.push(space);
    this.offset.push(offset);
    this.bytes.push(bytes);
    if (here === undefined) inSpace.set(offset, [r]);
    else here.push(r);
    return r;
  }

  /** All ranges are known: cuts them. */
  cut(): void {
    const n = this.count;
    this.firstSegment = new Int32Array(n);
    this.lastSegment = new Int32Array(n);
    this.region = new Int32Array(n);
    const spaces = this.known.length;
    for (let s = HOST; s < spaces; s++) {
      const ranges = [...(this.known[s]?.values() ?? [])].flat();
      ranges.sort((a, b) => this.offset[a] - this.offset[b]);
      this.cutSpace(s, ranges);
    }
  }

  private cutSpace(s: SpaceId, ranges: readonly number[]): void {
    const ends = Float64Array.from(
      new Set(ranges.flatMap((r) => [this.offset[r], this.offset[r] + this.bytes[r]])),
    ).sort();
    const at = new Map<number, number>();
    for (let i = 0; i < ends.length; i++) at.set(ends[i], this.segments + i);
    let end = Number.NEGATIVE_INFINITY;
    for (const r of ranges) {
      const from = this.offset[r];
      const to = from + this.bytes[r];
      this.firstSegment[r] = at.get(from) as number;
      this.lastSegment[r] = (at.get(to) as number) - 1;
      if (from >= end) {
        this.regions++;
        this.regionSpace.push(s);
        this.regionOffset.push(from);
        this.regionBytes.push(0);
      }
      const g = this.regions - 1;
      this.region[r] = g;
      end = Math.max(end, to);
      this.regionBytes[g] = end - this.regionOffset[g];
    }
    this.segments += ends.length;
  }
}

/** The accesses of each command to ranges, in order: range * 2, plus 1 for a write. */
export interface Accesses {
  /** Those of command c: `first[c]` to `first[c + 1]`. */
  readonly first: Int32Array;
  readonly of: Int32Array;
  /** 1 where the command reads what lies there. */
  readonly reads: Uint8Array;
}
