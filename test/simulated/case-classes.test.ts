// The task classes of simulated cases: those that serve all cases keep nothing of the case that made them.
import { expect, test } from 'vitest';
import { CaseClasses } from '../../devices/simulated/cases/classes.js';
import type { CaseTask } from '../../devices/simulated/cases/program.js';
import type { TaskClass } from '../../index.js';
import { collect } from '../support/collect.js';

/** A class for a task, and a mark of the case that made it. */
function made(t: CaseTask): { readonly cls: TaskClass; readonly mark: WeakRef<object> } {
  const behave = (): unknown => undefined;
  return { cls: new CaseClasses(behave).of(t), mark: new WeakRef(behave) };
}

test.each(['script', 'host', 'async'] as const)(
  'a class with a body of kind %s, and its case',
  async (body) => {
    const t = { flows: [[0, 3]], body, us: 1 } as unknown as CaseTask;
    const { cls, mark } = made(t);
    // References that were read in this turn are kept until its end.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    // The body of an asynchronous task acts for its case.
    expect(mark.deref() === undefined).toBe(body !== 'async');
    expect(made(t).cls === cls).toBe(body !== 'async');
  },
);
