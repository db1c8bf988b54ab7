// Values that a program may have in a variable by mistake, and the text that an error must show for each.
import { shown } from '../../scheduler/checks.js';

/** A value, made anew for each use. */
export interface HostileValue {
  readonly name: string;
  readonly make: () => unknown;
  /** What a message shows in place of it. */
  readonly text: string;
  /** Whether the text tells it from other mistakes. */
  readonly isTelling: boolean;
}

export function throws(): never {
  throw new Error('no words');
}

/** Messages show these in other words, such as the number of devices that a grid of so many rows needs. */
const REPHRASED: readonly string[] = ['-0', '2^31', 'a long text'];

class Point {
  readonly x = 1;
}

function cyclic(): object {
  const one: Record<string, unknown> = {};
  one['self'] = one;
  return one;
}

/** A proxy each of whose traps throws. */
function closedProxy(target: object): object {
  const traps = Object.getOwnPropertyNames(Reflect).map((trap) => [trap, throws]);
  return new Proxy(target, Object.fromEntries(traps));
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

const MAKERS: Readonly<Record<string, () => unknown>> = {
  null: () => null,
  'a symbol': () => Symbol('mark'),
  'an object without prototype': () => Object.create(null),
  'an empty object': () => ({}),
  'a proxy that throws': () => closedProxy({}),
  'a function as a proxy that throws': () => closedProxy(() => {}),
  'an array as a proxy that throws': () => closedProxy([]),
  'a revoked proxy': revoked,
  'an object whose toString throws': () => ({ toString: throws, valueOf: throws, toJSON: throws }),
  NaN: () => Number.NaN,
  Infinity: () => Number.POSITIVE_INFINITY,
  '-Infinity': () => Number.NEGATIVE_INFINITY,
  '-0': () => -0,
  '0.5': () => 0.5,
  '-1': () => -1,
  '2^31': () => 2 ** 31,
  '2^53': () => 2 ** 53,
  '1e300': () => 1e300,
  'a bigint': () => 10n ** 60n,
  'an empty text': () => '',
  'a long text': () => 'x'.repeat(300),
  'a text with a zero': () => 'a\0b',
  'a function': () => () => {},
  'a class': () => Point,
  'an empty array': () => [],
  'an array of itself': () => {
    const one: unknown[] = [];
    one.push(one);
    return one;
  },
  'an array with a symbol': () => [Symbol('inside')],
  'a cyclic object': cyclic,
  'an instance': () => new Point(),
  'a date': () => new Date(0),
  'a wrong date': () => new Date(Number.NaN),
  'a map': () => new Map(),
  'a promise': () => Promise.resolve(1),
  'a boxed number': () => Object(1),
  'a typed array': () => new Float32Array(3),
  true: () => true,
};

export const HOSTILE: readonly HostileValue[] = Object.entries(MAKERS).map(([name, make]) => ({
  name,
  make,
  text: shown(make()),
  isTelling: isPrimitive(make()) && !REPHRASED.includes(name),
}));

/** A message about an object may tell what it lacks. */
function isPrimitive(value: unknown): boolean {
  return value !== null && typeof value !== 'object' && typeof value !== 'function';
}
