// The order that edges give: a topological order, a cycle if there is none, and which task comes before which.

/** A topological order; fewer numbers than tasks if there is a cycle. @internal */
export function topological(after: readonly (readonly number[])[]): number[] {
  const missing = new Int32Array(after.length);
  for (const next of after) for (const n of next) missing[n]++;
  const order: number[] = [];
  for (let n = 0; n < after.length; n++) if (missing[n] === 0) order.push(n);
  for (let at = 0; at < order.length; at++)
    for (const n of after[order[at]]) if (--missing[n] === 0) order.push(n);
  return order;
}

/** A cycle among the tasks that are not in the order; first and last are the same. @internal */
export function cycleOf(after: readonly (readonly number[])[], order: readonly number[]): number[] {
  const before: number[][] = after.map(() => []);
  after.forEach((next, n) => {
    for (const m of next) before[m].push(n);
  });
  const done = new Set(order);
  // Every task that is left has a predecessor that is left: the way back returns to a task on it.
  const path: number[] = [];
  const seen = new Map<number, number>();
  let at = after.findIndex((_, n) => !done.has(n));
  while (!seen.has(at)) {
    seen.set(at, path.length);
    path.push(at);
    at = before[at].find((n) => !done.has(n)) as number;
  }
  return [...path.slice(seen.get(at)), at].reverse();
}

/** Which task comes before which. @internal */
export class Ancestors {
  private readonly words: number;
  private readonly bits: Uint32Array;

  constructor(after: readonly (readonly number[])[], order: readonly number[]) {
    const words = Math.ceil(after.length / 32);
    this.words = words;
    this.bits = new Uint32Array(after.length * words);
    const { bits } = this;
    for (const n of order) {
      for (const m of after[n]) {
        for (let w = 0; w < words; w++) bits[m * words + w] |= bits[n * words + w];
        bits[m * words + (n >>> 5)] |= 1 << (n & 31);
      }
    }
  }

  isBefore(one: number, other: number): boolean {
    return ((this.bits[other * this.words + (one >>> 5)] >>> (one & 31)) & 1) === 1;
  }
}
