// The engine's invariants over its tables. They are checked after every pass of a checked run and after every event
// of a simulated run:
//
//   - a task ends exactly once: each run has as many live tasks as it has inserted and not yet ended;
//   - no task runs before all its predecessors were issued or are over: a task waits for as many predecessors as
//     edges lead to it, and a released task has no edge;
//   - a waiting task is on exactly one wake list, and its reason is still true;
//   - a ready task is in one ready set or in one line of a queue;
//   - the directory, the memory of every space and the copies in it agree.
import { FIRST_QUEUE, type TaskId } from '../../devices/handles.js';
import { WaitReason } from '../../stages/stage.js';
import { TaskStage } from '../../stages/task-table.js';
import type { Dependencies } from './dependencies.js';
import type { Joins } from './joins.js';
import type { ReadyQueue } from './ready-queue.js';
import type { EngineState } from './state.js';

/** The parts that hold waiting and ready tasks. */
interface ValidatedParts {
  readonly dependencies: Pick<Dependencies, 'edges'>;
  readonly joins: Pick<Joins, 'held'>;
  /** Ready sets of devices, and lines of queues. */
  readonly ready: readonly ReadyQueue[];
}

/** Throws when an invariant does not hold. */
export function validate(state: EngineState, parts: ValidatedParts): void {
  state.directory.validate();
  for (const space of state.spaces) space.validate();
  checkLive(state);
  checkEdges(state, parts);
  checkReady(state, parts);
  checkWaits(state);
}

/** Rows of the window whose tasks have not ended. */
function* liveRows({ tasks }: EngineState): Generator<number> {
  for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
    const stage = tasks.stage[id & tasks.mask];
    if (stage !== TaskStage.free && stage <= TaskStage.finalize) yield id & tasks.mask;
  }
}

function checkLive(state: EngineState): void {
  const live = new Int32Array(state.runs.length);
  for (const row of liveRows(state)) live[state.tasks.run[row]]++;
  state.runs.forEach((run, slot) => {
    if ((run?.live ?? 0) !== live[slot])
      throw new Error(
        `run slot ${slot} counts ${run?.live ?? 0} live tasks, but has ${live[slot]}`,
      );
  });
}

function checkEdges(state: EngineState, { dependencies, joins }: ValidatedParts): void {
  const { tasks, x } = state;
  const { edges } = dependencies;
  const expected = new Int32Array(tasks.mask + 1);
  for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
    for (let n = tasks.successors[id & tasks.mask]; n >= 0; n = edges.next[n])
      expected[edges.value[n] >> 1]++;
  }
  for (const id of joins.held()) expected[id & tasks.mask]++;
  for (const row of liveRows(state)) {
    if (tasks.pending[row] !== expected[row]) {
      throw new Error(
        `${x.describe(row)} waits for ${tasks.pending[row]} predecessors, but ${expected[row]} edges lead to it`,
      );
    }
    if (tasks.pending[row] > 0 && tasks.stage[row] !== TaskStage.pending)
      throw new Error(`${x.describe(row)} goes on before its predecessors have released it`);
  }
}

function checkReady(state: EngineState, { ready }: ValidatedParts): void {
  const { tasks, x } = state;
  for (const row of liveRows(state)) {
    if (tasks.stage[row] !== TaskStage.ready || state.isMovement(row)) continue;
    const id = tasks.idOf(row);
    const found = ready.filter((queue) => queue.has(id)).length;
    if (found !== 1)
      throw new Error(`${x.describe(row)} is ready and stands in ${found} lanes and lines`);
  }
}

function checkWaits(state: EngineState): void {
  const { tasks, x } = state;
  for (const row of liveRows(state)) {
    const reason = tasks.waiting[row];
    // A receive waits for news of its version, or for a lane, before it takes memory.
    const mayWait = tasks.stage[row] >= TaskStage.alloc || reason === WaitReason.receive;
    if (reason === WaitReason.none || !mayWait) continue;
    const found = wakeLists(state, row, reason);
    if (found !== 1)
      throw new Error(`${x.describe(row)} waits (reason ${reason}) on ${found} wake lists`);
  }
}

/** How many times a waiting task is on the lists of its reason. */
function wakeLists(state: EngineState, row: number, reason: number): number {
  const { tasks, x, spaces, submission, remote } = state;
  const id = tasks.idOf(row);
  let found = 0;
  if (reason === WaitReason.memory) {
    for (const { waiters } of spaces)
      for (let i = 0; i < waiters.length; i++) if (waiters.at(i) === id) found++;
  } else if (reason === WaitReason.credit) {
    for (const { aside, offered } of spaces)
      for (let i = 0; i < aside.length; i++) if (aside.at(i) === id && offered.bytes > 0) found++;
  } else if (reason === WaitReason.slot) {
    for (const line of x.slotWaiters)
      for (let i = 0; i < line.length; i++) if (line.at(i) === id) found++;
  } else if (reason === WaitReason.copy) {
    for (let q = FIRST_QUEUE; q < x.eventWaiters.length; q++) {
      for (let n = x.eventWaiters[q]; n >= 0; n = x.waiterNodes.next[n]) {
        if (x.waiterNodes.value[n] !== id) continue;
        found++;
        if (submission.seen[q] - x.waiterNodes.extra[n] >= 0)
          throw new Error(`${x.describe(row)} waits for an event that has happened`);
      }
    }
  } else if (reason === WaitReason.receive) found = remote?.tasks.waitLists(row) ?? 0;
  return found;
}
