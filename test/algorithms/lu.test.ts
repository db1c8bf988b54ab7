// LU with pivoting between pairs of tiles: residuals of solutions in units of roundings on every machine, matrices that need their
// pivots, singular ones, and the same bits when the GPUs hold a part of the matrix.
import { describe, expect, it } from 'vitest';
import { lu, luFactors, luSolve } from '../../algorithms/index.js';
import { type Graph, type Runtime, TiledMatrix } from '../../index.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { EPS, fillFrom, residualOf, scattered, wholeFrom } from '../support/matrices.js';

type At = (i: number, j: number) => number;
interface Sizes {
  readonly n: number;
  readonly m: number;
  readonly tile: number;
  readonly element?: 'f64' | 'f32';
}

const random: At = (i, j) => scattered(i, j, 1);
const right: At = (i, j) => scattered(i, j, 2);

/** Solves A X = B; returns X and the evictions. */
async function solution(
  runtime: Runtime,
  at: At,
  { n, m, tile, element = 'f64' }: Sizes,
): Promise<{ values: Float64Array | Float32Array; evictions: number }> {
  const a = new TiledMatrix(runtime, element, { rows: n, tile, name: 'A' }, fillFrom(at));
  const b = new TiledMatrix(runtime, element, { rows: n, columns: m, tile }, fillFrom(right));
  const factors = luFactors(runtime, a);
  const { evictions } = await soon(
    runtime,
    runtime.run((graph) => {
      lu(graph, a, factors as never);
      luSolve(graph, a, factors as never, b);
    }),
  );
  const values = await b.read();
  for (const each of [a, b, factors]) each.close();
  await nothingLeft(runtime, []);
  return { values, evictions };
}

describe.each(MACHINES)('on $name', ({ options }) => {
  it.each([
    { n: 100, m: 30, tile: 24 },
    { n: 64, m: 10, tile: 64 },
    { n: 5, m: 2, tile: 8 },
    { n: 7, m: 3, tile: 1 },
    { n: 100, m: 7, tile: 30, element: 'f32' as const },
  ])('a random matrix: %j', async (sizes) => {
    await onMachine(options, async (runtime) => {
      const { n, m, element = 'f64' } = sizes;
      const { values } = await solution(runtime, random, sizes);
      const [a, b] = [wholeFrom(n, n, random, element), wholeFrom(n, m, right, element)];
      const residual = residualOf(a, { rows: n, columns: m, values }, b);
      // With partial pivoting about 1; the growth of pairs of tiles adds to it.
      expect(residual / (n * EPS[element])).toBeLessThan(4);
    });
  });

  it('a matrix whose rows are all in the wrong place is solved exactly', async () => {
    await onMachine(options, async (runtime) => {
      const [n, m] = [50, 3];
      // Every tile on the diagonal but the middle one is zero.
      const mirrored: At = (i, j) => (i + j === n - 1 ? 2 : 0);
      const { values } = await solution(runtime, mirrored, { n, m, tile: 8 });
      expect(values).toEqual(wholeFrom(n, m, (i, j) => right(n - 1 - i, j) / 2).values);
    });
  });

  it('a singular matrix names the pivot and the tile, and the runtime goes on', async () => {
    await onMachine(options, async (runtime) => {
      const n = 40;
      // Column 21 is zero: pivot 6 of the third column of tiles.
      const at: At = (i, j) => (j === 21 ? 0 : random(i, j));
      const a = new TiledMatrix(runtime, 'f64', { rows: n, tile: 8, name: 'A' }, fillFrom(at));
      const factors = luFactors(runtime, a);
      await expect(
        soon(
          runtime,
          runtime.run((graph) => lu(graph, a, factors)),
        ),
      ).rejects.toMatchObject({
        code: 'ERR_SINGULAR',
        message: expect.stringContaining('pivot 6 is 0 after the elimination with tile A(4, 2)'),
      });
      for (const each of [a, factors]) each.close();
      const { values } = await solution(runtime, random, { n: 20, m: 1, tile: 8 });
      expect(values.every(Number.isFinite)).toBe(true);
    });
  });
});

describe('out of core', () => {
  const sizes = { n: 120, m: 40, tile: 16 };
  const on = async (gpus: number, tiles: number): ReturnType<typeof solution> =>
    await onMachine(
      { workers: 1, gpus, gpuMemory: tiles * 16 * 16 * 8, hostMemory: '64MiB', checked: true },
      (runtime) => solution(runtime, random, sizes),
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
      const matrix = (name: string, rows: number, more: object = {}): TiledMatrix<'f64'> =>
        new TiledMatrix(runtime, 'f64', { rows, tile: 4, name, ...more }, fillFrom(random));
      const [a, b] = [matrix('A', 8), matrix('B', 12)];
      const factors = luFactors(runtime, a);
      const never = luFactors(runtime, b);
      const attempts: [(graph: Graph) => void, string, string][] = [
        [(g) => lu(g, matrix('W', 8, { columns: 6 }), factors), 'ERR_SHAPE', "'W' is 8 x 6"],
        [
          (g) => lu(g, b, factors),
          'ERR_SHAPE',
          "the factors are for 8 x 8 of f64 in tiles of 4, but 'B' is 12 x 12 of f64 in tiles of 4",
        ],
        [(g) => luSolve(g, a, factors, b), 'ERR_SHAPE', "'A' (8 x 8) and 'B' (12 x 12) do not fit"],
        [(g) => luSolve(g, b, never, matrix('C', 12)), 'ERR_NEVER_WRITTEN', 'L of B(1, 0)'],
      ];
      for (const [attempt, code, words] of attempts) {
        const run = runtime.run(attempt);
        const message = expect.stringContaining(words);
        await expect(run).rejects.toMatchObject({ code, message });
        expect(run.progress.inserted).toBe(0);
      }
      expect(() => luFactors(runtime, matrix('W', 8, { columns: 6 }))).toThrow("'W' is 8 x 6");
    });
  });
});
