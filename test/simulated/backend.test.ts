// The simulated backend as a backend: real bytes give the results of the native one, virtual time adds up, machines
// are checked, and predictions have the promised keys.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { cholesky, choleskyFlops } from '../../algorithms/cholesky.js';
import { runSimulateCommand } from '../../cli/simulate.js';
import { predict } from '../../cli/simulation/predict.js';
import type { Program } from '../../cli/simulation/programs.js';
import { SimulatedBackend, type SimulatedKernel } from '../../devices/simulated/machine/backend.js';
import { compileTime } from '../../devices/simulated/machine/kernel-times.js';
import { checkMachine } from '../../devices/simulated/machine/machine.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { Random } from '../../devices/simulated/machine/random.js';
import { Runtime, read, readWrite, task, write } from '../../index.js';
import { testContext } from '../cli/context.js';

const doubles = (memory: Uint8Array, offset: number, n: number): Float64Array =>
  new Float64Array(memory.buffer, memory.byteOffset + offset, n);

const kernels: Readonly<Record<string, SimulatedKernel>> = {
  fill_f64: ({ memory, flows, params }) => {
    doubles(memory, flows[0], params[0]).fill(params[1]);
    return 0;
  },
  add_f64: ({ memory, flows, params }) => {
    const from = doubles(memory, flows[1], params[0]);
    doubles(memory, flows[0], params[0]).forEach((value, i, to) => {
      to[i] = value + params[1] * from[i];
    });
    return 0;
  },
};

const fill = task({
  name: 'fill',
  flows: { to: write('f64') },
  params: { n: 'f64', value: 'f64' },
  kernel: 'fill_f64',
});
const add = task({
  name: 'add',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { n: 'f64', factor: 'f64' },
  kernel: 'add_f64',
});

/** A program of 400 tasks over 12 data in device memory for 5; the values of all data at its end. */
async function results(runtime: Runtime): Promise<number[][]> {
  const r = new Random(7);
  const n = 64;
  const data = Array.from({ length: 12 }, (_, i) => runtime.data(new Float64Array(n).fill(i)));
  await runtime.run((graph) => {
    for (let i = 0; i < 400; i++) {
      const to = data[r.below(12)];
      const from = data[r.below(12)];
      if (to === from) graph.insert(fill, { to, n, value: r.below(10) });
      else graph.insert(add, { to, from, n, factor: r.pick([1, -1]) });
    }
  });
  const values: number[][] = [];
  for (const datum of data) values.push(Array.from(await datum.read()));
  await runtime.close();
  return values;
}

test('a program gives the same results as on native emulated GPUs', async () => {
  const native = await Runtime.create({ gpus: 2, gpuMemory: 5 * 512, workers: 1, checked: true });
  const machine = { ...presets['h200-2'], gpuMemory: 5 * 512, hostMemory: 2 ** 16 };
  const simulated = Runtime.over(new SimulatedBackend({ machine, kernels }), { checked: true });
  expect(await results(simulated)).toEqual(await results(native));
});

test.each([
  { ranks: 1, gpus: 30 },
  { ranks: 2, gpus: 15 },
  { ranks: 2, gpus: 30 },
])('$ranks ranks of $gpus GPUs, more queues than a short ring has records', async (size) => {
  let out = '';
  const context = { ...testContext(), stdout: { write: (s: string) => (out += s) } };
  const flags = ['--ranks', `${size.ranks}`, '--gpus', `${size.gpus}`, '--n', '4096', '--json'];
  expect(await runSimulateCommand(['cholesky', ...flags], context)).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ ok: true, tasks: 4 });
});

test('ranks that wait for a lost rank get an error instead of hanging', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-'));
  const program: Program = {
    matrices: ['A'],
    lower: true,
    layout: () => ({ rows: 4096, tile: 1024, columns: 4096 }),
    flops: ({ rows }) => choleskyFlops(rows),
    tasks: () => 20,
    insert: (graph, [a]) => {
      // Tile (1, 1) is the second rank's.
      const { backend } = (
        a.at(1, 1) as unknown as { owner: { engine: { backend: SimulatedBackend } } }
      ).owner.engine;
      for (const other of (backend.world as unknown as { inhabitants: SimulatedBackend[] })
        .inhabitants)
        if (other !== backend) other.die();
      cholesky(graph, a);
    },
  };
  const traceOf = (rank: number) => path.join(folder, `${rank}.hrtrace`);
  const layout = { rows: 4096, columns: 4096, tile: 1024 };
  const run = predict(program, presets['h200-1'], { ranks: 2, layout, steps: 1, traceOf });
  await expect(run).rejects.toMatchObject({
    code: 'ERR_STALLED',
    message: expect.stringMatching(/rank 0:[\s\S]*rank 1:[\s\S]*A\(/),
  });
  rmSync(folder, { recursive: true });
});

test('virtual time is that of the machine: copies and kernels add up', async () => {
  const machine = {
    ...presets['h200-1'],
    engine: { command: 0, wake: 0, launch: 0 },
    h2d: { bandwidth: 1e9, latency: 1e-3 },
    kernels: { add_f64: 2e-3, fill_f64: 1e-3 },
  };
  const runtime = Runtime.over(new SimulatedBackend({ machine }), {});
  const datum = runtime.data('f64', 125_000);
  const other = runtime.data(new Float64Array(125_000));
  const report = await runtime.run((graph) => {
    graph.insert(fill, { to: datum, n: 1, value: 1 });
    graph.insert(add, { to: datum, from: other, n: 1, factor: 1 });
  });
  // 1 MB takes 1 ms of latency and 1 ms of transfer while fill runs for 1 ms; then add runs for 2 ms.
  expect(report.seconds).toBeCloseTo(4e-3, 5);
  expect(report.bytes.h2d).toBe(1_000_000);
  await runtime.close();
});

test('kernel times come from constants, work over rates, and tables', () => {
  const args = [9, 9, 1000, 1000, 1000];
  expect(compileTime(0.5, 'k')(args, 2, 3)).toBe(0.5);
  const gemm = compileTime(
    {
      product: [0, 1, 2],
      factor: 2,
      rate: [
        [500, 1e9],
        [1500, 3e9],
      ],
    },
    'k',
  );
  expect(gemm(args, 2, 3)).toBeCloseTo(1, 9);
  expect(
    compileTime(
      {
        table: [
          [0, 1],
          [2000, 3],
        ],
      },
      'k',
    )(args, 2, 3),
  ).toBeCloseTo(2, 9);
});

test('a wrong machine description is refused with the place of the mistake', () => {
  const good = JSON.parse(JSON.stringify(presets['h200-2'])) as Record<string, unknown>;
  expect(() => checkMachine(good)).not.toThrow();
  expect(() => checkMachine({ ...good, h2d: { bandwidth: 0, latency: 0 } })).toThrow(
    'h2d.bandwidth',
  );
  expect(() => checkMachine({ ...good, hostCopies: { read: 1, write: 0 } })).toThrow(
    'hostCopies.write',
  );
  expect(() => checkMachine({ ...good, hostCopies: 1 })).toThrow('hostCopies');
  expect(() => checkMachine({ ...good, bothWays: 0 })).toThrow('bothWays');
  expect(() => checkMachine({ ...good, gpus: 1.5 })).toThrow('gpus');
  expect(() => checkMachine({ ...good, kernels: { k: { table: [] } } })).toThrow("kernel 'k'");
  for (const share of [-1, 1.5, 'all'])
    expect(() => checkMachine({ ...good, kernels: { k: { table: [[1, 1]], share } } })).toThrow(
      "kernel 'k': `share`",
    );
});

test('several ranks are simulated in one world: all tasks, bytes by kind, and the wire is used', async () => {
  let out = '';
  const context = { ...testContext(), stdout: { write: (s: string) => (out += s) } };
  const flags = '--machine h200-2 --ranks 4 --n 16384 --tile 1024 --json'.split(' ');
  expect(await runSimulateCommand(['cholesky', ...flags], context)).toBe(0);
  const result = JSON.parse(out) as Record<string, number> & { bytes: Record<string, number> };
  expect(result['tasks']).toBe(816);
  expect(result['makespanSeconds']).toBeGreaterThan(result['criticalPathSeconds']);
  expect(result['makespanSeconds']).toBeGreaterThan(result['areaSeconds']);
  // Each of the 120 tiles of the panels is read on several of the 2 x 2 ranks.
  expect(result.bytes['direct']).toBeGreaterThan(120 * 8 * 1024 * 1024);
  const twice = out;
  out = '';
  await runSimulateCommand(['cholesky', ...flags], context);
  const { eventsPerSecond, tasksPerSecond, wallSeconds, ...first } = JSON.parse(twice);
  expect(JSON.parse(out)).toMatchObject(first);
});

test('simulate --json prints the promised keys, and bounds that hold', async () => {
  let out = '';
  const context = { ...testContext(), stdout: { write: (s: string) => (out += s) } };
  const code = await runSimulateCommand(
    ['cholesky', '--machine', 'h200-2', '--n', '16384', '--tile', '2048', '--json'],
    context,
  );
  expect(code).toBe(0);
  const result = JSON.parse(out) as Record<string, number>;
  expect(Object.keys(result)).toEqual(
    expect.arrayContaining([
      'tasks',
      'makespanSeconds',
      'criticalPathSeconds',
      'areaSeconds',
      'bytes',
      'idle',
      'eventsPerSecond',
    ]),
  );
  expect(result['tasks']).toBe(120);
  expect(result['makespanSeconds']).toBeGreaterThan(result['criticalPathSeconds']);
  expect(result['makespanSeconds']).toBeGreaterThan(result['areaSeconds']);
});
