// The task window is full when its rows, its flows or its parameters are. Tasks with many arguments fill the rings of
// arguments long before they fill the rows; a program that inserts them must block, and time must pass.
import { expect, test } from 'vitest';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { Runtime, readWrite, task } from '../../index.js';

const machine = { ...presets['h200-1'], gpus: 0, workers: 2, hostKernels: { '*': 1e-5 } };
/** An engine that looks for completions this often per task looks in vain. */
const LOOKS_PER_TASK = 50;

/** A backend that counts looks and lets time pass when there are too many, so that a run whose engine spins ends, too. */
class Impatient extends SimulatedBackend {
  looks = 0;
  readonly most: number;

  private readonly onExcess: (() => void) | undefined;

  constructor(tasks: number, onExcess?: () => void) {
    super({ machine });
    this.most = tasks * LOOKS_PER_TASK;
    this.onExcess = onExcess;
  }

  override poll(): boolean {
    if (++this.looks === this.most) this.onExcess?.();
    if (this.looks > this.most) this.block(1000);
    return super.poll();
  }
}

const named = <T>(count: number, letter: string, value: T): Record<string, T> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${letter}${i}`, value]));

/** A class of that many data and parameters, and arguments for a task of it. */
function wideTask(runtime: Runtime, { flows, params }: { flows: number; params: number }) {
  const cls = task({
    name: 'wide',
    flows: named(flows, 'f', readWrite('f64')),
    params: named(params, 'p', 'f64' as const),
    kernel: 'empty',
  });
  const data = Array.from({ length: flows }, () => runtime.data(new Float64Array(1)));
  const args = {
    ...Object.fromEntries(data.map((datum, i) => [`f${i}`, datum])),
    ...named(params, 'p', 1),
  };
  return { cls, args: args as never };
}

test.each([
  { flows: 1, params: 1 },
  { flows: 1, params: 10 },
  { flows: 1, params: 64 },
  { flows: 10, params: 0 },
  { flows: 40, params: 3 },
  // A quarter of the ring, the most that one task may have.
  { flows: 1, params: 1024 },
  { flows: 1024, params: 1 },
])('a loop of tasks with $flows data and $params parameters ends', async ({ flows, params }) => {
  const tasks = 2000;
  const backend = new Impatient(tasks);
  const runtime = Runtime.over(backend, { window: 512 });
  const { cls, args } = wideTask(runtime, { flows, params });
  const report = await runtime.run((graph) => {
    for (let i = 0; i < tasks; i++) graph.insert(cls, args);
  });
  expect(report.tasks).toBe(tasks);
  expect(backend.looks).toBeLessThan(backend.most);
  await runtime.close();
});

test.each([
  { flows: 1, params: 1025 },
  { flows: 1025, params: 1 },
])('a class of $flows data and $params parameters fits no window of 512 rows', async (size) => {
  const runtime = Runtime.over(new SimulatedBackend({ machine }), { window: 512 });
  const { cls, args } = wideTask(runtime, size);
  await expect(
    runtime.run((graph) => {
      graph.insert(cls, args);
    }),
  ).rejects.toMatchObject({
    code: 'ERR_TASK_CLASS',
    message: expect.stringContaining('1024 of each'),
  });
  await runtime.close();
});

test.each([
  { ringRecords: 64, params: 500, fits: false },
  { ringRecords: 128, params: 500, fits: true },
])('a class of $params parameters and a ring of $ringRecords records', async (given) => {
  const { ringRecords, params, fits } = given;
  const runtime = Runtime.over(new SimulatedBackend({ machine, ringRecords }), { window: 512 });
  const { cls, args } = wideTask(runtime, { flows: 1, params });
  const outcome = await runtime
    .run((graph) => {
      graph.insert(cls, args);
    })
    .then(
      () => 'ok',
      (error: unknown) => (error as { code: string }).code,
    );
  expect(outcome).toBe(fits ? 'ok' : 'ERR_TASK_CLASS');
  await runtime.close();
});

test('rings too short for a command that waits for every queue are refused', () => {
  const gpus = { ...presets['h200-8'], gpus: 15 };
  const backend = new SimulatedBackend({ machine: gpus, ringRecords: 256 });
  expect(() => Runtime.over(backend)).toThrow(RangeError);
});

test('space() waits for room for arguments, too', async () => {
  const backend = new Impatient(300, () => {
    throw new Error('the engine spins');
  });
  const runtime = Runtime.over(backend, { window: 512 });
  const ends: (() => void)[] = [];
  const wide = task({
    name: 'wide',
    flows: { x: readWrite('f64') },
    params: named(100, 'p', 'f64' as const),
    body: () => new Promise<void>((resolve) => ends.push(resolve)),
  });
  const data = Array.from({ length: 8 }, () => runtime.data(new Float64Array(1)));
  const timer = setInterval(() => {
    for (const end of ends.splice(0)) end();
  }, 1);
  const report = await runtime.run(async (graph) => {
    for (let i = 0; i < 300; i++) {
      await graph.space();
      graph.insert(wide, { x: data[i % 8], ...named(100, 'p', i) } as never);
    }
  });
  clearInterval(timer);
  expect(report.tasks).toBe(300);
  await runtime.close();
});
