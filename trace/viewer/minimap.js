// The whole trace in one strip: how busy the lanes are and why they idle, with the part in view framed.
import { forEachVisible } from './detail-levels.js';
import { executes } from './layout.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./theme.js').Theme} Theme */

/**
 * Paints the strip into a canvas that the caller keeps.
 * @param {HTMLCanvasElement} image @param {Model} model @param {Theme} theme @param {import('./layout.js').LaneSeries} series
 */
export function paintMinimap(image, model, theme, series) {
  const context = /** @type {CanvasRenderingContext2D} */ (image.getContext('2d'));
  const { width, height } = image;
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
  const used = new Set(
    model.meta.lanes
      .filter((_, i) => series[i].tasks.to > series[i].tasks.from)
      .map((lane) => lane.kind),
  );
  if (used.size > 1) used.delete('script');
  model.meta.lanes.forEach((lane, index) => {
    if (!executes(lane.kind) || !used.has(lane.kind)) return;
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

/**
 * Shows the strip with all but the part in view dimmed.
 * @param {HTMLCanvasElement} map @param {HTMLCanvasElement} image @param {number} span @param {Theme} theme
 * @param {{ from: number, to: number }} view
 */
export function frameView(map, image, span, theme, view) {
  const context = /** @type {CanvasRenderingContext2D} */ (map.getContext('2d'));
  const { width, height } = map;
  const left = width - image.width;
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, height);
  context.drawImage(image, left, 0);
  const x = left + (view.from * image.width) / span;
  const w = Math.max(3, ((view.to - view.from) * image.width) / span);
  context.fillStyle = theme.dark ? 'rgba(0,0,0,.55)' : 'rgba(255,255,255,.6)';
  context.fillRect(left, 0, x - left, height);
  context.fillRect(x + w, 0, width, height);
  context.strokeStyle = theme.accent;
  context.strokeRect(Math.max(left, x) + 0.5, 0.5, w - 1, height - 1);
}
