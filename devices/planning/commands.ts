// The commands that the engine wrote while it planned, in the order of issue, as columns.
import type { Column, QueueId } from '../handles.js';
import { resized } from '../resized.js';

/** What belongs to a copy: it has no task. */
export const NO_INSERTION = -1;

/** The columns that the lists of a plan are made of. */
export type CommandColumns = Readonly<
  Pick<
    PlannedCommands,
    | 'count'
    | 'isCopy'
    | 'message'
    | 'queue'
    | 'what'
    | 'insertion'
    | 'flows'
    | 'arguments'
    | 'first'
    | 'values'
    | 'data'
  >
>;

/** Kernels and copies between spaces, in the order of issue. */
export class PlannedCommands {
  count = 0;
  /** Whether the command is a copy between spaces; else it is a kernel. */
  isCopy: Uint8Array = new Uint8Array(256);
  /** Opcode of a command of a lane, which is no kernel; else 0. */
  message: Uint8Array = new Uint8Array(256);
  queue: Column<Int16Array, QueueId> = new Int16Array(256) as Column<Int16Array, QueueId>;
  /** Id of the kernel; of a copy, the spaces: destination + 256 * source. */
  what: Int32Array = new Int32Array(256);
  /** Number of the insertion that a kernel belongs to, or NO_INSERTION. */
  insertion: Int32Array = new Int32Array(256);
  /** Offsets of the data of a kernel come first, then its parameters; of a copy: destination, source, bytes, datum. */
  flows: Int32Array = new Int32Array(256);
  arguments: Int32Array = new Int32Array(256);
  /** First of the arguments in `values`. */
  first: Int32Array = new Int32Array(256);
  values: Float64Array = new Float64Array(1024);
  /** Datum of each flow, at the same place as its offset; of a copy, at the place of the destination. */
  data: Int32Array = new Int32Array(1024);
  private used = 0;

  /** Appends a command; returns its number. The caller fills `data`. */
  add(
    queue: QueueId,
    what: number,
    insertion: number,
    flows: number,
    values: ArrayLike<number>,
    count: number,
  ): number {
    const c = this.count++;
    if (c === this.queue.length) this.resizeCommands(2 * (c + 1));
    if (this.used + count > this.values.length) {
      const length = 2 * (this.used + count);
      this.values = resized(this.values, length);
      this.data = resized(this.data, length);
    }
    this.isCopy[c] = 0;
    this.message[c] = 0;
    this.queue[c] = queue;
    this.what[c] = what;
    this.insertion[c] = insertion;
    this.flows[c] = flows;
    this.arguments[c] = count;
    this.first[c] = this.used;
    for (let i = 0; i < count; i++) this.values[this.used + i] = values[i];
    this.used += count;
    return c;
  }

  /** All commands are there: gives the memory back that the columns do not need. */
  trim(): void {
    this.resizeCommands(this.count);
    this.values = resized(this.values, this.used);
    this.data = resized(this.data, this.used);
  }

  /** A list of the same commands, which grows on its own. */
  copy(): PlannedCommands {
    const copy = new PlannedCommands();
    copy.count = this.count;
    copy.used = this.used;
    copy.isCopy = this.isCopy.slice();
    copy.message = this.message.slice();
    copy.queue = this.queue.slice() as typeof this.queue;
    copy.what = this.what.slice();
    copy.insertion = this.insertion.slice();
    copy.flows = this.flows.slice();
    copy.arguments = this.arguments.slice();
    copy.first = this.first.slice();
    copy.values = this.values.slice();
    copy.data = this.data.slice();
    return copy;
  }

  private resizeCommands(length: number): void {
    this.isCopy = resized(this.isCopy, length);
    this.message = resized(this.message, length);
    this.queue = resized(this.queue, length);
    this.what = resized(this.what, length);
    this.insertion = resized(this.insertion, length);
    this.flows = resized(this.flows, length);
    this.arguments = resized(this.arguments, length);
    this.first = resized(this.first, length);
  }
}
