// The values that flow between the tasks of an instance: a version of a datum each.
//
// The engine orders tasks by their data in the order of insertion. So a task may be inserted only while the datum has the version
// that it uses, and these rules see to it:
// 1. A version has at most one writer, the task that overwrites it. A second one is a mistake.
// 2. The readers to which the task that made a version sends it (or a reader passes it on) are inserted before its writer.
// 3. Any other use of a version that was overwritten is an error that names both tasks: a datum that tasks read as it was
//    before the graph, and that another task of the graph writes, while nothing in the graph orders them.
// Invariant: `readers` counts the tasks that have been sent the value and are not inserted. The writer gets the value once,
// when `readers` is 0 and all targets of its maker are known.

import type { Datum } from '../program/datum.js';
import type { GraphTask } from './graph-task.js';

/** A datum that the instance uses. @internal */
export class UsedDatum {
  readonly datum: Datum;
  /** The graph has made it, and frees it. */
  readonly isTemporary: boolean;
  /** Number of its overwritings so far. */
  version = 0;
  /** The last task that wrote it. */
  writer: GraphTask | undefined;

  constructor(datum: Datum, isTemporary: boolean) {
    this.datum = datum;
    this.isTemporary = isTemporary;
  }
}

/** A version of a datum on its way from its maker to the tasks that use it. As in GraphTask, the constructor writes each field once. @internal */
export class Value {
  declare readonly of: UsedDatum;
  declare version: number;
  declare readers: number;
  declare writer: GraphTask | undefined;
  /** The writer has the value, or the temporary is freed. */
  declare isOver: boolean;

  constructor(of: UsedDatum) {
    this.of = of;
    this.version = of.version;
    this.readers = 0;
    this.writer = undefined;
    this.isOver = false;
  }
}
