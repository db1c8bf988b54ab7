// Finds tasks by the words that people type: a class, a name with parameters, #id, or a datum.
import { FIRST_PLAYED } from './model.js';

/** @typedef {import('./model.js').Model} Model */

/**
 * A test of task rows, or undefined when nothing can match. `gemm`, `gemm(4, 3`, `#17`, `#p17`, `A(3, 4)`.
 * @param {Model} model @param {string} text @returns {((row: number) => boolean) | undefined}
 */
export function taskMatcher(model, text) {
  const wanted = text.trim();
  if (wanted === '') return undefined;
  const { tId, tClass } = model.columns;
  const id = /^#?(p?)(\d+)$/.exec(wanted);
  if (id) {
    const number = Number(id[2]) + (id[1] === '' ? 0 : FIRST_PLAYED);
    return (row) => tId[row] === number;
  }
  const call = /^([^(]+)(?:\(([-\d,\s]*)\)?)?$/.exec(wanted);
  if (!call) return undefined;
  const name = call[1].trim().toLowerCase();
  const exact = call[2] !== undefined;
  const numbers = (call[2] ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(Number);
  const classes = new Set();
  model.meta.classes.forEach((taskClass, i) => {
    const known = taskClass.name.toLowerCase();
    if (exact ? known === name : known.includes(name)) classes.add(i);
  });
  if (classes.size > 0) {
    const { start, items } = model.parameters;
    return (row) =>
      classes.has(tClass[row]) &&
      numbers.every(
        (number, i) => start[row] + i < start[row + 1] && items[start[row] + i] === number,
      );
  }
  return dataMatcher(model, wanted.toLowerCase(), name, numbers);
}

/** Tasks that use a datum of this full name, or of this name and coordinates. @param {Model} model @param {string} full @param {string} name @param {number[]} numbers */
function dataMatcher(model, full, name, numbers) {
  const { dName, dCoord } = model.columns;
  const data = new Set();
  for (let datum = 0; datum < dName.length; datum++) {
    const known = model.meta.names[dName[datum]].toLowerCase();
    const same = known === name && numbers.every((number, i) => dCoord[3 * datum + i] === number);
    if (same || known === full) data.add(datum);
  }
  if (data.size === 0) return undefined;
  const { start, items } = model.accesses;
  return (/** @type {number} */ row) => {
    for (let a = start[row]; a < start[row + 1]; a++) if (data.has(items[a])) return true;
    return false;
  };
}

/**
 * The matching task that starts first after a moment (from the start again when there is none), and the number of matches.
 * @param {Model} model @param {string} text @param {number} after @param {number} [except] this row does not count as found
 * @returns {{ row: number, count: number }}
 */
export function findTask(model, text, after, except = -1) {
  const matches = taskMatcher(model, text);
  const { tStart } = model.columns;
  let next = -1;
  let first = -1;
  let count = 0;
  if (!matches) return { row: -1, count };
  for (let row = 0; row < model.tasks; row++) {
    if (!matches(row)) continue;
    count++;
    if (first < 0 || tStart[row] < tStart[first]) first = row;
    const later = tStart[row] > after || (tStart[row] === after && row > except);
    if (later && row !== except && (next < 0 || tStart[row] < tStart[next])) next = row;
  }
  return { row: next >= 0 ? next : first, count };
}
