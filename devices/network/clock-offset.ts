// The offset between the clocks of two processes. One asks the other for its time and assumes that the answer was taken in
// the middle of the round trip (Cristian, "Probabilistic clock synchronization", 1989).

/** A measurement; times in nanoseconds. */
export interface ClockOffset {
  /** Own time to which it belongs. */
  readonly at: number;
  /** The other clock less this one. */
  readonly offset: number;
  /** Bound of the error: half the round trip. */
  readonly error: number;
}

/** From a question at `asked`, answered at `there` on the other clock, with the answer here at `now`. */
export function clockOffset(asked: number, there: number, now: number): ClockOffset {
  const error = (now - asked) / 2;
  return { at: asked + error, offset: there - asked - error, error };
}
