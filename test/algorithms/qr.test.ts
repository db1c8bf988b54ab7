// QR by tiles: Q is orthogonal and Q R is A, up to roundings, on every machine; least squares; and the same bits when the GPUs hold a
// part of the matrix.
import { describe, expect, it } from 'vitest';
import { applyQ, leastSquares, qr, qrFactors } from '../../algorithms/index.js';
import { type Graph, type Runtime, TiledMatrix } from '../../index.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { EPS, fillFrom, scattered, type Whole, wholeFrom } from '../support/matrices.js';

type At = (i: number, j: number) => number;
type Real = 'f64' | 'f32';

const random: At = (i, j) => scattered(i, j, 1);
const right: At = (i, j) => scattered(i, j, 2);
const identity: At = (i, j) => (i === j ? 1 : 0);

/** Element (i, j) of the product of the transpose of a matrix and another one. */
function product(a: Whole, b: Whole, i: number, j: number): number {
  let sum = 0;
  for (let k = 0; k < a.rows; k++) sum += a.values[i * a.rows + k] * b.values[j * b.rows + k];
  return sum;
}

const SHAPES = [
  { m: 70, n: 70, tile: 16 },
  { m: 100, n: 45, tile: 40 },
  { m: 53, n: 20, tile: 8 },
  { m: 9, n: 3, tile: 16 },
  { m: 7, n: 7, tile: 1 },
  { m: 60, n: 50, tile: 24, element: 'f32' as const },
];

/** The largest |Q^T Q - I| and |Q^T A - R|, in roundings times m. */
async function errors(
  runtime: Runtime,
  { m, n, tile, element = 'f64' }: { m: number; n: number; tile: number; element?: Real },
): Promise<{ orthogonality: number; residual: number }> {
  const a = new TiledMatrix(runtime, element, { rows: m, columns: n, tile }, fillFrom(random));
  const q = new TiledMatrix(runtime, element, { rows: m, tile }, fillFrom(identity));
  const factors = qrFactors(runtime, a);
  await soon(
    runtime,
    runtime.run((graph) => {
      qr(graph, a, factors as never);
      applyQ(graph, a, factors as never, q);
    }),
  );
  const [Q, R] = [
    { rows: m, columns: m, values: await q.read() },
    { rows: m, columns: n, values: await a.read() },
  ];
  const A = wholeFrom(m, n, random, element);
  let [orthogonality, residual] = [0, 0];
  for (let j = 0; j < m; j++) {
    for (let i = 0; i < m; i++) {
      orthogonality = Math.max(orthogonality, Math.abs(product(Q, Q, i, j) - identity(i, j)));
      if (j >= n) continue;
      const wanted = i <= j ? R.values[j * m + i] : 0;
      residual = Math.max(residual, Math.abs(product(Q, A, i, j) - wanted));
    }
  }
  for (const each of [a, q, factors]) each.close();
  await nothingLeft(runtime, []);
  const unit = m * EPS[element];
  return { orthogonality: orthogonality / unit, residual: residual / unit };
}

/** Solves least squares; returns what becomes of B. */
async function solution(
  runtime: Runtime,
  { m, n, tile }: { m: number; n: number; tile: number },
): Promise<{ values: Float64Array; evictions: number }> {
  const a = new TiledMatrix(runtime, 'f64', { rows: m, columns: n, tile }, fillFrom(random));
  const b = new TiledMatrix(runtime, 'f64', { rows: m, columns: 7, tile }, fillFrom(right));
  const factors = qrFactors(runtime, a);
  const { evictions } = await soon(
    runtime,
    runtime.run((graph) => {
      qr(graph, a, factors);
      leastSquares(graph, a, factors, b);
    }),
  );
  const values = await b.read();
  for (const each of [a, b, factors]) each.close();
  return { values, evictions };
}

describe.each(MACHINES)('on $name', ({ options }) => {
  it.each(SHAPES)('Q is orthogonal and Q^T A is R: %j', async (shape) => {
    await onMachine(options, async (runtime) => {
      const { orthogonality, residual } = await errors(runtime, shape);
      // Theorem 19.4 has a small constant times m n; elements are in [-1, 1), columns of A some sqrt(m) long.
      expect(orthogonality).toBeLessThan(4);
      expect(residual).toBeLessThan(4 * Math.sqrt(shape.m));
    });
  });

  it.each(SHAPES.filter(({ element }) => element === undefined))(
    'least squares: the residual is orthogonal to A, and its norm is that of the rest of B: %j',
    async (shape) => {
      await onMachine(options, async (runtime) => {
        const { m, n } = shape;
        const { values } = await solution(runtime, shape);
        const A = wholeFrom(m, n, random);
        for (let j = 0; j < 7; j++) {
          const x = values.subarray(j * m, j * m + n);
          const size = 1 + Math.max(...x.map(Math.abs));
          const rest = wholeFrom(m, 1, (i) => {
            let sum = right(i, j);
            for (let k = 0; k < n; k++) sum -= random(i, k) * x[k];
            return sum;
          });
          const unit = m * n * EPS.f64 * size;
          for (let k = 0; k < n; k++)
            expect(Math.abs(product(A, rest, k, 0))).toBeLessThan(4 * Math.sqrt(m) * unit);
          const norm = Math.hypot(...values.subarray(j * m + n, (j + 1) * m));
          const wanted = Math.sqrt(product(rest, rest, 0, 0));
          expect(Math.abs(norm - wanted)).toBeLessThan(4 * unit);
        }
      });
    },
  );
});

describe('out of core', () => {
  const on = async (gpus: number, tiles: number): ReturnType<typeof solution> =>
    await onMachine(
      { workers: 1, gpus, gpuMemory: tiles * 16 * 16 * 8, hostMemory: '64MiB', checked: true },
      (runtime) => solution(runtime, { m: 130, n: 90, tile: 16 }),
    );

  it.each([
    [1, 16],
    [2, 12],
    [4, 10],
  ])(
    '%i GPUs with room for %i tiles give the bits of one with room for all',
    async (gpus, tiles) => {
      const whole = await on(1, 400);
      expect(whole.evictions).toBe(0);
      const parts = await on(gpus, tiles);
      expect(parts.evictions).toBeGreaterThan(0);
      expect(parts.values).toEqual(whole.values);
    },
  );
});

describe('wrong matrices', () => {
  it('are named, before anything is inserted', async () => {
    await onMachine(MACHINES[0].options, async (runtime) => {
      const matrix = (name: string, rows: number, columns: number): TiledMatrix<'f64'> =>
        new TiledMatrix(runtime, 'f64', { rows, columns, tile: 4, name }, fillFrom(random));
      const [a, b] = [matrix('A', 8, 6), matrix('B', 12, 6)];
      const factors = qrFactors(runtime, a);
      const attempts: [(graph: Graph) => void, string, string][] = [
        [
          (g) => qr(g, b, factors),
          'ERR_SHAPE',
          "for 8 x 6 of f64 in tiles of 4, but 'B' is 12 x 6",
        ],
        [(g) => applyQ(g, a, factors, b), 'ERR_SHAPE', "'A' (8 x 6) and 'B' (12 x 6) do not fit"],
        [(g) => leastSquares(g, a, factors, a), 'ERR_DUPLICATE_DATUM', "A and B are both 'A'"],
        [
          (g) => leastSquares(g, a, factors, matrix('C', 8, 2)),
          'ERR_NEVER_WRITTEN',
          'T of A(0, 0)',
        ],
      ];
      for (const [attempt, code, words] of attempts) {
        const run = runtime.run(attempt);
        const message = expect.stringContaining(words);
        await expect(run).rejects.toMatchObject({ code, message });
        expect(run.progress.inserted).toBe(0);
      }
      expect(() => qrFactors(runtime, matrix('W', 6, 8))).toThrow(
        "'W' is 6 x 8, and has more columns than rows",
      );
    });
  });
});
