// The graphs of Task Bench: E. Slaughter et al., "Task Bench: A Parameterized Benchmark for Evaluating Parallel
// Runtime Performance", SC'20, section 3. A graph is a grid of steps x columns. A pattern gives the tasks of the
// step before that a task reads. Task (t, p) fills its output with the pair (t, p) after checking every input.
import { checkTruth } from '../scheduler/checks.js';
import {
  Datum,
  type Flow,
  type Graph,
  HeadraceError,
  type ParameterType,
  read,
  type TaskClass,
  task,
  write,
} from '../scheduler/index.js';
import { checkCount, checkGraph, checkNames, wrongType } from './arguments.js';

/** The dependence patterns, by the names of the paper's program. */
export const TASK_BENCH_PATTERNS = [
  'trivial',
  'no_comm',
  'stencil_1d',
  'stencil_1d_periodic',
  'dom',
  'tree',
  'fft',
  'all_to_all',
  'nearest',
  'spread',
  'random_nearest',
] as const;
/** Name of a dependence pattern. */
export type TaskBenchPattern = (typeof TASK_BENCH_PATTERNS)[number];

/** A graph: a pattern and its sizes. */
export interface TaskBenchShape {
  readonly pattern: TaskBenchPattern;
  /** Columns of the widest step. */
  readonly width: number;
  readonly steps: number;
  /** Dependencies per task of `nearest`, `spread` and `random_nearest`; default 3. */
  readonly radix?: number;
  /** Steps after which `spread` and `random_nearest` repeat; default 3. */
  readonly period?: number;
  /** Share of the neighbours that `random_nearest` reads; default 0.5. */
  readonly fraction?: number;
}

const SHAPE: readonly string[] = ['pattern', 'width', 'steps', 'radix', 'period', 'fraction'];
const OPTIONS: readonly string[] = ['epoch', 'iterations', 'script'];

/** A copy of the shape. @throws HeadraceError `ERR_ARGUMENT_TYPE`, `ERR_OPTION` */
function checkedShape(shape: TaskBenchShape): TaskBenchShape {
  if (typeof shape !== 'object' || shape === null || Array.isArray(shape))
    throw wrongType('task bench', 'shape', 'an object', shape);
  checkNames('task bench', shape, SHAPE, 'the parts of the shape');
  const { pattern, width, steps, radix = 3, period = 3, fraction = 0.5 } = shape;
  if (!TASK_BENCH_PATTERNS.includes(pattern))
    throw wrongType('task bench', 'pattern', `one of ${TASK_BENCH_PATTERNS.join(', ')}`, pattern);
  checkCount('task bench', 'width', width, 1, INT32);
  checkCount('task bench', 'steps', steps, 0, INT32);
  checkCount('task bench', 'radix', radix, 0, INT32);
  checkCount('task bench', 'period', period, 1, INT32);
  if (typeof fraction !== 'number' || !(fraction >= 0 && fraction <= 1))
    throw wrongType('task bench', 'fraction', 'a number from 0 to 1', fraction);
  return { pattern, width, steps, radix, period, fraction };
}

/** Copies of the lists, whose data all tasks can use. */
function checkedOutputs(
  graph: Graph,
  outputs: readonly (readonly Datum<'i32'>[])[],
  width: number,
): readonly (readonly Datum<'i32'>[])[] {
  if (!Array.isArray(outputs)) throw wrongType('task bench', 'outputs', 'an array', outputs);
  const fields = outputs.map((field: readonly Datum<'i32'>[], f) => {
    if (Array.isArray(field)) return [...field];
    throw wrongType('task bench', `outputs[${f}]`, 'an array of data', field);
  });
  if (fields.length < 2 || fields.some((field) => field.length < width)) {
    throw new HeadraceError('ERR_SHAPE', `task bench needs two fields of ${width} outputs each`);
  }
  const seen: Map<Datum, { readonly f: number; readonly name: string }> = new Map();
  for (const [f, field] of fields.entries()) {
    for (const [p, datum] of field.entries()) {
      const name = `outputs[${f}][${p}]`;
      if (!(datum instanceof Datum)) throw wrongType('task bench', name, 'a datum', datum);
      if (datum.element !== 'i32')
        throw wrongType('task bench', name, 'a datum of i32', datum.element);
      graph.check(datum, false, `task bench: datum '${datum.name}' of ${name}`);
      if (datum.length % PAIR !== 0) {
        throw new HeadraceError(
          'ERR_SHAPE',
          `task bench: the length of ${name} must be a multiple of ${PAIR}, not ${datum.length}`,
          { datum: datum.name },
        );
      }
      const before = seen.get(datum);
      // A task writes one field and reads another.
      if (before !== undefined && before.f !== f) {
        throw new HeadraceError(
          'ERR_DUPLICATE_DATUM',
          `task bench: ${before.name} and ${name} are both datum '${datum.name}'`,
          { datum: datum.name },
        );
      }
      seen.set(datum, { f, name });
    }
  }
  return fields;
}

/** Columns that have a task in step `t`: `count` of them from `first` on. */
export function taskBenchColumns(
  shape: TaskBenchShape,
  t: number,
): { readonly first: number; readonly count: number } {
  const { pattern, width, steps } = shape;
  if (t < 0 || t >= steps) return { first: 0, count: 0 };
  if (pattern === 'tree') return { first: 0, count: t >= 31 ? width : Math.min(width, 2 ** t) };
  if (pattern === 'dom') {
    return { first: Math.max(0, t + width - steps), count: Math.min(width, t + 1, steps - t) };
  }
  return { first: 0, count: width };
}

/** Columns of step `t - 1` whose tasks task (t, p) reads, in the order of its inputs. */
export function taskBenchInputs(shape: TaskBenchShape, t: number, p: number): number[] {
  const before = taskBenchColumns(shape, t - 1);
  const exists = (column: number): boolean =>
    column >= before.first && column < before.first + before.count;
  return candidates(shape, t, p).filter(exists);
}

function candidates(shape: TaskBenchShape, t: number, p: number): number[] {
  const { pattern, width, radix = 3, period = 3, fraction = 0.5 } = shape;
  switch (pattern) {
    case 'trivial':
      return [];
    case 'no_comm':
      return [p];
    case 'stencil_1d':
      return within(p - 1, p + 1, width);
    case 'stencil_1d_periodic':
      return distinct([p - 1, p, p + 1].map((q) => (q + width) % width));
    case 'dom':
      return within(p - 1, p, width);
    case 'tree':
      return [p >> 1];
    case 'fft': {
      // The butterfly of step t: the distance doubles from step to step, then starts again.
      const levels = Math.max(1, Math.ceil(Math.log2(width)));
      const distance = 2 ** ((t + levels - 1) % levels);
      return [p - distance, p, p + distance].filter((q) => q >= 0 && q < width);
    }
    case 'all_to_all':
      return within(0, width - 1, width);
    case 'nearest':
      return neighbours(p, radix, width);
    case 'spread': {
      const shift = t % period;
      const spread = Array.from(
        { length: radix },
        (_, i) => (p + Math.floor((i * width) / radix) + (i > 0 ? shift : 0)) % width,
      );
      return distinct(spread);
    }
    case 'random_nearest':
      return neighbours(p, radix, width).filter(
        (q) => q === p || chance(t % period, p, q) < fraction,
      );
  }
}

function within(from: number, to: number, width: number): number[] {
  const first = Math.max(0, from);
  return Array.from(
    { length: Math.max(0, Math.min(to, width - 1) - first + 1) },
    (_, i) => first + i,
  );
}

function neighbours(p: number, radix: number, width: number): number[] {
  return radix < 1 ? [] : within(p - Math.floor(radix / 2), p + Math.floor((radix - 1) / 2), width);
}

function distinct(columns: readonly number[]): number[] {
  return [...new Set(columns)];
}

/** A number from 0 to 1 that depends on its arguments only: the finaliser of MurmurHash3. */
function chance(...parts: readonly number[]): number {
  let h = 0x9e3779b9;
  for (const part of parts) {
    h = Math.imul(h ^ part, 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    h ^= h >>> 16;
  }
  return (h >>> 0) / 2 ** 32;
}

const INT32 = 2 ** 31 - 1;
/** int32 elements of a pair: step, epoch, column, 0; the two int64 that the kernel writes. */
const PAIR = 4;

type Class = TaskClass<Record<string, Flow<'i32'>>, Record<string, ParameterType>>;
const classes = { native: new Map<number, Class>(), script: new Map<number, Class>() };

function classFor(inputs: number, script: boolean): Class {
  const known = classes[script ? 'script' : 'native'];
  let cls = known.get(inputs);
  if (cls === undefined) {
    cls = makeClass(inputs, script);
    known.set(inputs, cls);
  }
  return cls;
}

function makeClass(inputs: number, script: boolean): Class {
  const numbers = Array.from({ length: inputs }, (_, i) => i);
  const flows: Record<string, Flow<'i32'>> = {
    output: write('i32'),
    ...Object.fromEntries(numbers.map((i) => [`input${i}`, read('i32')])),
  };
  const params: Record<string, ParameterType> = {
    t: 'i32',
    p: 'i32',
    epoch: 'i32',
    bytes: 'i32',
    iterations: 'i32',
    ...Object.fromEntries(numbers.map((i) => [`from${i}`, 'i32' as const])),
  };
  return task({
    name: 'point',
    flows,
    params,
    failureCode: 'ERR_TASK_BENCH_MISMATCH',
    explain: (code, { params: { t, p, epoch, ...from } }) =>
      `task (${t}, ${p}) of epoch ${epoch} did not find the output of task (${t - 1}, ${from[`from${code - 1}`]}) in its input ${code - 1}`,
    ...(script
      ? { body: (args) => checkAndFill(args as unknown as ScriptArguments, inputs) }
      : { kernel: 'taskbench' }),
  });
}

type ScriptArguments = Readonly<Record<string, Int32Array & number>>;

/** The kernel `taskbench` in JavaScript. */
function checkAndFill(args: ScriptArguments, inputs: number): void {
  const { t, p, epoch, output } = args;
  for (let i = 0; i < inputs; i++) {
    const input = args[`input${i}`];
    for (let at = 0; at < input.length; at += PAIR) {
      if (input[at] !== t - 1 || input[at + 1] !== epoch || input[at + 2] !== args[`from${i}`]) {
        throw new HeadraceError(
          'ERR_TASK_BENCH_MISMATCH',
          `input ${i} of task (${t}, ${p}) of epoch ${epoch} holds (${input[at]}, ${input[at + 2]}) of epoch ${input[at + 1]}`,
        );
      }
    }
  }
  for (let at = 0; at < output.length; at += PAIR) output.set([t, epoch, p, 0], at);
}

/** Options of a Task Bench run. */
export interface TaskBenchOptions {
  /** Part of every pair, so that a second run over the same data recognises old pairs; default 0. */
  readonly epoch?: number;
  /** Iterations of the compute-bound kernel per task; default 0. Not in JavaScript bodies. */
  readonly iterations?: number;
  /** Bodies in JavaScript instead of the native kernel. */
  readonly script?: boolean;
}

/**
 * Inserts all tasks of a Task Bench graph. `outputs[f][p]` are the outputs of column p; step t writes field
 * f = t mod fields, and there are at least two fields. Their lengths are multiples of 4 (a pair of two int64).
 * A task that finds a wrong input fails the run with `ERR_TASK_BENCH_MISMATCH`.
 *
 * @returns the number of tasks
 * @throws HeadraceError `ERR_SHAPE` for missing outputs and lengths that are no multiples of 4, `ERR_DUPLICATE_DATUM` when a
 *   datum is in two fields; `ERR_ARGUMENT_TYPE`, `ERR_OPTION` and the errors of `Graph.check`, each before the first task is inserted
 */
export function taskBench(
  graph: Graph,
  given: TaskBenchShape,
  data: readonly (readonly Datum<'i32'>[])[],
  options: TaskBenchOptions = {},
): number {
  checkGraph('task bench', graph);
  checkNames('task bench', options, OPTIONS);
  const { epoch = 0, iterations = 0, script = false } = options;
  checkCount('task bench', 'epoch', epoch, -INT32 - 1, INT32);
  checkCount('task bench', 'iterations', iterations, 0, INT32);
  checkTruth(script, 'task bench: script');
  const shape = checkedShape(given);
  const outputs = checkedOutputs(graph, data, shape.width);
  const fields = outputs.length;
  let tasks = 0;
  for (let t = 0; t < shape.steps; t++) {
    const { first, count } = taskBenchColumns(shape, t);
    for (let p = first; p < first + count; p++) {
      const inputs = taskBenchInputs(shape, t, p);
      const output = outputs[t % fields][p];
      const args: Record<string, Datum<'i32'> | number> = {
        output,
        t,
        p,
        epoch,
        bytes: output.bytes,
        iterations,
      };
      inputs.forEach((column, i) => {
        args[`input${i}`] = outputs[(t - 1) % fields][column];
        args[`from${i}`] = column;
      });
      graph.insert(classFor(inputs.length, script), args as never);
      tasks++;
    }
  }
  return tasks;
}
