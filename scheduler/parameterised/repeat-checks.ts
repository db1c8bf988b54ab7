// Whether classes keep the promise that they repeat (promise.ts): what their functions return at a task is compared with what they return at the
// task before it in the promised range. Their functions are pure, so calling them again does no harm.

import { HeadraceError } from '../../devices/errors.js';
import { shown } from '../checks.js';
import { Datum } from '../program/datum.js';
import { ControlEnd, FlowEnd, type Indices, Temporary } from './ends.js';
import type { GraphClass } from './graph-class.js';
import { endName } from './graph-task.js';
import type { RepeatPromise } from './promise.js';
import { Range } from './range.js';
import { taskName } from './task-key.js';

type Call = (of: Indices) => unknown;

/** Passes the functions of a class of which its promise says what they return, with the names that messages give them. */
function replaceRepeated(
  cls: GraphClass,
  { position }: RepeatPromise,
  replace: (what: string, call: Call) => Call,
): void {
  const put = <F>(what: string, call: F): F =>
    call === undefined ? call : (replace(what, call as Call) as F);
  cls.ranges = cls.ranges.map((range, n) =>
    n > position ? put(`range of '${cls.indexNames[n]}'`, range) : range,
  );
  cls.from = cls.from.map((from, f) => put(cls.flowPart('from', f), from));
  cls.to = cls.to.map((to, f) => put(cls.flowPart('to', f), to));
  cls.controlFrom = cls.controlFrom.map((from, c) => put(cls.controlPart('from', c), from));
  cls.controlTo = cls.controlTo.map((to, c) => put(cls.controlPart('to', c), to));
}

type Named = readonly [what: string, call: Call];

/** Those functions, with their names. */
function repeatedFunctions(cls: GraphClass, repeats: RepeatPromise): Named[] {
  const all: Named[] = [];
  replaceRepeated(cls, repeats, (what, call) => {
    all.push([what, call]);
    return call;
  });
  return all;
}

/** What breaks the promises of classes at these tasks, in words. @internal */
export function brokenPromises(
  tasks: readonly { readonly cls: GraphClass; readonly indices: Indices }[],
): string[] {
  const all: string[] = [];
  const functions = new Map<GraphClass, readonly Named[]>();
  for (const { cls, indices: of } of tasks) {
    const { repeats } = cls;
    const before = repeats?.before(of);
    if (repeats === undefined || before === undefined) continue;
    const known = functions.get(cls) ?? repeatedFunctions(cls, repeats);
    functions.set(cls, known);
    for (const [what, call] of known) {
      const words = difference(cls, what, { of, before, now: call(of), then: call(before) });
      if (words !== undefined) all.push(words);
    }
  }
  return all;
}

/** The functions of these classes look from here on whether the promises are kept. @internal */
export function checkPromises(classes: readonly GraphClass[]): void {
  for (const cls of classes) {
    const { repeats } = cls;
    if (repeats === undefined) continue;
    replaceRepeated(cls, repeats, (what, call) => checking(cls, repeats, what, call));
  }
}

/** A function that throws `ERR_GRAPH_REPEAT` where it breaks the promise. */
function checking(cls: GraphClass, repeats: RepeatPromise, what: string, call: Call): Call {
  return (of) => {
    const now = call(of);
    const before = repeats.before(of);
    if (before === undefined) return now;
    const words = difference(cls, what, { of, before, now, then: call(before) });
    if (words === undefined) return now;
    throw new HeadraceError('ERR_GRAPH_REPEAT', words, {
      task: taskName(cls.name, cls.indexNames, of),
      remedy: 'end the range of `repeats` before that task, or correct the function',
    });
  };
}

/** What a function returns at a task, and at the task before. */
interface Compared {
  readonly of: Indices;
  readonly before: Indices;
  readonly now: unknown;
  readonly then: unknown;
}

function difference(
  { name, indexNames, repeats }: GraphClass,
  what: string,
  { of, before, now, then }: Compared,
): string | undefined {
  const { index, position } = repeats as RepeatPromise;
  if (isMoved(now, then, of[index] - before[index])) return undefined;
  const isRange = now instanceof Range;
  const names = isRange ? indexNames.slice(0, position + 1) : indexNames;
  const [task, other] = [of, before].map((at) => taskName(name, names, at));
  return `${what} of ${task} returns ${inWords(now)} and that of ${other} ${inWords(then)}, which is not the same moved by one step, as \`repeats\` of '${index}' promises`;
}

/** Whether two values are the same but for the moved indices of ends. */
function isMoved(now: unknown, then: unknown, by: number): boolean {
  if (Array.isArray(now))
    return (
      Array.isArray(then) &&
      now.length === then.length &&
      now.every((one, n) => isMoved(one, then[n], by))
    );
  if (now instanceof FlowEnd)
    return then instanceof FlowEnd && now.flow === then.flow && isEndMoved(now, then, by);
  if (now instanceof ControlEnd)
    return then instanceof ControlEnd && now.control === then.control && isEndMoved(now, then, by);
  if (now instanceof Range)
    return (
      then instanceof Range &&
      now.first === then.first &&
      now.end === then.end &&
      now.step === then.step
    );
  if (now instanceof Temporary)
    return (
      then instanceof Temporary &&
      now.element === then.element &&
      now.length === then.length &&
      now.options.rows === then.options.rows &&
      now.options.device === then.options.device
    );
  return now === then;
}

function isEndMoved<E extends FlowEnd | ControlEnd>(now: E, then: E, by: number): boolean {
  if (now.cls !== then.cls) return false;
  const { indexNames, repeats } = now.cls as GraphClass;
  return indexNames.every(
    (name) => now.indices[name] === then.indices[name] + (name === repeats?.index ? by : 0),
  );
}

function inWords(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inWords).join(', ')}]`;
  if (value instanceof FlowEnd || value instanceof ControlEnd) return endName(value);
  if (value instanceof Range)
    return `range(${value.first}, ${value.end}${value.step === 1 ? '' : `, ${value.step}`})`;
  if (value instanceof Temporary) return `a temporary of ${value.length} ${value.element}`;
  return value instanceof Datum ? `datum '${value.name}'` : shown(value);
}
