// The names of a task's arguments: each is a flow or a parameter of its class, and none is missing.
import { HeadraceError } from '../../devices/errors.js';
import { reading, shown } from '../checks.js';
import type { TaskClass } from './task-class.js';

/** The names of a class. */
type ClassNames = Pick<TaskClass, 'name' | 'flowNames' | 'paramNames'>;

/** The names among the arguments that the class does not have. */
export function unknownNames({ name, flowNames, paramNames }: ClassNames, args: object): string[] {
  const names = reading('ERR_ARGUMENT_TYPE', `the arguments of task class '${name}'`, () =>
    Object.keys(args),
  );
  return names.filter((one) => !flowNames.includes(one) && !paramNames.includes(one));
}

/** An argument is missing. The message names the arguments that the class does not have, because one may be misspelt. */
export function missing(cls: ClassNames, what: string, args: object): HeadraceError {
  const others = unknownNames(cls, args)
    .map((name) => shown(name))
    .join(', ');
  return new HeadraceError(
    'ERR_MISSING_ARGUMENT',
    `task class '${cls.name}' needs ${what}`,
    others === '' ? {} : { remedy: `it has no flow or parameter ${others}` },
  );
}

/** @throws HeadraceError `ERR_UNKNOWN_ARGUMENT` if an argument is neither a flow nor a parameter of the class. */
export function checkArgumentNames(cls: ClassNames, args: object): void {
  const [unknown] = unknownNames(cls, args);
  if (unknown === undefined) return;
  const { flowNames, paramNames } = cls;
  throw new HeadraceError(
    'ERR_UNKNOWN_ARGUMENT',
    `task class '${cls.name}' has no flow or parameter ${shown(unknown)}`,
    { remedy: `its arguments are ${[...flowNames, ...paramNames].join(', ') || 'none'}` },
  );
}
