// The tile operations as tasks: every combination of their options against plain loops, and shapes that do not fit.
import { describe, expect, it } from 'vitest';
import { tile } from '../../algorithms/index.js';
import { panelsOf } from '../../algorithms/panels.js';
import { type Datum, type Graph, type Runtime, TiledMatrix } from '../../index.js';
import { MACHINES, onMachine, soon } from '../support/machines.js';

/** A column-major matrix with elements that are exact in sums and products. */
interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly at: (i: number, j: number) => number;
}

const integers = (rows: number, columns: number, seed: number): Matrix => ({
  rows,
  columns,
  at: (i, j) => ((i * 7 + j * 13 + seed * 5) % 9) - 4,
});
const transposed = ({ rows, columns, at }: Matrix): Matrix => ({
  rows: columns,
  columns: rows,
  at: (i, j) => at(j, i),
});
const times = (a: Matrix, b: Matrix): Matrix => {
  const at = (i: number, j: number): number => {
    let sum = 0;
    for (let k = 0; k < a.columns; k++) sum += a.at(i, k) * b.at(k, j);
    return sum;
  };
  return { rows: a.rows, columns: b.columns, at };
};
const combine = (alpha: number, a: Matrix, beta: number, b: Matrix): Matrix => ({
  rows: a.rows,
  columns: a.columns,
  at: (i, j) => alpha * a.at(i, j) + beta * b.at(i, j),
});
const values = ({ rows, columns, at }: Matrix): Float64Array =>
  Float64Array.from({ length: rows * columns }, (_, e) => at(e % rows, Math.floor(e / rows)));
const datum = (runtime: Runtime, matrix: Matrix, name: string): Datum<'f64'> =>
  runtime.data(values(matrix), { rows: matrix.rows, name });
/** A triangle whose diagonal is a power of two, so that solving with it is exact. */
const triangle = (n: number, upper: boolean, unit: boolean): Matrix => ({
  rows: n,
  columns: n,
  at: (i, j) => {
    if (i === j) return unit ? 1 : 2;
    return upper === i < j ? ((i + 2 * j) % 3) - 1 : 0;
  },
});
const both = [false, true];

describe.each(MACHINES)('on $name', ({ options }) => {
  it('gemm, with and without transposes, and without reading C', async () => {
    await onMachine(options, async (runtime) => {
      for (const transA of both) {
        for (const transB of both) {
          const a = transA ? transposed(integers(5, 3, 1)) : integers(5, 3, 1);
          const b = transB ? transposed(integers(3, 4, 2)) : integers(3, 4, 2);
          const c = integers(5, 4, 3);
          const [A, B, C] = [
            datum(runtime, a, 'A'),
            datum(runtime, b, 'B'),
            datum(runtime, c, 'C'),
          ];
          const fresh = runtime.data('f64', 20, { rows: 5, name: 'fresh' });
          await soon(
            runtime,
            runtime.run((graph) => {
              tile.gemm(graph, A, B, C, { transA, transB, alpha: -2, beta: 3 });
              tile.gemm(graph, A, B, fresh, { transA, transB, beta: 0 });
            }),
          );
          const product = times(transA ? transposed(a) : a, transB ? transposed(b) : b);
          expect(await C.read()).toEqual(values(combine(-2, product, 3, c)));
          expect(await fresh.read()).toEqual(values(product));
        }
      }
    });
  });

  it('syrk updates one triangle and leaves the other', async () => {
    await onMachine(options, async (runtime) => {
      for (const upper of both) {
        for (const trans of both) {
          const a = trans ? transposed(integers(5, 3, 1)) : integers(5, 3, 1);
          const c = integers(5, 5, 3);
          const [A, C] = [datum(runtime, a, 'A'), datum(runtime, c, 'C')];
          await soon(
            runtime,
            runtime.run((graph) => {
              tile.syrk(graph, A, C, { upper, trans, alpha: -1, beta: 2 });
            }),
          );
          const product = trans ? times(transposed(a), a) : times(a, transposed(a));
          const updated = combine(-1, product, 2, c);
          const at = (i: number, j: number): number =>
            (upper ? i <= j : i >= j) ? updated.at(i, j) : c.at(i, j);
          expect(await C.read()).toEqual(values({ ...c, at }));
        }
      }
    });
  });

  it('trsm solves from either side with either triangle', async () => {
    await onMachine(options, async (runtime) => {
      for (let bits = 0; bits < 16; bits++) {
        const [right, upper, trans, unit] = [1, 2, 4, 8].map((bit) => (bits & bit) !== 0);
        const a = triangle(4, upper, unit);
        const x = right ? integers(3, 4, bits) : integers(4, 3, bits);
        const op = trans ? transposed(a) : a;
        const b = right ? times(x, op) : times(op, x);
        const [A, B] = [datum(runtime, a, 'A'), datum(runtime, b, 'B')];
        await soon(
          runtime,
          runtime.run((graph) => {
            tile.trsm(graph, A, B, { right, upper, trans, unit, alpha: 2 });
          }),
        );
        expect(await B.read(), `options ${bits}`).toEqual(values(combine(2, x, 0, x)));
      }
    });
  });

  it('potrf factors the lower triangle', async () => {
    await onMachine(options, async (runtime) => {
      const l = triangle(4, false, false);
      const A = datum(runtime, times(l, transposed(l)), 'A');
      await soon(
        runtime,
        runtime.run((graph) => {
          tile.potrf(graph, A);
        }),
      );
      const factor = await A.read();
      for (let j = 0; j < 4; j++)
        for (let i = j; i < 4; i++) expect(factor[j * 4 + i]).toBe(l.at(i, j));
    });
  });
});

describe('wrong shapes', () => {
  it('is refused with the names and shapes of the tiles, and nothing is inserted', async () => {
    await onMachine(MACHINES[0].options, async (runtime) => {
      const wide = datum(runtime, integers(2, 3, 1), 'wide');
      const square = datum(runtime, integers(2, 2, 1), 'square');
      const attempts: ((graph: Graph) => unknown)[] = [
        (graph) => tile.potrf(graph, wide),
        (graph) => tile.trsm(graph, wide, square),
        (graph) => tile.trsm(graph, square, wide, { right: true }),
        (graph) => tile.syrk(graph, wide, wide),
        (graph) => tile.gemm(graph, wide, wide, square),
        (graph) => tile.gemm(graph, wide, wide, wide, { transB: true }),
      ];
      for (const attempt of attempts) {
        const run = runtime.run((graph) => {
          attempt(graph);
        });
        await expect(run).rejects.toMatchObject({
          code: 'ERR_SHAPE',
          message: expect.stringContaining("'wide' (2 x 3)"),
        });
        expect(run.progress.inserted).toBe(0);
      }
      expect(() => runtime.data(new Float64Array(7), { rows: 2, name: 'odd' })).toThrow(
        "datum 'odd': 7 elements do not form columns of 2 rows",
      );
    });
  });
});

describe('panels', () => {
  const lower = (runtime: Runtime, rows: number): TiledMatrix =>
    new TiledMatrix(runtime, 'f64', { rows, tile: 1, lower: true });

  it('there is one with one band if the matrix fits', async () => {
    await onMachine(MACHINES[0].options, async (runtime) => {
      const [panel, ...others] = panelsOf(lower(runtime, 12));
      expect(panel).toEqual({ first: 0, end: 12, bands: [[0, 12]] });
      expect(others).toEqual([]);
    });
  });

  it('cover the matrix, and what stays of each has room, for all sizes of memory', async () => {
    await onMachine(MACHINES[0].options, async (runtime) => {
      for (const nt of [1, 2, 7, 16, 33]) {
        const A = lower(runtime, nt);
        for (let tiles = 5; tiles < nt * nt; tiles += 3) {
          const room = Math.min(tiles - 4, 0.85 * tiles);
          let column = 0;
          for (const { first, end, bands } of panelsOf(A, tiles)) {
            expect(first).toBe(column);
            expect(end).toBeGreaterThan(first);
            column = end;
            let row = first;
            for (const [top, bottom] of bands) {
              expect(top).toBe(row);
              row = bottom;
            }
            expect(row).toBe(nt);
            const width = end - first;
            if (bands.length > 1) {
              const stays = width * first + (width * (width + 1)) / 2;
              expect(stays + 3 * width).toBeLessThanOrEqual(room);
              for (const [top, bottom] of bands.slice(1)) expect(bottom - top).toBe(1);
            } else if (width > 1) {
              expect((width * (2 * nt - first - end + 1)) / 2).toBeLessThanOrEqual(room);
            }
          }
          expect(column).toBe(nt);
        }
      }
    });
  });

  it('are in bands at the begin of a matrix, as long as these are as wide, and whole at its end', async () => {
    await onMachine(MACHINES[0].options, async (runtime) => {
      const panels = panelsOf(lower(runtime, 16), 38);
      expect(panels.map(({ first, end, bands }) => [first, end, bands.length])).toEqual([
        [0, 5, 12],
        [5, 8, 9],
        [8, 13, 1],
        [13, 16, 1],
      ]);
    });
  });
});
