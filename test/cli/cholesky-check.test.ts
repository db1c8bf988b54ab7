// The checks of a factorisation against the textbook one, and the input matrices tile by tile.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  choleskyResidual,
  forwardError,
  maxNorm,
  multiply,
  solveLower,
  solveLowerTransposed,
  solveResidual,
} from '../../cli/cholesky-check.js';
import { readMatrixMarket, readMatrixMarketFile } from '../../cli/matrix-market.js';
import {
  randomSymmetricMatrix,
  rightHandSide,
  type SymmetricMatrix,
  symmetricMatrix,
} from '../../cli/spd-matrix.js';
import { extentOf, firstOf, lowerBytes, tileGrid } from '../../cli/tile-grid.js';
import { matrix as matrixNeed, needing } from '../support/needs.js';
import { referenceCholesky } from './reference-cholesky.js';
import { findSample } from './sample-data.js';

/** All of a matrix, row by row, from blocks of the given tile size. */
function dense(matrix: SymmetricMatrix, tile: number): number[][] {
  const grid = tileGrid(matrix.n, tile);
  const full = Array.from({ length: matrix.n }, () => new Array<number>(matrix.n).fill(Number.NaN));
  for (let j = 0; j < grid.count; j++) {
    for (let i = j; i < grid.count; i++) {
      const [rows, cols] = [extentOf(grid, i), extentOf(grid, j)];
      const block = new Float64Array(rows * cols).fill(Number.NaN);
      matrix.fill(firstOf(grid, i), firstOf(grid, j), rows, cols, block);
      for (let c = 0; c < cols; c++) {
        for (let r = 0; r < rows; r++) {
          full[firstOf(grid, i) + r][firstOf(grid, j) + c] = block[c * rows + r];
          if (i > j) full[firstOf(grid, j) + c][firstOf(grid, i) + r] = block[c * rows + r];
        }
      }
    }
  }
  return full;
}

const size = fc.integer({ min: 1, max: 40 });
const tileSize = fc.integer({ min: 1, max: 45 });

describe('input matrices', () => {
  it('gives the same random matrix for every tile size, symmetric and diagonally dominant', () => {
    fc.assert(
      fc.property(size, tileSize, fc.integer(), (n, tile, seed) => {
        const matrix = randomSymmetricMatrix(n, seed);
        const full = dense(matrix, tile);
        expect(full).toEqual(dense(matrix, n));
        for (let i = 0; i < n; i++) {
          let sum = 0;
          for (let j = 0; j < n; j++) {
            expect(full[i][j]).toBe(full[j][i]);
            if (i !== j) sum += Math.abs(full[i][j]);
          }
          expect(full[i][i]).toBeGreaterThan(sum);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('depends on the seed and has values spread over its range', () => {
    const [a, b] = [1, 2].map((seed) => dense(randomSymmetricMatrix(60, seed), 60).flat());
    expect(a).not.toEqual(b);
    const off = a.filter((value) => value < 1);
    expect(new Set(off).size).toBeGreaterThan(1700);
    expect(Math.abs(off.reduce((sum, value) => sum + value, 0) / off.length)).toBeLessThan(0.02);
  });

  it('reads the four storage kinds to the same matrix', async () => {
    const expected = [
      [4, -1, 0],
      [-1, 5, 2],
      [0, 2, 6],
    ];
    const files = [
      'coordinate real symmetric\n3 3 5\n3 3 6\n1 1 4\n2 1 -1\n3 2 2\n2 2 5\n',
      'coordinate real general\n3 3 8\n1 1 4\n1 2 -1\n2 1 -1\n2 2 5\n3 2 2\n2 3 2\n3 3 6\n3 1 0\n',
      'array real symmetric\n3 3\n4\n-1\n0\n5\n2\n6\n',
      'array real general\n3 3\n4\n-1\n0\n-1\n5\n2\n0\n2\n6\n',
    ];
    for (const file of files) {
      const matrix = symmetricMatrix(
        await readMatrixMarket([`%%MatrixMarket matrix ${file}`]),
        'a.mtx',
      );
      for (const tile of [1, 2, 3]) expect(dense(matrix, tile), file).toEqual(expected);
    }
  });

  it.each([
    ['array real general\n2 2\n1\n2\n3\n1\n', 'entry (2, 1) is 2, entry (1, 2) is 3'],
    ['coordinate real general\n2 2 2\n1 1 1\n2 1 5\n', 'entry (2, 1) is 5, entry (1, 2) is 0'],
    ['coordinate real general\n2 2 2\n1 2 5\n1 1 1\n', 'entry (2, 1) is 0, entry (1, 2) is 5'],
    ['array real general\n2 1\n1\n2\n', 'not square: 2 rows, 1 columns'],
  ])('refuses a matrix that is not symmetric, naming the entry', async (file, expected) => {
    const matrix = await readMatrixMarket([`%%MatrixMarket matrix ${file}`]);
    expect(() => symmetricMatrix(matrix, 'a.mtx')).toThrow(expected);
  });

  it('reads right-hand sides, dense or sparse, and refuses other shapes', async () => {
    const read = async (file: string) =>
      rightHandSide(await readMatrixMarket([`%%MatrixMarket matrix ${file}`]), 3, 'b.mtx');
    expect(await read('array real general\n3 1\n1\n2\n3\n')).toEqual(Float64Array.of(1, 2, 3));
    expect(await read('coordinate real general\n3 1 1\n2 1 7\n')).toEqual(Float64Array.of(0, 7, 0));
    await expect(read('array real general\n1 3\n1\n2\n3\n')).rejects.toThrow(
      '1 rows and 3 columns',
    );
  });
});

describe('residual', () => {
  it('is of the order of rounding for a right factor, for every tile size', async () => {
    await fc.assert(
      fc.asyncProperty(size, tileSize, async (n, tile) => {
        const grid = tileGrid(n, tile);
        const matrix = randomSymmetricMatrix(n);
        const result = await choleskyResidual(grid, matrix, referenceCholesky(grid, matrix));
        expect(result.backwardError).toBeLessThan(1e-15);
        const norm = Math.hypot(...dense(matrix, n).flat());
        expect(result.matrixNorm / norm).toBeCloseTo(1, 12);
      }),
      { numRuns: 60 },
    );
  });

  it('sees one wrong element anywhere on or below the diagonal, by its size', async () => {
    const [n, tile] = [23, 7];
    const grid = tileGrid(n, tile);
    const matrix = randomSymmetricMatrix(n);
    const good = referenceCholesky(grid, matrix);
    await fc.assert(
      fc.asyncProperty(fc.nat(n - 1), fc.nat(n - 1), async (a, b) => {
        const [row, col] = [Math.max(a, b), Math.min(a, b)];
        const wrong = (i: number, j: number) => {
          const values = good(i, j);
          const [r, c] = [row - i * tile, col - j * tile];
          const isInside = r >= 0 && r < extentOf(grid, i) && c >= 0 && c < extentOf(grid, j);
          if (isInside) values[c * extentOf(grid, i) + r] += 1e-3;
          return values;
        };
        const { residualNorm } = await choleskyResidual(grid, matrix, wrong);
        expect(residualNorm).toBeGreaterThan(1e-3);
        expect(residualNorm).toBeLessThan(1e-1);
      }),
    );
  });

  it('reports its progress and lets other events through', async () => {
    const grid = tileGrid(8, 2);
    const matrix = randomSymmetricMatrix(8);
    const steps: number[] = [];
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    const slow = (done: number, total: number) => {
      steps.push(done / total);
      const until = performance.now() + 3;
      while (performance.now() < until);
    };
    await choleskyResidual(grid, matrix, referenceCholesky(grid, matrix), slow);
    clearInterval(timer);
    expect(steps).toHaveLength(10);
    expect(steps.at(-1)).toBe(1);
    expect(turns).toBeGreaterThan(2);
  });

  it('checks a single precision factor in double precision', async () => {
    const grid = tileGrid(30, 8);
    const matrix = randomSymmetricMatrix(30);
    const { backwardError } = await choleskyResidual(
      grid,
      matrix,
      referenceCholesky(grid, matrix, 'f32'),
    );
    expect(backwardError).toBeGreaterThan(1e-12);
    expect(backwardError).toBeLessThan(1e-7);
  });
});

describe('solving', () => {
  it('multiplies and solves back for every tile size', () => {
    fc.assert(
      fc.property(size, tileSize, (n, tile) => {
        const grid = tileGrid(n, tile);
        const matrix = randomSymmetricMatrix(n);
        const full = dense(matrix, n);
        const exact = Float64Array.from({ length: n }, (_, i) => Math.cos(i) + 2);
        const b = multiply(grid, matrix, exact);
        full.forEach((row, i) => {
          expect(b[i]).toBeCloseTo(
            row.reduce((sum, value, j) => sum + value * exact[j], 0),
            8,
          );
        });
        const factor = referenceCholesky(grid, matrix);
        const x = solveLowerTransposed(grid, factor, solveLower(grid, factor, b));
        expect(forwardError(x, exact)).toBeLessThan(1e-13);
        expect(solveResidual(grid, matrix, x, b, n * n)).toBeLessThan(1e-15);
      }),
      { numRuns: 60 },
    );
  });

  it('does not hide NaN', () => {
    expect(maxNorm(Float64Array.of(1, Number.NaN, 2))).toBeNaN();
    expect(forwardError(Float64Array.of(1, Number.NaN), Float64Array.of(1, 1))).toBeNaN();
  });
});

it('counts the bytes of the tiles on and below the diagonal', () => {
  expect(lowerBytes(tileGrid(4096, 256), 'f64')).toBe(68 * 2 ** 20);
  expect(lowerBytes(tileGrid(5, 2), 'f32')).toBe(4 * (4 + 4 + 2 + 4 + 2 + 1));
});

const sample = findSample('bcsstk15.mtx');
it(
  'cuts a real sparse matrix into ragged tiles',
  needing(matrixNeed('bcsstk15.mtx', sample)),
  async () => {
    const market = await readMatrixMarketFile(sample ?? '');
    const matrix = symmetricMatrix(market, 'bcsstk15.mtx');
    const grid = tileGrid(matrix.n, 200);
    expect(extentOf(grid, grid.count - 1)).toBe(148);
    const x = Float64Array.from({ length: matrix.n }, (_, i) => Math.sin(i));
    const expected = new Float64Array(matrix.n);
    if (market.format !== 'coordinate') throw new Error('a coordinate file was expected');
    market.value.forEach((value, k) => {
      const [i, j] = [market.rowIndex[k], market.colIndex[k]];
      expected[i] += value * x[j];
      if (i !== j) expected[j] += value * x[i];
    });
    const product = multiply(grid, matrix, x);
    expect(forwardError(product, expected)).toBeLessThan(1e-14);
  },
);
