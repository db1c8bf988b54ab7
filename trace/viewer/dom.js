// Elements in one call, so that the code of a panel looks like the panel.

/**
 * @param {string} tag may carry classes: 'div.panel.open'
 * @param {Record<string, any>} [properties] `on*` are listeners, `aria-*` and `data-*` attributes, others properties
 * @param {...(Node | string | undefined | false)} children
 * @returns {HTMLElement}
 */
export function el(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name);
  if (classes.length > 0) element.className = classes.join(' ');
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key.includes('-') || key === 'role' || key === 'for') element.setAttribute(key, value);
    else Object.assign(element, { [key]: value });
  }
  for (const child of children) if (child !== undefined && child !== false) element.append(child);
  return element;
}

/** A table; cells may be nodes. @param {string[]} header @param {(string | Node)[][]} rows @param {string} caption */
export function tableOf(header, rows, caption) {
  return el(
    'table',
    {},
    el('caption', {}, caption),
    el('thead', {}, el('tr', {}, ...header.map((text) => el('th', { scope: 'col' }, text)))),
    el(
      'tbody',
      {},
      ...rows.map((cells) => el('tr', {}, ...cells.map((cell) => el('td', {}, cell)))),
    ),
  );
}

/** A square of a colour, for legends. @param {string} colour @param {boolean} [low] as low as idle time is drawn */
export function swatch(colour, low = false) {
  const element = el(low ? 'span.swatch.low' : 'span.swatch', { 'aria-hidden': 'true' });
  element.style.background = colour;
  return element;
}

/** A button that looks like a link. @param {string} text @param {() => void} action @param {string} [title] */
export function link(text, action, title) {
  return el('button.link', { type: 'button', onclick: action, title: title ?? '' }, text);
}
