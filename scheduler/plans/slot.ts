// A parameter that a plan leaves open: each play gives it a value.
import { HeadraceError } from '../../devices/errors.js';
import { shown } from '../checks.js';

/** A parameter of a plan that gets its value when the plan is played. Made by `slot`. */
export class Slot {
  readonly name: string;

  /** @internal Use `slot`. */
  constructor(name: string) {
    this.name = name;
  }
}

/**
 * A parameter that a plan leaves open. `step.run({ values: { name: value } })` gives the value, or a function of the number
 * of the iteration. The slot `t` is that number, from 0, unless a value is given.
 *
 * @throws HeadraceError `ERR_ARGUMENT_TYPE` unless the name is a text that is not empty
 */
export function slot(name: string): Slot {
  if (typeof name !== 'string' || name === '')
    throw new HeadraceError('ERR_ARGUMENT_TYPE', `a slot needs a name, not ${shown(name)}`);
  return new Slot(name);
}
