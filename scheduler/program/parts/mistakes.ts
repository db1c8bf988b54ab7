// What is refused of parts of data, and the errors for it.
import { HeadraceError } from '../../../devices/errors.js';
import { optionsOf, shown } from '../../checks.js';
import type { Region } from './region.js';

/** A datum, as far as its parts must know it. */
interface Elements {
  readonly name: string;
  readonly length: number;
  readonly bytes: number;
  /** Of the column-major matrix that the elements form. */
  readonly rows: number;
  readonly columns: number;
  /** The datum of which it is a part. */
  readonly whole: unknown;
}

/** Rows and columns of a block: `rows` rows from `row` on, `columns` columns from `column` on. */
export interface BlockOptions {
  /** Default 0. */
  readonly row?: number;
  /** Default: all from `row` on. */
  readonly rows?: number;
  /** Default 0. */
  readonly column?: number;
  /** Default: all from `column` on. */
  readonly columns?: number;
}

const BLOCK_OPTIONS: readonly string[] = ['row', 'rows', 'column', 'columns'];

/** The block of a datum that the options name. @throws HeadraceError `ERR_OPTION` */
export function blockOf(datum: Elements, options: BlockOptions): Region {
  const of = `the options of a block of datum '${datum.name}'`;
  const given = optionsOf(options, BLOCK_OPTIONS, of);
  const { row = 0, column = 0 } = given;
  const left = (from: unknown, all: number): number => (typeof from === 'number' ? all - from : 0);
  const { rows = left(row, datum.rows), columns = left(column, datum.columns) } = given;
  checkRange(datum, 'rows', row, rows, datum.rows);
  checkRange(datum, 'columns', column, columns, datum.columns);
  return { row, column, rows, columns };
}

/**
 * The block of a datum that `length` elements from `from` on are.
 * @throws HeadraceError `ERR_OPTION`
 */
export function rangeOf(datum: Elements, from: number, length: number): Region {
  checkRange(datum, 'elements', from, length, datum.length);
  const { rows } = datum;
  const row = from % rows;
  const column = (from - row) / rows;
  if (row + length <= rows) return { row, column, rows: length, columns: 1 };
  if (row === 0 && length % rows === 0) return { row, column, rows, columns: length / rows };
  throw new HeadraceError(
    'ERR_OPTION',
    `datum '${datum.name}' has columns of ${rows} rows: ${length} elements from element ${from} on are neither whole columns nor part of one`,
    { datum: datum.name, remedy: 'take a block of rows and columns, or several parts' },
  );
}

function checkRange(
  datum: Elements,
  what: string,
  from: number,
  count: number,
  limit: number,
): void {
  const isWhole = Number.isSafeInteger(from) && Number.isSafeInteger(count);
  if (isWhole && from >= 0 && count >= 1 && from + count <= limit) return;
  throw new HeadraceError(
    'ERR_OPTION',
    `datum '${datum.name}' has ${limit} ${what}: a part cannot have ${shown(count)} of them from ${shown(from)} on`,
    { datum: datum.name, limit },
  );
}

/** The name of a part: 'x[10..19]', or 'x[0..3, 2..2]' of rows and columns. */
export function partName(whole: Elements, { row, column, rows, columns }: Region): string {
  const range = (from: number, count: number): string => `${from}..${from + count - 1}`;
  const isMatrix = whole.columns > 1;
  return `${whole.name}[${range(row, rows)}${isMatrix ? `, ${range(column, columns)}` : ''}]`;
}

/** Why parts are refused, and what the program can do instead. */
export interface PartRefusal {
  readonly why: string;
  readonly remedy: string;
}

/** A use of a part, or of a datum that has parts, that is not possible. */
export function refusedPart(
  of: string,
  { name, whole }: Elements,
  why: string,
  remedy?: string,
): HeadraceError {
  const what = whole === undefined ? `datum '${name}', which has parts` : `part '${name}'`;
  return new HeadraceError('ERR_PART', `${of} uses ${what}: ${why}`, { datum: name, remedy });
}

/** Two data of one task have elements in common, and the task writes one of them. */
export function overlapInTask(
  task: string,
  [first, second]: readonly [string, string],
  [one, other]: readonly [string, string],
): HeadraceError {
  return new HeadraceError(
    'ERR_DUPLICATE_DATUM',
    `task class '${task}': '${one}' for flow '${first}' and '${other}' for flow '${second}' have elements in common, and the task writes one of them`,
    { datum: other, remedy: 'use parts without common elements, or one flow readWrite' },
  );
}

/** The datum fits the memory of a device, but not beside the part. */
export function tooLarge(
  { name, bytes: whole }: Elements,
  part: number,
  device: string,
  limit: number,
): HeadraceError {
  return new HeadraceError(
    'ERR_TASK_TOO_LARGE',
    `a part of ${part} bytes of datum '${name}' (${whole} bytes) is copied where the datum is, but ${device} has ${limit} bytes`,
    {
      datum: name,
      device,
      bytes: whole + part,
      limit,
      remedy: 'use smaller data, or smaller parts',
    },
  );
}

/** A call on a part that a body has made: the call would be in program order. */
export function callOnBodyPart(call: string, { name }: Pick<Elements, 'name'>): HeadraceError {
  return new HeadraceError(
    'ERR_PART',
    `${call} is called on part '${name}', which a body has made for the tasks that it spawns`,
    { datum: name, remedy: 'use the arrays that the body gets' },
  );
}
