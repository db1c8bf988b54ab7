// The window of live tasks: ids that wrap, rows that are reused, arguments in rings.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TaskStage, TaskTable } from '../../stages/task-table.js';
import { TaskTime } from '../../trace/format.js';
import { datumId, taskId } from '../support/handles.js';

function tableAt(window: number, id: number): TaskTable {
  const table = new TaskTable(window);
  table.head = taskId(id | 0);
  table.next = taskId(id | 0);
  return table;
}

/** Takes a row and marks it as live. */
function take(table: TaskTable, flows = 0, params = 0): number {
  const id = table.take(flows, params);
  table.stage[id & table.mask] = TaskStage.pending;
  return id;
}

describe('task table', () => {
  it('needs a power of two', () => {
    for (const window of [0, 3, 5, 100]) expect(() => new TaskTable(window)).toThrow(RangeError);
  });

  it.each([1, 2 ** 31 - 5, -(2 ** 31), -3])(
    'recognises live and stale ids around id %i',
    (start) => {
      const window = 16;
      const table = tableAt(window, start);
      const ids: number[] = [];
      for (let i = 0; i < 60; i++) {
        while (!table.hasRoom(0, 0)) {
          table.stage[table.head & table.mask] = TaskStage.done;
          table.retireHead();
        }
        ids.push(take(table));
        expect(table.live).toBeLessThanOrEqual(window);
        const oldest = ids.length - table.live;
        ids.forEach((id, n) => {
          expect(table.contains(id)).toBe(n >= oldest);
          if (n >= oldest) expect(table.idOf(id & table.mask)).toBe(id);
        });
        expect(table.contains((ids[ids.length - 1] + 1) | 0)).toBe(false);
        expect(table.contains((table.head - 1) | 0)).toBe(false);
      }
      expect(ids[59]).toBe((start + 59) | 0);
    },
  );

  it('gives rows back in order, however they end', () => {
    const table = tableAt(8, 2 ** 31 - 4);
    const ids = Array.from({ length: 8 }, () => take(table));
    expect(table.hasRoom(0, 0)).toBe(false);
    for (const id of [ids[3], ids[1], ids[2]]) table.stage[id & table.mask] = TaskStage.done;
    table.retireHead();
    expect(table.head).toBe(ids[0]);
    table.stage[ids[0] & table.mask] = TaskStage.done;
    table.retireHead();
    expect(table.head).toBe(ids[4]);
    expect(table.live).toBe(4);
    expect(table.hasRoom(0, 0)).toBe(true);
  });

  it('keeps the arguments of a task together and separate from other tasks', () => {
    const program = fc.array(
      fc.record({
        flows: fc.nat({ max: 200 }),
        params: fc.nat({ max: 200 }),
        end: fc.nat({ max: 20 }),
      }),
      { maxLength: 200, size: 'max' },
    );
    fc.assert(
      fc.property(program, fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), (steps, start) => {
        const table = tableAt(64, start);
        const live: { id: number; flows: number; params: number }[] = [];
        for (const { flows, params, end } of steps) {
          while (!table.hasRoom(flows, params) && live.length > 0) {
            table.stage[(live.shift() as { id: number }).id & table.mask] = TaskStage.done;
            table.retireHead();
          }
          // With nothing live there is always room for a task of the size that is allowed.
          expect(table.hasRoom(flows, params)).toBe(true);
          const id = take(table, flows, params);
          const row = id & table.mask;
          const f = table.flowStart[row];
          const p = table.paramStart[row];
          expect(f + flows).toBeLessThanOrEqual(table.flowDatum.length);
          expect(p + params).toBeLessThanOrEqual(table.params.length);
          for (let i = 0; i < flows; i++) table.flowDatum[f + i] = datumId(id);
          for (let i = 0; i < params; i++) table.params[p + i] = id;
          live.push({ id, flows, params });
          if (end < live.length && end < 4) {
            table.stage[live[0].id & table.mask] = TaskStage.done;
            live.shift();
            table.retireHead();
          }
          for (const task of live) {
            const at = task.id & table.mask;
            const f = table.flowStart[at];
            const p = table.paramStart[at];
            const theirs = table.flowDatum.subarray(f, f + task.flows);
            const values = table.params.subarray(p, p + task.params);
            expect(theirs.every((datum) => datum === task.id)).toBe(true);
            expect(values.every((value) => value === task.id)).toBe(true);
          }
        }
      }),
      { numRuns: 15 },
    );
  });

  it('keeps every live task, its columns and its arguments when rows move to larger tables and back', () => {
    const step = fc.record({
      flows: fc.nat({ max: 1000 }),
      params: fc.nat({ max: 1000 }),
      ends: fc.nat({ max: 12 }),
    });
    const start = fc.constantFrom(1, 2 ** 31 - 20, -(2 ** 31), -7);
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 20, maxLength: 80, size: 'max' }),
        start,
        (steps, first) => {
          const table = tableAt(8, first);
          table.traceTimes();
          const live: { id: number; flows: number; params: number }[] = [];
          for (const [i, { flows, params, ends }] of steps.entries()) {
            table.extend(flows, params);
            const id = take(table, flows, params);
            const row = id & table.mask;
            expect(table.successors[row]).toBe(-1);
            table.priority[row] = i;
            table.since[row] = i + 0.5;
            table.times[row * TaskTime.count + TaskTime.ready] = i;
            table.flowDatum.fill(id, table.flowStart[row], table.flowStart[row] + flows);
            table.params.fill(id, table.paramStart[row], table.paramStart[row] + params);
            live.push({ id, flows, params });
            // The last third ends more than it takes.
            const least = i > (2 * steps.length) / 3 ? 4 : 0;
            for (let n = ends > 8 ? least + ends - 8 : least; n > 0 && live.length > 1; n--) {
              table.stage[(live.shift() as { id: number }).id & table.mask] = TaskStage.done;
              table.retireHead();
            }
            if (table.isExtended && table.shrink()) expect(table.mask).toBe(7);
            for (const task of live) {
              const at = task.id & table.mask;
              const n = (task.id - first) | 0;
              expect(table.idOf(at)).toBe(task.id);
              expect(table.stage[at]).toBe(TaskStage.pending);
              expect([table.priority[at], table.since[at]]).toEqual([n, n + 0.5]);
              expect(table.times[at * TaskTime.count + TaskTime.ready]).toBe(n);
              const f = table.flowStart[at];
              const p = table.paramStart[at];
              const own = (value: number): boolean => value === task.id;
              expect(table.flowDatum.subarray(f, f + task.flows).every(own)).toBe(true);
              expect(table.params.subarray(p, p + task.params).every(own)).toBe(true);
              expect(f + task.flows).toBeLessThanOrEqual(table.flowDatum.length);
              expect(p + task.params).toBeLessThanOrEqual(table.params.length);
            }
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it('takes tasks of the largest size again and again', () => {
    const table = new TaskTable(4);
    for (let i = 0; i < 50; i++) {
      expect(table.hasRoom(table.maxArguments, table.maxArguments)).toBe(true);
      const id = take(table, table.maxArguments, table.maxArguments);
      table.stage[id & table.mask] = TaskStage.done;
      table.retireHead();
    }
  });
});
