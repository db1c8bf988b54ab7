// The rows of the timeline, top to bottom: rank, its queues over time, then per device its lanes, links and memory.
import { makeSeries } from './detail-levels.js';
import { formatBytes } from './format.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./detail-levels.js').Series} Series */

/**
 * @typedef {object} Row
 * @property {'rank' | 'space' | 'tasks' | 'stages' | 'transfers' | 'memory' | 'progress'} kind
 * @property {string} label
 * @property {number} index lane, space or rank, by kind
 * @property {number} y
 * @property {number} height
 * @property {number} full quantity at full height: bytes of a memory row, ready tasks of a progress row
 * @property {number} fullLine the same for the line in a progress row: bytes in flight
 */

export const STAGE_ROWS = 6;
/** Rows that grow if there is room to spare, at most by `MOST_GROWTH`. */
const growing = new Set(['tasks', 'transfers', 'memory', 'progress']);
const MOST_GROWTH = 2;
const heights = {
  rank: 22,
  space: 18,
  tasks: 26,
  stages: 8 * STAGE_ROWS,
  transfers: 14,
  memory: 40,
  progress: 34,
};

/** Lanes that run tasks. @param {string} kind */
export function executes(kind) {
  return ['worker', 'script-worker', 'compute', 'script'].includes(kind);
}

/** Slices and idle gaps of every lane. @param {Model} model */
export function makeLaneSeries(model) {
  const { tLane, tStart, tDur, tClass, xLane, xStart, xDur, xKind, iLane, iStart, iDur, iReason } =
    model.columns;
  return model.meta.lanes.map((_, lane) => ({
    tasks: makeSeries(tStart, tDur, tClass, tLane[lane], tLane[lane + 1]),
    transfers: makeSeries(xStart, xDur, xKind, xLane[lane], xLane[lane + 1]),
    idle: makeSeries(iStart, iDur, iReason, iLane[lane], iLane[lane + 1]),
  }));
}

/** @typedef {ReturnType<typeof makeLaneSeries>} LaneSeries */

/** Bytes at full height of a memory band: the capacity, or the peak if that is far below. @param {Model} model @param {number} space */
export function memoryScale(model, space) {
  const { mStart, mValue0 } = model.columns;
  let peak = 1;
  for (let i = mStart[space]; i < mStart[space + 1]; i++) peak = Math.max(peak, mValue0[i]);
  const capacity = model.meta.spaces[space].bytes;
  return peak < capacity / 4 ? peak : capacity;
}

/** Largest of the values of a rank's progress samples. @param {Model} model @param {number} rank @param {number} value */
function mostProgress(model, rank, value) {
  const { pStart } = model.columns;
  const values = model.columns[`pValue${value}`];
  let most = 0;
  for (let i = pStart[rank]; i < pStart[rank + 1]; i++) most = Math.max(most, values[i]);
  return most;
}

/**
 * @param {Model} model @param {boolean} stages with rows for the six stages
 * @param {number} room available height: rows grow if it is more than they need
 * @returns {Row[]}
 */
export function makeRows(model, stages, room) {
  const rows = plainRows(model, stages);
  const height = (/** @type {(row: Row) => boolean} */ which) =>
    rows.reduce((sum, row) => sum + (which(row) ? row.height : 0), 0);
  const grows = height((row) => growing.has(row.kind));
  const factor = Math.min(MOST_GROWTH, (room - height((row) => !growing.has(row.kind))) / grows);
  if (!(factor > 1)) return rows;
  let y = 0;
  for (const row of rows) {
    row.y = y;
    if (growing.has(row.kind)) row.height = Math.floor(row.height * factor);
    y += row.height;
  }
  return rows;
}

/** Rows of their least height. @param {Model} model @param {boolean} stages @returns {Row[]} */
function plainRows(model, stages) {
  const { meta, columns } = model;
  /** @type {Row[]} */
  const rows = [];
  let y = 0;
  /** @param {Row['kind']} kind @param {string} label @param {number} index */
  const add = (kind, label, index) => {
    const isProgress = kind === 'progress';
    const full =
      kind === 'memory'
        ? memoryScale(model, index)
        : isProgress
          ? mostProgress(model, index, 0)
          : 0;
    const fullLine = isProgress ? mostProgress(model, index, 2) : 0;
    rows.push({ kind, label, index, y, height: heights[kind], full, fullLine });
    y += heights[kind];
  };
  meta.ranks.forEach(({ rank, host }, rankIndex) => {
    if (meta.ranks.length > 1) add('rank', `rank ${rank}  ${host}`, rankIndex);
    if (columns.pStart[rankIndex + 1] > columns.pStart[rankIndex])
      add('progress', `ready tasks / ${mostProgress(model, rankIndex, 0)}`, rankIndex);
    meta.spaces.forEach((space, spaceIndex) => {
      if (space.rank !== rank) return;
      /** @type {[Row['kind'], string, number][]} */
      const inside = [];
      meta.lanes.forEach((lane, index) => {
        if (lane.space !== spaceIndex) return;
        const tasks = columns.tLane[index + 1] - columns.tLane[index];
        const transfers = columns.xLane[index + 1] - columns.xLane[index];
        // Under its device a lane need not repeat the device's name.
        const prefix = `${space.name} `;
        const name = lane.name.startsWith(prefix) ? lane.name.slice(prefix.length) : lane.name;
        if (executes(lane.kind) && (tasks > 0 || !lane.kind.startsWith('script'))) {
          inside.push(['tasks', name, index]);
          if (stages && tasks > 0) inside.push(['stages', '', index]);
        }
        if (transfers > 0) inside.push(['transfers', name, index]);
      });
      if (columns.mStart[spaceIndex + 1] > columns.mStart[spaceIndex])
        inside.push([
          'memory',
          `memory / ${formatBytes(memoryScale(model, spaceIndex))}`,
          spaceIndex,
        ]);
      if (inside.length === 0) return;
      add('space', space.name, spaceIndex);
      for (const [kind, label, index] of inside) add(kind, label, index);
    });
  });
  return rows;
}
