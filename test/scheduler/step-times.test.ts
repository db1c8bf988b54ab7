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

test('a result that is not asked for again does not hold later numbers', () => {
  const begin = (2 ** 31 - 20) | 0;
  for (const asks of [false, true]) {
    const steps = new StepTimes(NUMBERS);
    if (asks) {
      steps.begin(0, 5, 0);
      steps.find(0);
    }
    // Four numbers a step, of which the last four steps may be asked for.
    for (let i = 0; i < 8; i++)
      steps.begin((begin + 4 * i) | 0, 10 * i + 10, (begin + 4 * (i - 3)) | 0);
    for (const n of [18, 22, 30]) {
      steps.find((begin + n) | 0);
      expect(steps.time).toBe(10 * Math.floor(n / 4) + 10);
    }
  }
});
