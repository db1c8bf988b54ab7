// The traces of two simulated ranks whose data travel on lanes: a message lasts from its send to its arrival, and the
// critical path goes from the writer on one rank by the message and its receive to the reader on the other rank.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRanks } from '../../cli/simulation/open.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { read, task, write } from '../../index.js';
import { criticalPath, summarize } from '../../trace/analysis/index.js';
import {
  laneName,
  loadTrace,
  TaskTime,
  type Trace,
  TransferReason,
  taskName,
} from '../../trace/index.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'headrace-arrivals-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const LATENCY = 5e-6;
const KERNEL = 100e-6;
const WORDS = 64;
const make = task({ name: 'make', flows: { x: write('f64') }, kernel: 'work', gpuKernel: false });
const use = task({
  name: 'use',
  flows: { x: read('f64'), y: write('f64') },
  kernel: 'work',
  gpuKernel: false,
});

/** Rank 0 makes x, rank 1 uses it. Returns the trace of both. */
async function traced() {
  const machine = {
    ...presets['h200-2'],
    gpus: 0,
    lanes: 4,
    network: { bandwidth: 1e11, latency: LATENCY },
    hostKernels: { work: KERNEL },
  };
  const files = [0, 1].map((rank) => path.join(folder, `run.${rank}`));
  const { runtimes } = openRanks(machine, 2, (rank) => files[rank]);
  await Promise.all(
    runtimes.map(async (runtime) => {
      const x = runtime.data('f64', WORDS, { name: 'x', rank: 0 });
      const y = runtime.data('f64', WORDS, { name: 'y', rank: 1 });
      await runtime.run((graph) => {
        graph.insert(make, { x });
        graph.insert(use, { x, y });
      });
      await runtime.close();
    }),
  );
  return loadTrace(files);
}

function taskRow(trace: Trace, name: string): number {
  return Array.from({ length: trace.tasks.count }, (_, row) => row).findIndex((row) =>
    taskName(trace, row).includes(name),
  );
}

test('the path goes from the writer by the message and its receive to the reader on the other rank', async () => {
  const trace = await traced();
  expect(trace.problems).toEqual([]);
  const { steps } = criticalPath(trace);
  const at = steps.findIndex(({ type }) => type === 'message');
  const [made, message, received, used] = steps.slice(at - 1);
  expect([made.rank, made.name]).toEqual([0, expect.stringContaining('make')]);
  expect([message.rank, message.lane, message.releasedBy]).toEqual([
    1,
    expect.stringContaining('network'),
    'producer',
  ]);
  expect([received.rank, received.name, received.releasedBy]).toEqual([
    1,
    expect.stringContaining('receive'),
    'transfer',
  ]);
  expect([used.rank, used.releasedBy]).toEqual([1, 'dependency']);
  // The lane sends when the kernel is over, and the way takes what the link takes.
  expect(message.start).toBe(made.end);
  const way = (message.end - message.start) / 1e9;
  expect(way).toBeGreaterThanOrEqual(LATENCY);
  expect(way).toBeLessThan(2 * LATENCY);
});

test('the reader waits for the network from the end of the writer to the arrival, and before that for the writer', async () => {
  const trace = await traced();
  const { tasks, transfers } = trace;
  const made = tasks.times[TaskTime.execEnd][taskRow(trace, 'make')];
  const arrived = transfers.end[transfers.reason.indexOf(TransferReason.receive)];
  const { idle } = summarize(trace).lanes.find(({ rank, tasks: n }) => rank === 1 && n > 0)!;
  expect(idle.network).toBe(arrived - made);
  expect(idle.noTask + idle.submission).toBeGreaterThanOrEqual(KERNEL * 1e9);
});

test('the receive begins with its send although it was commanded before, and is on the lane of the network', async () => {
  const trace = await traced();
  const { tasks, transfers } = trace;
  const receive = transfers.reason.indexOf(TransferReason.receive);
  const send = transfers.partner[receive];
  expect(transfers.start[receive]).toBe(transfers.start[send]);
  expect(transfers.end[receive]).toBeGreaterThan(transfers.start[receive]);
  const row = transfers.task[receive];
  expect(taskName(trace, row)).toContain('receive');
  expect(laneName(trace, tasks.lane[row])).toContain('network');
  expect(tasks.times[TaskTime.inserted][row]).toBeLessThan(transfers.start[send]);
  expect(tasks.times[TaskTime.execStart][row]).toBe(transfers.end[receive]);
});
