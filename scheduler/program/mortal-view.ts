// An array that can be ended: afterwards every access throws.
import { HeadraceError } from '../../devices/errors.js';
import type { AnyElementArray } from './element-type.js';

/** A view that behaves like `array` until `end` is called. `name` names it in the error. */
export function mortalView<A extends AnyElementArray>(
  array: A,
  name: string,
): { readonly view: A; readonly end: () => void } {
  let isOver = false;
  const alive = (): void => {
    if (!isOver) return;
    throw new HeadraceError(
      'ERR_VIEW_OVER',
      `the array of ${name} is used after the body has ended`,
      { remedy: 'copy what is needed later: array.slice()' },
    );
  };
  const view = new Proxy(array, {
    get(target, key) {
      alive();
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== 'function' || key === 'constructor') return value;
      return (...args: unknown[]) => {
        alive();
        return Reflect.apply(value, target, args);
      };
    },
    set(target, key, value) {
      alive();
      return Reflect.set(target, key, value, target);
    },
    has(target, key) {
      alive();
      return Reflect.has(target, key);
    },
    ownKeys(target) {
      alive();
      return Reflect.ownKeys(target);
    },
    getOwnPropertyDescriptor(target, key) {
      alive();
      return Reflect.getOwnPropertyDescriptor(target, key);
    },
  });
  return {
    view,
    end: () => {
      isOver = true;
    },
  };
}
