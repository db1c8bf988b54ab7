// The memory that a case needs, in units of the allocator.
import { type CaseDatum, type CaseTask, OWN } from './program.js';

/** Limit of units of a datum that a body creates. */
export const OWN_UNITS = 2;

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
    for (const [d] of task.flows) units += d === OWN ? OWN_UNITS : data[d].units;
    if (units > largest) largest = units;
  }
  return largest;
}

/** Units of all data that bodies create. */
export function ownUnits(tasks: readonly CaseTask[]): number {
  return tasks.reduce(
    (units, { makes = 0, grows = 0, inserts = [] }) =>
      units + 2 ** (grows + 1) * (makes + ownUnits(inserts)),
    0,
  );
}
