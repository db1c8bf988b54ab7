// Tiled algorithms across ranks: factors and products that do not depend on ranks, devices, memory or the way of data.
import { createHash } from 'node:crypto';
import {
  cholesky as insertCholesky,
  gemm as insertGemm,
  redistribute as insertRedistribute,
} from '../../../../dist/algorithms/index.js';
import { TiledMatrix } from '../../../../dist/index.js';
import { collector } from './world.mjs';

export const TILE = 16;
/** Order whose last tile is smaller than the others. */
const order = (tiles) => tiles * TILE - 5;

function fillSpd(n) {
  return (values, row, column, rows, columns) => {
    for (let c = 0; c < columns; c++)
      for (let r = 0; r < rows; r++) {
        const [i, j] = [row + r, column + c];
        values[c * rows + r] = i === j ? n + 1 : 1 / (1 + Math.abs(i - j)) + ((i * j) % 7) / 10;
      }
  };
}

function fillIntegers(seed) {
  return (values, row, column, rows, columns) => {
    for (let c = 0; c < columns; c++)
      for (let r = 0; r < rows; r++)
        values[c * rows + r] = (((row + r) * 31 + (column + c) * 17 + seed) % 19) - 9;
  };
}

const hashOf = (values) =>
  createHash('sha256').update(new Uint8Array(values.buffer)).digest('hex').slice(0, 16);

/** Tiled Cholesky factors of several orders. */
export async function cholesky({ runtime }) {
  const { problems, check } = collector();
  const hash = [];
  let report;
  for (const tiles of [3, 7]) {
    const n = order(tiles);
    const a = new TiledMatrix(runtime, 'f64', { rows: n, tile: TILE, lower: true }, fillSpd(n));
    report = await runtime.run((graph) => insertCholesky(graph, a));
    const l = await a.read();
    hash.push(hashOf(l));
    let worst = 0;
    for (let j = 0; j < n; j++)
      for (let i = j; i < n; i++) {
        let sum = 0;
        for (let k = 0; k <= j; k++) sum += l[k * n + i] * l[k * n + j];
        const exact = i === j ? n + 1 : 1 / (1 + Math.abs(i - j)) + ((i * j) % 7) / 10;
        worst = Math.max(worst, Math.abs(exact - sum));
      }
    check(worst / (n * (n + 1)) < 1e-15, () => `order ${n}: residual ${worst / (n * (n + 1))}`);
    a.close();
  }
  return { problems, report, hash: hash.join(' ') };
}

/** Tiled products, exact in integers. */
export async function gemm({ runtime }) {
  const { problems, check } = collector();
  const [m, n, k] = [order(5), order(4), order(3)];
  const matrix = (rows, columns, fill) =>
    new TiledMatrix(runtime, 'f64', { rows, columns, tile: TILE }, fill);
  const [fa, fb] = [fillIntegers(1), fillIntegers(2)];
  const a = matrix(m, k, fa);
  const b = matrix(k, n, fb);
  const c = matrix(m, n);
  const report = await runtime.run((graph) => insertGemm(graph, a, b, c));
  const [x, y] = [new Float64Array(m * k), new Float64Array(k * n)];
  fa(x, 0, 0, m, k);
  fb(y, 0, 0, k, n);
  const values = await c.read();
  for (let j = 0; j < n; j++)
    for (let i = 0; i < m; i++) {
      let sum = 0;
      for (let l = 0; l < k; l++) sum += x[l * m + i] * y[j * k + l];
      check(values[j * m + i] === sum, () => `(${i}, ${j}): ${values[j * m + i]}, not ${sum}`);
    }
  for (const each of [a, b, c]) each.close();
  return { problems, report, hash: hashOf(values) };
}

/** From one tiling, grid and origin to another and back: every element as before. */
export async function redistribute({ runtime, ranks }) {
  const { problems, check } = collector();
  const [rows, columns] = [61, 47];
  const at = (i, j) => i * 1000 + j;
  const fill = (values, row, column, m, cols) => {
    for (let c = 0; c < cols; c++)
      for (let r = 0; r < m; r++) values[c * m + r] = at(row + r, column + c);
  };
  const zero = (values) => values.fill(0);
  const tall = { rows: ranks, columns: 1 };
  const wide = { rows: 1, columns: ranks, originColumn: 1 };
  const matrix = (name, tile, rankGrid, from) =>
    new TiledMatrix(runtime, 'f64', { rows, columns, tile, rankGrid, name }, from);
  const a = matrix('A', 16, tall, fill);
  const b = matrix('B', 11, wide, zero);
  const c = matrix('C', 16, tall, zero);
  const report = await runtime.run((graph) => {
    insertRedistribute(graph, a, b);
    insertRedistribute(graph, b, c);
  });
  for (const each of [b, c]) {
    const values = await each.read();
    for (let j = 0; j < columns; j++)
      for (let i = 0; i < rows; i++)
        check(
          values[j * rows + i] === at(i, j),
          () => `${each.name} (${i}, ${j}): ${values[j * rows + i]}`,
        );
  }
  for (const each of [a, b, c]) each.close();
  return { problems, report };
}

/** In a pruned run a rank inserts only tasks that use its own tiles; factor and product are the same. */
export async function pruned({ runtime, rank, ranks }) {
  const { problems, check } = collector();
  const n = order(9);
  const hashes = [];
  const inserted = [];
  let report;
  for (const isPruned of [false, true]) {
    const spd = new TiledMatrix(runtime, 'f64', { rows: n, tile: TILE, lower: true }, fillSpd(n));
    const matrix = (fill) => new TiledMatrix(runtime, 'f64', { rows: n, tile: TILE }, fill);
    const [a, b, c] = [matrix(fillIntegers(1)), matrix(fillIntegers(2)), matrix()];
    let count = 0;
    report = await runtime.run(
      (graph) => {
        const counted = {
          insert: (...args) => {
            count++;
            return graph.insert(...args);
          },
          skips: (...data) => graph.skips(...data),
          check: (...args) => graph.check(...args),
        };
        insertCholesky(counted, spd);
        insertGemm(counted, a, b, c);
      },
      { pruned: isPruned },
    );
    inserted.push(count);
    hashes.push(hashOf(await spd.read()) + hashOf(await c.read()));
    for (const each of [spd, a, b, c]) each.close();
  }
  check(hashes[0] === hashes[1], () => 'the results differ');
  // After a pruned run a rank cannot know that a datum of another rank was never written: it is told.
  const nothing = runtime.data('f64', 1, { name: 'nothing', rank: 0 });
  const code = await nothing.read().catch((error) => error.code);
  const expected = rank === 0 ? 'ERR_NEVER_WRITTEN' : 'ERR_DATUM_POISONED';
  check(code === expected, () => `reading nothing: ${code}`);
  nothing.close();
  if (ranks > 1) check(inserted[1] < inserted[0], () => `inserted ${inserted}`);
  if (ranks === 4) check(inserted[1] < 0.75 * inserted[0], () => `inserted ${inserted}`);
  return { problems, report, hash: hashes[0] };
}
