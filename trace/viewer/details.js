// The panel of the selection: a task with its stages, data and neighbours, or a transfer.
import { el, link, swatch, tableOf } from './dom.js';
import { inputsOf, stagesOf } from './explain.js';
import { formatBytes, formatTime } from './format.js';
import { classColour, stageColour } from './theme.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./theme.js').Theme} Theme */
/** @typedef {import('./scene.js').Item} Item */

/**
 * @typedef {object} Actions
 * @property {(item: Item) => void} select
 * @property {(taskClass: number) => void} focusClass
 * @property {(step: number) => void} walkPath
 * @property {(name: string) => void} showTab
 */

/** @param {Model} model @param {Theme} theme @param {Item | undefined} item @param {Actions} actions @returns {Node} */
export function detailsPanel(model, theme, item, actions) {
  if (!item) {
    return el(
      'div',
      {},
      el('p', {}, 'Click a task or a transfer, or press Enter and walk with the arrow keys.'),
      el(
        'dl.keys',
        {},
        ...[
          ['W S', 'zoom in, out (also the wheel)'],
          ['A D', 'left, right (also drag; Shift and the wheel)'],
          ['F', 'the whole trace, or the selected task'],
          ['← →', 'the slice before, after, on the lane'],
          ['↑ ↓', 'the lane above, below'],
          ['R', 'the task that released the selected task'],
          ['[ ]', 'the step before, after, on the critical path'],
          ['C', 'critical path'],
          ['G', 'six stages of every task'],
          ['/', 'search'],
          ['Esc', 'deselect'],
        ].flatMap(([key, what]) => [el('dt', {}, key), el('dd', {}, what)]),
      ),
    );
  }
  return item.type === 'task'
    ? taskPanel(model, theme, item.row, actions)
    : transferPanel(model, item.row, actions);
}

/** Its lane, and the device if the lane's name does not tell it. @param {Model} model @param {number} row */
function whereOf(model, row) {
  const lane = model.laneName(model.taskLane(row));
  const space = model.spaceName(model.columns.tSpace[row]);
  return lane.startsWith(space) ? lane : `${lane}, ${space}`;
}

/** @param {Model} model @param {Theme} theme @param {number} row @param {Actions} actions */
function taskPanel(model, theme, row, actions) {
  const c = model.columns;
  const at = (/** @type {number} */ time) => formatTime(model.ns(time));
  const taskLink = (/** @type {number} */ task) =>
    link(model.taskName(task), () => actions.select({ type: 'task', row: task }));
  const stages = stagesOf(model, row);
  const whole = Math.max(1, stages[8].to - stages[0].from);
  const bar = el('div.stagebar', { 'aria-hidden': 'true' });
  stages.forEach((stage, i) => {
    const part = el('span', { title: `${stage.name}: ${at(stage.to - stage.from)}` });
    part.style.flexGrow = String((stage.to - stage.from) / whole);
    part.style.background = stageColour(theme, c.tClass[row], i);
    bar.append(part);
  });
  const { start, items } = model.predecessors;
  const predecessors = [...items.subarray(start[row], start[row + 1])];
  const successors = [...model.successors(row)];
  const released = c.tReleased[row];
  const flags = c.tFlags[row];
  const notes = [
    flags & 8 ? 'failed' : '',
    flags & 16 ? 'cancelled' : '',
    flags & 32 ? 'JavaScript body' : '',
    flags & 64 ? 'device chosen by the program' : '',
    model.playedAs(row) ?? '',
  ].filter((note) => note !== '');
  const transfers = [...model.transfersOf(row)];
  const parameters = model.parameterTexts(row);
  return el(
    'div',
    {},
    el('h2', {}, swatch(classColour(theme, c.tClass[row])), model.taskName(row)),
    el(
      'p',
      {},
      `task ${model.taskNumber(row)} on ${whereOf(model, row)}` +
        (notes.length > 0 ? ` (${notes.join(', ')})` : ''),
    ),
    parameters.length > 0 && el('p.faint', {}, parameters.join(', ')),
    pathNote(model, model.pathOfTask.get(row), actions),
    el('h3', {}, 'Stages'),
    bar,
    tableOf(
      ['stage', 'from', 'took'],
      stages.map((stage, i) => [
        el('span', {}, swatch(stageColour(theme, c.tClass[row], i)), stage.name),
        at(stage.from),
        at(stage.to - stage.from),
      ]),
      'Nine intervals between ten recorded times',
    ),
    el('h3', {}, 'Released by'),
    released >= 0
      ? el(
          'p',
          {},
          taskLink(released),
          `, which ended ${at(c.tStart[row] - model.taskEnd(released))} before the start`,
        )
      : el('p', {}, 'nothing: it was ready when the program inserted it, or a message released it'),
    el('h3', {}, 'Data'),
    dataList(model, row, actions),
    transfers.length > 0 && el('h3', {}, 'Transfers made for it'),
    transfers.length > 0 &&
      manyLinks(transfers, (transfer) =>
        link(`${model.transferName(transfer)} ${formatBytes(c.xBytes[transfer])}`, () =>
          actions.select({ type: 'transfer', row: transfer }),
        ),
      ),
    el('h3', {}, `Predecessors (${predecessors.length})`),
    manyLinks(predecessors, taskLink),
    el('h3', {}, `Successors (${successors.length})`),
    manyLinks(successors, taskLink),
  );
}

/** @param {Model} model @param {number} row @param {Actions} actions */
function dataList(model, row, actions) {
  const inputs = inputsOf(model, row);
  if (inputs.length === 0) return el('p', {}, 'none recorded');
  return el(
    'ul',
    {},
    ...inputs.map((input) =>
      el(
        'li',
        {},
        el('b', {}, input.name),
        ` ${formatBytes(input.bytes)}, ${input.mode}: `,
        input.transfer >= 0
          ? link(input.from, () => actions.select({ type: 'transfer', row: input.transfer }))
          : input.from,
        el('div.why', {}, `Why: ${input.why}`),
        input.writer >= 0 &&
          el(
            'div.why',
            {},
            'Last written by ',
            link(model.taskName(input.writer), () =>
              actions.select({ type: 'task', row: input.writer }),
            ),
          ),
      ),
    ),
  );
}

/** @param {number[]} rows @param {(row: number) => Node} make */
function manyLinks(rows, make) {
  if (rows.length === 0) return el('p', {}, 'none');
  const list = el('p.links', {}, ...rows.slice(0, 40).map(make));
  if (rows.length > 40) list.append(` and ${rows.length - 40} more`);
  return list;
}

/** @param {Model} model @param {number | undefined} step @param {Actions} actions */
function pathNote(model, step, actions) {
  if (step === undefined) return el('p.faint', {}, 'not on the critical path');
  const releases = [...model.meta.releases, 'submission', 'throttled'];
  return el(
    'p.onpath',
    {},
    `step ${step + 1} of ${model.columns.cRow.length} of the critical path, released by ${releases[model.columns.cRelease[step]]} `,
    step > 0 && link('before', () => actions.walkPath(step - 1), 'the step before ( [ )'),
    ' ',
    step + 1 < model.columns.cRow.length &&
      link('after', () => actions.walkPath(step + 1), 'the step after ( ] )'),
  );
}

/** @param {Model} model @param {number} row @param {Actions} actions */
function transferPanel(model, row, actions) {
  const c = model.columns;
  const duration = c.xDur[row];
  const seconds = model.ns(duration) / 1e9;
  const task = c.xTask[row];
  const partner = c.xPartner[row];
  return el(
    'div',
    {},
    el('h2', {}, model.transferName(row)),
    pathNote(model, model.pathOfTransfer.get(row), actions),
    tableOf(
      ['', ''],
      [
        ['reason', model.meta.reasons[c.xReason[row]]],
        ['lane', model.laneName(model.transferLane(row))],
        [
          'from',
          c.xSource[row] === 0xffff ? `rank ${c.xPeer[row]}` : model.spaceName(c.xSource[row]),
        ],
        ['to', c.xDest[row] === 0xffff ? `rank ${c.xPeer[row]}` : model.spaceName(c.xDest[row])],
        ['bytes', formatBytes(c.xBytes[row])],
        ['version', String(c.xVersion[row])],
        ['started at', formatTime(model.ns(c.xStart[row]))],
        ['waited for its lane', formatTime(model.ns(c.xWait[row]))],
        ['took', formatTime(model.ns(duration))],
        ['bandwidth', seconds > 0 ? `${(c.xBytes[row] / seconds / 1e9).toFixed(2)} GB/s` : '-'],
      ],
      'Transfer',
    ),
    task >= 0 &&
      el(
        'p',
        {},
        'for ',
        link(model.taskName(task), () => actions.select({ type: 'task', row: task })),
      ),
    partner >= 0 &&
      el(
        'p',
        {},
        'other side: ',
        link(model.transferName(partner), () => actions.select({ type: 'transfer', row: partner })),
      ),
  );
}
