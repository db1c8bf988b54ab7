// A loaded trace: one or more ranks as columns of typed arrays on one time axis. Plain data: `load.ts` builds it,
// the analysis and the exports read it. A row is an index into the columns of its table; -1 means none.
// Lanes, spaces and classes of all ranks share one table each.
import type { Lists } from './columns.js';
import {
  accessModeNames,
  FIRST_PLAYED,
  type LaneKind,
  NO_COORDINATE,
  TaskTime,
  type TraceHeader,
} from './format.js';
import type { ClockRecord, TraceOutcome } from './records.js';

/** One file of the trace. */
export interface TraceRank {
  readonly rank: number;
  readonly name: string;
  readonly header: TraceHeader;
  readonly outcome: TraceOutcome;
  readonly clocks: readonly ClockRecord[];
}

/** An in-order executor of one rank. */
export interface Lane {
  readonly rank: number;
  readonly kind: LaneKind;
  readonly name: string;
  /** Row in `spaces`. */
  readonly space: number;
  /** Source space of a peer lane (row in `spaces`), else -1. */
  readonly peer: number;
}

/** A memory space of one rank. */
export interface Space {
  readonly rank: number;
  readonly index: number;
  readonly kind: string;
  readonly name: string;
  readonly bytes: number;
}

/** A task class; classes of the same name on several ranks are one. */
export interface TaskClass {
  readonly name: string;
  readonly parameterNames: readonly string[];
  /** The parameters tell its tasks apart: gemm(4, 3, 2). */
  readonly namedByParameters: boolean;
}

/** Retired tasks in the order of their records, rank by rank. */
export interface TaskColumns {
  readonly count: number;
  readonly id: Uint32Array;
  readonly rank: Uint16Array;
  readonly taskClass: Uint16Array;
  /** Row in `spaces`, or `NO_ROW`. */
  readonly space: Uint16Array;
  /** Row in `lanes`, or `NO_ROW`. */
  readonly lane: Uint16Array;
  readonly flags: Uint16Array;
  /** Task row, or -1. */
  readonly releasedBy: Int32Array;
  /** Row in `plays`, or -1 for a task that was inserted. */
  readonly play: Int32Array;
  /** Ten columns in `TaskTime` order, whole nanoseconds from the start of the trace. */
  readonly times: readonly Float64Array[];
  /** Task rows that this task waited for. */
  readonly predecessors: Lists;
  /** Datum rows that this task used; `accessModes` runs along `accesses.items`. */
  readonly accesses: Lists;
  readonly accessModes: Uint8Array;
  readonly parameters: Lists;
}

/** Transfers in the order of their records, rank by rank. */
export interface TransferColumns {
  readonly count: number;
  readonly rank: Uint16Array;
  readonly kind: Uint8Array;
  readonly reason: Uint8Array;
  readonly lane: Uint16Array;
  readonly source: Uint16Array;
  readonly destination: Uint16Array;
  /** Row of the task that needed it, or -1. */
  readonly task: Int32Array;
  /** Datum row, or -1. */
  readonly datum: Int32Array;
  readonly version: Uint32Array;
  readonly peer: Int32Array;
  readonly message: Uint32Array;
  readonly bytes: Float64Array;
  readonly issued: Float64Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** The other side of a message: transfer row on the peer's trace, or -1. */
  readonly partner: Int32Array;
}

/** Data, per rank. */
export interface DatumColumns {
  readonly count: number;
  readonly rank: Uint16Array;
  readonly id: Uint32Array;
  readonly home: Uint16Array;
  readonly bytes: Float64Array;
  /** Index into `names`. */
  readonly name: Int32Array;
  readonly names: readonly string[];
  /** Three coordinates per datum. */
  readonly coordinates: Int32Array;
}

/** Counter samples in time order per rank. */
export interface CounterColumns {
  readonly count: number;
  readonly rank: Uint16Array;
  readonly kind: Uint8Array;
  readonly space: Uint16Array;
  readonly time: Float64Array;
  /** Six values per sample. */
  readonly values: Float64Array;
}

/** Events in the order of their records, rank by rank. */
export interface EventColumns {
  readonly count: number;
  readonly rank: Uint16Array;
  readonly kind: Uint8Array;
  readonly space: Uint16Array;
  readonly task: Int32Array;
  readonly datum: Int32Array;
  readonly time: Float64Array;
  readonly bytes: Float64Array;
  readonly text: readonly string[];
}

/** Spans in which threads wanted to run and had no core, in the order of their records, rank by rank. */
export interface StolenColumns {
  readonly count: number;
  readonly rank: Uint16Array;
  /** Any lane of the thread (the lanes of a GPU share one); `NO_ROW`: the engine's thread. */
  readonly lane: Uint16Array;
  readonly from: Float64Array;
  readonly to: Float64Array;
}

/** Iterations of plans that were played, in the order of their records, rank by rank. */
export interface PlayColumns {
  readonly count: number;
  readonly rank: Uint16Array;
  readonly plan: readonly string[];
  /** Id of the first task; the ids of the others follow, task by task, iteration by iteration. */
  readonly first: Uint32Array;
  readonly iterations: Uint32Array;
  /** Tasks of an iteration. */
  readonly tasks: Uint32Array;
  /** Number of the first of these iterations in its play. */
  readonly iteration: Float64Array;
  /** Id of the last task that was inserted before the play. */
  readonly before: Uint32Array;
}

/** A whole trace. */
export interface Trace {
  readonly ranks: readonly TraceRank[];
  readonly lanes: readonly Lane[];
  readonly spaces: readonly Space[];
  readonly classes: readonly TaskClass[];
  readonly tasks: TaskColumns;
  readonly transfers: TransferColumns;
  readonly data: DatumColumns;
  readonly counters: CounterColumns;
  readonly events: EventColumns;
  readonly stolen: StolenColumns;
  readonly plays: PlayColumns;
  /** First and last moment of the trace, nanoseconds. */
  readonly start: number;
  readonly end: number;
  /** The missing and the repaired parts, in words. */
  readonly problems: readonly string[];
}

/** No row, in 16-bit columns. */
export const NO_ROW = 0xffff;

/** Lanes that execute tasks. */
export function isExecutionLane(lane: Lane): boolean {
  const { kind } = lane;
  return kind === 'worker' || kind === 'script-worker' || kind === 'compute' || kind === 'script';
}

/** The plan and the iteration of a task that was played; undefined for one that was inserted. */
export function playedAs(
  { tasks, plays }: Pick<Trace, 'tasks' | 'plays'>,
  row: number,
): { readonly plan: string; readonly iteration: number } | undefined {
  const play = tasks.play[row];
  if (play < 0) return undefined;
  const done = Math.floor((tasks.id[row] - plays.first[play]) / Math.max(1, plays.tasks[play]));
  return { plan: plays.plan[play], iteration: plays.iteration[play] + done };
}

/**
 * Name of a task for people: `gemm(4, 3, 2)` if the parameters tell the tasks of a class apart, else with
 * the datum that it writes, `gemm #17 A(4, 3)`. Tasks of plays count by themselves: `gemm #p17 A(4, 3)`.
 */
export function taskName(trace: Trace, row: number): string {
  const { tasks } = trace;
  const taskClass = trace.classes[tasks.taskClass[row]];
  const name = taskClass?.name ?? `class ${tasks.taskClass[row]}`;
  const { start, items } = tasks.parameters;
  if (taskClass?.namedByParameters !== false && start[row] < start[row + 1]) {
    return `${name}(${items.subarray(start[row], start[row + 1]).join(', ')})`;
  }
  const { accesses, accessModes } = tasks;
  for (let a = accesses.start[row]; a < accesses.start[row + 1]; a++) {
    if ((accessModes[a] & 2) !== 0) {
      return `${name} #${taskNumber(tasks.id[row])} ${datumName(trace, accesses.items[a])}`;
    }
  }
  return `${name} #${taskNumber(tasks.id[row])}`;
}

function taskNumber(id: number): string {
  return id < FIRST_PLAYED ? `${id}` : `p${id - FIRST_PLAYED}`;
}

/** Name of a datum: `A(3, 4)`. */
export function datumName(trace: Trace, row: number): string {
  if (row < 0) return 'unknown datum';
  const { data } = trace;
  const coordinates: number[] = [];
  for (let c = 0; c < 3; c++) {
    const value = data.coordinates[3 * row + c];
    if (value !== NO_COORDINATE) coordinates.push(value);
  }
  const name = data.names[data.name[row]];
  return coordinates.length === 0 ? name : `${name}(${coordinates.join(', ')})`;
}

/** Name of a lane, with its rank when there are several. */
export function laneName(trace: Trace, row: number): string {
  const lane = trace.lanes[row];
  if (!lane) return 'no lane';
  return trace.ranks.length > 1 ? `rank ${lane.rank} ${lane.name}` : lane.name;
}

/** Name of a memory space, with its rank when there are several. */
export function spaceName(trace: Trace, row: number): string {
  const space = trace.spaces[row];
  if (!space) return 'another rank';
  return trace.ranks.length > 1 ? `rank ${space.rank} ${space.name}` : space.name;
}

/** 'read', 'write' or 'readWrite'. */
export function accessModeName(mode: number): string {
  return accessModeNames[mode] ?? `mode ${mode}`;
}

/** Task rows of each lane in the order they ran. Rows without a lane are left out. */
export function tasksByLane(trace: Trace): Lists {
  const { tasks } = trace;
  const starts = tasks.times[TaskTime.execStart];
  const ends = tasks.times[TaskTime.execEnd];
  return sortedByLane(trace.lanes.length, tasks.lane, tasks.count, starts, ends);
}

/** Transfer rows of each lane in the order they ran. */
export function transfersByLane(trace: Trace): Lists {
  const { transfers } = trace;
  return sortedByLane(
    trace.lanes.length,
    transfers.lane,
    transfers.count,
    transfers.start,
    transfers.end,
  );
}

function sortedByLane(
  lanes: number,
  laneOf: Uint16Array,
  count: number,
  starts: Float64Array,
  ends: Float64Array,
): Lists {
  const start = new Int32Array(lanes + 1);
  for (let row = 0; row < count; row++) if (laneOf[row] < lanes) start[laneOf[row] + 1]++;
  for (let lane = 0; lane < lanes; lane++) start[lane + 1] += start[lane];
  const items = new Int32Array(start[lanes]);
  const next = start.slice(0, lanes);
  for (let row = 0; row < count; row++) if (laneOf[row] < lanes) items[next[laneOf[row]]++] = row;
  for (let lane = 0; lane < lanes; lane++) {
    const part = items.subarray(start[lane], start[lane + 1]);
    // Lanes are in order and tasks retire almost in order: most lanes are sorted already.
    if (!isSorted(part, starts, ends)) {
      part.sort((a, b) => starts[a] - starts[b] || ends[a] - ends[b] || a - b);
    }
  }
  return { start, items };
}

function isSorted(rows: Int32Array, starts: Float64Array, ends: Float64Array): boolean {
  for (let i = 1; i < rows.length; i++) {
    const a = rows[i - 1];
    const b = rows[i];
    if (starts[a] > starts[b] || (starts[a] === starts[b] && ends[a] > ends[b])) return false;
  }
  return true;
}
