// Functions of the program that the engine calls within a pass: they explain the code of a kernel, or give an open parameter its value.
// A pass is in the middle of its work then: rows must not move, and no other pass can make room. So what such a function calls
// of the runtime is refused.
//
// Invariants: a refused call has changed nothing; the function has failed with it, whether or not it caught the error. So no refusal
// is lost, and none is reported twice.
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { promiseOf } from './thenable.js';

const ignore = (): void => {};

export class Callbacks {
  /** A function of the program is on the stack. */
  isUnderWay = false;
  private name: () => string = () => '';
  private refused: HeadraceError | undefined;

  /** Calls a function of the program. @throws what it throws; HeadraceError `ERR_CALLBACK` if it has called the runtime */
  call<T>(name: () => string, of: () => T): T {
    this.isUnderWay = true;
    this.name = name;
    this.refused = undefined;
    let result: T;
    try {
      result = of();
      // Nobody awaits a promise that is returned where none is wanted.
      if (typeof result === 'object') promiseOf(result)?.catch(ignore);
    } finally {
      this.isUnderWay = false;
    }
    if (this.refused !== undefined) throw this.refused;
    return result;
  }

  /** The program makes the call `what`. @throws HeadraceError `ERR_CALLBACK` */
  check(what: string): void {
    if (!this.isUnderWay || !guards.callbacks) return;
    const error = new HeadraceError(
      'ERR_CALLBACK',
      `${what} was called by ${this.name()}, which is called while the engine works and takes no calls`,
      { remedy: 'call it in the program, or in a function that is given to setImmediate' },
    );
    this.refused ??= error;
    throw error;
  }

  /** As `check`, for a call that rejects. */
  refusal(what: string): Promise<never> | undefined {
    try {
      this.check(what);
      return undefined;
    } catch (error) {
      const refusal = Promise.reject(error);
      refusal.catch(ignore);
      return refusal;
    }
  }
}
