// The parts of the planner by themselves: waits against all pairs of commands that use the same bytes, and the data that
// failed tasks leave without a value.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DatumId, QueueId, SpaceId } from '../../devices/handles.js';
import { PlannedCommands } from '../../devices/planning/commands.js';
import { chainsBefore, criticalPath, type PlannedParts } from '../../scheduler/plans/chains.js';
import type { PlannedProgram } from '../../scheduler/plans/planned-program.js';
import { type Accesses, Ranges } from '../../scheduler/plans/ranges.js';
import { taintedData } from '../../scheduler/plans/taint.js';
import { findWaits } from '../../scheduler/plans/waits.js';
import { AccessMode } from '../../trace/format.js';

const QUEUES = 3;
const ITERATIONS = 4;

interface Use {
  readonly space: number;
  readonly offset: number;
  readonly bytes: number;
  readonly writes: boolean;
}
interface Command {
  readonly queue: number;
  readonly uses: readonly Use[];
}

const use: fc.Arbitrary<Use> = fc.record({
  space: fc.integer({ min: 0, max: 1 }),
  offset: fc.integer({ min: 0, max: 12 }),
  bytes: fc.integer({ min: 1, max: 5 }),
  writes: fc.boolean(),
});
const command: fc.Arbitrary<Command> = fc.record({
  queue: fc.integer({ min: 0, max: QUEUES - 1 }),
  uses: fc.array(use, { minLength: 1, maxLength: 3 }),
});

function conflict(a: Command, b: Command): boolean {
  return a.uses.some((x) =>
    b.uses.some(
      (y) =>
        (x.writes || y.writes) &&
        x.space === y.space &&
        x.offset < y.offset + y.bytes &&
        y.offset < x.offset + x.bytes,
    ),
  );
}

/** For each queue, the place that every command of the iterations is sure to follow. */
function known(commands: readonly Command[], waits: ReturnType<typeof findWaits>): Int32Array[][] {
  const sure: Int32Array[][] = [];
  const at = (q: number, place: number): Int32Array | undefined => byPlace.get(`${q} ${place}`);
  const byPlace = new Map<string, Int32Array>();
  for (let k = 0; k < ITERATIONS; k++) {
    sure.push(
      commands.map((c, i) => {
        const place = k * waits.counts[c.queue] + waits.place[i];
        const clock = Int32Array.from(at(c.queue, place - 1) ?? new Int32Array(QUEUES));
        const join = (other: Int32Array | undefined): void => {
          other?.forEach((n, q) => {
            clock[q] = Math.max(clock[q], n);
          });
        };
        for (let w = waits.first[i]; w < waits.first[i + 1]; w++) {
          const other = waits.queue[w];
          join(at(other, k * waits.counts[other] + waits.at[w]));
        }
        clock[c.queue] = place;
        byPlace.set(`${c.queue} ${place}`, clock);
        return clock;
      }),
    );
  }
  return sure;
}

/** As the planner has them. */
function planned(commands: readonly Command[]): PlannedParts {
  const list = new PlannedCommands();
  const ranges = new Ranges();
  const first: number[] = [];
  const of: number[] = [];
  for (const { queue, uses } of commands) {
    list.add(queue as QueueId, 0, -1, 0, [], 0);
    first.push(of.length);
    for (const { space, offset, bytes, writes } of uses)
      of.push(ranges.of(space as SpaceId, offset, bytes) * 2 + (writes ? 1 : 0));
  }
  first.push(of.length);
  ranges.cut();
  const accesses: Accesses = {
    first: Int32Array.from(first),
    of: Int32Array.from(of),
    reads: new Uint8Array(of.length),
  };
  return { commands: list, accesses, ranges };
}

test('every command follows all earlier ones that use its bytes, in every iteration', () => {
  fc.assert(
    fc.property(fc.array(command, { minLength: 1, maxLength: 24 }), (commands) => {
      const { commands: list, accesses, ranges } = planned(commands);
      const waits = findWaits(list, accesses, ranges, QUEUES, new Map());
      const sure = known(commands, waits);
      for (let k = 0; k < ITERATIONS; k++)
        for (let i = 0; i < commands.length; i++)
          for (let before = Math.max(0, k - 1); before <= k; before++)
            for (let j = 0; j < (before === k ? i : commands.length); j++) {
              if (!conflict(commands[i], commands[j])) continue;
              const { queue } = commands[j];
              const place = before * waits.counts[queue] + waits.place[j];
              expect(sure[k][i][queue]).toBeGreaterThanOrEqual(place);
            }
    }),
    { numRuns: 500 },
  );
});

test('a command waits itself for the one that was issued last, and for the others before that', () => {
  fc.assert(
    fc.property(fc.array(command, { minLength: 1, maxLength: 24 }), (commands) => {
      const { commands: list, accesses, ranges } = planned(commands);
      const waits = findWaits(list, accesses, ranges, QUEUES, new Map());
      const issued = (w: number): number => {
        const q = waits.queue[w];
        const isBefore = waits.at[w] <= 0;
        const place = waits.at[w] + (isBefore ? waits.counts[q] : 0);
        const c = commands.findIndex((one, i) => one.queue === q && waits.place[i] === place);
        return isBefore ? c - commands.length : c;
      };
      for (let c = 0; c < commands.length; c++)
        for (let w = waits.first[c] + 1; w < waits.first[c + 1]; w++)
          expect(issued(waits.first[c])).toBeGreaterThan(issued(w));
    }),
    { numRuns: 500 },
  );
});

test('chains are the longest ones over all pairs that use the same bytes', () => {
  fc.assert(
    fc.property(fc.array(command, { minLength: 1, maxLength: 24 }), (commands) => {
      const lengths: number[] = [];
      for (const [i, c] of commands.entries())
        lengths.push(
          Math.max(
            0,
            ...lengths.flatMap((n, j) => (conflict(c, commands[j]) && j < i ? n + 1 : [])),
          ),
        );
      const parts = planned(commands);
      expect([...chainsBefore(parts, new Map(), () => 1)]).toEqual(lengths);
      expect(criticalPath(parts, new Map())).toBe(Math.max(...lengths) + 1);
    }),
    { numRuns: 500 },
  );
});

describe('data without a value', () => {
  const { read, write, readWrite } = AccessMode;
  /** Tasks as lists of [datum, mode]. */
  const program = (...tasks: readonly (readonly (readonly [number, number])[])[]): PlannedProgram =>
    ({
      insertions: tasks.length,
      task: (n: number) => ({
        cls: { modes: tasks[n].map(([, mode]) => mode) },
        data: tasks[n].map(([d]) => d as DatumId),
      }),
    }) as unknown as PlannedProgram;
  const failed = (insertion: number, iteration = 0): { insertion: number; iteration: number } => ({
    insertion,
    iteration,
  });
  const sorted = (set: ReadonlySet<number>): number[] => [...set].sort();

  test('are the outputs of the failed task and of all that is computed from them', () => {
    const p = program(
      [[0, readWrite]],
      [
        [1, write],
        [0, read],
      ],
      [
        [2, write],
        [3, read],
      ],
    );
    expect(sorted(taintedData(p, [failed(0)], 1))).toEqual([0, 1]);
    expect(sorted(taintedData(p, [failed(1)], 1))).toEqual([1]);
    expect(sorted(taintedData(p, [], 5))).toEqual([]);
  });

  test('have one again when all of them is written from good data', () => {
    const p = program(
      [[0, readWrite]],
      [
        [0, write],
        [1, read],
      ],
    );
    expect(sorted(taintedData(p, [failed(0)], 1))).toEqual([]);
    expect(sorted(taintedData(p, [failed(1)], 1))).toEqual([0]);
    // The next iteration changes it first, and then overwrites it.
    expect(sorted(taintedData(p, [failed(1)], 2))).toEqual([]);
  });

  test('spread from iteration to iteration, however many there are', () => {
    const p = program(
      [
        [2, readWrite],
        [1, read],
      ],
      [
        [1, readWrite],
        [0, read],
      ],
      [[0, readWrite]],
    );
    expect(sorted(taintedData(p, [failed(2)], 1))).toEqual([0]);
    expect(sorted(taintedData(p, [failed(2)], 2))).toEqual([0, 1]);
    expect(sorted(taintedData(p, [failed(2)], 1e12))).toEqual([0, 1, 2]);
    expect(sorted(taintedData(p, [failed(0, 1), failed(1, 2)], 3))).toEqual([1, 2]);
  });
});
