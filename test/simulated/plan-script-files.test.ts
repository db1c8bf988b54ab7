// A file that gives the body of a script worker to a worker, or a kernel to a script worker: the numbers of bodies and of kernels are
// not the same.
import '../support/removable-guards.js';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { scripted } from '../../devices/simulated/cases/front-end-classes.js';
import { planMachine } from '../../devices/simulated/cases/plan-cases.js';
import { axpy, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { type Datum, type Plan, Runtime } from '../../index.js';
import { type Columns, contentOf, fileOf } from '../../scheduler/plans/file-format.js';

const folder = mkdtempSync(path.join(tmpdir(), 'headrace-plan-scripts-'));
const file = path.join(folder, 'step.plan');
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => setGuard('planFileBodies', true));

const WORKERS = 2;
const COLUMNS = ['placeDatum', 'placeSpace', 'placeOffset', 'flows', 'queue', 'task', 'copies'];
const OTHERS = ['exits', 'params', 'class', 'open', 'after'];

function opened(): { runtime: Runtime; x: Datum<'f64'>; y: Datum<'f64'> } {
  const nothing = (): number => 0;
  const { gpus: _, ...machine } = planMachine(new PlanProgram(1));
  const backend = new SimulatedBackend({
    machine: { ...machine, gpus: 0, workers: WORKERS, scriptWorkers: 2 },
    ringRecords: 128,
    kernels: { add_f64: nothing, scripted: nothing },
  });
  const runtime = Runtime.over(backend, { checked: true });
  const [x, y] = ['x', 'y'].map((name) => runtime.data(Float64Array.of(1), { name }));
  return { runtime, x, y };
}

/** The outcome of loading a plan of a body and a kernel, whose commands have got other queues. */
async function loadedWith(queues: (queue: number) => number): Promise<string> {
  const made = opened();
  const { x, y } = made;
  const plan = await made.runtime.plan((graph) => {
    graph.insert(scripted, { x, y, plus: 1 } as never);
    graph.insert(axpy, { y, x, n: 1, a: 1 });
  });
  await plan.run();
  await plan.save(file);
  await made.runtime.close();
  const { header, column } = contentOf(readFileSync(file), file);
  const columns: Columns = Object.fromEntries(
    [...COLUMNS, ...OTHERS].map((name) => [name, Array.from(column(name))]),
  );
  const queue = Array.from(column('queue'), queues);
  writeFileSync(file, fileOf(header, { ...columns, queue }));
  const { runtime, ...data } = opened();
  const load: Promise<Plan> = runtime.loadPlan(file, {
    data: Object.values(data),
    classes: [scripted, axpy],
  });
  const outcome = await load.then(
    () => 'loaded',
    ({ code, message }) => `${code}: ${message}`,
  );
  await runtime.close();
  return outcome;
}

const changes: readonly (readonly [string, (queue: number) => number, string])[] = [
  [
    'a body to a worker',
    (queue) => (queue >= WORKERS ? 0 : queue),
    "task class 'scripted' has nothing that runs on host",
  ],
  [
    'a kernel to a script worker',
    (queue) => (queue < WORKERS ? WORKERS : queue),
    "task class 'axpy' has nothing that runs on script workers",
  ],
];

describe('a file', () => {
  test('with its own queues is loaded', async () => {
    expect(await loadedWith((queue) => queue)).toBe('loaded');
  });

  test.each(changes)('that gives %s is refused', async (_, queues, words) => {
    const outcome = await loadedWith(queues);
    expect(outcome).toContain('ERR_PLAN_MISMATCH');
    expect(outcome).toContain(words);
  });

  test('without planFileBodies: the number of a body is taken for that of a kernel', async () => {
    setGuard('planFileBodies', false);
    for (const [, queues] of changes) expect(await loadedWith(queues)).toBe('loaded');
  });
});
