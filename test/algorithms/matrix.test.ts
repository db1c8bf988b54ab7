// Tiled Cholesky and product as library functions: precisions, shapes, scalars, priorities, and refused arguments.
import { describe, expect, it } from 'vitest';
import { cholesky, choleskyFlops, gemm, gemmFlops, tileClasses } from '../../algorithms/index.js';
import { type HeadraceError, type Runtime, TiledMatrix } from '../../index.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { fillIntegers, fillSpd, product, residual } from '../support/matrices.js';

async function closeAll(runtime: Runtime, ...matrices: TiledMatrix[]): Promise<void> {
  for (const matrix of matrices) matrix.close();
  await nothingLeft(runtime, []);
}

describe.each(MACHINES)('on $name', ({ options }) => {
  it.each([
    ['f64', 100, 32, 1e-15],
    ['f64', 64, 64, 1e-15],
    ['f64', 5, 8, 1e-15],
    ['f64', 33, 1, 1e-15],
    ['f32', 100, 24, 1e-7],
  ] as const)('Cholesky in %s of order %i with tiles of %i', async (element, n, tile, limit) => {
    await onMachine(options, async (runtime) => {
      const a = new TiledMatrix(
        runtime,
        element,
        { rows: n, tile, lower: true, name: 'A' },
        fillSpd(n),
      );
      const report = await soon(
        runtime,
        runtime.run((graph) => cholesky(graph, a)),
      );
      const nt = a.tileRows;
      expect(report.tasks).toBe(nt + nt * (nt - 1) + (nt * (nt - 1) * (nt - 2)) / 6);
      expect(residual(await a.read(), n)).toBeLessThan(limit);
      await closeAll(runtime, a);
    });
  });

  it('a matrix that is not positive definite names the tile and the pivot, and the runtime goes on', async () => {
    await onMachine(options, async (runtime) => {
      const n = 70;
      const bad = 45; // row 13 of tile (2, 2), counted from 0
      const fill = fillSpd(n);
      const a = new TiledMatrix(
        runtime,
        'f64',
        { rows: n, tile: 16, lower: true, name: 'A' },
        (values, row, column, rows, columns) => {
          fill(values, row, column, rows, columns);
          if (row === column && bad >= row && bad < row + rows)
            values[(bad - row) * rows + bad - row] = -1;
        },
      );
      const error = (await soon(
        runtime,
        runtime.run((graph) => cholesky(graph, a)),
      ).catch((e: unknown) => e)) as HeadraceError;
      expect(error.code).toBe('ERR_NOT_POSITIVE_DEFINITE');
      expect(error.message).toContain('pivot 14 of tile A(2, 2)');
      expect(error.details).toMatchObject({ stage: 'exec', kernelCode: 14 });
      const good = new TiledMatrix(runtime, 'f64', { rows: n, tile: 16, lower: true }, fill);
      await soon(
        runtime,
        runtime.run((graph) => cholesky(graph, good)),
      );
      expect(residual(await good.read(), n)).toBeLessThan(1e-15);
      await closeAll(runtime, a, good);
    });
  });

  it.each([
    [40, 30, 50, 16, 1, 0],
    [16, 16, 16, 16, 2, 0],
    [33, 7, 20, 10, -1, 3],
  ])(
    'a product of %i x %i, inner size %i, tiles of %i, alpha %f, beta %f',
    async (m, n, k, tile, alpha, beta) => {
      await onMachine(options, async (runtime) => {
        const a = new TiledMatrix(
          runtime,
          'f64',
          { rows: m, columns: k, tile, name: 'A' },
          fillIntegers(1),
        );
        const b = new TiledMatrix(
          runtime,
          'f64',
          { rows: k, columns: n, tile, name: 'B' },
          fillIntegers(2),
        );
        const shape = { rows: m, columns: n, tile, name: 'C' };
        const c =
          beta === 0
            ? new TiledMatrix(runtime, 'f64', shape)
            : new TiledMatrix(runtime, 'f64', shape, fillIntegers(3));
        const whole = (seed: number, rows: number, columns: number): Float64Array => {
          const values = new Float64Array(rows * columns);
          fillIntegers(seed)(values, 0, 0, rows, columns);
          return values;
        };
        await soon(
          runtime,
          runtime.run((graph) => gemm(graph, a, b, c, { alpha, beta })),
        );
        const expected = product(whole(1, m, k), whole(2, k, n), m, n, k);
        const old = whole(3, m, n);
        expect(await c.read()).toEqual(expected.map((v, i) => alpha * v + beta * old[i]));
        await closeAll(runtime, a, b, c);
      });
    },
  );
});

describe('shapes', () => {
  it('that do not fit together are refused before anything is inserted', async () => {
    await onMachine(MACHINES[0].options, async (runtime) => {
      const matrix = (rows: number, columns: number, tile = 4): TiledMatrix<'f64'> =>
        new TiledMatrix(runtime, 'f64', { rows, columns, tile }, fillIntegers(1));
      const [a, b, c, d, e] = [
        matrix(8, 6),
        matrix(7, 8),
        matrix(8, 8),
        matrix(6, 8, 3),
        matrix(6, 8),
      ];
      for (const attempt of [
        () => runtime.run((graph) => gemm(graph, a, b, c)),
        () => runtime.run((graph) => gemm(graph, a, d, c)),
        () => runtime.run((graph) => gemm(graph, a, e, a)),
        () => runtime.run((graph) => cholesky(graph, a)),
      ]) {
        const run = attempt();
        await expect(run).rejects.toMatchObject({ code: 'ERR_SHAPE' });
        expect(run.progress.inserted).toBe(0);
      }
      await soon(
        runtime,
        runtime.run((graph) => gemm(graph, a, e, c)),
      );
      await closeAll(runtime, a, b, c, d, e);
    });
  });

  it('count their operations', () => {
    expect(choleskyFlops(1)).toBeCloseTo(1, 12);
    expect(choleskyFlops(3)).toBeCloseTo(14, 12);
    expect(gemmFlops(2, 3, 4)).toBe(48);
    expect(tileClasses('f32').potrf.elements).toEqual(['f32']);
    expect(tileClasses('f64')).toBe(tileClasses('f64'));
  });
});
