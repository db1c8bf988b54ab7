// Tiled Cholesky factorisation. Right-looking where device memory holds the matrix: A. Buttari, J. Langou, J. Kurzak,
// J. Dongarra, "A class of parallel tiled linear algebra algorithms for multicore architectures", Parallel Computing 35
// (2009), algorithm 1. Otherwise panel by panel.
import { type Graph, HeadraceError, type TiledMatrix } from '../scheduler/index.js';
import { roomPerGpu } from './room.js';
import { tileKernels } from './tile-kernels.js';

/**
 * Inserts the tasks that overwrite the lower triangle of the symmetric positive definite matrix A (square, square
 * tiles) with L, where A = L L^T. Tiles above the diagonal are neither read nor written.
 *
 * A matrix that is not positive definite fails the run with `ERR_NOT_POSITIVE_DEFINITE`, naming tile and pivot.
 * Tasks near the diagonal go first, as the critical path runs along it; where the matrix does not fit the memory of the
 * GPUs they go in an order that reads little of it again.
 * In a pruned run every rank inserts only what uses a tile of its own: other ranks read final tiles only.
 *
 * @throws HeadraceError `ERR_SHAPE` when A is not square
 */
export function cholesky<E extends 'f64' | 'f32'>(graph: Graph, A: TiledMatrix<E>): void {
  if (A.rows !== A.columns) {
    throw new HeadraceError('ERR_SHAPE', `'${A.name}' is ${A.rows} x ${A.columns}, not square`);
  }
  const panels = panelsOf(A);
  const fits = panels.length === 1;
  for (const [first, end] of panels) {
    // What lies left of the panel is final.
    for (let k = 0; k < first; k++) update(graph, A, k, first, end, fits);
    for (let k = first; k < end; k++) {
      factor(graph, A, k, fits);
      update(graph, A, k, k + 1, end, fits);
    }
  }
}

/** Factors column k: A_kk = L_kk L_kk^T, and below the diagonal L_ik = A_ik L_kk^-T. */
function factor<E extends 'f64' | 'f32'>(
  graph: Graph,
  A: TiledMatrix<E>,
  k: number,
  fits: boolean,
): void {
  const { potrf, trsm } = tileKernels(A.element);
  const nt = A.tileRows;
  const nk = A.rowsOf(k);
  const diagonal = A.at(k, k);
  if (!graph.skips(diagonal)) {
    graph.insert(
      potrf,
      { a: diagonal, n: nk, upper: false, lda: nk },
      { priority: fits ? 3 * (nt - k) : 0 },
    );
  }
  for (let i = k + 1; i < nt; i++) {
    const b = A.at(i, k);
    if (graph.skips(diagonal, b)) continue;
    graph.insert(
      trsm,
      {
        a: diagonal,
        b,
        m: A.rowsOf(i),
        n: nk,
        right: true,
        upper: false,
        trans: true,
        unit: false,
        alpha: 1,
        lda: nk,
        ldb: A.rowsOf(i),
      },
      { priority: fits ? 3 * (nt - i) + 2 : 0 },
    );
  }
}

/**
 * Updates columns [first, end) with column k: A_ij -= L_ik L_jk^T. Column by column where the matrix fits, because the
 * first is factored next; row by row where it does not, because most tiles of column k are then needed for one row only.
 */
function update<E extends 'f64' | 'f32'>(
  graph: Graph,
  A: TiledMatrix<E>,
  k: number,
  first: number,
  end: number,
  fits: boolean,
): void {
  const nt = A.tileRows;
  if (fits) {
    for (let j = first; j < end; j++)
      for (let i = j; i < nt; i++) updateTile(graph, A, k, i, j, 3 * (nt - i));
  } else {
    for (let i = first; i < nt; i++)
      for (let j = first; j < Math.min(end, i + 1); j++) updateTile(graph, A, k, i, j, 0);
  }
}

function updateTile<E extends 'f64' | 'f32'>(
  graph: Graph,
  A: TiledMatrix<E>,
  k: number,
  i: number,
  j: number,
  priority: number,
): void {
  const { syrk, gemm } = tileKernels(A.element);
  const aik = A.at(i, k);
  const aij = A.at(i, j);
  const m = A.rowsOf(i);
  const nk = A.rowsOf(k);
  if (i === j) {
    if (graph.skips(aik, aij)) return;
    graph.insert(
      syrk,
      {
        a: aik,
        c: aij,
        n: m,
        k: nk,
        upper: false,
        trans: false,
        alpha: -1,
        beta: 1,
        lda: m,
        ldc: m,
      },
      // Before the others of its row: the next factor waits for it.
      { priority: priority > 0 ? priority + 1 : 0 },
    );
    return;
  }
  const ajk = A.at(j, k);
  if (graph.skips(aik, ajk, aij)) return;
  graph.insert(
    gemm,
    {
      a: aik,
      b: ajk,
      c: aij,
      m,
      n: A.rowsOf(j),
      k: nk,
      transA: false,
      transB: true,
      alpha: -1,
      beta: 1,
      lda: m,
      ldb: A.rowsOf(j),
      ldc: m,
    },
    { priority },
  );
}

/**
 * Panels of columns [first, end), each as wide as the memory of the GPUs allows. When everything fits there is one, and
 * the factorisation is right-looking, with tasks near the diagonal first. Otherwise a panel stays in memory until it is
 * final, and what is left of it is read once per panel rather than the whole trailing matrix once per column
 * (left-looking: S. Toledo, "A survey of out-of-core algorithms in numerical linear algebra", 1999); tasks go in program
 * order. Each tile gets the same updates in the same order either way.
 */
function panelsOf(A: TiledMatrix): [first: number, end: number][] {
  const nt = A.tileRows;
  const { rows, columns } = A.grid;
  const room = roomPerGpu(A);
  const panels: [number, number][] = [];
  for (let first = 0, end = 0; first < nt; first = end) {
    let tiles = 0;
    // The columns of the grid take one each.
    do {
      tiles += Math.ceil((nt - end) / rows);
      end = Math.min(nt, end + columns);
    } while (end < nt && tiles + Math.ceil((nt - end) / rows) <= room);
    panels.push([first, end]);
  }
  return panels;
}

/** Floating-point operations of a Cholesky factorisation of order n (LAPACK Working Note 41). */
export function choleskyFlops(n: number): number {
  return n ** 3 / 3 + n ** 2 / 2 + n / 6;
}
