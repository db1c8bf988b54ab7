// How much memory a case needs, in units of the allocator.
import type { CaseDatum, CaseTask } from './case.js';

/** Units of all data. */
export function unitsOf(data: readonly CaseDatum[]): number {
  return data.reduce((units, d) => units + d.units, 0);
}

/** Bytes, in units, of the largest task that must fit on a device. */
export function largestTask(
  data: readonly CaseDatum[],
  tasks: readonly CaseTask[],
  anywhere = false,
): number {
  let largest = 1;
  for (const task of tasks) {
    if (task.inserts !== undefined)
      largest = Math.max(largest, largestTask(data, task.inserts, anywhere));
    if (task.body !== 'kernel' && !anywhere) continue;
    let units = 0;
    for (const [d] of task.flows) units += data[d].units;
    if (units > largest) largest = units;
  }
  return largest;
}
