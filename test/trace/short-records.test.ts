// A task and its data in one record must read as the two long records do.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TaskTime, TraceReader, type TraceRecorder, UNIT } from '../../trace/index.js';
import { record } from './support.js';

interface Row {
  /** Ten times as the engine has them: zero, stale or later than the start where a batch was late. */
  readonly times: Float64Array;
  readonly data: Int32Array;
  readonly modes: readonly number[];
}

/** Everything a reader is told, in order. */
function told(bytes: Uint8Array): unknown[] {
  const all: unknown[] = [];
  const outcome = TraceReader.from(bytes).read({
    task: (task) => all.push({ ...task, times: [...task.times] }),
    accesses: ({ task, modes, values, count }) =>
      all.push({ task, modes, data: [...values.slice(0, count)] }),
  });
  expect(outcome).toMatchObject({ complete: true, problems: [] });
  return all;
}

function long(recorder: TraceRecorder, rows: readonly Row[]): void {
  rows.forEach(({ data, modes, ...row }, id) => {
    const times = row.times.slice();
    times[TaskTime.stageOut] = times[TaskTime.finalized];
    recorder.taskRow(id, 3, 1, 2, 6, id + 7, times, 0);
    recorder.accesses(id, data, 0, modes);
  });
}

function short(recorder: TraceRecorder, rows: readonly Row[]): void {
  rows.forEach(({ times, data, modes }, id) => {
    // As in the engine, where rows and data lie one after the other.
    const table = new Float64Array(3 * TaskTime.count);
    table.set(times, TaskTime.count);
    const flows = Int32Array.from([-5, ...data, -6]);
    recorder.taskAndData(id, 3, 1, 2, 6, id + 7, table, TaskTime.count, flows, 1, modes);
  });
}

/** A task whose data were there, from steps between its times. */
function resident(steps: readonly number[], modes: readonly number[]): Row {
  const times = new Float64Array(TaskTime.count);
  const at = [1000.25];
  for (const step of steps) at.push(at[at.length - 1] + step);
  const [inserted, ready, issued, execStart, execEnd, finalized] = at;
  times[TaskTime.inserted] = inserted;
  times[TaskTime.ready] = ready;
  times[TaskTime.issued] = issued;
  times[TaskTime.execStart] = execStart;
  times[TaskTime.execEnd] = execEnd;
  times[TaskTime.finalized] = finalized;
  return { times, data: Int32Array.from(modes, (_, i) => 100 + i), modes };
}

const mode = fc.integer({ min: 1, max: 3 });
const residentRow = fc
  .tuple(
    fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 5, maxLength: 5 }),
    fc.array(mode, { maxLength: 6 }),
  )
  .map(([steps, modes]) => resident(steps, modes));
/** Any times whatever, in any order. */
const anyRow = fc
  .tuple(
    fc.array(fc.oneof(fc.constant(0), fc.constant(Number.NaN), fc.double({ min: 900, max: 9e9 })), {
      minLength: TaskTime.count,
      maxLength: TaskTime.count,
    }),
    fc.array(mode, { maxLength: 8 }),
  )
  .map(([times, modes]) => ({
    ...resident([1, 1, 1, 1, 1], modes),
    times: Float64Array.from(times),
  }));
/** Resident, but the batch that issued it read the clock after it had begun. */
const lateRow = fc
  .tuple(residentRow, fc.double({ min: 0, max: 1e6, noNaN: true }))
  .map(([row, late]) => {
    const times = row.times.slice();
    times[TaskTime.issued] = times[TaskTime.execStart] + late;
    return { ...row, times };
  });

test('whatever the times and data are', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(residentRow, lateRow, anyRow), { maxLength: 40 }), (rows) => {
      expect(told(record((r) => short(r, rows)))).toEqual(told(record((r) => long(r, rows))));
    }),
    { numRuns: 300 },
  );
});

test('a task that waited for nothing takes two units with its data, with five data as before', () => {
  const units = (modes: readonly number[]): number =>
    (record((r) => short(r, [resident([1, 2, 3, 4, 5], modes)])).length - record(() => {}).length) /
    UNIT;
  expect([units([]), units([1]), units([3, 1, 1, 2])]).toEqual([2, 2, 2]);
  expect(units([1, 1, 1, 1, 1])).toBe(3);
});

test('a life of more than 4.29 s is kept', () => {
  const rows = [resident([1, 2, 5e9, 4, 5], [1])];
  expect(told(record((r) => short(r, rows)))).toEqual(told(record((r) => long(r, rows))));
});
