// The part of the trace in view: moving, zooming, and keeping it inside.
import { boxOf, GUTTER, RULER, timeAt } from './scene.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./scene.js').Item} Item */
/** @typedef {import('./scene.js').Scene} Scene */

/** Fewest quanta in view. */
const CLOSEST = 20;

export class View {
  /** @param {Model} model @param {() => Scene} scene @param {() => void} changed */
  constructor(model, scene, changed) {
    this.model = model;
    this.scene = scene;
    this.changed = changed;
  }

  middle() {
    return (GUTTER + this.scene().width) / 2;
  }

  /** @param {number} factor @param {number} x pixel that keeps its place */
  zoom(factor, x) {
    const scene = this.scene();
    const { state } = scene;
    const time = timeAt(scene, Math.max(GUTTER, x));
    const least = Math.min(this.model.span, CLOSEST);
    const length = Math.min(
      this.model.span * 1.1,
      Math.max(least, (state.to - state.from) * factor),
    );
    this.show(time - (time - state.from) * (length / (state.to - state.from)), length);
  }

  /** @param {number} pixels */
  pan(pixels) {
    const { state, width } = this.scene();
    const length = state.to - state.from;
    this.show(state.from + (pixels / (width - GUTTER)) * length, length);
  }

  /** @param {number} pixels */
  scroll(pixels) {
    this.scene().state.scroll += pixels;
    this.clamp();
  }

  /** @param {number} time moment to be in the middle */
  center(time) {
    const { state } = this.scene();
    const length = state.to - state.from;
    this.show(time - length / 2, length);
  }

  /** @param {number} from @param {number} length */
  show(from, length) {
    const { state } = this.scene();
    state.from = from;
    state.to = from + length;
    this.clamp();
  }

  /** Keeps the trace in view, with a little room on both sides. */
  clamp() {
    const { state, rows, height } = this.scene();
    const length = state.to - state.from;
    const slack = 0.05 * length;
    state.from = Math.max(-slack, Math.min(state.from, this.model.span + slack - length));
    state.to = state.from + length;
    const last = rows[rows.length - 1];
    const total = last ? last.y + last.height : 0;
    state.scroll = Math.max(0, Math.min(state.scroll, total - (height - RULER)));
    this.changed();
  }

  /** The whole trace; when it is in view already, the selected item. */
  fit() {
    const { state } = this.scene();
    if (state.selected && state.from <= 0 && state.to >= this.model.span)
      this.zoomTo(state.selected);
    else this.show(0, this.model.span);
  }

  /** @param {Item} item */
  extent({ type, row }) {
    const { columns } = this.model;
    return type === 'task'
      ? { start: columns.tStart[row], end: this.model.taskEnd(row) }
      : { start: columns.xStart[row], end: this.model.transferEnd(row) };
  }

  /** @param {Item} item */
  zoomTo(item) {
    const { start, end } = this.extent(item);
    const length = Math.max(CLOSEST, (end - start) * 8);
    this.show((start + end) / 2 - length / 2, length);
  }

  /** Moves as little as needed to show an item, and zooms in if it would be invisible. @param {Item} item */
  reveal(item) {
    const { state, width, height } = this.scene();
    const { start, end } = this.extent(item);
    const length = state.to - state.from;
    if (((end - start) / length) * (width - GUTTER) < 3 && length > 2 * CLOSEST) this.zoomTo(item);
    if (end < state.from || start > state.to) this.center((start + end) / 2);
    const box = boxOf(this.scene(), item);
    const visible = height - RULER;
    if (box && (box.y < state.scroll || box.y + box.height > state.scroll + visible)) {
      state.scroll = box.y - visible / 2;
    }
    this.clamp();
  }
}
