// Switches guards off and on, in test processes that have loaded test/support/removable-guards.ts first.
import { type Guards, guards } from '../../guards.js';

/** Names of all guards. */
export const guardNames: readonly (keyof Guards)[] = Object.keys(guards) as (keyof Guards)[];

/** Switches one guard off, or on again. */
export function setGuard(name: keyof Guards, on: boolean): void {
  if (Object.isFrozen(guards))
    throw new Error('guards are constants unless test/support/removable-guards.ts is loaded first');
  (guards as Guards)[name] = on;
}
