// Conjugate gradients: the solutions of a direct solve, the same bits on every machine, and typed errors for matrices that are not positive
// definite and for data that do not fit.
import { afterAll, describe, expect, it } from 'vitest';
import {
  type ConjugateGradientOptions,
  type ConjugateGradientResult,
  cholesky,
  choleskySolve,
  conjugateGradient,
  conjugateGradientData,
  type FivePoint,
} from '../../algorithms/index.js';
import { type Datum, type Graph, type Runtime, TiledMatrix } from '../../index.js';
import { GPUS, MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { fillFrom, scattered, spd } from '../support/matrices.js';

type At = (i: number, j: number) => number;
type Real = 'f64' | 'f32';

const [N, TILE] = [50, 16];
const right: At = (i) => scattered(i, 3, 1);
const dense: At = (i, j) => spd(i, j, N) / (1 + ((i + j) % 3));

const [COLUMNS, ROWS] = [9, [4, 1, 6]];
const CELLS = COLUMNS * 11;
/** The grid's matrix, element by element. */
const laplace: At = (i, j) => {
  const [a, b] = [Math.min(i, j), Math.max(i, j)];
  if (a === b) return 4;
  const beside = b === a + 1 && b % COLUMNS !== 0;
  return beside || b === a + COLUMNS ? -1 : 0;
};

/** |b - A x| / |b|. */
function residualOf(n: number, at: At, x: ArrayLike<number>): number {
  let [square, whole] = [0, 0];
  for (let i = 0; i < n; i++) {
    let sum = right(i, 0);
    for (let k = 0; k < n; k++) sum -= at(i, k) * x[k];
    square += sum ** 2;
    whole += right(i, 0) ** 2;
  }
  return Math.sqrt(square / whole);
}

/** What Cholesky's method gives. */
async function direct(runtime: Runtime, n: number, at: At): Promise<Float64Array> {
  const a = new TiledMatrix(runtime, 'f64', { rows: n, tile: TILE, lower: true }, fillFrom(at));
  const b = new TiledMatrix(runtime, 'f64', { rows: n, columns: 1, tile: TILE }, fillFrom(right));
  await runtime.run((graph) => {
    cholesky(graph, a);
    choleskySolve(graph, a, b);
  });
  const x = await b.read();
  for (const each of [a, b]) each.close();
  return x;
}

interface Solution extends ConjugateGradientResult {
  readonly x: Float64Array | Float32Array;
}

/** Solves with a matrix of tiles; `close` gives all data back. */
async function solveTiles(
  runtime: Runtime,
  options: ConjugateGradientOptions = {},
  {
    element = 'f64',
    at = dense,
    b = right,
    x: guess = () => 0,
  }: {
    element?: Real;
    at?: At;
    b?: At;
    x?: At;
  } = {},
): Promise<Solution> {
  const shape = { rows: N, tile: TILE };
  const column = { ...shape, columns: 1 };
  const A = new TiledMatrix(runtime, element, { ...shape, name: 'A' }, fillFrom(at));
  const B = new TiledMatrix(runtime, element, { ...column, name: 'B' }, fillFrom(b));
  const X = new TiledMatrix(runtime, element, { ...column, name: 'X' }, fillFrom(guess));
  const data = conjugateGradientData(runtime, A, X);
  try {
    let result: ConjugateGradientResult | undefined;
    await soon(
      runtime,
      runtime.run(async (graph) => {
        result = await conjugateGradient(graph, A, B, X, data, options);
      }),
    );
    return { ...(result as ConjugateGradientResult), x: await X.read() };
  } finally {
    for (const each of [A, B, X, data]) each.close();
  }
}

/** The blocks of a vector on the grid. */
function gridVector<E extends Real>(
  runtime: Runtime,
  element: E,
  rows: readonly number[],
  at: (i: number) => number,
): Datum<E>[] {
  let begin = 0;
  return rows.map((count, block) => {
    const first = begin;
    begin += count * COLUMNS;
    const values = Float64Array.from({ length: count * COLUMNS }, (_, i) => at(first + i));
    const device = runtime.gpus.length === 0 ? 'host' : block % runtime.gpus.length;
    const options = { name: `block ${block}`, device } as const;
    const made =
      element === 'f64'
        ? runtime.data(values, options)
        : runtime.data(Float32Array.from(values), options);
    return made as unknown as Datum<E>;
  });
}

/** Solves on the grid. */
async function solveGrid(
  runtime: Runtime,
  options: ConjugateGradientOptions = {},
  {
    element = 'f64',
    rows = ROWS,
    grid = { columns: COLUMNS },
  }: { element?: Real; rows?: readonly number[]; grid?: FivePoint } = {},
): Promise<Solution> {
  const b = gridVector(runtime, element, rows, (i) => right(i, 0));
  const x = gridVector(runtime, element, rows, () => 0);
  const gpus = runtime.gpus.length;
  const device = (block: number): number | 'host' => (gpus === 0 ? 'host' : block % gpus);
  const data = conjugateGradientData(runtime, grid, x, { device });
  try {
    let result: ConjugateGradientResult | undefined;
    await soon(
      runtime,
      runtime.run(async (graph) => {
        result = await conjugateGradient(graph, grid, b, x, data, options);
      }),
    );
    const parts = await Promise.all(x.map((block) => block.read()));
    const whole = parts.flatMap((part) => [...part]);
    return { ...(result as ConjugateGradientResult), x: Float64Array.from(whole) };
  } finally {
    for (const each of [...b, ...x, data]) each.close();
  }
}

/** Solutions by system: every machine gives the same bits. */
const bits: Map<string, Set<string>> = new Map();
function note(name: string, { x, iterations, residual }: Solution): void {
  const words = new BigUint64Array(Float64Array.from([...x, iterations, residual]).buffer);
  bits.set(name, (bits.get(name) ?? new Set<string>()).add(words.join()));
}
afterAll(() => {
  expect([...bits.keys()].sort()).toEqual(['grid f32', 'grid f64', 'tiles f32', 'tiles f64']);
  for (const [name, each] of bits) expect([...each], name).toHaveLength(1);
});

const TOLERANCE = { f64: 1e-12, f32: 1e-5 } as const;

describe.each(MACHINES)('on $name', ({ options }) => {
  it.each(['f64', 'f32'] as const)('a matrix of tiles of %s', async (element) => {
    await onMachine(options, async (runtime) => {
      const tolerance = TOLERANCE[element];
      const found = await solveTiles(runtime, { tolerance }, { element });
      expect(found.residual).toBeLessThanOrEqual(tolerance);
      expect(found.iterations).toBeGreaterThan(2);
      expect(residualOf(N, dense, found.x)).toBeLessThan(4 * tolerance);
      const wanted = await direct(runtime, N, dense);
      const largest = Math.max(...wanted.map(Math.abs));
      for (const [i, value] of wanted.entries())
        expect(Math.abs(found.x[i] - value)).toBeLessThan(20 * tolerance * largest);
      note(`tiles ${element}`, found);
      await nothingLeft(runtime, []);
    });
  });

  it.each(['f64', 'f32'] as const)('a stencil on a grid of %s', async (element) => {
    await onMachine(options, async (runtime) => {
      const tolerance = TOLERANCE[element];
      const found = await solveGrid(runtime, { tolerance }, { element });
      expect(found.residual).toBeLessThanOrEqual(tolerance);
      expect(residualOf(CELLS, laplace, found.x)).toBeLessThan(10 * tolerance);
      const wanted = await direct(runtime, CELLS, laplace);
      const largest = Math.max(...wanted.map(Math.abs));
      for (const [i, value] of wanted.entries())
        expect(Math.abs(found.x[i] - value)).toBeLessThan(100 * tolerance * largest);
      note(`grid ${element}`, found);
      await nothingLeft(runtime, []);
    });
  });
});

const HOST = MACHINES[0].options;
/** Two GPUs where there are as many. */
const TWO_GPUS = GPUS[Math.min(1, GPUS.length - 1)];

describe('the iteration', () => {
  it('gives the same with any number of iterations between two looks', async () => {
    await onMachine(HOST, async (runtime) => {
      const [one, ...others] = [
        await solveGrid(runtime, { every: 1 }),
        await solveGrid(runtime, { every: 7 }),
        await solveGrid(runtime, { every: 1000 }),
      ];
      for (const other of others) expect(other).toEqual(one);
      expect(one.iterations).toBeGreaterThan(7);
    });
  });

  it('gives the same in memory for a few tiles', async () => {
    const memory = { ...TWO_GPUS.options, gpuMemory: 6 * TILE * TILE * 8 };
    const small = await onMachine(memory, async (runtime) => {
      const found = await solveTiles(runtime, { tolerance: TOLERANCE.f64 });
      await nothingLeft(runtime, []);
      return found;
    });
    note('tiles f64', small);
  });

  it('ends at its limit with the residual that it has', async () => {
    await onMachine(HOST, async (runtime) => {
      const { iterations, residual, x } = await solveGrid(runtime, { limit: 5, every: 3 });
      expect(iterations).toBe(5);
      expect(residual).toBeGreaterThan(1e-3);
      expect(Math.abs(residualOf(CELLS, laplace, x) / residual - 1)).toBeLessThan(1e-12);
      const none = await solveGrid(runtime, { limit: 0 });
      expect(none).toMatchObject({ iterations: 0, residual: 1 });
      expect(none.x.every((value) => value === 0)).toBe(true);
    });
  });

  it('does nothing from the solution', async () => {
    await onMachine(HOST, async (runtime) => {
      // A of integers, x of integers: b - A x is exactly 0.
      const at: At = (i, j) => (i === j ? N : (i + j) % 2);
      const x: At = (i) => (i % 5) - 2;
      const b: At = (i) =>
        Array.from({ length: N }, (_, k) => at(i, k) * x(k, 0)).reduce((s, v) => s + v, 0);
      const found = await solveTiles(runtime, {}, { at, b, x });
      expect(found).toMatchObject({ iterations: 0, residual: 0 });
      expect([...found.x]).toEqual(Array.from({ length: N }, (_, i) => x(i, 0)));
      // Further iterations from an exact solution divide nothing by 0.
      const again = await solveTiles(runtime, { every: 50 }, { at, b });
      expect(again.residual).toBeLessThan(1e-10);
      for (const [i, value] of again.x.entries()) expect(value).toBeCloseTo(x(i, 0), 8);
    });
  });

  it('gives 0 for a right-hand side of zeros', async () => {
    await onMachine(HOST, async (runtime) => {
      const found = await solveTiles(runtime, {}, { b: () => 0, x: (i) => i });
      expect(found).toMatchObject({ iterations: 0, residual: 0 });
      expect(found.x.every((value) => value === 0)).toBe(true);
    });
  });

  it('goes on from a first guess', async () => {
    await onMachine(HOST, async (runtime) => {
      const cold = await solveTiles(runtime);
      const warm = await solveTiles(runtime, {}, { x: (i) => cold.x[i] + 1e-7 });
      expect(warm.iterations).toBeGreaterThan(0);
      expect(warm.iterations).toBeLessThan(cold.iterations);
      expect(warm.residual).toBeLessThanOrEqual(1e-10);
    });
  });

  it('takes one block and blocks of one row', async () => {
    await onMachine(HOST, async (runtime) => {
      for (const rows of [[11], new Array<number>(11).fill(1)]) {
        const { x } = await solveGrid(runtime, {}, { rows });
        expect(residualOf(CELLS, laplace, x)).toBeLessThan(1e-9);
      }
    });
  });
});

describe('matrices that are not positive definite', () => {
  const failure = (iteration: RegExp): object => ({
    code: 'ERR_NOT_POSITIVE_DEFINITE',
    message: expect.stringMatching(iteration),
  });

  it.each([MACHINES[0], TWO_GPUS])(
    'fail the run on $name, and the runtime stays usable',
    async ({ options }) => {
      await onMachine({ ...options, gpuMemory: '1MiB' }, async (runtime) => {
        const at: At = (i, j) => (i === 20 && j === 20 ? -500 : dense(i, j));
        await expect(solveTiles(runtime, {}, { at })).rejects.toMatchObject(
          failure(/p\^T A p is not positive in iteration \d+ \('alpha of X'\)/),
        );
        const singular = { columns: COLUMNS, centre: 0 };
        await expect(solveGrid(runtime, { every: 4 }, { grid: singular })).rejects.toMatchObject(
          failure(/in iteration \d+ \('alpha of block 0'\)/),
        );
        await expect(solveTiles(runtime, {}, { at: () => Number.NaN })).rejects.toMatchObject(
          failure(/in iteration 1 /),
        );
        expect((await solveTiles(runtime)).residual).toBeLessThanOrEqual(1e-10);
      });
    },
  );
});

describe('wrong data', () => {
  it('are named, before anything is inserted', async () => {
    await onMachine(HOST, async (runtime) => {
      const matrix = (name: string, rows: number, columns = rows, tile = 4): TiledMatrix<'f64'> =>
        new TiledMatrix(
          runtime,
          'f64',
          { rows, columns, tile, name },
          fillFrom(() => 1),
        );
      const [A, B, X] = [matrix('A', 8), matrix('B', 8, 1), matrix('X', 8, 1)];
      const data = conjugateGradientData(runtime, A, X);
      const grid = { columns: COLUMNS };
      const [b, x] = [1, 2].map(() => gridVector(runtime, 'f64', ROWS, () => 1));
      const onGrid = conjugateGradientData(runtime, grid, x);
      const cg = conjugateGradient;
      const attempts: [(graph: Graph) => Promise<unknown>, string, string][] = [
        [(g) => cg(g, matrix('R', 8, 4), B, X, data), 'ERR_SHAPE', "'R' is 8 x 4"],
        [(g) => cg(g, A, matrix('C', 8, 2), X, data), 'ERR_SHAPE', "'C' (8 x 2) do not fit"],
        [(g) => cg(g, A, matrix('C', 8, 1, 2), X, data), 'ERR_SHAPE', "B ('C') of 2"],
        [(g) => cg(g, A, X, X, data), 'ERR_DUPLICATE_DATUM', "B and X are both 'X'"],
        [(g) => cg(g, A, B, X, onGrid), 'ERR_SHAPE', 'X has blocks of 4, 4 f64, but data are for'],
        [(g) => cg(g, grid, b, x, data), 'ERR_SHAPE', 'in rows of 9, but data are for'],
        [(g) => cg(g, { columns: 5 }, b, x, onGrid), 'ERR_SHAPE', 'which are not rows of 5'],
        [(g) => cg(g, grid, b.slice(1), x, onGrid), 'ERR_SHAPE', 'the blocks of B have 9, 54'],
        [(g) => cg(g, grid, [...b.slice(1), x[0]], x, onGrid), 'ERR_DUPLICATE_DATUM', 'X[0]'],
        [(g) => cg(g, A, B, X, data, { tolerance: 0 }), 'ERR_OPTION', 'tolerance'],
        [(g) => cg(g, A, B, X, data, { every: 0 }), 'ERR_ARGUMENT_TYPE', 'every'],
      ];
      for (const [attempt, code, words] of attempts) {
        const run = runtime.run(attempt as (graph: Graph) => Promise<void>);
        await expect(run).rejects.toMatchObject({
          code,
          message: expect.stringContaining(words),
        });
        expect(run.progress.inserted).toBe(0);
      }
    });
  });
});
