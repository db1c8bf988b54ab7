// Checks what the classes of a small instance say for ranks that look at their own tasks only: the positions of the tasks, the shares of
// the ranks, the data of the flows, and which data go to other ranks.

import { Datum } from '../program/datum.js';
import { AllIndices } from './all-indices.js';
import { FlowEnd, type Indices, type Targets } from './ends.js';
import type { GraphTask } from './graph-task.js';
import type { LocalInputs } from './local-inputs.js';
import { keyOf } from './task-key.js';
import type { Unrolled } from './unrolled.js';

/** The edges of the instance are right; `order` is an order of its tasks. @internal */
export function verifyOrder(
  unrolled: Unrolled,
  order: readonly number[],
  inputs: LocalInputs,
): void {
  checkPositions(unrolled);
  checkShares(unrolled);
  checkData(unrolled, order, inputs);
}

function checkPositions(unrolled: Unrolled): void {
  const { tasks, after } = unrolled;
  const positions = tasks.map(({ cls, indices }) => cls.order?.(indices) as number);
  const known = new Map<number, number>();
  for (const [n, task] of tasks.entries()) {
    const position = positions[n];
    const same = known.get(position);
    if (!Number.isFinite(position))
      unrolled.report('order', `\`order\` of ${task.name} is ${position}, not a finite number`);
    else if (same !== undefined)
      unrolled.report(
        'order',
        `${tasks[same].name} and ${task.name} both have the position ${position}`,
      );
    known.set(position, n);
    // The tasks of a class stand one after the other, in the order of their indices.
    if (n > 0 && tasks[n - 1].cls === task.cls && positions[n - 1] > position)
      unrolled.report(
        'order',
        `${task.name} has the position ${position} and comes behind ${tasks[n - 1].name} with ${positions[n - 1]}`,
      );
    for (const next of after[n])
      if (positions[next] < position)
        unrolled.report(
          'order',
          `${task.name} has the position ${position} and comes before ${tasks[next].name} with ${positions[next]}`,
        );
  }
}

/** The tasks of each rank are in its `own` ranges. */
function checkShares(unrolled: Unrolled): void {
  const { tasks } = unrolled;
  const classes = new Set(tasks.map(({ cls }) => cls));
  const ranks = new Set(tasks.map(({ cls, indices }) => cls.rankOf(indices) as number));
  for (const cls of classes) {
    for (const rank of ranks) {
      const own = cls.own.map((range) => (of: Indices) => range(of, rank));
      const all = new AllIndices(cls.indexNames, own);
      const keys = new Set();
      for (let of = all.next(); of !== undefined; of = all.next())
        if (cls.outside(of) === undefined) keys.add(keyOf(cls.indexNames, of));
      for (const task of tasks)
        if (task.cls === cls && cls.rankOf(task.indices) === rank && !keys.has(task.key))
          unrolled.report(
            'own',
            `${task.name} belongs to rank ${rank} and is not in the ranges of \`own\` for it`,
          );
    }
  }
}

/** Every flow lies in the datum that it says, which the rank of the task owns if it is written, or gets. */
function checkData(unrolled: Unrolled, order: readonly number[], inputs: LocalInputs): void {
  const { tasks } = unrolled;
  const readers = readersOf(unrolled, inputs);
  /** The data in which the flows of each task lie. */
  const lies: (Datum | undefined)[][] = tasks.map(() => []);
  for (const n of order) {
    const task = tasks[n];
    const { cls, indices } = task;
    const rank = cls.rankOf(indices) as number;
    for (const [f, flow] of cls.runs.flowNames.entries()) {
      const what = `'${flow}' of ${task.name}`;
      if (!cls.isWritten[f]) {
        for (const source of task.sourcesOf(f)) {
          if (!(source instanceof Datum) || source.rank === rank) continue;
          if (readers.get(source)?.has(`${n} ${f}`) !== true)
            unrolled.report(
              'datum',
              `${what} reads datum '${source.name}' of another rank, and neither \`inputs\` nor \`share\` says so`,
            );
        }
        continue;
      }
      const [source] = task.sourcesOf(f);
      const datum =
        source instanceof FlowEnd
          ? lies[unrolled.numberOf(source)][source.flow]
          : source instanceof Datum
            ? source
            : undefined;
      lies[n][f] = datum;
      const given = cls.datum[f]?.(indices);
      if (given !== datum)
        unrolled.report(
          'datum',
          `\`datum\` of ${what} is '${given?.name}', but the flow lies in ${datum === undefined ? 'a temporary' : `'${datum.name}'`}`,
        );
      else checkOwner(unrolled, task, datum, what);
    }
    for (const output of unrolled.outputs[n])
      for (const home of output?.homes ?? [])
        checkOwner(unrolled, task, home, `'home' of ${task.name}`);
  }
}

function checkOwner(
  unrolled: Unrolled,
  task: GraphTask,
  datum: Datum | undefined,
  what: string,
): void {
  const rank = task.cls.rankOf(task.indices);
  if (datum === undefined || datum.rank === rank) return;
  unrolled.report(
    'own',
    `${what} is datum '${datum.name}' of rank ${datum.rank}, but the task runs on rank ${rank}`,
  );
}

/** The flows that take each datum as it was before the graph, as the number of the task and that of the flow. */
function readersOf(
  unrolled: Unrolled,
  inputs: LocalInputs,
): Map<Datum, { has(end: string): boolean }> {
  const readers = new Map<Datum, Set<string>>();
  const add = (all: Set<string>, to: Targets): void => {
    if (Array.isArray(to)) for (const one of to) add(all, one as Targets);
    else if (to instanceof FlowEnd) all.add(`${unrolled.numberOf(to)} ${to.flow}`);
  };
  inputs.each((datum, to) => {
    const all = readers.get(datum) ?? new Set<string>();
    readers.set(datum, all);
    add(all, to);
  });
  const everyone = { has: () => true };
  const found = new Map<Datum, { has(end: string): boolean }>(readers);
  for (const datum of inputs.shared) found.set(datum, everyone);
  return found;
}
