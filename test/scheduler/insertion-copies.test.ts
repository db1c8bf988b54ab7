// The copies of the records of insertions on several ranks: an insertion inside an insertion has a copy of its own.
import { expect, it } from 'vitest';
import type { Column, DatumId, TaskHandle } from '../../devices/handles.js';
import type { ProgramInsertion } from '../../scheduler/engine/task-insertion.js';
import { InsertionCopies } from '../../scheduler/ranks/insertion.js';

const record = (flows: readonly number[], params: readonly number[]): ProgramInsertion =>
  ({
    cls: { modes: flows.map(() => 0), paramNames: params.map(String) },
    run: { slot: flows.length },
    flows: Int32Array.from([...flows, 99, 99]) as Column<Int32Array, DatumId>,
    params: Float64Array.from([...params, 99, 99]),
    priority: 3,
    device: 1,
    after: [7 as unknown as TaskHandle],
  }) as never;

it('a copy stays as it is while the record is filled anew and copied again', () => {
  const copies = new InsertionCopies();
  const outer = record([4, 5], [0.5]);
  const first = copies.take(outer);
  outer.flows.fill(1 as never);
  outer.params.fill(1);
  const second = copies.take(record([6, 7], []));
  expect([...first.flows.subarray(0, 2)]).toEqual([4, 5]);
  expect(first.params[0]).toBe(0.5);
  expect([...second.flows.subarray(0, 2)]).toEqual([6, 7]);
  expect(first).toMatchObject({ priority: 3, device: 1, after: undefined });
  copies.giveBack(second);
  first.after = [];
  copies.giveBack(first);
  const third = copies.take(record([8, 9], [2]));
  expect(third).toBe(first);
  expect(third.after).toBeUndefined();
  expect(third.run).toEqual({ slot: 2 });
  expect([third.flows[0], third.flows[1], third.params[0]]).toEqual([8, 9, 2]);
});

it('a copy that was made for a task with fewer data has room for all of a later one', () => {
  const copies = new InsertionCopies();
  copies.giveBack(copies.take(record([4], [])));
  const many = Array.from({ length: 40 }, (_, i) => i);
  const copy = copies.take(record(many, many));
  expect([...copy.flows.subarray(0, 40)]).toEqual(many);
  expect([...copy.params.subarray(0, 40)]).toEqual(many);
});
