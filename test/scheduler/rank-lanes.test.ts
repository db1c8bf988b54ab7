// Receives that were commanded ahead: the lanes that they take, and the lane at whose end the engine looks for more.
import { expect, it } from 'vitest';
import { NO_QUEUE, type QueueId } from '../../devices/handles.js';
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
  marks: () => number[];
} {
  const state = new PartsState({ lanes: 8 });
  const host = Object.assign(state, { arrivals: { isReached: () => reached } });
  const credits = { floor: [0], limit: [Number.POSITIVE_INFINITY] } as unknown as NetworkCredits;
  const lanes = new RankLanes(host as unknown as RankHost, credits, () => true, {
    hostOnly: false,
  });
  const marks = (): number[] => {
    const wakes = new Uint8Array(state.manual.queues.length);
    lanes.markLanes(wakes);
    return [...wakes.keys()].filter((q) => wakes[q] === 1);
  };
  return { state, lanes, marks };
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
  lanes.giveLaneBack(RECEIVES[5] as QueueId);
  expect(lanes.next()).toBe(rows[5]);
});
