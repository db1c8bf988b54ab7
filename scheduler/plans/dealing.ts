// Deals the tasks of a plan to the workers of the host, or to the script workers.
//
// The engine deals tasks out as they come and as queues become free. A plan repeats what was dealt once. So what counts is the time by
// which the begins of its iterations are apart when they follow each other, with all tasks known. If the engine's way needs more than
// the tasks and their order demand, two others are tried: by level (deal-by-level.ts) and by path (deal-by-path.ts).
//
// Only the queues and the order of the commands change. So the memory and the results stay, as long as the order keeps what a command
// follows before it.
import type { QueueInfo } from '../../devices/backend.js';
import { NO_QUEUE, type QueueId } from '../../devices/handles.js';
import { type CommandColumns, PlannedCommands } from '../../devices/planning/commands.js';
import type { PlannedParts } from './chains.js';
import { dealByLevel } from './deal-by-level.js';
import { dealByPath } from './deal-by-path.js';
import { Timeline } from './timeline.js';
import type { ControlEdges } from './waits.js';

/** Another way is looked for if an iteration takes longer than it must, and taken if it is shorter, by these factors. */
const GOOD = 1.02;
const BETTER = 1.01;
/** Nanoseconds: the dealing of shorter tasks does not matter so much. */
const LEAST_TIME = 1000;
/** Commands that are looked at in all iterations together, and limits for these. */
const LOOKS = 4096;
const LEAST_LOOKS = 3;
const MOST_LOOKS = 32;
/** Limit for the commands of an iteration that is dealt by path. */
const MOST_BY_PATH = 2 ** 17;

/** What is dealt. */
interface Deal extends PlannedParts {
  readonly commands: PlannedCommands;
}

/** Nanoseconds. */
interface Pace {
  /** Of an iteration alone. */
  readonly makespan: number;
  /** By which iterations that follow each other are apart. */
  readonly period: number;
}

interface Way extends Pace {
  /** Queue of each command. */
  readonly queue: ArrayLike<number>;
  /** New order of the commands, if they are to change it. */
  readonly order: Int32Array | undefined;
}

/** Commands that are dealt otherwise, and the seconds of an iteration. */
interface Better {
  readonly commands: PlannedCommands;
  readonly makespan: number;
}

/**
 * The commands of workers as they should be dealt; undefined if they are dealt well, or if there is no choice. `secondsOf`: seconds of
 * the kernel of an insertion.
 */
export function dealAgain(
  parts: Deal,
  control: ControlEdges,
  queues: readonly QueueInfo[],
  secondsOf: (insertion: number) => number,
): Better | undefined {
  const { commands } = parts;
  const { kind } = queues[commands.queue[0]];
  const workers = [...queues.keys()].filter((q) => queues[q].kind === kind);
  if (workers.length < 2) return undefined;
  const takes = new Float64Array(commands.count);
  for (let c = 0; c < takes.length; c++)
    takes[c] = Math.max(LEAST_TIME, secondsOf(commands.insertion[c]) * 1e9);
  const all = takes.reduce((a, b) => a + b, 0);
  const even = GOOD * (all / workers.length);
  const wayOf = (queue: ArrayLike<number>, order?: Int32Array, enough = 0): Way => {
    const timeline = new Timeline(parts, control, takes, queues.length);
    return { queue, order, ...pace(timeline, takes, { queue, order }, enough) };
  };
  const own = wayOf(commands.queue, undefined, even);
  if (own.period <= even) return undefined;
  const chain = chainPerIteration(parts, control, takes);
  const good = Math.max(even, GOOD * chain);
  if (own.period <= good) return undefined;
  // More workers than can be busy at a time would only pass data on.
  const used = workers.slice(0, Math.ceil(all / chain));
  let best = wayOf(dealByLevel(parts, control, takes, used));
  if (best.period > good && takes.length <= MOST_BY_PATH) {
    const { queue, order } = dealByPath(parts, control, takes, workers);
    const byPath = wayOf(queue, order);
    if (byPath.period < best.period) best = byPath;
  }
  if (best.period * BETTER > own.period) return undefined;
  return { commands: ordered(commands, best), makespan: best.makespan * 1e-9 };
}

/** Whether all commands are tasks on workers of the host, or all are tasks on script workers. */
export function isOfWorkers(commands: CommandColumns, queues: readonly QueueInfo[]): boolean {
  const { kind } = queues[commands.queue[0]] ?? {};
  for (let c = 1; c < commands.count; c++)
    if (queues[commands.queue[c]].kind !== kind) return false;
  return commands.count > 0 && (kind === 'worker' || kind === 'script');
}

function ordered(from: PlannedCommands, { queue, order }: Way): PlannedCommands {
  const to = new PlannedCommands();
  for (let i = 0; i < from.count; i++) {
    const c = order?.[i] ?? i;
    const first = from.first[c];
    const values = from.values.subarray(first, first + from.arguments[c]);
    const { length } = values;
    const n = to.add(
      queue[c] as QueueId,
      from.what[c],
      from.insertion[c],
      from.flows[c],
      values,
      length,
    );
    to.data.set(from.data.subarray(first, first + length), to.first[n]);
  }
  to.trim();
  return to;
}

/** Iterations that follow each other; only one if it takes no longer than `enough`. */
function pace(
  timeline: Timeline,
  takes: Float64Array,
  { queue, order }: Pick<Way, 'queue' | 'order'>,
  enough: number,
): Pace {
  const count = takes.length;
  const times = Math.min(MOST_LOOKS, Math.max(LEAST_LOOKS, Math.ceil(LOOKS / count)));
  let makespan = 0;
  let half = 0;
  let end = 0;
  const middle = times >> 1;
  for (let k = 0; k < times; k++) {
    for (let i = 0; i < count; i++) {
      const c = order?.[i] ?? i;
      end = Math.max(end, timeline.put(c, queue[c], timeline.ready(c)));
    }
    if (k === 0) {
      makespan = end;
      if (makespan <= enough) return { makespan, period: makespan };
    }
    if (k === middle - 1) half = end;
  }
  return { makespan, period: (end - half) / (times - middle) };
}

/** The least time by which iterations are apart: each command has a queue of its own. */
function chainPerIteration(
  parts: PlannedParts,
  control: ControlEdges,
  takes: Float64Array,
): number {
  const timeline = new Timeline(parts, control, takes, 0);
  const count = takes.length;
  const ends = [0, 0, 0];
  for (let k = 1; k < ends.length; k++) {
    ends[k] = ends[k - 1];
    for (let c = 0; c < count; c++) {
      const end = timeline.ready(c) + takes[c];
      timeline.register(c, NO_QUEUE, end);
      ends[k] = Math.max(ends[k], end);
    }
  }
  return ends[2] - ends[1];
}
