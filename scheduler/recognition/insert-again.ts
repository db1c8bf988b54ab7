// Inserts the tasks of an expectation into the graph of a plan.
import { HOST, type TaskHandle } from '../../devices/handles.js';
import { ANY_DEVICE } from '../../stages/task-table.js';
import type { PlanGraph } from '../plans/plan-graph.js';
import { Slot } from '../plans/slot.js';
import type { TaskOptions } from '../program/graph.js';
import type { Expectation } from './expectation.js';

export function insertAgain(graph: PlanGraph, expectation: Expectation): void {
  const { insertions, classes, data, given } = expectation;
  const handles: TaskHandle[] = [];
  let flow = 0;
  let param = 0;
  classes.forEach((cls, n) => {
    const args: Record<string, unknown> = {};
    for (const name of cls.flowNames) args[name] = data[flow++];
    cls.paramNames.forEach((name, i) => {
      const slot = insertions.slot(n, i);
      args[name] = slot === '' ? given[param] : new Slot(slot);
      param++;
    });
    handles.push(graph.insert(cls, args as never, optionsOf(expectation, n, handles)));
  });
}

function optionsOf(
  { insertions, plain }: Expectation,
  n: number,
  handles: readonly TaskHandle[],
): TaskOptions | undefined {
  if (plain[n] === 1) return undefined;
  const device = insertions.deviceOf(n);
  const after = insertions.after.get(n)?.map((before) => handles[before]);
  const rank = insertions.ranks.get(n);
  return {
    priority: insertions.priorityOf(n),
    ...(device === ANY_DEVICE ? {} : { device: device === HOST ? 'host' : device - 1 }),
    ...(rank === undefined ? {} : { rank }),
    ...(after === undefined ? {} : { after }),
  };
}
