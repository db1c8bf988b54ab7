// graph.value: the first element of a datum in the middle of a run.
import { describe, expect, it } from 'vitest';
import { type Datum, type Graph, Runtime, read, readWrite, task, write } from '../../index.js';

const add = task({
  name: 'add',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'i32', factor: 'f64' },
  kernel: 'add_f64',
});
const spin = task({
  name: 'spin',
  flows: { of: readWrite('f64') },
  params: { us: 'f64' },
  kernel: 'spin',
});
const fails = task({
  name: 'fails',
  flows: { to: write('f64') },
  body: () => {
    throw new Error('as asked for');
  },
});

describe('graph.value', () => {
  it.each(['host', 0] as const)('is the value in program order, on %s', async (device) => {
    await using runtime = await Runtime.create({ workers: 1, gpus: 1, gpuMemory: '1MiB' });
    const x = runtime.data(Float64Array.of(1, 5), { name: 'x' });
    const one = runtime.data(Float64Array.of(1, 1));
    const seen: number[] = [];
    const later: Promise<number>[] = [];
    const step = (graph: Graph) =>
      void graph.insert(add, { to: x, from: one, count: 2, factor: 1 }, { device });
    const report = await runtime.run(async (graph) => {
      seen.push(await graph.value(x));
      while ((seen.at(-1) as number) < 20) {
        step(graph);
        seen.push(await graph.value(x));
      }
      // Tasks inserted after the call do not change what it gives.
      for (let i = 0; i < 5; i++) {
        later.push(graph.value(x));
        step(graph);
      }
    });
    expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    expect(await Promise.all(later)).toEqual([20, 21, 22, 23, 24]);
    expect([...(await x.read())]).toEqual([25, 29]);
    expect(report.tasks).toBe(24);
  });

  it.each([
    ['f32', new Float32Array([1.5, 0])],
    ['i32', new Int32Array([-7, 0])],
    ['u32', new Uint32Array([2 ** 32 - 1, 0])],
    ['u8', new Uint8Array([255, 0])],
  ])('gives a number for elements of %s', async (_, values) => {
    await using runtime = await Runtime.create({ workers: 1 });
    const datum = runtime.data(values as Float32Array);
    await runtime.run(async (graph) => {
      expect(await graph.value(datum)).toBe(values[0]);
    });
  });

  it('does not wait for tasks that the value does not need', async () => {
    await using runtime = await Runtime.create({ workers: 2 });
    const [x, y] = [1, 2].map((n) => runtime.data(Float64Array.of(n))) as [
      Datum<'f64'>,
      Datum<'f64'>,
    ];
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const held = task({
      name: 'held',
      flows: { of: readWrite('f64') },
      body: async ({ of }) => {
        await gate;
        of[0] = 9;
      },
    });
    await runtime.run(async (graph) => {
      graph.insert(held, { of: y });
      graph.insert(spin, { of: y, us: 1 });
      // The body of `held` ends only after this value has come.
      expect(await graph.value(x)).toBe(1);
      release();
      expect(await graph.value(y)).toBe(9);
    });
  });

  it('rejects with errors that name the datum; the rest of the run is as without the call', async () => {
    await using runtime = await Runtime.create({ workers: 1 });
    await using other = await Runtime.create({ workers: 1 });
    const x = runtime.data(Float64Array.of(1), { name: 'x' });
    const empty = runtime.data('f64', 1, { name: 'empty' });
    const closed = runtime.data(Float64Array.of(1), { name: 'closed' });
    closed.close();
    const foreign = other.data(Float64Array.of(1), { name: 'foreign' });
    let kept: Graph | undefined;
    await runtime.run(async (graph) => {
      kept = graph;
      for (const [datum, code, text] of [
        [undefined, 'ERR_ARGUMENT_TYPE', 'undefined'],
        [{ row: 1, name: 'fake' }, 'ERR_ARGUMENT_TYPE', 'graph.value needs a datum'],
        [empty, 'ERR_NEVER_WRITTEN', "'empty'"],
        [closed, 'ERR_DATUM_CLOSED', "'closed'"],
        [foreign, 'ERR_FOREIGN_DATUM', "'foreign'"],
      ] as const) {
        await expect(graph.value(datum as never), text).rejects.toMatchObject({
          code,
          message: expect.stringContaining(text),
        });
      }
      graph.insert(spin, { of: x, us: 1 });
      expect(await graph.value(x)).toBe(1);
    });
    await expect(kept?.value(x)).rejects.toMatchObject({ code: 'ERR_RUN_OVER' });
    let thrown: unknown;
    const run = runtime.run(async (graph) => {
      graph.insert(fails, { to: x });
      await graph.value(x).catch((error: unknown) => {
        thrown = error;
      });
    });
    await expect(run).rejects.toMatchObject({ code: 'ERR_TASK_FAILED' });
    expect(thrown).toBe(await run.done.catch((error: unknown) => error));
  });

  it('rejects with the error of its own run only: a datum that another run poisoned is named', async () => {
    await using runtime = await Runtime.create({ workers: 1 });
    const x = runtime.data(Float64Array.of(1), { name: 'x' });
    await expect(runtime.run((graph) => void graph.insert(fails, { to: x }))).rejects.toMatchObject(
      { code: 'ERR_TASK_FAILED' },
    );
    const poisoned = { code: 'ERR_DATUM_POISONED', message: expect.stringContaining("'x'") };
    await runtime.run(async (graph) => {
      await expect(graph.value(x)).rejects.toMatchObject(poisoned);
    });
  });

  it('rejects with the AbortError of a run that is aborted', async () => {
    await using runtime = await Runtime.create({ workers: 1 });
    const x = runtime.data(Float64Array.of(1), { name: 'x' });
    const controller = new AbortController();
    let thrown: unknown;
    const run = runtime.run(
      async (graph) => {
        for (let i = 0; i < 50; i++) graph.insert(spin, { of: x, us: 100 });
        controller.abort();
        await graph.value(x).catch((error: unknown) => {
          thrown = error;
        });
      },
      { signal: controller.signal },
    );
    await expect(run).rejects.toMatchObject({ name: 'AbortError' });
    expect(thrown).toMatchObject({ name: 'AbortError' });
  });

  it('rejects in a body that writes the datum, and in the program of a plan', async () => {
    await using runtime = await Runtime.create({ workers: 1 });
    const x = runtime.data(Float64Array.of(1), { name: 'x' });
    await runtime.run((graph) => {
      const waits = task({
        name: 'waits',
        flows: { of: readWrite('f64') },
        body: async () => {
          await expect(graph.value(x)).rejects.toMatchObject({
            code: 'ERR_AWAITS_ITSELF',
            message: expect.stringMatching(
              /calls graph\.value\(\) of datum 'x', .* \(.* call read\(\) after the run\)$/,
            ),
          });
        },
      });
      graph.insert(waits, { of: x });
    });
    await runtime.plan(async (graph) => {
      graph.insert(spin, { of: x, us: 1 });
      await expect(graph.value(x)).rejects.toMatchObject({
        code: 'ERR_PLAN_VALUE',
        message: expect.stringContaining("'x'"),
      });
    });
  });
});
