// Receives that were commanded ahead: the lanes that they take, and the lane at whose end the engine looks for more.
import { describe, expect, it } from 'vitest';
import { NO_QUEUE, type QueueId } from '../../devices/handles.js';
import { ALIGNMENT } from '../../devices/memory/zone.js';
import type { RankHost } from '../../scheduler/ranks/host.js';
import { RankLanes } from '../../scheduler/ranks/rank-lanes.js';
import type { NetworkCredits } from '../../stages/comm-in.js';
import { TaskStage } from '../../stages/task-table.js';
import { PartsState } from '../support/parts-state.js';

/** A worker, then eight lanes: two for sends, six for receives. */
const RECEIVES = [3, 4, 5, 6, 7, 8];

function setUp(reached = false): {
  state: PartsState;
  lanes: RankLanes;
  credits: { floor: number[]; limit: number[] };
  marks: () => number[];
} {
  const state = new PartsState({ lanes: 8 });
  const host = Object.assign(state, { arrivals: { isReached: () => reached } });
  const credits = { floor: [0], limit: [Number.POSITIVE_INFINITY] };
  const granted = credits as unknown as NetworkCredits;
  const lanes = new RankLanes(host as unknown as RankHost, granted, () => true, {
    hostOnly: false,
  });
  const marks = (): number[] => {
    const wakes = new Uint8Array(state.manual.queues.length);
    lanes.markLanes(wakes);
    return [...wakes.keys()].filter((q) => wakes[q] === 1);
  };
  return { state, lanes, credits, marks };
}

/** The lane of the receive in `row`, if it begins with one. */
function laneOf(lanes: RankLanes, row: number): QueueId {
  return lanes.begins(row) ? lanes.laneAhead(row) : NO_QUEUE;
}

it('receives ahead leave one lane; without held receives no lane wakes the engine', () => {
  const { state, lanes, marks } = setUp();
  const rows = RECEIVES.map(() => state.task({ writes: [state.datum(1)] }));
  const taken = rows.slice(0, 5).map((row) => laneOf(lanes, row));
  expect(taken).toEqual(RECEIVES.slice(0, 5));
  expect(marks()).toEqual([]);
  expect(laneOf(lanes, rows[5])).toBe(NO_QUEUE);
  expect(marks()).toEqual([5]);
});

it('the lane that wakes the engine belongs to a receive before every held one', () => {
  const { state, lanes, marks } = setUp();
  const rows = RECEIVES.map(() => state.task({ writes: [state.datum(1)] }));
  // In the order of their readiness, which is not that of the program.
  for (const i of [5, 4, 2, 1, 0]) laneOf(lanes, rows[i]);
  expect(laneOf(lanes, rows[3])).toBe(NO_QUEUE);
  // Of the receives 0 to 2 before it, in lanes 7, 6 and 5, the middle one.
  expect(marks()).toEqual([6]);
});

it('if all receives under way come after the held one, each of their lanes wakes the engine', () => {
  const { state, lanes, marks } = setUp();
  const rows = RECEIVES.map(() => state.task({ writes: [state.datum(1)] }));
  for (const i of [1, 2, 3, 4, 5]) laneOf(lanes, rows[i]);
  expect(laneOf(lanes, rows[0])).toBe(NO_QUEUE);
  expect(marks()).toEqual(RECEIVES);
});

it('a receive behind issued tasks only begins when one lane is left, and takes it after its memory', () => {
  const { state, lanes } = setUp(true);
  const rows = RECEIVES.map(() => state.task({ writes: [state.datum(1)], stage: TaskStage.exec }));
  for (const row of rows.slice(0, 5)) expect(laneOf(lanes, row)).not.toBe(NO_QUEUE);
  expect(lanes.begins(rows[5])).toBe(true);
  expect(lanes.laneAhead(rows[5])).toBe(NO_QUEUE);
  const { receiveLanes } = state.x;
  // An announced receive has its memory first.
  const announced = state.task({ writes: [state.datum(1)], stage: TaskStage.exec });
  expect(receiveLanes?.takeAny(state.tasks.idOf(announced))).toBe(RECEIVES[5]);
  expect(receiveLanes?.takeAny(state.tasks.idOf(rows[5]))).toBe(NO_QUEUE);
  expect([lanes.waitLists(state.tasks.idOf(rows[5])), lanes.next()]).toEqual([1, -1]);
  lanes.ended(announced, RECEIVES[5] as QueueId, false);
  expect(lanes.next()).toBe(rows[5]);
});

describe('receives of one datum', () => {
  it('stand behind each other in one lane, which is free when the last is over', () => {
    const { state, lanes } = setUp();
    const run = state.run();
    const d = state.datum(1);
    const rows = [0, 1, 2].map(() => state.task({ writes: [d], run }));
    const other = state.task({ writes: [state.datum(1)], run });
    expect(rows.map((row) => laneOf(lanes, row))).toEqual([3, 3, 3]);
    expect(laneOf(lanes, other)).toBe(4);
    lanes.ended(rows[0], 3 as QueueId, true);
    // It was dropped before it was commanded.
    lanes.ended(rows[2], 3 as QueueId, true);
    expect(laneOf(lanes, state.task({ writes: [state.datum(1)], run }))).toBe(5);
    lanes.ended(rows[1], 3 as QueueId, true);
    expect(laneOf(lanes, state.task({ writes: [state.datum(1)], run }))).toBe(3);
  });

  it('need no free lane, unless an earlier receive is held', () => {
    const { state, lanes, marks } = setUp();
    const run = state.run();
    const data = RECEIVES.map(() => state.datum(1));
    const before = state.task({ writes: [data[5]], run });
    for (const d of data.slice(0, 5)) laneOf(lanes, state.task({ writes: [d], run }));
    expect(laneOf(lanes, state.task({ writes: [data[2]], run }))).toBe(5);
    expect(laneOf(lanes, before)).toBe(NO_QUEUE);
    // It would keep the lane from the held one.
    expect(laneOf(lanes, state.task({ writes: [data[2]], run }))).toBe(NO_QUEUE);
    expect(marks()).toEqual(RECEIVES);
  });

  it('a receive of a read has a lane of its own: it may be withdrawn', () => {
    const { state, lanes } = setUp();
    const run = state.run();
    const d = state.datum(1);
    const rows = [{}, { run }, {}].map((each) => state.task({ writes: [d], ...each }));
    expect(rows.map((row) => laneOf(lanes, row))).toEqual([3, 4, 5]);
  });

  it('count as one block of host memory, until the last is over', () => {
    const blocks = 64;
    const { state, lanes, credits } = setUp();
    const run = state.run();
    const { capacity } = state.spaces[0].zone;
    // One block ahead leaves one stretch for the largest task, and two do not.
    credits.floor[0] = capacity / 2 - ALIGNMENT;
    const [d, other] = [state.datum(1), state.datum(1)];
    const rows = Array.from({ length: blocks }, () => state.task({ writes: [d], run }));
    for (const row of rows) expect(laneOf(lanes, row)).toBe(3);
    const next = state.task({ writes: [other], run, stage: TaskStage.ready });
    expect(laneOf(lanes, next)).toBe(NO_QUEUE);
    for (const row of rows) {
      expect(lanes.next()).toBe(-1);
      lanes.ended(row, 3 as QueueId, true);
    }
    expect(lanes.next()).toBe(next);
  });

  it('that end in another order are an error', () => {
    const { state, lanes } = setUp();
    const run = state.run();
    const d = state.datum(1);
    const rows = [0, 1, 2].map(() => state.task({ writes: [d], run }));
    for (const row of rows) laneOf(lanes, row);
    expect(() => lanes.ended(rows[1], 3 as QueueId, true)).toThrow(/is not over/);
  });
});
