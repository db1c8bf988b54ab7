// The duration of a kernel in virtual time: a constant, a function of its parameters, or a measured table.
// Invariant: a model is plain data (except a TypeScript function given by a test), so that it can stand in a machine
// file. It is compiled once per kernel, so that tasks need no look-up.
import { HeadraceError } from '../../errors.js';

/** Points (size, value) in rising order of size; between them values are interpolated, outside they are held. */
export type Table = readonly (readonly [number, number])[];

/** What a kernel that does not run alone does to the others of its GPU. */
interface Sharing {
  /**
   * Share of the GPU that it keeps busy while it runs alone, at most 1. Kernels of several streams go on at full speed while
   * their shares are no more than 1 in all, and otherwise they are slowed down alike. Default 0: it slows nothing down, and
   * nothing slows it down.
   */
  readonly share?: number;
}

/** Work divided by a rate: `factor` times the product of the parameters at these positions. */
interface WorkModel extends Sharing {
  /** Positions of the parameters that are multiplied; a position may be named more than once. */
  readonly product: readonly number[];
  /** Operations per unit of the product. */
  readonly factor: number;
  /** Operations per second: a constant, or a table over the parameter at `sizedBy`. */
  readonly rate: number | Table;
  /** Position of the parameter that the rate table is sized by; default 0. */
  readonly sizedBy?: number;
}

/** Measured seconds over the parameter at `sizedBy`. */
interface TableModel extends Sharing {
  readonly table: Table;
  readonly sizedBy?: number;
}

/** Seconds of one kernel call. */
export type KernelTime =
  | number
  | WorkModel
  | TableModel
  | ((params: ArrayLike<number>, first: number, count: number) => number);

/** Seconds of a call whose parameters are `args[first .. first + count)`. */
export type CompiledTime = (args: ArrayLike<number>, first: number, count: number) => number;

/** Value of a table at `x`. */
export function interpolate(table: Table, x: number): number {
  let i = 0;
  while (i < table.length && table[i][0] < x) i++;
  if (i === 0) return table[0][1];
  if (i === table.length) return table[i - 1][1];
  const [x0, y0] = table[i - 1];
  const [x1, y1] = table[i];
  return y0 + ((x - x0) / (x1 - x0)) * (y1 - y0);
}

function checkTable(table: unknown, what: string): void {
  const isPoint = (p: unknown): boolean =>
    Array.isArray(p) && p.length === 2 && p.every((v) => v >= 0);
  if (!Array.isArray(table) || table.length === 0 || !table.every(isPoint)) {
    throw wrong(what, 'a table is a list of [size, value] with at least one entry');
  }
  for (let i = 1; i < table.length; i++) {
    if (table[i][0] <= table[i - 1][0]) throw wrong(what, 'the sizes of a table must rise');
  }
}

function wrong(what: string, why: string): HeadraceError {
  return new HeadraceError('ERR_MACHINE', `${what}: ${why}`);
}

/** The share of a GPU that a kernel keeps busy. @throws HeadraceError `ERR_MACHINE` */
export function shareOf(model: KernelTime, what: string): number {
  const share = typeof model === 'object' ? (model.share ?? 0) : 0;
  if (!(share >= 0 && share <= 1)) throw wrong(what, '`share` must be a number from 0 to 1');
  return share;
}

/** Checks a model and makes it a function. @throws HeadraceError `ERR_MACHINE` */
export function compileTime(model: KernelTime, what: string): CompiledTime {
  if (typeof model === 'function') return model;
  if (typeof model === 'number') {
    if (!(model >= 0)) throw wrong(what, 'seconds must not be negative');
    return () => model;
  }
  const { sizedBy = 0 } = model;
  if ('table' in model) {
    checkTable(model.table, what);
    const { table } = model;
    return (args, first, count) => interpolate(table, sizedBy < count ? args[first + sizedBy] : 0);
  }
  const { product, factor, rate } = model;
  if (!Array.isArray(product) || !(factor > 0)) {
    throw wrong(
      what,
      'a work model needs `product`, a list of parameter positions, and a positive `factor`',
    );
  }
  if (typeof rate === 'number') {
    if (!(rate > 0)) throw wrong(what, '`rate` must be positive');
  } else checkTable(rate, what);
  return (args, first, count) => {
    let work = factor;
    for (const p of product) work *= p < count ? args[first + p] : 0;
    const speed =
      typeof rate === 'number'
        ? rate
        : interpolate(rate, sizedBy < count ? args[first + sizedBy] : 0);
    return work / speed;
  };
}
