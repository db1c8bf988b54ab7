// The input of a frame, and the places of its items.

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./theme.js').Theme} Theme */
/** @typedef {import('./layout.js').Row} Row */
/** @typedef {import('./detail-levels.js').Series} Series */

/** @typedef {{ type: 'task' | 'transfer', row: number }} Item */

/**
 * @typedef {object} State
 * @property {number} from first visible moment
 * @property {number} to
 * @property {number} scroll pixels scrolled down
 * @property {Item | undefined} selected
 * @property {boolean} path critical path shown
 * @property {boolean} stages
 * @property {Set<number> | undefined} focus classes in focus, or all
 */

/**
 * @typedef {object} Scene
 * @property {CanvasRenderingContext2D} context
 * @property {number} width
 * @property {number} height
 * @property {Model} model
 * @property {Theme} theme
 * @property {Row[]} rows
 * @property {import('./layout.js').LaneSeries} series
 * @property {State} state
 */

export const GUTTER = 150;
export const RULER = 24;

/** Pixel of a moment. @param {Scene} scene @param {number} time */
export function xOf({ state, width }, time) {
  return GUTTER + ((time - state.from) / (state.to - state.from)) * (width - GUTTER);
}

/** Moment of a pixel. @param {Scene} scene @param {number} x */
export function timeAt({ state, width }, x) {
  return state.from + ((x - GUTTER) / (width - GUTTER)) * (state.to - state.from);
}

/** The row under a pixel. @param {Scene} scene @param {number} y @returns {Row | undefined} */
export function rowAt({ rows, state }, y) {
  if (y < RULER) return undefined;
  const inside = y - RULER + state.scroll;
  return rows.find((row) => row.y <= inside && inside < row.y + row.height);
}

/** The box of an item, or undefined while its row is not shown. @param {Scene} scene @param {Item} item */
export function boxOf(scene, item) {
  const { model, rows } = scene;
  const isTask = item.type === 'task';
  const lane = isTask ? model.taskLane(item.row) : model.transferLane(item.row);
  const row = rows.find((r) => r.kind === (isTask ? 'tasks' : 'transfers') && r.index === lane);
  if (!row) return undefined;
  const { tStart, xStart } = model.columns;
  const x = xOf(scene, isTask ? tStart[item.row] : xStart[item.row]);
  const right = xOf(scene, isTask ? model.taskEnd(item.row) : model.transferEnd(item.row));
  return { x, y: row.y + 2, width: Math.max(2, right - x), height: row.height - 4 };
}
