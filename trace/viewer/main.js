// Puts the viewer together: state, actions, redraw on change. `window.headrace` is for tests and curious users.
import { memoryWords } from './charts.js';
import { sliceAt } from './detail-levels.js';
import { detailsPanel } from './details.js';
import { formatTime } from './format.js';
import { listen } from './input.js';
import { makeLaneSeries, makeRows } from './layout.js';
import { frameView, paintMinimap } from './minimap.js';
import { loadModel } from './model.js';
import { buildPage, press, showTip } from './page.js';
import { paint } from './paint.js';
import { legendPanel, summaryPanel } from './panels.js';
import { GUTTER, RULER, rowAt, timeAt } from './scene.js';
import { findTask } from './search.js';
import { makeTheme } from './theme.js';
import { View } from './view.js';
import { across, along, firstItem, stepAt, stepFrom } from './walk.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./scene.js').Item} Item */
/** @typedef {import('./scene.js').Scene} Scene */

class Viewer {
  /** @param {Model} model @param {HTMLElement} app */
  constructor(model, app) {
    this.model = model;
    const dark = matchMedia('(prefers-color-scheme: dark)');
    this.theme = makeTheme(dark.matches);
    this.series = makeLaneSeries(model);
    this.rows = makeRows(model, false, 0);
    /** @type {import('./scene.js').State} */
    this.state = {
      from: 0,
      to: model.span,
      scroll: 0,
      selected: undefined,
      path: false,
      stages: false,
      focus: undefined,
    };
    this.tab = 'summary';
    this.width = 0;
    this.height = 0;
    this.frame = 0;
    // For tests: frames drawn, and milliseconds the last one took.
    this.drawn = 0;
    this.lastFrame = 0;
    this.view = new View(
      model,
      () => this.scene(),
      () => this.redraw(),
    );
    const { timeline, map } = buildPage(
      app,
      `${model.meta.program}${model.meta.simulated ? ' (simulated)' : ''}`,
      this,
    );
    this.canvas = timeline;
    this.map = map;
    this.context = /** @type {CanvasRenderingContext2D} */ (
      timeline.getContext('2d', { alpha: false })
    );
    this.mapImage = document.createElement('canvas');
    listen(timeline, this);
    this.listenMap();
    new ResizeObserver(() => this.resize()).observe(timeline);
    dark.addEventListener('change', () => this.setTheme(dark.matches));
    this.resize();
    this.setTheme(dark.matches);
  }

  // Drawing.

  /** @returns {Scene} */
  scene() {
    const { context, width, height, model, theme, rows, series, state } = this;
    return { context, width, height, model, theme, rows, series, state };
  }

  resize() {
    this.width = Math.max(GUTTER + 100, this.canvas.clientWidth);
    this.height = Math.max(100, this.canvas.clientHeight);
    this.canvas.width = this.width * devicePixelRatio;
    this.canvas.height = this.height * devicePixelRatio;
    this.map.width = this.width;
    this.map.height = Math.max(1, this.map.clientHeight);
    this.mapImage.width = this.width - GUTTER;
    this.mapImage.height = this.map.height;
    paintMinimap(this.mapImage, this.model, this.theme, this.series);
    this.arrange();
    this.view.clamp();
  }

  /** Places the rows in the available height. */
  arrange() {
    this.rows = makeRows(this.model, this.state.stages, this.height - RULER);
  }

  redraw() {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const begin = performance.now();
      paint(this.scene());
      frameView(this.map, this.mapImage, this.model.span, this.theme, this.state);
      this.lastFrame = performance.now() - begin;
      this.drawn++;
    });
  }

  /** @param {boolean} dark */
  setTheme(dark) {
    this.theme = makeTheme(dark);
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    paintMinimap(this.mapImage, this.model, this.theme, this.series);
    this.redraw();
    this.showTab(this.tab);
  }

  toggleTheme() {
    this.setTheme(!this.theme.dark);
  }

  // Moving.

  /** @param {number} factor @param {number} x */
  zoom(factor, x) {
    this.view.zoom(factor, x);
  }

  /** @param {number} factor */
  zoomBy(factor) {
    this.view.zoom(factor, this.view.middle());
  }

  /** @param {number} pixels */
  pan(pixels) {
    this.view.pan(pixels);
  }

  /** @param {number} pixels */
  scroll(pixels) {
    this.view.scroll(pixels);
  }

  fit() {
    this.view.fit();
  }

  focusTimeline() {
    this.canvas.focus();
  }

  // Selecting.

  /** @param {Item | undefined} item @param {boolean} [reveal] move the view so that it can be seen */
  select(item, reveal = true) {
    this.state.selected = item;
    if (item) {
      if (reveal) this.view.reveal(item);
      const said = document.getElementById('said');
      if (said) said.textContent = this.describe(item);
    }
    this.showTab(item ? 'details' : this.tab);
    this.redraw();
  }

  /** @param {Item} item */
  describe(item) {
    const { start, end } = this.view.extent(item);
    const name =
      item.type === 'task' ? this.model.taskName(item.row) : this.model.transferName(item.row);
    return `${name}, at ${formatTime(this.model.ns(start))}, took ${formatTime(this.model.ns(end - start))}`;
  }

  /** The item under a pixel, at most three pixels away. @param {number} x @param {number} y @returns {Item | undefined} */
  itemAt(x, y) {
    const scene = this.scene();
    const row = rowAt(scene, y);
    if (x < GUTTER || !row || (row.kind !== 'tasks' && row.kind !== 'transfers')) return undefined;
    const slack = ((this.state.to - this.state.from) / (this.width - GUTTER)) * 3;
    const found = sliceAt(this.series[row.index][row.kind], timeAt(scene, x), slack);
    return found < 0 ? undefined : { type: row.kind === 'tasks' ? 'task' : 'transfer', row: found };
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    this.select(this.itemAt(x, y), false);
  }

  /** @param {number} x @param {number} y */
  point(x, y) {
    const item = this.itemAt(x, y);
    showTip(this.canvas, x, y, item ? this.describe(item) : this.wordsAt(x, y));
  }

  leave() {
    showTip(this.canvas, 0, 0, '');
  }

  /** The reason why a lane idles under a pixel, or the contents of the memory, in words. @param {number} x @param {number} y */
  wordsAt(x, y) {
    const scene = this.scene();
    const row = rowAt(scene, y);
    if (x < GUTTER) return '';
    if (row?.kind === 'memory') return memoryWords(this.model, row.index, timeAt(scene, x));
    if (row?.kind !== 'tasks') return '';
    const { idle } = this.series[row.index];
    const found = sliceAt(idle, timeAt(scene, x), 0);
    if (found < 0) return '';
    const { title, advice } = this.model.meta.idle[idle.key[found]];
    return `idle ${formatTime(this.model.ns(idle.dur[found]))}: ${title}. Much of this: ${advice}`;
  }

  /** @param {number} direction */
  stepAlong(direction) {
    const { selected } = this.state;
    const next = selected
      ? along(this.model, this.series, selected, direction)
      : firstItem(this.series);
    if (next) this.select(next);
  }

  /** @param {number} direction */
  stepAcross(direction) {
    const { selected } = this.state;
    if (!selected) return this.stepAlong(0);
    const { start } = this.view.extent(selected);
    const next = across(this.model, this.series, this.rows, selected, start, direction);
    if (next) this.select(next);
  }

  /** @param {number} step */
  walkPath(step) {
    const item = stepAt(this.model, step);
    if (!item) return;
    if (!this.state.path) this.togglePath();
    this.select(item);
  }

  goToReleaser() {
    const { selected } = this.state;
    const row = selected?.type === 'task' ? this.model.columns.tReleased[selected.row] : -1;
    if (row >= 0) this.select({ type: 'task', row });
  }

  /** @param {string} text */
  search(text) {
    const { selected } = this.state;
    const row = selected?.type === 'task' ? selected.row : -1;
    const after = row < 0 ? -1 : this.model.columns.tStart[row];
    const result = findTask(this.model, text, after, row);
    const found = document.getElementById('found');
    if (found) found.textContent = result.count === 0 ? 'nothing found' : `${result.count} found`;
    if (result.row >= 0) this.select({ type: 'task', row: result.row });
    return result.count;
  }

  // Switches and panels.

  togglePath() {
    this.state.path = !this.state.path;
    press('path', this.state.path);
    this.redraw();
  }

  toggleStages() {
    this.state.stages = !this.state.stages;
    press('stages', this.state.stages);
    this.arrange();
    this.view.clamp();
  }

  /** @param {number} taskClass */
  focusClass(taskClass) {
    const { state } = this;
    state.focus = state.focus?.has(taskClass) ? undefined : new Set([taskClass]);
    this.showTab(this.tab);
    this.redraw();
  }

  /** @param {string} name */
  showTab(name) {
    this.tab = name;
    const panel = document.getElementById('panel');
    if (!panel) return;
    for (const tab of ['details', 'summary', 'legend']) {
      document.getElementById(`tab-${tab}`)?.setAttribute('aria-selected', String(tab === name));
    }
    const { model, theme, state } = this;
    panel.replaceChildren(
      name === 'details'
        ? detailsPanel(model, theme, state.selected, this)
        : name === 'legend'
          ? legendPanel(model, theme, state.focus, this)
          : summaryPanel(model, theme, this),
    );
    panel.scrollTop = 0;
  }

  /** @param {string} key */
  key(key) {
    const aside = (this.width - GUTTER) / 8;
    const { selected } = this.state;
    /** @type {Record<string, () => void>} */
    const actions = {
      w: () => this.zoomBy(0.7),
      s: () => this.zoomBy(1 / 0.7),
      a: () => this.pan(-aside),
      d: () => this.pan(aside),
      f: () => this.fit(),
      c: () => this.togglePath(),
      g: () => this.toggleStages(),
      r: () => this.goToReleaser(),
      '[': () => this.walkPath(stepFrom(this.model, selected, -1)),
      ']': () => this.walkPath(stepFrom(this.model, selected, 1)),
      '/': () => document.getElementById('search')?.focus(),
      Escape: () => this.select(undefined),
      Enter: () => this.stepAlong(0),
      ArrowLeft: () => this.stepAlong(-1),
      ArrowRight: () => this.stepAlong(1),
      ArrowUp: () => this.stepAcross(-1),
      ArrowDown: () => this.stepAcross(1),
    };
    const action = actions[key.length === 1 ? key.toLowerCase() : key];
    action?.();
    return action !== undefined;
  }

  listenMap() {
    /** @param {PointerEvent} event */
    const move = (event) => {
      this.view.center(((event.offsetX - GUTTER) / this.mapImage.width) * this.model.span);
    };
    this.map.addEventListener('pointerdown', (event) => {
      this.map.setPointerCapture(event.pointerId);
      move(event);
    });
    this.map.addEventListener('pointermove', (event) => {
      if (event.buttons === 1) move(event);
    });
  }
}

async function start() {
  const app = document.getElementById('app');
  if (!app) throw new Error('the page has no place for the viewer');
  try {
    const model = await loadModel((done) => {
      app.textContent = `Loading the trace: ${Math.round(100 * done)} %`;
    });
    return new Viewer(model, app);
  } catch (error) {
    app.textContent = `The trace could not be shown: ${error}. A browser from 2023 or later is needed.`;
    throw error;
  }
}

Object.assign(window, { headrace: start() });
