// The least-recently-used lists, the first-in-first-out ring and the node pool against plain arrays.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Fifo } from '../../devices/fifo.js';
import type { DatumId } from '../../devices/handles.js';
import { Lru, LruList } from '../../devices/memory/lru.js';
import { NodePool } from '../../devices/node-pool.js';
import { datumId } from '../support/handles.js';

describe('LRU', () => {
  it('keeps the order in which copies were touched, per list', () => {
    const steps = fc.array(
      fc.record({
        datum: fc.nat({ max: 600 }),
        list: fc.constantFrom(LruList.none, LruList.clean, LruList.dirty),
      }),
      { maxLength: 300, size: 'max' },
    );
    fc.assert(
      fc.property(steps, (program) => {
        const lru = new Lru();
        let model: { datum: DatumId; list: number }[] = [];
        for (const { datum, list } of program) {
          model = model.filter((entry) => entry.datum !== datum);
          if (list === LruList.none) lru.remove(datumId(datum));
          else {
            lru.touch(datumId(datum), list);
            model.push({ datum: datumId(datum), list });
          }
          expect(lru.listOf(datumId(datum))).toBe(list);
        }
        for (const list of [LruList.clean, LruList.dirty]) {
          const expected = model.filter((entry) => entry.list === list).map((entry) => entry.datum);
          const found: number[] = [];
          for (let d = lru.oldest(list); d >= 0; d = lru.newer(d)) found.push(d);
          expect(found).toEqual(expected);
          expect(lru.count[list]).toBe(expected.length);
        }
      }),
    );
  });

  it('does not know copies that were never touched', () => {
    const lru = new Lru();
    expect(lru.listOf(datumId(10_000))).toBe(LruList.none);
    lru.remove(datumId(10_000));
    expect(lru.oldest(LruList.clean)).toBe(-1);
  });
});

describe('FIFO', () => {
  it('is an array with push and shift', () => {
    fc.assert(
      fc.property(
        fc.array(fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }))),
        (program) => {
          const fifo = new Fifo(4);
          const model: number[] = [];
          for (const step of program) {
            if (step !== null) {
              fifo.push(step);
              model.push(step);
            } else if (model.length > 0) {
              expect(fifo.peek()).toBe(model[0]);
              expect(fifo.shift()).toBe(model.shift());
            }
            expect(fifo.length).toBe(model.length);
            model.forEach((value, i) => void expect(fifo.at(i)).toBe(value));
          }
        },
      ),
    );
  });
});

describe('node pool', () => {
  it('keeps many short lists apart', () => {
    const steps = fc.array(
      fc.record({
        list: fc.nat({ max: 7 }),
        action: fc.nat({ max: 9 }),
        value: fc.integer({ min: -1000, max: 1000 }),
      }),
      { maxLength: 200, size: 'max' },
    );
    fc.assert(
      fc.property(steps, (program) => {
        const pool = new NodePool(4);
        const heads = new Array<number>(8).fill(-1);
        const model: number[][] = heads.map(() => []);
        for (const { list, action, value } of program) {
          if (action < 6) {
            heads[list] = pool.push(heads[list], value, value * 2);
            model[list].unshift(value);
          } else if (action < 8 && heads[list] >= 0) {
            heads[list] = pool.free(heads[list]);
            model[list].shift();
          } else if (action === 9) {
            heads[list] = pool.freeList(heads[list]);
            model[list] = [];
          }
        }
        heads.forEach((head, list) => {
          const found: number[] = [];
          for (let n = head; n >= 0; n = pool.next[n]) {
            expect(pool.extra[n]).toBe(pool.value[n] * 2);
            found.push(pool.value[n]);
          }
          expect(found).toEqual(model[list]);
        });
        expect(pool.live).toBe(model.flat().length);
      }),
    );
  });
});
