// The differences between two traces: by class, lane, reason of idle time, and direction of transfers.
import type { LaneUse } from './lanes.js';
import type { TraceSummary } from './summary.js';
import { idleReasons } from './waits.js';

/** A quantity in both traces. If it does not exist on a side, it counts as 0 there. */
export interface Change {
  readonly name: string;
  readonly a: number;
  readonly b: number;
  /** b - a. */
  readonly change: number;
}

/** All changes; lists are sorted by the size of the change, largest first. */
export interface TraceDiff {
  readonly makespan: Change;
  readonly efficiency: Change;
  readonly criticalPath: Change;
  readonly tasks: Change;
  /** Kernel nanoseconds per class, tasks per class, and mean kernel nanoseconds per class. */
  readonly classTotal: readonly Change[];
  readonly classCount: readonly Change[];
  readonly classMean: readonly Change[];
  /** Busy nanoseconds per execution lane in use. */
  readonly lanes: readonly Change[];
  /** Idle nanoseconds per reason, over the execution lanes in use, as in the summaries. */
  readonly idle: readonly Change[];
  /** Bytes per kind of transfer. */
  readonly bytes: readonly Change[];
  readonly evictions: Change;
  readonly spills: Change;
  /** High-water bytes per memory space. */
  readonly memory: readonly Change[];
  /** Options of the runs that differ, as JSON text. */
  readonly options: readonly { readonly name: string; readonly a: string; readonly b: string }[];
}

/** Compares two summaries. */
export function diffSummaries(a: TraceSummary, b: TraceSummary): TraceDiff {
  return {
    makespan: change('makespan', a.makespan, b.makespan),
    efficiency: change('efficiency', a.bounds.efficiency, b.bounds.efficiency),
    criticalPath: change('criticalPath', a.bounds.criticalPath, b.bounds.criticalPath),
    tasks: change('tasks', a.tasks, b.tasks),
    classTotal: changes(a.classes, b.classes, 'name', (use) => use.total),
    classCount: changes(a.classes, b.classes, 'name', (use) => use.count),
    classMean: changes(a.classes, b.classes, 'name', (use) => use.mean),
    lanes: changes(a.lanes.filter(isUsed), b.lanes.filter(isUsed), 'lane', (use) => use.busy),
    idle: sorted(idleReasons.map((reason) => change(reason, a.idle[reason], b.idle[reason]))),
    bytes: sorted(
      [...new Set([...Object.keys(a.traffic.bytes), ...Object.keys(b.traffic.bytes)])].map((kind) =>
        change(kind, a.traffic.bytes[kind] ?? 0, b.traffic.bytes[kind] ?? 0),
      ),
    ),
    evictions: change('evictions', a.traffic.evictions.count, b.traffic.evictions.count),
    spills: change('spills', a.traffic.spills.count, b.traffic.spills.count),
    memory: changes(a.memory, b.memory, 'space', (use) => use.highWater),
    options: optionChanges(a.options, b.options),
  };
}

function isUsed({ used }: LaneUse): boolean {
  return used;
}

function change(name: string, a: number, b: number): Change {
  return { name, a, b, change: b - a };
}

function changes<K extends string, T extends { readonly [key in K]: string }>(
  a: readonly T[],
  b: readonly T[],
  key: K,
  value: (item: T) => number,
): Change[] {
  const inA = new Map(a.map((item) => [item[key] as string, value(item)]));
  const inB = new Map(b.map((item) => [item[key] as string, value(item)]));
  const names = new Set([...inA.keys(), ...inB.keys()]);
  return sorted([...names].map((name) => change(name, inA.get(name) ?? 0, inB.get(name) ?? 0)));
}

function sorted(list: Change[]): Change[] {
  return list.sort((x, y) => Math.abs(y.change) - Math.abs(x.change));
}

function optionChanges(
  a: Readonly<Record<string, unknown>>,
  b: Readonly<Record<string, unknown>>,
): TraceDiff['options'] {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
  return names
    .map((name) => ({ name, a: JSON.stringify(a[name]) ?? '-', b: JSON.stringify(b[name]) ?? '-' }))
    .filter((option) => option.a !== option.b);
}
