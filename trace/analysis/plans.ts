// What was played of each plan.
import type { Trace } from '../trace.js';

/** The plays of one plan. */
export interface PlanUse {
  readonly plan: string;
  readonly plays: number;
  readonly iterations: number;
  /** Recorded tasks. */
  readonly tasks: number;
}

/** The plays of each plan that have tasks in the trace, in the order of their first play. */
export function planUse({ tasks, plays }: Pick<Trace, 'tasks' | 'plays'>): PlanUse[] {
  const tasksOf = new Uint32Array(plays.count);
  for (let row = 0; row < tasks.count; row++) {
    if (tasks.play[row] >= 0) tasksOf[tasks.play[row]]++;
  }
  const uses = new Map<
    string,
    { plan: string; plays: number; iterations: number; tasks: number }
  >();
  for (let play = 0; play < plays.count; play++) {
    if (tasksOf[play] === 0) continue;
    const plan = plays.plan[play];
    const use = uses.get(plan) ?? { plan, plays: 0, iterations: 0, tasks: 0 };
    uses.set(plan, use);
    // A long play has several records, of which the first may be missing.
    if (plays.iteration[play] === 0 || use.plays === 0) use.plays++;
    use.iterations += plays.iterations[play];
    use.tasks += tasksOf[play];
  }
  return [...uses.values()];
}
