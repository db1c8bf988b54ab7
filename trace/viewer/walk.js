// Walking from slice to slice with the keyboard: along a lane, across lanes, along the critical path.
import { sliceAt } from './detail-levels.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./scene.js').Item} Item */
/** @typedef {import('./layout.js').Row} Row */
/** @typedef {import('./layout.js').LaneSeries} LaneSeries */

/** @param {Model} model @param {Item} item */
function laneOf(model, item) {
  return item.type === 'task' ? model.taskLane(item.row) : model.transferLane(item.row);
}

/** The first task of the first lane that has any. @param {LaneSeries} series @returns {Item | undefined} */
export function firstItem(series) {
  const found = series.find(({ tasks }) => tasks.to > tasks.from);
  return found && { type: 'task', row: found.tasks.from };
}

/** The slice before (-1) or after (1) on the same lane. @param {Model} model @param {LaneSeries} series @param {Item} item @param {number} direction @returns {Item | undefined} */
export function along(model, series, item, direction) {
  const { from, to } = series[laneOf(model, item)][item.type === 'task' ? 'tasks' : 'transfers'];
  const row = item.row + direction;
  return row >= from && row < to ? { type: item.type, row } : undefined;
}

/**
 * The slice nearest in time on the lane above (-1) or below (1).
 * @param {Model} model @param {LaneSeries} series @param {readonly Row[]} rows @param {Item} item
 * @param {number} time @param {number} direction @returns {Item | undefined}
 */
export function across(model, series, rows, item, time, direction) {
  const lanes = rows.filter(({ kind }) => kind === 'tasks' || kind === 'transfers');
  const kind = item.type === 'task' ? 'tasks' : 'transfers';
  const here = lanes.findIndex((row) => row.index === laneOf(model, item) && row.kind === kind);
  for (let i = here + direction; i >= 0 && i < lanes.length; i += direction) {
    const isTask = lanes[i].kind === 'tasks';
    const found = sliceAt(series[lanes[i].index][isTask ? 'tasks' : 'transfers'], time, model.span);
    if (found >= 0) return { type: isTask ? 'task' : 'transfer', row: found };
  }
  return undefined;
}

/** A step of the critical path. @param {Model} model @param {number} step @returns {Item | undefined} */
export function stepAt(model, step) {
  const { cRow, cType } = model.columns;
  if (step < 0 || step >= cRow.length) return undefined;
  return { type: cType[step] === 0 ? 'task' : 'transfer', row: cRow[step] };
}

/** The path's step before or after an item; its last step when the item is not on it. @param {Model} model @param {Item | undefined} item @param {number} direction */
export function stepFrom(model, item, direction) {
  const known =
    item && (item.type === 'task' ? model.pathOfTask : model.pathOfTransfer).get(item.row);
  return known === undefined ? model.columns.cRow.length - 1 : known + direction;
}
