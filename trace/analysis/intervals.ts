// Measures of unions of intervals, by sweeping over sorted starts and ends. No pairing of starts with ends is
// needed: only the number of open intervals at every moment matters.

/** Intervals given as two columns of equal length. */
export interface Intervals {
  readonly start: Float64Array;
  readonly end: Float64Array;
}

/** Time covered by at least one interval of `a`, of `b`, and of both at once. Copies are sorted, inputs are kept. */
export function coverage(a: Intervals, b: Intervals): { a: number; b: number; both: number } {
  const points = [a.start, a.end, b.start, b.end].map((column) => column.slice().sort());
  const at = [0, 0, 0, 0];
  const covered = { a: 0, b: 0, both: 0 };
  let inA = 0;
  let inB = 0;
  let time = Number.NEGATIVE_INFINITY;
  for (;;) {
    let next = -1;
    for (let i = 0; i < 4; i++) {
      if (at[i] < points[i].length && (next < 0 || points[i][at[i]] < points[next][at[next]])) {
        next = i;
      }
    }
    if (next < 0) return covered;
    const moment = points[next][at[next]++];
    if (inA > 0) covered.a += moment - time;
    if (inB > 0) covered.b += moment - time;
    if (inA > 0 && inB > 0) covered.both += moment - time;
    time = moment;
    if (next === 0) inA++;
    else if (next === 1) inA--;
    else if (next === 2) inB++;
    else inB--;
  }
}
