// Placement, seen from outside: the device that ran a task owns the data that the task wrote.

import { describe, expect, it } from 'vitest';
import { type Datum, type Runtime, read, readWrite, task, write } from '../../index.js';
import { queueId } from '../support/handles.js';
import { nothingLeft, onMachine, soon } from '../support/machines.js';

const COUNT = 64;
const options = {
  gpus: 3,
  workers: 1,
  gpuMemory: 8 * 512,
  hostMemory: '16MiB',
  checked: true,
} as const;

const make = task({ name: 'make', flows: { to: write('f64') }, kernel: 'empty' });
const change = task({ name: 'change', flows: { of: readWrite('f64') }, kernel: 'empty' });
const gather = task({
  name: 'gather',
  flows: { to: write('f64'), a: read('f64'), b: read('f64'), c: read('f64') },
  kernel: 'empty',
});
const onHost = task({
  name: 'on host',
  flows: { to: write('f64') },
  kernel: 'empty',
  gpuKernel: false,
});
const onGpu = task({
  name: 'on gpu',
  flows: { to: write('f64') },
  body: () => {},
  gpuKernel: 'empty',
});
const scriptOnly = task({ name: 'script', flows: { to: write('f64') }, body: () => {} });

const owner = (runtime: Runtime, datum: Datum): number =>
  ['host', ...runtime.gpus].indexOf(datum.locations()[0]) - 1;

async function placed(
  program: (runtime: Runtime, data: Datum<'f64'>[]) => Promise<void>,
): Promise<void> {
  await onMachine(options, async (runtime) => {
    const data = Array.from({ length: 8 }, (_, i) => runtime.data('f64', COUNT, { name: `d${i}` }));
    await program(runtime, data);
    await nothingLeft(runtime, data);
  });
}

describe('a task runs', () => {
  it('on the device the program names, whatever else speaks for another', async () => {
    await placed(async (runtime, [d]) => {
      d.advise(0);
      for (const device of [2, 'host', 1, 0] as const) {
        await soon(
          runtime,
          runtime.run((graph) => void graph.insert(make, { to: d }, { device })),
        );
        expect(owner(runtime, d)).toBe(device === 'host' ? -1 : device);
        await soon(
          runtime,
          runtime.run((graph) => void graph.insert(change, { of: d }, { device })),
        );
        expect(owner(runtime, d)).toBe(device === 'host' ? -1 : device);
      }
    });
  });

  it('else where the first datum it writes was advised to live', async () => {
    await placed(async (runtime, [d, e]) => {
      d.advise(2);
      e.advise(1);
      await soon(
        runtime,
        runtime.run((graph) => {
          graph.insert(make, { to: d });
          graph.insert(make, { to: e });
        }),
      );
      expect([owner(runtime, d), owner(runtime, e)]).toEqual([2, 1]);
      d.advise('host');
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(change, { of: d })),
      );
      // No advice for a GPU any more: it stays where it is owned.
      expect(owner(runtime, d)).toBe(2);
    });
  });

  it('else where the first datum it writes is owned now', async () => {
    await placed(async (runtime, [d, a, b, c]) => {
      await soon(
        runtime,
        runtime.run((graph) => {
          graph.insert(make, { to: d }, { device: 1 });
          for (const to of [a, b, c]) graph.insert(make, { to }, { device: 2 });
        }),
      );
      // The inputs are elsewhere, all three of them.
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(gather, { to: d, a, b, c })),
      );
      expect(owner(runtime, d)).toBe(1);
    });
  });

  it('else where most bytes of its inputs are', async () => {
    await placed(async (runtime, [to, a, b, c]) => {
      await soon(
        runtime,
        runtime.run((graph) => {
          graph.insert(make, { to: a }, { device: 0 });
          graph.insert(make, { to: b }, { device: 2 });
          graph.insert(make, { to: c }, { device: 2 });
        }),
      );
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(gather, { to, a, b, c })),
      );
      expect(owner(runtime, to)).toBe(2);
    });
  });

  it('else on the least loaded device', async () => {
    await placed(async (runtime, data) => {
      await soon(
        runtime,
        runtime.run((graph) => {
          for (const to of data.slice(0, 6)) graph.insert(make, { to });
        }),
      );
      const where = data.slice(0, 6).map((d) => owner(runtime, d));
      expect([0, 1, 2].map((g) => where.filter((w) => w === g).length)).toEqual([2, 2, 2]);
    });
  });

  it('only where its class has a body', async () => {
    await placed(async (runtime, [a, b, c]) => {
      for (const d of [a, b, c]) d.advise(1);
      await soon(
        runtime,
        runtime.run((graph) => {
          graph.insert(onHost, { to: a });
          graph.insert(onGpu, { to: b });
          graph.insert(scriptOnly, { to: c });
        }),
      );
      expect([a, b, c].map((d) => owner(runtime, d))).toEqual([-1, 1, -1]);
    });
  });

  it('on the host by name, although only GPUs come to mind for it', async () => {
    await placed(async (runtime, [a]) => {
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(onGpu, { to: a }, { device: 'host' })),
      );
      expect(owner(runtime, a)).toBe(-1);
    });
  });
});

describe('several workers', () => {
  it('share the tasks of a graph that is wide enough', async () => {
    await onMachine({ workers: 2, hostMemory: '16MiB', checked: true }, async (runtime) => {
      const spin = task({
        name: 'spin',
        flows: { of: readWrite('f64') },
        params: { us: 'f64' },
        kernel: 'spin',
      });
      const data = Array.from({ length: 16 }, () => runtime.data(new Float64Array(COUNT)));
      const { backend } = runtime.engine;
      const before = [0, 1].map((q) => backend.busy(queueId(q)));
      const report = await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 20; i++) for (const of of data) graph.insert(spin, { of, us: 100 });
        }),
      );
      expect(report.tasks).toBe(320);
      // 32 ms of work: neither worker did less than a tenth of it.
      for (const q of [0, 1]) expect(backend.busy(queueId(q)) - before[q]).toBeGreaterThan(3.2e6);
      await nothingLeft(runtime, data);
    });
  });
});
