// The cost of recording per task: the task record alone, and with three dependencies and one access,
// to discarded memory and to a file. Each figure is the best of several rounds.
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import {
  AccessMode,
  FileSink,
  NONE,
  TaskTime,
  type TraceHeader,
  TraceRecorder,
  type TraceSink,
} from '../trace/index.js';
import type { BenchEntry } from './harness.js';

const header: TraceHeader = {
  program: 'bench',
  hostname: '',
  rank: 0,
  ranks: 1,
  started: new Date(0).toISOString(),
  clockOrigin: 0,
  clockOffset: 0,
  simulated: true,
  spaces: [{ kind: 'host', name: 'host', bytes: 1 << 30 }],
  lanes: [{ kind: 'worker', name: 'worker 0', space: 0, peer: -1 }],
  options: {},
};

const discard: TraceSink = { write() {}, close() {} };

function record(sink: TraceSink, tasks: number, graph: boolean): number {
  const recorder = new TraceRecorder(sink, header);
  recorder.taskClass(0, 'bench');
  const window = 4096;
  const times = new Float64Array(window * TaskTime.count);
  for (let i = 0; i < times.length; i++) times[i] = 1e12 + i * 31;
  const head = { id: 0, taskClass: 0, device: 0, lane: 0, flags: 6, releasedBy: NONE };
  const begin = performance.now();
  for (let id = 0; id < tasks; id++) {
    if (graph) {
      recorder.dependency(id, id - 9);
      recorder.dependency(id, id - 8);
      recorder.dependency(id, id - 7);
      recorder.access(id, id & 7, AccessMode.readWrite);
    }
    head.id = id;
    recorder.taskRow(head, times, (id & (window - 1)) * TaskTime.count);
  }
  recorder.finish();
  return ((performance.now() - begin) * 1e6) / tasks;
}

/** Measures recording; `tasks` per round. */
export function benchRecording(tasks = 1_000_000, rounds = 5): BenchEntry[] {
  const path = join(tmpdir(), `headrace-bench-${process.pid}.hrtrace`);
  const figures: BenchEntry[] = [];
  const cases: [string, () => TraceSink, boolean][] = [
    ['trace/record/task', () => discard, false],
    ['trace/record/task+graph', () => discard, true],
    ['trace/record/task/file', () => new FileSink(path), false],
    ['trace/record/task+graph/file', () => new FileSink(path), true],
  ];
  for (const [name, sink, graph] of cases) {
    let best = Number.POSITIVE_INFINITY;
    for (let round = 0; round < rounds; round++)
      best = Math.min(best, record(sink(), tasks, graph));
    figures.push({
      name,
      value: Number(best.toFixed(1)),
      unit: 'ns/task',
      params: { tasks, graph },
    });
  }
  rmSync(path, { force: true });
  return figures;
}
