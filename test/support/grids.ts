// How much of a grid of cells or seeds the tests try. A normal run has every path and every boundary; HEADRACE_TEST_FULL=1 tries
// everything (CONTRIBUTING.md).
export const isFull: boolean = process.env['HEADRACE_TEST_FULL'] === '1';

/** The whole of a grid, or in a normal run its part. */
export function partOf<T>(whole: T, part: T): T {
  return isFull ? whole : part;
}
