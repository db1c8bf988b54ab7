// Times shared by many consecutive numbers, against a map from every number to its time.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { StepTimes } from '../../scheduler/reports/step-times.js';

const NUMBERS = 16;

test('every number that may still be asked for has the time of its step, across the wrap of numbers', () => {
  const act = fc.oneof(
    fc.record({ what: fc.constant('begin' as const), numbers: fc.integer({ min: 1, max: 6 }) }),
    fc.record({ what: fc.constant('retire' as const), numbers: fc.integer({ min: 1, max: 8 }) }),
    fc.record({ what: fc.constant('find' as const), numbers: fc.nat(NUMBERS) }),
  );
  const start = fc.constantFrom(1, 0, -3, 2 ** 31 - 20, -(2 ** 31));
  fc.assert(
    fc.property(start, fc.array(act, { maxLength: 120, size: 'max' }), (from, acts) => {
      const steps = new StepTimes(NUMBERS);
      const times = new Map<number, number>();
      let head = from | 0;
      let next = head;
      let clock = 0;
      const live = (): number => (next - head) | 0;
      for (const { what, numbers } of acts) {
        if (what === 'begin') {
          const count = Math.min(numbers, NUMBERS - live());
          if (count === 0) continue;
          clock += 10;
          steps.begin(next, clock, head);
          for (let i = 0; i < count; i++) {
            times.set(next, clock);
            next = (next + 1) | 0;
          }
        } else if (what === 'retire') {
          head = (head + Math.min(numbers, live())) | 0;
        } else if (live() > 0) {
          const n = (head + (numbers % live())) | 0;
          steps.find(n);
          expect(steps.time).toBe(times.get(n));
          // What it says of its neighbours holds as well.
          for (let m = head; m !== next; m = (m + 1) | 0) {
            const isIn = ((m - steps.first) | 0) >= 0 && ((steps.end - m) | 0) > 0;
            expect(isIn).toBe(times.get(m) === steps.time);
          }
        }
      }
    }),
    { numRuns: 500 },
  );
});
