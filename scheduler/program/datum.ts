// A datum as the program sees it: a named array of elements that tasks read and write, in any memory space.
// Invariant: a datum belongs to one runtime; once closed it names no row of the directory any more.
import type { DatumId, TaskId } from '../../devices/handles.js';
import type { DatumInfo } from '../../devices/memory/directory.js';
import type { DatumOptions } from './datum-options.js';
import type { ElementArray, ElementType } from './element-type.js';
import { elementBytes } from './element-type.js';
import { type BlockOptions, blockOf, rangeOf } from './parts/mistakes.js';
import type { Region } from './parts/region.js';
import type { PartOfBody, View } from './parts/view.js';

/** The owner of the data of one runtime. @internal */
export interface DatumOwner {
  /** Tokens of open data, by element type. */
  readonly tokens: Readonly<Record<ElementType, object>>;
  /** Those that are open. */
  readonly reductions: { use(datum: Datum): void; concerns(d: DatumId): boolean };
  readonly parts: {
    gather(data: readonly Datum[]): void;
    play(datum: Datum, writes: (datum: Datum) => boolean): void;
  };
  /** The part with that region of an open datum, which may be a part itself. */
  partOf(datum: Datum, region: Region): Datum;
  rankOf(datum: Datum): number;
  /** A datum that has no copy until a task writes it. */
  empty(element: ElementType, length: number, options: DatumOptions | undefined): Datum;
  /** The same for what the body of a task of this rank spawns. No other rank knows it, whoever calls. */
  temporary(element: ElementType, length: number, name: string): Datum;
  /** The body of `task` has made a datum for what it spawns. */
  closeWith(task: TaskId, datum: Datum): void;
  readDatum<E extends ElementType>(datum: Datum<E>): Promise<ElementArray<E>>;
  /** The first element of what `readDatum` gives, once the argument is known to be a datum of this owner. */
  firstOf(datum: unknown): Promise<number>;
  setDatum<E extends ElementType>(datum: Datum<E>, values: ElementArray<E>): Promise<void>;
  restoreDatum(datum: Datum): Promise<void>;
  adviseDatum(datum: Datum, device: number | 'host'): void;
  locationsOf(datum: Datum): string[];
  closeDatum(datum: Datum): void;
  /** The call of `close()`; what is returned gives the datum up. */
  closingLater(datum: Datum): () => void;
}

/** A named array of elements that tasks read and write, in any memory space. Made by `Runtime.data`. */
export class Datum<E extends ElementType = ElementType> implements DatumInfo {
  readonly name: string;
  readonly element: E;
  /** Number of elements. */
  readonly length: number;
  /** Rows of the column-major matrix that the elements form: `length` unless the datum was made with `rows`. */
  readonly rows: number;
  /** @internal */
  readonly owner: DatumOwner;
  /** Row in the directory. @internal */
  readonly row: DatumId;
  /** The token of its runtime and element type while the datum is open. One comparison checks all three. @internal */
  token: object | undefined;
  /** Array over the host copy and its offset; kept because making views is slow. @internal */
  hostArray: ElementArray<E> | undefined;
  /** @internal */
  hostOffset = -1;
  /** The partial results of reductions into it, which end with it (partials.ts). @internal */
  partials: Set<Datum> | undefined;
  /** The datum whose partial result it is. @internal */
  partialOf: Datum | undefined;

  /** The task whose body has made it, for what it spawns. @internal */
  madeBy: TaskId | undefined;
  /** It is a part that the body of a task has made, for what it spawns (parts/body-parts.ts). @internal */
  ofBody: PartOfBody<Datum> | undefined;

  /** @internal */
  loss: DatumInfo['loss'];
  /** @internal */
  partsUntil: DatumInfo['partsUntil'];
  /** Its place among the parts of a datum, if there are parts. @internal */
  view: View<Datum> | undefined;

  /** @internal Use `runtime.data`. */
  constructor(
    owner: DatumOwner,
    name: string,
    element: E,
    length: number,
    rows: number,
    row: (d: Datum<E>) => DatumId,
  ) {
    this.owner = owner;
    this.token = owner.tokens[element];
    this.name = name;
    this.element = element;
    this.length = length;
    this.rows = rows;
    this.row = row(this);
  }

  /** Columns of the matrix that the elements form. */
  get columns(): number {
    return this.length / this.rows;
  }

  /** Size in bytes. */
  get bytes(): number {
    return this.length * elementBytes(this.element);
  }

  /** Rank that owns it: the rank that runs the tasks that write it. 0 in a single process. */
  get rank(): number {
    return this.owner.rankOf(this);
  }

  /** True after `close`. */
  get closed(): boolean {
    return this.token === undefined;
  }

  /** The datum of which this is a part; undefined if it is none. */
  get whole(): Datum<E> | undefined {
    const whole = (this.ofBody?.whole ?? this.view?.family.whole.datum) as Datum<E> | undefined;
    return whole === this ? undefined : whole;
  }

  /**
   * The part of `length` elements from element `from` on: a datum whose elements are those of this one. Tasks may use parts
   * beside each other and beside the whole datum. Every task sees what the tasks inserted before it have written,
   * by whatever part. The same call gives the same datum until that is closed. If the datum is a matrix, the elements are
   * whole columns, or lie in one.
   *
   * A part has memory of its own, into which its elements are copied where the newest version is; nothing else travels between
   * devices (docs/guide.md, "Partition").
   *
   * @throws HeadraceError `ERR_OPTION` for elements that the datum does not have, `ERR_DATUM_CLOSED`, `ERR_TASK_TOO_LARGE` if a
   *   device can hold the datum, but not the part beside it
   */
  part(from: number, length: number): Datum<E> {
    return this.owner.partOf(this, rangeOf(this, from, length)) as Datum<E>;
  }

  /**
   * The part of `rows` rows from row `row` on and `columns` columns from column `column` on of the column-major matrix that the
   * elements form (option `rows` of `runtime.data`). Its columns follow each other in its own memory without gaps. Otherwise
   * as `part`, with the same errors.
   */
  block(options: BlockOptions): Datum<E> {
    return this.owner.partOf(this, blockOf(this, options)) as Datum<E>;
  }

  /**
   * The value after all tasks inserted so far that write it, as a new array.
   *
   * On several ranks every rank must call it at the same place of the program, and every rank gets the value. If a run
   * fails before the value has come from its rank, the promise rejects with `ERR_PEER_FAILED`.
   *
   * Rejects with `ERR_DATUM_POISONED` when the last of these tasks failed, was cancelled or was dropped, also when the
   * older value is still there (docs/guide.md, "Abort and failure"); with `ERR_NEVER_WRITTEN` when nothing has written
   * the datum; with `ERR_DATUM_CLOSED` after `close`; with `ERR_PROGRAM_MISMATCH` when the ranks do not make the same
   * calls.
   */
  read(): Promise<ElementArray<E>> {
    return this.owner.readDatum(this);
  }

  /**
   * Overwrites the value, in program order: tasks inserted before see the old value, tasks inserted later the new one.
   * The array is copied before the call returns. On several ranks every rank must call it; the owner's array is used.
   */
  set(values: ElementArray<E>): Promise<void> {
    return this.owner.setDatum(this, values);
  }

  /**
   * Restores the value from before the tasks that were cancelled while they held the datum, in program order. So a
   * program can continue after a cancelled run with the results so far. Without a cancelled task the value stays as it
   * is. On several ranks every rank must call it.
   *
   * Rejects with `ERR_DATUM_POISONED` when that value is gone: a task failed while it wrote the datum, or a task was
   * cancelled after it had received the memory to overwrite, or on several ranks the value was not with the owner of the datum. Also rejects for the reasons of `read`. On several ranks it rejects with
   * `ERR_DATUM_POISONED` on the owner only, and resolves on the others: a program that decides by it asks `read`, which has the
   * same outcome on all ranks.
   */
  restore(): Promise<void> {
    return this.owner.restoreDatum(this);
  }

  /** Advises the device that runs tasks that write this datum: a GPU number from 0, or 'host'. */
  advise(device: number | 'host'): void {
    this.owner.adviseDatum(this, device);
  }

  /** Names of the devices that hold the current value, the owner first. For inspection. */
  locations(): string[] {
    return this.owner.locationsOf(this);
  }

  /**
   * Frees the datum's memory on all devices when the tasks that use it are over. Later tasks cannot use the datum.
   * Idempotent.
   */
  close(): void {
    this.owner.closeDatum(this);
  }
}
