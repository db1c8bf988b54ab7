// Walks over chains of tasks on columns, for tests of walks that repeat: the task class, what its flows read, and what a walk inserts.
import {
  type Datum,
  type Flow,
  type HeadraceError,
  type Range,
  type Runtime,
  range,
  read,
  readWrite,
  type TaskClass,
  task,
} from '../../index.js';
import type { FlowEnd } from '../../scheduler/parameterised/ends.js';
import type { GraphClass } from '../../scheduler/parameterised/graph-class.js';
import { Walk } from '../../scheduler/parameterised/walk.js';
import type { Graph } from '../../scheduler/program/graph.js';

/** A task of a chain, which also reads a value of another column. */
export const step: TaskClass<
  { readonly x: Flow<'f64', 'readWrite'>; readonly n: Flow<'f64', 'read'> },
  { readonly at: 'i32' }
> = task({
  name: 'step',
  flows: { x: readWrite('f64'), n: read('f64') },
  params: { at: 'i32' },
  kernel: 'empty',
});
/** Its flows, by number. */
export const X = 0;
export const N = 1;

/** Columns for which there are data. */
const MOST_COLUMNS = 5;

/** Where `n` comes from: a constant, or the task of an earlier column at the same position or the one before. */
export type Reads = 'constant' | { readonly column: number; readonly back: 0 | 1 };

export interface ChainData {
  readonly columns: readonly Datum<'f64'>[];
  readonly constants: readonly Datum<'f64'>[];
  readonly home: Datum<'f64'>;
}

export function chainData(runtime: Runtime): ChainData {
  const make = (name: string): Datum<'f64'> => runtime.data(new Float64Array(1), { name });
  return {
    columns: Array.from({ length: MOST_COLUMNS }, (_, p) => make(`d${p}`)),
    constants: [make('k0'), make('k1')],
    home: make('home'),
  };
}

/** The chains, as far as their readers need them. */
interface Chains {
  readonly columns: number;
  readonly length: number;
  readonly readsOf: (c: number, p: number) => Reads;
  readonly end: (c: number, p: number, flow: number) => FlowEnd;
}

/** The flows that read the value of position `c` in column `p`. */
export function readersOf(
  { columns, length, readsOf, end }: Chains,
  c: number,
  p: number,
): FlowEnd[] {
  const all: FlowEnd[] = [];
  for (const back of [0, 1])
    for (let q = 0; q < columns && c + back < length; q++) {
      const reads = readsOf(c + back, q);
      if (reads !== 'constant' && reads.column === p && reads.back === back)
        all.push(end(c + back, q, N));
    }
  return all;
}

/** The integers between two, both included. */
export function between(...ends: readonly [number, number]): Range {
  return range(Math.min(...ends), Math.max(...ends) + 1);
}

/** What a walk inserts, and how it ends. `more`: what the graph does beside insertions, given what was inserted so far. */
export function walked(
  classes: readonly GraphClass[],
  more: (all: string[]) => object = () => ({}),
): string[] {
  const all: string[] = [];
  const graph = {
    ranks: 1,
    isChecked: false,
    skips: () => false,
    insertInOrder(
      cls: { readonly name: string },
      data: readonly Datum[],
      params: object | undefined,
      options: { readonly device?: unknown } | undefined,
    ): void {
      const names = data.map(({ name }) => name);
      all.push([cls.name, ...names, JSON.stringify(params), String(options?.device)].join(' '));
    },
    ...more(all),
  };
  try {
    all.push(String(new Walk(graph as unknown as Graph, classes).run()));
  } catch (error) {
    const { code, message } = error as HeadraceError;
    all.push(`${code}: ${message}`);
  }
  return all;
}
