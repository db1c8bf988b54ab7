// The effects of completions: the order in which they are handled, and the tasks that are checked again because of them.

import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { Status } from '../../devices/backend.js';
import { type DatumId, FIRST_GPU, HOST, NO_TASK } from '../../devices/handles.js';
import { Completions } from '../../scheduler/engine/completions.js';
import { advance } from '../../stages/pipeline.js';
import { WaitReason } from '../../stages/stage.js';
import { TaskStage } from '../../stages/task-table.js';
import { TransferReason } from '../../trace/format.js';
import { datumId, queueId } from '../support/handles.js';
import { PartsState, UNIT } from '../support/parts-state.js';

/** Host queue 0; GPU 1: compute queue 1, copies to it on queue 2. */
const WORKER = queueId(0);
const COMPUTE = queueId(1);
const TO_GPU = 2;
const GPU = FIRST_GPU;
/** Units of memory of the GPU. */
const UNITS = 10;

let state: PartsState;
let completions: Completions;
/** The parts that were told, and the ends of tasks and transfers, in order. */
let told: string[];

beforeEach(() => {
  state = new PartsState({ gpus: 1, units: UNITS });
  told = state.told;
  state.transfers.observer = {
    transferDone: (_t, queue, _seq, status) => void told.push(`copy on ${queue}: ${status}`),
  };
  completions = new Completions(state, {
    queueChoice: { lookAgain: () => void told.push('look again') },
    depth: { completed: (q, n) => void told.push(`depth of ${q}: ${n}`) },
    dispatcher: { drainReleased: () => void told.push('drain') },
    failures: { markFailed: () => void told.push('mark failed') },
    retirement: state.retirement,
    leaving: { look: () => void told.push('leaving') },
    kernelTimes: { isOpen: false, ended: () => {} },
  });
});

/** A copy to the GPU is under way; returns its sequence number. */
function copyToGpu(): number {
  const d = state.datum(1, 0);
  state.directory.block[d * 2 + GPU] = state.spaces[GPU].zone.allocate(UNIT);
  state.transfers.issue(d, GPU, HOST, TransferReason.stageIn, NO_TASK, 0);
  return state.manual.issued[TO_GPU];
}

/** What `call` makes the parts do. */
function during(call: () => void): string[] {
  told.length = 0;
  call();
  return told.filter((each) => each !== 'leaving' && each !== 'look again' && each !== 'drain');
}
const take = (): string[] => during(() => completions.take());
const wake = (): string[] => during(() => completions.wakeWaiters());

describe('completions are taken', () => {
  it('queue by queue in order, each once, and their number goes to the depth of the queue', () => {
    const [a, b, c] = state.commands(COMPUTE, 3, { device: GPU });
    const [d] = state.commands(WORKER);
    state.manual.complete(COMPUTE, 2);
    state.manual.completeAll(WORKER);
    expect(take()).toEqual([
      `retired ${d}`,
      'depth of 0: 1',
      `retired ${a}`,
      `retired ${b}`,
      'depth of 1: 2',
    ]);
    expect(state.progressed).toBe(3);
    expect(take()).toEqual([]);
    state.manual.complete(COMPUTE, 3);
    expect(take()).toEqual([`retired ${c}`, 'depth of 1: 1']);
  });

  it('in this order: failed copies, failed kernels after their data are marked, successes', () => {
    const [good] = state.commands(WORKER);
    const [bad] = state.commands(COMPUTE, 1, { device: GPU });
    const copy = copyToGpu();
    for (const q of [WORKER, COMPUTE, TO_GPU]) state.manual.completeAll(q);
    state.manual.fail(COMPUTE, 1, 7);
    state.manual.fail(TO_GPU, copy, Status.driver);
    expect(take().filter((each) => !each.startsWith('depth'))).toEqual([
      `copy on ${TO_GPU}: ${Status.driver}`,
      'mark failed',
      `retired ${bad} 7`,
      `retired ${good}`,
    ]);
  });

  it('a failed copy without failed kernels marks no tasks, and a failure counts once', () => {
    const copy = copyToGpu();
    state.manual.completeAll(TO_GPU);
    state.manual.fail(TO_GPU, copy, Status.driver);
    expect(take()).toEqual([`copy on ${TO_GPU}: ${Status.driver}`, 'depth of 2: 1']);
    const [later] = state.commands(COMPUTE, 1, { device: GPU });
    state.manual.completeAll(COMPUTE);
    expect(take()).toEqual([`retired ${later}`, 'depth of 1: 1']);
  });

  it('a failure that is counted before its record completes is handled at the completion', () => {
    const [a, b] = state.commands(COMPUTE, 2, { device: GPU });
    state.manual.fail(COMPUTE, 2, 7);
    state.manual.complete(COMPUTE, 1);
    expect(take()).toContain(`retired ${a}`);
    state.manual.complete(COMPUTE, 2);
    expect(take()).toEqual(['mark failed', `retired ${b} 7`, 'depth of 1: 1']);
  });

  it('and leaving data are checked before and after; the queue choice only after a completion', () => {
    completions.take();
    expect(told).toEqual(['leaving']);
    state.commands(WORKER);
    state.manual.completeAll(WORKER);
    told.length = 0;
    completions.take();
    expect(told[0]).toBe('leaving');
    expect(told[1]).toBe('look again');
    expect(told.at(-1)).toBe('leaving');
  });
});

describe('woken is', () => {
  const body = (): number => state.task({ hasBody: true, stage: TaskStage.exec });

  it('a task that waits for an event that has happened, and no other', () => {
    state.commands(COMPUTE, 4, { device: GPU });
    state.commands(WORKER, 4);
    const rows = [1, 2, 3, 4].map((seq) => {
      const row = body();
      state.x.waitForEvent(row, COMPUTE, seq);
      return row;
    });
    state.x.waitForEvent(body(), WORKER, 1);
    state.manual.complete(COMPUTE, 2);
    completions.take();
    expect(wake().sort()).toEqual([`body ${rows[0]}`, `body ${rows[1]}`].sort());
    expect(wake()).toEqual([]);
    state.manual.complete(COMPUTE, 4);
    completions.take();
    expect(wake().sort()).toEqual([`body ${rows[2]}`, `body ${rows[3]}`].sort());
  });

  it('a task that waits for room in a ring that has room again, in order, and no other', () => {
    state.commands(COMPUTE, 2, { device: GPU });
    state.commands(WORKER, 2);
    const wait = (queue: number, device: number): number => {
      const row = state.task({ stage: TaskStage.exec, device });
      state.tasks.target[row] = queueId(queue);
      state.x.waitForSlot(row, queueId(queue));
      return row;
    };
    wait(WORKER, 0);
    const rows = [1, 2, 3].map(() => wait(COMPUTE, GPU));
    state.manual.complete(COMPUTE, 1);
    completions.take();
    expect(wake()).toEqual(rows.map((row) => `issued ${row}`));
    expect(state.x.slotWaiters[WORKER].length).toBe(1);
  });

  it('neither a task that was dropped meanwhile, nor one that waits for another rank', () => {
    state.commands(COMPUTE, 1, { device: GPU });
    const [dropped, receive] = [body(), body()];
    for (const row of [dropped, receive]) state.x.waitForEvent(row, COMPUTE, 1);
    state.tasks.waiting[dropped] = WaitReason.none;
    state.x.waitForReceive(receive);
    state.manual.completeAll(COMPUTE);
    completions.take();
    expect(wake()).toEqual([]);
  });
});

describe('the line for memory', () => {
  /** Data that hold the memory of the GPU, by units. */
  const hold = (units: number): number => {
    const d = state.datum(units, GPU);
    state.spaces[GPU].pin(d);
    return d;
  };
  const letGo = (d: DatumId): void => {
    state.spaces[GPU].unpin(d);
    state.spaces[GPU].giveUp(d);
  };
  /** A task that needs so many units and finds the memory held. */
  const waiting = (units: number): number => {
    const d = state.datum(units, 0);
    const row = state.task({ writes: [d], device: GPU, stage: TaskStage.ready });
    state.tasks.target[row] = COMPUTE;
    advance(state.x, row);
    expect(state.tasks.waiting[row]).toBe(WaitReason.memory);
    return row;
  };
  const inLine = (): number[] => {
    const { waiters } = state.spaces[GPU];
    return Array.from({ length: waiters.length }, (_, i) => waiters.at(i) & state.tasks.mask);
  };

  it('is served in order and stops at the first that still waits', () => {
    const [four, rest] = [hold(4), hold(UNITS - 4)];
    const rows = [2, 3, 1].map(waiting);
    letGo(datumId(four));
    // One unit would be there for the last of them, but it must not overtake the second.
    expect(wake()).toEqual([`issued ${rows[0]}`]);
    expect(inLine()).toEqual([rows[1], rows[2]]);
    letGo(datumId(rest));
    expect(wake()).toEqual([`issued ${rows[1]}`, `issued ${rows[2]}`]);
    expect(inLine()).toEqual([]);
  });

  it('is served only if memory came back', () => {
    const all = hold(UNITS);
    const row = waiting(1);
    state.spaces[GPU].beginServing();
    const waits = state.x.counters.waits[WaitReason.memory];
    expect(wake()).toEqual([]);
    expect(state.x.counters.waits[WaitReason.memory]).toBe(waits);
    letGo(datumId(all));
    expect(wake()).toEqual([`issued ${row}`]);
    expect(state.spaces[GPU].mustServeLine).toBe(false);
  });

  it('loses tasks that were dropped meanwhile', () => {
    const all = hold(UNITS);
    const [dropped, row] = [waiting(1), waiting(1)];
    state.tasks.stage[dropped] = TaskStage.dropped;
    state.tasks.waiting[dropped] = WaitReason.none;
    letGo(datumId(all));
    expect(wake()).toEqual([`issued ${row}`]);
    expect(inLine()).toEqual([]);
  });

  it('of a device is checked when the host has room: a write-back may have waited for it', () => {
    state.spaces[GPU].beginServing();
    state.spaces[0].wakeLine();
    completions.wakeWaiters();
    expect(state.spaces.map(({ mustServeLine }) => mustServeLine)).toEqual([false, false]);
    const row = waitingBehindNothing();
    state.spaces[GPU].beginServing();
    state.spaces[0].wakeLine();
    expect(wake()).toEqual([`issued ${row}`]);
  });

  /** A task that stands in line although its memory is there. */
  function waitingBehindNothing(): number {
    const all = hold(UNITS);
    const row = waiting(1);
    letGo(datumId(all));
    return row;
  }

  it('asks for another round if movements give memory back in the middle of one', () => {
    waitingBehindNothing();
    expect(completions.memoryCameBack()).toBe(false);
    state.remote = {} as never;
    expect(completions.memoryCameBack()).toBe(true);
    completions.wakeWaiters();
    expect(completions.memoryCameBack()).toBe(false);
  });

  it('keeps program order and loses no task, in any order of freed memory', () => {
    const units = fc.integer({ min: 1, max: UNITS });
    fc.assert(
      fc.property(fc.array(units, { maxLength: 12 }), (needs) => {
        state = new PartsState({ gpus: 1, units: UNITS });
        const all = hold(UNITS);
        const rows = needs.map(waiting);
        completions = new Completions(state, {
          queueChoice: { lookAgain: () => {} },
          depth: { completed: () => {} },
          dispatcher: { drainReleased: () => {} },
          failures: { markFailed: () => {} },
          retirement: state.retirement,
          leaving: { look: () => {} },
          kernelTimes: { isOpen: false, ended: () => {} },
        });
        letGo(datumId(all));
        for (let turn = 0; turn <= rows.length * 4; turn++) {
          completions.wakeWaiters();
          for (let q = 0; q < state.manual.queues.length; q++) state.manual.completeAll(q);
          completions.take();
        }
        const issued = state.told.filter((each) => each.startsWith('issued'));
        expect(issued).toEqual(rows.map((row) => `issued ${row}`));
      }),
      { numRuns: 50 },
    );
  });
});
