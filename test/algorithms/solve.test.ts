// Solves with triangles and Cholesky factors: residuals in units of roundings, for every option, precision and machine, with GPUs that
// hold a part of the data, and with the same bits there.
import { describe, expect, it } from 'vitest';
import { cholesky, choleskySolve, triangularSolve } from '../../algorithms/index.js';
import { type Graph, type Runtime, TiledMatrix } from '../../index.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import {
  EPS,
  fillFrom,
  scattered,
  spd,
  type Whole,
  wholeFrom,
  worstSolution,
} from '../support/matrices.js';

type Real = 'f64' | 'f32';

/** Runs, and counts what left a GPU. */
async function evictions(runtime: Runtime, program: (graph: Graph) => void): Promise<number> {
  return (await soon(runtime, runtime.run(program))).evictions;
}

async function closeAll(runtime: Runtime, ...matrices: TiledMatrix[]): Promise<void> {
  for (const matrix of matrices) matrix.close();
  await nothingLeft(runtime, []);
}

const transposed = ({ rows, columns, values }: Whole): Whole =>
  wholeFrom(columns, rows, (i, j) => values[i * rows + j]);

interface Flags {
  readonly right: boolean;
  readonly upper: boolean;
  readonly trans: boolean;
  readonly unit: boolean;
}

/** A triangle of order n; what must not be read is NaN. */
function triangleAt(n: number, { upper, unit }: Flags): (i: number, j: number) => number {
  return (i, j) => {
    if (i === j) return unit ? Number.NaN : 2 + scattered(i, i, 1);
    return upper === i < j ? scattered(i, j, 2) / Math.sqrt(n) : Number.NaN;
  };
}

/** op(A), with the elements that it has by definition. */
function operator(n: number, flags: Flags, element: Real): Whole {
  const at = triangleAt(n, flags);
  const full = wholeFrom(
    n,
    n,
    (i, j) => {
      if (i === j && flags.unit) return 1;
      return i === j || flags.upper === i < j ? at(i, j) : 0;
    },
    element,
  );
  return flags.trans ? transposed(full) : full;
}

/** Solves and returns the number of roundings per element, divided by n. */
async function solved(
  runtime: Runtime,
  element: Real,
  flags: Flags,
  { n, m, tile }: { readonly n: number; readonly m: number; readonly tile: number },
): Promise<number> {
  const [rows, columns] = flags.right ? [m, n] : [n, m];
  const right = (i: number, j: number): number => scattered(i, j, 3);
  const a = new TiledMatrix(runtime, element, { rows: n, tile }, fillFrom(triangleAt(n, flags)));
  const b = new TiledMatrix(runtime, element, { rows, columns, tile }, fillFrom(right));
  await soon(
    runtime,
    runtime.run((graph) => triangularSolve(graph, a, b, { ...flags, alpha: -2 })),
  );
  const x = { rows, columns, values: await b.read() };
  const target = wholeFrom(rows, columns, (i, j) => -2 * right(i, j), element);
  const op = operator(n, flags, element);
  const worst = flags.right
    ? worstSolution(transposed(op), transposed(x), transposed(target))
    : worstSolution(op, x, target);
  await closeAll(runtime, a, b);
  return worst / (n * EPS[element]);
}

const ALL_FLAGS: readonly Flags[] = Array.from({ length: 16 }, (_, bits) => ({
  right: (bits & 1) !== 0,
  upper: (bits & 2) !== 0,
  trans: (bits & 4) !== 0,
  unit: (bits & 8) !== 0,
}));

describe.each(MACHINES)('on $name', ({ options }) => {
  it.each(['f64', 'f32'] as const)(
    'triangles of %s: every side, triangle and transpose',
    async (element) => {
      await onMachine(options, async (runtime) => {
        for (const flags of ALL_FLAGS) {
          const worst = await solved(runtime, element, flags, { n: 37, m: 23, tile: 10 });
          // Theorem 8.5 has 1 for substitution, and the check rounds in f64 as well.
          expect(worst, JSON.stringify(flags)).toBeLessThan(2);
        }
      });
    },
  );

  it.each([
    ['f64', 100, 40, 24],
    ['f64', 7, 3, 8],
    ['f32', 100, 7, 32],
  ] as const)(
    'Cholesky in %s of order %i solves %i right-hand sides with tiles of %i',
    async (element, n, m, tile) => {
      await onMachine(options, async (runtime) => {
        const at = (i: number, j: number): number => spd(i, j, n);
        const a = new TiledMatrix(runtime, element, { rows: n, tile, lower: true }, fillFrom(at));
        const right = (i: number, j: number): number => scattered(i, j, 4);
        const b = new TiledMatrix(runtime, element, { rows: n, columns: m, tile }, fillFrom(right));
        await soon(
          runtime,
          runtime.run((graph) => {
            cholesky(graph, a);
            choleskySolve(graph, a, b);
          }),
        );
        const x = { rows: n, columns: m, values: await b.read() };
        const worst = worstSolution(
          wholeFrom(n, n, at, element),
          x,
          wholeFrom(n, m, right, element),
        );
        // Theorem 10.4 has some 3 n + 1, of |L| |L^T|, which is |A| here but for the diagonal.
        expect(worst / (n * EPS[element])).toBeLessThan(4);
        await closeAll(runtime, a, b);
      });
    },
  );
});

describe('out of core', () => {
  const [n, m, tile] = [160, 80, 16];

  /** The bits of a factor's solution on GPUs whose memory holds so many tiles each. */
  async function bits(
    gpus: number,
    tiles: number,
  ): Promise<{ values: Float64Array; left: number }> {
    const bytes = tiles * tile * tile * 8;
    const options = { workers: 1, gpus, gpuMemory: bytes, hostMemory: '64MiB', checked: true };
    return await onMachine(options, async (runtime) => {
      const at = (i: number, j: number): number => spd(i, j, n);
      const a = new TiledMatrix(runtime, 'f64', { rows: n, tile, lower: true }, fillFrom(at));
      const right = (i: number, j: number): number => scattered(i, j, 4);
      const b = new TiledMatrix(runtime, 'f64', { rows: n, columns: m, tile }, fillFrom(right));
      const left = await evictions(runtime, (graph) => {
        cholesky(graph, a);
        choleskySolve(graph, a, b);
        triangularSolve(graph, a, b, { trans: true, alpha: 0.5 });
      });
      const values = await b.read();
      await closeAll(runtime, a, b);
      return { values, left };
    });
  }

  it.each([
    [1, 10],
    [2, 8],
    [4, 6],
  ])(
    '%i GPUs with room for %i tiles of 105 give the bits of one with room for all',
    async (gpus, tiles) => {
      const whole = await bits(1, 200);
      expect(whole.left).toBe(0);
      const parts = await bits(gpus, tiles);
      expect(parts.left).toBeGreaterThan(0);
      expect(parts.values).toEqual(whole.values);
    },
  );

  it('right-hand sides in panels read the triangle once per panel, not once per column', async () => {
    const options = { workers: 1, gpus: 1, gpuMemory: 40 * tile * tile * 8, hostMemory: '64MiB' };
    const nt = n / tile;
    await onMachine(options, async (runtime) => {
      const at = (i: number, j: number): number => spd(i, j, n);
      const a = new TiledMatrix(runtime, 'f64', { rows: n, tile, lower: true }, fillFrom(at));
      const fill = fillFrom((i, j) => scattered(i, j, 4));
      const b = new TiledMatrix(runtime, 'f64', { rows: n, columns: 12 * tile, tile }, fill);
      const { bytes } = await soon(
        runtime,
        runtime.run((graph) => triangularSolve(graph, a, b)),
      );
      // Four panels of three columns of ten tiles; the triangle has 55 tiles. Half of it again for races.
      expect(bytes.h2d / (tile * tile * 8)).toBeLessThanOrEqual((4 * 55 + 12 * nt) * 1.5);
    });
  });
});

describe('wrong matrices', () => {
  it('are named, before anything is inserted', async () => {
    await onMachine(MACHINES[0].options, async (runtime) => {
      const matrix = (
        name: string,
        rows: number,
        columns: number,
        more: object = {},
      ): TiledMatrix<'f64'> =>
        new TiledMatrix(
          runtime,
          'f64',
          { rows, columns, tile: 4, name, ...more },
          fillFrom(() => 1),
        );
      const a = matrix('A', 8, 8);
      const attempts: [(graph: Graph) => void, string][] = [
        [
          (g) => triangularSolve(g, matrix('W', 8, 6), a),
          "triangularSolve: A must be square, but 'W' is 8 x 6",
        ],
        [
          (g) => triangularSolve(g, a, matrix('B', 6, 8)),
          "the shapes of 'A' (8 x 8) and 'B' (6 x 8) do not fit",
        ],
        [
          (g) => triangularSolve(g, a, matrix('B', 8, 6), { right: true }),
          "the shapes of 'A' (8 x 8) and 'B' (8 x 6) do not fit",
        ],
        [
          (g) => choleskySolve(g, a, matrix('B', 8, 6, { tile: 3 })),
          "choleskySolve: A ('A') has tiles of 4, but B ('B') of 3",
        ],
        [
          (g) =>
            triangularSolve(g, matrix('L', 8, 8, { lower: true }), matrix('B', 8, 6), {
              upper: true,
            }),
          "A needs all of its tiles, but 'L' is a lower triangle",
        ],
      ];
      for (const [attempt, words] of attempts) {
        const run = runtime.run(attempt);
        await expect(run).rejects.toMatchObject({
          code: 'ERR_SHAPE',
          message: expect.stringContaining(words),
        });
        expect(run.progress.inserted).toBe(0);
      }
    });
  });
});
