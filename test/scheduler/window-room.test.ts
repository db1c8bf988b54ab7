// Room in the window without an engine: who waits for it, who extends the window, who is refused, and when it shrinks.

import { beforeEach, describe, expect, it } from 'vitest';
import { HeadraceError } from '../../devices/errors.js';
import { Fifo } from '../../devices/fifo.js';
import type { TaskId } from '../../devices/handles.js';
import { WindowRoom } from '../../scheduler/engine/window.js';
import { type TaskClassRow, TaskStage } from '../../stages/task-table.js';
import { PartsState } from '../support/parts-state.js';

const WINDOW = 8;
const OVERFLOW = 4;

let state: PartsState;
let room: WindowRoom;
let cls: TaskClassRow;
let told: string[];
let bodies: { isRunning: boolean; queued: Fifo<TaskId>; waiting: number; awaitsOthers: () => void };
let pass: { isUnderWay: boolean; pump: () => boolean };
let underWay: boolean;

beforeEach(() => {
  state = new PartsState({ window: WINDOW });
  told = [];
  underWay = false;
  bodies = { isRunning: false, queued: new Fifo<TaskId>(), waiting: 0, awaitsOthers: () => {} };
  pass = {
    isUnderWay: false,
    pump: () => {
      told.push('pass');
      return false;
    },
  };
  room = new WindowRoom(
    state,
    {
      pass,
      bodies,
      deferred: { make: () => false },
      dependencies: { moveRows: () => void told.push('dependencies') },
      dispatcher: {
        moveRows: (_rowNow, rows) => void told.push(`dispatcher ${rows}`),
        hasScripts: false,
      },
      idle: {
        block: () => void told.push('block'),
        stalled: () => new HeadraceError('ERR_STALLED', 'no task can make progress', {}),
        reportBlocked: () => {},
        somethingIsUnderWay: () => underWay,
        commandsAreUnderWay: () => underWay,
      },
    },
    OVERFLOW,
  );
  for (let i = 0; i < WINDOW; i++) state.task({ stage: TaskStage.exec });
  [cls] = state.x.classes;
});

/** All tasks are over. */
function finish(): void {
  for (let id = state.tasks.head; id !== state.tasks.next; id++)
    state.tasks.stage[id & state.tasks.mask] = TaskStage.done;
  state.tasks.retireHead();
}

describe('a task that finds no row', () => {
  it('waits in the program while commands are under way', () => {
    underWay = true;
    pass.pump = () => {
      told.push('pass');
      if (told.length > 3) finish();
      return false;
    };
    room.reserve(cls);
    expect(told).toEqual(['pass', 'block', 'pass', 'block', 'pass']);
    expect(state.tasks.isExtended).toBe(false);
  });

  it('extends the window from a body without waiting, and all tables of rows are told', () => {
    bodies.isRunning = true;
    room.reserve(cls);
    expect(told).toEqual(['dependencies', `dispatcher ${WINDOW * 2}`]);
    expect(state.tasks.isExtended).toBe(true);
  });

  it('extends the window for a caller that must not wait, and only for it', () => {
    pass.pump = () => {
      told.push('pass');
      return false;
    };
    room.withoutWaiting(() => room.reserve(cls));
    expect(told).toEqual(['dependencies', `dispatcher ${WINDOW * 2}`]);
    while (state.tasks.hasRoom(1, 0)) state.task({ stage: TaskStage.exec });
    expect(() => room.reserve(cls)).toThrow(expect.objectContaining({ code: 'ERR_STALLED' }));
  });

  it('is refused beyond the overflow', () => {
    bodies.isRunning = true;
    for (let i = 0; i < OVERFLOW; i++) {
      room.reserve(cls);
      state.task({ stage: TaskStage.exec });
    }
    expect(() => room.reserve(cls)).toThrow(expect.objectContaining({ code: 'ERR_WINDOW_FULL' }));
  });

  it.each([
    [false, undefined, /^the program cannot insert a task of class .* \(await graph\.space/],
    [false, "read() of datum 'x'", /^the program cannot call read\(\) of datum 'x': .* \(await/],
    [true, "read() of datum 'x'", /^a body cannot call read\(\) of datum 'x': .* \(raise the/],
  ])('is refused in the words of its caller (a body: %s, %s)', (isBody, call, message) => {
    bodies.isRunning = true;
    for (let i = 0; i < OVERFLOW; i++) {
      room.reserve(cls);
      state.task({ stage: TaskStage.exec });
    }
    bodies.isRunning = isBody;
    expect(() => room.withoutWaiting(() => room.reserve(cls, call))).toThrow(message);
  });

  it('is refused within a pass: rows must not move then, and no other pass can help', () => {
    pass.isUnderWay = true;
    bodies.isRunning = true;
    expect(() => room.reserve(cls)).toThrow(expect.objectContaining({ code: 'ERR_WINDOW_FULL' }));
    expect(told).toEqual([]);
  });

  it('extends the window where only asynchronous bodies are under way', () => {
    bodies.waiting = 1;
    room.reserve(cls);
    expect(told).toEqual(['pass', 'dependencies', `dispatcher ${WINDOW * 2}`]);
  });

  it('fails where nothing is under way', () => {
    expect(() => room.reserve(cls)).toThrow(expect.objectContaining({ code: 'ERR_STALLED' }));
  });
});

it('the window shrinks at the end of a pass when few tasks are left, not before', () => {
  bodies.isRunning = true;
  room.reserve(cls);
  told.length = 0;
  room.passed();
  expect(told).toEqual([]);
  finish();
  room.passed();
  expect(told).toEqual(['dependencies', `dispatcher ${WINDOW}`]);
  expect(state.tasks.isExtended).toBe(false);
});
