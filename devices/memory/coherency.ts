// Coherency of one copy of a datum, as one pure function of (state, event). No memory, no queues, no clock.
//
// A datum has at most one copy per memory space. Invariants over the copies of one datum (checked by
// Directory.validate):
//   - while the datum has a value, exactly one copy is `owned`: the engine must not drop it;
//   - `shared` copies hold the same version as the owned one and may be dropped at any time;
//   - `arriving` copies will hold that version once their write event has happened; a user that is ordered
//     after that event may use them as if they were shared;
//   - at most one copy is written between two versions (one writer).

/** State of a copy. */
export const CopyState = { invalid: 0, arriving: 1, shared: 2, owned: 3 } as const;
export type CopyState = (typeof CopyState)[keyof typeof CopyState];

/** Events of a copy. */
export const CopyEvent = {
  /** A transfer into this copy was commanded. */
  fetch: 0,
  /** A transfer into this copy finished; the copy still holds the version that was sent. */
  arrived: 1,
  /** A task here, or a transfer out of here, reads the copy. */
  read: 2,
  /** A task here writes the copy: a new version exists, and only here. */
  write: 3,
  /** A task in another space writes the datum. */
  remoteWrite: 4,
  /** Another valid copy becomes the owner. */
  yieldOwnership: 5,
  /** This copy becomes the owner. */
  takeOwnership: 6,
  /** The block is given up. */
  drop: 7,
  /** The bytes are wrong: a transfer or a writer failed. */
  fail: 8,
} as const;
export type CopyEvent = (typeof CopyEvent)[keyof typeof CopyEvent];

/** Result of an event that must not happen in a state. */
export const ILLEGAL = 255;

const { invalid: I, arriving: A, shared: S, owned: O } = CopyState;
const X = ILLEGAL;

/** TABLE[event][state]: next state. Columns: invalid, arriving, shared, owned. */
const TABLE: readonly (readonly [number, number, number, number])[] = [
  [A, X, X, X], // fetch: only an invalid copy
  [I, S, S, O], // arrived: nothing if overwritten elsewhere meanwhile, or already written here
  [X, A, S, O], // read: never an invalid copy; reading does not change the owner
  [O, O, O, O], // write
  [I, I, I, I], // remoteWrite
  [X, X, X, S], // yieldOwnership: only the owner can
  [X, O, O, O], // takeOwnership: only a copy with the value can (arriving: its event is on record)
  [I, X, I, X], // drop: never the owner, never while bytes are on their way
  [I, I, I, I], // fail
];

const FLAT: Uint8Array = Uint8Array.from(TABLE.flat());

/** Next state of a copy, or ILLEGAL. Pure. */
export function nextState(state: number, event: number): number {
  return FLAT[event * 4 + state];
}
