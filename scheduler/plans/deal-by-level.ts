// Deals tasks by level: those that follow chains of the same length have neighbouring places in the program on the same worker, and
// every worker gets its part of the time of all levels so far. So the columns of a grid stay together.
import { chainsBefore, type PlannedParts } from './chains.js';
import type { ControlEdges } from './waits.js';

/** The queue of each command. `takes`: its nanoseconds. */
export function dealByLevel(
  parts: PlannedParts,
  control: ControlEdges,
  takes: Float64Array,
  queues: readonly number[],
): Int16Array {
  const { level, order } = levels(parts, control);
  const queue = new Int16Array(order.length);
  const load = new Float64Array(queues.length);
  let all = 0;
  for (let i = 0; i < order.length; ) {
    let end = i;
    for (; end < order.length && level[order[end]] === level[order[i]]; end++)
      all += takes[order[end]];
    // Each queue takes tasks while the middle of the next one is within its part.
    const part = all / queues.length;
    for (let k = 0; i < end; i++) {
      const c = order[i];
      while (k < queues.length - 1 && load[k] + takes[c] / 2 > part) k++;
      load[k] += takes[c];
      queue[c] = queues[k];
    }
  }
  return queue;
}

/** The commands by level, and in program order within one. */
function levels(
  parts: PlannedParts,
  control: ControlEdges,
): { readonly level: Int32Array; readonly order: Int32Array } {
  const { count, insertion } = parts.commands;
  const level = chainsBefore(parts, control, () => 1);
  const inProgram = new Int32Array(count);
  for (let c = 0; c < count; c++) inProgram[insertion[c]] = c;
  const first = new Int32Array(count + 1);
  for (let c = 0; c < count; c++) first[level[c] + 1]++;
  for (let l = 0; l < count; l++) first[l + 1] += first[l];
  const order = new Int32Array(count);
  for (const c of inProgram) order[first[level[c]]++] = c;
  return { level, order };
}
