// The engine's trace, besides tasks and transfers: evicted copies, times at which the program had to wait, insertion
// times of tasks, and their parameters. The tests compare them with the run's own report.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Flow,
  type Program,
  type RunReport,
  Runtime,
  type RuntimeOptions,
  readWrite,
  type TaskClass,
  task,
} from '../../index.js';
import { summarize } from '../../trace/analysis/index.js';
import {
  CounterKind,
  cropToRuns,
  EventKind,
  loadTrace,
  TaskTime,
  type Trace,
  TransferReason,
  taskName,
} from '../../trace/index.js';
import { tree } from '../support/growing.js';
import { GPUS, soon } from '../support/machines.js';
import { add, copy, delay, fill, script, spin } from '../support/tasks.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'headrace-engine-trace-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Recorded {
  readonly report: RunReport;
  /** From the begin of the run to its end. */
  readonly trace: Trace;
  /** With what happened after it: a write-back in the background may end later than the run. */
  readonly whole: Trace;
}

/** Runs a program with the trace on. `prepare` makes its data. */
async function recorded(
  options: RuntimeOptions,
  prepare: (runtime: Runtime) => Program,
): Promise<Recorded> {
  const file = path.join(folder, 'run.hrtrace');
  const runtime = await Runtime.create({ ...options, trace: file });
  let report: RunReport;
  try {
    report = await soon(runtime, runtime.run(prepare(runtime)));
  } finally {
    await soon(runtime, runtime.close());
  }
  const whole = loadTrace(file);
  return { report, trace: cropToRuns(whole), whole };
}

/** Rows of the events of one kind. */
function eventsOf(trace: Trace, kind: number): number[] {
  return [...trace.events.kind.subarray(0, trace.events.count).keys()].filter(
    (row) => trace.events.kind[row] === kind,
  );
}

describe.each(GPUS)('evictions on $name', ({ options }) => {
  test('every copy that left is an event with its datum, bytes and space', async () => {
    const bytes = 256 * 1024;
    // Eleven data on devices that hold eight: clean ones are dropped, written ones spilled.
    const { report, trace, whole } = await recorded(
      { ...options, gpuMemory: 8 * bytes },
      (runtime) => {
        const clean = Array.from({ length: 6 }, (_, i) =>
          runtime.data(new Float64Array(bytes / 8), { name: `c${i}`, device: 0 }),
        );
        const dirty = Array.from({ length: 5 }, (_, i) =>
          runtime.data(new Float64Array(bytes / 8), { name: `d${i}`, device: 0 }),
        );
        return (graph) => {
          for (let i = 0; i < 60; i++) {
            graph.insert(add, { to: dirty[i % 5], from: clean[i % 6], count: 8 }, { device: 0 });
          }
        };
      },
    );
    const evicted = eventsOf(trace, EventKind.evict);
    const spilled = eventsOf(trace, EventKind.spill);
    expect(report.spills).toBeGreaterThan(0);
    expect(evicted.length).toBeGreaterThan(0);
    expect(spilled).toHaveLength(report.spills);
    expect(evicted).toHaveLength(report.evictions - report.spills);
    const { events, data } = trace;
    for (const row of [...evicted, ...spilled]) {
      expect(events.space[row]).toBe(1);
      expect(events.bytes[row]).toBe(bytes);
      expect(data.names[data.name[events.datum[row]]]).toMatch(/^[cd]\d$/);
    }
    // A spill is a dirty copy: one of the data that tasks write.
    for (const row of spilled) {
      expect(data.names[data.name[events.datum[row]]]).toMatch(/^d/);
    }
    const transfers = [...whole.transfers.reason.subarray(0, whole.transfers.count)];
    expect(transfers.filter((reason) => reason === TransferReason.spill)).toHaveLength(
      report.spills,
    );
    // Parts of the memory in use are disjoint.
    const { counters } = trace;
    for (let row = 0; row < counters.count; row++) {
      if (counters.kind[row] !== CounterKind.memory) continue;
      const [used, ...parts] = counters.values.subarray(6 * row, 6 * row + 5);
      expect(parts.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(used);
    }
    const { traffic } = summarize(whole);
    expect(traffic.evictions).toEqual({ count: evicted.length, bytes: evicted.length * bytes });
    expect(traffic.spills).toEqual({ count: spilled.length, bytes: spilled.length * bytes });
  });
});

describe('a full window', () => {
  const options: RuntimeOptions = { workers: 1, window: 4, runAhead: 2 };

  test('that bodies extend loses no task, and no time of one', async () => {
    const { program, seen } = tree(10);
    const { trace } = await recorded({ ...options, checked: false }, () => program);
    expect(seen.ran).toBe(1023);
    expect(trace.tasks.count).toBe(1023);
    const { times } = trace.tasks;
    for (let i = 0; i < 1023; i++) {
      expect(times[TaskTime.inserted][i]).toBeGreaterThan(0);
      expect(times[TaskTime.execStart][i]).toBeGreaterThanOrEqual(times[TaskTime.inserted][i]);
      expect(times[TaskTime.execEnd][i]).toBeGreaterThanOrEqual(times[TaskTime.execStart][i]);
    }
  });

  test('is a span of the trace; the tasks that did not fit were inserted after it', async () => {
    const { trace } = await recorded(options, (runtime) => {
      const x = runtime.data(new Float64Array(8));
      return (graph) => {
        for (let i = 0; i < 12; i++) graph.insert(delay, { of: x, microseconds: 2000 });
      };
    });
    const begins = eventsOf(trace, EventKind.throttleBegin);
    const ends = eventsOf(trace, EventKind.throttleEnd);
    expect(begins.length).toBeGreaterThan(0);
    expect(ends).toHaveLength(begins.length);
    begins.forEach((row, i) => {
      expect(trace.events.time[ends[i]]).toBeGreaterThanOrEqual(trace.events.time[row]);
      if (i > 0) {
        expect(trace.events.time[row]).toBeGreaterThanOrEqual(trace.events.time[ends[i - 1]]);
      }
    });
    // A task that did not fit was inserted when the wait was over.
    const inserted = trace.tasks.times[TaskTime.inserted];
    expect(inserted[trace.tasks.count - 1]).toBeGreaterThanOrEqual(trace.events.time[begins[0]]);
  });

  test('a body that waits for room while the program does makes one span, not one within another', async () => {
    const { trace } = await recorded({ ...options, window: 8 }, (runtime) => {
      const x = runtime.data(new Float64Array(8));
      const y = runtime.data(new Float64Array(8));
      return (graph) => {
        const later = (count: number): void => {
          for (let i = 0; i < count; i++) graph.insert(delay, { of: y, microseconds: 1000 });
        };
        later(4);
        // It runs when the program waits for room for the first time, and needs more room itself.
        graph.insert(
          script('more', () => later(2)),
          { of: x },
        );
        later(6);
      };
    });
    const kinds = [...trace.events.kind.subarray(0, trace.events.count)].filter(
      (kind) => kind === EventKind.throttleBegin || kind === EventKind.throttleEnd,
    );
    expect(kinds.length).toBeGreaterThan(0);
    kinds.forEach((kind, i) => {
      expect(kind).toBe(i % 2 === 0 ? EventKind.throttleBegin : EventKind.throttleEnd);
    });
  });

  test('graph.space() waits on behalf of the window, too', async () => {
    const { trace } = await recorded(options, (runtime) => {
      const x = runtime.data(new Float64Array(8));
      return async (graph) => {
        for (let i = 0; i < 6; i++) {
          graph.insert(delay, { of: x, microseconds: 20_000 });
          await graph.space();
        }
      };
    });
    expect(eventsOf(trace, EventKind.throttleBegin).length).toBeGreaterThan(0);
    expect(eventsOf(trace, EventKind.throttleEnd)).toHaveLength(
      eventsOf(trace, EventKind.throttleBegin).length,
    );
  });
});

test('a task of a slow program is inserted when it was, not when the last pass was', async () => {
  const before: number[] = [];
  const after: number[] = [];
  const { trace } = await recorded({ workers: 1 }, (runtime) => {
    const now = (): number => runtime.engine.backend.now();
    return (graph) => {
      for (let i = 0; i < 200; i++) {
        const until = now() + 5000;
        while (now() < until);
        before.push(now());
        graph.insert(spin, { microseconds: 1 });
        after.push(now());
      }
    };
  });
  const inserted = [...trace.tasks.times[TaskTime.inserted].subarray(0, 200)].sort((a, b) => a - b);
  const { clockOrigin } = trace.ranks[0].header;
  inserted.forEach((time, i) => {
    // Times are whole nanoseconds, rounded down.
    expect(time).toBeGreaterThanOrEqual(Math.floor(before[i]) - clockOrigin - 1);
    expect(time).toBeLessThanOrEqual(after[i] - clockOrigin + 1);
  });
});

test('parameters are kept; a datum that is written names a task, else its parameters do', async () => {
  const { trace } = await recorded({ workers: 1 }, (runtime) => {
    const a = runtime.data('f64', 16, { name: 'a' });
    const b = runtime.data('f64', 16, { name: 'b' });
    return (graph) => {
      graph.insert(fill, { to: a, count: 16, value: 7 });
      graph.insert(copy, { to: b, from: a, bytes: 128 });
      graph.insert(spin, { microseconds: 3 });
    };
  });
  const { tasks, classes } = trace;
  const shown = [...Array(tasks.count).keys()]
    .map((row) => ({
      name: taskName(trace, row).replace(/#\d+/, '#'),
      parameters: classes[tasks.taskClass[row]].parameterNames.map((name, i) => [
        name,
        tasks.parameters.items[tasks.parameters.start[row] + i],
      ]),
    }))
    .sort((x, y) => (x.name < y.name ? -1 : 1));
  expect(shown).toEqual([
    { name: 'copy # b', parameters: [['bytes', 128]] },
    {
      name: 'fill # a',
      parameters: [
        ['count', 16],
        ['value', 7],
      ],
    },
    { name: 'spin(3)', parameters: [['microseconds', 3]] },
  ]);
});

test.each([1, 2])(
  'tasks that share records keep their class, data, parameters and times, %i workers',
  async (workers) => {
    const inserted: { name: string; data: string[]; parameters: number[] }[] = [];
    const { trace } = await recorded({ workers }, (runtime) => {
      const data = Array.from({ length: 42 }, (_, i) =>
        runtime.data(new Float64Array(16), { name: `d${i}` }),
      );
      return (graph) => {
        for (let i = 0; i < 3000; i++) {
          // Runs of one class, and now and then one of another; other data every 500 tasks.
          const first = 7 * Math.floor(i / 500);
          const [a, b, c] = [first + (i % 5), first + (i % 7), first + ((i + 1) % 7)];
          if (i % 100 < 60) {
            const count = i % 17;
            graph.insert(fill, { to: data[a], count, value: -1 - i });
            inserted.push({ name: 'fill', data: [`d${a}`], parameters: [count, -1 - i] });
          } else if (i % 100 < 97) {
            graph.insert(copy, { to: data[b], from: data[c], bytes: 8 });
            inserted.push({
              name: 'copy',
              data: [`d${b}`, `d${c}`].sort(),
              parameters: [8],
            });
          } else {
            graph.insert(spin, { microseconds: 1 });
            inserted.push({ name: 'spin', data: [], parameters: [1] });
          }
        }
      };
    });
    const { tasks, classes, data } = trace;
    expect(tasks.count).toBe(inserted.length);
    const inOrder = [...Array(tasks.count).keys()].sort((a, b) => tasks.id[a] - tasks.id[b]);
    const seen = inOrder.map((row) => ({
      name: classes[tasks.taskClass[row]].name,
      data: [
        ...tasks.accesses.items.subarray(tasks.accesses.start[row], tasks.accesses.start[row + 1]),
      ]
        .map((datum) => data.names[data.name[datum]])
        .sort(),
      parameters: [
        ...tasks.parameters.items.subarray(
          tasks.parameters.start[row],
          tasks.parameters.start[row + 1],
        ),
      ],
    }));
    expect(seen).toEqual(inserted);
    for (const row of inOrder) {
      for (let stage = 1; stage < TaskTime.count; stage++) {
        expect(tasks.times[stage][row]).toBeGreaterThanOrEqual(tasks.times[stage - 1][row]);
      }
      // A queue is in order, and nothing starts before what it follows has ended.
      const { start, items } = tasks.predecessors;
      for (const before of items.subarray(start[row], start[row + 1])) {
        expect(tasks.times[TaskTime.execStart][row]).toBeGreaterThanOrEqual(
          tasks.times[TaskTime.execEnd][before],
        );
      }
    }
    const ids = inOrder.map((row) => tasks.times[TaskTime.inserted][row]);
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
  },
);

test('a task behind a parent follows what the parent has spawned, in a trace, too', async () => {
  const { trace } = await recorded({ workers: 1 }, (runtime) => {
    const x = runtime.data(Float64Array.of(0), { name: 'x' });
    const other = runtime.data(Float64Array.of(0), { name: 'other' });
    const grow = (name: string): TaskClass<{ x: Flow<'f64', 'readWrite'> }> =>
      task({ name, flows: { x: readWrite('f64') }, body: ({ x }) => void x[0]++ });
    const [child, behind, beside] = ['child', 'behind', 'beside'].map(grow);
    const parent = task({
      name: 'parent',
      flows: { x: readWrite('f64') },
      body: (_, { data, spawn }) => {
        for (let i = 0; i < 3; i++) spawn(child, { x: data.x });
      },
    });
    return (graph) => {
      graph.insert(parent, { x });
      graph.insert(behind, { x });
      graph.insert(beside, { x: other });
      graph.insert(behind, { x });
      graph.insert(beside, { x: other });
    };
  });
  const { tasks } = trace;
  const { start, items } = tasks.predecessors;
  const name = (row: number): string => taskName(trace, row).split(' ').slice(0, 2).join(' ');
  const edges = Array.from({ length: tasks.count }, (_, row) =>
    Array.from(items.subarray(start[row], start[row + 1]), (p) => `${name(p)} < ${name(row)}`),
  ).flat();
  expect(edges.sort()).toEqual([
    'behind #2 < behind #4',
    'beside #3 < beside #5',
    'child #6 < child #7',
    'child #7 < child #8',
    'child #8 < behind #2',
    'parent #1 < child #6',
  ]);
});
