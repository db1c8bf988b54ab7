// Tasks that share a record must read like tasks with a record each. The same holds for records of format 1.1, in which
// a task and its data shared one.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  encodeHeader,
  loadTrace,
  NONE,
  RecordKind,
  TaskTime,
  TraceReader,
  type TraceRecorder,
  UNIT,
} from '../../trace/index.js';
import { record, testHeader } from './support.js';

/** Tasks with one class, lane, and times of insertion, readiness, issue and end. */
interface Group {
  readonly modes: readonly number[];
  readonly parameters: number;
  readonly isReleased: boolean;
  readonly inserted: number;
  readonly ready: number;
  readonly issued: number;
  readonly finalized: number;
  readonly tasks: readonly {
    readonly id: number;
    readonly by: number;
    readonly start: number;
    readonly end: number;
    readonly data: readonly number[];
    readonly parameters: readonly number[];
  }[];
}

/** Everything a reader is told, in order. */
function told(bytes: Uint8Array): unknown[] {
  const all: unknown[] = [];
  const outcome = TraceReader.from(bytes).read({
    task: (task) => all.push({ ...task, times: [...task.times] }),
    accesses: ({ task, modes, values, count }) =>
      all.push({ task, modes, data: [...values.slice(0, count)] }),
    parameters: ({ task, values, count }) =>
      all.push({ task, parameters: [...values.slice(0, count)] }),
  });
  expect(outcome).toMatchObject({ complete: true, problems: [], skipped: 0 });
  return all;
}

const COMMON = { taskClass: 3, device: 1, lane: 2, flags: 6 };

function oneByOne(recorder: TraceRecorder, groups: readonly Group[]): void {
  for (const { modes, isReleased, inserted, ready, issued, finalized, tasks } of groups) {
    for (const { id, by, start, end, data, parameters } of tasks) {
      const times = new Float64Array(TaskTime.count);
      times[TaskTime.inserted] = inserted;
      times[TaskTime.ready] = ready;
      times[TaskTime.issued] = issued;
      times[TaskTime.execStart] = start;
      times[TaskTime.execEnd] = end;
      times[TaskTime.stageOut] = finalized;
      times[TaskTime.finalized] = finalized;
      recorder.taskRow({ id, ...COMMON, releasedBy: isReleased ? by : NONE }, times, 0);
      recorder.accesses(id, Int32Array.from(data), 0, modes);
      if (parameters.length > 0) recorder.parameters(id, parameters);
    }
  }
}

function together(recorder: TraceRecorder, groups: readonly Group[]): void {
  for (const group of groups) {
    const { modes, parameters, isReleased, inserted, ready, issued, finalized, tasks } = group;
    const most = recorder.roomForGroup(isReleased, modes.length, parameters);
    for (let from = 0; from < tasks.length; from += most) {
      const part = tasks.slice(from, from + most);
      // There may be room for more than come.
      const room = Math.min(most, part.length + 3);
      let w = recorder.openGroup(
        { ...COMMON, modes, parameters, isReleased, inserted, ready, issued, finalized },
        room,
      );
      for (const task of part) {
        recorder.words[w++] = task.id;
        if (isReleased) recorder.words[w++] = task.by;
        recorder.words[w++] = task.start - Math.floor(inserted);
        recorder.words[w++] = task.end - Math.floor(inserted);
        for (const datum of task.data) recorder.words[w++] = datum;
        for (const value of task.parameters) recorder.words[w++] = value;
      }
      recorder.closeGroup(part.length, w);
    }
  }
}

const step = fc.double({ min: 0, max: 1e9, noNaN: true });
const group = fc
  .record({
    modes: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 6 }),
    parameters: fc.nat(6),
    isReleased: fc.boolean(),
    steps: fc.tuple(step, step, step, step),
    count: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 600 })),
    seed: fc.nat(),
  })
  .map(({ modes, parameters, isReleased, steps, count, seed }): Group => {
    let state = seed;
    const random = (below: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const inserted = 1000 + steps[0];
    const ready = inserted + steps[1];
    const issued = ready + steps[2];
    const finalized = issued + steps[3];
    return {
      modes,
      parameters,
      isReleased,
      inserted,
      ready,
      issued,
      finalized,
      tasks: Array.from({ length: count }, () => {
        // Perhaps before `ready` and `issued`: the engine read its clock late.
        const start = inserted + random(finalized - inserted);
        return {
          id: random(2 ** 32),
          by: random(2 ** 32),
          start,
          end: start + random(finalized - start),
          data: modes.map(() => random(2 ** 31)),
          parameters: Array.from({ length: parameters }, () => random(2 ** 32) - 2 ** 31 + 0.5),
        };
      }),
    };
  });

test('whatever the tasks are', () => {
  fc.assert(
    fc.property(fc.array(group, { maxLength: 5 }), (groups) => {
      expect(told(record((r) => together(r, groups)))).toEqual(
        told(record((r) => oneByOne(r, groups))),
      );
    }),
    { numRuns: 200 },
  );
});

const plain = (count: number, modes: readonly number[]): Group => ({
  modes,
  parameters: 0,
  isReleased: false,
  inserted: 1000,
  ready: 1000,
  issued: 1100,
  finalized: 5000,
  tasks: Array.from({ length: count }, (_, i) => ({
    id: i,
    by: 0,
    start: 1200 + i,
    end: 1300 + i,
    data: modes.map((_, k) => k),
    parameters: [],
  })),
});

test('a task takes two units with up to five data, each more in its record 12 bytes and 4 per datum', () => {
  const units = (count: number, modes: readonly number[]): number =>
    (record((r) => together(r, [plain(count, modes)])).length - record(() => {}).length) / UNIT;
  expect([units(1, []), units(1, [1]), units(1, [3, 1, 1, 2, 1])]).toEqual([2, 2, 2]);
  expect(units(128, [2])).toBe(1 + (128 * 16) / UNIT);
  expect(units(64, [2, 1, 1, 1])).toBe(1 + (64 * 28) / UNIT);
});

test('a trace cut inside a group gives the tasks of the groups before', () => {
  const header = encodeHeader(testHeader()).length;
  const bytes = record((r) => together(r, [plain(100, [1]), plain(50, [1])]));
  const first = header + 32 + 100 * 16;
  for (const [length, tasks] of [
    [first - 1, 0],
    [first, 100],
    [first + UNIT, 100],
    [first + 32 + 50 * 16, 150],
  ]) {
    const trace = loadTrace(bytes.subarray(0, length));
    expect(trace.tasks.count).toBe(tasks);
    expect(trace.problems.join()).toMatch(/cut off/);
  }
});

test('a group that cannot hold the tasks it claims ends the trace there', () => {
  const header = encodeHeader(testHeader()).length;
  const bytes = record((r) => together(r, [plain(10, [1]), plain(10, [1])]));
  const second = header + 32 + 10 * 16;
  for (const count of [0, 11, 255]) {
    const damaged = bytes.slice();
    damaged[second + 8] = count;
    const trace = loadTrace(damaged);
    expect(trace.tasks.count).toBe(10);
    expect(trace.problems.join()).toMatch(/damaged from unit 6 on/);
  }
});

test('records of format 1.1 are read: a task with its data', () => {
  const bytes = record((r) =>
    oneByOne(r, [{ ...plain(1, [2, 1, 3]), isReleased: true, ready: 1050 }]),
  );
  const header = encodeHeader(testHeader()).length;
  const old = bytes.slice(0, header + 3 * UNIT);
  old.fill(0, header);
  const view = new DataView(old.buffer, header);
  view.setUint8(0, RecordKind.residentTask);
  view.setUint8(1, 2);
  view.setUint16(2, 3, true);
  view.setUint8(4, 1);
  view.setUint8(5, 2);
  view.setUint16(6, 6, true);
  view.setUint32(8, 0, true);
  view.setUint32(12, 0, true);
  view.setFloat64(16, 1000, true);
  for (const [i, time] of [50, 100, 200, 300, 4000].entries())
    view.setUint32(24 + 4 * i, time, true);
  view.setUint16(44, (3 << 12) | 2 | (1 << 2) | (3 << 4), true);
  for (let datum = 0; datum < 3; datum++) view.setUint32(48 + 4 * datum, datum, true);
  view.setUint8(64, RecordKind.end);
  view.setUint8(65, 1);
  view.setFloat64(72, 1, true);
  view.setFloat64(88, 3, true);
  expect(told(old)).toEqual(told(bytes));
});
