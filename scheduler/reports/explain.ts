// Explains a task that does not run: its stage, the one reason for which it waits, and the tasks that can end the wait.
// Read-only. A question scans the window, so it costs microseconds to milliseconds.

import { HeadraceError } from '../../devices/errors.js';
import { HOST, type QueueId, type TaskHandle, type TaskId } from '../../devices/handles.js';
import { missingBytes } from '../../devices/memory/distinct-bytes.js';
import { WaitReason } from '../../stages/stage.js';
import { Execution, STAGE_NAMES, TaskStage } from '../../stages/task-table.js';
import { formatBytes, formatTime } from '../../trace/analysis/text.js';
import { accessModeNames } from '../../trace/format.js';
import { shown } from '../checks.js';
import type { DeferredCalls } from '../engine/deferred-calls.js';
import type { Dependencies } from '../engine/dependencies.js';
import type { Dispatcher } from '../engine/dispatcher.js';
import type { ExclusiveSections } from '../engine/exclusive.js';
import type { Joins } from '../engine/joins.js';
import type { EngineState } from '../engine/state.js';
import type { WindowRoom } from '../engine/window.js';
import { queueName as nameOfQueue } from '../plans/queue-name.js';
import { copyState, memoryText } from './memory.js';

/** The state, and the parts that keep tasks waiting. */
type Explained = EngineState & {
  readonly dependencies: Pick<Dependencies, 'edges'>;
  readonly dispatcher: Pick<Dispatcher, 'scriptsAreFull'>;
  readonly joins: Pick<Joins, 'childrenOf' | 'isHeld'>;
  readonly room: Pick<WindowRoom, 'limit' | 'waiting'>;
  readonly sections: Pick<ExclusiveSections, 'current' | 'waitedFor' | 'describe'>;
  readonly deferred: Pick<DeferredCalls, 'waiting'>;
};

/** Tasks named in one table. */
const MAX_TASKS = 40;
/** Predecessors named for one task. */
const MAX_NAMES = 8;

/** A datum of a task, as `Run.explain` reports it. */
export interface ExplainedDatum {
  readonly datum: string;
  readonly bytes: number;
  readonly mode: string;
  /** State of its copy on each device that has one, such as `{ host: 'shared', 'gpu 0': 'arriving' }`. */
  readonly copies: Readonly<Record<string, string>>;
}

/** The state of a waiting task, as `Run.explain` reports it. */
export interface TaskExplanation {
  /** Class and number, such as `gemm #17`. */
  readonly task: string;
  /**
   * `pending`, `ready`, one of the six stages, `done`, or `dropped`: it will not run, but other tasks are ordered after
   * it.
   */
  readonly stage: string;
  /** Device of the task; undefined until the engine has chosen one. */
  readonly device: string | undefined;
  /** The reason for which it waits, in words. */
  readonly reason: string;
  /** Seconds in this stage; undefined when it is done. */
  readonly seconds: number | undefined;
  /** Tasks that must be issued or over first, oldest first, at most eight. */
  readonly predecessors: readonly string[];
  readonly data: readonly ExplainedDatum[];
  /** All of it as text. */
  readonly text: string;
}

/**
 * Explains task `id` of the run in slot `run`. If the task has left the window, the answer is only that it is over.
 * @throws HeadraceError `ERR_UNKNOWN_TASK` when no such task was inserted, or when it belongs to another run
 */
export function explainTask(engine: Explained, id: TaskHandle, run: number): TaskExplanation {
  const { tasks, x, directory: dir } = engine;
  const inserted = typeof id === 'number' && tasks.wasTaken(id);
  // A dropped task belongs to no run any more.
  const isDropped = inserted && tasks.contains(id) && tasks.stage[id & tasks.mask] > TaskStage.done;
  if (!inserted || (tasks.contains(id) && !isDropped && tasks.run[id & tasks.mask] !== run)) {
    throw new HeadraceError('ERR_UNKNOWN_TASK', `this run has no task ${shown(id)}`, {
      remedy: 'use the handle that graph.insert returned',
    });
  }
  const row = id & tasks.mask;
  const stage = tasks.contains(id) ? tasks.stage[row] : TaskStage.done;
  if (stage === TaskStage.done || stage === TaskStage.free) {
    const task = `task #${id}`;
    const nothing = { device: undefined, seconds: undefined, predecessors: [], data: [] };
    return { task, stage: 'done', reason: 'it is over', ...nothing, text: `${task} is over` };
  }
  const task = x.describe(row);
  const isPlaced = stage > TaskStage.pending && stage < TaskStage.done;
  const device = isPlaced ? engine.spaceName(tasks.device[row]) : undefined;
  const seconds = Math.max(0, engine.backend.now() - tasks.since[row]) / 1e9;
  const isBehind = stage === TaskStage.pending || stage === TaskStage.dropped;
  const predecessors = isBehind ? predecessorsOf(engine, row) : [];
  const reason = reasonOf(engine, row);
  const { modes } = x.classes[tasks.classOf[row]];
  const data = Array.from(modes, (mode, i) => {
    const d = tasks.flowDatum[tasks.flowStart[row] + i];
    const copies: Record<string, string> = {};
    for (let s = HOST; s < dir.spaces; s++) {
      const state = copyState(engine, d, s);
      if (state !== 'absent') copies[engine.spaceName(s)] = state;
    }
    const mode_ = accessModeNames[mode];
    return { datum: dir.info[d]?.name ?? `#${d}`, bytes: dir.bytes[d], mode: mode_, copies };
  });
  const lines = [
    `${task}: ${STAGE_NAMES[stage]}${device === undefined ? '' : ` on ${device}`} for ${formatTime(seconds * 1e9)}, ${reason}`,
    ...predecessors.map((name) => `  after ${name}`),
    ...data.map(({ datum, bytes, mode, copies }) => {
      const where = Object.entries(copies).map(([space, state]) => `${state} on ${space}`);
      return `  ${mode} ${datum}, ${formatBytes(bytes)}: ${where.join(', ') || 'nowhere yet'}`;
    }),
  ];
  return {
    task,
    stage: STAGE_NAMES[stage],
    device,
    reason,
    seconds,
    predecessors,
    data,
    text: lines.join('\n'),
  };
}

/** One line per live task, oldest first, then the memory of each device. `run`: only tasks of that slot. */
export function explainAll(engine: Explained, run?: number): string {
  const { tasks, x } = engine;
  const lines: string[] = [];
  let live = 0;
  for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
    const row = id & tasks.mask;
    const stage = tasks.stage[row];
    if (stage === TaskStage.done || stage === TaskStage.free) continue;
    if (run !== undefined && tasks.run[row] !== run) continue;
    live++;
    if (lines.length >= MAX_TASKS) continue;
    const time = formatTime(Math.max(0, engine.backend.now() - tasks.since[row]));
    lines.push(`  ${x.describe(row)}: ${STAGE_NAMES[stage]} for ${time}, ${reasonOf(engine, row)}`);
  }
  if (live > lines.length) lines.push(`  ... ${live} tasks in all`);
  lines.push(...otherWaits(engine));
  const memory = memoryText(engine).replaceAll(/^/gm, '  ');
  return [...lines, memory].join('\n');
}

/** The wait of the program, if it does not wait for tasks. */
function otherWaits(engine: Explained): string[] {
  const { tasks, room, deferred, remote } = engine;
  const lines: string[] = [];
  if (tasks.live >= tasks.window)
    lines.push(
      `  the window of ${tasks.window} tasks is full: ${tasks.live} of at most ${room.limit}`,
    );
  if (room.waiting > 0)
    lines.push(
      `  graph.space() is awaited in ${room.waiting} ${room.waiting === 1 ? 'place' : 'places'}`,
    );
  if (deferred.waiting > 0)
    lines.push(
      `  ${deferred.waiting} closed ${deferred.waiting === 1 ? 'datum keeps its' : 'data keep their'} memory until the window has a row`,
    );
  for (const wait of remote?.waits() ?? []) lines.push(`  ${wait}`);
  for (const wait of engine.sections.describe()) lines.push(`  ${wait}`);
  return lines;
}

/** The reason for which the live task in `row` waits, in words. */
function reasonOf(engine: Explained, row: number): string {
  const { tasks, submission, backend } = engine;
  const stage = tasks.stage[row];
  const n = tasks.pending[row];
  const others = n === 1 ? 'a predecessor' : `${n} predecessors`;
  if (stage === TaskStage.pending) {
    const section = n === 0 ? engine.sections.waitedFor(tasks.idOf(row)) : undefined;
    const isHeld = section === undefined && engine.joins.isHeld(tasks.idOf(row));
    return isHeld
      ? 'waits for the end of the body that has spawned it'
      : `waits for ${section ?? others}`;
  }
  if (stage === TaskStage.dropped) return `keeps its place behind ${others}`;
  if (stage === TaskStage.outlived) return 'keeps its place behind commands that are under way';
  if (stage === TaskStage.ready) return readyReason(engine, row);
  switch (tasks.waiting[row]) {
    case WaitReason.memory:
      return memoryReason(engine, row);
    case WaitReason.copy:
      return 'waits for a copy of its data, or for a task that still uses the copy';
    case WaitReason.receive:
      return stage === TaskStage.exec
        ? 'has its memory, and waits for a lane to other ranks'
        : 'waits for a datum that another rank sends';
    case WaitReason.slot:
      return `waits for room in the queue of ${queueName(engine, tasks.target[row])}`;
    case WaitReason.credit:
      return 'waits until other ranks have taken the offers of its device, or have sent what has its memory there';
  }
  const spawned = engine.joins.childrenOf(tasks.idOf(row)).length;
  if (stage === TaskStage.finalize && spawned > 0)
    return `its body has ended; waits for ${spawned} ${spawned === 1 ? 'task' : 'tasks'} that it has spawned`;
  const how = tasks.execution[row];
  if (how === Execution.movement) return 'its bytes are under way';
  if (how === Execution.arrival) return 'waits for a datum that another rank sends';
  if (how === Execution.body) return 'its JavaScript body has begun and has not ended';
  if (how !== Execution.command)
    return stage === TaskStage.exec ? 'its JavaScript body is next' : 'moves on';
  const queue = tasks.queue[row];
  const before = (tasks.seq[row] - backend.completed[queue] - 1) | 0;
  const name = queueName(engine, queue);
  if (submission.happened(queue, tasks.seq[row])) return `has run on ${name}`;
  return before <= 0
    ? `runs on ${name}, or is next`
    : `queued on ${name} behind ${before} commands`;
}

function readyReason(engine: Explained, row: number): string {
  const { kernels, network } = engine.x.classes[engine.tasks.classOf[row]];
  const isScript = kernels[engine.tasks.device[row]] < 0 && network === undefined;
  return isScript && engine.dispatcher.scriptsAreFull
    ? 'ready: waits until one of the JavaScript bodies under way has ended'
    : 'ready: waits for its turn on its device';
}

function memoryReason(engine: Explained, row: number): string {
  const { tasks, directory: dir, spaces, x } = engine;
  // After stage alloc the host has no room, for a copy that is staged there.
  const s = tasks.stage[row] === TaskStage.alloc ? tasks.device[row] : HOST;
  const first = tasks.flowStart[row];
  const end = first + x.classes[tasks.classOf[row]].modes.length;
  const missing = missingBytes(dir, tasks.flowDatum, first, end, s);
  const { waiters } = spaces[s];
  let line = 0;
  while (line < waiters.length && waiters.at(line) !== tasks.idOf(row)) line++;
  const place = line === 0 ? 'next to be served' : `behind ${line} others`;
  return `waits for ${formatBytes(missing)} on ${engine.spaceName(s)}, ${place}`;
}

function queueName(engine: Explained, q: QueueId): string {
  const queue = engine.backend.queues[q];
  return queue.kind === 'worker' || queue.kind === 'script'
    ? nameOfQueue(engine.backend, q)
    : `${engine.spaceName(queue.space)} ${queue.kind}`;
}

/** Live tasks that have not released the one in `row`. */
function predecessorsOf(engine: Explained, row: number): string[] {
  const { tasks, x, dependencies } = engine;
  const names: string[] = [];
  for (
    let id = tasks.head;
    id !== tasks.next && names.length < MAX_NAMES;
    id = ((id + 1) | 0) as TaskId
  ) {
    const at = id & tasks.mask;
    for (let n = tasks.successors[at]; n >= 0; n = dependencies.edges.next[n]) {
      if (dependencies.edges.value[n] >> 1 === row) {
        names.push(x.describe(at));
        break;
      }
    }
  }
  return names;
}
