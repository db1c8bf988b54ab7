// The engine without work: the doorbells that it arms, and the conditions under which it blocks, executes commands,
// sleeps or reports a standstill.

import '../support/removable-guards.js';
import fc from 'fast-check';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { HeadraceError } from '../../devices/errors.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { TaskStage } from '../../stages/task-table.js';
import { queueId, taskId } from '../support/handles.js';
import { Asked } from '../support/idle-parts.js';
import type { PartsState } from '../support/parts-state.js';

/** Host queues 0 and 1; GPU 1: compute queue 2, copy queues 3 and 4. */
const COMPUTE = queueId(2);
let asked: Asked;
let state: PartsState;
beforeEach(() => {
  asked = new Asked();
  state = asked.state;
});
const armed = (): [number, number][] => [...state.manual.armed].sort(([a], [b]) => a - b);

describe('a doorbell is armed', () => {
  it('at the last command, if no more work is ready', () => {
    state.commands(COMPUTE, 20);
    asked.turn();
    expect(armed()).toEqual([[COMPUTE, 20]]);
  });

  it('when half of many commands are over', () => {
    state.commands(COMPUTE, 128);
    state.commands(0, 200);
    asked.turn();
    expect(armed()).toEqual([
      [0, 100],
      [COMPUTE, 128],
    ]);
  });

  it('not on queues without commands', () => {
    state.commands(0, 1);
    state.commands(COMPUTE, 3);
    state.manual.completeAll(0);
    state.submission.takeFinished(queueId(0));
    asked.turn();
    expect(armed()).toEqual([[COMPUTE, 3]]);
  });

  it.each([
    ['the lane of its device', (a: Asked) => a.ready[1].push(taskId(99), 0)],
    ['its line', (a: Asked) => a.lines[COMPUTE].push(taskId(99), 0)],
    [
      'the line for room in its ring',
      (a: Asked) => a.state.x.slotWaiters[COMPUTE].push(taskId(99)),
    ],
  ])('when a quarter of the depth is left, with more work in %s', (_where, add) => {
    state.commands(COMPUTE, 20);
    state.commands(0, 20);
    add(asked);
    asked.turn();
    expect(armed()).toEqual([
      [0, 20],
      [COMPUTE, 20 - asked.depth[COMPUTE] / 4],
    ]);
  });

  it('at the next completion, if fewer commands than that are under way', () => {
    state.commands(COMPUTE, 5);
    asked.ready[1].push(taskId(99), 0);
    asked.turn();
    expect(armed()).toEqual([[COMPUTE, 1]]);
  });

  it('at the next completion of every queue, if a task waits for memory', () => {
    state.commands(0, 20);
    state.commands(COMPUTE, 20);
    state.manual.complete(COMPUTE, 4);
    asked.lines[COMPUTE].push(taskId(99), 0);
    state.spaces[1].waiters.push(taskId(99));
    asked.turn();
    expect(armed()).toEqual([
      [0, 1],
      [COMPUTE, 5],
    ]);
  });

  it('at the first event that a body waits for', () => {
    state.commands(COMPUTE, 20);
    for (const seq of [9, 7, 12]) state.x.waitForEvent(state.task(), COMPUTE, seq);
    asked.turn();
    expect(armed()).toEqual([[COMPUTE, 7]]);
  });

  it('when a quarter of the depth is left, if the program waits for room in the window', () => {
    state.commands(COMPUTE, 20);
    asked.idle.block();
    expect(armed()).toEqual([[COMPUTE, 10]]);
    expect(state.manual.calls).toEqual(['block']);
  });
});

it('a doorbell that rings before the engine sleeps makes it look again', () => {
  state.commands(COMPUTE, 1);
  state.manual.isDue = true;
  state.manual.onIdle = () => {
    if (asked.passes === 3) state.manual.isDue = false;
  };
  asked.turn();
  expect(asked.passes).toBe(3);
  expect(state.manual.calls).toEqual(['hold', 'sleep', 'sleep', 'sleep']);
});

describe('if another rank may answer at any moment, and every thread has a core', () => {
  beforeEach(() => {
    state.remote = { expecting: true, mustRetry: false, maySpin: true } as never;
    state.commands(COMPUTE, 20);
  });

  it('the engine spins for the events that would wake it, and looks when one has come', () => {
    state.manual.isDue = true;
    state.manual.onIdle = () => {
      expect(armed()).toEqual([[COMPUTE, 20]]);
      state.manual.armed.clear();
      if (asked.passes === 3) state.manual.isDue = false;
    };
    asked.turn();
    expect(asked.passes).toBe(3);
    expect(state.manual.calls).toEqual(['hold', 'spin', 'spin', 'spin']);
    // None came for a while: timers and sockets are served before the next look.
    expect(state.manual.hasTurn).toBe(true);
  });

  it('it sleeps after 10 ms without progress', () => {
    state.x.now = 20e6;
    asked.turn();
    expect(state.manual.calls).toEqual(['hold', 'sleep']);
  });
});

describe('a lane to other ranks', () => {
  /** Behind the copy queues. */
  const [LANE, OTHER] = [5, 6];
  beforeEach(() => {
    asked = new Asked(2);
    state = asked.state;
  });
  const lanesArmed = (): number[] => armed().flatMap(([q]) => (q >= LANE ? [q] : []));

  it('wakes the engine if no other queue has commands', () => {
    state.commands(LANE, 1);
    asked.turn();
    expect(armed()).toEqual([[LANE, 1]]);
  });

  it('is left to the queue that follows it', () => {
    state.commands(LANE, 1);
    state.commands(COMPUTE, 3);
    asked.turn();
    expect(armed()).toEqual([[COMPUTE, 3]]);
  });

  it('wakes the engine for a closed receive, for held ones, and for whoever waits for its event or its ring', () => {
    state.commands(LANE, 1);
    state.commands(OTHER, 1);
    state.commands(COMPUTE, 3);
    asked.closed = [LANE];
    asked.turn();
    expect(lanesArmed()).toEqual([LANE]);
    asked.closed = [];
    state.manual.armed.clear();
    state.x.eventWaiters[OTHER] = state.x.waiterNodes.push(-1, taskId(0), 1);
    asked.turn();
    expect(lanesArmed()).toEqual([OTHER]);
    state.manual.armed.clear();
    state.x.slotWaiters[LANE].push(taskId(99));
    asked.turn();
    expect(lanesArmed()).toEqual([LANE, OTHER]);
  });

  it('wakes the engine when its thread blocks in a full window, or a task waits for memory', () => {
    state.commands(LANE, 1);
    state.commands(COMPUTE, 3);
    asked.idle.block();
    expect(lanesArmed()).toEqual([LANE]);
    state.manual.armed.clear();
    state.spaces[1].waiters.push(taskId(99));
    asked.turn();
    expect(lanesArmed()).toEqual([LANE]);
  });

  it('wakes the engine for a task that stepped aside: a receive may have the memory', () => {
    state.commands(LANE, 1);
    state.commands(COMPUTE, 3);
    state.spaces[1].aside.push(taskId(99));
    asked.turn();
    expect(lanesArmed()).toEqual([LANE]);
  });
});

describe('if workers take all cores', () => {
  beforeEach(() => {
    state.manual.full = true;
    state.commands(0, 4);
  });

  it('the engine executes commands instead of blocking', () => {
    asked.idle.block();
    expect(state.manual.calls).toEqual(['serve']);
    expect(armed()).toEqual([[0, 1]]);
  });

  it('it executes commands instead of sleeping, and sleeps without a command that it may execute', () => {
    let calls = 0;
    state.manual.onIdle = () => {
      state.manual.serves = ++calls < 2;
    };
    asked.turn();
    expect(state.manual.calls).toEqual(['hold', 'serve', 'serve', 'sleep']);
  });

  it('it executes none if one queue has long tasks', () => {
    state.commands(1, 1);
    asked.isShort = (q) => q === 0;
    asked.turn();
    asked.idle.block();
    expect(state.manual.calls).toEqual(['hold', 'sleep', 'block']);
  });

  it('it executes none if only GPUs have work', () => {
    state.manual.completeAll(0);
    while (state.submission.takeFinished(queueId(0)) !== 0);
    state.commands(COMPUTE, 1);
    asked.turn();
    expect(state.manual.calls).toEqual(['hold', 'sleep']);
  });

  it('it executes none if it has a core of its own', () => {
    state.manual.full = false;
    asked.idle.block();
    expect(state.manual.calls).toEqual(['block']);
  });
});

/** All commands are over and seen, and their tasks have ended. */
function finish(): void {
  for (let q = 0; q < state.manual.queues.length; q++) {
    state.manual.completeAll(q);
    while (state.submission.takeFinished(queueId(q)) !== 0);
  }
  state.tasks.head = state.tasks.next;
}

describe('a rank without work of its own', () => {
  /** Its passes, if messages come during the first two. */
  function passes(): number {
    state.remote = { expecting: false, mustRetry: false, maySpin: false } as never;
    state.manual.isDue = true;
    state.manual.onIdle = () => {
      if (asked.passes === 3) state.manual.isDue = false;
    };
    asked.turn();
    return asked.passes;
  }

  it('arms the doorbell, and looks at the messages of others', () => {
    expect(passes()).toBe(3);
    expect(state.manual.calls.at(-1)).toBe('sleep');
  });

  it('without idleAnswers: it sees no message', () => {
    setGuard('idleAnswers', false);
    try {
      expect(passes()).toBe(1);
      expect(state.manual.calls).toEqual([]);
    } finally {
      setGuard('idleAnswers', true);
    }
  });
});

describe('quiet()', () => {
  it('resolves at once if no task is live and no command is under way', async () => {
    await asked.idle.quiet();
    expect(asked.passes).toBe(1);
    expect(state.manual.hasTurn).toBe(false);
  });

  it('resolves when the last task is over, and lets the process go', async () => {
    state.commands(0, 2);
    const quiet = vi.fn();
    const both = Promise.all([asked.idle.quiet().then(quiet), asked.idle.quiet()]);
    state.manual.turn();
    await Promise.resolve();
    expect(quiet).not.toHaveBeenCalled();
    expect(state.manual.calls).toEqual(['hold', 'sleep']);
    finish();
    state.manual.ring();
    await both;
    expect(state.manual.calls).toEqual(['hold', 'sleep', 'release']);
  });

  it('does not resolve before calls that wait for a row were made', async () => {
    const made: number[] = [];
    const rows = Array.from({ length: state.tasks.window }, () => state.task({}));
    asked.deferred.defer(() => made.push(1));
    asked.deferred.defer(() => {
      made.push(2);
      asked.deferred.defer(() => made.push(3));
    });
    expect([asked.deferred.make(), asked.deferred.waiting]).toEqual([false, 2]);
    for (const row of rows) state.tasks.stage[row] = TaskStage.done;
    state.tasks.retireHead();
    const quiet = vi.fn();
    const over = asked.idle.quiet().then(quiet);
    await Promise.resolve();
    expect([quiet.mock.calls.length, made]).toEqual([0, []]);
    state.manual.turn();
    await over;
    expect([made, asked.deferred.waiting]).toEqual([[1, 2, 3], 0]);
  });

  it('resolves also when one of these calls throws', async () => {
    const made = vi.fn();
    asked.deferred.defer(() => {
      throw new Error('it cannot be made');
    });
    asked.deferred.defer(made);
    const quiet = asked.idle.quiet();
    expect(() => state.manual.turn()).toThrow('it cannot be made');
    state.manual.turn();
    await quiet;
    expect(made).toHaveBeenCalled();
  });

  it('does not resolve while another rank has work to do', () => {
    state.remote = { expecting: true, mustRetry: false, maySpin: false } as never;
    void asked.idle.quiet();
    expect(state.manual.hasTurn).toBe(true);
    asked.turn();
    expect(state.manual.calls).toEqual(['hold', 'sleep']);
  });
});

describe('if no task can go on', () => {
  it('every open run with live tasks fails with ERR_STALLED, and the table of waits', () => {
    const runs = [1, 2, 3, 4].map((slot) => state.run(slot));
    for (const run of runs.slice(1)) state.task({ run });
    const before = new Error('it failed before') as HeadraceError;
    runs[3].error = before;
    asked.turn();
    expect(asked.failed.map(([run]) => run)).toEqual([runs[1], runs[2]]);
    for (const [, error] of asked.failed) {
      expect(error.code).toBe('ERR_STALLED');
      expect(error.message).toContain('the table of waits');
    }
    expect(runs[3].error).toBe(before);
    expect(state.manual.calls).not.toContain('sleep');
    expect(state.manual.hasTurn).toBe(true);
  });

  it('dropped tasks are released if no run is open that could fail', () => {
    state.task();
    asked.hasDropped = true;
    asked.turn();
    expect(asked.givenUp).toBe(1);
    expect(state.manual.hasTurn).toBe(true);
  });

  it('the error is thrown if no run could receive it', () => {
    state.task();
    expect(() => asked.turn()).toThrow(expect.objectContaining({ code: 'ERR_STALLED' }));
  });

  it('but if another pass can go on, nothing fails', () => {
    state.task({ run: state.run() });
    asked.moves = [() => false, () => true];
    asked.turn();
    expect(asked.failed).toEqual([]);
    expect(state.manual.hasTurn).toBe(true);
  });

  it('a body that has not ended is waited for', () => {
    state.task({ run: state.run() });
    asked.bodies.waiting = 1;
    asked.turn();
    expect(asked.failed).toEqual([]);
    expect(state.manual.calls).toEqual(['hold', 'sleep']);
  });

  it('bodies that are about to run are run in the next pass', () => {
    state.task({ run: state.run() });
    asked.bodies.queued.push(1);
    asked.moves = [
      () => true,
      () => {
        asked.bodies.queued.shift();
        finish();
        return true;
      },
    ];
    asked.turn();
    expect(asked.passes).toBe(2);
    expect(state.manual.calls).toEqual(['hold', 'release']);
    expect(state.manual.hasTurn).toBe(false);
  });
});

it('never sleeps while a task is live and no doorbell would ring', () => {
  const seq = fc.nat(60);
  const queue = fc.record({ commands: fc.nat(60), done: seq, ready: fc.boolean(), event: seq });
  const queues = fc.array(queue, { minLength: 5, maxLength: 5 });
  fc.assert(
    fc.property(queues, fc.boolean(), fc.boolean(), (all, memory, full) => {
      asked = new Asked();
      state = asked.state;
      state.manual.full = full;
      if (memory) state.spaces[1].waiters.push(taskId(99));
      const run = state.run();
      state.task({ run });
      all.forEach(({ commands, done, ready, event }, q) => {
        state.commands(q, commands, { run });
        if (ready) asked.lines[q].push(taskId(q), 0);
        const completed = Math.min(done, commands);
        state.manual.complete(q, completed);
        for (let i = 0; i < completed; i++) state.submission.takeFinished(queueId(q));
        if (event > completed && event <= commands) state.x.waitForEvent(0, queueId(q), event);
      });
      state.manual.onIdle = () => {
        state.manual.serves = false;
        const { issued, completed } = state.manual;
        expect(state.manual.armed.size).toBeGreaterThan(0);
        all.forEach((_, q) => {
          expect(state.manual.armed.has(q)).toBe(completed[q] < issued[q]);
          if (completed[q] === issued[q]) return;
          const wanted = state.manual.armed.get(q) as number;
          expect(wanted).toBeGreaterThan(completed[q]);
          expect(wanted).toBeLessThanOrEqual(issued[q]);
        });
      };
      asked.turn();
      const underWay = all.some(({ commands, done }) => done < commands);
      expect(state.manual.calls.includes('sleep')).toBe(underWay);
      expect(asked.failed.length).toBe(underWay ? 0 : 1);
    }),
  );
});
