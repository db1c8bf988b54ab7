// Overhead per task: an empty kernel, insertion included, on one host worker and on one emulated GPU with all data
// resident; the same with the trace on; and the wait of a ready task for its start.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Runtime, type RuntimeOptions } from '../index.js';
import { TaskTime, TraceReader } from '../trace/index.js';
import { type BenchEntry, log, makeColumns, median, runShape, type Shape } from './harness.js';

const WIDTH = 16;
const TASKS = 1_000_000;
const REPEATS = 5;

interface Case {
  readonly name: string;
  readonly shape: Shape;
  readonly options: RuntimeOptions;
  readonly devices: number;
}

const CASES: readonly Case[] = [
  { name: 'host/independent', shape: 'independent', options: { workers: 1 }, devices: 0 },
  { name: 'host/stencil', shape: 'stencil', options: { workers: 1 }, devices: 0 },
  {
    name: 'emulated/independent',
    shape: 'independent',
    options: { workers: 1, gpus: 1 },
    devices: 1,
  },
  { name: 'emulated/stencil', shape: 'stencil', options: { workers: 1, gpus: 1 }, devices: 1 },
];

async function perTask(c: Case, trace?: string): Promise<number> {
  await using rt = await Runtime.create({
    plans: 'off',
    ...c.options,
    ...(trace === undefined ? {} : { trace }),
  });
  const columns = makeColumns(rt, WIDTH, c.devices);
  await runShape(rt, columns, c.shape, 2000);
  const steps = TASKS / WIDTH;
  const seconds = await runShape(rt, columns, c.shape, steps);
  return (seconds / (steps * WIDTH)) * 1e9;
}

/** ns per task of every case, trace off and on in turn, so that the ratio compares neighbours in time. */
export async function overhead(): Promise<BenchEntry[]> {
  const entries: BenchEntry[] = [];
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-bench-'));
  const file = path.join(folder, 'overhead.hrtrace');
  try {
    for (const c of CASES) {
      const off: number[] = [];
      const on: number[] = [];
      const ratio: number[] = [];
      for (let i = 0; i < REPEATS; i++) {
        const a = await perTask(c);
        const b = await perTask(c, file);
        off.push(a);
        on.push(b);
        ratio.push(b / a);
      }
      const params = { tasks: TASKS, width: WIDTH, workers: 1, repeats: REPEATS };
      entries.push({ name: c.name, value: median(off), unit: 'ns/task', params });
      entries.push({ name: `${c.name}/traced`, value: median(on), unit: 'ns/task', params });
      entries.push({ name: `${c.name}/trace-ratio`, value: median(ratio), unit: 'ratio', params });
      log(`${c.name}: ${median(off).toFixed(0)} ns/task, traced ${median(ratio).toFixed(2)}x`);
    }
    entries.push(...latency(file));
  } finally {
    rmSync(folder, { recursive: true });
  }
  entries.push({
    name: 'host/resident-memory',
    value: process.memoryUsage.rss() / 1e6,
    unit: 'MB',
    params: { tasks: TASKS },
  });
  return entries;
}

/** Distribution of the time between a task's release and its start, from a trace. */
function latency(file: string): BenchEntry[] {
  const waits: number[] = [];
  const reader = TraceReader.open(file);
  reader.read({
    task: ({ times }) => {
      waits.push(times[TaskTime.execStart] - times[TaskTime.ready]);
    },
  });
  reader.close();
  waits.sort((a, b) => a - b);
  const at = (q: number): number =>
    waits[Math.min(waits.length - 1, Math.floor(q * waits.length))] / 1e3;
  const params = { of: 'emulated/stencil/traced', tasks: waits.length };
  log(`ready to start: p50 ${at(0.5).toFixed(1)} us, p99 ${at(0.99).toFixed(1)} us`);
  return [
    { name: 'latency/ready-to-start/p50', value: at(0.5), unit: 'us', params },
    { name: 'latency/ready-to-start/p99', value: at(0.99), unit: 'us', params },
  ];
}
