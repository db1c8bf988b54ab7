// Each invariant of the engine's tables, violated by hand in a small valid state: `validate` throws and names the task,
// or the run or datum concerned.

import { beforeEach, describe, expect, it } from 'vitest';
import { type DatumId, FIRST_GPU } from '../../devices/handles.js';
import { NodePool } from '../../devices/node-pool.js';
import { ReadyQueue } from '../../scheduler/engine/ready-queue.js';
import type { Remote, RemoteTasks } from '../../scheduler/engine/remote.js';
import type { RunState } from '../../scheduler/engine/run-state.js';
import { validate } from '../../scheduler/engine/validate.js';
import { WaitReason } from '../../stages/stage.js';
import { NetworkRole, TaskStage } from '../../stages/task-table.js';
import { queueId, taskId } from '../support/handles.js';
import { PartsState } from '../support/parts-state.js';

/** Host queue 0; GPU 1: compute queue 1. */
const COMPUTE = queueId(1);
const GPU = FIRST_GPU;

let state: PartsState;
let edges: NodePool;
let lanes: ReadyQueue[];
let run: RunState;
/** Row of a pending task and of its predecessor, of a ready one, and of tasks that wait for one reason each. */
let pending: number;
let before: number;
let ready: number;
let memory: number;
let credit: number;
let slot: number;
let event: number;
let datum: DatumId;

const check = (): void =>
  validate(state, { dependencies: { edges }, joins: { held: () => [] as never }, ready: lanes });
const name = (row: number): string => `task #${state.tasks.idOf(row)}`;
/** What `validate` says after `harm`. */
function complaint(harm: () => void): string {
  harm();
  try {
    check();
  } catch (error) {
    return (error as Error).message;
  }
  return 'nothing';
}
const addEdge = (from: number, to: number): void => {
  state.tasks.successors[from] = edges.push(state.tasks.successors[from], to * 2, 0);
};

beforeEach(() => {
  state = new PartsState({ gpus: 1 });
  edges = new NodePool();
  lanes = [0, 1, 2].map(() => new ReadyQueue(state.tasks.window));
  run = state.run();
  datum = state.datum(1, GPU);
  const task = (stage: number): number => state.task({ run, stage, device: GPU });
  [before] = state.commands(COMPUTE, 1, { run, device: GPU });
  pending = state.task({ run, stage: TaskStage.pending, pending: 1 });
  addEdge(before, pending);
  ready = task(TaskStage.ready);
  lanes[GPU].push(state.tasks.idOf(ready), 0);
  memory = task(TaskStage.alloc);
  state.x.waitForMemory(memory, GPU);
  credit = task(TaskStage.alloc);
  state.spaces[GPU].pin(datum);
  state.spaces[GPU].offered.add(datum);
  state.x.stepAside(credit, GPU);
  slot = task(TaskStage.exec);
  state.x.waitForSlot(slot, COMPUTE);
  event = task(TaskStage.exec);
  state.x.waitForEvent(event, COMPUTE, state.manual.issued[COMPUTE]);
});

it('a whole state passes', () => {
  expect(complaint(() => {})).toBe('nothing');
});

describe('a task ends exactly once:', () => {
  it.each([
    ['it was retired twice', () => void run.retired++],
    ['it was not counted', () => void run.inserted++],
    ['it ended and was not counted', () => void (state.tasks.stage[slot] = TaskStage.done)],
    ['its run was closed before', () => void (state.runs[run.slot] = undefined)],
  ])('%s', (_what, harm) => {
    expect(complaint(harm)).toMatch(/^run slot 1 counts \d live tasks, but has \d$/);
  });
});

describe('no task runs before its predecessors:', () => {
  it.each([
    ['an edge is missing', () => void (state.tasks.successors[before] = -1), 1, 0],
    ['an edge is there twice', () => addEdge(before, pending), 1, 2],
    ['a release was lost', () => void state.tasks.pending[pending]++, 2, 1],
    ['it was released twice', () => void state.tasks.pending[pending]--, 0, 1],
  ])('%s', (_what, harm, waitsFor, lead) => {
    expect(complaint(harm)).toBe(
      `${name(pending)} waits for ${waitsFor} predecessors, but ${lead} edges lead to it`,
    );
  });

  it('it started all the same', () => {
    const harm = (): void => {
      state.tasks.stage[pending] = TaskStage.exec;
    };
    expect(complaint(harm)).toBe(
      `${name(pending)} goes on before its predecessors have released it`,
    );
  });
});

describe('a ready task is in one place:', () => {
  const id = (): number => state.tasks.idOf(ready);
  it('in none', () => {
    expect(complaint(() => void lanes[GPU].pop())).toBe(
      `${name(ready)} is ready and stands in 0 lanes and lines`,
    );
  });

  it('in two', () => {
    expect(complaint(() => lanes[2].push(taskId(id()), 0))).toContain(`${name(ready)} is ready`);
    expect(complaint(() => {})).toContain('stands in 2');
  });

  it('but a movement waits with its rank', () => {
    const harm = (): void => {
      state.task({ run, stage: TaskStage.ready, network: NetworkRole.send });
    };
    expect(complaint(harm)).toBe('nothing');
  });
});

describe('a waiting task is on one list:', () => {
  const lists: readonly [string, () => number, number, () => void, () => void][] = [
    [
      'memory',
      () => memory,
      WaitReason.memory,
      () => void state.spaces[GPU].waiters.shift(),
      () => state.spaces[0].waiters.push(state.tasks.idOf(memory)),
    ],
    [
      'credit',
      () => credit,
      WaitReason.credit,
      () => void state.spaces[GPU].aside.shift(),
      () => state.spaces[GPU].aside.push(state.tasks.idOf(credit)),
    ],
    [
      'slot',
      () => slot,
      WaitReason.slot,
      () => void state.x.slotWaiters[COMPUTE].shift(),
      () => state.x.slotWaiters[0].push(state.tasks.idOf(slot)),
    ],
    [
      'copy',
      () => event,
      WaitReason.copy,
      () => void (state.x.eventWaiters[COMPUTE] = -1),
      () => state.x.waitForEvent(event, COMPUTE, state.manual.issued[COMPUTE]),
    ],
  ];
  const text = (row: number, reason: number, n: number): string =>
    `${name(row)} waits (reason ${reason}) on ${n} wake lists`;

  it.each(lists)('of %s it was lost', (_what, row, reason, lose) => {
    expect(complaint(lose)).toBe(text(row(), reason, 0));
  });

  it.each(lists)('of %s it stands there twice', (_what, row, reason, _lose, again) => {
    expect(complaint(again)).toBe(text(row(), reason, 2));
  });
});

describe('a receive that waits is on one list of its rank:', () => {
  it.each([
    [0, `waits (reason ${WaitReason.receive}) on 0 wake lists`],
    [1, 'nothing'],
    [2, `waits (reason ${WaitReason.receive}) on 2 wake lists`],
  ])('it is on %i', (lists, message) => {
    const receive = state.task({ run, stage: TaskStage.ready, network: NetworkRole.receive });
    state.x.waitForReceive(receive);
    const asked: number[] = [];
    const tasks: Partial<RemoteTasks> = {
      waitLists: (row) => {
        asked.push(row);
        return lists;
      },
    };
    const harm = (): void => {
      state.remote = { tasks } as Partial<Remote> as Remote;
    };
    expect(complaint(harm)).toContain(message);
    expect(asked).toEqual([receive]);
  });
});

describe('the reason is still true:', () => {
  it('the event has not happened', () => {
    const harm = (): void => {
      state.manual.completeAll(COMPUTE);
      state.submission.takeFinished(COMPUTE);
    };
    expect(complaint(harm)).toBe(`${name(event)} waits for an event that has happened`);
  });

  it('an offer is in the way', () => {
    const harm = (): void => {
      state.spaces[GPU].offered.remove(datum);
    };
    expect(complaint(harm)).toContain(`${name(credit)} waits (reason ${WaitReason.credit}) on 0`);
  });
});

describe('the memory agrees:', () => {
  it.each([
    ['a value without memory', () => void (state.directory.block[datum * 2 + GPU] = -1)],
    ['pins that nobody counted', () => void state.directory.pins[datum * 2 + GPU]--],
    ['bytes that nobody counted', () => void (state.spaces[GPU].cleanBytes += 1)],
    ['a copy without an owner', () => void (state.directory.state[datum * 2 + GPU] = 0)],
  ])('%s', (_what, harm) => {
    expect(complaint(harm)).toMatch(/datum \d|bytes are miscounted/);
  });
});
