// Programs that make a call within which a body may run, and every place in which it may run.
import { expect } from 'vitest';
import {
  type Flow,
  type Graph,
  HeadraceError,
  type Runtime,
  type RuntimeOptions,
  reduce,
  type TaskClass,
  task,
} from '../../index.js';
import { onMachine, soon } from './machines.js';
import { script } from './tasks.js';

export const HOST: RuntimeOptions = { workers: 1, hostMemory: '4MiB', plans: 'off', checked: true };
export const SMALL = 16;
/** A pass comes after some insertions; and before one, if it waits for room in a small window. */
export const WINDOWS: readonly number[] = [SMALL, 4 * SMALL];
/** Tasks ahead of a call, at most. */
const MOST = 40;

export const one: TaskClass<{ readonly to: Flow<'f64', 'reduce'> }, Record<never, never>> = task({
  name: 'one',
  flows: { to: reduce('f64', 'sum') },
  body: ({ to }) => {
    to[0] += 1;
  },
});
export const idle: ReturnType<typeof script> = script('idle', () => {});

/** When a body runs, as seen from a call. */
export type Place = 'before' | 'within' | 'after';

/** A program that makes a call beside a body. */
export interface Program<T> {
  readonly first?: ((graph: Graph) => void) | undefined;
  /** Bodies and the numbers of their tasks; the first of them is the one that runs before, within or after the call. */
  readonly bodies: readonly (readonly [number, (graph: Graph) => void])[];
  /** Tasks ahead of the call, one after the other. */
  readonly ahead: number;
  readonly call: (graph: Graph) => Promise<T>;
}

/** Runs the program: when the body ran, and what became of the call. */
export async function play<T>(
  runtime: Runtime,
  { first, bodies, ahead, call }: Program<T>,
): Promise<{ place: Place; result: T | string }> {
  const of = runtime.data(new Float64Array(1));
  let [now, place]: Place[] = ['before', 'after'];
  let result: Promise<T | string> | undefined;
  const run = runtime.run((graph) => {
    first?.(graph);
    const classes = bodies.map(([, body], i) =>
      script(`body ${i}`, () => {
        if (i === 0) place = now;
        body(graph);
      }),
    );
    for (let i = 0; i < ahead; i++) {
      const at = bodies.findIndex(([number]) => number === i);
      graph.insert(classes[at] ?? idle, { of });
    }
    now = 'within';
    result = call(graph).catch((error) => {
      expect(error).toBeInstanceOf(HeadraceError);
      return (error as HeadraceError).code;
    });
    now = 'after';
  });
  await soon(runtime, run.done);
  return { place, result: await soon(runtime, result!) };
}

/** What is possible if the body runs before, and after, all of the call; within the call both are. */
export function possible<T>(place: Place, before: T, after: T): T[] {
  if (place === 'within') return [before, after];
  return [place === 'before' ? before : after];
}

export const digits = (values: Float64Array): string => values.join('');

/** Calls the test for every number of tasks ahead, and checks that some bodies ran within the call. */
export async function everywhere(
  window: number,
  test: (runtime: Runtime, ahead: number, of: string) => Promise<Place>,
): Promise<void> {
  const places = new Set<Place>();
  for (let ahead = 1; ahead <= MOST; ahead++)
    await onMachine({ ...HOST, window }, async (runtime) => {
      places.add(await test(runtime, ahead, `${ahead} tasks ahead`));
    });
  expect([...places]).toContain('within');
}
