// Quantities over time: memory under each device, queues of each rank.
import { firstAbove } from './detail-levels.js';
import { formatBytes } from './format.js';
import { GUTTER, timeAt } from './scene.js';
import { mix } from './theme.js';

/** @typedef {import('./scene.js').Scene} Scene */
/** @typedef {import('./layout.js').Row} Row */

/** Used memory as stacked bands; the height is `row.full`. @param {Scene} scene @param {Row} row */
export function paintMemory(scene, row) {
  const { context, width, model, theme, state } = scene;
  const { mStart, mTime } = model.columns;
  const from = mStart[row.index];
  const to = mStart[row.index + 1];
  const bands = /** @type {const} */ ([
    ['pinned', 1],
    ['dirty', 2],
    ['clean', 3],
    ['arriving', 4],
  ]);
  const height = row.height - 4;
  const scale = height / row.full;
  const bottom = row.y + row.height - 2;
  const base = new Float64Array(width);
  const sampleOf = new Int32Array(width).fill(-1);
  let sample = from;
  for (let x = GUTTER; x < width; x++) {
    const time = timeAt(scene, x + 1);
    sample = firstAbove(mTime, sample, to, time);
    sampleOf[x] = sample - 1 >= from && time <= model.span ? sample - 1 : -1;
  }
  for (const [band, value] of bands) {
    const values = model.columns[`mValue${value}`];
    context.fillStyle = state.path
      ? mix(theme.memory[band], theme.background, 0.6)
      : theme.memory[band];
    // Columns of equal height become one rectangle.
    let begin = GUTTER;
    let top = 0;
    let under = 0;
    for (let x = GUTTER; x <= width; x++) {
      const h = x < width && sampleOf[x] >= 0 ? values[sampleOf[x]] * scale : 0;
      const b = x < width ? base[x] : 0;
      if (h !== top || b !== under || x === width) {
        if (top > 0) context.fillRect(begin, bottom - under - top, x - begin, top);
        begin = x;
        top = h;
        under = b;
      }
      if (x < width) base[x] += h;
    }
  }
}

/** Ready tasks (filled) and bytes in flight (line), each relative to its largest value. @param {Scene} scene @param {Row} row */
export function paintProgress(scene, row) {
  const { context, width, model, theme } = scene;
  const { pStart, pTime } = model.columns;
  const from = pStart[row.index];
  const to = pStart[row.index + 1];
  const bottom = row.y + row.height - 2;
  const height = row.height - 6;
  for (const [value, filled, most] of /** @type {[number, boolean, number][]} */ ([
    [0, true, row.full],
    [2, false, row.fullLine],
  ])) {
    const values = model.columns[`pValue${value}`];
    if (most === 0) continue;
    context.beginPath();
    context.moveTo(GUTTER, bottom);
    let sample = from;
    for (let x = GUTTER; x < width; x++) {
      const time = timeAt(scene, x + 1);
      sample = firstAbove(pTime, sample, to, time);
      const inside = sample - 1 >= from && time <= model.span;
      context.lineTo(x, bottom - (inside ? (values[sample - 1] / most) * height : 0));
    }
    if (filled) {
      context.lineTo(width, bottom);
      context.fillStyle = mix(theme.classes[5], theme.background, 0.4);
      context.fill();
    } else {
      context.strokeStyle = theme.kinds[3];
      context.stroke();
    }
  }
}

/** The sample of memory at a moment in words, or '' where there is none. @param {import('./model.js').Model} model @param {number} space @param {number} time */
export function memoryWords(model, space, time) {
  const { mStart, mTime } = model.columns;
  const sample = firstAbove(mTime, mStart[space], mStart[space + 1], time) - 1;
  if (sample < mStart[space]) return '';
  const [used, pinned, dirty, clean, arriving] = [0, 1, 2, 3, 4].map(
    (value) => model.columns[`mValue${value}`][sample],
  );
  const parts = Object.entries({ pinned, dirty, clean, arriving })
    .filter(([, bytes]) => bytes > 0)
    .map(([band, bytes]) => `${formatBytes(bytes)} ${band}`);
  const capacity = formatBytes(model.meta.spaces[space].bytes);
  return `${formatBytes(used)} of ${capacity} used${parts.length > 0 ? `: ${parts.join(', ')}` : ''}`;
}
