// Traces of programs that play plans, and what their records say of each task.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Runtime } from '../../index.js';
import {
  datumName,
  laneName,
  loadTrace,
  playedAs,
  spaceName,
  TaskTime,
  type Trace,
  taskName,
} from '../../trace/index.js';
import { programOrder } from '../../trace/program-order.js';

/** The trace of what `program` does with a runtime. */
export async function tracedWith(
  open: (trace: string) => Promise<Runtime> | Runtime,
  program: (runtime: Runtime) => Promise<unknown>,
): Promise<Trace> {
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-plays-'));
  try {
    const file = path.join(folder, 'play.hrtrace');
    const runtime = await open(file);
    try {
      await program(runtime);
    } finally {
      await runtime.close();
    }
    return loadTrace(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Every task by class, parameters and data, and with its device if that is wanted; sorted. */
export function taskTexts(trace: Trace, withDevice = false): string[] {
  const { tasks, classes } = trace;
  return Array.from({ length: tasks.count }, (_, row) => {
    const { parameters: p, accesses: a } = tasks;
    const params = p.items.subarray(p.start[row], p.start[row + 1]).join();
    const data = Array.from(
      { length: a.start[row + 1] - a.start[row] },
      (_unused, i) =>
        `${datumName(trace, a.items[a.start[row] + i])}:${tasks.accessModes[a.start[row] + i]}`,
    );
    const device = withDevice ? ` on ${spaceName(trace, tasks.space[row])}` : '';
    return `${classes[tasks.taskClass[row]].name}(${params}) ${data.join()}${device}`;
  }).sort();
}

/**
 * Tasks that began before one had ended that they follow: it wrote what they read, or works in the same memory. A writer
 * may begin while a copy elsewhere is still read.
 */
export function overlaps(trace: Trace): string[] {
  const { tasks } = trace;
  const { start, items } = tasks.predecessors;
  const found: string[] = [];
  const lastWriter = new Map<number, number>();
  for (const row of programOrder(tasks, trace.plays)) {
    const writers = usesOf(trace, row, 1).map((d) => lastWriter.get(d));
    for (const before of items.subarray(start[row], start[row + 1])) {
      const ended = tasks.times[TaskTime.execEnd][before];
      const began = tasks.times[TaskTime.execStart][row];
      const isOrdered = tasks.space[row] === tasks.space[before] || writers.includes(before);
      if (isOrdered && began < ended)
        found.push(
          `${taskName(trace, row)} on ${laneName(trace, tasks.lane[row])} at ${began}, ` +
            `${taskName(trace, before)} on ${laneName(trace, tasks.lane[before])} until ${ended}`,
        );
    }
    for (const d of usesOf(trace, row, 2)) lastWriter.set(d, row);
  }
  return found;
}

function usesOf({ tasks }: Trace, row: number, mode: number): number[] {
  const { start, items } = tasks.accesses;
  return [...items.subarray(start[row], start[row + 1])].filter(
    (_, i) => tasks.accessModes[start[row] + i] & mode,
  );
}

/** Number of recorded tasks per iteration of each plan, in the order of the records. */
export function playedIterations(trace: Trace): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (let row = 0; row < trace.tasks.count; row++) {
    const played = playedAs(trace, row);
    if (played === undefined) continue;
    const counts = found.get(played.plan) ?? [];
    found.set(played.plan, counts);
    counts[played.iteration] = (counts[played.iteration] ?? 0) + 1;
  }
  return found;
}
