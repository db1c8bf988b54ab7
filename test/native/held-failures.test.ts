// Tasks that were held back and fail when they are inserted after all: they keep their numbers, and the runs behind them go on.
import { expect, test } from 'vitest';
import { type Graph, type HeadraceError, Runtime, readWrite, task } from '../../index.js';
import { axpy } from '../support/tasks.js';

const N = 8;
/** Fails with the code, without its fraction. */
const check = task({
  name: 'check',
  flows: { y: readWrite('f64') },
  params: { code: 'f64' },
  kernel: 'fail',
});
const COLUMNS = 10;

async function opened(window: number) {
  const runtime = await Runtime.create({ workers: 1, checked: true, plans: 'auto', window });
  const x = runtime.data(new Float64Array(N).fill(1), { name: 'x' });
  const ys = Array.from({ length: COLUMNS }, (_, i) =>
    runtime.data(new Float64Array(N), { name: `y${i}` }),
  );
  return { runtime, x, ys };
}

const codeOf = (run: { done: Promise<unknown> }): Promise<string> =>
  run.done.then(
    () => 'ok',
    ({ code }: HeadraceError) => code,
  );

test.each([0, 80])('runs behind a recognised run that fails, at task %d', async (failing) => {
  const { runtime, x, ys } = await opened(64);
  const program =
    (code: number) =>
    (graph: Graph): void => {
      for (let i = 0; i < 200; i++) {
        if (i === failing) graph.insert(check, { y: ys[0], code });
        graph.insert(axpy, { y: ys[i % COLUMNS], x, n: N, a: 1 });
      }
    };
  for (let i = 0; i < 5; i++) await runtime.run(program(i / 8));
  const runs = [7, 0.5, 0.5, 0.5].map((code) => codeOf(runtime.run(program(code))));
  const poisoned = 'ERR_DATUM_POISONED';
  expect(await Promise.all(runs)).toEqual(['ERR_TASK_FAILED', poisoned, poisoned, poisoned]);
  for (const y of ys) await y.set(new Float64Array(N));
  await runtime.run(program(0.5));
  expect((await ys[3].read())[0]).toBe(20);
  await runtime.close();
});

test('a run that fails with the tasks that were held back: the next insertion throws its error', async () => {
  const { runtime, x, ys } = await opened(8);
  const step = (graph: Graph) => ys.map((y) => graph.insert(axpy, { y, x, n: N, a: 1 }));
  const { recognition } = await runtime.run((graph) => {
    for (let t = 0; t < 200; t++) step(graph);
  });
  expect(recognition).toMatch(/^played \d+ of 2000 tasks$/);
  const failed = runtime.run((graph) => void graph.insert(check, { y: ys[0], code: 3 }));
  expect(await codeOf(failed)).toBe('ERR_TASK_FAILED');
  const differs = runtime.run((graph) => {
    const handles = step(graph);
    graph.insert(axpy, { y: ys[1], x, n: N, a: 1 }, { after: handles.slice(-1) });
  });
  expect(await codeOf(differs)).toBe('ERR_DATUM_POISONED');
  await runtime.close();
});
