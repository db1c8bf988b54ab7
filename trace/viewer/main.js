// Puts the viewer together: state, actions, redraw on change. `window.headrace` is for tests and the curious.
import { sliceAt } from './detail-levels.js';
import { el } from './dom.js';
import { formatTime } from './format.js';
import { listen } from './input.js';
import { makeLaneSeries, makeRows } from './layout.js';
import { paintMinimap } from './minimap.js';
import { loadModel } from './model.js';
import { boxOf, GUTTER, paint, RULER, rowAt, timeAt } from './paint.js';
import { detailsPanel, legendPanel, summaryPanel } from './panels.js';
import { findTask } from './search.js';
import { makeTheme } from './theme.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./paint.js').Item} Item */
/** @typedef {import('./paint.js').Scene} Scene */

class Viewer {
  /** @param {Model} model @param {HTMLElement} app */
  constructor(model, app) {
    this.model = model;
    this.darkWanted = matchMedia('(prefers-color-scheme: dark)');
    this.theme = makeTheme(this.darkWanted.matches);
    this.series = makeLaneSeries(model);
    this.rows = makeRows(model, false);
    /** @type {import('./paint.js').State} */
    this.state = {
      from: 0,
      to: model.span,
      scroll: 0,
      selected: undefined,
      hover: undefined,
      path: false,
      stages: false,
      focus: undefined,
    };
    this.tab = 'summary';
    this.width = 0;
    this.height = 0;
    this.drawn = 0;
    this.frame = 0;
    this.lastFrame = 0;
    this.buildPage(app);
    this.canvas = /** @type {HTMLCanvasElement} */ (app.querySelector('canvas.timeline'));
    this.map = /** @type {HTMLCanvasElement} */ (app.querySelector('canvas.minimap'));
    this.context = /** @type {CanvasRenderingContext2D} */ (
      this.canvas.getContext('2d', { alpha: false })
    );
    this.mapImage = document.createElement('canvas');
    listen(this.canvas, this);
    this.listenMap();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.darkWanted.addEventListener('change', () => this.setTheme(this.darkWanted.matches));
    this.setTheme(this.darkWanted.matches);
    this.resize();
    this.showPanel();
  }

  /** @param {HTMLElement} app */
  buildPage(app) {
    const { meta } = this.model;
    const button = (
      /** @type {string} */ text,
      /** @type {string} */ title,
      /** @type {() => void} */ action,
      /** @type {string} */ id = '',
    ) =>
      el(
        'button',
        { type: 'button', title, onclick: action, id, 'aria-pressed': id ? 'false' : undefined },
        text,
      );
    const tab = (/** @type {string} */ name, /** @type {string} */ title) =>
      el(
        'button.tab',
        {
          type: 'button',
          role: 'tab',
          id: `tab-${name}`,
          'aria-controls': 'panel',
          onclick: () => this.showTab(name),
        },
        title,
      );
    app.replaceChildren(
      el(
        'header',
        {},
        el('h1', {}, `${meta.program}`, meta.simulated ? ' (simulated)' : ''),
        el('input', {
          type: 'search',
          id: 'search',
          placeholder: 'search  /   gemm(4, 3, 2)   #17   A(3, 4)',
          'aria-label': 'Search a task by class, name, number or datum',
          onkeydown: (/** @type {KeyboardEvent} */ event) => {
            if (event.key === 'Enter')
              this.search(/** @type {HTMLInputElement} */ (event.target).value);
            if (event.key === 'Escape') this.canvas.focus();
          },
        }),
        el('span', { id: 'found', role: 'status' }),
        button('+', 'zoom in (W)', () => this.zoom(0.5, this.middle())),
        button('−', 'zoom out (S)', () => this.zoom(2, this.middle())),
        button('Fit', 'the whole trace (F)', () => this.fit()),
        button('Critical path', 'show the critical path (C)', () => this.togglePath(), 'path'),
        button(
          'Stages',
          'show the six stages of every task (G)',
          () => this.toggleStages(),
          'stages',
        ),
        button('Light / dark', 'the other colours', () => this.setTheme(!this.theme.dark)),
      ),
      el('canvas.minimap', {
        'aria-label': 'Overview of the whole trace; click or drag to move the view',
        role: 'img',
      }),
      el(
        'main',
        {},
        el('canvas.timeline', {
          tabIndex: 0,
          role: 'application',
          'aria-label':
            'Timeline. Arrow keys walk over tasks, R to what released a task, W A S D zoom and move.',
          'aria-describedby': 'said',
        }),
        el(
          'aside',
          { 'aria-label': 'Details, summary and legend' },
          el(
            'div.tabs',
            { role: 'tablist' },
            tab('details', 'Details'),
            tab('summary', 'Summary'),
            tab('legend', 'Legend'),
          ),
          el('div', { id: 'panel', role: 'tabpanel', tabIndex: 0 }),
        ),
      ),
      el('div', { id: 'tip', hidden: true }),
      el('div.said', { id: 'said', 'aria-live': 'polite' }),
    );
    for (const type of ['pointerdown']) {
      app.addEventListener(type, () => this.hideTip());
    }
  }

  // Drawing.

  /** @returns {Scene} */
  scene() {
    const { context, model, theme, rows, series, state } = this;
    return { context, width: this.width, height: this.height, model, theme, rows, series, state };
  }

  resize() {
    this.width = Math.max(GUTTER + 100, this.canvas.clientWidth);
    this.height = Math.max(100, this.canvas.clientHeight);
    this.canvas.width = this.width * devicePixelRatio;
    this.canvas.height = this.height * devicePixelRatio;
    this.map.width = Math.max(1, this.map.clientWidth);
    this.map.height = Math.max(1, this.map.clientHeight);
    this.mapImage.width = Math.max(1, this.map.width - GUTTER);
    this.mapImage.height = this.map.height;
    this.paintMap();
    this.clamp();
    this.redraw();
  }

  paintMap() {
    const context = /** @type {CanvasRenderingContext2D} */ (this.mapImage.getContext('2d'));
    paintMinimap(
      context,
      this.mapImage.width,
      this.mapImage.height,
      this.model,
      this.theme,
      this.series,
    );
  }

  redraw() {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.drawNow();
    });
  }

  drawNow() {
    const begin = performance.now();
    paint(this.scene());
    const context = /** @type {CanvasRenderingContext2D} */ (this.map.getContext('2d'));
    context.fillStyle = this.theme.background;
    context.fillRect(0, 0, this.map.width, this.map.height);
    context.drawImage(this.mapImage, GUTTER, 0);
    const scale = this.mapImage.width / this.model.span;
    const x = GUTTER + this.state.from * scale;
    const w = Math.max(3, (this.state.to - this.state.from) * scale);
    context.fillStyle = this.theme.dark ? 'rgba(0,0,0,.55)' : 'rgba(255,255,255,.6)';
    context.fillRect(GUTTER, 0, x - GUTTER, this.map.height);
    context.fillRect(x + w, 0, this.map.width, this.map.height);
    context.strokeStyle = this.theme.accent;
    context.strokeRect(x + 0.5, 0.5, w - 1, this.map.height - 1);
    this.lastFrame = performance.now() - begin;
    this.drawn++;
  }

  /** @param {boolean} dark */
  setTheme(dark) {
    this.theme = makeTheme(dark);
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    this.paintMap();
    this.redraw();
    this.showPanel();
  }

  // Moving.

  middle() {
    return (GUTTER + this.width) / 2;
  }

  /** @param {number} factor @param {number} x */
  zoom(factor, x) {
    const time = timeAt(this.scene(), Math.max(GUTTER, x));
    const { state } = this;
    const least = Math.min(this.model.span, 20);
    const length = Math.min(
      this.model.span * 1.1,
      Math.max(least, (state.to - state.from) * factor),
    );
    const ratio = length / (state.to - state.from);
    state.from = time - (time - state.from) * ratio;
    state.to = state.from + length;
    this.clamp();
    this.redraw();
  }

  /** @param {number} pixels */
  pan(pixels) {
    const { state } = this;
    const move = (pixels / (this.width - GUTTER)) * (state.to - state.from);
    state.from += move;
    state.to += move;
    this.clamp();
    this.redraw();
  }

  /** @param {number} pixels */
  scroll(pixels) {
    this.state.scroll += pixels;
    this.clamp();
    this.redraw();
  }

  clamp() {
    const { state, model } = this;
    const length = state.to - state.from;
    const slack = 0.05 * length;
    if (state.from < -slack) state.from = -slack;
    if (state.from > model.span + slack - length)
      state.from = Math.max(-slack, model.span + slack - length);
    state.to = state.from + length;
    const last = this.rows[this.rows.length - 1];
    const total = last ? last.y + last.height : 0;
    state.scroll = Math.max(0, Math.min(state.scroll, total - (this.height - RULER)));
  }

  fit() {
    const { state, model } = this;
    if (state.selected && state.from <= 0 && state.to >= model.span) {
      this.zoomTo(state.selected);
    } else {
      state.from = 0;
      state.to = model.span;
    }
    this.clamp();
    this.redraw();
  }

  /** @param {Item} item */
  extent(item) {
    const { model } = this;
    const isTask = item.type === 'task';
    return {
      start: isTask ? model.columns.tStart[item.row] : model.columns.xStart[item.row],
      end: isTask ? model.taskEnd(item.row) : model.transferEnd(item.row),
    };
  }

  /** @param {Item} item */
  zoomTo(item) {
    const { start, end } = this.extent(item);
    const length = Math.max(20, (end - start) * 8);
    this.state.from = (start + end) / 2 - length / 2;
    this.state.to = this.state.from + length;
  }

  // Selecting.

  /** @param {Item | undefined} item @param {boolean} [reveal] move the view so that it can be seen */
  select(item, reveal = true) {
    const { state } = this;
    state.selected = item;
    if (item) {
      if (reveal) this.reveal(item);
      this.tab = 'details';
      this.say(item);
    }
    this.showPanel();
    this.redraw();
  }

  /** @param {Item} item */
  reveal(item) {
    const { state } = this;
    const { start, end } = this.extent(item);
    const pixels = ((end - start) / (state.to - state.from)) * (this.width - GUTTER);
    if (pixels < 3 && state.to - state.from > 40) this.zoomTo(item);
    if (end < state.from || start > state.to) {
      const length = state.to - state.from;
      state.from = (start + end) / 2 - length / 2;
      state.to = state.from + length;
    }
    const box = boxOf(this.scene(), item);
    const visible = this.height - RULER;
    if (box && (box.y < state.scroll || box.y + box.height > state.scroll + visible))
      state.scroll = box.y - visible / 2;
    this.clamp();
  }

  /** @param {Item} item */
  say(item) {
    const { model } = this;
    const { start, end } = this.extent(item);
    const name = item.type === 'task' ? model.taskName(item.row) : model.transferName(item.row);
    const said = document.getElementById('said');
    if (said)
      said.textContent = `${name}, at ${formatTime(model.ns(start))}, took ${formatTime(model.ns(end - start))}`;
  }

  /** What is under a pixel. @param {number} x @param {number} y @returns {Item | undefined} */
  itemAt(x, y) {
    if (x < GUTTER) return undefined;
    const scene = this.scene();
    const row = rowAt(scene, y);
    if (!row || (row.kind !== 'tasks' && row.kind !== 'transfers')) return undefined;
    const series = this.series[row.index][row.kind];
    const slack = ((this.state.to - this.state.from) / (this.width - GUTTER)) * 3;
    const found = sliceAt(series, timeAt(scene, x), slack);
    return found < 0 ? undefined : { type: row.kind === 'tasks' ? 'task' : 'transfer', row: found };
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    this.select(this.itemAt(x, y), false);
  }

  /** @param {number} x @param {number} y */
  point(x, y) {
    const item = this.itemAt(x, y);
    const text = item ? this.tipOf(item) : this.idleTip(x, y);
    const tip = document.getElementById('tip');
    if (!tip) return;
    tip.hidden = text === '';
    if (text === '') return;
    tip.textContent = text;
    const box = this.canvas.getBoundingClientRect();
    tip.style.left = `${Math.min(box.left + x + 12, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(box.top + y + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  leave() {
    this.hideTip();
  }

  hideTip() {
    const tip = document.getElementById('tip');
    if (tip) tip.hidden = true;
  }

  /** @param {Item} item */
  tipOf(item) {
    const { model } = this;
    const { start, end } = this.extent(item);
    const name = item.type === 'task' ? model.taskName(item.row) : model.transferName(item.row);
    return `${name}: ${formatTime(model.ns(end - start))}`;
  }

  /** @param {number} x @param {number} y */
  idleTip(x, y) {
    const scene = this.scene();
    const row = rowAt(scene, y);
    if (row?.kind !== 'tasks' || x < GUTTER) return '';
    const idle = this.series[row.index].idle;
    const found = sliceAt(idle, timeAt(scene, x), 0);
    if (found < 0) return '';
    const { title, advice } = this.model.meta.idle[idle.key[found]];
    return `idle ${formatTime(this.model.ns(idle.dur[found]))}: ${title}. Much of this: ${advice}`;
  }

  /** @param {number} direction */
  stepAlong(direction) {
    const { selected } = this.state;
    if (!selected) {
      const first = this.series.find(({ tasks }) => tasks.to > tasks.from);
      if (first) this.select({ type: 'task', row: first.tasks.from });
      return;
    }
    const isTask = selected.type === 'task';
    const lane = isTask ? this.model.taskLane(selected.row) : this.model.transferLane(selected.row);
    const series = this.series[lane]?.[isTask ? 'tasks' : 'transfers'];
    const row = selected.row + direction;
    if (series && row >= series.from && row < series.to) this.select({ type: selected.type, row });
  }

  /** @param {number} direction */
  stepAcross(direction) {
    const { selected } = this.state;
    if (!selected) {
      this.stepAlong(1);
      return;
    }
    const isTask = selected.type === 'task';
    const lane = isTask ? this.model.taskLane(selected.row) : this.model.transferLane(selected.row);
    const lanes = this.rows.filter((row) => row.kind === 'tasks' || row.kind === 'transfers');
    const here = lanes.findIndex(
      (row) => row.index === lane && row.kind === (isTask ? 'tasks' : 'transfers'),
    );
    const { start } = this.extent(selected);
    for (let i = here + direction; i >= 0 && i < lanes.length; i += direction) {
      const row = lanes[i];
      const series = this.series[row.index][row.kind === 'tasks' ? 'tasks' : 'transfers'];
      if (series.to === series.from) continue;
      const found = sliceAt(series, start, this.model.span);
      if (found >= 0) {
        this.select({ type: row.kind === 'tasks' ? 'task' : 'transfer', row: found });
        return;
      }
    }
  }

  /** @param {number} step */
  walkPath(step) {
    const { cRow, cType } = this.model.columns;
    if (step < 0 || step >= cRow.length) return;
    if (!this.state.path) this.togglePath();
    this.select({ type: cType[step] === 0 ? 'task' : 'transfer', row: cRow[step] });
  }

  /** @param {number} direction */
  walkFromSelected(direction) {
    const { selected } = this.state;
    const { pathOfTask, pathOfTransfer } = this.model;
    const here =
      selected && (selected.type === 'task' ? pathOfTask : pathOfTransfer).get(selected.row);
    this.walkPath(here === undefined ? this.model.columns.cRow.length - 1 : here + direction);
  }

  goToReleaser() {
    const { selected } = this.state;
    if (selected?.type !== 'task') return;
    const released = this.model.columns.tReleased[selected.row];
    if (released >= 0) this.select({ type: 'task', row: released });
  }

  /** @param {string} text */
  search(text) {
    const { selected } = this.state;
    const isTask = selected?.type === 'task';
    const after = isTask ? this.model.columns.tStart[selected.row] : -1;
    const { row, count } = findTask(this.model, text, after, isTask ? selected.row : -1);
    const found = document.getElementById('found');
    if (found) found.textContent = count === 0 ? 'nothing found' : `${count} found`;
    if (row >= 0) this.select({ type: 'task', row });
    return count;
  }

  // Switches and panels.

  togglePath() {
    this.state.path = !this.state.path;
    document.getElementById('path')?.setAttribute('aria-pressed', String(this.state.path));
    this.redraw();
  }

  toggleStages() {
    this.state.stages = !this.state.stages;
    document.getElementById('stages')?.setAttribute('aria-pressed', String(this.state.stages));
    this.rows = makeRows(this.model, this.state.stages);
    this.clamp();
    this.redraw();
  }

  /** @param {number} taskClass */
  focusClass(taskClass) {
    const { state } = this;
    state.focus = state.focus?.has(taskClass) ? undefined : new Set([taskClass]);
    this.showPanel();
    this.redraw();
  }

  /** @param {string} name */
  showTab(name) {
    this.tab = name;
    this.showPanel();
  }

  showPanel() {
    const panel = document.getElementById('panel');
    if (!panel) return;
    for (const name of ['details', 'summary', 'legend']) {
      document
        .getElementById(`tab-${name}`)
        ?.setAttribute('aria-selected', String(this.tab === name));
    }
    const { model, theme, state } = this;
    panel.replaceChildren(
      this.tab === 'details'
        ? detailsPanel(model, theme, state.selected, this)
        : this.tab === 'legend'
          ? legendPanel(model, theme, state.focus, this)
          : summaryPanel(model, theme, this),
    );
    panel.scrollTop = 0;
  }

  /** @param {string} key */
  key(key) {
    const step = (this.width - GUTTER) / 8;
    /** @type {Record<string, () => void>} */
    const actions = {
      w: () => this.zoom(0.7, this.middle()),
      s: () => this.zoom(1 / 0.7, this.middle()),
      a: () => this.pan(-step),
      d: () => this.pan(step),
      f: () => this.fit(),
      c: () => this.togglePath(),
      g: () => this.toggleStages(),
      r: () => this.goToReleaser(),
      '[': () => this.walkFromSelected(-1),
      ']': () => this.walkFromSelected(1),
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
    const move = (/** @type {PointerEvent} */ event) => {
      const time = ((event.offsetX - GUTTER) / this.mapImage.width) * this.model.span;
      const length = this.state.to - this.state.from;
      this.state.from = time - length / 2;
      this.state.to = this.state.from + length;
      this.clamp();
      this.redraw();
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
  if (!app) return undefined;
  app.textContent = 'Loading the trace ...';
  try {
    const model = await loadModel((done) => {
      app.textContent = `Loading the trace: ${Math.round(100 * done)} %`;
    });
    return new Viewer(model, app);
  } catch (error) {
    app.textContent = `The trace could not be shown: ${error instanceof Error ? error.message : error}. A browser from 2023 or later is needed.`;
    throw error;
  }
}

Object.assign(window, { headrace: start() });
