// Handles: numbers that name one thing each. Each kind is a type of its own, so that a queue where a space is wanted does
// not compile. At run time they are plain numbers.
//
// The part that counts the things makes their handles; all others pass them on. A loop over all things of a kind begins
// at its first handle and so has the right type.
declare const kind: unique symbol;

/** A number that names a thing of one kind. */
export type Handle<Kind extends string> = number & { readonly [kind]: Kind };

/** An in-order executor: its place in `Backend.queues`. */
export type QueueId = Handle<'queue'>;

/** The first of the queues. */
export const FIRST_QUEUE = 0 as QueueId;
/** No event: nothing to wait for. */
export const NO_QUEUE = -1 as QueueId;

/** A memory space: its place in `Backend.spaces`. The host comes first, then the GPUs. */
export type SpaceId = Handle<'space'>;

export const HOST = 0 as SpaceId;
/** The first of the GPUs. */
export const FIRST_GPU = 1 as SpaceId;
/** No space, where one could be. */
export const NO_SPACE = -1 as SpaceId;

/** A datum: its row in the directory. The row of a closed datum may later belong to another. */
export type DatumId = Handle<'datum'>;

/** The first row of the directory. */
export const FIRST_DATUM = 0 as DatumId;
/** No datum, where one could be. */
export const NO_DATUM = -1 as DatumId;

/** No task, where one could be. */
export const NO_TASK = 0 as TaskId;

/** A task of this rank: counts insertions from 1 and wraps as int32. Its row in the task table is `id & mask`. */
export type TaskId = Handle<'task'>;

/** A task of another rank, of which this rank knows nothing else. */
export type TaskElsewhere = Handle<'task of another rank'>;

/** Names a task in later insertions (`after`). Valid only within the runtime that returned it. */
export type TaskHandle = number & { readonly [kind]: 'task' | 'task of another rank' };

/** A typed array of handles. */
export type Column<A extends TypedArray, H extends number> = A & { [index: number]: H };

type TypedArray = Int16Array | Int32Array | Float64Array;
