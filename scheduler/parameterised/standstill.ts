// A graph that cannot go on: which tasks wait for which inputs.

import { HeadraceError } from '../../devices/errors.js';
import type { GraphClass } from './graph-class.js';
import type { WaitingTasks } from './waiting-tasks.js';

/** Tasks that the message names. */
const MOST_NAMED = 10;

/**
 * The error of a graph of which nothing is ready, if tasks are left. `known` and `inserted` are numbers of tasks by class. With
 * `isChecked` the tasks outside of `starts` are counted, too: without an input they would be left out silently.
 * @internal
 */
export function standstill(
  classes: readonly GraphClass[],
  waiting: WaitingTasks,
  known: readonly number[],
  inserted: readonly number[],
  isChecked: boolean,
): HeadraceError | undefined {
  const lines: string[] = [];
  const left = new Array<number>(classes.length).fill(0);
  let count = 0;
  for (const task of waiting.all()) {
    left[task.cls.number]++;
    if (count++ < MOST_NAMED) {
      const lacking = task.lacking();
      const why =
        lacking.length > 0 ? lacking.join(', ') : 'the readers of a version it overwrites';
      lines.push(`  ${task.name} waits for ${why}`);
    }
  }
  if (count > MOST_NAMED) lines.push(`  and ${count - MOST_NAMED} more`);
  for (const cls of classes) {
    if (cls.hasStarts && !isChecked) continue;
    const all = cls.hasStarts ? tasksOf(cls) : known[cls.number];
    const unreached = all - inserted[cls.number] - left[cls.number];
    if (unreached <= 0) continue;
    count += unreached;
    const where = cls.hasStarts ? ', and are not in its `starts`' : '';
    lines.push(`  ${unreached} of ${all} tasks of '${cls.name}' got no input${where}`);
  }
  if (lines.length === 0) return undefined;
  return new HeadraceError(
    'ERR_GRAPH_STALLED',
    `the graph cannot go on: ${count === 1 ? 'a task lacks' : `${count} tasks lack`} inputs that no task sends`,
    {
      remedy: '`verify` of a small instance names every edge of which an end is missing',
      report: lines.join('\n'),
    },
  );
}

/** Number of tasks in the ranges of a class. */
function tasksOf(cls: GraphClass): number {
  let count = 0;
  for (const _ of cls.tasks()) count++;
  return count;
}
