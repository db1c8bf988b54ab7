// The method of conjugate gradients for A x = b, A symmetric and positive definite: M. R. Hestenes, E. Stiefel, "Methods of conjugate gradients
// for solving linear systems", Journal of Research of the National Bureau of Standards 49 (1952), section 3; in the form of G. H. Golub,
// C. F. Van Loan, "Matrix Computations", 4th edition (2013), algorithm 11.3.3.
//
// The step lengths alpha and beta are data. A task computes them, and the tasks behind it have them as parameters, so the program waits for no
// iteration. It looks at r^T r after every few iterations. The tasks of iterations behind the one that reached the tolerance change nothing.
//
// Invariant: the order of all operations depends on the shape and the blocks only. So x has the same bits for any number of ranks, GPUs and
// workers, and for any number of iterations between two looks.
import { type Datum, type Graph, HeadraceError, TiledMatrix } from '../scheduler/index.js';
import { checkCount, checkGraph, checkNames, checkScalar } from './arguments.js';
import { step, sum, turn, vectorClasses } from './conjugate-gradient-classes.js';
import {
  blocksOf,
  type ConjugateGradientData,
  checkSystem,
  type FivePoint,
  type Vector,
} from './conjugate-gradient-data.js';
import { dotClass } from './matrix-reduction.js';
import { type Real, tileClasses } from './tile-classes.js';

/** Options of `conjugateGradient`. */
export interface ConjugateGradientOptions {
  /** The iteration ends when |b - A x| <= tolerance |b| in the 2-norm; between 0 and 1. Default 1e-10, and 1e-5 for f32. */
  readonly tolerance?: number;
  /** Most iterations. Default: the number of unknowns, as many as are needed without rounding. */
  readonly limit?: number;
  /** Iterations between two looks at the residual; default 10. */
  readonly every?: number;
}

/** Result of `conjugateGradient`. */
export interface ConjugateGradientResult {
  /** Iterations that changed x. */
  readonly iterations: number;
  /** |r| / |b| after them, with the r that the method computes along; 0 if b is 0. */
  readonly residual: number;
}

/** Squares of residuals below this number count as 0: their products with other numbers leave the range. */
const LEAST = 2 ** -970;
const ON_HOST = { device: 'host' } as const;

/**
 * Solves A x = b, A n x n, symmetric and positive definite, by conjugate gradients. X has the first guess and gets the solution. A is a matrix of
 * all its tiles, and then B and X are n x 1 matrices of the same tile size; or A is a five-point stencil on a grid, and then B and X are lists of blocks
 * of whole rows, from top to bottom. `data` is what `conjugateGradientData(runtime, A, X)` makes. All ranks make the call.
 *
 * It resolves when the residual is small enough or `limit` iterations are over; the caller compares `residual`. Without rounding n iterations are enough,
 * and the error falls at least by (sqrt(k) - 1) / (sqrt(k) + 1) in each, k the condition of A (Golub and Van Loan 2013, theorem 11.3.3). With rounding
 * the true residual stays above some eps |A| |x|. For b = 0 the solution is 0. The squares of |b| and |r| must be numbers of f64.
 *
 * Symmetry is not checked. A run whose A is not positive definite fails with `ERR_NOT_POSITIVE_DEFINITE` in the iteration that has seen p^T A p <= 0 or a value
 * that is no number, and X has no value then. A negative direction that no iteration meets stays unseen.
 *
 * A product with A runs where the block of the result is. So deal a matrix of tiles out by rows, `grid: { rows: gpus, columns: 1 }` and
 * `rankGrid: { rows: ranks, columns: 1 }`: then its tiles stay where they are, and p travels.
 *
 * @throws HeadraceError `ERR_SHAPE` when A is not square or a lower triangle, the vectors do not fit, or the data were made for other vectors;
 *   `ERR_DUPLICATE_DATUM` when X has a datum twice or shares one with B; `ERR_ARGUMENT_TYPE`, `ERR_OPTION` and the errors of `Graph.check`, each before
 *   the first task is inserted. The promise rejects as `Graph.value`.
 */
export function conjugateGradient<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E>,
  B: TiledMatrix<NoInfer<E>>,
  X: TiledMatrix<NoInfer<E>>,
  data: ConjugateGradientData<NoInfer<E>>,
  options?: ConjugateGradientOptions,
): Promise<ConjugateGradientResult>;
export function conjugateGradient<E extends Real>(
  graph: Graph,
  A: FivePoint,
  B: readonly Datum<E>[],
  X: readonly Datum<NoInfer<E>>[],
  data: ConjugateGradientData<NoInfer<E>>,
  options?: ConjugateGradientOptions,
): Promise<ConjugateGradientResult>;
export function conjugateGradient<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E> | FivePoint,
  B: Vector<E>,
  X: Vector<E>,
  data: ConjugateGradientData<E>,
  options: ConjugateGradientOptions = {},
): Promise<ConjugateGradientResult> {
  const operation = 'conjugateGradient';
  checkGraph(operation, graph);
  checkNames(operation, options, ['tolerance', 'limit', 'every']);
  checkSystem(operation, graph, A, { B, X }, data);
  const unknowns = data.lengths.reduce((all, length) => all + length, 0);
  const {
    tolerance = data.element === 'f64' ? 1e-10 : 1e-5,
    limit = unknowns,
    every = 10,
  } = options;
  checkScalar(operation, 'tolerance', tolerance);
  if (!(tolerance > 0 && tolerance < 1)) {
    throw new HeadraceError(
      'ERR_OPTION',
      `${operation}: tolerance must be between 0 and 1, not ${tolerance}`,
    );
  }
  checkCount(operation, 'limit', limit);
  checkCount(operation, 'every', every, 1);
  const system = { graph, data, b: blocksOf(B), x: blocksOf(X), apply: productOf(graph, A, data) };
  return solve(system, { tolerance, limit, every });
}

interface System<E extends Real> {
  readonly graph: Graph;
  readonly data: ConjugateGradientData<E>;
  readonly b: readonly Datum<E>[];
  readonly x: readonly Datum<E>[];
  /** Inserts to := A from. */
  readonly apply: Product<E>;
}
type Product<E extends Real> = (to: readonly Datum<E>[], from: readonly Datum<E>[]) => void;

async function solve<E extends Real>(
  system: System<E>,
  { tolerance, limit, every }: Required<ConjugateGradientOptions>,
): Promise<ConjugateGradientResult> {
  const { graph, data, x } = system;
  const { rr, bb, iterations } = data.numbers;
  begin(system);
  const square = await look(graph, bb);
  if (square === 0) {
    // x := 0 r
    update(graph, x, data.r, 0, 0);
    return { iterations: 0, residual: 0 };
  }
  const goal = Math.max(tolerance ** 2 * square, LEAST);
  let left = await look(graph, rr);
  for (let inserted = 0; inserted < limit && !(left <= goal); left = await look(graph, rr)) {
    const end = Math.min(limit, inserted + every);
    for (; inserted < end; inserted++) iterate(system, goal);
  }
  return { iterations: await look(graph, iterations), residual: Math.sqrt(left / square) };
}

/** The value of a number. Where the run has failed, its error says more than that the number has no value. */
async function look(graph: Graph, number: Datum<'f64'>): Promise<number> {
  try {
    return await graph.value(number);
  } catch (error) {
    graph.check(number, false);
    throw error;
  }
}

/** r := b - A x, p := r, and the squares of |b| and |r|. */
function begin<E extends Real>({ graph, data, b, x, apply }: System<E>): void {
  const { r, p, parts, numbers } = data;
  graph.insert(sum, { to: numbers.iterations, parts: [] }, ON_HOST);
  apply(r, x);
  update(graph, r, b, 1, -1);
  update(graph, p, r, 1, 0);
  dots(graph, parts, b, b);
  graph.insert(sum, { to: numbers.bb, parts }, ON_HOST);
  dots(graph, parts, r, r);
  graph.insert(sum, { to: numbers.rr, parts }, ON_HOST);
}

function iterate<E extends Real>({ graph, data, x, apply }: System<E>, goal: number): void {
  const { r, p, q, parts, numbers } = data;
  const { alpha, minus, beta, rr, iterations } = numbers;
  // alpha = r^T r / p^T A p
  apply(q, p);
  dots(graph, parts, p, q);
  graph.insert(step, { alpha, minus, iterations, rr, parts, goal }, ON_HOST);
  // x := x + alpha p, r := r - alpha A p
  update(graph, x, p, alpha, 1);
  update(graph, r, q, minus, 1);
  // beta = new r^T r / old r^T r, p := r + beta p
  dots(graph, parts, r, r);
  graph.insert(turn, { beta, rr, parts, goal }, ON_HOST);
  update(graph, p, r, 1, beta);
}

/** y := alpha x + beta y, block by block. With beta = 0 y needs no value. */
function update<E extends Real>(
  graph: Graph,
  y: readonly Datum<E>[],
  x: readonly Datum<E>[],
  alpha: number | Datum<'f64'>,
  beta: number | Datum<'f64'>,
): void {
  const { axpby, scaled } = vectorClasses(y[0].element);
  for (const [i, block] of y.entries()) {
    const all = { y: block, x: x[i], count: block.length, alpha, beta };
    if (beta === 0) graph.insert(scaled, all);
    else graph.insert(axpby, all);
  }
}

/** parts[i] := x_i^T y_i. */
function dots<E extends Real>(
  graph: Graph,
  parts: readonly Datum<'f64'>[],
  x: readonly Datum<E>[],
  y: readonly Datum<E>[],
): void {
  const dot = dotClass(x[0].element);
  for (const [i, to] of parts.entries()) {
    const { length } = x[i];
    graph.insert(dot, { to, a: x[i], b: y[i], m: length, n: 1, lda: length, ldb: length });
  }
}

/** The product with A. In a pruned run every rank inserts all of its tasks, as those of the vectors. */
function productOf<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E> | FivePoint,
  data: ConjugateGradientData<E>,
): Product<E> {
  if (!(A instanceof TiledMatrix)) return (to, from) => stencil(graph, A, data, to, from);
  const { gemm, multiplyInto } = tileClasses(A.element);
  const plain = { n: 1, transA: false, transB: false, alpha: 1 };
  return (to, from) => {
    for (const [i, c] of to.entries()) {
      for (const [j, b] of from.entries()) {
        const a = A.at(i, j);
        const sizes = { m: a.rows, k: a.columns, lda: a.rows, ldb: b.length, ldc: c.length };
        if (j === 0) graph.insert(multiplyInto, { a, b, c, ...sizes, ...plain, beta: 0 });
        else graph.insert(gemm, { a, b, c, ...sizes, ...plain, beta: 1 });
      }
    }
  };
}

/** to := A from. Blocks get copies of their neighbours' edge rows, so only these travel. */
function stencil<E extends Real>(
  graph: Graph,
  { columns, centre = 4, horizontal = -1, vertical = -1 }: FivePoint,
  { edges }: ConjugateGradientData<E>,
  to: readonly Datum<E>[],
  from: readonly Datum<E>[],
): void {
  const { edges: copy, fivePoint } = vectorClasses(from[0].element);
  const weights = { columns, centre, horizontal, vertical };
  const rowsOf = (block: Datum<E>): number => block.length / columns;
  if (from.length > 1) {
    for (const [i, block] of from.entries())
      graph.insert(copy, { ...edges[i], from: block, rows: rowsOf(block), columns });
  }
  for (const [i, block] of from.entries()) {
    const above = i > 0 ? [edges[i - 1].last] : [];
    const below = i + 1 < from.length ? [edges[i + 1].first] : [];
    graph.insert(fivePoint, {
      to: to[i],
      from: block,
      above,
      below,
      rows: rowsOf(block),
      ...weights,
    });
  }
}
