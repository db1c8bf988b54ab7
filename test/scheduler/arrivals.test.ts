// When a queue may wait for a version that has not come: after every task before its receive is issued or over.
import '../support/removable-guards.js';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { QueueId, SpaceId, TaskId } from '../../devices/handles.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { Arrivals } from '../../scheduler/engine/arrivals.js';
import { INTERNAL_RUN } from '../../scheduler/engine/run-state.js';
import { WaitReason } from '../../stages/stage.js';
import { Execution, TaskStage } from '../../stages/task-table.js';
import { PartsState } from '../support/parts-state.js';

const LANE = 0;

/** A state, and the rows of the receives that were opened, in order. */
function setUp(): { state: PartsState; arrivals: Arrivals; opened: number[] } {
  const state = new PartsState({ window: 128 });
  const opened: number[] = [];
  return { state, opened, arrivals: new Arrivals(state, (row) => void opened.push(row)) };
}

/** The receive in `row` becomes a command of a lane. */
function command(state: PartsState, arrivals: Arrivals, row: number, run = 1): void {
  state.issue(row, LANE);
  state.tasks.execution[row] = Execution.arrival;
  state.tasks.run[row] = run;
  arrivals.commanded(row);
}

describe('a receive', () => {
  it('opens at once if no task before it waits', () => {
    const { state, arrivals, opened } = setUp();
    state.commands(LANE, 3);
    const row = state.task();
    command(state, arrivals, row);
    expect(opened).toEqual([row]);
    expect(state.tasks.execution[row]).toBe(Execution.command);
    expect(arrivals.look()).toBe(false);
  });

  it('stays closed behind a task that is not issued, and opens after its issue or its end', () => {
    for (const ends of [false, true]) {
      const { state, arrivals, opened } = setUp();
      const before = state.task();
      const row = state.task();
      command(state, arrivals, row);
      expect(arrivals.look()).toBe(false);
      expect(opened).toEqual([]);
      if (ends) state.tasks.stage[before] = TaskStage.done;
      else state.issue(before, LANE);
      expect(arrivals.look()).toBe(true);
      expect(opened).toEqual([row]);
    }
  });

  it('stays closed behind a JavaScript body that has begun: the body may wait for others', () => {
    const { state, arrivals, opened } = setUp();
    const body = state.task({ stage: TaskStage.exec });
    state.tasks.execution[body] = Execution.body;
    const row = state.task();
    command(state, arrivals, row);
    expect(arrivals.look()).toBe(false);
    state.tasks.stage[body] = TaskStage.done;
    expect(arrivals.look()).toBe(true);
    expect(opened).toEqual([row]);
  });

  describe('behind a send of which some commands wait for room in their lane', () => {
    afterEach(() => setGuard('offerWhole', true));

    /** Whether the receive opens, before all commands of the send are written and after. */
    const opens = (): boolean[] => {
      const { state, arrivals } = setUp();
      const send = state.task({ stage: TaskStage.exec });
      state.tasks.execution[send] = Execution.movement;
      state.tasks.waiting[send] = WaitReason.slot;
      command(state, arrivals, state.task());
      const before = arrivals.look();
      state.tasks.waiting[send] = 0;
      return [before, arrivals.look()];
    };

    it('stays closed', () => {
      expect(opens()).toEqual([false, true]);
    });

    it('without offerWhole: it opens, and what waits for it stands before the other commands', () => {
      setGuard('offerWhole', false);
      expect(opens()).toEqual([false, false]);
    });
  });

  it('for a read stays closed, and its lane wakes the engine until it is over', () => {
    const { state, arrivals, opened } = setUp();
    const row = state.task();
    command(state, arrivals, row, INTERNAL_RUN);
    state.tasks.target[row] = LANE as QueueId;
    expect(arrivals.look()).toBe(false);
    const wakes = new Uint8Array(1);
    arrivals.markLanes(wakes);
    expect(wakes[0]).toBe(1);
    expect(arrivals.behind((state.tasks.idOf(row) - 1) as TaskId)).toBe(1);
    state.tasks.stage[row] = TaskStage.done;
    arrivals.markLanes(wakes.fill(0));
    expect([...wakes, arrivals.behind((state.tasks.idOf(row) - 1) as TaskId)]).toEqual([0, 0]);
    expect(opened).toEqual([]);
  });

  it('into memory of a device holds no host memory', () => {
    const { state, arrivals } = setUp();
    const before = state.task();
    const [onHost, onDevice] = [state.task(), state.task()];
    for (const row of [onHost, onDevice]) command(state, arrivals, row);
    state.tasks.device[onDevice] = 1 as SpaceId;
    expect(arrivals.behind(state.tasks.idOf(before))).toBe(1);
  });

  it('is behind a JavaScript body until that is over, and not behind later ones', () => {
    const { state, arrivals } = setUp();
    const [first, second, receive, third] = [1, 2, 3, 4].map(() => state.task()) as [
      number,
      number,
      number,
      number,
    ];
    const id = state.tasks.idOf(receive);
    expect(arrivals.isBehindBody(id)).toBe(false);
    for (const body of [first, second, third]) arrivals.bodyInserted(state.tasks.idOf(body));
    const over: boolean[] = [];
    for (const body of [second, first]) {
      state.tasks.stage[body] = TaskStage.done;
      over.push(arrivals.isBehindBody(id));
    }
    expect(over).toEqual([true, false]);
  });

  it('that is over before it opens is not opened', () => {
    const { state, arrivals, opened } = setUp();
    const before = state.task();
    const row = state.task();
    command(state, arrivals, row);
    state.tasks.execution[row] = Execution.command;
    state.tasks.stage[row] = TaskStage.done;
    state.issue(before, LANE);
    expect(arrivals.look()).toBe(false);
    expect(opened).toEqual([]);
  });

  it('opens, for any order of issue, exactly when all tasks before it are issued', () => {
    fc.assert(
      fc.property(
        fc.array(fc.boolean(), { minLength: 1, maxLength: 40, size: 'max' }),
        fc.integer(),
        (kinds, seed) => {
          const { state, arrivals, opened } = setUp();
          const rows = kinds.map(() => state.task());
          const order = rows
            .map((row, i) => ({ row, i, at: Math.imul(seed ^ i, 2654435761) >>> 0 }))
            .sort((a, b) => a.at - b.at);
          const issued = new Set<number>();
          for (const { row, i } of order) {
            issued.add(i);
            if (kinds[i]) command(state, arrivals, row);
            else state.issue(row, LANE);
            arrivals.look();
            const first = kinds.findIndex((_, k) => !issued.has(k));
            const reached = first < 0 ? kinds.length : first;
            const expected = rows.filter((_, k) => kinds[k] && issued.has(k) && k <= reached);
            expect([...opened].sort((a, b) => a - b)).toEqual(expected);
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
