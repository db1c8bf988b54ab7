// Traces of plays on CUDA GPUs (or the stub driver): the tasks of inserted runs, and every copy.
import { expect, test } from 'vitest';
import { axpy } from '../../devices/simulated/cases/plan-programs.js';
import { type PlanGraph, Runtime } from '../../index.js';
import { TaskTime } from '../../trace/index.js';
import { cudaGpus } from '../support/cuda.js';
import { cuda, needing } from '../support/needs.js';
import { playedIterations, taskTexts, tracedWith } from '../support/played-traces.js';

test('a trace of plays has the tasks and copies of runs', needing(cuda), async () => {
  const gpus = Math.min(2, cudaGpus);
  const open = (trace: string): Promise<Runtime> =>
    Runtime.create({
      driver: 'cuda',
      gpus,
      gpuMemory: '4MiB',
      hostMemory: '16MiB',
      workers: 1,
      trace,
    });
  let bytes = 0;
  const program = async (runtime: Runtime, plays: boolean): Promise<void> => {
    const blocks = Array.from({ length: 6 }, (_, i) =>
      runtime.data(new Float64Array(64).fill(i + 1), { name: `b${i}` }),
    );
    const insert = (graph: PlanGraph): void => {
      for (let b = 0; b < 6; b++) {
        const device = b % 3 === 2 ? 'host' : b % gpus;
        graph.insert(axpy, { y: blocks[b], x: blocks[(b + 5) % 6], n: 64, a: 1 }, { device });
      }
    };
    if (plays) {
      const plan = await runtime.plan(insert, { name: 'exchange' });
      for (let k = 0; k < 2; k++) await plan.run({ times: 10 });
      const { h2d, d2h, d2d } = plan.report.bytes;
      bytes = h2d + d2h + d2d;
    } else for (let i = 0; i < 20; i++) await runtime.run((graph) => insert(graph as PlanGraph));
  };
  const inserted = await tracedWith(open, (runtime) => program(runtime, false));
  const played = await tracedWith(open, (runtime) => program(runtime, true));
  expect(taskTexts(played, true)).toEqual(taskTexts(inserted, true));
  expect(playedIterations(played)).toEqual(new Map([['exchange', new Array(10).fill(12)]]));
  const { transfers, tasks, plays } = played;
  const copied = transfers.bytes.reduce((sum, each) => sum + each, 0);
  expect(bytes).toBeGreaterThan(0);
  expect(copied).toBeGreaterThanOrEqual(20 * bytes);
  expect(plays.count).toBe(2);
  // Times of GPUs are those at which the host saw a command (native/gpu/events.cpp).
  const [began, ended] = [TaskTime.execStart, TaskTime.execEnd].map((which) => tasks.times[which]);
  for (let row = 0; row < tasks.count; row++) {
    expect(began[row]).toBeGreaterThanOrEqual(tasks.times[TaskTime.inserted][row]);
    expect(ended[row]).toBeGreaterThanOrEqual(began[row]);
  }
});
