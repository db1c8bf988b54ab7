// Runtimes with script workers, their classes, and random tasks of these.
import type { Random } from '../../devices/simulated/machine/random.js';
import type * as Headrace from '../../index.js';
import { soon } from '../support/machines.js';

// biome-ignore lint/suspicious/noExplicitAny: the classes have different flows and parameters.
export type AnyClass = Headrace.TaskClass<any, any>;

/** Script workers run the built package, so these classes and their runtimes are those of the built package, too. */
export const built = (await import(
  new URL('programs/script-classes.mjs', import.meta.url).href
)) as { readonly Runtime: typeof Headrace.Runtime } & Readonly<Record<string, AnyClass>>;

/** Calls `test` with a runtime, and closes it. */
export async function on<T>(
  options: Headrace.RuntimeOptions,
  test: (runtime: Headrace.Runtime) => Promise<T>,
): Promise<T> {
  const runtime = await built.Runtime.create({ hostMemory: '64MiB', workers: 1, ...options });
  try {
    return await test(runtime);
  } finally {
    await soon(runtime, runtime.close());
  }
}

export function add(
  graph: Pick<Headrace.PlanGraph, 'insert'>,
  cls: AnyClass,
  args: object,
  options?: Headrace.TaskOptions,
): void {
  graph.insert(cls, args as never, options);
}

/** A random task: the first datum is written. */
export interface RandomStep {
  readonly cls: string;
  readonly data: readonly [number, number];
  readonly seed: number;
  readonly device?: number;
}

/** Tasks of classes of `kinds` on so many data, of which some of `adds` run on one of the GPUs. */
export function randomSteps(
  random: Random,
  count: number,
  kinds: readonly string[],
  { data, gpus }: { readonly data: number; readonly gpus: number },
): RandomStep[] {
  return Array.from({ length: count }, () => {
    const cls = kinds[random.below(kinds.length)];
    const to = random.below(data);
    const from = (to + 1 + random.below(data - 1)) % data;
    const step = { cls, data: [to, from] as const, seed: random.below(1000) };
    return cls === 'adds' && gpus > 0 && random.below(2) === 0
      ? { ...step, device: random.below(gpus) }
      : step;
  });
}

/** Random tasks on these machines: script workers, GPUs, and whether the run is checked. */
export const RANDOM_MACHINES: readonly (readonly [number, number, boolean])[] = [
  [1, 0, false],
  [2, 0, true],
  [3, 0, false],
  [2, 2, true],
  [3, 1, false],
];

/** Lengths of the data of random tasks. */
export const randomSizes = (random: Random): number[] =>
  Array.from({ length: 6 }, () => 1 + random.below(200));
