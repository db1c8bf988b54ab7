// Levels of detail: a lane with a million slices is drawn from groups of 8, 64, 512 ... slices, so that a frame costs
// no more than its pixels. A group knows its extent, its filled part, and the key that fills most of it.

const FACTOR = 8;

/**
 * @typedef {object} Level
 * @property {Float64Array} start
 * @property {Float64Array} end
 * @property {Float64Array} filled
 * @property {Uint16Array} key
 */

/**
 * @typedef {object} Series slices of one lane, sorted by start
 * @property {Uint32Array} start
 * @property {Uint32Array} dur
 * @property {Uint8Array | Uint16Array} key
 * @property {number} from first row
 * @property {number} to one after the last row
 * @property {Level[]} levels coarser and coarser
 */

/**
 * @param {Uint32Array} start @param {Uint32Array} dur @param {Uint8Array | Uint16Array} key
 * @param {number} from @param {number} to @returns {Series}
 */
export function makeSeries(start, dur, key, from, to) {
  /** @type {Level[]} */
  const levels = [];
  let count = to - from;
  while (count > 4 * FACTOR) {
    const below = levels[levels.length - 1];
    levels.push(below ? groupLevel(below) : groupRows(start, dur, key, from, to));
    count = levels[levels.length - 1].start.length;
  }
  return { start, dur, key, from, to, levels };
}

/** @param {number} groups @returns {Level} */
function emptyLevel(groups) {
  return {
    start: new Float64Array(groups),
    end: new Float64Array(groups),
    filled: new Float64Array(groups),
    key: new Uint16Array(groups),
  };
}

/**
 * @param {Uint32Array} start @param {Uint32Array} dur @param {Uint8Array | Uint16Array} key
 * @param {number} from @param {number} to
 */
function groupRows(start, dur, key, from, to) {
  const level = emptyLevel(Math.ceil((to - from) / FACTOR));
  for (let group = 0; group < level.start.length; group++) {
    const first = from + group * FACTOR;
    const last = Math.min(to, first + FACTOR);
    let end = 0;
    let filled = 0;
    for (let i = first; i < last; i++) {
      end = Math.max(end, start[i] + dur[i]);
      filled += dur[i];
    }
    level.start[group] = start[first];
    level.end[group] = end;
    level.filled[group] = filled;
    level.key[group] = strongest(
      first,
      last,
      (i) => key[i],
      (i) => dur[i],
    );
  }
  return level;
}

/** @param {Level} below */
function groupLevel(below) {
  const level = emptyLevel(Math.ceil(below.start.length / FACTOR));
  for (let group = 0; group < level.start.length; group++) {
    const first = group * FACTOR;
    const last = Math.min(below.start.length, first + FACTOR);
    let end = 0;
    let filled = 0;
    for (let i = first; i < last; i++) {
      end = Math.max(end, below.end[i]);
      filled += below.filled[i];
    }
    level.start[group] = below.start[first];
    level.end[group] = end;
    level.filled[group] = filled;
    level.key[group] = strongest(
      first,
      last,
      (i) => below.key[i],
      (i) => below.filled[i],
    );
  }
  return level;
}

/**
 * The key with the largest sum of weights; of equal ones the first.
 * @param {number} from @param {number} to @param {(i: number) => number} key @param {(i: number) => number} weight
 */
function strongest(from, to, key, weight) {
  let best = key(from);
  let most = -1;
  for (let i = from; i < to; i++) {
    let sum = 0;
    for (let j = i; j < to; j++) if (key(j) === key(i)) sum += weight(j);
    if (sum > most) {
      most = sum;
      best = key(i);
    }
  }
  return best;
}

/** First index in [from, to) whose value is greater than `limit`. @param {ArrayLike<number>} values @param {number} from @param {number} to @param {number} limit */
export function firstAbove(values, from, to, limit) {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Visits the visible parts of [from, to): slices themselves if few are in view, else groups. `row` is -1 for a
 * group; `share` is the filled part of its extent. Slices that began before `from` and reach into it are included.
 *
 * @param {Series} series @param {number} from @param {number} to @param {number} most about the number of visits
 * @param {(start: number, end: number, key: number, share: number, row: number) => void} visit
 */
export function forEachVisible(series, from, to, most, visit) {
  const { start, dur, key, levels } = series;
  const last = firstAbove(start, series.from, series.to, to);
  // Lanes run one thing at a time; where transfers overlap a few earlier ones may still be going on.
  const first = Math.max(series.from, firstAbove(start, series.from, series.to, from) - 8);
  let count = last - first;
  if (count <= most || levels.length === 0) {
    for (let row = first; row < last; row++) {
      const end = start[row] + dur[row];
      if (end >= from) visit(start[row], end, key[row], 1, row);
    }
    return;
  }
  let depth = 0;
  count /= FACTOR;
  while (count > most && depth + 1 < levels.length) {
    depth++;
    count /= FACTOR;
  }
  const level = levels[depth];
  const until = firstAbove(level.start, 0, level.start.length, to);
  const begin = Math.max(0, firstAbove(level.start, 0, level.start.length, from) - 1);
  for (let group = begin; group < until; group++) {
    const extent = level.end[group] - level.start[group];
    const share = extent > 0 ? Math.min(1, level.filled[group] / extent) : 1;
    visit(level.start[group], level.end[group], level.key[group], share, -1);
  }
}

/** The slice of a series at a moment, within `slack` before or after it, or -1. @param {Series} series @param {number} time @param {number} slack */
export function sliceAt(series, time, slack) {
  const after = firstAbove(series.start, series.from, series.to, time + slack);
  let best = -1;
  let nearest = slack;
  for (let row = Math.max(series.from, after - 16); row < after; row++) {
    const end = series.start[row] + series.dur[row];
    const distance = time < series.start[row] ? series.start[row] - time : Math.max(0, time - end);
    if (distance <= nearest) {
      nearest = distance;
      best = row;
    }
  }
  return best;
}
