// Mouse, wheel, touch and keys. It only calls the actions of main.js; it changes nothing itself.
import { GUTTER } from './scene.js';

/**
 * @typedef {object} Controls
 * @property {(factor: number, x: number) => void} zoom around a pixel
 * @property {(pixels: number) => void} pan
 * @property {(pixels: number) => void} scroll
 * @property {(x: number, y: number) => void} point
 * @property {() => void} leave
 * @property {(x: number, y: number) => void} click
 * @property {(key: string) => boolean} key true when the key meant something
 */

/** @param {HTMLCanvasElement} canvas @param {Controls} controls */
export function listen(canvas, controls) {
  /** @type {{ x: number, y: number, moved: number } | undefined} */
  let drag;
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    drag = { x: event.offsetX, y: event.offsetY, moved: 0 };
    canvas.setPointerCapture(event.pointerId);
    canvas.focus();
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!drag) {
      controls.point(event.offsetX, event.offsetY);
      return;
    }
    const dx = event.offsetX - drag.x;
    const dy = event.offsetY - drag.y;
    drag.moved += Math.abs(dx) + Math.abs(dy);
    drag.x = event.offsetX;
    drag.y = event.offsetY;
    controls.pan(-dx);
    controls.scroll(-dy);
  });
  canvas.addEventListener('pointerup', (event) => {
    if (drag && drag.moved < 4) controls.click(event.offsetX, event.offsetY);
    drag = undefined;
  });
  canvas.addEventListener('pointercancel', () => {
    drag = undefined;
  });
  canvas.addEventListener('pointerleave', () => controls.leave());
  canvas.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      const line = event.deltaMode === 1 ? 20 : 1;
      if (event.shiftKey) controls.pan((event.deltaX + event.deltaY) * line);
      else if (event.offsetX < GUTTER || event.altKey) controls.scroll(event.deltaY * line);
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) controls.pan(event.deltaX * line);
      else controls.zoom(1.0015 ** (event.deltaY * line), event.offsetX);
    },
    { passive: false },
  );
  // Keys work wherever the focus is, except while typing.
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.tagName === 'INPUT') return;
    const onButton = target.tagName === 'BUTTON' && (event.key === 'Enter' || event.key === ' ');
    if (!onButton && controls.key(event.key)) event.preventDefault();
  });
}
