// Ready tasks: the lanes and lines in which they wait, the order in which they start, and the limits that hold them back.

import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { Status } from '../../devices/backend.js';
import {
  type Column,
  FIRST_GPU,
  FIRST_QUEUE,
  NO_QUEUE,
  type QueueId,
  type SpaceId,
} from '../../devices/handles.js';
import { Tally } from '../../devices/tally.js';
import { Dispatcher } from '../../scheduler/engine/dispatcher.js';
import { ReadyQueue } from '../../scheduler/engine/ready-queue.js';
import type { Remote, RemoteTasks } from '../../scheduler/engine/remote.js';
import { NetworkRole, TaskStage } from '../../stages/task-table.js';
import { queueId, taskId } from '../support/handles.js';
import { PartsState } from '../support/parts-state.js';

/** Host queue 0; GPU 1: compute queues 1 to 3. */
const QUEUES = [1, 2, 3].map(queueId);
const GPU = FIRST_GPU;
const SCRIPTS = 64;
const STOLEN = 8;

let state: PartsState;
let dispatcher: Dispatcher;
let placement: ScriptedPlacement;
let pressure: { short: Uint8Array; mayStart: () => boolean };
/** Rows of dropped tasks that were handed on, and movements that the remote was told of. */
let told: string[];

/** Stands for both choices: a task runs on the device it asks for, and there on the queue in `next`. */
class ScriptedPlacement {
  next = QUEUES[0];
  readonly load: Int32Array = new Int32Array(2);
  readonly depth: Int32Array;
  readonly lines: ReadyQueue[];
  readonly waiting: Tally = new Tally();
  readonly execQueues: readonly (readonly QueueId[])[] = [[FIRST_QUEUE], QUEUES];
  readonly onlyQueue: Column<Int16Array, QueueId> = Int16Array.of(0, NO_QUEUE, NO_QUEUE) as never;
  readonly open: Set<QueueId> = new Set([FIRST_QUEUE, ...QUEUES]);

  constructor() {
    this.depth = new Int32Array(state.manual.queues.length).fill(40);
    this.lines = state.manual.queues.map(() => new ReadyQueue(state.tasks.window, this.waiting));
  }

  device(row: number): SpaceId {
    return state.tasks.device[row];
  }

  placeOf(row: number): SpaceId {
    return state.tasks.device[row];
  }

  spaceOf(place: number): SpaceId {
    return place as SpaceId;
  }

  queue(row: number): QueueId {
    return state.tasks.device[row] === 0 ? FIRST_QUEUE : this.next;
  }

  hasRoom(q: QueueId): boolean {
    return this.open.has(q);
  }

  hasSlot(s: number): boolean {
    return this.execQueues[s].some((q) => this.open.has(q));
  }

  victimFor(thief: QueueId): QueueId {
    const others = QUEUES.filter((q) => q !== thief && this.lines[q].length > 0);
    return others.sort((a, b) => this.lines[b].length - this.lines[a].length)[0] ?? NO_QUEUE;
  }
}

function set(): void {
  state = new PartsState({ gpus: 1, streams: 3, window: 256 });
  placement = new ScriptedPlacement();
  pressure = { short: new Uint8Array(2), mayStart: () => true };
  dispatcher = new Dispatcher(state, placement, placement, pressure);
  told = [];
  dispatcher.droppedReleased = (row) => void told.push(`dropped ${row}`);
}
beforeEach(set);

const task = (more: object = {}): number => state.task({ device: GPU, ...more });
const script = (): number => task({ hasBody: true, device: 0 });
const release = (...rows: readonly number[]): void =>
  rows.forEach((row) => void dispatcher.release(row));
/** Rows that have started since the last look, in order, and their queues. */
const started = (): [number, number][] =>
  state.told.splice(0).map((each) => {
    const row = Number(each.split(' ')[1]);
    return [row, state.tasks.target[row]];
  });
const rowsStarted = (): number[] => started().map(([row]) => row);

describe('a task is released', () => {
  it('by the last of its predecessors, and starts at once if its device has a slot', () => {
    const by = task();
    const row = task({ pending: 2 });
    dispatcher.releaseOne(row, by);
    dispatcher.drainReleased();
    expect(rowsStarted()).toEqual([]);
    dispatcher.releaseOne(row, by);
    dispatcher.drainReleased();
    expect(started()).toEqual([[row, QUEUES[0]]]);
    expect(state.tasks.releasedBy[row]).toBe(state.tasks.idOf(by));
    expect([...placement.load]).toEqual([0, 1]);
  });

  it('into the lane of its device, if the device has no slot', () => {
    placement.open.clear();
    const rows = [task(), script(), task({ device: 0 })];
    for (let i = 0; i < SCRIPTS; i++) release(script());
    started();
    release(...rows);
    const lanes = dispatcher.ready.map((lane) => rows.filter((r) => lane.has(state.tasks.idOf(r))));
    expect(lanes).toEqual([[rows[2]], [rows[0]], [rows[1]]]);
    expect(rowsStarted()).toEqual([]);
  });

  it('once: a task that is no longer pending is left alone, and a dropped one is passed on', () => {
    const row = task();
    release(row, row);
    expect(rowsStarted()).toEqual([row]);
    const dropped = task({ stage: TaskStage.dropped, pending: 1 });
    dispatcher.releaseOne(dropped, row);
    dispatcher.drainReleased();
    expect(told).toEqual([`dropped ${dropped}`]);
    expect(rowsStarted()).toEqual([]);
  });

  it('to the remote, if it is a movement, and counts on the host', () => {
    const tasks: Partial<RemoteTasks> = {
      released: (row) => void told.push(`movement ${row}`),
      ended: (row) => void told.push(`ended ${row}`),
    };
    state.remote = { tasks } as Partial<Remote> as Remote;
    const row = state.task({ network: NetworkRole.send, device: -1 });
    release(row);
    expect(told).toEqual([`movement ${row}`]);
    expect([state.tasks.device[row], ...placement.load]).toEqual([0, 1, 0]);
    expect(dispatcher.ready.map(({ length }) => length)).toEqual([0, 0, 0]);
    dispatcher.leaveLane(row, Status.ok);
    expect(told.at(-1)).toBe(`ended ${row}`);
  });
});

describe('ready tasks start', () => {
  it('by priority, then in program order, in any order of their release', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom(0, 0, 1, 5, -3), fc.nat()), { maxLength: 20 }),
        (all) => {
          set();
          placement.open.clear();
          const rows = all.map(([priority]) => task({ priority }));
          const order = rows.map((row, i) => ({ row, at: all[i][1] }));
          release(...order.sort((a, b) => a.at - b.at).map(({ row }) => row));
          for (const q of QUEUES) placement.open.add(q);
          dispatcher.startReady();
          const { priority } = state.tasks;
          const expected = [...rows].sort((a, b) => priority[b] - priority[a] || a - b);
          expect(rowsStarted()).toEqual(expected);
        },
      ),
    );
  });

  it('behind the tasks that wait already', () => {
    placement.open.clear();
    const first = task();
    release(first);
    placement.open.add(QUEUES[0]);
    const second = task();
    release(second);
    expect(rowsStarted()).toEqual([]);
    dispatcher.startReady();
    expect(rowsStarted()).toEqual([first, second]);
  });

  it('not if they were dropped while they were ready', () => {
    placement.open.clear();
    const rows = [task(), task()];
    release(...rows);
    state.tasks.stage[rows[0]] = TaskStage.dropped;
    placement.open.add(QUEUES[0]);
    dispatcher.startReady();
    expect(rowsStarted()).toEqual([rows[1]]);
  });
});

describe('the line of a full queue', () => {
  let rows: number[];
  beforeEach(() => {
    // The other queues have room and much to do, so they take nothing.
    for (const q of QUEUES.slice(1)) state.commands(q, 20, { device: GPU });
    placement.open.delete(QUEUES[0]);
    rows = [task(), task({ priority: 2 }), task()];
    release(...rows);
  });

  it('holds the tasks that were given to it', () => {
    expect(placement.lines.map(({ length }) => length)).toEqual([0, 3, 0, 0, 0, 0]);
    dispatcher.startReady();
    expect(rowsStarted()).toEqual([]);
  });

  it('is served by priority, then in program order, before the lane', () => {
    const later = task({ priority: 9 });
    placement.open.clear();
    release(later);
    placement.open.add(QUEUES[0]);
    dispatcher.startReady();
    const order = [rows[1], rows[0], rows[2], later];
    expect(started()).toEqual(order.map((row) => [row, QUEUES[0]]));
  });

  it('loses tasks that were dropped', () => {
    state.tasks.stage[rows[1]] = TaskStage.dropped;
    placement.open.add(QUEUES[0]);
    dispatcher.startReady();
    expect(rowsStarted()).toEqual([rows[0], rows[2]]);
  });
});

describe('a queue that has run dry', () => {
  beforeEach(() => {
    placement.open.delete(QUEUES[0]);
    state.commands(QUEUES[0], 20, { device: GPU });
    state.commands(QUEUES[2], 20, { device: GPU });
    release(...Array.from({ length: 12 }, () => task()));
    started();
  });
  const taken = (): number => started().filter(([, q]) => q === QUEUES[1]).length;

  it('takes a few tasks from the line of another queue, from its front', () => {
    const [first] = placement.lines.flatMap((line) => (line.length > 0 ? [line.pop()] : []));
    placement.lines[QUEUES[0]].push(first, 0);
    dispatcher.startReady();
    const all = started();
    expect(all[0]).toEqual([first & state.tasks.mask, QUEUES[1]]);
    expect(all.map(([, q]) => q)).toEqual(Array(STOLEN).fill(QUEUES[1]));
    dispatcher.startReady();
    expect(taken()).toBe(0);
  });

  it('takes no more than a quarter of its depth', () => {
    placement.depth.fill(12);
    dispatcher.startReady();
    expect(taken()).toBe(3);
  });

  it.each([
    ['where memory is short: one queue runs all there', () => pressure.short.fill(1)],
    ['while it has a command', () => state.commands(QUEUES[1], 1)],
  ])('takes nothing %s', (_when, change) => {
    change();
    dispatcher.startReady();
    expect(taken()).toBe(0);
  });
});

describe('the limit', () => {
  it('of JavaScript bodies under way holds the others back until one ends', () => {
    const rows = Array.from({ length: SCRIPTS + 2 }, script);
    release(...rows);
    expect(rowsStarted()).toEqual(rows.slice(0, SCRIPTS));
    expect(dispatcher.scriptsAreFull).toBe(true);
    dispatcher.startReady();
    expect(rowsStarted()).toEqual([]);
    dispatcher.leaveLane(rows[0], Status.ok);
    dispatcher.startReady();
    expect(rowsStarted()).toEqual([rows[SCRIPTS]]);
    dispatcher.parentWaits(1);
    dispatcher.startReady();
    expect(rowsStarted()).toEqual([rows[SCRIPTS + 1]]);
    expect(dispatcher.scriptsAreFull).toBe(false);
    dispatcher.parentWaits(-1);
    for (const row of rows.slice(1)) dispatcher.leaveLane(row, Status.ok);
    expect(dispatcher.hasScripts).toBe(false);
  });

  it('of bodies does not count tasks with kernels', () => {
    release(script());
    dispatcher.leaveLane(task(), Status.ok);
    expect(dispatcher.hasScripts).toBe(true);
  });

  it('of tasks that wait for memory of a device, but not of the host', () => {
    for (let i = 0; i < 4; i++) {
      for (const space of state.spaces) space.waiters.push(taskId(1000 + i));
    }
    const [gpu, host] = [task(), task({ device: 0 })];
    release(gpu, host);
    dispatcher.startReady();
    expect(rowsStarted()).toEqual([host]);
    state.spaces[GPU].waiters.shift();
    dispatcher.startReady();
    expect(rowsStarted()).toEqual([gpu]);
  });

  it('of memory that is short, in lane and line', () => {
    pressure = Object.assign(pressure, { mayStart: () => false });
    pressure.short[GPU] = 1;
    const row = task();
    release(row);
    const inLine = task({ stage: TaskStage.ready });
    placement.lines[QUEUES[1]].push(state.tasks.idOf(inLine), 0);
    dispatcher.startReady();
    expect(rowsStarted()).toEqual([]);
    pressure.mayStart = () => true;
    dispatcher.startReady();
    expect(rowsStarted()).toEqual([inLine, row]);
  });
});
