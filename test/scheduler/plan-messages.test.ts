// The messages of a plan on several ranks: every task reads the latest version, and every rank ends as it begins.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DatumId } from '../../devices/handles.js';
import type { Insertions } from '../../scheduler/plans/insertions.js';
import { type PlannedMessage, planMessages } from '../../scheduler/plans/messages.js';
import { AccessMode } from '../../trace/format.js';

const { read, write, readWrite } = AccessMode;
interface Task {
  readonly rank: number;
  readonly flows: readonly (readonly [datum: number, mode: number])[];
}

const insertionsOf = (tasks: readonly Task[]): Insertions =>
  ({
    count: tasks.length,
    classOf: (n: number) => ({ modes: tasks[n].flows.map(([, mode]) => mode) }),
    datum: (n: number, i: number) => tasks[n].flows[i][0],
  }) as unknown as Insertions;

function plan(
  tasks: readonly Task[],
  treeFrom = 4,
  isShort: (d: DatumId) => boolean = () => true,
): ReturnType<typeof planMessages> {
  const ranks = tasks.map(({ rank }) => rank);
  return planMessages(insertionsOf(tasks), ranks, isShort, treeFrom);
}

const RANKS = 5;
const DATA = 4;
const anyTask = fc.record({
  rank: fc.nat(RANKS - 1),
  flows: fc.uniqueArray(fc.tuple(fc.nat(DATA - 1), fc.constantFrom(read, write, readWrite)), {
    minLength: 1,
    maxLength: 3,
    selector: ([d]) => d,
  }),
});

describe('the messages of a plan', () => {
  test('every task has the latest version of what it reads, in every iteration', () => {
    fc.assert(
      fc.property(
        fc.array(anyTask, { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 5 }),
        (tasks, treeFrom) => {
          const { after, readers, last } = plan(tasks, treeFrom);
          let version = 0;
          const latest = new Array<number>(DATA).fill(0);
          // Before the first iteration a datum is where it is read.
          const at = Array.from({ length: RANKS }, (_, r) =>
            latest.map((_0, d): number =>
              readers.get(d as DatumId)?.includes(r) === true ? 0 : -1,
            ),
          );
          const send = ({ datum, from, to }: PlannedMessage): void => {
            expect(at[from][datum]).toBe(latest[datum]);
            // No version goes to a rank twice.
            expect(at[to][datum]).not.toBe(latest[datum]);
            at[to][datum] = at[from][datum];
          };
          for (let iteration = 0; iteration < 3; iteration++)
            for (const [n, { rank, flows }] of tasks.entries()) {
              for (const [d, mode] of flows)
                if (mode !== write) expect(at[rank][d]).toBe(latest[d]);
              for (const [d, mode] of flows) if (mode !== read) at[rank][d] = latest[d] = ++version;
              for (const message of after.get(n) ?? []) send(message);
            }
          for (const [d, { rank, others }] of last)
            for (const r of [rank, ...others]) expect(at[r][d]).toBe(latest[d]);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('a version goes once to each rank that reads it, and not to others', () => {
    const { after, turns } = plan([
      { rank: 0, flows: [[0, readWrite]] },
      {
        rank: 1,
        flows: [
          [0, read],
          [1, readWrite],
        ],
      },
      {
        rank: 1,
        flows: [
          [0, read],
          [1, readWrite],
        ],
      },
      {
        rank: 2,
        flows: [
          [1, read],
          [2, write],
        ],
      },
    ]);
    expect(after.get(0)).toMatchObject([{ key: 1, datum: 0, from: 0, to: 1 }]);
    expect(after.get(1)).toBeUndefined();
    expect(after.get(2)).toMatchObject([{ key: 2, datum: 1, from: 1, to: 2 }]);
    // Nothing goes back otherwise: each receiver tells its sender that it has come so far.
    expect(turns).toMatchObject([
      { key: 3, from: 1, to: 0, isTurn: true },
      { key: 4, from: 2, to: 1, isTurn: true },
    ]);
  });

  test('ranks that send short versions to each other need no turns, and long versions need none', () => {
    const both: Task[] = [
      {
        rank: 0,
        flows: [
          [0, readWrite],
          [1, read],
        ],
      },
      {
        rank: 1,
        flows: [
          [1, readWrite],
          [0, read],
        ],
      },
    ];
    expect(plan(both).turns).toEqual([]);
    expect(plan(both, 4, () => false).turns).toEqual([]);
    // One of the two is long: the short one needs a turn.
    expect(plan(both, 4, (d) => d === 0).turns).toMatchObject([{ from: 1, to: 0 }]);
  });

  test('many readers get a version along a tree, in which every sender has it', () => {
    const tasks: Task[] = [
      { rank: 0, flows: [[0, readWrite]] },
      ...Array.from({ length: 8 }, (_, r) => ({ rank: r + 1, flows: [[0, read]] as const })),
    ];
    const hops = new Map([[0, 0]]);
    for (const { from, to } of plan(tasks, 2).after.get(0) ?? [])
      hops.set(to, (hops.get(from) as number) + 1);
    expect(hops.size).toBe(9);
    expect(Math.max(...hops.values())).toBe(3);
    expect(
      plan(tasks, 100)
        .after.get(0)
        ?.every(({ from }) => from === 0),
    ).toBe(true);
  });
});
