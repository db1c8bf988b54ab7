// A datum as the program sees it: a named array of elements that tasks read and write, wherever its copies are.
// Invariant: a datum belongs to one runtime; once closed it names no row of the directory any more.
import type { DatumInfo } from '../devices/directory.js';
import type { ElementArray, ElementType } from './element-type.js';
import { elementBytes } from './element-type.js';
import type { Runtime } from './runtime.js';

/** A named array of elements that tasks read and write, wherever its copies are. Made by `Runtime.data`. */
export class Datum<E extends ElementType = ElementType> implements DatumInfo {
  readonly name: string;
  readonly element: E;
  /** Number of elements. */
  readonly length: number;
  /** Rows of the column-major matrix that the elements form: `length` unless the datum was made with `rows`. */
  readonly rows: number;
  /** @internal */
  readonly runtime: Runtime;
  /** Row in the directory. @internal */
  readonly row: number;
  /** What its runtime gives data of this element type as long as they are open: one look tells all three. @internal */
  token: object | undefined;
  /** Array over the host copy and the offset it is for, kept because making views is slow. @internal */
  hostArray: ElementArray<E> | undefined;
  /** @internal */
  hostOffset = -1;

  /** @internal Use `runtime.data`. */
  constructor(
    runtime: Runtime,
    name: string,
    element: E,
    length: number,
    rows: number,
    row: (d: Datum<E>) => number,
  ) {
    this.runtime = runtime;
    this.token = runtime.tokens[element];
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

  /** Rank that owns it: where tasks that write it run. 0 in a single process. */
  get rank(): number {
    return this.runtime.rankOf(this);
  }

  /** True after `close`. */
  get closed(): boolean {
    return this.token === undefined;
  }

  /**
   * The value after every task inserted so far that writes it, as a new array.
   *
   * On several ranks every rank must call it at the same place of the program, and every rank gets the value.
   *
   * Rejects with `ERR_DATUM_POISONED` when the last of these tasks failed, was cancelled or was dropped, also when the
   * value from before is still there (docs/guide.md, "Abort and failure"), with `ERR_NEVER_WRITTEN` when nothing has
   * written the datum, with `ERR_DATUM_CLOSED` after `close`, with `ERR_PROGRAM_MISMATCH` when the ranks do not make the
   * same calls.
   */
  read(): Promise<ElementArray<E>> {
    return this.runtime.readDatum(this);
  }

  /**
   * Overwrites the value, in program order: tasks inserted before see the old value, tasks inserted later the new
   * one. The array is copied before the call returns. On several ranks every rank must call it; the owner's array counts.
   */
  set(values: ElementArray<E>): Promise<void> {
    return this.runtime.setDatum(this, values);
  }

  /**
   * Takes the value from before the tasks that were cancelled for the datum's value, in program order: to go on after
   * a cancelled run with what it had done until then. Without a cancelled task the value stays as it is. On
   * several ranks every rank must call it.
   *
   * Rejects with `ERR_DATUM_POISONED` when that value is gone: a task failed while it wrote the datum, or was cancelled when
   * it had been given the memory to overwrite. Further as `read` does.
   */
  restore(): Promise<void> {
    return this.runtime.restoreDatum(this);
  }

  /** Advises the device on which tasks that write this datum should run: a GPU number from 0, or 'host'. */
  advise(device: number | 'host'): void {
    this.runtime.adviseDatum(this, device);
  }

  /** Names of the devices that hold the current value now, the owner first. For inspection. */
  locations(): string[] {
    return this.runtime.locationsOf(this);
  }

  /**
   * Frees the datum's memory everywhere once the tasks that use it are over. It cannot be used in new tasks from
   * here on. Idempotent.
   */
  close(): void {
    this.runtime.closeDatum(this);
  }
}
