// Memory that is on its way back: of data that were closed, and of copies whose tasks are under way. What needs it waits.
import { describe, expect, it } from 'vitest';
import { type HeadraceError, read, readWrite, task, write } from '../../index.js';
import { GPUS, HOSTS, onMachine, soon } from '../support/machines.js';

const fillBody = task({
  name: 'fill',
  flows: { x: write('f64') },
  params: { v: 'f64' },
  body: ({ x, v }) => void x.fill(v),
});
const fill = task({
  name: 'fill',
  flows: { to: write('f64') },
  params: { count: 'f64', value: 'f64' },
  kernel: 'fill_f64',
});
const add = task({
  name: 'add',
  flows: { total: readWrite('f64'), from: read('f64') },
  params: { count: 'f64', factor: 'f64' },
  kernel: 'add_f64',
});
const KIB = 128;

describe.each(HOSTS)('on $name, with 1 MiB', ({ options }) => {
  const small = { ...options, hostMemory: '1MiB' } as const;

  it('a task waits for the close of a datum that is due', async () => {
    await onMachine(small, async (runtime) => {
      const run = runtime.run((graph) => {
        for (let i = 0; i < 6; i++) {
          const datum = runtime.data('f64', 768 * KIB);
          graph.insert(fillBody, { x: datum, v: i });
          datum.close();
        }
      });
      expect((await soon(runtime, run)).tasks).toBe(6);
    });
  });

  it('a datum without tasks gives its memory to the next one', async () => {
    await onMachine(small, async (runtime) => {
      for (let i = 0; i < 20; i++) runtime.data(new Float64Array(512 * KIB)).close();
      const last = runtime.data(new Float64Array(512 * KIB).fill(3));
      expect((await last.read())[0]).toBe(3);
    });
  });

  it('a new datum waits for kernels behind which others are closed', async () => {
    await onMachine(small, async (runtime) => {
      const other = runtime.data(new Float64Array(8));
      await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 20; i++) {
            const from = runtime.data(new Float64Array(512 * KIB).fill(1));
            graph.insert(add, { total: other, from, count: 8, factor: 1 });
            from.close();
          }
        }),
      );
      expect((await other.read())[7]).toBe(20);
    });
  });

  it('memory that nothing gives back is still an error', async () => {
    await onMachine(small, async (runtime) => {
      const held = runtime.data(new Float64Array(600 * KIB));
      runtime.data(new Float64Array(8)).close();
      expect(() => runtime.data(new Float64Array(600 * KIB))).toThrow(/host memory is full/);
      const large = runtime.data('f64', 600 * KIB);
      const run = runtime.run((graph) => {
        graph.insert(fillBody, { x: large, v: 1 });
        runtime.data('f64', 8).close();
      });
      const error = await soon(runtime, run).catch((caught: HeadraceError) => caught);
      expect((error as HeadraceError).code).toBe('ERR_OUT_OF_HOST_MEMORY');
      expect((await held.read())[0]).toBe(0);
    });
  });
});

describe.each(GPUS.slice(0, 1))('on $name and a host of 1 MiB each', ({ options }) => {
  it.each([false, true])(
    'a task waits for copies that others use (the program waits: %s)',
    async (waits) => {
      await onMachine({ ...options, gpuMemory: '1MiB', hostMemory: '1MiB' }, async (runtime) => {
        const count = 384 * KIB;
        const clean = runtime.data(new Float64Array(count).fill(1));
        const rest = runtime.data(new Float64Array(600 * KIB));
        const dirty = runtime.data('f64', count);
        const wanted = runtime.data('f64', count);
        const total = runtime.data('f64', 64);
        const gpu = { device: 0 };
        await runtime.run((graph) => {
          graph.insert(fill, { to: dirty, count, value: 1 }, gpu);
          graph.insert(fill, { to: total, count: 64, value: 0 }, gpu);
        });
        const run = runtime.run(async (graph) => {
          for (let i = 0; i < 200; i++)
            graph.insert(add, { total, from: clean, count: 64, factor: 1 }, gpu);
          if (waits) await graph.value(total);
          graph.insert(fill, { to: wanted, count, value: 2 }, gpu);
        });
        expect((await soon(runtime, run)).tasks).toBe(201);
        rest.close();
        expect((await wanted.read())[count - 1]).toBe(2);
        expect((await total.read())[63]).toBe(200);
      });
    },
  );
});
