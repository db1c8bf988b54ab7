// Norms, sums and dot products of tiled matrices: exact in integers, the same bits on every machine, and nothing lost at the ends of
// the range of numbers.
import { afterAll, describe, expect, it } from 'vitest';
import { dot, type MatrixReduction, matrixPartials, reduceMatrix } from '../../algorithms/index.js';
import { type Graph, type Runtime, TiledMatrix } from '../../index.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { fillFrom, scattered } from '../support/matrices.js';

type At = (i: number, j: number) => number;

const integer: At = (i, j) => ((i * 31 + j * 17) % 19) - 9;
const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const total = (values: number[]): number => values.reduce((sum, value) => sum + value, 0);

/** What each operation gives, by loops. */
const PLAIN: Readonly<Record<MatrixReduction, (m: number, n: number, at: At) => number>> = {
  sum: (m, n, at) => total(range(m).map((i) => total(range(n).map((j) => at(i, j))))),
  min: (m, n, at) => Math.min(...range(m).map((i) => Math.min(...range(n).map((j) => at(i, j))))),
  max: (m, n, at) => Math.max(...range(m).map((i) => Math.max(...range(n).map((j) => at(i, j))))),
  largest: (m, n, at) => PLAIN.max(m, n, (i, j) => Math.abs(at(i, j))),
  frobenius: (m, n, at) => Math.sqrt(PLAIN.sum(m, n, (i, j) => at(i, j) ** 2)),
  one: (m, n, at) =>
    Math.max(...range(n).map((j) => total(range(m).map((i) => Math.abs(at(i, j)))))),
  infinity: (m, n, at) => PLAIN.one(n, m, (i, j) => at(j, i)),
};
const OPERATIONS = Object.keys(PLAIN) as MatrixReduction[];

/** The number of a matrix. */
async function reduced(
  runtime: Runtime,
  matrix: TiledMatrix,
  operation: MatrixReduction,
): Promise<number> {
  const partials = matrixPartials(runtime, matrix, operation);
  const result = runtime.data('f64', 1, { name: operation });
  await soon(
    runtime,
    runtime.run((graph) => reduceMatrix(graph, matrix, partials, result)),
  );
  const [value] = await result.read();
  partials.close();
  result.close();
  return value;
}

const SHAPES = [
  [37, 23, 10],
  [5, 5, 8],
  [40, 1, 16],
  [3, 50, 7],
] as const;

/** Bits by operation: every machine gives the same. */
const bits: Map<string, Set<bigint>> = new Map();
const bitsOf = (value: number): bigint => new BigUint64Array(Float64Array.of(value).buffer)[0];
afterAll(() => {
  expect(bits.size).toBe(2 * (OPERATIONS.length + 1));
  for (const [name, each] of bits) expect([...each], name).toHaveLength(1);
});
const note = (name: string, value: number): void =>
  void bits.set(name, (bits.get(name) ?? new Set<bigint>()).add(bitsOf(value)));

describe.each(MACHINES)('on $name', ({ options }) => {
  it.each(SHAPES)('all operations of %i x %i integers in tiles of %i', async (m, n, tile) => {
    await onMachine(options, async (runtime) => {
      for (const element of ['f64', 'f32'] as const) {
        const shape = { rows: m, columns: n, tile };
        const a = new TiledMatrix(runtime, element, shape, fillFrom(integer));
        for (const operation of OPERATIONS) {
          const value = await reduced(runtime, a, operation);
          const wanted = PLAIN[operation](m, n, integer);
          // Sums of integers are exact; a square root of each tile, and of two of them, is not.
          if (operation !== 'frobenius') expect(value, operation).toBe(wanted);
          else expect(Math.abs(value / wanted - 1)).toBeLessThan(m * n * 2 ** -53);
        }
        a.close();
      }
      await nothingLeft(runtime, []);
    });
  });

  it('dot products of matrices, also of a matrix with itself', async () => {
    await onMachine(options, async (runtime) => {
      const shape = { rows: 37, columns: 23, tile: 10 };
      const a = new TiledMatrix(runtime, 'f64', shape, fillFrom(integer));
      const other: At = (i, j) => integer(j, i + 3);
      const b = new TiledMatrix(runtime, 'f64', shape, fillFrom(other));
      const partials = matrixPartials(runtime, a, 'dot');
      const [ab, aa] = [runtime.data('f64', 1), runtime.data('f64', 1)];
      await soon(
        runtime,
        runtime.run((graph) => {
          dot(graph, a, b, partials, ab);
          dot(graph, a, a, partials, aa);
        }),
      );
      expect((await ab.read())[0]).toBe(PLAIN.sum(37, 23, (i, j) => integer(i, j) * other(i, j)));
      expect((await aa.read())[0]).toBe(PLAIN.sum(37, 23, (i, j) => integer(i, j) ** 2));
      for (const each of [a, b, partials]) each.close();
      await nothingLeft(runtime, [ab, aa]);
    });
  });

  it('rounded sums have the bits of the other machines', async () => {
    await onMachine(options, async (runtime) => {
      for (const element of ['f64', 'f32'] as const) {
        const at: At = (i, j) => scattered(i, j, 1);
        const a = new TiledMatrix(
          runtime,
          element,
          { rows: 61, columns: 47, tile: 9 },
          fillFrom(at),
        );
        for (const operation of OPERATIONS)
          note(`${operation} ${element}`, await reduced(runtime, a, operation));
        const partials = matrixPartials(runtime, a, 'dot');
        const result = runtime.data('f64', 1);
        await soon(
          runtime,
          runtime.run((graph) => dot(graph, a as never, a as never, partials, result)),
        );
        note(`dot ${element}`, (await result.read())[0]);
        for (const each of [a, partials, result]) each.close();
      }
    });
  });
});

describe('the ends of the range', () => {
  const norm = async (operation: MatrixReduction, at: At): Promise<number> =>
    await onMachine(MACHINES[0].options, async (runtime) => {
      const a = new TiledMatrix(runtime, 'f64', { rows: 8, columns: 8, tile: 3 }, fillFrom(at));
      return await reduced(runtime, a, operation);
    });

  it.each([1e300, 1e-300])('the Frobenius norm of 64 times %f', async (size) => {
    // The sum of the squares is infinite, or 0.
    const off = (await norm('frobenius', () => size)) / (8 * size) - 1;
    expect(Math.abs(off)).toBeLessThan(64 * 2 ** -53);
  });

  it.each(OPERATIONS)('%s of a matrix with a NaN is a NaN', async (operation) => {
    expect(await norm(operation, (i, j) => (i === 4 && j === 7 ? Number.NaN : i - j))).toBeNaN();
  });

  it.each(['largest', 'frobenius', 'one', 'infinity'] as const)(
    '%s of a matrix with infinities is infinite',
    async (operation) => {
      const at: At = (i, j) => (i === 4 && j > 5 ? Number.NEGATIVE_INFINITY : i - j);
      expect(await norm(operation, at)).toBe(Number.POSITIVE_INFINITY);
    },
  );

  it('minus the largest number is the minimum', async () => {
    expect(await norm('min', () => -Number.MAX_VALUE)).toBe(-Number.MAX_VALUE);
    expect(await norm('max', () => -1)).toBe(-1);
    expect(await norm('largest', () => 0)).toBe(0);
  });
});

describe('wrong data', () => {
  it('are named, before anything is inserted', async () => {
    await onMachine(MACHINES[0].options, async (runtime) => {
      const matrix = (name: string, rows: number, tile = 4): TiledMatrix<'f64'> =>
        new TiledMatrix(runtime, 'f64', { rows, tile, name }, fillFrom(integer));
      const [a, b] = [matrix('A', 8), matrix('B', 12)];
      const [one, both] = [matrixPartials(runtime, a, 'one'), matrixPartials(runtime, a, 'dot')];
      const [result, long] = [runtime.data('f64', 1), runtime.data('f64', 2, { name: 'long' })];
      const attempts: [(graph: Graph) => void, string][] = [
        [(g) => reduceMatrix(g, b, one, result), "8 x 8 in tiles of 4, but 'B' is 12 x 12"],
        [(g) => reduceMatrix(g, matrix('C', 8, 2), one, result), "but 'C' is 8 x 8 in tiles of 2"],
        [(g) => reduceMatrix(g, a, both, result), 'the partials were made for dot'],
        [(g) => reduceMatrix(g, a, one, long), "result needs one element, but 'long' has 2"],
        [(g) => dot(g, a, a, one, result), 'the partials were made for one'],
        [(g) => dot(g, a, b, both, result), "the shapes of 'A' (8 x 8) and 'B' (12 x 12) differ"],
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
