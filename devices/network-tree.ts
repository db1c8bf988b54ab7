// How one version reaches many ranks: a binomial tree, in which every rank that has the datum passes it on to half of
// those it is responsible for, so that d destinations need about log2(d) steps and no rank sends more than that many
// times. Pure.

/**
 * Splits destinations, given as pairs (rank, sequence), into branches: each names first the rank to send to, then the
 * pairs that rank has to serve. Below `from` destinations every one is a branch of its own.
 */
export function tree(destinations: readonly number[], from: number): number[][] {
  const branches: number[][] = [];
  const count = destinations.length / 2;
  if (count < from) {
    for (let i = 0; i < count; i++) branches.push([destinations[2 * i], destinations[2 * i + 1]]);
    return branches;
  }
  // The largest branch first: it has the longest way.
  for (let first = 0, left = count; left > 0; ) {
    const size = left >> 1 === 0 ? 1 : (left + 1) >> 1;
    branches.push(destinations.slice(2 * first, 2 * (first + size)));
    first += size;
    left -= size;
  }
  return branches;
}
