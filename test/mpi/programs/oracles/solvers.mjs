// Solves across ranks: residuals, and solutions that do not depend on ranks, devices, memory or the way of data.
import { createHash } from 'node:crypto';
import {
  cholesky,
  conjugateGradientData,
  choleskySolve as insertCholeskySolve,
  conjugateGradient as insertConjugateGradient,
  lu as insertLu,
  qr as insertQr,
  triangularSolve as insertTriangularSolve,
  leastSquares,
  luFactors,
  luSolve,
  qrFactors,
} from '../../../../dist/algorithms/index.js';
import { TiledMatrix } from '../../../../dist/index.js';
import { TILE } from './matrices.mjs';
import { collector } from './world.mjs';

const EPS = 2 ** -53;
const [N, M] = [5 * TILE - 5, 2 * TILE + 3];

const spd = (i, j) => (i === j ? N + 1 : 1 / (1 + Math.abs(i - j)) + ((i * j) % 7) / 10);
const right = (i, j) => ((i * 31 + j * 17) % 19) - 9.5;

const fillFrom = (at) => (values, row, column, rows, columns) => {
  for (let c = 0; c < columns; c++)
    for (let r = 0; r < rows; r++) values[c * rows + r] = at(row + r, column + c);
};

const hashOf = (values) =>
  createHash('sha256').update(new Uint8Array(values.buffer)).digest('hex').slice(0, 16);

/** The largest |A X - B| / (n eps |A| |X|), element by element. */
function worstOf(at, x, n, columns) {
  let worst = 0;
  for (let j = 0; j < columns; j++)
    for (let i = 0; i < n; i++) {
      let [sum, size] = [-right(i, j), 0];
      for (let k = 0; k < n; k++) {
        sum += at(i, k) * x[j * n + k];
        size += Math.abs(at(i, k) * x[j * n + k]);
      }
      const off = Math.abs(sum) / (n * EPS * size);
      if (!(off <= worst)) worst = off;
    }
  return worst;
}

/** A factor solves for many right-hand sides, also in a pruned run, where the solution has the same bits. */
export async function choleskySolve({ runtime }) {
  const { problems, check } = collector();
  const hashes = [];
  let report;
  for (const pruned of [false, true]) {
    const a = new TiledMatrix(runtime, 'f64', { rows: N, tile: TILE, lower: true }, fillFrom(spd));
    const b = new TiledMatrix(runtime, 'f64', { rows: N, columns: M, tile: TILE }, fillFrom(right));
    report = await runtime.run(
      (graph) => {
        cholesky(graph, a);
        insertCholeskySolve(graph, a, b);
      },
      { pruned },
    );
    const x = await b.read();
    const worst = worstOf(spd, x, N, M);
    check(worst < 4, () => `residual of ${worst} n eps`);
    hashes.push(hashOf(x));
    for (const each of [a, b]) each.close();
  }
  check(hashes[0] === hashes[1], () => 'a pruned run gives another solution');
  return { problems, report, hash: hashes[0] };
}

/** An upper triangle, from the left. */
export async function triangularSolve({ runtime }) {
  const { problems, check } = collector();
  const upper = (i, j) => (i === j ? N : i < j ? 1 / (1 + j - i) : 0);
  const a = new TiledMatrix(runtime, 'f64', { rows: N, tile: TILE }, fillFrom(upper));
  const b = new TiledMatrix(runtime, 'f64', { rows: N, columns: M, tile: TILE }, fillFrom(right));
  const report = await runtime.run((graph) => insertTriangularSolve(graph, a, b, { upper: true }));
  const x = await b.read();
  const worst = worstOf(upper, x, N, M);
  check(worst < 2, () => `residual of ${worst} n eps`);
  for (const each of [a, b]) each.close();
  return { problems, report, hash: hashOf(x) };
}

/** LU with its pivots, also in a pruned run. */
export async function lu({ runtime }) {
  const { problems, check } = collector();
  // Every diagonal tile but the middle one has zeros on the diagonal.
  const mirrored = (i, j) => (i + j === N - 1 ? 4 : 0) + ((i * 7 + j * 13) % 11) / 30;
  const hashes = [];
  let report;
  for (const pruned of [false, true]) {
    const a = new TiledMatrix(runtime, 'f64', { rows: N, tile: TILE }, fillFrom(mirrored));
    const b = new TiledMatrix(runtime, 'f64', { rows: N, columns: M, tile: TILE }, fillFrom(right));
    const factors = luFactors(runtime, a);
    report = await runtime.run(
      (graph) => {
        insertLu(graph, a, factors);
        luSolve(graph, a, factors, b);
      },
      { pruned },
    );
    const x = await b.read();
    const worst = worstOf(mirrored, x, N, M);
    check(worst < 4, () => `residual of ${worst} n eps`);
    hashes.push(hashOf(x));
    for (const each of [a, b, factors]) each.close();
  }
  check(hashes[0] === hashes[1], () => 'a pruned run gives another solution');
  return { problems, report, hash: hashes[0] };
}

/** QR solves, also in a pruned run. */
export async function qr({ runtime }) {
  const { problems, check } = collector();
  const hashes = [];
  let report;
  for (const pruned of [false, true]) {
    const a = new TiledMatrix(runtime, 'f64', { rows: N, tile: TILE }, fillFrom(spd));
    const b = new TiledMatrix(runtime, 'f64', { rows: N, columns: M, tile: TILE }, fillFrom(right));
    const factors = qrFactors(runtime, a);
    report = await runtime.run(
      (graph) => {
        insertQr(graph, a, factors);
        leastSquares(graph, a, factors, b);
      },
      { pruned },
    );
    const x = await b.read();
    const worst = worstOf(spd, x, N, M);
    check(worst < 4, () => `residual of ${worst} n eps`);
    hashes.push(hashOf(x));
    for (const each of [a, b, factors]) each.close();
  }
  check(hashes[0] === hashes[1], () => 'a pruned run gives another solution');
  return { problems, report, hash: hashes[0] };
}

/** Conjugate gradients with tiles dealt out by rows, also in a pruned run, and on a grid whose blocks are on all ranks. */
export async function conjugateGradient({ runtime, ranks }) {
  const { problems, check } = collector();
  const column = { rows: N, columns: 1, tile: TILE };
  const rankGrid = { rows: ranks, columns: 1 };
  const hashes = [];
  let report;
  for (const pruned of [false, true]) {
    const a = new TiledMatrix(runtime, 'f64', { rows: N, tile: TILE, rankGrid }, fillFrom(spd));
    const [b, x] = [right, () => 0].map(
      (at) => new TiledMatrix(runtime, 'f64', { ...column, rankGrid }, fillFrom(at)),
    );
    const data = conjugateGradientData(runtime, a, x);
    let found;
    report = await runtime.run(
      async (graph) => {
        found = await insertConjugateGradient(graph, a, b, x, data, { tolerance: 1e-14 });
      },
      { pruned },
    );
    check(found.residual <= 1e-14, () => `residual of ${found.residual}`);
    const values = await x.read();
    const worst = worstOf(spd, values, N, 1);
    check(worst < 4, () => `residual of ${worst} n eps`);
    hashes.push(hashOf(values));
    for (const each of [a, b, x, data]) each.close();
  }
  check(hashes[0] === hashes[1], () => 'a pruned run gives another solution');
  return { problems, report, hash: hashes[0] + (await onGrid(runtime, ranks, check)) };
}

/** The hash of a solution on a grid, whose edge rows travel in each iteration. */
async function onGrid(runtime, ranks, check) {
  const [columns, rows] = [20, 4];
  const blocks = (value, name) =>
    Array.from({ length: 5 }, (_, b) =>
      runtime.data(new Float64Array(rows * columns).fill(value), {
        name: `${name}(${b})`,
        rank: b % ranks,
      }),
    );
  const [b, x] = [blocks(1, 'b'), blocks(0, 'x')];
  const data = conjugateGradientData(runtime, { columns }, x);
  let found;
  await runtime.run(async (graph) => {
    found = await insertConjugateGradient(graph, { columns }, b, x, data, { every: 25 });
  });
  check(found.residual <= 1e-10, () => `residual of ${found.residual} on a grid`);
  // The grid has n rows and columns and is symmetric, and so is the solution.
  const values = [];
  for (const block of x) values.push(...(await block.read()));
  const off = Math.max(...values.map((value, i) => Math.abs(value - values.at(-1 - i))));
  check(off < 1e-8 && values[0] > 0.25, () => `a solution that is off by ${off}`);
  for (const each of [...b, ...x, data]) each.close();
  return hashOf(Float64Array.from([...values, found.iterations]));
}
