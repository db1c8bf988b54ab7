// Lists of element counts: which of them get a number, and which travel with their tasks.
import { expect, test } from 'vitest';
import { KernelLengths } from '../../stages/kernel-lengths.js';

/** A backend that has room for `room` lists, and the lists that it has numbered. */
function backend(room: number) {
  const lists: number[][] = [[]];
  return {
    lists,
    numberLengths: (list: Float64Array) => (lists.length > room ? 0 : lists.push([...list]) - 1),
  };
}

const bytes = Float64Array.from({ length: 40 }, (_, d) => 8 * (d + 1));

test('equal lists have one number, whatever the data; elements are counted, not bytes', () => {
  const { lists, numberLengths } = backend(100);
  const lengths = new KernelLengths({ numberLengths }, Uint8Array.of(1), [8, 4]);
  const sizes = Float64Array.of(80, 80, 16, 80, 16);
  const of = (...flows: number[]) => lengths.numberOf(sizes, Int32Array.of(9, ...flows), 1);
  expect(of(0, 1)).toBe(1);
  expect(of(3, 1)).toBe(1);
  expect(of(0, 2)).toBe(2);
  expect(of(3, 4)).toBe(2);
  expect(of(0, 1)).toBe(1);
  expect(of(2, 0)).toBe(3);
  expect(lists.slice(1)).toEqual([
    [10, 20],
    [10, 4],
    [2, 20],
  ]);
});

test('a class has eight numbered lists; tasks with others have none, before and after', () => {
  const { lists, numberLengths } = backend(100);
  const lengths = new KernelLengths({ numberLengths }, Uint8Array.of(1), [8]);
  for (let round = 0; round < 2; round++)
    for (let d = 0; d < 40; d++)
      expect(lengths.numberOf(bytes, Int32Array.of(d), 0)).toBe(d < 8 ? d + 1 : 0);
  expect(lists).toHaveLength(9);
});

test('without room and without flows there are no numbers', () => {
  const few = backend(1);
  const lengths = new KernelLengths(few, Uint8Array.of(1), [8]);
  expect([0, 1, 0, 1].map((d) => lengths.numberOf(bytes, Int32Array.of(d), 0))).toEqual([
    1, 0, 1, 0,
  ]);
  const none = new KernelLengths(few, Uint8Array.of(1), []);
  expect(none.numberOf(bytes, new Int32Array(0), 0)).toBe(0);
});
