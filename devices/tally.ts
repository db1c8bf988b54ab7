// The number of entries in several lists together. A pass looks at this number, and at the lists only if it is not 0: most
// lists are empty in most passes, and a machine with many GPUs has hundreds of them.
//
// Invariant: every list that was made with the tally adds and takes its own entries.

export class Tally {
  count = 0;
}
