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

  /** Calls of the runtime are refused now. */
  get refuses(): boolean {
    return this.isUnderWay && guards.callbacks;
  }

  /** The program makes a call, of such an object. @throws HeadraceError `ERR_CALLBACK` */
  check(call: string, kind?: 'datum' | 'plan', object?: { readonly name: string }): void {
    if (!this.refuses) return;
    const of = object === undefined ? '' : ` of ${kind} '${object.name}'`;
    const error = new HeadraceError(
      'ERR_CALLBACK',
      `${call}${of} was called by ${this.name()}, which is called while the engine works and takes no calls`,
      { remedy: 'call it in the program, or in a function that is given to setImmediate' },
    );
    this.refused ??= error;
    throw error;
  }

  /** As `check`, for a call that rejects. */
  refusal(...call: Parameters<Callbacks['check']>): Promise<never> | undefined {
    if (!this.refuses) return undefined;
    try {
      this.check(...call);
      return undefined;
    } catch (error) {
      const refusal = Promise.reject(error);
      refusal.catch(ignore);
      return refusal;
    }
  }
}
