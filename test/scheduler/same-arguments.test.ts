// The comparison of arguments: compiled functions and those that look the names up agree.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Datum } from '../../scheduler/program/datum.js';
import { read, task, write } from '../../scheduler/program/task-class.js';
import { byName, CLOSED, sameArguments } from '../../scheduler/recognition/same-arguments.js';

const flows = { out: write('f64'), 'a "b"\n': read('f64'), constructor: read('f64') } as const;
const cls = task({
  name: 'compared',
  flows,
  params: { n: 'i32', 'x-y': 'f64' },
  kernel: 'empty',
});
const data = Array.from({ length: 4 }, (_, row) => ({ row, token: {} }) as unknown as Datum);
const closed = { row: 4, token: undefined } as unknown as Datum;

test('compiled functions say the same as those that look the names up', () => {
  const value = fc.constantFrom<unknown>(0, -0, 1, NaN, true, '1', undefined);
  const args = fc.record({
    data: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 3, maxLength: 3 }),
    values: fc.array(value, { minLength: 2, maxLength: 2 }),
    left: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined }),
  });
  fc.assert(
    fc.property(
      args,
      fc.array(fc.constantFrom(0, -0, 1, NaN, true), { minLength: 3, maxLength: 3 }),
      fc.array(fc.constantFrom(CLOSED, 1), { minLength: 3, maxLength: 3 }),
      fc.nat({ max: 1 }),
      fc.boolean(),
      (given, values, open, at, isClosed) => {
        const names = [...cls.flowNames, ...cls.paramNames];
        const all: unknown[] = [...given.data.map((d) => data[d] ?? closed), ...given.values];
        const expected = {
          data: isClosed ? [...data.slice(0, 3), closed] : data,
          given: values,
          open: Uint8Array.from(open),
        };
        const pairs = names.flatMap((name, i) => (i === given.left ? [] : [[name, all[i]]]));
        const named = Object.fromEntries(pairs) as Record<string, unknown>;
        const outcomes = [sameArguments(cls), byName(cls)].map((same) => {
          const taken: unknown[] = [];
          const take = (one: unknown, place: number): boolean => {
            taken.push([one, place]);
            return one !== undefined;
          };
          const isSame = same.all(named, expected, at, at, take);
          return [isSame, same.parameters(named, expected, at, at, take), taken];
        });
        expect(outcomes[0]).toEqual(outcomes[1]);
      },
    ),
  );
});

test('the arguments of the right places are the same', () => {
  const [one, two, three] = data.slice(1);
  const named = { out: one, 'a "b"\n': two, constructor: three, n: 3, 'x-y': 0.5 };
  for (const same of [sameArguments(cls), byName(cls)]) {
    const taken: unknown[] = [];
    const take = (value: unknown, place: number): boolean => taken.push([value, place]) > 0;
    const expected = { data, given: [7, 3, 0.5], open: Uint8Array.of(0, CLOSED, 1) };
    expect(same.all(named, expected, 0, 1, take)).toBe(false);
    expect(taken).toEqual([]);
    expect(same.all(named, expected, 1, 1, take)).toBe(true);
    expect(taken).toEqual([[0.5, 2]]);
    const others = { ...expected, given: [3, 0.25], open: Uint8Array.of(CLOSED, CLOSED) };
    expect(same.all(named, others, 1, 0, take)).toBe(false);
    expect(same.parameters(named, others, 1, 0, take)).toBe(false);
    expect(same.parameters(named, expected, 0, 1, take)).toBe(true);
  }
});

test('a datum that was closed is not the same', () => {
  const [, one, two] = data;
  const named = { out: one, 'a "b"\n': two, constructor: closed, n: 3, 'x-y': 0.5 };
  const expected = { data: [one, two, closed], given: [3, 0.5], open: Uint8Array.of(0, 0) };
  for (const same of [sameArguments(cls), byName(cls)]) {
    expect(same.all(named, expected, 0, 0, () => true)).toBe(false);
    expect(same.parameters(named, expected, 0, 0, () => true)).toBe(true);
  }
});
