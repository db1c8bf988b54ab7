// The ready queue against sorting: highest priority first, program order among equals, ids that wrap.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReadyQueue } from '../../scheduler/engine/ready-queue.js';
import { taskId } from '../support/handles.js';

describe('ready queue', () => {
  it('pops as a stable sort by priority would, whatever comes in between', () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ priority: fc.constantFrom(0, 0, 0, 1, 2, -1, -7, 2 ** 30, -(2 ** 30)) }),
        fc.constant('pop' as const),
      ),
      { maxLength: 200, size: 'max' },
    );
    const starts = fc.constantFrom(1, 2 ** 31 - 20, -50);
    fc.assert(
      fc.property(steps, starts, (program, start) => {
        const queue = new ReadyQueue(1024);
        let waiting: { id: number; priority: number; order: number }[] = [];
        let order = 0;
        for (const step of program) {
          if (step === 'pop') {
            if (waiting.length === 0) continue;
            const best = waiting.reduce((a, b) =>
              b.priority > a.priority || (b.priority === a.priority && b.order < a.order) ? b : a,
            );
            expect(queue.pop()).toBe(best.id);
            waiting = waiting.filter((task) => task !== best);
          } else {
            const id = (start + order) | 0;
            queue.push(taskId(id), step.priority);
            waiting.push({ id, priority: step.priority, order: order++ });
          }
          expect(queue.length).toBe(waiting.length);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('orders equal priorities by program order, not by the order in which they became ready', () => {
    for (const priority of [0, 4]) {
      const queue = new ReadyQueue(1024);
      for (const id of [9, 3, 7, 1, 5]) queue.push(taskId(id), priority);
      expect(Array.from({ length: 5 }, () => queue.pop())).toEqual([1, 3, 5, 7, 9]);
    }
  });
});
