// The arrows between slices of a Perfetto trace. A flow id joins exactly two slices, the earlier one first:
// Perfetto closes a flow at its terminating slice.
import { taskGraph } from '../analysis/graph.js';
import { group } from '../columns.js';
import { TaskTime, TransferReason } from '../format.js';
import type { Trace } from '../trace.js';

/** Numbers of arrows: dependencies first, then one per message, then one per transfer made for a task. */
export class Flows {
  readonly #trace: Trace;
  readonly #predecessors: { start: Int32Array; items: Int32Array };
  readonly #successors: { start: Int32Array; origin: Int32Array; items: Int32Array };
  readonly #transfers: { start: Int32Array; items: Int32Array };
  readonly #edges: number;

  constructor(trace: Trace) {
    this.#trace = trace;
    const { predecessors } = taskGraph(trace);
    this.#predecessors = predecessors;
    this.#edges = predecessors.items.length;
    const successor = new Int32Array(this.#edges);
    for (let row = 0; row < trace.tasks.count; row++) {
      successor.fill(row, predecessors.start[row], predecessors.start[row + 1]);
    }
    this.#successors = group(trace.tasks.count, predecessors.items, successor);
    const { transfers } = trace;
    const rows = Int32Array.from({ length: transfers.count }, (_, row) => row);
    const task = Int32Array.from(rows, (row) =>
      transfers.reason[row] === TransferReason.send ? -1 : transfers.task[row],
    );
    this.#transfers = group(trace.tasks.count, task, rows);
  }

  /** Arrows that leave a task and that end at it. */
  ofTask(row: number, out: (id: number) => void, into: (id: number) => void): void {
    const { start, origin, items } = this.#successors;
    for (let i = start[row]; i < start[row + 1]; i++) {
      if (this.#forward(row, items[i])) out(1 + origin[i]);
    }
    for (let i = this.#predecessors.start[row]; i < this.#predecessors.start[row + 1]; i++) {
      if (this.#forward(this.#predecessors.items[i], row)) into(1 + i);
    }
    for (let i = this.#transfers.start[row]; i < this.#transfers.start[row + 1]; i++) {
      const transfer = this.#transfers.items[i];
      if (this.#feeds(transfer)) into(this.#transferFlow(transfer));
    }
  }

  /** Arrows that leave a transfer and that end at it. */
  ofTransfer(row: number, out: (id: number) => void, into: (id: number) => void): void {
    const { transfers } = this.#trace;
    if (this.#feeds(row)) out(this.#transferFlow(row));
    const partner = transfers.partner[row];
    if (partner < 0) return;
    const sends = transfers.reason[row] === TransferReason.send;
    const [send, receive] = sends ? [row, partner] : [partner, row];
    if (transfers.start[send] >= transfers.end[receive]) return;
    const id = 1 + this.#edges + send;
    // The receive may have been posted before the message left; the arrow goes from the earlier slice to the later.
    if (sends === transfers.start[send] < transfers.start[receive]) out(id);
    else into(id);
  }

  #transferFlow(row: number): number {
    return 1 + this.#edges + this.#trace.transfers.count + row;
  }

  // Perfetto follows time: an arrow needs a start before the other's.
  #forward(from: number, to: number): boolean {
    const start = this.#trace.tasks.times[TaskTime.execStart];
    return start[from] < start[to];
  }

  #feeds(row: number): boolean {
    const { transfers, tasks } = this.#trace;
    const task = transfers.task[row];
    if (task < 0 || transfers.reason[row] === TransferReason.send) return false;
    return transfers.start[row] < tasks.times[TaskTime.execStart][task];
  }
}
