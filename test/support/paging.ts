// The fewest misses that any replacement can have, by trying every choice. It does not use the rule under test.

/**
 * Data fetched at least when `sequence` is accessed one by one, `frames` of them fit at a time, and nothing is there at
 * first.
 */
export function fewestMisses(sequence: readonly number[], frames: number): number {
  // Contents, as bits, with the fewest misses that lead to them.
  let reached = new Map<number, number>([[0, 0]]);
  for (const d of sequence) {
    const next = new Map<number, number>();
    const offer = (contents: number, misses: number): void => {
      const known = next.get(contents);
      if (known === undefined || misses < known) next.set(contents, misses);
    };
    for (const [contents, misses] of reached) {
      if ((contents >> d) & 1) {
        offer(contents, misses);
        continue;
      }
      const there = [...Array(31).keys()].filter((e) => (contents >> e) & 1);
      if (there.length < frames) offer(contents | (1 << d), misses + 1);
      else for (const e of there) offer((contents & ~(1 << e)) | (1 << d), misses + 1);
    }
    reached = next;
  }
  return Math.min(...reached.values());
}
