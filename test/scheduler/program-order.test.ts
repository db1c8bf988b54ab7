// A set of ids in program order, compared with sorting: windows of all sizes, ids that wrap, and ids that leave the
// window.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ProgramOrder } from '../../scheduler/engine/program-order.js';
import { taskId } from '../support/handles.js';

describe('program order', () => {
  it.each([4, 32, 64, 1024, 4096, 2 ** 16])(
    'gives ids of a window of %i back in order',
    (window) => {
      const moves = fc.array(
        fc.oneof(fc.record({ ahead: fc.nat(window - 1) }), fc.constant('take' as const)),
        { maxLength: 300, size: 'max' },
      );
      fc.assert(
        fc.property(moves, fc.constantFrom(0, 2 ** 31 - 40, -7), (steps, start) => {
          const set = new ProgramOrder(window);
          const model = new Set<number>();
          // The window begins at the oldest id that is in the set, or moves on when it is empty.
          let head = start;
          for (const step of steps) {
            if (step === 'take') {
              if (model.size === 0) continue;
              const first = [...model].reduce((a, b) => (((a - b) | 0) < 0 ? a : b));
              expect(set.takeFirst()).toBe(first);
              model.delete(first);
              head = (first + 1) | 0;
            } else {
              const id = (head + step.ahead) | 0;
              if (model.has(id)) continue;
              const first = [...model].reduce((a, b) => (((a - b) | 0) < 0 ? a : b), id);
              if (((id - first) | 0) >= window) continue;
              set.add(taskId(id));
              model.add(id);
            }
            expect(set.length).toBe(model.size);
          }
        }),
        { numRuns: 200 },
      );
    },
  );

  it('drops ids that a new one leaves behind by a window: their rows were given back', () => {
    const set = new ProgramOrder(64);
    for (const id of [10, 12, 70]) set.add(taskId(id));
    set.add(taskId(10 + 64));
    expect(Array.from({ length: set.length }, () => set.takeFirst())).toEqual([12, 70, 74]);
    set.add(taskId(5));
    set.add(taskId(1000));
    expect([set.length, set.takeFirst()]).toEqual([1, 1000]);
  });
});
