import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  choleskyProgram,
  randomProgram,
  simulateInMemory,
  smallMachine,
} from '../../bench/trace-synthetic.js';
import {
  Causes,
  type CriticalPath,
  criticalPath,
  diffSummaries,
  parseWhatIf,
  summarize,
  Waits,
  WhatIfModel,
} from '../../trace/analysis/index.js';
import {
  AccessMode,
  EventKind,
  loadTrace,
  NO_INDEX,
  NONE,
  type Trace,
  TransferKind,
  TransferReason,
} from '../../trace/index.js';
import { randomTrace } from './random-traces.js';
import { slowPredecessors } from './slow-reference.js';
import { record, task, testHeader, traced } from './support.js';

function tiles(path: CriticalPath): void {
  let at = 0;
  for (const step of path.steps) {
    expect(step.gap).toBeGreaterThanOrEqual(0);
    expect(step.start).toBe(at + step.gap);
    expect(step.end).toBeGreaterThanOrEqual(step.start);
    const reasons = Object.values(step.gapReasons).reduce((sum, part) => sum + part, 0);
    expect(reasons).toBe(step.gap);
    at = step.end;
  }
  expect(at + path.tail).toBe(path.makespan);
}

// Task 0 on worker 0 writes x (10-50); x goes to the GPU (55-75); task 1 uses it there (80-140); meanwhile the GPU
// ran task 2 (0-30). Task 3 on worker 0 (60-100) is not on the path. Everything ends with task 1's completion at 150.
const offload = (): Trace =>
  traced((recorder) => {
    recorder.taskClass(0, 'make');
    recorder.taskClass(1, 'use');
    recorder.datum(7, 64, 0, 'x');
    recorder.access(0, 7, AccessMode.write);
    recorder.access(1, 7, AccessMode.read);
    recorder.dependency(1, 0);
    task(recorder, 2, 2, { start: 0, end: 30 }, { device: 1 });
    task(recorder, 0, 0, { start: 10, end: 50 });
    task(recorder, 3, 0, { start: 60, end: 100 });
    recorder.transfer({
      kind: TransferKind.h2d,
      reason: TransferReason.stageIn,
      lane: 3,
      source: 0,
      destination: 1,
      task: 1,
      datum: 7,
      version: 1,
      peer: -1,
      message: NONE,
      bytes: 64,
      issued: 1052,
      start: 1055,
      end: 1075,
    });
    task(
      recorder,
      1,
      2,
      { ready: 50, alloc: 52, stageIn: 75, issued: 78, start: 80, end: 140, finalized: 150 },
      { taskClass: 1, device: 1, releasedBy: 0 },
    );
  });

describe('the critical path by hand', () => {
  test('task, copy, task: the release of each, the gaps and their reasons', () => {
    const path = criticalPath(offload());
    expect(path.steps).toEqual([
      {
        type: 'task',
        row: 1,
        name: 'make #0 x',
        rank: 0,
        lane: 'worker 0',
        start: 10,
        end: 50,
        releasedBy: 'submission',
        gap: 10,
        gapReasons: { scheduler: 10 },
      },
      {
        type: 'transfer',
        row: 0,
        name: 'h2d x (stageIn)',
        rank: 0,
        lane: 'gpu 0 in',
        start: 55,
        end: 75,
        releasedBy: 'dependency',
        gap: 5,
        gapReasons: { memory: 2, h2d: 3 },
      },
      {
        type: 'task',
        row: 3,
        name: 'use #1',
        rank: 0,
        lane: 'gpu 0 compute',
        start: 80,
        end: 140,
        releasedBy: 'transfer',
        gap: 5,
        gapReasons: { scheduler: 5 },
      },
    ]);
    expect(path).toMatchObject({ makespan: 150, tail: 10, kernels: 100, transfers: 20, gaps: 20 });
    expect(path.classes).toEqual([
      { name: 'use', count: 1, total: 60 },
      { name: 'make', count: 1, total: 40 },
    ]);
    tiles(path);
  });

  test('an occupied lane', () => {
    const path = criticalPath(
      traced((recorder) => {
        task(recorder, 0, 0, { start: 0, end: 40 });
        task(recorder, 1, 0, { start: 40, end: 70 });
      }),
    );
    expect(path.steps.map((s) => [s.name, s.releasedBy])).toEqual([
      ['class 0 #0', 'submission'],
      ['class 0 #1', 'lane'],
    ]);
  });

  test('a late insertion starts the path; a full window links to the task that made room', () => {
    const late = criticalPath(
      traced((recorder) => {
        task(recorder, 0, 0, { start: 0, end: 10 });
        task(recorder, 1, 1, { inserted: 50, start: 55, end: 90 });
      }),
    );
    expect(late.steps).toMatchObject([
      {
        start: 55,
        gap: 55,
        releasedBy: 'submission',
        gapReasons: { submission: 50, scheduler: 5 },
      },
    ]);
    const throttled = criticalPath(
      traced((recorder) => {
        recorder.event(EventKind.throttleBegin, 1005);
        recorder.event(EventKind.throttleEnd, 1050);
        task(recorder, 0, 0, { start: 0, end: 45, finalized: 48 });
        task(recorder, 1, 1, { inserted: 50, start: 55, end: 90 });
      }),
    );
    expect(throttled.steps).toMatchObject([
      { start: 0, end: 45 },
      { start: 55, gap: 10, releasedBy: 'throttled', gapReasons: { throttled: 5, scheduler: 5 } },
    ]);
    tiles(throttled);
  });

  test('memory freed by a spill', () => {
    const path = criticalPath(
      traced((recorder) => {
        recorder.datum(7, 64, 0, 'x');
        recorder.access(0, 7, AccessMode.write);
        task(recorder, 0, 2, { start: 0, end: 40 }, { device: 1 });
        recorder.transfer({
          kind: TransferKind.d2h,
          reason: TransferReason.spill,
          lane: 4,
          source: 1,
          destination: 0,
          task: NONE,
          datum: 7,
          version: 1,
          peer: -1,
          message: NONE,
          bytes: 64,
          issued: 1041,
          start: 1042,
          end: 1060,
        });
        task(recorder, 1, 2, { ready: 10, alloc: 61, start: 62, end: 80 }, { device: 1 });
      }),
    );
    expect(path.steps.map((s) => [s.type, s.releasedBy, s.gap])).toEqual([
      ['task', 'submission', 0],
      ['transfer', 'producer', 2],
      ['task', 'memory', 2],
    ]);
    tiles(path);
  });

  test('a message is one step across ranks, from the start of the send to the end of the receive', () => {
    const header = (rank: number) => testHeader({ ranks: 2, rank });
    const receive = record((recorder) => {
      recorder.clock(1, 1000, 0, 0);
      recorder.transfer({
        kind: TransferKind.direct,
        reason: TransferReason.receive,
        lane: 6,
        source: NO_INDEX,
        destination: 0,
        task: 1,
        datum: NONE,
        version: 1,
        peer: 1,
        message: 0,
        bytes: 8,
        issued: 1000,
        start: 1070,
        end: 1100,
      });
      task(recorder, 1, 0, { commIn: 100, start: 100, end: 130 });
    }, header(0));
    const send = record((recorder) => {
      recorder.clock(0, 1000, 0, 0);
      task(recorder, 5, 0, { start: 0, end: 60 });
      recorder.transfer({
        kind: TransferKind.direct,
        reason: TransferReason.send,
        lane: 6,
        source: 0,
        destination: NO_INDEX,
        task: 5,
        datum: NONE,
        version: 1,
        peer: 0,
        message: 0,
        bytes: 8,
        issued: 1060,
        start: 1065,
        end: 1095,
      });
    }, header(1));
    const path = criticalPath(loadTrace([receive, send]));
    expect(path.steps.map((s) => [s.type, s.rank, s.start, s.end, s.releasedBy])).toEqual([
      ['task', 1, 0, 60, 'submission'],
      ['message', 0, 65, 100, 'dependency'],
      ['task', 0, 100, 130, 'transfer'],
    ]);
    tiles(path);
  });

  /**
   * Task 5 on rank 0 makes x (10-60), which leaves at 62 on a lane and is on rank 1 at 90. There the receive (task 7) was
   * commanded at once, before anything was sent, and task 1 uses x from 94 to 130. Each rank knows its own end only.
   */
  const arrival = (): Trace => {
    const header = (rank: number) => testHeader({ ranks: 2, rank });
    const message = { kind: TransferKind.inline, lane: 6, version: 1, message: 9, bytes: 8 };
    const sender = record((recorder) => {
      recorder.clock(1, 1000, 0, 0);
      recorder.taskClass(0, 'make');
      recorder.datum(3, 8, 0, 'x');
      recorder.access(5, 3, AccessMode.write);
      recorder.access(6, 3, AccessMode.read);
      recorder.dependency(6, 5);
      task(recorder, 5, 0, { start: 10, end: 60 });
      task(recorder, 6, 6, { inserted: 1, start: 64, end: 64, finalized: 70 });
      recorder.transfer({
        ...{ ...message, reason: TransferReason.send, source: 0, destination: NO_INDEX },
        ...{ task: 6, datum: 3, peer: 1, issued: 1062, start: 1062, end: 1064 },
      });
    }, header(0));
    const receiver = record((recorder) => {
      recorder.clock(0, 1000, 0, 0);
      recorder.taskClass(0, 'use');
      recorder.datum(4, 8, 0, 'x');
      recorder.access(7, 4, AccessMode.write);
      recorder.access(1, 4, AccessMode.read);
      recorder.dependency(1, 7);
      recorder.transfer({
        ...{ ...message, reason: TransferReason.receive, source: NO_INDEX, destination: 0 },
        ...{ task: 7, datum: 4, peer: 0, issued: 1090, start: 1090, end: 1090 },
      });
      task(recorder, 7, 6, { inserted: 3, start: 90, end: 90, finalized: 96 });
      task(recorder, 1, 0, { inserted: 4, start: 94, end: 130 });
    }, header(1));
    return loadTrace([sender, receiver]);
  };

  test('goes through an arrival: the writer, the message from its send on, the receive, and the reader', () => {
    const trace = arrival();
    expect(trace.problems).toEqual([]);
    const path = criticalPath(trace);
    expect(path.steps.map((s) => [s.type, s.rank, s.start, s.end, s.releasedBy, s.gap])).toEqual([
      ['task', 0, 10, 60, 'submission', 10],
      ['message', 1, 62, 90, 'producer', 2],
      ['task', 1, 90, 90, 'transfer', 0],
      ['task', 1, 94, 130, 'dependency', 4],
    ]);
    expect(path.transfers).toBe(28);
    tiles(path);
  });

  test('a message on a lane is on the network from its send to its arrival, on both ranks', () => {
    const { transfers } = arrival();
    const spans = [...transfers.rank.subarray(0, transfers.count)].map((rank, row) => [
      rank,
      transfers.start[row],
      transfers.end[row],
    ]);
    expect(spans).toEqual([
      [0, 62, 64],
      [1, 62, 90],
    ]);
  });

  test('of an empty trace', () => {
    expect(criticalPath(traced(() => {}))).toMatchObject({ makespan: 0, steps: [], tail: 0 });
  });
});

test('paths of random traces tile the makespan', () => {
  fc.assert(
    fc.property(randomTrace, (trace) => tiles(criticalPath(trace))),
    { numRuns: 300 },
  );
});

test('paths of simulated programs tile the makespan, on one rank and on several', () => {
  for (const ranks of [1, 3]) {
    const machine = { ...smallMachine, ranks, gpuBytes: 30 * 65536, window: 64 };
    for (const program of [choleskyProgram(9, 65536, machine), randomProgram(400, 3, machine)]) {
      const path = criticalPath(loadTrace(simulateInMemory(program, machine)));
      tiles(path);
      expect(path.steps.length).toBeGreaterThan(5);
    }
  }
});

describe('what-if', () => {
  const predict = (trace: Trace, ...settings: string[]): number =>
    new WhatIfModel(trace).evaluate(parseWhatIf(settings, trace)).predicted;

  test('by hand: a faster copy, a free kernel, a delay of the scheduler', () => {
    const trace = offload();
    expect(predict(trace)).toBe(150);
    // The copy takes 10 instead of 20.
    expect(predict(trace, 'h2d=2')).toBe(140);
    // Without `make` the copy could start at 15; `use` is then ready at 35 and starts at 40, after task 2.
    // Task 3, also a `make`, takes no time either.
    expect(predict(trace, 'make=free')).toBe(110);
    expect(predict(trace, 'use=2')).toBe(120);
    // 5 ns before `use`, 10 ns before `make`.
    expect(predict(trace, 'scheduler=free')).toBe(135);
    expect(predict(trace, 'network=2')).toBe(150);
    // The copy and `use` end at 60; task 3 runs until 100.
    expect(predict(trace, 'transfers=free', 'use=free')).toBe(100);
  });

  test('settings without a meaning are refused with the list of known ones', () => {
    const trace = offload();
    for (const bad of ['h2d', '=2', 'h2d=', 'h2d=0', 'h2d=-1', 'h2d=fast']) {
      expect(() => parseWhatIf([bad], trace)).toThrow(/not a what-if setting/);
    }
    expect(() => parseWhatIf(['gemm=2'], trace)).toThrow(/task class \(make, use\)/);
    expect(parseWhatIf(['class:make=free'], trace).classes).toEqual({
      make: Number.POSITIVE_INFINITY,
    });
  });

  test('nothing changed: the recorded makespan exactly, for random traces and simulated programs', () => {
    fc.assert(
      fc.property(randomTrace, (trace) => {
        expect(predict(trace)).toBe(trace.end - trace.start);
      }),
      { numRuns: 300 },
    );
    for (const ranks of [1, 2]) {
      const machine = { ...smallMachine, ranks, gpuBytes: 20 * 65536, window: 128 };
      const trace = loadTrace(simulateInMemory(randomProgram(500, 5, machine), machine));
      expect(predict(trace)).toBe(trace.end - trace.start);
    }
  });

  test('agrees with a recursive reference on traces without transfers', () => {
    fc.assert(
      fc.property(randomTrace, fc.constantFrom(1, 2, 4), (whole, factor) => {
        const trace = withoutTransfers(whole);
        const model = new WhatIfModel(trace);
        expect(model.evaluate({ classes: { b: factor } }).predicted).toBe(
          slowWhatIf(trace, 'b', factor),
        );
      }),
      { numRuns: 200 },
    );
  });

  test('something faster never makes it slower', () => {
    fc.assert(
      fc.property(
        randomTrace,
        fc.constantFrom('h2d', 'd2d', 'network', 'scheduler', 'memory', 'submission', 'transfers'),
        (trace, name) => {
          expect(predict(trace, `${name}=free`)).toBeLessThanOrEqual(trace.end - trace.start);
        },
      ),
      { numRuns: 200 },
    );
  });
});

function withoutTransfers(trace: Trace): Trace {
  const none = traced(() => {});
  const { times } = trace.tasks;
  const start = Math.min(...times[0], ...trace.events.time);
  const end = Math.max(...times[9], ...trace.events.time);
  return { ...trace, transfers: none.transfers, start, end };
}

// start' = max(inserted, ends' of causes) + the recorded delay after the last of them; memoised recursion.
function slowWhatIf(trace: Trace, className: string, factor: number): number {
  const { times, lane, count } = trace.tasks;
  const rows = Array.from({ length: count }, (_, row) => row);
  const before = (a: number, b: number): boolean =>
    times[6][a] - times[6][b] < 0 ||
    (times[6][a] === times[6][b] &&
      (times[7][a] < times[7][b] || (times[7][a] === times[7][b] && a < b)));
  const throttle = [...trace.events.kind].indexOf(EventKind.throttleBegin);
  const firstFull = throttle < 0 ? Number.POSITIVE_INFINITY : trace.events.time[throttle];
  const causesOf = (row: number): number[] => {
    const previous = rows
      .filter((other) => lane[other] === lane[row] && before(other, row))
      .reduce((best, other) => (best < 0 || before(best, other) ? other : best), -1);
    const all = [...slowPredecessors(trace, row), ...(previous >= 0 ? [previous] : [])];
    return all.filter((other) => times[7][other] <= times[6][row] && before(other, row));
  };
  // Waited for memory: the task that retired last on the device before the memory was granted.
  const retirementOf = (row: number): number[] => {
    const [ready, alloc] = [times[1][row], times[2][row]];
    const retired = rows
      .filter((other) => trace.tasks.space[other] === trace.tasks.space[row])
      .filter((other) => times[9][other] <= alloc)
      .reduce((best, other) => (best < 0 || times[9][other] >= times[9][best] ? other : best), -1);
    const counts = alloc > ready && retired >= 0 && retired !== row && times[9][retired] > ready;
    return counts && times[9][retired] <= times[6][row] && before(retired, row) ? [retired] : [];
  };
  const tail = (row: number): number => times[9][row] - times[7][row];
  const known = new Map<number, number>();
  const endOf = (row: number): number => {
    if (known.has(row)) return known.get(row)!;
    const causes = causesOf(row);
    const inserted = times[0][row] > firstFull ? trace.start : times[0][row];
    const freed = retirementOf(row);
    const recorded = Math.max(
      inserted,
      ...causes.map((cause) => times[7][cause]),
      ...freed.map((cause) => times[9][cause]),
    );
    const from = Math.max(
      inserted,
      ...causes.map(endOf),
      ...freed.map((cause) => endOf(cause) + tail(cause)),
    );
    const speed = trace.classes[trace.tasks.taskClass[row]].name === className ? factor : 1;
    const end = from + (times[6][row] - recorded) + (times[7][row] - times[6][row]) / speed;
    known.set(row, end);
    return end;
  };
  const last = Math.max(...rows.map((row) => times[9][row]));
  return Math.max(...rows.map((row) => endOf(row) + tail(row))) - trace.start + trace.end - last;
}

test('a cause never ends after the beginning of its effect', () => {
  fc.assert(
    fc.property(randomTrace, (trace) => {
      const causes = new Causes(trace, new Waits(trace));
      for (let node = 0; node < causes.count; node++) {
        causes.forEach(node, (_kind, _cause, moment) => {
          expect(moment).toBeLessThanOrEqual(causes.start[node]);
        });
      }
    }),
  );
});

test('a difference by class, lane, reason and option', () => {
  const run = (gemm: number, options: Record<string, unknown>): Trace =>
    traced((recorder) => {
      recorder.taskClass(0, 'gemm');
      recorder.taskClass(1, options.extra ? 'extra' : 'other');
      task(recorder, 0, 0, { start: 10, end: 10 + gemm });
      task(recorder, 1, 1, { start: 0, end: 5 }, { taskClass: 1 });
    }, testHeader({ options }));
  const diff = diffSummaries(
    summarize(run(100, { tile: 256 })),
    summarize(run(40, { tile: 128, extra: true })),
  );
  expect(diff.makespan).toEqual({ name: 'makespan', a: 110, b: 50, change: -60 });
  expect(diff.classTotal).toEqual([
    { name: 'gemm', a: 100, b: 40, change: -60 },
    { name: 'other', a: 5, b: 0, change: -5 },
    { name: 'extra', a: 0, b: 5, change: 5 },
  ]);
  expect(diff.lanes[0]).toEqual({ name: 'worker 0', a: 100, b: 40, change: -60 });
  // Worker 1 and the GPU idle 60 ns less each.
  expect(diff.idle[0]).toEqual({ name: 'noTask', a: 105, b: 45, change: -60 });
  expect(diff.options).toEqual([
    { name: 'extra', a: '-', b: 'true' },
    { name: 'tile', a: '256', b: '128' },
  ]);
});
