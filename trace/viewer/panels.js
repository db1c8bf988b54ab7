// The summary, and the legend with the remedy for each colour.
import { el, link, swatch, tableOf } from './dom.js';
import { formatBytes, formatShare, formatTime } from './format.js';
import { classColour, stageColour, stageNames } from './theme.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./theme.js').Theme} Theme */
/** @typedef {import('./details.js').Actions} Actions */

/** @param {Model} model @param {Theme} theme @param {Actions} actions @returns {Node} */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one element after the other, as on the page.
export function summaryPanel(model, theme, actions) {
  const s = model.meta.summary;
  const idle = idleOfUsedLanes(s);
  const classIndex = (/** @type {string} */ name) =>
    model.meta.classes.findIndex((c) => c.name === name);
  const reasons = model.meta.idle
    .filter(({ reason }) => idle.of(reason) > 0)
    .sort((a, b) => idle.of(b.reason) - idle.of(a.reason));
  const bytes = (/** @type {number} */ value) => formatBytes(value);
  const ways = ['h2d', 'd2h', 'd2d', 'network'].filter(
    (way) => s.traffic.moved[way] + s.traffic.required[way] > 0,
  );
  return el(
    'div',
    {},
    el('h2', {}, `${s.program}: ${formatTime(s.makespan)}`),
    el(
      'p.faint',
      {},
      'Hover for names and reasons, click a task for its details, scroll to zoom. ',
      link('All keys', () => actions.showTab('details')),
    ),
    s.problems.length > 0 &&
      el(
        'div.problems',
        { role: 'note' },
        ...s.problems.map((/** @type {string} */ p) => el('p', {}, p)),
      ),
    tableOf(
      ['', ''],
      [
        [
          'tasks',
          `${s.tasks}${s.failed ? `, ${s.failed} failed` : ''}${s.cancelled ? `, ${s.cancelled} cancelled` : ''}`,
        ],
        ['critical-path bound', formatTime(s.bounds.criticalPath)],
        ['area bound', formatTime(s.bounds.area)],
        ['efficiency', formatShare(s.bounds.efficiency, 1)],
        ['against the bounds', formatShare(s.bounds.ofBound, 1)],
        ['ready to running', `p50 ${formatTime(s.latency.p50)}, p99 ${formatTime(s.latency.p99)}`],
        ['evictions, spills', `${s.traffic.evictions.count}, ${s.traffic.spills.count}`],
      ],
      'The run',
    ),
    el('h3', {}, 'Idle time, and its remedies'),
    el(
      'ul.reasons',
      {},
      ...reasons.map(({ reason, title, advice }) =>
        el(
          'li',
          {},
          swatch(theme.idle[model.meta.idle.findIndex((i) => i.reason === reason)], true),
          `${title} ${formatShare(idle.of(reason), idle.total)}`,
          idle.of(reason) > 0.05 * idle.total && el('div.why', {}, advice),
        ),
      ),
    ),
    s.stretched > 0 &&
      el(
        'p.why',
        {},
        `Stretched kernels (under way, thread without a core): ${formatShare(s.stretched, idle.total)}`,
      ),
    tableOf(
      ['lane', 'tasks', 'busy', 'stretched'],
      s.lanes.map((/** @type {any} */ lane) => [
        lane.lane,
        String(lane.tasks),
        formatShare(lane.busy, s.makespan),
        formatShare(lane.stretched, s.makespan),
      ]),
      'Lanes',
    ),
    tableOf(
      ['class', 'count', 'total', 'p50', 'p99'],
      s.classes.map((/** @type {any} */ use) => [
        el(
          'span',
          {},
          swatch(classColour(theme, classIndex(use.name))),
          link(use.name, () => actions.focusClass(classIndex(use.name)), 'show only this class'),
        ),
        String(use.count),
        formatTime(use.total),
        formatTime(use.p50),
        formatTime(use.p99),
      ]),
      'Task classes (kernel time)',
    ),
    tableOf(
      ['task', 'at', 'took'],
      s.slowest.map((/** @type {any} */ use) => [
        link(use.task, () =>
          actions.select({ type: 'task', row: taskRowOf(model, use.rank, use.id) }),
        ),
        formatTime(use.start),
        formatTime(use.nanoseconds),
      ]),
      'Slowest tasks',
    ),
    ways.length > 0 &&
      tableOf(
        ['way', 'moved', 'required'],
        ways.map((way) => [way, bytes(s.traffic.moved[way]), bytes(s.traffic.required[way])]),
        'Bytes',
      ),
    tableOf(
      ['space', 'used', 'of', 'pinned', 'dirty'],
      s.memory
        .filter((/** @type {any} */ m) => m.samples > 0)
        .map((/** @type {any} */ m) => [
          m.space,
          bytes(m.highWater),
          bytes(m.capacity),
          bytes(m.pinned),
          bytes(m.dirty),
        ]),
      'Memory high-water',
    ),
    tableOf(
      ['where', 'communication', 'hidden'],
      s.overlap
        .filter((/** @type {any} */ o) => o.communication > 0)
        .map((/** @type {any} */ o) => [
          o.where,
          formatTime(o.communication),
          formatShare(o.both, o.communication),
        ]),
      'Communication hidden behind execution',
    ),
  );
}

/** Idle time of the lanes whose kind ran a task: the others would hide these. @param {any} summary */
function idleOfUsedLanes(summary) {
  const lanes = summary.lanes.filter((/** @type {any} */ lane) => lane.used);
  return {
    total: lanes.length * summary.makespan,
    of: (/** @type {string} */ reason) =>
      lanes.reduce(
        (/** @type {number} */ sum, /** @type {any} */ lane) => sum + lane.idle[reason],
        0,
      ),
  };
}

/** @param {Model} model @param {number} rank @param {number} id */
function taskRowOf(model, rank, id) {
  const { tId } = model.columns;
  for (let row = 0; row < tId.length; row++) {
    if (tId[row] === id && model.meta.lanes[model.taskLane(row)]?.rank === rank) return row;
  }
  return 0;
}

/** @param {Model} model @param {Theme} theme @param {Set<number> | undefined} focus @param {Actions} actions @returns {Node} */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one element after the other, as on the page.
export function legendPanel(model, theme, focus, actions) {
  const idle = idleOfUsedLanes(model.meta.summary);
  const counts = new Float64Array(model.meta.classes.length);
  for (const taskClass of model.columns.tClass) counts[taskClass]++;
  const used = model.meta.classes
    .map(({ name }, index) => ({ name, index }))
    .filter(({ index }) => counts[index] > 0);
  const classes = used.slice(0, 40);
  // The largest parts first.
  const idleShares = model.meta.idle
    .map((words, index) => ({ ...words, index, time: idle.of(words.reason) }))
    .sort((a, b) => b.time - a.time);
  return el(
    'div',
    {},
    el('h3', {}, 'Task classes (click: only this one)'),
    el(
      'ul.legend',
      {},
      ...classes.map(({ name, index }) =>
        el(
          'li',
          {},
          swatch(classColour(theme, index)),
          el(
            'button.link',
            {
              type: 'button',
              'aria-pressed': String(focus?.has(index) ?? false),
              onclick: () => actions.focusClass(index),
            },
            name,
          ),
          ` ${counts[index]}`,
        ),
      ),
      used.length > classes.length && el('li', {}, `and ${used.length - classes.length} more`),
    ),
    el('h3', {}, 'Stages of a task: tints of its class'),
    el(
      'ul.legend',
      {},
      ...stageNames.map((name, i) => el('li', {}, swatch(stageColour(theme, 0, i)), name)),
    ),
    el('h3', {}, 'Idle time (low bars): much of this?'),
    el(
      'ul.legend',
      {},
      ...idleShares.map(({ title, advice, index, time }) =>
        el(
          'li',
          {},
          swatch(theme.idle[index], true),
          `${title} ${time > 0 ? formatShare(time, idle.total) : '(none here)'}`,
          el('div.why', {}, advice),
        ),
      ),
    ),
    el('h3', {}, 'Transfers'),
    el(
      'ul.legend',
      {},
      ...[
        ['host to device', 0, 'prefetch; keep data on the device; larger tiles'],
        ['device to host', 1, 'spills: less memory per device or more devices'],
        ['device to device', 2, 'tasks that share data on one device'],
        ['network', 3, 'another distribution; larger tiles; more look-ahead'],
      ].map(([name, kind, advice]) =>
        el(
          'li',
          {},
          swatch(theme.kinds[Number(kind)]),
          String(name),
          el('div.why', {}, String(advice)),
        ),
      ),
    ),
    el('h3', {}, 'Ready tasks'),
    el(
      'ul.legend',
      {},
      el(
        'li',
        {},
        swatch(theme.classes[5]),
        'tasks that could start',
        el(
          'div.why',
          {},
          'none while lanes idle: more parallel work; many while lanes idle: see the reasons of their waits',
        ),
      ),
      el('li', {}, swatch(theme.kinds[3], true), 'line: bytes on their way'),
    ),
    el('h3', {}, 'Memory'),
    el(
      'ul.legend',
      {},
      ...[
        [
          'pinned',
          'in use by tasks: cannot be evicted; much of this with waits for memory: smaller tiles',
        ],
        ['dirty', 'newest copy is here: must be written back before it is evicted'],
        ['clean', 'can be dropped at once'],
        ['arriving', 'reserved for copies on their way'],
      ].map(([band, meaning]) =>
        el(
          'li',
          {},
          swatch(theme.memory[/** @type {'pinned'} */ (band)]),
          `${band}`,
          el('div.why', {}, meaning),
        ),
      ),
      el(
        'li',
        {},
        swatch(theme.background),
        'free',
        el('div.why', {}, 'always much of this: larger tiles or a larger window may pay'),
      ),
    ),
  );
}
