// Paints the timeline on a canvas. Everything is a function of the state; nothing is remembered between frames.
import { firstAbove, forEachVisible } from './detail-levels.js';
import { formatTime, roundStep } from './format.js';
import { executes, STAGE_ROWS } from './layout.js';
import { classColour, inkOn, mix, stageColour } from './theme.js';

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
 * @property {Item | undefined} hover
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
const FONT = '11px system-ui, sans-serif';

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

/** @param {Scene} scene */
export function paint(scene) {
  const { context, width, height, theme, rows, state } = scene;
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = 'middle';
  context.save();
  context.beginPath();
  context.rect(0, RULER, width, height - RULER);
  context.clip();
  context.translate(0, RULER - state.scroll);
  const visible = rows.filter(
    (row) => row.y + row.height > state.scroll && row.y < state.scroll + height - RULER,
  );
  context.save();
  context.beginPath();
  context.rect(GUTTER, state.scroll, width - GUTTER, height - RULER);
  context.clip();
  for (const row of visible) paintRow(scene, row);
  if (state.path) paintPath(scene);
  if (state.selected) paintSelection(scene, state.selected);
  context.restore();
  for (const row of visible) paintLabel(scene, row);
  context.restore();
  paintRuler(scene);
}

/** @param {Scene} scene @param {Row} row */
function paintRow(scene, row) {
  const { context, width, theme, series } = scene;
  context.fillStyle = theme.line;
  context.fillRect(GUTTER, row.y + row.height - 1, width - GUTTER, 1);
  if (row.kind === 'tasks') {
    paintIdle(scene, series[row.index].idle, row);
    paintTasks(scene, series[row.index].tasks, row);
  } else if (row.kind === 'transfers') {
    paintTransfers(scene, series[row.index].transfers, row);
  } else if (row.kind === 'memory') {
    paintMemory(scene, row);
  } else if (row.kind === 'progress') {
    paintProgress(scene, row);
  } else if (row.kind === 'stages') {
    paintStages(scene, series[row.index].tasks, row);
  } else {
    context.fillStyle = theme.header;
    context.fillRect(GUTTER, row.y, width - GUTTER, row.height - 1);
  }
}

/**
 * Rectangles by colour. Neighbours that touch within a pixel become one; each colour is set once.
 * @param {Scene} scene @param {Series} series @param {(key: number) => string} colour
 * @param {number} bottom @param {number} height @param {number} least width of the smallest slice
 */
function paintSeries(scene, series, colour, bottom, height, least) {
  const { context, width, state } = scene;
  const scale = (width - GUTTER) / (state.to - state.from);
  /** @type {Map<number, number[]>} */
  const batches = new Map();
  forEachVisible(series, state.from, state.to, width, (start, end, key, share) => {
    let batch = batches.get(key);
    if (!batch) {
      batch = [];
      batches.set(key, batch);
    }
    const x = Math.max(GUTTER - 2, GUTTER + (start - state.from) * scale);
    const w = Math.min(
      width + 2 - x,
      Math.max(least, (end - start) * scale - (share === 1 && (end - start) * scale > 4 ? 1 : 0)),
    );
    const h = Math.max(2, Math.round(share * height));
    const n = batch.length;
    if (n > 0 && w < 2 && batch[n - 1] === h && x - (batch[n - 3] + batch[n - 2]) < 0.25) {
      batch[n - 2] = x + w - batch[n - 3];
    } else {
      batch.push(x, w, h);
    }
  });
  for (const [key, batch] of batches) {
    context.fillStyle = colour(key);
    for (let i = 0; i < batch.length; i += 3) {
      context.fillRect(batch[i], bottom - batch[i + 2], batch[i + 1], batch[i + 2]);
    }
  }
}

/** @param {Scene} scene @param {Series} series @param {Row} row */
function paintIdle(scene, series, row) {
  const { theme } = scene;
  paintSeries(scene, series, (reason) => theme.idle[reason], row.y + row.height - 2, 10, 0.5);
}

/** Colour of a class as the state wants it: full, or muted when other things are in focus. @param {Scene} scene */
function classColours(scene) {
  const { theme, state } = scene;
  return (/** @type {number} */ taskClass) => {
    if (state.focus && !state.focus.has(taskClass)) return theme.muted;
    const colour = classColour(theme, taskClass);
    return state.path ? mix(colour, theme.background, 0.72) : colour;
  };
}

/** @param {Scene} scene @param {Series} series @param {Row} row */
function paintTasks(scene, series, row) {
  const { context, width, model, state } = scene;
  const colour = classColours(scene);
  paintSeries(scene, series, colour, row.y + row.height - 2, row.height - 4, 1);
  const scale = (width - GUTTER) / (state.to - state.from);
  // Names, where there is room for them.
  if (
    firstAbove(series.start, series.from, series.to, state.to) -
      firstAbove(series.start, series.from, series.to, state.from) >
    width / 20
  )
    return;
  forEachVisible(series, state.from, state.to, width, (start, end, key, _share, task) => {
    const left = Math.max(GUTTER, GUTTER + (start - state.from) * scale);
    const right = Math.min(width, GUTTER + (end - state.from) * scale);
    const letters = Math.floor((right - left - 8) / 6);
    if (task < 0 || letters < 4) return;
    context.fillStyle = inkOn(colour(key));
    const name = model.taskName(task);
    context.fillText(
      name.length > letters ? `${name.slice(0, letters - 1)}…` : name,
      left + 4,
      row.y + row.height / 2 - 1,
    );
  });
}

/** @param {Scene} scene @param {Series} series @param {Row} row */
function paintTransfers(scene, series, row) {
  const { theme, state } = scene;
  const colour = (/** @type {number} */ kind) => {
    const base = theme.kinds[kind] ?? theme.faint;
    return state.path || state.focus ? mix(base, theme.background, 0.72) : base;
  };
  paintSeries(scene, series, colour, row.y + row.height - 2, row.height - 4, 1);
}

/** Tasks from ready to finalized, cut into stages, on a few rows in turn. @param {Scene} scene @param {Series} series @param {Row} row */
function paintStages(scene, series, row) {
  const { context, width, model, theme, state } = scene;
  const { tStart, tDur, tReady, tAlloc, tStageIn, tCommIn, tIssued, tStageOut, tFinal } =
    model.columns;
  const first = firstAbove(tStart, series.from, series.to, state.from);
  const last = Math.min(
    series.to,
    firstAbove(tStart, series.from, series.to, state.to) + 3 * STAGE_ROWS,
  );
  if (last - first > 1500) {
    context.fillStyle = theme.faint;
    context.fillText('zoom in to see the stages', GUTTER + 8, row.y + row.height / 2);
    return;
  }
  for (let task = Math.max(series.from, first - 8); task < last; task++) {
    const start = tStart[task];
    const end = start + tDur[task];
    const times = [
      start - tReady[task],
      start - tAlloc[task],
      start - tStageIn[task],
      start - tCommIn[task],
      start - tIssued[task],
      start,
      end,
      end + tStageOut[task],
      end + tFinal[task],
    ];
    const y = row.y + 1 + (task % STAGE_ROWS) * 8;
    for (let stage = 1; stage < times.length; stage++) {
      if (times[stage] <= times[stage - 1]) continue;
      const x = xOf(scene, times[stage - 1]);
      const w = xOf(scene, times[stage]) - x;
      if (x > width || x + w < GUTTER || w < 0.3) continue;
      context.fillStyle = stageColour(theme, model.columns.tClass[task], stage);
      context.fillRect(x, y, w, 7);
    }
  }
}

/** Used memory as stacked bands; the height is the capacity. @param {Scene} scene @param {Row} row */
function paintMemory(scene, row) {
  const { context, width, model, theme, state } = scene;
  const { mStart, mTime } = model.columns;
  const from = mStart[row.index];
  const to = mStart[row.index + 1];
  const capacity = model.meta.spaces[row.index].bytes || 1;
  const bands = /** @type {const} */ ([
    ['pinned', 1],
    ['dirty', 2],
    ['clean', 3],
    ['arriving', 4],
  ]);
  const height = row.height - 4;
  const scale = height / capacity;
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
function paintProgress(scene, row) {
  const { context, width, model, theme } = scene;
  const { pStart, pTime } = model.columns;
  const from = pStart[row.index];
  const to = pStart[row.index + 1];
  const bottom = row.y + row.height - 2;
  const height = row.height - 6;
  for (const [value, filled] of /** @type {[number, boolean][]} */ ([
    [0, true],
    [2, false],
  ])) {
    const values = model.columns[`pValue${value}`];
    let most = 0;
    for (let i = from; i < to; i++) most = Math.max(most, values[i]);
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

/** The critical path: its slices in full colour, joined by lines. @param {Scene} scene */
function paintPath(scene) {
  const { context, model, theme, state } = scene;
  const { cRow, cType, tStart, xStart, tClass, xKind } = model.columns;
  /** @param {number} i @returns {Item} */
  const item = (i) => ({ type: cType[i] === 0 ? 'task' : 'transfer', row: cRow[i] });
  const startOf = (/** @type {number} */ i) => (cType[i] === 0 ? tStart[cRow[i]] : xStart[cRow[i]]);
  // First step from `i` on that starts at or after a moment; steps follow each other in time.
  const stepFrom = (/** @type {number} */ i, /** @type {number} */ time) => {
    let low = i;
    let high = cRow.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (startOf(middle) >= time) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const pixel = (state.to - state.from) / (scene.width - GUTTER);
  /** @type {{ x: number, y: number, width: number, height: number } | undefined} */
  let before;
  let i = Math.max(0, stepFrom(0, state.from) - 2);
  while (i < cRow.length && startOf(i) <= state.to) {
    const box = boxOf(scene, item(i));
    const here = i;
    // Of many steps within half a pixel one is drawn.
    i = stepFrom(i + 1, startOf(i) + pixel / 2);
    if (!box) continue;
    const row = cRow[here];
    context.fillStyle =
      cType[here] === 0 ? classColour(theme, tClass[row]) : theme.kinds[xKind[row]];
    context.fillRect(box.x, box.y, box.width, box.height);
    if (box.width > 3) {
      context.strokeStyle = theme.path;
      context.lineWidth = 1;
      context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
    }
    if (before && (before.y !== box.y || box.x - before.x - before.width > 2)) {
      context.strokeStyle = theme.path;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(before.x + before.width, before.y + before.height / 2);
      context.lineTo(box.x, box.y + box.height / 2);
      context.stroke();
    }
    before = box;
  }
}

/** The selected item, with lines to what it waited for and what waited for it. @param {Scene} scene @param {Item} selected */
function paintSelection(scene, selected) {
  const { context, model, theme } = scene;
  const box = boxOf(scene, selected);
  if (!box) return;
  /** @type {Item[]} */
  const before = [];
  /** @type {Item[]} */
  const after = [];
  if (selected.type === 'task') {
    const { start, items } = model.predecessors;
    for (const row of items.subarray(start[selected.row], start[selected.row + 1]))
      before.push({ type: 'task', row });
    for (const row of model.successors(selected.row)) after.push({ type: 'task', row });
    for (const row of model.transfersOf(selected.row)) before.push({ type: 'transfer', row });
  } else {
    const task = model.columns.xTask[selected.row];
    const partner = model.columns.xPartner[selected.row];
    if (task >= 0) after.push({ type: 'task', row: task });
    if (partner >= 0) before.push({ type: 'transfer', row: partner });
  }
  context.lineWidth = 1.2;
  for (const [items, colour] of /** @type {[Item[], string][]} */ ([
    [before.slice(0, 64), theme.faint],
    [after.slice(0, 64), theme.accent],
  ])) {
    context.strokeStyle = colour;
    for (const item of items) {
      const other = boxOf(scene, item);
      if (!other) continue;
      const [a, b] = items[0] === before[0] && colour === theme.faint ? [other, box] : [box, other];
      const x1 = a.x + a.width;
      const y1 = a.y + a.height / 2;
      const y2 = b.y + b.height / 2;
      const bend = Math.max(12, Math.abs(b.x - x1) / 2);
      context.beginPath();
      context.moveTo(x1, y1);
      context.bezierCurveTo(x1 + bend, y1, b.x - bend, y2, b.x, y2);
      context.stroke();
    }
  }
  context.strokeStyle = theme.background;
  context.lineWidth = 4;
  context.strokeRect(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
  context.strokeStyle = theme.accent;
  context.lineWidth = 2;
  context.strokeRect(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
  context.lineWidth = 1;
}

/** @param {Scene} scene @param {Row} row */
function paintLabel(scene, row) {
  const { context, theme, model } = scene;
  const isHeader = row.kind === 'rank' || row.kind === 'space';
  context.fillStyle = isHeader ? theme.header : theme.background;
  context.fillRect(0, row.y, GUTTER - 1, row.height);
  context.fillStyle = theme.line;
  context.fillRect(0, row.y + row.height - 1, GUTTER, 1);
  context.fillRect(GUTTER - 1, row.y, 1, row.height);
  context.fillStyle =
    isHeader || (row.kind === 'tasks' && executes(model.meta.lanes[row.index].kind))
      ? theme.text
      : theme.faint;
  context.font = isHeader ? `600 ${FONT}` : FONT;
  const indent = row.kind === 'rank' ? 6 : row.kind === 'space' ? 10 : 18;
  const letters = Math.floor((GUTTER - indent - 6) / 6);
  const label = row.label.length > letters ? `${row.label.slice(0, letters - 1)}…` : row.label;
  context.fillText(label, indent, row.y + Math.min(row.height / 2, 14));
  context.font = FONT;
}

/** @param {Scene} scene */
function paintRuler(scene) {
  const { context, width, model, theme, state } = scene;
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, RULER);
  context.fillStyle = theme.line;
  context.fillRect(0, RULER - 1, width, 1);
  const perPixel = model.ns(state.to - state.from) / (width - GUTTER);
  const step = roundStep(perPixel * 90);
  context.fillStyle = theme.faint;
  const first = Math.ceil(model.ns(state.from) / step) * step;
  for (let ns = first; ns <= model.ns(state.to); ns += step) {
    const x = xOf(scene, ns / model.meta.quantum);
    if (x < GUTTER) continue;
    context.fillRect(x, RULER - 6, 1, 5);
    context.fillText(formatTime(Math.round(ns)), x + 3, RULER / 2 - 2);
  }
  context.fillStyle = theme.text;
  context.fillText(`${formatTime(model.ns(state.to - state.from))} in view`, 6, RULER / 2);
}
