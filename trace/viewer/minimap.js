// The whole trace in one strip: how busy the lanes are and why they idle, with the part in view framed.
import { forEachVisible } from './detail-levels.js';
import { executes } from './layout.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./theme.js').Theme} Theme */

/**
 * Paints the strip; the caller keeps it as an image and frames the view on top.
 * @param {CanvasRenderingContext2D} context @param {number} width @param {number} height
 * @param {Model} model @param {Theme} theme @param {import('./layout.js').LaneSeries} series
 */
export function paintMinimap(context, width, height, model, theme, series) {
  const busy = new Float64Array(width);
  const idle = theme.idle.map(() => new Float64Array(width));
  const scale = width / model.span;
  /** @param {Float64Array} into @param {number} start @param {number} end @param {number} share */
  const spread = (into, start, end, share) => {
    const a = start * scale;
    const b = Math.min(width, end * scale);
    for (let x = Math.floor(a); x < Math.min(width, Math.ceil(b)); x++) {
      into[x] += (Math.min(b, x + 1) - Math.max(a, x)) * share;
    }
  };
  let lanes = 0;
  model.meta.lanes.forEach((lane, index) => {
    if (!executes(lane.kind)) return;
    lanes++;
    forEachVisible(series[index].tasks, 0, model.span, 2 * width, (start, end, _key, share) =>
      spread(busy, start, end, share),
    );
    forEachVisible(series[index].idle, 0, model.span, 2 * width, (start, end, key, share) =>
      spread(idle[key], start, end, share),
    );
  });
  context.fillStyle = theme.header;
  context.fillRect(0, 0, width, height);
  const unit = height / Math.max(1, lanes);
  for (let x = 0; x < width; x++) {
    let y = height - busy[x] * unit;
    context.fillStyle = theme.classes[0];
    context.fillRect(x, y, 1, busy[x] * unit);
    for (let reason = 0; reason < idle.length; reason++) {
      const h = idle[reason][x] * unit;
      if (h < 0.5) continue;
      context.fillStyle = theme.idle[reason];
      context.fillRect(x, y - h, 1, h);
      y -= h;
    }
  }
}
