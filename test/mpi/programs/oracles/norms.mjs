// Norms and dot products across ranks: the bits of one rank, and only partial results on the network.
import { createHash } from 'node:crypto';
import { dot, matrixPartials, reduceMatrix } from '../../../../dist/algorithms/index.js';
import { TiledMatrix } from '../../../../dist/index.js';
import { TILE } from './matrices.mjs';
import { collector } from './world.mjs';

const OPERATIONS = ['sum', 'min', 'max', 'largest', 'frobenius', 'one', 'infinity'];
const shape = { rows: 4 * TILE - 5, columns: 3 * TILE, tile: TILE };

const fill = (values, row, column, rows, columns) => {
  for (let c = 0; c < columns; c++)
    for (let r = 0; r < rows; r++)
      values[c * rows + r] = Math.sqrt(1 + (((row + r) * 31 + (column + c) * 17) % 19)) - 2;
};

/** All operations of one run. */
export async function norms({ runtime, ranks }) {
  const { problems, check } = collector();
  const a = new TiledMatrix(runtime, 'f64', shape, fill);
  const all = [...OPERATIONS, 'dot'].map((operation) => ({
    partials: matrixPartials(runtime, a, operation),
    result: runtime.data('f64', 1, { name: operation, rank: ranks - 1 }),
  }));
  const report = await runtime.run((graph) => {
    for (const { partials, result } of all) {
      if (partials.operation === 'dot') dot(graph, a, a, partials, result);
      else reduceMatrix(graph, a, partials, result);
    }
  });
  // The numbers that a rank sends are fewer than the elements of one tile.
  const most = TILE * TILE * 8;
  const { sentBytes = 0 } = report.network ?? {};
  check(sentBytes < most, () => `${sentBytes} bytes were sent`);
  const values = [];
  for (const { result } of all) values.push((await result.read())[0]);
  const norm = values[OPERATIONS.indexOf('frobenius')] ** 2;
  check(Math.abs(values.at(-1) / norm - 1) < 1e-13, () => `${norm}, but dot ${values.at(-1)}`);
  for (const { partials, result } of all) {
    partials.close();
    result.close();
  }
  a.close();
  const hash = createHash('sha256').update(Float64Array.from(values)).digest('hex').slice(0, 16);
  return { problems, report, hash };
}
