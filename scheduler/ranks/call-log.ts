// The calls of a program that every rank must make. The program itself makes its calls in one order. The program
// function of each run makes its calls in an order of its own, which may interleave with the rest in any way.
// Invariant: positions count from the first call, also when old calls were forgotten.

/** Kinds of calls. */
export const CallKind = {
  data: 1,
  read: 2,
  set: 3,
  close: 4,
  run: 5,
  seal: 6,
  end: 7,
  restore: 8,
  /** Creation of data that each rank makes when it uses them. */
  shared: 9,
  /** Their end. */
  closeShared: 10,
} as const;

/** The object of a call, in the user's words. */
export interface CallObject {
  readonly name: string;
  readonly element?: string;
  readonly length?: number;
}

/** A matrix whose tiles each rank makes when it uses them. */
export interface SharedObject {
  readonly name: string;
  readonly element: string;
  /** Rows and columns, order of a tile, and the other numbers that must be the same on all ranks. */
  readonly shape: readonly number[];
}

/** One call. Two ranks make the same call if kind and both numbers are equal. */
export interface Call {
  readonly kind: number;
  /** Number of the datum or run that is the same on all ranks; for a creation, its size and element type. */
  readonly subject: number;
  /** Owner of a datum that is created; 1 for a pruned run. */
  readonly more: number;
  readonly object: CallObject;
}

/** Limit for calls that are kept besides the calls that agree; the oldest are dropped first. */
const MOST_CALLS = 65_536;
const DROPPED_AT_ONCE = 8192;

export function mix(hash: number, value: number): number {
  const h = Math.imul(hash ^ value, 0x9e3779b1);
  return (h ^ (h >>> 15)) | 0;
}

export class CallLog {
  /** The place of the calls in words; '' for the program itself. */
  readonly where: string;
  /** Position of the oldest call that is kept. */
  first = 0;
  /** Number of all calls so far. */
  digest = 0;
  private readonly calls: Call[] = [];

  constructor(where: string) {
    this.where = where;
  }

  get length(): number {
    return this.first + this.calls.length;
  }

  add(kind: number, subject: number, more: number, object: CallObject): void {
    this.calls.push({ kind, subject, more, object });
    this.digest = mix(mix(mix(this.digest, kind), subject | 0), more);
    if (this.calls.length > MOST_CALLS) this.forget(this.first + DROPPED_AT_ONCE);
  }

  /** The call at a position; undefined when it was forgotten or not made yet. */
  at(position: number): Call | undefined {
    return this.calls[position - this.first];
  }

  /** No rank asks for calls before `position` any more. */
  forget(position: number): void {
    if (position <= this.first) return;
    this.calls.splice(0, position - this.first);
    this.first = position;
  }

  /** `call 3`, or `call 2 in the program of run 'solve'`. */
  place(position: number): string {
    return `call ${position + 1}${this.where}`;
  }
}

/** A call in the user's words. */
export function wordsOf({ kind, more, object }: Call): string {
  const datum = `datum '${object.name}'`;
  switch (kind) {
    case CallKind.data:
      return `creation of ${datum} (${object.length} elements of ${object.element}, rank ${more})`;
    case CallKind.read:
      return `read of ${datum}`;
    case CallKind.set:
      return `set of ${datum}`;
    case CallKind.restore:
      return `restore of ${datum}`;
    case CallKind.close:
      return `close of ${datum}`;
    case CallKind.shared:
      return `creation of matrix '${object.name}' (${object.length} tiles of ${object.element})`;
    case CallKind.closeShared:
      return `close of matrix '${object.name}'`;
    case CallKind.run:
      return `run '${object.name}'`;
    case CallKind.seal:
      return 'the end of that program';
    default:
      return 'close of the runtime';
  }
}
