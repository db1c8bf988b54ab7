// A graph that cannot go on: which tasks wait for which inputs.

import { HeadraceError } from '../../devices/errors.js';
import type { GraphClass } from './graph-class.js';
import type { WaitingTasks } from './waiting-tasks.js';

/** Tasks that the message names. */
const MOST_NAMED = 10;

/**
 * The error of a graph of which nothing is ready, if tasks are left. `known` and `inserted` are numbers of tasks by class.
 * @internal
 */
export function standstill(
  classes: readonly GraphClass[],
  waiting: WaitingTasks,
  known: readonly number[],
  inserted: readonly number[],
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
    const unreached = known[cls.number] - inserted[cls.number] - left[cls.number];
    if (cls.hasStarts || unreached <= 0) continue;
    count += unreached;
    lines.push(`  ${unreached} of ${known[cls.number]} tasks of '${cls.name}' got no input`);
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
