// Names and keys of the tasks of a parameterised graph.
// Invariant: two tasks of a class have the same key exactly if they have the same indices.

import type { Indices } from './ends.js';

/** Identifies a task within its class: a number if the indices are small. */
export type TaskKey = number | string;

/** Values below these pack into one number of 53 bits, by the number of indices. */
const SPANS: readonly number[] = [1, 2 ** 53, 2 ** 26, 2 ** 17, 2 ** 13];

/** The key of the task with these indices. */
export function keyOf(names: readonly string[], indices: Indices): TaskKey {
  const span = SPANS[names.length] ?? 0;
  let key = 0;
  for (let n = 0; n < names.length; n++) {
    const value = indices[names[n]];
    if (!(value >= 0 && value < span)) return names.map((name) => indices[name]).join();
    key = key * span + value;
  }
  return key;
}

/** Each index is read at a place of its own in the code: V8 is fast where a place always reads the same name. */
export function sameIndices(names: readonly string[], a: Indices, b: Indices): boolean {
  const count = names.length;
  if (count > 0 && a[names[0]] !== b[names[0]]) return false;
  if (count > 1 && a[names[1]] !== b[names[1]]) return false;
  if (count > 2 && a[names[2]] !== b[names[2]]) return false;
  for (let n = 3; n < count; n++) if (a[names[n]] !== b[names[n]]) return false;
  return true;
}

/** A task in the program's words, such as `trsm(k=0, i=2)`. */
export function taskName(name: string, names: readonly string[], indices: Indices): string {
  return `${name}(${names.map((index) => `${index}=${indices[index]}`).join(', ')})`;
}
