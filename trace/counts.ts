// First pass over a trace: the number of rows of every table, so that columns get their exact size; and the pairs that
// become lists per task.
import type { TraceReader } from './reader.js';
import type { ListRecord, TraceVisitor } from './records.js';

/** Rows of every table. */
export class Counts {
  tasks = 0;
  transfers = 0;
  data = 0;
  counters = 0;
  events = 0;
  stolen = 0;
  plays = 0;
  edges = 0;
  accesses = 0;
  parameters = 0;

  add(reader: TraceReader, onBytes?: (bytes: number) => void): void {
    const visitor: TraceVisitor = {
      task: () => {
        this.tasks++;
      },
      transfer: () => {
        this.transfers++;
      },
      datum: () => {
        this.data++;
      },
      counter: () => {
        this.counters++;
      },
      event: () => {
        this.events++;
      },
      stolen: () => {
        this.stolen++;
      },
      play: () => {
        this.plays++;
      },
      dependencies: (list) => {
        this.edges += list.count;
      },
      accesses: (list) => {
        this.accesses += list.count;
      },
      parameters: (list) => {
        this.parameters += list.count;
      },
    };
    reader.read(visitor, onBytes);
  }
}

/** Pairs (task, value): ids while a rank is read, rows afterwards, to be grouped by task row at the end. */
export class Pairs {
  readonly task: Int32Array;
  readonly value: Int32Array;
  readonly mode: Uint8Array;
  count = 0;
  constructor(capacity: number) {
    this.task = new Int32Array(capacity);
    this.value = new Int32Array(capacity);
    this.mode = new Uint8Array(capacity);
  }

  // Task ids to rows for the pairs from `first` on; -1 drops a pair in `group`.
  resolve(first: number, taskRow: (id: number) => number, valueRow?: (id: number) => number): void {
    for (let i = first; i < this.count; i++) {
      this.task[i] = taskRow(this.task[i] >>> 0);
      if (!valueRow) continue;
      const row = valueRow(this.value[i] >>> 0);
      if (row < 0) this.task[i] = -1;
      this.value[i] = row;
    }
  }
}

/** Appends a list record as pairs. */
export function store(pairs: Pairs, list: ListRecord): void {
  for (let i = 0; i < list.count; i++) {
    pairs.task[pairs.count] = list.task;
    pairs.value[pairs.count++] = list.values[i];
  }
}
