// Damaged traces: each is refused with a typed error, or its remaining part is shown without nonsense.
// HEADRACE_CORRUPTIONS=16500 tries that many instead of a hundred; a failure names its seed.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runSimulateCommand } from '../../cli/simulate.js';
import { Random } from '../../devices/simulated/machine/random.js';
import { Runtime, read, readWrite, task as taskClass, write } from '../../index.js';
import { EventKind, loadTrace, NONE } from '../../trace/index.js';
import { testContext } from '../cli/context.js';
import { partOf } from '../support/grids.js';
import { corrupted, outcomeOf, showAll } from './corruptions.js';
import { record, task, testHeader } from './support.js';

const count = Number(process.env['HEADRACE_CORRUPTIONS'] ?? partOf(400, 100));
let folder = '';
/** Traces, each as the files of its ranks. */
const traces: Uint8Array[][] = [];

/** A run on emulated GPUs that are short of memory, with copies back, evictions and a task that fails. */
async function recordRun(file: string): Promise<void> {
  const add = taskClass({
    name: 'add',
    flows: { to: readWrite('f64'), from: read('f64') },
    params: { count: 'i32' },
    kernel: 'add_f64',
  });
  const fill = taskClass({
    name: 'fill',
    flows: { to: write('f64') },
    params: { count: 'i32', value: 'f64' },
    kernel: 'fill_f64',
  });
  const runtime = await Runtime.create({ gpus: 2, gpuMemory: 4096, workers: 1, trace: file });
  const data = Array.from({ length: 8 }, (_, i) => runtime.data('f64', 128, { name: `d${i}` }));
  await runtime.run((graph) => {
    for (const to of data) graph.insert(fill, { to, count: 128, value: 1 });
    for (let i = 0; i < 20; i++)
      graph.insert(add, { to: data[i % 8], from: data[(i * 3 + 1) % 8], count: 128 });
  });
  await data[0].read();
  await runtime.close();
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'headrace-trace-'));
  const file = (name: string): string => path.join(folder, `${name}.hrtrace`);
  const words = '--ranks 2 --gpus 2 --machine h200-2 --n 3072 --tile 1024 --json'.split(' ');
  await runSimulateCommand(['cholesky', ...words, '--trace', file('ranks')], testContext());
  await recordRun(file('run'));
  const handMade = record((recorder) => {
    recorder.taskClass(0, 'a', ['i', 'j']);
    recorder.datum(1, 4096, 0, 'A', [1, 2]);
    recorder.event(EventKind.runBegin, 1000);
    recorder.event(EventKind.note, 1100, { task: NONE, datum: NONE, text: 'words' });
    task(recorder, 1, 0, { start: 0, end: 10 });
    recorder.access(2, 1, 3);
    task(recorder, 2, 2, { start: 20, end: 6e9, finalized: 7e9 }, { device: 1, releasedBy: 1 });
    recorder.transfer({
      kind: 0,
      reason: 0,
      lane: 3,
      source: 0,
      destination: 1,
      task: 2,
      datum: 1,
      version: 1,
      peer: -1,
      message: NONE,
      bytes: 4096,
      issued: 1010,
      start: 1012,
      end: 1020,
    });
    recorder.event(EventKind.runEnd, 8e9);
  }, testHeader());
  traces.push([file('ranks.0'), file('ranks.1')].map((name) => readFileSync(name)));
  traces.push([readFileSync(file('run'))], [handMade]);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** What becomes of the traces when one file is damaged by the seed. */
function outcome(seed: number): string {
  const random = new Random(seed);
  const files = [...traces[random.below(traces.length)]];
  const victim = random.below(files.length);
  files[victim] = corrupted(new Uint8Array(files[victim]), () => random.below(1 << 30) / 2 ** 30);
  try {
    return outcomeOf(files);
  } catch (cause) {
    throw new Error(`seed ${seed}`, { cause });
  }
}

test('whole traces are shown', () => {
  for (const files of traces) showAll(loadTrace(files));
});

test(`${count} damaged traces are refused or shown`, { timeout: 3_600_000 }, () => {
  const outcomes = new Map<string, number>();
  const failures: unknown[] = [];
  for (let seed = 1; seed <= count; seed++) {
    try {
      const what = outcome(seed);
      outcomes.set(what, (outcomes.get(what) ?? 0) + 1);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} seeds fail`);
  // The damage is neither always fatal nor always harmless.
  expect(outcomes.get('shown')).toBeGreaterThan(count / 4);
  expect(outcomes.get('ERR_TRACE_HEADER')).toBeGreaterThan(count / 50);
});
