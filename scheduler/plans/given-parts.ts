// The data and the task classes of a program in place of those that the file of a plan names.
//
// A datum is found by its name; its element type and size must agree. A class is found by its name, its flows, its parameters,
// its kernels and its module: several classes may share a name, such as gemm with and without an old value of C.
import { HeadraceError } from '../../devices/errors.js';
import { isInstance, reading, shown } from '../checks.js';
import { shapeWith } from '../program/class-shapes.js';
import { Datum, type DatumOwner } from '../program/datum.js';
import { unusable } from '../program/task-arguments.js';
import { isTaskClass, type TaskClass } from '../program/task-class.js';
import { type SavedClass, type SavedDatum, savedClass } from './file-header.js';
import { givenPart, libraryClass } from './saved-parts.js';

/** A list of lists is one list; what is deeper inside is a mistake. */
const MOST_LISTS = 2;

/** The objects that were given, without the lists around them. `option` names them. */
function each(given: unknown, option: string, depth = 0): unknown[] {
  const inner = reading('ERR_ARGUMENT_TYPE', `the option ${option} of loadPlan`, () => {
    const isList = typeof given === 'object' && given !== null && Symbol.iterator in given;
    return isList && depth < MOST_LISTS ? [...(given as Iterable<unknown>)] : undefined;
  });
  return inner?.flatMap((one) => each(one, option, depth + 1)) ?? [given];
}

/** A difference between a plan and the program that loads it. */
export function mismatch(plan: string, text: string, details?: object): HeadraceError {
  return new HeadraceError(
    'ERR_PLAN_MISMATCH',
    `plan '${plan}' cannot be loaded here: ${text}`,
    details,
  );
}

/**
 * The data that the plan names, among those given, in the order of the file. Parts are made of these.
 * @throws HeadraceError `ERR_ARGUMENT_TYPE`, `ERR_PLAN_MISMATCH`, `ERR_FOREIGN_DATUM`, `ERR_DATUM_CLOSED`
 */
export function givenData(
  plan: string,
  saved: readonly SavedDatum[],
  given: unknown,
  owner: DatumOwner,
): Datum[] {
  const named = new Map<string, Set<Datum>>();
  for (const datum of each(given, 'data')) {
    if (!isInstance(datum, Datum))
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `the option data of loadPlan has data and tiled matrices, not ${shown(datum)}`,
      );
    named.set(datum.name, (named.get(datum.name) ?? new Set()).add(datum));
  }
  const wholes = saved.filter(({ part }) => part === undefined);
  const missing = wholes.filter(({ name }) => !named.has(name)).map(({ name }) => `'${name}'`);
  if (missing.length > 0)
    throw mismatch(
      plan,
      `it uses ${among('datum', 'data', missing)}, and the option data has none of that name`,
    );
  const found = new Map<SavedDatum, Datum>();
  for (const wanted of wholes) {
    const [datum, other] = named.get(wanted.name) as Set<Datum>;
    const { name } = datum;
    if (other !== undefined)
      throw mismatch(plan, `several of the given data are named '${name}'`, { datum: name });
    const error = unusable(`datum '${name}'`, datum, owner);
    if (error !== undefined) throw error;
    if (datum.element !== wanted.element || datum.bytes !== wanted.bytes)
      throw mismatch(
        plan,
        `datum '${name}' has ${datum.bytes} bytes of ${datum.element}, and the plan was made for ${wanted.bytes} bytes of ${wanted.element}`,
        { datum: name },
      );
    found.set(wanted, datum);
  }
  return saved.map((wanted) => {
    const { part } = wanted;
    if (part === undefined) return found.get(wanted) as Datum;
    const whole = found.get(saved[part[0]]) as Datum;
    return givenPart(part, whole, (text, details) => mismatch(plan, text, details));
  });
}

/**
 * The classes that the plan names, among those given, in the order of the file.
 * @throws HeadraceError `ERR_ARGUMENT_TYPE`, `ERR_PLAN_MISMATCH`
 */
export function givenClasses(
  plan: string,
  saved: readonly SavedClass[],
  given: unknown,
): TaskClass[] {
  const classes = new Set<TaskClass>();
  for (const cls of each(given, 'classes')) {
    if (!isTaskClass(cls))
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `the option classes of loadPlan has task classes, not ${shown(cls)}`,
        { remedy: 'make one with task({ ... })' },
      );
    classes.add(cls);
  }
  const missing = saved.filter(
    ({ name, library }) => library !== true && ![...classes].some((cls) => cls.name === name),
  );
  if (missing.length > 0) {
    const names = [...new Set(missing.map(({ name }) => `'${name}'`))];
    throw mismatch(
      plan,
      `it uses ${among('task class', 'task classes', names)}, and the option classes has none of that name`,
    );
  }
  return saved.map((wanted) => {
    if (wanted.library === true) {
      const own = libraryClass(wanted, (cls) => differenceOf(wanted, savedClass(cls)) === '');
      if (own !== undefined) return own;
      throw mismatch(plan, `this version has no task class '${wanted.name}' of its own like it`);
    }
    const flows = wanted.flows.map(([name]) => name);
    const candidates = [...classes]
      .filter(({ name }) => name === wanted.name)
      .map((c) => shapeWith(c, flows));
    const [cls, other] = candidates.filter((c) => differenceOf(wanted, savedClass(c)) === '');
    const details = { task: wanted.name };
    if (cls === undefined)
      throw mismatch(
        plan,
        `task class '${wanted.name}' differs: ${differenceOf(wanted, savedClass(candidates[0]))}`,
        details,
      );
    if (other !== undefined)
      throw mismatch(plan, `several of the given classes are the same '${wanted.name}'`, details);
    return cls;
  });
}

/** In what a class differs from that of a plan; '' if in nothing. */
function differenceOf(wanted: SavedClass, here: SavedClass): string {
  const text = (list: readonly (readonly string[])[]): string =>
    list.map(([name, ...type]) => `${name}: ${type.join(' ')}`).join(', ') || 'none';
  const differing = (
    [
      ['its flows are', text(here.flows), text(wanted.flows)],
      ['its parameters are', text(here.params), text(wanted.params)],
      ...['kernel', 'kernel on GPUs', 'CUDA function'].map(
        (what, i) =>
          [`its ${what} is`, here.kernels[i] ?? 'none', wanted.kernels[i] ?? 'none'] as const,
      ),
      ['its module is', here.module ?? 'none', wanted.module ?? 'none'],
    ] as const
  ).find(([, mine, theirs]) => mine !== theirs);
  if (differing === undefined) return '';
  const [what, mine, theirs] = differing;
  return `${what} ${mine}, and the plan was made with ${theirs}`;
}

const MOST_NAMES = 8;

/** Such as `datum 'x'`, or `data 'x', 'y' and 3 others`. */
export function among(one: string, several: string, names: readonly string[]): string {
  if (names.length === 1) return `${one} ${names[0]}`;
  const others = names.length - MOST_NAMES;
  const first = names.slice(0, MOST_NAMES).join(', ');
  return `${several} ${first}${others > 0 ? ` and ${others} more` : ''}`;
}
