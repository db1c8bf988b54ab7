// Run-ahead on several ranks (scheduler/plans/messages.ts): at a receiver lie letters of at most two iterations. Checked on the order
// that the parts of the ranks give their ends of messages, also with the messages that bring the number of a condition.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { QueueInfo } from '../../devices/backend.js';
import { type Column, type DatumId, HOST } from '../../devices/handles.js';
import { Insertions } from '../../scheduler/plans/insertions.js';
import {
  numberMessages,
  type PlannedMessage,
  planMessages,
} from '../../scheduler/plans/messages.js';
import {
  messageRows,
  type RankShare,
  rankShare,
  withMessages,
} from '../../scheduler/plans/rank-share.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';

const { read, write, readWrite } = AccessMode;
interface Task {
  readonly rank: number;
  readonly flows: readonly (readonly [datum: number, mode: number])[];
}
const RANKS = 4;
const DATA = 4;
const ITERATIONS = 4;
const BYTES = 8;

const queuesOf = (lanes: number): QueueInfo[] =>
  Array.from({ length: lanes + 1 }, (_, q) => ({
    ...{ kind: q === 0 ? 'worker' : 'lane', space: HOST, peer: HOST },
  })) as unknown as QueueInfo[];

function insertionsOf(tasks: readonly Task[], classes: TaskClassRow[]): Insertions {
  const insertions = new Insertions();
  for (const { flows } of tasks) {
    const cls = {
      ...{ id: classes.length, name: 'task', paramNames: [] },
      modes: flows.map(([, mode]) => mode),
    } as unknown as TaskClassRow;
    classes.push(cls);
    const data = Int32Array.from(flows, ([d]) => d) as Column<Int32Array, DatumId>;
    const of = { cls, flows: data, params: new Float64Array(0), priority: 0, device: HOST };
    insertions.add(of, []);
  }
  return insertions;
}

/** The parts of all ranks; `looked`: with the number of that datum. */
function partsOf(
  tasks: readonly Task[],
  lanes: number,
  treeFrom: number,
  looked?: DatumId,
): RankShare[] {
  const classes: TaskClassRow[] = [];
  const insertions = insertionsOf(tasks, classes);
  const rankOf = tasks.map(({ rank }) => rank);
  const planned = planMessages(insertions, rankOf, () => true, treeFrom);
  const queues = queuesOf(lanes);
  return Array.from({ length: RANKS }, (_, rank) => {
    const rows = messageRows([...classes], 0, 1);
    const share = rankShare(insertions, rankOf, planned, {
      ...{ rank, rows, queues, mostArguments: 8 },
      bytesOf: () => BYTES,
    });
    if (looked === undefined) return share;
    const more = numberMessages(planned, looked, RANKS, true, treeFrom);
    return withMessages(share, more, { rank, queues, bytes: BYTES });
  });
}

/** An end of a message in an iteration. */
type End = `${number} ${number} ${number}`;
const endOf = (rank: number, key: number, iteration: number): End => `${rank} ${key} ${iteration}`;

/** The ends that come directly before each end, because the lists say so or because they are ends of one message. */
function orderOf(parts: readonly RankShare[]): Map<End, End[]> {
  const before = new Map<End, End[]>();
  parts.forEach(({ messages, commands, insertions, afterLast }, rank) => {
    const onLane = new Map<number, number>();
    for (let i = 0; i < ITERATIONS; i++)
      for (const [n, { key, from }] of messages) {
        const list: End[] = [];
        const add = (other: number | undefined, iteration: number): void => {
          const message = other === undefined ? undefined : messages.get(other);
          if (message !== undefined && iteration >= 0)
            list.push(endOf(rank, message.key, iteration));
        };
        const lane = commands.get(n)?.queue as number;
        const last = onLane.get(lane);
        if (last !== undefined) add(last, last < n ? i : i - 1);
        onLane.set(lane, n);
        for (const other of insertions.after.get(n) ?? []) add(other, i);
        for (const other of afterLast.get(n) ?? []) add(other, i - 1);
        if (from !== rank) list.push(endOf(from, key, i));
        before.set(endOf(rank, key, i), list);
      }
  });
  return before;
}

function allBefore(end: End, order: ReadonlyMap<End, readonly End[]>): Set<End> {
  const found = new Set<End>();
  const open = [end];
  for (let next = open.pop(); next !== undefined; next = open.pop())
    for (const each of order.get(next) ?? [])
      if (!found.has(each)) {
        found.add(each);
        open.push(each);
      }
  return found;
}

/** The letters that may lie at their receiver when one of the same ranks, two iterations later, is sent. */
function letters(parts: readonly RankShare[]): string[] {
  const order = orderOf(parts);
  const found: string[] = [];
  parts.forEach(({ messages }, rank) => {
    const sent: PlannedMessage[] = [...messages.values()].filter(({ from }) => from === rank);
    for (const { key, to, isTurn } of sent) {
      if (isTurn) continue;
      for (let i = 2; i < ITERATIONS; i++) {
        const before = allBefore(endOf(rank, key, i), order);
        for (const other of sent)
          if (other.to === to && !before.has(endOf(to, other.key, i - 2)))
            found.push(`${other.key} of iteration ${i - 2} lies at rank ${to}, ${key} is sent`);
      }
    }
  });
  return found;
}

const anyTask = fc.record({
  rank: fc.nat(RANKS - 1),
  flows: fc.uniqueArray(fc.tuple(fc.nat(DATA - 1), fc.constantFrom(read, write, readWrite)), {
    minLength: 1,
    maxLength: 3,
    selector: ([d]) => d,
  }),
});
const anyProgram = fc.record({
  tasks: fc.array(anyTask, { minLength: 1, maxLength: 12 }),
  lanes: fc.constantFrom(2, 3, 8, 32),
  treeFrom: fc.integer({ min: 1, max: 4 }),
});

describe('letters of at most two iterations lie at a receiver', () => {
  test('in a plan', () => {
    fc.assert(
      fc.property(anyProgram, ({ tasks, lanes, treeFrom }) => {
        expect(letters(partsOf(tasks, lanes, treeFrom))).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  test('with the number of a condition, whichever datum it is', () => {
    fc.assert(
      fc.property(anyProgram, ({ tasks, lanes, treeFrom }) => {
        const written = tasks.flatMap(({ flows }) => flows.filter(([, mode]) => mode !== read));
        for (const d of new Set(written.map(([datum]) => datum as DatumId)))
          expect(letters(partsOf(tasks, lanes, treeFrom, d))).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  test('because ranks that send nothing else answer the number with a turn', () => {
    const tasks: Task[] = [{ rank: 1, flows: [[0, readWrite]] }];
    const [first, , ...others] = partsOf(tasks, 8, 9, 0 as DatumId);
    for (const { messages } of [first, ...others])
      expect([...messages.values()].map(({ isTurn, to }) => [isTurn, to])).toEqual([
        [false, expect.any(Number)],
        [true, 1],
      ]);
    // Without the turns letters of any number of iterations would lie there.
    const turnless = partsOf(tasks, 8, 9, 0 as DatumId).map((part) => ({
      ...part,
      messages: new Map([...part.messages].filter(([, { isTurn }]) => !isTurn)),
    }));
    expect(letters(turnless)).not.toEqual([]);
  });
});
