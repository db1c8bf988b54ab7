// Parameterised algorithms have the bits of the inserted ones: on hosts, emulated GPUs, in little memory, and as plans.
import { describe, expect, it } from 'vitest';
import {
  broadcastGraph,
  cholesky,
  choleskyGraph,
  gemm,
  gemmGraph,
  luGraph,
  redistribute,
  redistributeGraph,
  reduce,
  reduceGraph,
  reducePartials,
  stencil,
  stencil2dGraph,
  stencilGraph,
  tile,
  triangularSolve,
  triangularSolveGraph,
} from '../../algorithms/index.js';
import { luClasses } from '../../algorithms/lu-classes.js';
import { type Graph, type Runtime, TiledMatrix, type TiledMatrixOptions } from '../../index.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { random } from '../support/tasks.js';

/** A matrix of random elements with `n` more on the diagonal. */
function matrix(
  runtime: Runtime,
  options: TiledMatrixOptions,
  seed: number,
  element: 'f64' | 'f32' = 'f64',
): TiledMatrix {
  return new TiledMatrix<'f64' | 'f32'>(runtime, element, options, (values, row, column, rows) => {
    for (let at = 0; at < values.length; at++) {
      const [i, j] = [row + (at % rows), column + Math.floor(at / rows)];
      const symmetric = random(seed + Math.max(i, j) * 1000 + Math.min(i, j))();
      values[at] = symmetric + (i === j ? options.rows : 0);
    }
  });
}

/** The loops of LU without pivoting, one task after the other. */
function insertLu(graph: Graph, A: TiledMatrix): void {
  const nt = A.tileRows;
  for (let k = 0; k < nt; k++) {
    const a = A.at(k, k);
    graph.insert(luClasses(A.element).unpivoted, { a, n: a.rows, lda: a.rows });
    for (let j = k + 1; j < nt; j++) tile.trsm(graph, a, A.at(k, j), { unit: true });
    for (let i = k + 1; i < nt; i++) tile.trsm(graph, a, A.at(i, k), { right: true, upper: true });
    for (let i = k + 1; i < nt; i++)
      for (let j = k + 1; j < nt; j++)
        tile.gemm(graph, A.at(i, k), A.at(k, j), A.at(i, j), { alpha: -1 });
  }
}

/** The largest element of L U - A, by triple loops. */
function luResidual(n: number, factors: ArrayLike<number>, a: ArrayLike<number>): number {
  let worst = 0;
  for (let j = 0; j < n; j++)
    for (let i = 0; i < n; i++) {
      let sum = i <= j ? factors[j * n + i] : 0;
      for (let k = 0; k < Math.min(i, j + 1); k++) sum += factors[k * n + i] * factors[j * n + k];
      worst = Math.max(worst, Math.abs(sum - a[j * n + i]));
    }
  return worst;
}

const WEIGHTS = { middle: 0.4, up: 0.3, down: -0.2, left: 0.7, right: 0.1 };

/** The five-point stencil by loops over the whole matrix. */
function serial2d(u: Float64Array, m: number, n: number, steps: number, edge: number): number[] {
  const { middle, up, down, left, right } = WEIGHTS;
  let from = [...u];
  for (let t = 0; t < steps; t++) {
    const old = from;
    const at = (r: number, c: number): number =>
      r < 0 || r >= m || c < 0 || c >= n ? edge : old[c * m + r];
    from = old.map((value, i) => {
      const [r, c] = [i % m, Math.floor(i / m)];
      let sum = middle * value + up * at(r - 1, c);
      sum += down * at(r + 1, c);
      sum += left * at(r, c - 1);
      return sum + right * at(r, c + 1);
    });
  }
  return from;
}

describe.each(MACHINES)('on $name', ({ options, gpus }) => {
  it.each(['f64', 'f32'] as const)('cholesky of %s', async (element) => {
    await onMachine({ ...options, gpuMemory: 24_576 }, async (runtime) => {
      const shape = { rows: 90, tile: 16, lower: true };
      const [a, b] = [0, 1].map(() => matrix(runtime, shape, 1, element));
      const one = await soon(
        runtime,
        runtime.run((graph) => cholesky(graph, a, { tilesPerGpu: 100 })),
      );
      const other = await soon(runtime, runtime.run(choleskyGraph, { A: b }));
      expect(other.tasks).toBe(one.tasks);
      expect(await b.read()).toEqual(await a.read());
      await nothingLeft(runtime, [...a, ...b]);
    });
  });

  it('gemm', async () => {
    await onMachine({ ...options, gpuMemory: 24_576 }, async (runtime) => {
      const a = matrix(runtime, { rows: 50, columns: 70, tile: 16 }, 2);
      const b = matrix(runtime, { rows: 70, columns: 40, tile: 16 }, 3);
      const [c, d] = [0, 1].map(
        () => new TiledMatrix(runtime, 'f64', { rows: 50, columns: 40, tile: 16 }),
      );
      await soon(
        runtime,
        runtime.run((graph) => gemm(graph, a, b, c)),
      );
      await soon(runtime, runtime.run(gemmGraph, { A: a, B: b, C: d }));
      expect(await d.read()).toEqual(await c.read());
      await nothingLeft(runtime, [...a, ...b, ...c, ...d]);
    });
  });

  it('triangular solve', async () => {
    await onMachine({ ...options, gpuMemory: 24_576 }, async (runtime) => {
      const a = matrix(runtime, { rows: 70, tile: 16 }, 4);
      const [b, c] = [0, 1].map(() => matrix(runtime, { rows: 70, columns: 40, tile: 16 }, 5));
      await soon(
        runtime,
        runtime.run((graph) => triangularSolve(graph, a, b)),
      );
      await soon(runtime, runtime.run(triangularSolveGraph, { A: a, B: c }));
      expect(await c.read()).toEqual(await b.read());
      await nothingLeft(runtime, [...a, ...b, ...c]);
    });
  });

  it.each([1, 2, 3, 20])('stencil of %i steps', async (steps) => {
    await onMachine(options, async (runtime) => {
      const next = random(6);
      const place = (b: number) => (gpus > 0 ? { device: b % gpus } : {});
      const make = () => {
        const values = random(7);
        const lengths = [8, 3, 11, 5];
        return {
          blocks: lengths.map((n, b) =>
            runtime.data(Float64Array.from({ length: n }, values), place(b)),
          ),
          scratch: lengths.map((n, b) => runtime.data('f64', n, place(b))),
          weights: w,
          beyond,
        };
      };
      const w = runtime.data(Float64Array.from({ length: 5 }, next));
      const beyond = runtime.data(new Float64Array(2));
      const [one, other] = [make(), make()];
      await soon(
        runtime,
        runtime.run((graph) => void stencil(graph, one, steps)),
      );
      await soon(runtime, runtime.run(stencilGraph, { ...other, steps }));
      const read = async (data: typeof one) =>
        await Promise.all((steps % 2 === 0 ? data.blocks : data.scratch).map((d) => d.read()));
      expect(await read(other)).toEqual(await read(one));
      const data = [one, other].flatMap(({ blocks, scratch }) => [...blocks, ...scratch]);
      await nothingLeft(runtime, [...data, w, beyond]);
    });
  });

  it.each([2, 3, 5, 8, 13])('reduction of %i data', async (count) => {
    await onMachine(options, async (runtime) => {
      const next = random(count);
      const inputs = Array.from({ length: count }, () =>
        runtime.data(Float64Array.from({ length: 6 }, () => next() * 10 ** (next() * 20))),
      );
      const [one, other] = [runtime.data('f64', 6), runtime.data('f64', 6)];
      const partials = reducePartials(runtime, inputs);
      await soon(
        runtime,
        runtime.run((graph) => reduce(graph, { inputs, partials, result: one }, 'sum')),
      );
      await soon(runtime, runtime.run(reduceGraph, { inputs, result: other, operation: 'sum' }));
      expect(await other.read()).toEqual(await one.read());
      // The graph has freed its temporaries.
      await nothingLeft(runtime, [...inputs, ...partials, one, other]);
    });
  });

  it('cholesky as a plan', async () => {
    await onMachine(options, async (runtime) => {
      const shape = { rows: 60, tile: 16, lower: true };
      const [a, b] = [0, 1].map(() => matrix(runtime, shape, 8));
      await soon(
        runtime,
        runtime.run((graph) => cholesky(graph, a)),
      );
      const plan = await soon(runtime, runtime.plan(choleskyGraph, { A: b }));
      await soon(runtime, plan.run());
      expect(await b.read()).toEqual(await a.read());
      plan.close();
      await nothingLeft(runtime, [...a, ...b]);
    });
  });

  it.each([
    ['f64', 90, 16],
    ['f32', 90, 16],
    ['f64', 150, 70],
  ] as const)('lu without pivoting of %s, %i x %i', async (element, n, size) => {
    const gpuMemory = 3 * (size * size * 8 + 256);
    await onMachine({ ...options, gpuMemory }, async (runtime) => {
      const shape = { rows: n, tile: size };
      const [a, b, c] = [0, 1, 2].map(() => matrix(runtime, shape, 11, element));
      await soon(
        runtime,
        runtime.run((graph) => insertLu(graph, a)),
      );
      const { tasks } = await soon(runtime, runtime.run(luGraph, { A: b }));
      const nt = a.tileRows;
      expect(tasks).toBe((nt * (nt + 1) * (2 * nt + 1)) / 6);
      const factors = await b.read();
      expect(factors).toEqual(await a.read());
      const epsilon = element === 'f64' ? 2 ** -52 : 2 ** -23;
      expect(luResidual(n, factors, await c.read())).toBeLessThan(n * n * epsilon);
      await nothingLeft(runtime, [...a, ...b, ...c]);
    });
  });

  it.each([1, 2, 3, 8])('stencil in two dimensions, %i steps', async (steps) => {
    await onMachine({ ...options, gpuMemory: 12_288 }, async (runtime) => {
      const [m, n] = [23, 30];
      const U = matrix(runtime, { rows: m, columns: n, tile: 8 }, 12);
      const V = new TiledMatrix(runtime, 'f64', { rows: m, columns: n, tile: 8 });
      const beyond = runtime.data(new Float64Array(8).fill(0.5));
      const start = (await U.read()) as Float64Array;
      const given = { U: U as TiledMatrix<'f64'>, V, weights: WEIGHTS, beyond, steps };
      await soon(runtime, runtime.run(stencil2dGraph, given));
      const result = await (steps % 2 === 0 ? U : V).read();
      expect([...result]).toEqual(serial2d(start, m, n, steps, 0.5));
      await nothingLeft(runtime, [...U, ...V, beyond]);
    });
  });

  it.each([
    [1, 2],
    [2, 2],
    [9, 1],
    [14, 2],
    [14, 3],
    [5, 7],
  ])('broadcast to %i data, arity %i', async (count, arity) => {
    await onMachine({ ...options, gpuMemory: 4096 }, async (runtime) => {
      const source = runtime.data(Float32Array.from({ length: 200 }, random(13)), { rows: 10 });
      const results = Array.from({ length: count }, () => runtime.data('f32', 200, { rows: 10 }));
      const { tasks } = await soon(
        runtime,
        runtime.run(broadcastGraph, { source, results, arity }),
      );
      expect(tasks).toBe(count);
      const value = await source.read();
      for (const result of results) expect(await result.read()).toEqual(value);
      await nothingLeft(runtime, [source, ...results]);
    });
  });

  it.each([
    [16, 11],
    [7, 20],
    [12, 12],
    [64, 9],
  ])('redistribution from tiles of %i to tiles of %i', async (from, to) => {
    await onMachine(options, async (runtime) => {
      const shape = { rows: 61, columns: 47 };
      const zero = (values: Float64Array | Float32Array): unknown => values.fill(0);
      const a = matrix(runtime, { ...shape, tile: from }, 14);
      const [b, c] = [0, 1].map(
        () => new TiledMatrix<'f64' | 'f32'>(runtime, 'f64', { ...shape, tile: to }, zero as never),
      );
      const one = await soon(
        runtime,
        runtime.run((graph) => redistribute(graph, a, b)),
      );
      const other = await soon(runtime, runtime.run(redistributeGraph, { A: a, B: c }));
      expect(other.tasks).toBe(one.tasks);
      expect(await c.read()).toEqual(await a.read());
      expect(await b.read()).toEqual(await a.read());
      await nothingLeft(runtime, [...a, ...b, ...c]);
    });
  });
});

it('verify finds nothing wrong with them', async () => {
  await onMachine({ workers: 1 }, async (runtime) => {
    const make = (rows: number, columns: number, size: number) =>
      new TiledMatrix(runtime, 'f64', { rows, columns, tile: size });
    const right = (tasks: number) => ({ tasks, problems: [] });
    for (const n of [1, 2, 5]) {
      const square = () => make(4 * n - 1, 4 * n - 1, 4);
      const data = Array.from({ length: n + 1 }, () => runtime.data('f64', 8));
      const [source, ...results] = data;
      const plane = { U: square(), V: square(), weights: WEIGHTS, beyond: source, steps: n };
      expect(luGraph.verify({ A: square() })).toEqual(right((n * (n + 1) * (2 * n + 1)) / 6));
      expect(stencil2dGraph.verify(plane)).toEqual(right(n ** 3));
      expect(broadcastGraph.verify({ source, results })).toEqual(right(n));
      const [A, B] = [make(13, 9, n + 1), make(13, 9, 4)];
      expect(redistributeGraph.verify({ A, B }).problems).toEqual([]);
    }
  });
});

it('a pivot of 0 in LU names the tile', async () => {
  await onMachine({ workers: 1 }, async (runtime) => {
    const A = new TiledMatrix(runtime, 'f64', { rows: 6, tile: 3, name: 'A' }, (v, row, column) =>
      v.set(row === column ? [1, 0, 0, 0, 1, 1, 0, 1, 1] : new Float64Array(9)),
    );
    const error = await runtime.run(luGraph, { A }).done.catch((e) => e);
    expect(error).toMatchObject({ code: 'ERR_SINGULAR' });
    expect(error.message).toMatch(/pivot 3 of tile .*A\(0, 0\)/);
  });
});

it('arguments that do not fit are refused', async () => {
  await onMachine({ workers: 1 }, async (runtime) => {
    const make = (rows: number, columns: number, lower = false) =>
      new TiledMatrix(runtime, 'f64', { rows, columns, tile: 4, lower });
    const [A, B] = [make(8, 8), make(8, 6)];
    const code = (run: () => unknown): string => {
      try {
        run();
      } catch (error) {
        return (error as { code: string }).code;
      }
      return '';
    };
    const [short] = [runtime.data('f64', 3)];
    const plane = { U: A, V: make(8, 8), weights: WEIGHTS, beyond: short, steps: 1 };
    expect(code(() => luGraph.verify({ A: B }))).toBe('ERR_SHAPE');
    expect(code(() => luGraph.verify({ A: make(8, 8, true) }))).toBe('ERR_SHAPE');
    expect(code(() => redistributeGraph.verify({ A, B }))).toBe('ERR_SIZE_MISMATCH');
    expect(code(() => redistributeGraph.verify({ A, B: A }))).toBe('ERR_DUPLICATE_DATUM');
    expect(code(() => stencil2dGraph.verify(plane))).toBe('ERR_SHAPE');
    expect(code(() => stencil2dGraph.verify({ ...plane, V: A }))).toBe('ERR_DUPLICATE_DATUM');
    expect(code(() => stencil2dGraph.verify({ ...plane, V: B }))).toBe('ERR_SHAPE');
    expect(code(() => broadcastGraph.verify({ source: short, results: [] }))).toBe('ERR_SHAPE');
    expect(code(() => broadcastGraph.verify({ source: short, results: [short], arity: 0 }))).toBe(
      'ERR_ARGUMENT_TYPE',
    );
  });
});
