// Parts of data in the file of a plan. A part is found by its whole datum and its place in it, and made when the plan is loaded.
// The tasks that copy between a datum and its parts are of classes of the library, which no program gives.
//
// Invariants: a part lies within its whole datum, whose rows are those that it had when the plan was made; a task of the library
// stays within the memory of its two data, whatever the file says.
import type { HeadraceError } from '../../devices/errors.js';
import type { Datum } from '../program/datum.js';
import { elementBytes, isElementType } from '../program/element-type.js';
import { takeOverClasses } from '../program/parts/take-over-classes.js';
import type { TaskClass } from '../program/task-class.js';
import { badFile } from './file-format.js';
import type { PlanHeader, SavedClass, SavedDatum, SavedPlace } from './file-header.js';

/** The place of a datum that is a part. `numberOf`: number of its whole datum in the file. */
export function savedPlace(
  { view }: Datum,
  numberOf: (whole: Datum) => number,
): { readonly part?: SavedPlace } {
  if (view === undefined || view.family.whole === view) return {};
  const { datum: whole } = view.family.whole;
  const { row, column, rows, columns } = view.region;
  return { part: [numberOf(whole), whole.rows, row, column, rows, columns] };
}

/** @throws HeadraceError `ERR_PLAN_FILE` if a part does not lie within a datum of the file */
export function checkPlaces({ data }: PlanHeader, file: string): void {
  for (const { name, element, bytes, part } of data) {
    if (part === undefined) continue;
    const [of, height, row, column, rows, columns] = part;
    const whole = data[of] as SavedDatum | undefined;
    const isOf = whole !== undefined && whole.part === undefined && whole.element === element;
    if (isOf && isElementType(element) && rows > 0 && columns > 0) {
      const size = elementBytes(element);
      const fits = row + rows <= height && (column + columns) * height * size <= whole.bytes;
      if (fits && rows * columns * size === bytes) continue;
    }
    throw badFile(file, `'${name}' is a part of no datum`);
  }
}

/**
 * The part of a datum of the program that has that place.
 * @throws HeadraceError `ERR_TASK_TOO_LARGE`, and what `mismatch` makes
 */
export function givenPart(
  [, height, row, column, rows, columns]: SavedPlace,
  whole: Datum,
  mismatch: (text: string, details: object) => HeadraceError,
): Datum {
  if (whole.rows !== height)
    throw mismatch(
      `datum '${whole.name}' has ${whole.rows} rows, and the plan was made for parts of ${height} rows`,
      { datum: whole.name },
    );
  return whole.owner.partOf(whole, { row, column, rows, columns });
}

/** A class as it stands in a file: of two classes of the library that differ in the place of their tasks only, the first one. */
export function classInFile(cls: TaskClass): TaskClass {
  const { all, first } = libraryClasses(cls) ?? {};
  return all !== undefined && cls === first ? all : cls;
}

/** Whether a class is one of the library, so that no program gives it. */
export function isOfLibrary(cls: TaskClass): boolean {
  return libraryClasses(cls) !== undefined;
}

function libraryClasses(cls: TaskClass): ReturnType<typeof takeOverClasses> | undefined {
  const [flow] = cls.flowNames;
  if (flow === undefined) return undefined;
  const classes = takeOverClasses(cls.definition.flows[flow].element);
  return Object.values(classes).includes(cls) ? classes : undefined;
}

/** The class of the library that the file means, if `isSame` finds none to differ. */
export function libraryClass(
  { flows: [first] }: SavedClass,
  isSame: (cls: TaskClass) => boolean,
): TaskClass | undefined {
  const type = first?.[2];
  if (!isElementType(type)) return undefined;
  const { all, more } = takeOverClasses(type);
  return [all, more].find(isSame);
}

/** Whether a task of the library stays within its data: the parameters are those of `takeOverParams`. */
export function staysWithin(
  [bytes, rows, columns, toLead, toFirst, fromLead, fromFirst]: ArrayLike<number> &
    Iterable<number>,
  [to, from]: readonly Datum[],
): boolean {
  const isIn = (lead: number, first: number, { length }: Datum): boolean =>
    [lead, first].every((n) => Number.isSafeInteger(n) && n >= 0) &&
    lead >= rows &&
    first + (columns - 1) * lead + rows <= length;
  return (
    bytes === elementBytes(to.element) &&
    to.element === from.element &&
    [rows, columns].every((n) => Number.isSafeInteger(n) && n > 0) &&
    isIn(toLead, toFirst, to) &&
    isIn(fromLead, fromFirst, from)
  );
}
