// Plans that are played as one CUDA graph: the values of insertion, failures with task and iteration, data that have moved,
// and what is never captured. On the stub driver, or on real GPUs (test/support/cuda.ts).
import { describe, expect, it } from 'vitest';
import { cholesky } from '../../algorithms/index.js';
import { axpy, copy } from '../../devices/simulated/cases/plan-programs.js';
import { Random } from '../../devices/simulated/machine/random.js';
import {
  type Datum,
  type Graph,
  Runtime,
  type RuntimeOptions,
  slot,
  type TaskHandle,
  TiledMatrix,
} from '../../index.js';
import { cudaGpus } from '../support/cuda.js';
import { cuda, needing } from '../support/needs.js';

const N = 64;
/** Rows of a tile. */
const T = 16;

const open = async (options: RuntimeOptions = {}): Promise<Runtime> =>
  await Runtime.create({
    driver: 'cuda',
    gpus: 1,
    gpuMemory: '4MiB',
    hostMemory: '16MiB',
    workers: 1,
    checked: true,
    ...options,
  });

/** Sets the lower triangle to a symmetric matrix, positive definite but for the element `bad` of the diagonal. */
function set(a: TiledMatrix<'f64'>, bad = -1): void {
  const n = a.rows;
  for (let j = 0; j < n / T; j++)
    for (let i = j; i < n / T; i++) {
      const values = new Float64Array(T * T);
      for (let c = 0; c < T; c++)
        for (let r = 0; r < T; r++) {
          const [row, column] = [i * T + r, j * T + c];
          values[c * T + r] = row !== column ? 1 / Math.abs(row - column) : row === bad ? -n : n;
        }
      a.at(i, j).set(values);
    }
}

describe('conditions on data in GPU memory', needing(cuda), () => {
  it.each(['never', 'always'] as const)(
    'are looked at in every iteration; graph: %s',
    async (choice) => {
      await using runtime = await open();
      const x = runtime.data(new Float64Array(N).fill(1), { name: 'x' });
      const y = runtime.data(new Float64Array(N), { name: 'y' });
      const plan = await runtime.plan(
        (graph) => void graph.insert(axpy, { y, x, n: N, a: 1 }, { device: 0 }),
        { graph: choice },
      );
      const looks = { datum: y, below: 9.5 };
      expect((await plan.run({ while: looks })).iterations).toBe(10);
      expect(plan.report.graph).toBe(
        choice === 'always' ? 'captured' : "the plan was made with graph: 'never'",
      );
      expect(y.locations()).toEqual([expect.stringContaining('GPU 0')]);
      expect((await plan.run({ while: { ...looks, below: 19.5, every: 4 } })).iterations).toBe(12);
      expect((await plan.run({ times: 3 })).iterations).toBe(3);
      expect((await plan.run({ while: { datum: y, above: 100 }, times: 7 })).iterations).toBe(1);
      expect([...(await y.read())]).toEqual(new Array(N).fill(26));
    },
  );
});

describe('plans as CUDA graphs', needing(cuda), () => {
  const counts = cudaGpus > 1 ? [1, 2] : [1];
  it.each(counts)(
    'random programs give what insertion gives; GPUs: %i',
    async (gpus) => {
      for (let seed = 1; seed <= 12; seed++) {
        const r = new Random(seed);
        const sizes = Array.from({ length: r.between(2, 11) }, () => 64 * r.between(1, 4));
        const steps = Array.from({ length: r.between(1, 60) }, (_, i) => ({
          y: r.below(sizes.length),
          x: r.below(sizes.length - 1),
          a: (r.below(200) - 100) / 1000,
          copies: r.chance(0.25),
          after: i > 0 && r.chance(1 / 6) ? r.below(i) : undefined,
          device: (i + r.below(2)) % gpus,
        }));
        const bytes = sizes.reduce((sum, n) => sum + n * 8, 0);
        const least = 2 * Math.max(...sizes) * 8 + 1024;
        const gpuMemory = r.chance(0.5) ? 2 ** 20 : Math.max(least, Math.floor(bytes * 0.6));
        const computeStreams = r.between(1, 4);
        const [times, rounds] = [r.between(16, 20), r.between(1, 3)];
        const insert = (graph: Graph, data: readonly Datum<'f64'>[]): void => {
          const handles: TaskHandle[] = [];
          for (const { y, x: other, a, copies, after, device } of steps) {
            const x = other === y ? sizes.length - 1 : other;
            if (x === y) continue;
            const flows = { y: data[y], x: data[x] };
            const before = after === undefined ? [] : handles.slice(after, after + 1);
            const options = { device, after: before };
            const task =
              copies && sizes[x] >= sizes[y]
                ? graph.insert(copy, { ...flows, bytes: sizes[y] * 8 }, options)
                : graph.insert(axpy, { ...flows, n: Math.min(sizes[x], sizes[y]), a }, options);
            handles.push(task);
          }
        };
        const values: string[][] = [];
        for (const plays of [false, true]) {
          const runtime = await open({ gpus, computeStreams, gpuMemory });
          const data = sizes.map((n, i) =>
            runtime.data(Float64Array.from({ length: n }, (_, k) => i + 1 + k / 64)),
          );
          const plan = plays
            ? await runtime.plan((graph) => insert(graph, data), { name: 'random' })
            : undefined;
          for (let round = 0; round < rounds; round++) {
            if (plan !== undefined) await plan.run({ times });
            else for (let i = 0; i < times; i++) await runtime.run((graph) => insert(graph, data));
            // Something of the program between two plays.
            await runtime.run(
              (graph) => void graph.insert(axpy, { y: data[0], x: data[1], n: 64, a: 0.5 }),
            );
          }
          values.push(await Promise.all(data.map(async (d) => (await d.read()).join())));
          if (plan !== undefined && plan.report.tasks > 0)
            expect(plan.report.graph, `seed ${seed}`).toBe('captured');
          await runtime.close();
        }
        expect(values[1], `seed ${seed}`).toEqual(values[0]);
      }
    },
    60_000,
  );

  it.each(counts)(
    'a factorisation: the values of insertion; a failure names task and iteration; GPUs: %i',
    async (gpus) => {
      const runtime = await open({ gpus, computeStreams: 4 });
      const a = new TiledMatrix(runtime, 'f64', { rows: 80, tile: T, lower: true, name: 'A' });
      set(a);
      await runtime.run((graph) => cholesky(graph, a));
      const expected = await a.read();
      const plan = await runtime.plan((graph) => cholesky(graph, a), { name: 'factorise' });
      expect(plan.report.graph).toContain('16 iterations');
      for (let round = 0; round < 18; round++) {
        set(a);
        await plan.run();
        expect(await a.read(), `round ${round}`).toEqual(expected);
      }
      expect(plan.report.graph).toBe('captured');
      // The third tile of the diagonal fails in the first iteration.
      set(a, 40);
      const error = await plan.run({ times: 5 }).then(
        () => undefined,
        (e: unknown) => e as Error & { code: string },
      );
      expect(error?.code).toBe('ERR_NOT_POSITIVE_DEFINITE');
      expect(error?.message).toContain("in iteration 0 of plan 'factorise'");
      await expect(a.at(4, 4).read()).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
      // And the plan goes on.
      set(a);
      await plan.run();
      expect(await a.read()).toEqual(expected);
      await runtime.close();
    },
    60_000,
  );

  it.runIf(cudaGpus > 1)('a chain and a stencil over two GPUs are one graph each', async () => {
    await using runtime = await open({ gpus: 2, computeStreams: 2 });
    const [steps, times] = [12, 17];
    const columns = Array.from({ length: 8 }, (_, i) =>
      ['even', 'odd'].map((name) =>
        runtime.data(new Float64Array(N).fill(i + 1), { name: `${name} ${i}` }),
      ),
    );
    const x = runtime.data(new Float64Array(N).fill(1), { name: 'x' });
    const y = runtime.data(new Float64Array(N).fill(1), { name: 'y' });
    const chain = await runtime.plan((graph) => {
      for (let i = 0; i < steps; i++)
        graph.insert(axpy, { y: i % 2 ? x : y, x: i % 2 ? y : x, n: N, a: 1 }, { device: i % 2 });
    });
    const stencil = await runtime.plan((graph) => {
      for (let s = 0; s < steps; s++)
        columns.forEach((column, i) => {
          const device = i < 4 ? 0 : 1;
          const to = column[(s + 1) % 2];
          graph.insert(copy, { y: to, x: column[s % 2], bytes: N * 8 }, { device });
          for (const j of [i - 1, i + 1])
            if (columns[j] !== undefined)
              graph.insert(axpy, { y: to, x: columns[j][s % 2], n: N, a: 0.25 }, { device });
        });
    });
    expect(chain.report.bytes.d2d).toBe(steps * N * 8);
    expect(stencil.report.bytes.d2d).toBe(steps * 2 * N * 8);
    await Promise.all([chain.run({ times }), stencil.run({ times })]);
    const expected = { x: 1, y: 1, columns: columns.map((_, i) => i + 1) };
    const chained = (count: number): void => {
      for (let k = 0; k < count; k++)
        if (k % 2 === 0) expected.y += expected.x;
        else expected.x += expected.y;
    };
    chained(times * steps);
    for (let k = 0; k < times * steps; k++) {
      const old = expected.columns;
      expected.columns = old.map((v, i) => v + 0.25 * (old[i - 1] ?? 0) + 0.25 * (old[i + 1] ?? 0));
    }
    expect([chain.report.graph, stencil.report.graph]).toEqual(['captured', 'captured']);
    const read = async (): Promise<number[]> => [(await x.read())[0], (await y.read())[N - 1]];
    expect(await read()).toEqual([expected.x, expected.y]);
    for (const [i, column] of columns.entries())
      expect((await column[0].read())[N - 1]).toBe(expected.columns[i]);
    // Tasks on both GPUs behind the graph, and the graph behind them.
    await runtime.run((graph) => {
      for (const device of [1, 0]) graph.insert(axpy, { y, x, n: N, a: -1 }, { device });
    });
    await chain.run();
    expected.y -= expected.x;
    expected.y -= expected.x;
    chained(steps);
    expect(await read()).toEqual([expected.x, expected.y]);
  });

  it('data that lie elsewhere in a later play, and several plans at once', async () => {
    const runtime = await open();
    const x = runtime.data(new Float64Array(N).fill(1), { name: 'x' });
    const y = runtime.data(new Float64Array(N), { name: 'y' });
    const plan = await runtime.plan((graph) => void graph.insert(axpy, { y, x, n: N, a: 1 }));
    await plan.run({ times: 20 });
    expect(plan.report.graph).toBe('captured');
    // All of the GPU's memory is needed for something else, so that the data have to leave it.
    const large = Array.from({ length: 7 }, (_, i) =>
      runtime.data(new Float64Array(65536), { name: `large${i}` }),
    );
    for (let round = 0; round < 3; round++) {
      await runtime.run((graph) => {
        for (const d of large)
          graph.insert(
            axpy,
            { y: d, x: large[0] === d ? large[1] : large[0], n: 8, a: 1 },
            { device: 0 },
          );
      });
      await plan.run({ times: 20 });
    }
    const other = await runtime.plan((graph) => void graph.insert(axpy, { y, x, n: N, a: 2 }));
    await Promise.all([plan.run({ times: 16 }), other.run({ times: 16 }), plan.run({ times: 3 })]);
    expect((await y.read())[N - 1]).toBe(80 + 16 + 32 + 3);
    expect(other.report.graph).toBe('captured');
    other.close();
    plan.close();
    await runtime.run((graph) => void graph.insert(axpy, { y, x, n: N, a: 1 }));
    expect((await y.read())[0]).toBe(132);
    await runtime.close();
  }, 60_000);

  it('open parameters have the values of the capture; other values are played from lists until a capture pays', async () => {
    const runtime = await open({ computeStreams: 2 });
    const x = runtime.data(new Float64Array(N).fill(1), { name: 'x' });
    const y = runtime.data(new Float64Array(N), { name: 'y' });
    const z = runtime.data(new Float64Array(N), { name: 'z' });
    const plan = await runtime.plan((graph) => {
      graph.insert(axpy, { y, x, n: N, a: slot('alpha') }, { device: 0 });
      graph.insert(axpy, { y: z, x, n: N, a: slot('beta') }, { device: 0 });
      graph.insert(axpy, { y, x, n: N, a: slot('alpha') }, { device: 0 });
    });
    const expected = [0, 0];
    const play = async (
      times: number,
      alpha: number | ((k: number) => number),
      beta: number,
    ): Promise<string> => {
      await plan.run({ times, values: { alpha, beta } });
      for (let k = 0; k < times; k++) {
        expected[0] += 2 * (typeof alpha === 'number' ? alpha : alpha(k));
        expected[1] += beta;
      }
      expect([(await y.read())[N - 1], (await z.read())[0]]).toEqual(expected);
      return plan.report.graph;
    };
    const later = 'a graph is made once 16 iterations are played';
    expect(await play(5, 1, 2)).toBe(later);
    // Other values begin anew.
    expect(await play(12, 3, 2)).toBe(later);
    expect(await play(4, 3, 2)).toBe('captured');
    expect(await play(30, (k) => k, 2)).toBe('parameters differ between iterations: alpha, beta');
    expect(await play(1, 3, 2)).toBe('captured');
    // The graph has other values: these are played from lists, and then captured.
    expect(await play(15, 3, 5)).toBe(
      'the graph has other values; one of these is made once 16 iterations are played',
    );
    expect(await play(1, 3, 5)).toBe('captured');
    expect(await play(20, 3, 5)).toBe('captured');
    expect(await play(40, -1, 0)).toBe('captured');
    await runtime.close();
  }, 60_000);

  it('plans that are not captured say why, and play as before', async () => {
    const runtime = await open({ gpus: Math.min(2, cudaGpus) });
    const x = runtime.data(new Float64Array(N).fill(1), { name: 'x' });
    const y = runtime.data(new Float64Array(N), { name: 'y' });
    const z = runtime.data(new Float64Array(N), { name: 'z' });
    const why = async (program: Parameters<Runtime['plan']>[0]): Promise<string> => {
      const plan = await runtime.plan(program);
      await plan.run({ times: 20 });
      return plan.report.graph;
    };
    expect(
      await why((graph) => {
        graph.insert(axpy, { y, x, n: N, a: 1 }, { device: 0 });
        graph.insert(axpy, { y: z, x: y, n: N, a: 1 }, { device: 'host' });
      }),
    ).toBe('the plan uses the host as well');
    expect(
      await why((graph) => void graph.insert(axpy, { y: z, x, n: N, a: 1 }, { device: 'host' })),
    ).toBe('the plan uses the host only');
    expect((await y.read())[0]).toBe(20);
    await runtime.close();
  });
});
