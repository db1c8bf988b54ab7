// The next uses of all copies on the GPUs in a sequence of tasks that is known as a whole, with their devices. The planner knows it from
// its second pass over the tasks on, and its eviction compares all copies with it (L. A. Belady, 1966), where the engine
// looks ahead no further than some tasks that were inserted (stages/next-use.ts).
//
// Invariant: `place` is at most the number of the first task that was not issued, and only grows. So a use is passed over only when
// its task was issued.
import type { DatumId, SpaceId } from '../../devices/handles.js';
import type { Outlook } from '../../stages/next-use.js';
import type { Insertions } from './insertions.js';

/** Device of each insertion; the host for those that need no memory of GPUs. */
export type DeviceOf = ArrayLike<number>;

export class WholeFuture implements Outlook {
  /** Copies are compared without a limit. */
  readonly candidates: number = Number.POSITIVE_INFINITY;
  private readonly spaces: number;
  /** Uses of copy c: `at[first[c]]` to `at[first[c + 1] - 1]`, ascending. */
  private readonly first: Int32Array;
  private readonly at: Int32Array;
  /** Of each copy, the first use that was not passed over. */
  private readonly next: Int32Array;
  private place = 0;
  /** Whether insertion `n` was issued. */
  private readonly isIssued: (n: number) => boolean;
  private readonly count: number;

  constructor(
    insertions: Pick<Insertions, 'count' | 'classOf' | 'datum'>,
    deviceOf: DeviceOf,
    of: { readonly data: number; readonly spaces: number },
    isIssued: (n: number) => boolean,
  ) {
    const { count } = insertions;
    const { spaces } = of;
    const first = new Int32Array(of.data * spaces + 1);
    const each = (use: (copy: number, n: number) => void): void => {
      for (let n = 0; n < count; n++) {
        const s = deviceOf[n];
        if (s <= 0) continue;
        const { modes } = insertions.classOf(n);
        for (let i = 0; i < modes.length; i++) use(insertions.datum(n, i) * spaces + s, n);
      }
    };
    each((copy) => {
      first[copy + 1]++;
    });
    for (let c = 1; c < first.length; c++) first[c] += first[c - 1];
    const at = new Int32Array(first[first.length - 1]);
    const next = first.slice(0, -1);
    each((copy, n) => {
      at[next[copy]++] = n;
    });
    this.spaces = spaces;
    this.first = first;
    this.at = at;
    this.next = first.slice(0, -1);
    this.isIssued = isIssued;
    this.count = count;
  }

  look(): void {
    while (this.place < this.count && this.isIssued(this.place)) this.place++;
  }

  nextUse(d: DatumId, s: SpaceId): number {
    const { first, at, next, place } = this;
    const c = d * this.spaces + s;
    const end = first[c + 1];
    let use = next[c];
    while (use < end && at[use] < place) use++;
    next[c] = use;
    return use < end ? at[use] - place : Number.POSITIVE_INFINITY;
  }
}
