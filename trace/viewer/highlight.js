// The marks over the slices: the critical path, the selected item and its relatives.
import { boxOf, GUTTER } from './scene.js';
import { classColour } from './theme.js';

/** @typedef {import('./scene.js').Scene} Scene */
/** @typedef {import('./scene.js').Item} Item */

/** The critical path: its slices in full colour, joined by lines. @param {Scene} scene */
export function paintPath(scene) {
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
    if (box.width > 8) {
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

/** The selected item, with lines to the items it waited for and to those that waited for it. @param {Scene} scene @param {Item} selected */
export function paintSelection(scene, selected) {
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
