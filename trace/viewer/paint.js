// Paints the timeline on a canvas. A frame is a function of the state; only scratch memory lives between frames.
import { paintMemory, paintProgress } from './charts.js';
import { firstAbove, forEachVisible } from './detail-levels.js';
import { formatMark, formatTime, roundStep } from './format.js';
import { paintPath, paintSelection } from './highlight.js';
import { executes, STAGE_ROWS } from './layout.js';
import { GUTTER, RULER, xOf } from './scene.js';
import { classColour, inkOn, mix, stageColour } from './theme.js';

/** @typedef {import('./scene.js').Scene} Scene */
/** @typedef {import('./scene.js').Item} Item */
/** @typedef {import('./layout.js').Row} Row */
/** @typedef {import('./detail-levels.js').Series} Series */

const FONT = '11px system-ui, sans-serif';

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
 * Rectangles of one colour: x, width and height each. Kept from frame to frame as scratch memory, because garbage
 * would interrupt panning.
 * @type {Map<number, { values: number[], length: number }>}
 */
const batches = new Map();

/**
 * Rectangles by colour. Neighbours that touch within a pixel become one; each colour is set once.
 * @param {Scene} scene @param {Series} series @param {(key: number) => string} colour
 * @param {number} bottom @param {number} height @param {number} least width of the smallest slice
 */
function paintSeries(scene, series, colour, bottom, height, least) {
  const { context, width, state } = scene;
  const scale = (width - GUTTER) / (state.to - state.from);
  for (const batch of batches.values()) batch.length = 0;
  forEachVisible(series, state.from, state.to, width, (start, end, key, share) => {
    let batch = batches.get(key);
    if (!batch) {
      batch = { values: [], length: 0 };
      batches.set(key, batch);
    }
    const { values, length: n } = batch;
    const x = Math.max(GUTTER - 2, GUTTER + (start - state.from) * scale);
    const w = Math.min(
      width + 2 - x,
      Math.max(least, (end - start) * scale - (share === 1 && (end - start) * scale > 4 ? 1 : 0)),
    );
    const h = Math.max(2, Math.round(share * height));
    if (n > 0 && w < 2 && values[n - 1] === h && x - (values[n - 3] + values[n - 2]) < 0.25) {
      values[n - 2] = x + w - values[n - 3];
    } else {
      values[n] = x;
      values[n + 1] = w;
      values[n + 2] = h;
      batch.length = n + 3;
    }
  });
  for (const [key, { values, length }] of batches) {
    if (length === 0) continue;
    context.fillStyle = colour(key);
    for (let i = 0; i < length; i += 3) {
      context.fillRect(values[i], bottom - values[i + 2], values[i + 1], values[i + 2]);
    }
  }
}

/** @param {Scene} scene @param {Series} series @param {Row} row */
function paintIdle(scene, series, row) {
  const { theme } = scene;
  paintSeries(scene, series, (reason) => theme.idle[reason], row.y + row.height - 2, 10, 0.5);
}

/** Colour of a class in the present state: full, or muted when other classes are in focus. @param {Scene} scene */
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
  // Names, if there is room for them.
  const letter = context.measureText('gemm(0, 1)').width / 10;
  if (
    firstAbove(series.start, series.from, series.to, state.to) -
      firstAbove(series.start, series.from, series.to, state.from) >
    width / 20
  )
    return;
  forEachVisible(series, state.from, state.to, width, (start, end, key, _share, task) => {
    const left = Math.max(GUTTER, GUTTER + (start - state.from) * scale);
    const right = Math.min(width, GUTTER + (end - state.from) * scale);
    const letters = Math.floor((right - left - 10) / letter);
    if (task < 0 || letters < 4) return;
    const name = model.taskName(task);
    if (name.length > letters && letters < 8) return;
    context.fillStyle = inkOn(colour(key));
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
  const { context, model, theme, state } = scene;
  const { tStart } = model.columns;
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
  const from = Math.max(series.from, first - 8);
  paintStagesOf(scene, row, from, last, true);
  paintStagesOf(scene, row, from, last, false);
}

/** The stages before the kernel, or those from it on. @param {Scene} scene @param {Row} row @param {number} from @param {number} to @param {boolean} wait */
function paintStagesOf(scene, row, from, to, wait) {
  const { context, width, model, theme } = scene;
  const { tStart, tDur, tReady, tAlloc, tStageIn, tCommIn, tIssued, tStageOut, tFinal, tClass } =
    model.columns;
  for (let task = from; task < to; task++) {
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
      // Waiting is thin: many tasks wait at once and share a row, but only one of them runs.
      const waiting = times[stage] <= start;
      if (waiting !== wait || times[stage] <= times[stage - 1]) continue;
      const x = xOf(scene, times[stage - 1]);
      const w = xOf(scene, times[stage]) - x;
      if (x > width || x + w < GUTTER || w < 0.3) continue;
      context.fillStyle = stageColour(theme, tClass[task], stage);
      context.fillRect(x, waiting ? y + 2 : y, w, waiting ? 3 : 7);
    }
  }
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
  const letter = context.measureText('gemm(0, 1)').width / 10;
  const indent = row.kind === 'rank' ? 6 : row.kind === 'space' ? 10 : 18;
  const letters = Math.floor((GUTTER - indent - 4) / letter);
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
    context.fillText(formatMark(Math.round(ns), step), x + 3, RULER / 2 - 2);
  }
  context.fillStyle = theme.text;
  context.fillText(`${formatTime(model.ns(state.to - state.from))} in view`, 6, RULER / 2);
}
