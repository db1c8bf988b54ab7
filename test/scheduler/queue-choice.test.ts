// The choice of a queue, on recorded states: the queue that wrote most of the task's data; new data are dealt out in
// runs; a queue that runs dry gets some tasks; under memory pressure the first two queues get all.

import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { type DatumId, FIRST_GPU, NO_QUEUE } from '../../devices/handles.js';
import { AccessMode } from '../../stages/task-table.js';
import { queueId } from '../support/handles.js';
import { type PlacedFlow, PlacementState } from '../support/placement-state.js';

const { read, write, readWrite } = AccessMode;
/** Host queue 0; compute queues 1 to 4 and copy queues of GPU 1; then those of GPU 2. */
const GPU = FIRST_GPU;
const QUEUES = [1, 2, 3, 4].map(queueId);
const COPIES = 5;
const DEPTH = 256;
let state: PlacementState;

/** A new datum that queue `q` wrote last on the GPU. */
function from(q: number): DatumId {
  const d = state.datum(8, GPU);
  state.wroteLast(d, q);
  return d;
}
const reads = (...queues: readonly number[]): PlacedFlow[] =>
  queues.map((q) => ({ datum: from(q), mode: read }));
/** A task that writes a datum which nobody wrote. */
const fresh = (): PlacedFlow[] => [{ datum: state.datum(8), mode: write }];
const load = (...commands: readonly number[]): void =>
  commands.forEach((n, i) => void state.load(QUEUES[i], n));

beforeEach(() => {
  state = new PlacementState({ gpus: 2, streams: 4, depth: DEPTH });
});

describe('a task goes to the queue', () => {
  it('that wrote most of its data', () => {
    expect(state.queue(reads(2, 3, 3, 4), GPU)).toBe(3);
    expect(state.queue(reads(4, 4), GPU)).toBe(4);
  });

  it('that wrote the data that it changes, which counts as three votes', () => {
    const changed = { datum: from(2), mode: readWrite };
    expect(state.queue([...reads(3, 3), changed], GPU)).toBe(2);
    expect(state.queue([...reads(3, 3, 3, 3), changed], GPU)).toBe(3);
  });

  it('of the task before, if the vote is a draw', () => {
    for (const before of [2, 3]) {
      expect(state.queue(reads(before), GPU)).toBe(before);
      expect(state.queue(reads(2, 3), GPU)).toBe(before);
      expect(state.queue(reads(3, 2), GPU)).toBe(before);
    }
  });

  it('of the kernels: copy queues and other devices have no vote', () => {
    const elsewhere = state.datum(8, 2);
    state.wroteLast(elsewhere, 8);
    const copied = { datum: from(COPIES), mode: read };
    expect(state.queue([copied, copied, { datum: elsewhere, mode: read }, ...reads(3)], GPU)).toBe(
      3,
    );
  });

  it('without votes left over for the next task', () => {
    state.queue(reads(2, 2, 3), GPU);
    state.queue(reads(3, 3, 2, 4), GPU);
    expect(state.queue(reads(4, 4, 3), GPU)).toBe(4);
    for (let i = 0; i < 3; i++) state.queue([...reads(2), ...fresh()], GPU);
    expect(state.queue(reads(2, 3, 3), GPU)).toBe(3);
  });

  it('of the device, if the device has only one', () => {
    expect(state.queue(fresh(), 0)).toBe(0);
    expect(state.queueChoice.onlyQueue[0]).toBe(0);
    expect(state.queueChoice.onlyQueue[GPU]).toBe(NO_QUEUE);
  });

  it('that is the first or the second in turn, under memory pressure', () => {
    state.short[GPU] = 1;
    load(100, 0, 0, 0);
    const four = [reads(3, 3), fresh(), reads(3, 3), fresh()].map((row) => state.queue(row, GPU));
    expect(four).toEqual([2, 1, 2, 1]);
  });
});

describe('tasks without data on any queue', () => {
  const deal = (n: number): number[] =>
    Array.from({ length: n }, () => {
      const q = state.queue(fresh(), GPU);
      state.submission.outstanding[q]++;
      return q;
    });
  const runs = (queues: readonly number[]): number[] => {
    const lengths: number[] = [];
    queues.forEach((q, i) => {
      if (q === queues[i - 1]) lengths[lengths.length - 1]++;
      else lengths.push(1);
    });
    return lengths;
  };

  it('are dealt out eight in a row, and all queues get as many', () => {
    const dealt = deal(96);
    expect(runs(dealt)).toEqual(new Array(12).fill(8));
    expect(QUEUES.map((q) => dealt.filter((each) => each === q).length)).toEqual([24, 24, 24, 24]);
  });

  it('are dealt out in shorter runs if few commands are queued ahead', () => {
    state = new PlacementState({ gpus: 2, streams: 4, depth: 4 });
    expect(runs(deal(16))).toEqual(new Array(8).fill(2));
  });

  it('leave a queue after a run, although no other queue has a shorter backlog', () => {
    const dealt = Array.from({ length: 32 }, () => state.queue(fresh(), GPU));
    expect(runs(dealt)).toEqual([8, 8, 8, 8]);
  });

  it('leave a queue that is eight ahead of the least loaded queue, and go to the latter', () => {
    load(8, 5, 1, 5);
    expect(state.queue(fresh(), GPU)).toBe(1);
    load(9, 5, 1, 5);
    expect(state.queue(fresh(), GPU)).toBe(3);
  });

  it('count the tasks in the lines, too', () => {
    load(3, 3, 3, 0);
    state.load(4, 0, 20);
    state.load(1, 3, 20);
    expect([2, 3]).toContain(state.queue(fresh(), GPU));
    expect(state.queueChoice.backlog(queueId(4))).toBe(20);
  });
});

describe('an elected queue that is far behind', () => {
  it('keeps its task while no other has run dry', () => {
    load(200, 5, 5, 5);
    expect(state.queue(reads(1, 1), GPU)).toBe(1);
  });

  it('gives up to eight tasks to a queue that has run dry, and more after the next look', () => {
    load(200, 50, 50, 0);
    const chosen = Array.from({ length: 10 }, () => state.queue(reads(1), GPU));
    expect(chosen).toEqual([4, 4, 4, 4, 4, 4, 4, 4, 1, 1]);
    state.queueChoice.lookAgain();
    expect(state.queue(reads(1), GPU)).toBe(4);
  });

  it('keeps its task when it is no more than eight ahead', () => {
    load(8, 0, 0, 0);
    expect(state.queue(reads(1), GPU)).toBe(1);
    load(9, 0, 0, 0);
    expect(state.queue(reads(1), GPU)).not.toBe(1);
  });

  it('gives its task to a queue that shares the data and is far less loaded', () => {
    load(100, 30, 20, 20);
    expect(state.queue(reads(1, 1, 2), GPU)).toBe(2);
    load(90, 30, 20, 20);
    expect(state.queue(reads(1, 1, 2), GPU)).toBe(1);
  });
});

describe('a queue that has run dry', () => {
  it('steals from the longest other line of its device', () => {
    state.load(1, 0, 50);
    state.load(2, 0, 3);
    state.load(4, 0, 7);
    state.load(7, 0, 99);
    expect(QUEUES.map((q) => state.queueChoice.victimFor(queueId(q)))).toEqual([4, 1, 1, 1]);
  });

  it('steals nothing if no other line holds a task', () => {
    state.load(2, 30, 5);
    state.load(3, 60);
    expect(state.queueChoice.victimFor(queueId(2))).toBe(NO_QUEUE);
    expect(state.queueChoice.victimFor(queueId(1))).toBe(2);
    expect(state.queueChoice.victimFor(queueId(0))).toBe(NO_QUEUE);
  });
});

describe('room', () => {
  it('is in a queue with fewer commands than its depth, and under memory pressure in two queues for all', () => {
    const { queueChoice, short } = state;
    load(DEPTH - 1, DEPTH, DEPTH, DEPTH);
    expect(QUEUES.map((q) => queueChoice.hasRoom(queueId(q)))).toEqual([true, false, false, false]);
    expect(queueChoice.hasSlot(GPU)).toBe(true);
    load(DEPTH, DEPTH, DEPTH, DEPTH);
    expect(queueChoice.hasSlot(GPU)).toBe(false);
    short[GPU] = 1;
    expect([queueChoice.hasRoom(queueId(1)), queueChoice.hasSlot(GPU)]).toEqual([true, true]);
    load(2 * DEPTH, 2 * DEPTH - 1, 0, 0);
    expect([queueChoice.hasRoom(queueId(1)), queueChoice.hasSlot(GPU)]).toEqual([false, true]);
    load(2 * DEPTH, 2 * DEPTH, 0, 0);
    expect([queueChoice.hasRoom(queueId(1)), queueChoice.hasSlot(GPU)]).toEqual([false, false]);
  });

  it('is not needed if every queue that executes kernels has eight commands', () => {
    const { queueChoice, submission } = state;
    submission.outstanding.fill(8);
    expect(queueChoice.allBusy()).toBe(true);
    submission.outstanding[COPIES] = 0;
    expect(queueChoice.allBusy()).toBe(true);
    for (const q of [0, 1, 8]) {
      submission.outstanding[q] = 7;
      expect(queueChoice.allBusy()).toBe(false);
      submission.outstanding[q] = 8;
    }
  });
});

const votes = fc.array(
  fc.record({
    queue: fc.constantFrom(-1, ...QUEUES, COPIES),
    mode: fc.constantFrom(read, write, readWrite),
  }),
  { maxLength: 5 },
);

describe('the queue of a task on random states', () => {
  it('is one that the rule allows', () => {
    const backlogs = fc.array(fc.constantFrom(0, 3, 4, 8, 12, 13, 40, 150), {
      minLength: 4,
      maxLength: 4,
    });
    fc.assert(
      fc.property(votes, backlogs, fc.constantFrom(...QUEUES), (flows, backlog, before) => {
        state = new PlacementState({ gpus: 2, streams: 4, depth: DEPTH });
        state.queue(reads(before), GPU);
        load(...backlog);
        const shares = new Map<number, number>();
        for (const { queue, mode } of flows) {
          if (!(QUEUES as readonly number[]).includes(queue)) continue;
          shares.set(queue, (shares.get(queue) ?? 0) + (mode === readWrite ? 3 : 1));
        }
        const behind = (q: number): number => backlog[q - 1];
        const least = Math.min(...backlog);
        const leastLoaded = QUEUES.filter((q) => behind(q) === least);
        const top = Math.max(...shares.values());
        const winners = [...shares.keys()].filter((q) => shares.get(q) === top);
        const elected = winners.includes(before) ? [before] : winners;
        const allowed = new Set<number>();
        for (const q of elected) {
          if (behind(q) - least <= 8) allowed.add(q);
          else if (least <= DEPTH / 64) for (const other of leastLoaded) allowed.add(other);
          else {
            const others = [...shares.keys()].filter((other) => other !== q);
            const free = others.filter((other) => behind(q) - behind(other) > DEPTH / 4);
            // With one other voter there is no doubt which of the two it is.
            if (others.length !== 1 || free.length === 0) allowed.add(q);
            for (const other of free) allowed.add(other);
          }
        }
        if (winners.length === 0)
          for (const q of behind(1) - least < 8 ? [1] : leastLoaded) allowed.add(q);
        const found = state.queue(
          flows.map(({ queue, mode }) => ({
            datum: queue < 0 ? state.datum(8) : from(queue),
            mode,
          })),
          GPU,
        );
        expect([...allowed]).toContain(found);
      }),
      { numRuns: 400 },
    );
  });
});
