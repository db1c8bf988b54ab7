// The path of one version to many ranks: a binomial tree. Every rank that has the datum passes it on to half of
// its part of the ranks. So d destinations need about log2(d) steps, and no rank sends more than that many times. Pure.

/**
 * Splits destinations, given as pairs (rank, sequence), into branches. A branch names first the receiving rank, then the
 * pairs that this rank serves. Below `from` destinations every one is a branch of its own.
 */
export function tree(destinations: readonly number[], from: number): number[][] {
  const branches: number[][] = [];
  const count = destinations.length / 2;
  if (count < from) {
    for (let i = 0; i < count; i++) branches.push([destinations[2 * i], destinations[2 * i + 1]]);
    return branches;
  }
  // The largest branch first: it has the longest path.
  for (let first = 0, left = count; left > 0; ) {
    const size = left >> 1 === 0 ? 1 : (left + 1) >> 1;
    branches.push(destinations.slice(2 * first, 2 * (first + size)));
    first += size;
    left -= size;
  }
  return branches;
}
