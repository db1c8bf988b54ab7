// The elements of the page: tool bar, overview, timeline, side panel.
import { el } from './dom.js';

/**
 * @typedef {object} PageActions
 * @property {(text: string) => void} search
 * @property {(factor: number) => void} zoomBy
 * @property {() => void} fit
 * @property {() => void} togglePath
 * @property {() => void} toggleStages
 * @property {() => void} toggleTheme
 * @property {(name: string) => void} showTab
 * @property {() => void} focusTimeline
 */

/** @param {HTMLElement} app @param {string} title @param {PageActions} actions */
export function buildPage(app, title, actions) {
  /** @param {string} text @param {string} hint @param {() => void} action @param {string} [id] a switch */
  const button = (text, hint, action, id) =>
    el(
      'button',
      { type: 'button', title: hint, onclick: action, id: id ?? '', 'aria-pressed': id && 'false' },
      text,
    );
  /** @param {string} name @param {string} text */
  const tab = (name, text) =>
    el(
      'button.tab',
      {
        type: 'button',
        role: 'tab',
        id: `tab-${name}`,
        'aria-controls': 'panel',
        onclick: () => actions.showTab(name),
      },
      text,
    );
  /** @param {KeyboardEvent} event */
  const typed = (event) => {
    if (event.key === 'Enter') actions.search(/** @type {HTMLInputElement} */ (event.target).value);
    if (event.key === 'Escape') actions.focusTimeline();
  };
  const timeline = el('canvas.timeline', {
    tabIndex: 0,
    role: 'application',
    'aria-label':
      'Timeline. Arrow keys walk over tasks, R to the task that released one, W A S D zoom and move.',
    'aria-describedby': 'said',
  });
  const map = el('canvas.minimap', {
    role: 'img',
    'aria-label': 'Overview of the whole trace; click or drag to move the view',
  });
  app.replaceChildren(
    el(
      'header',
      {},
      el('h1', {}, title),
      el('input', {
        type: 'search',
        id: 'search',
        placeholder: 'search  /   gemm(4, 3, 2)   #17   A(3, 4)',
        'aria-label': 'Search a task by class, name, number or datum',
        onkeydown: typed,
      }),
      el('span', { id: 'found', role: 'status' }),
      button('+', 'zoom in (W)', () => actions.zoomBy(0.5)),
      button('\u2212', 'zoom out (S)', () => actions.zoomBy(2)),
      button('Fit', 'the whole trace (F)', () => actions.fit()),
      button('Critical path', 'show the critical path (C)', () => actions.togglePath(), 'path'),
      button(
        'Stages',
        'show the six stages of every task (G)',
        () => actions.toggleStages(),
        'stages',
      ),
      button('Light / dark', 'the other colours', () => actions.toggleTheme()),
    ),
    el(
      'main',
      {},
      el('div.left', {}, map, timeline),
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
  return {
    timeline: /** @type {HTMLCanvasElement} */ (timeline),
    map: /** @type {HTMLCanvasElement} */ (map),
  };
}

/** Marks a switch as on or off. @param {string} id @param {boolean} on */
export function press(id, on) {
  document.getElementById(id)?.setAttribute('aria-pressed', String(on));
}

/** Shows a hint near a pixel of an element, or hides it if the text is empty. @param {HTMLElement} near @param {number} x @param {number} y @param {string} text */
export function showTip(near, x, y, text) {
  const tip = document.getElementById('tip');
  if (!tip) return;
  tip.hidden = text === '';
  if (text === '') return;
  tip.textContent = text;
  const box = near.getBoundingClientRect();
  tip.style.left = `${Math.min(box.left + x + 12, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(box.top + y + 14, innerHeight - tip.offsetHeight - 8)}px`;
}
