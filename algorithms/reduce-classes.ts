// Task classes of reductions: the combination of two data, element by element, and the copy of a result.
//
// They have JavaScript bodies. Small data of other ranks reach the thread of the engine first, so a native kernel would add
// the way to a worker and back.
import {
  type ElementType,
  type Flow,
  read,
  type TaskClass,
  task,
  write,
} from '../scheduler/index.js';

/** Combination of two elements. `hypot` is the square root of the sum of the squares. */
export type ReduceOperation = 'sum' | 'min' | 'max' | 'hypot';

type To = Flow<ElementType, 'write'>;
type From = Flow<ElementType, 'read'>;
type None = Record<never, never>;
type Combination = TaskClass<{ readonly to: To; readonly left: From; readonly right: From }, None>;
type Copy = TaskClass<{ readonly to: To; readonly from: From }, None>;

const OPERATIONS: Readonly<Record<ReduceOperation, (left: number, right: number) => number>> = {
  sum: (left, right) => left + right,
  min: Math.min,
  max: Math.max,
  hypot: Math.hypot,
};

const combinations: Map<string, Combination> = new Map();
const copies: Map<ElementType, Copy> = new Map();

/** Whether a value names an operation. */
export function isReduceOperation(value: unknown): value is ReduceOperation {
  return typeof value === 'string' && Object.hasOwn(OPERATIONS, value);
}

/** The class that writes `left` combined with `right` to `to`. Arrays of an element type wrap and round as they store. */
export function combinationOf(operation: ReduceOperation, element: ElementType): Combination {
  return kept(combinations, `${operation} ${element}`, () => {
    const combine = OPERATIONS[operation];
    return task({
      name: operation,
      flows: { to: write(element), left: read(element), right: read(element) },
      body: ({ to, left, right }) => {
        for (let i = 0; i < to.length; i++) {
          const value = combine(left[i], right[i]);
          // Processors give NaNs of different signs and payloads. This one is always the same.
          to[i] = Number.isNaN(value) ? Number.NaN : value;
        }
      },
    });
  });
}

/** The class that writes `from` to `to`. */
export function copyOf(element: ElementType): Copy {
  return kept(copies, element, () =>
    task({
      name: 'copy',
      flows: { to: write(element), from: read(element) },
      body: ({ to, from }) => to.set(from),
    }),
  );
}

function kept<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
