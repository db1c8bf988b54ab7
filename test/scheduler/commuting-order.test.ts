// Dependency inference of tasks that commute, against its rule: a group of tasks that commute on a datum follows all accesses
// before it and precedes all behind it; its members are ordered among themselves by the places that they took when
// they became ready, and not before. The reference compares all pairs.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AccessMode } from '../../stages/task-table.js';
import { datumId } from '../support/handles.js';
import { TaskOrder, type Use } from '../support/task-order.js';

const { read, readWrite } = AccessMode;
const DATA = 3;

/** A datum whose tasks commute by another rule from the next one on, and the number of tasks before. */
interface Closing {
  readonly datum: number;
  readonly before: number;
}
let closings: Closing[] = [];

/** Whether all accesses to a datum from task `i` to task `j` commute, by one rule: the two are in one group. */
function inOneGroup(order: TaskOrder, i: number, j: number, datum: number): boolean {
  const isClosed = closings.some(
    (each) => each.datum === datum && each.before > i && each.before <= j,
  );
  return (
    !isClosed &&
    order.told
      .slice(i, j + 1)
      .every(({ uses }) => uses.every((use) => use.datum !== datum || use.commutes === true))
  );
}

/** The tasks of the pair `i` before `j` in the order that they must have: [first, second]; undefined: in any order. */
function mustOrder(order: TaskOrder, i: number, j: number): [number, number] | undefined {
  let isShared = false;
  for (const a of order.told[i].uses)
    for (const b of order.told[j].uses) {
      if (a.datum !== b.datum || (a.mode === read && b.mode === read)) continue;
      if (!inOneGroup(order, i, j, a.datum)) return [i, j];
      isShared = true;
    }
  const [first, second] = [order.placed.indexOf(i), order.placed.indexOf(j)];
  if (!isShared || first < 0 || second < 0) return undefined;
  return first < second ? [i, j] : [j, i];
}

/** Per task, all that its edges lead to, directly or not. */
function reachable(order: TaskOrder): Set<number>[] {
  const next = order.told.map(() => [] as number[]);
  for (const { from, to } of order.edges()) next[from].push(to);
  return next.map((direct, from) => {
    const seen = new Set<number>();
    const open = [...direct];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      expect(at, 'edges lead in no circle').not.toBe(from);
      if (seen.has(at)) continue;
      seen.add(at);
      open.push(...next[at]);
    }
    return seen;
  });
}

function check(order: TaskOrder): void {
  const { told } = order;
  const behind = reachable(order);
  const isPast = (i: number): boolean => ['issued', 'outlived', 'done'].includes(told[i].life);
  for (let j = 0; j < told.length; j++)
    for (let i = 0; i < j; i++) {
      const pair = mustOrder(order, i, j);
      if (pair === undefined || isPast(pair[0])) continue;
      if (!behind[pair[0]].has(pair[1]))
        throw new Error(`nothing orders ${pair[1]} after ${pair[0]}`);
    }
  for (const { from, to } of order.edges()) {
    const pair = mustOrder(order, Math.min(from, to), Math.max(from, to));
    expect(pair, `the edge ${from} -> ${to} has a reason`).toEqual([from, to]);
  }
}

const use: fc.Arbitrary<Use> = fc.record({
  datum: fc.nat({ max: DATA - 1 }).map(datumId),
  mode: fc.constant(readWrite),
  commutes: fc.constant(true),
});
const otherUse: fc.Arbitrary<Use> = fc.record({
  datum: fc.nat({ max: DATA - 1 }).map(datumId),
  mode: fc.constantFrom(read, readWrite),
});
const byDatum = { selector: ({ datum }: Use) => datum, minLength: 1, maxLength: 2 };
const commuting = fc.uniqueArray(use, byDatum);
const others = fc.uniqueArray(otherUse, byDatum);
const mixed = fc.uniqueArray(fc.oneof(use, otherUse), byDatum);
const insertion = fc.record({
  uses: fc.oneof({ arbitrary: commuting, weight: 4 }, others, mixed),
  atOnce: fc.constantFrom('waits' as const, 'waits' as const, 'issued' as const, 'body' as const),
});
const closing = fc.record({ closes: fc.nat({ max: DATA - 1 }) });
const event = fc.record({
  what: fc.constantFrom('issue' as const, 'body' as const, 'end' as const, 'drop' as const),
  pick: fc.nat({ max: 1000 }),
});

function step(order: TaskOrder, { what, pick }: { what: string; pick: number }): void {
  const free = order.those('waits').filter((i) => order.isFree(i));
  const candidates =
    what === 'end'
      ? order.those('issued', 'body', 'outlived')
      : what === 'drop'
        ? order.those('waits')
        : free;
  if (candidates.length === 0) return;
  const chosen = candidates[pick % candidates.length];
  if (what === 'issue') order.issue(chosen);
  else if (what === 'body') order.startBody(chosen);
  else if (what === 'end') order.end(chosen);
  else order.drop(chosen);
}

/** Runs everything to its end. */
function finish(order: TaskOrder): void {
  for (;;) {
    const ready = order.those('waits').find((i) => order.isFree(i));
    const running = order.those('issued', 'body', 'outlived')[0];
    if (ready !== undefined) order.issue(ready);
    else if (running !== undefined) order.end(running);
    else return;
  }
}

describe('tasks that commute', () => {
  const program = fc.array(
    fc.oneof({ arbitrary: insertion, weight: 6 }, { arbitrary: event, weight: 3 }, closing),
    { maxLength: 40, size: 'max' },
  );
  it.each([1, -10])('are ordered as the rule says, and no further, from id %i on', (start) => {
    fc.assert(
      fc.property(program, (steps) => {
        const order = new TaskOrder(16, DATA, start);
        closings = [];
        for (const next of steps) {
          if ('uses' in next) order.insert(next.uses, [], next.atOnce);
          else if ('closes' in next) {
            closings.push({ datum: next.closes, before: order.told.length });
            order.dependencies.closeGroup(datumId(next.closes));
          } else step(order, next);
          check(order);
        }
        finish(order);
        expect(order.those('done')).toHaveLength(order.told.length);
        expect(order.dependencies.edges.live).toBe(0);
      }),
      { numRuns: 40 },
    );
  });
});
