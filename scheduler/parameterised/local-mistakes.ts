// What can be wrong with a graph whose ranks start with their own tasks, in words.

import { HeadraceError } from '../../devices/errors.js';
import { shown } from '../checks.js';
import type { Datum } from '../program/datum.js';
import type { ControlEnd, FlowEnd, Indices } from './ends.js';
import type { GraphClass } from './graph-class.js';
import { endName } from './graph-task.js';
import { taskName } from './task-key.js';

/** A task in words. @internal */
export function nameOf({ name, indexNames }: GraphClass, indices: Indices): string {
  return taskName(name, indexNames, indices);
}

function wrongOrder(text: string, task: string): HeadraceError {
  return new HeadraceError('ERR_GRAPH_ORDER', text, {
    task,
    remedy: 'correct `order`, or leave it out: then every rank walks over all tasks',
  });
}

function wrongPlace(text: string, task: string, of: Datum): HeadraceError {
  return new HeadraceError('ERR_GRAPH_LOCAL', text, {
    ...{ task, datum: of.name },
    remedy: 'correct the class, or leave `order` out: then every rank walks over all tasks',
  });
}

/** @internal */
export function badPosition(cls: GraphClass, indices: Indices, position: unknown): HeadraceError {
  const task = nameOf(cls, indices);
  return wrongOrder(`\`order\` of ${task} is ${shown(position)}, not a finite number`, task);
}

/** @internal */
export function notAscending(
  cls: GraphClass,
  one: Indices,
  before: number,
  other: Indices,
  behind: number,
): HeadraceError {
  const task = nameOf(cls, other);
  const words = `${task} has the position ${behind} and comes behind ${nameOf(cls, one)} with ${before}`;
  return wrongOrder(`${words}: within a class \`order\` must grow with the indices`, task);
}

/** @internal */
export function onePosition(
  one: GraphClass,
  of: Indices,
  other: GraphClass,
  indices: Indices,
  position: number,
): HeadraceError {
  const task = nameOf(other, indices);
  return wrongOrder(`${nameOf(one, of)} and ${task} both have the position ${position}`, task);
}

/** @internal */
export function againstOrder(
  task: string,
  position: number,
  end: FlowEnd | ControlEnd,
  other: number,
): HeadraceError {
  return wrongOrder(
    `${task} has the position ${position}, but ${endName(end)} has ${other}: \`order\` must put the sender first`,
    task,
  );
}

/** @internal */
export function staleInput(task: string, flow: string, of: Datum): HeadraceError {
  return new HeadraceError(
    'ERR_GRAPH_VERSION',
    `${task} uses datum '${of.name}' as '${flow}' in a version that another task comes behind and has overwritten, or that its sender has not left there`,
    { task, datum: of.name, remedy: 'look for the mistake with `verify` of a small instance' },
  );
}

/** @internal */
export function inputElsewhere(task: string, flow: string, of: Datum): HeadraceError {
  return wrongPlace(
    `${task} reads datum '${of.name}' as '${flow}' as it was before the graph; it is on another rank, and neither \`inputs\` nor \`share\` says that it goes to this task`,
    task,
    of,
  );
}

/** @internal */
export function notOwned(task: string, flow: string, of: Datum, rank: number): HeadraceError {
  return wrongPlace(
    `${task} runs on rank ${rank} and writes datum '${of.name}' as '${flow}', which that rank does not own, or another one has written before the graph`,
    task,
    of,
  );
}

/** @internal */
export function otherDatum(task: string, flow: string, of: Datum, given: unknown): HeadraceError {
  return wrongPlace(
    `\`datum\` of '${flow}' of ${task} is '${of.name}', but the flow comes from ${given}`,
    task,
    of,
  );
}

/** @internal */
export function homeElsewhere(task: string, flow: string, home: Datum): HeadraceError {
  return wrongPlace(
    `'${flow}' of ${task} goes home to datum '${home.name}' of another rank, which does not see this task`,
    task,
    home,
  );
}

/** @internal */
export function missedTask(task: string, rank: number): HeadraceError {
  return new HeadraceError(
    'ERR_GRAPH_LOCAL',
    `${task} belongs to rank ${rank} and is not in the ranges of \`own\` for it`,
    { task, rank, remedy: 'correct `own`, or leave it out' },
  );
}

/** @internal */
export function strayTask(task: string, rank: number): HeadraceError {
  return new HeadraceError(
    'ERR_GRAPH_LOCAL',
    `\`own\` gives rank ${rank} ${task}, which is outside of the ranges of its class`,
    { task, rank, remedy: 'correct `own`, or leave it out' },
  );
}

/** `on` gives a task to a rank that does not exist. @internal */
export function noRank(task: string, rank: unknown, ranks: number): HeadraceError {
  return new HeadraceError(
    'ERR_NO_RANK',
    `\`on\` of ${task} gives it to rank ${shown(rank)}: the number of ranks is ${ranks}`,
    { task, limit: ranks },
  );
}

/** @internal */
export function targetOutside(task: string, end: FlowEnd | ControlEnd): HeadraceError {
  return new HeadraceError(
    'ERR_GRAPH_RANGE',
    `${task} sends to ${endName(end)}, which is outside of its ranges`,
    { task },
  );
}

function wrongEdge(text: string, task: string): HeadraceError {
  return new HeadraceError('ERR_GRAPH_EDGE', text, {
    task,
    remedy: 'correct the `to` of the one or the `from` of the other',
  });
}

/** @internal */
export function unexpectedEnd(task: string, end: FlowEnd | ControlEnd): HeadraceError {
  return wrongEdge(`${task} sends to ${endName(end)}, which does not expect it`, task);
}

/** @internal */
export function unsentInput(
  task: string,
  flow: string,
  source: FlowEnd | ControlEnd,
): HeadraceError {
  return wrongEdge(
    `${task} expects '${flow}' from ${endName(source)}, which does not send it`,
    task,
  );
}

/** The control flow `control` of a task leads to tasks that do not expect it. @internal */
export function unfollowed(task: string, control: string): HeadraceError {
  return wrongEdge(`'${control}' of ${task} leads to more tasks than expect it`, task);
}

/** @internal */
export function controlElsewhere(
  task: string,
  rank: number,
  end: ControlEnd,
  other: number | undefined,
): HeadraceError {
  return new HeadraceError(
    'ERR_AFTER_ELSEWHERE',
    `a control flow connects ${task} on rank ${rank} and ${endName(end)} on rank ${other}, in a pruned run`,
    {
      task,
      remedy:
        'let the first task write a small datum that the second one reads, or do not prune the run',
    },
  );
}

/** @internal */
export function inputAway(of: Datum): HeadraceError {
  return new HeadraceError(
    'ERR_GRAPH_LOCAL',
    `datum '${of.name}' is among the \`inputs\`, and another rank than its owner has written it`,
    { datum: of.name, remedy: `\`restore\` it before the run` },
  );
}

/** The flow `flow` of a task is a list and comes from `source`. @internal */
export function noList(task: string, flow: string, source: unknown): HeadraceError {
  return new HeadraceError(
    'ERR_GRAPH_EDGE',
    `flow '${flow}' of ${task} comes from ${shown(source)}; it needs an array of sources`,
    { task },
  );
}
