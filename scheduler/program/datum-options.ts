// Options of a new datum, and the mistakes that they may have.

import { HeadraceError } from '../../devices/errors.js';
import type { SpaceId } from '../../devices/handles.js';
import { NO_HOME } from '../../devices/memory/directory.js';
import { checkText, optionsOf, shown } from '../checks.js';
import type { Engine } from '../engine/engine.js';
import { type ElementType, elementBytes } from './element-type.js';
import { spaceOf } from './named-device.js';
import { MOST_BYTES } from './options.js';

/** Options of a datum. */
export interface DatumOptions {
  /** Shown in errors and traces; default `data-N`. */
  readonly name?: string;
  /** Device that runs tasks that write it: a GPU number from 0, or 'host'. */
  readonly device?: number | 'host';
  /**
   * Rank that owns it, on several ranks; default 0. The owner's values are used; the values of other ranks are ignored.
   */
  readonly rank?: number;
  /** Rows of the column-major matrix that its elements form; must divide their number. Default: one column. */
  readonly rows?: number;
}

const DATUM_OPTIONS: readonly string[] = ['name', 'device', 'rank', 'rows'];

/** The name of datum number `n` that the program gives no name. */
export function defaultName(n: number): string {
  return `data-${n}`;
}

/** Whether a name says only in which order data were made. */
export function isDefaultName(name: string): boolean {
  return /^data-\d+$/.test(name);
}

/** The checked options of a new datum. */
export interface DatumWish {
  readonly name: string;
  readonly owner: number;
  readonly home: SpaceId;
  readonly rows: number | undefined;
}

/** The process that creates the datum: one of `ranks`. */
interface Creator {
  readonly engine: Engine;
  /** A body creates it for its own rank. */
  readonly inBody: boolean;
  readonly rank: number;
  readonly ranks: number;
}

/** The options of a datum, each read once and checked. `nextName` is called if they have no name. */
export function datumWish(
  options: DatumOptions,
  nextName: () => string,
  { engine, inBody, rank: here, ranks }: Creator,
): DatumWish {
  const given = optionsOf(options, DATUM_OPTIONS, 'the options of a datum');
  const { device, rank, rows } = given;
  const name = checkText(given.name ?? nextName(), 'the name of a datum');
  // A body runs on one rank only, so data that it creates belong to that rank.
  const owner = rank ?? (inBody ? here : 0);
  if (!Number.isInteger(owner) || owner < 0 || owner >= ranks) {
    throw new HeadraceError(
      'ERR_NO_RANK',
      `datum '${name}': there is no rank ${shown(owner)}: the number of ranks is ${ranks}`,
      { datum: name, limit: ranks },
    );
  }
  if (inBody && owner !== here) {
    throw new HeadraceError(
      'ERR_INSERT_ALONE',
      `datum '${name}' of rank ${owner} is created by a body on rank ${here}, but a body runs on one rank only`,
      { datum: name, remedy: 'create it in the program, on all ranks' },
    );
  }
  return { name, owner, rows, home: device === undefined ? NO_HOME : homeOf(engine, device) };
}

/** The home of data that a device writes. Data of the host have none. @throws HeadraceError `ERR_NO_DEVICE` */
export function homeOf(engine: Engine, device: number | 'host'): SpaceId {
  const s = spaceOf(engine.backend, device);
  return s === 0 ? NO_HOME : s;
}

/** @throws HeadraceError `ERR_OPTION` */
export function checkLength(name: string, length: number): void {
  if (Number.isSafeInteger(length) && length >= 1) return;
  throw new HeadraceError(
    'ERR_OPTION',
    `datum '${name}' needs a whole number of elements of at least 1, not ${shown(length)}`,
    { datum: name },
  );
}

/** Checks that the elements form a matrix of that many rows, and their size. @throws HeadraceError `ERR_OPTION` */
export function checkShape(name: string, element: ElementType, length: number, rows: number): void {
  if (!Number.isSafeInteger(rows) || rows < 1 || length % rows !== 0) {
    throw new HeadraceError(
      'ERR_OPTION',
      `datum '${name}': ${length} elements do not form columns of ${shown(rows)} rows`,
      { datum: name },
    );
  }
  if (length * elementBytes(element) > MOST_BYTES) {
    throw new HeadraceError(
      'ERR_OPTION',
      `datum '${name}' of ${length} elements has more than 2^53 bytes`,
      { datum: name, limit: MOST_BYTES },
    );
  }
}
