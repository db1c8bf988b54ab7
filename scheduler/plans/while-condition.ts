// The condition of a play, as the program gives it, and checked.
import { PlanElement } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import type { DatumId } from '../../devices/handles.js';
import { isInstance, optionsOf, shown } from '../checks.js';
import { Datum } from '../program/datum.js';
import { refusedPart } from '../program/parts/mistakes.js';
import type { PlayCondition } from './play.js';

/** When a play goes on: as long as the first element of a datum satisfies the comparison. */
export interface WhileCondition {
  /** A datum that the plan writes. */
  readonly datum: Datum;
  /** The play goes on while the element is greater. */
  readonly above?: number;
  /** The play goes on while the element is smaller. */
  readonly below?: number;
  /** Iterations between two looks; default 1. */
  readonly every?: number;
}

/** `plan`: its name; `writes`: whether a task of the plan, on any rank, writes a datum. @throws HeadraceError `ERR_OPTION`, `ERR_PART` */
export function checkedCondition(
  given: WhileCondition | undefined,
  plan: string,
  writes: (datum: Datum) => boolean,
): (PlayCondition & { readonly of: Datum }) | undefined {
  if (given === undefined) return undefined;
  const known = ['datum', 'above', 'below', 'every'];
  const { datum, above, below, every = 1 } = optionsOf(given, known, 'the options of `while`');
  if (!isInstance(datum, Datum))
    throw new HeadraceError('ERR_OPTION', `while.datum must be a datum, not ${shown(datum)}`);
  if (datum.whole !== undefined)
    throw refusedPart(
      'while.datum',
      datum,
      'an iteration ends with the value in its whole datum',
      'let a task of the plan write the number to a datum of its own',
    );
  if (!writes(datum))
    throw new HeadraceError(
      'ERR_OPTION',
      `while.datum is '${datum.name}', which plan '${plan}' does not write`,
      { datum: datum.name },
    );
  if ((above === undefined) === (below === undefined))
    throw new HeadraceError(
      'ERR_OPTION',
      'while needs either `above` or `below`, a number with which the first element is compared',
    );
  const limit = above === undefined ? below : above;
  if (typeof limit !== 'number' || Number.isNaN(limit))
    throw new HeadraceError(
      'ERR_OPTION',
      `while.${above === undefined ? 'below' : 'above'} must be a number, not ${shown(limit)}`,
    );
  if (!Number.isInteger(every) || every < 1 || every > 2 ** 24)
    throw new HeadraceError(
      'ERR_OPTION',
      `while.every must be a whole number from 1 to ${2 ** 24}, not ${shown(every)}`,
    );
  return {
    of: datum,
    datum: datum.row as DatumId,
    element: PlanElement[datum.element],
    limit,
    below: below !== undefined,
    every,
  };
}
