// Kernel times and stage times per task class, and the slowest tasks.
import { group } from '../columns.js';
import { TaskFlag, TaskTime } from '../format.js';
import { laneName, type Trace, taskName } from '../trace.js';

/** Distribution of some times in nanoseconds. Percentiles by nearest rank. */
export interface Distribution {
  readonly count: number;
  readonly total: number;
  readonly mean: number;
  readonly minimum: number;
  readonly p50: number;
  readonly p99: number;
  readonly maximum: number;
}

/** A task class: kernel times, and the mean time its tasks spent in each stage. */
export interface ClassUse extends Distribution {
  readonly name: string;
  readonly failed: number;
  readonly cancelled: number;
  /** Mean nanoseconds from inserted to ready, and in each stage; `queue` is from issued to running. */
  readonly stages: {
    readonly dependencies: number;
    readonly alloc: number;
    readonly stageIn: number;
    readonly commIn: number;
    readonly issue: number;
    readonly queue: number;
    readonly exec: number;
    readonly stageOut: number;
    readonly finalize: number;
  };
}

/** One remarkable task. */
export interface TaskUse {
  readonly task: string;
  readonly id: number;
  readonly rank: number;
  readonly lane: string;
  /** Nanoseconds from the start of the trace. */
  readonly start: number;
  readonly nanoseconds: number;
}

/** The value at fraction `p` of sorted values by nearest rank: the smallest with at least p of all at or below. */
export function percentile(sorted: Float64Array, p: number): number {
  if (sorted.length === 0) return 0;
  return sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)];
}

/** Sorts `values` in place and describes them. */
export function distribution(values: Float64Array): Distribution {
  values.sort();
  const total = values.reduce((sum, value) => sum + value, 0);
  return {
    count: values.length,
    total,
    mean: values.length > 0 ? total / values.length : 0,
    minimum: values.length > 0 ? values[0] : 0,
    p50: percentile(values, 0.5),
    p99: percentile(values, 0.99),
    maximum: values.length > 0 ? values[values.length - 1] : 0,
  };
}

const stageNames = [
  'dependencies',
  'alloc',
  'stageIn',
  'commIn',
  'issue',
  'queue',
  'exec',
  'stageOut',
  'finalize',
] as const;

/** All classes with tasks, most kernel time first. */
export function classUse(trace: Trace): ClassUse[] {
  const { tasks } = trace;
  const rows = Int32Array.from({ length: tasks.count }, (_, row) => row);
  const lists = group(trace.classes.length, tasks.taskClass, rows);
  const uses: ClassUse[] = [];
  trace.classes.forEach((taskClass, index) => {
    const members = lists.items.subarray(lists.start[index], lists.start[index + 1]);
    if (members.length === 0) return;
    const durations = new Float64Array(members.length);
    const sums = new Float64Array(stageNames.length);
    let failed = 0;
    let cancelled = 0;
    members.forEach((row, i) => {
      for (let s = 0; s < sums.length; s++)
        sums[s] += tasks.times[s + 1][row] - tasks.times[s][row];
      durations[i] = tasks.times[TaskTime.execEnd][row] - tasks.times[TaskTime.execStart][row];
      if (tasks.flags[row] & TaskFlag.failed) failed++;
      if (tasks.flags[row] & TaskFlag.cancelled) cancelled++;
    });
    uses.push({
      name: taskClass.name,
      ...distribution(durations),
      failed,
      cancelled,
      stages: Object.fromEntries(
        stageNames.map((name, s) => [name, sums[s] / members.length]),
      ) as ClassUse['stages'],
    });
  });
  return uses.sort((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1));
}

/** The `count` tasks with the longest kernels, longest first; equal ones in the order they ran. */
export function slowestTasks(trace: Trace, count = 10): TaskUse[] {
  const starts = trace.tasks.times[TaskTime.execStart];
  const ends = trace.tasks.times[TaskTime.execEnd];
  const slower = (a: number, b: number): number =>
    ends[b] - starts[b] - (ends[a] - starts[a]) || starts[a] - starts[b] || a - b;
  const top: number[] = [];
  for (let row = 0; row < trace.tasks.count; row++) {
    if (top.length === count && slower(top[count - 1], row) < 0) continue;
    top.push(row);
    top.sort(slower);
    if (top.length > count) top.pop();
  }
  return top.map((row) => ({
    task: taskName(trace, row),
    id: trace.tasks.id[row],
    rank: trace.tasks.rank[row],
    lane: laneName(trace, trace.tasks.lane[row]),
    start: starts[row] - trace.start,
    nanoseconds: ends[row] - starts[row],
  }));
}

/** Nanoseconds from ready to running over all tasks. */
export function startLatency(trace: Trace): Distribution {
  const ready = trace.tasks.times[TaskTime.ready];
  const starts = trace.tasks.times[TaskTime.execStart];
  return distribution(starts.map((start, row) => start - ready[row]));
}
