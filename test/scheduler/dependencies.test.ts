// Dependency inference against its rule: edges order every two tasks that share a datum which one of them writes, until
// the first of them is issued, is over, or passes its place on. The reference compares all pairs.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AccessMode } from '../../stages/task-table.js';
import { datumId } from '../support/handles.js';
import { conflict, type Life, TaskOrder, type Told, type Use } from '../support/task-order.js';

const { read, write, readWrite } = AccessMode;
const DATA = 5;

/** Whether events order later tasks against this one, so that edges need not. */
const isPast = ({ life }: Told): boolean =>
  life === 'issued' || life === 'outlived' || life === 'done';

/** Per task, the tasks from which a path of edges leads to it, as bits. */
function ancestors(order: TaskOrder): bigint[] {
  const into = order.told.map(() => [] as number[]);
  for (const { from, to } of order.edges()) into[to].push(from);
  const before: bigint[] = [];
  // Edges lead forward (checked separately), so one pass in program order is enough.
  for (const list of into) {
    before.push(list.reduce((bits, i) => bits | before[i] | (1n << BigInt(i)), 0n));
  }
  return before;
}

function checkEdges(order: TaskOrder): void {
  const { told } = order;
  const arriving = told.map(() => 0);
  for (const { from, to, isControl } of order.edges()) {
    expect(from, 'an edge leads forward').toBeLessThan(to);
    expect(isPast(told[from]), 'an edge starts at a task that holds others back').toBe(false);
    if (isControl) expect(told[to].after).toContain(from);
    else expect(conflict(told[from], told[to]), `edge ${from} -> ${to} has a reason`).toBe(true);
    arriving[to]++;
  }
  told.forEach((task, i) => {
    if (task.life !== 'done') expect(order.pending(i)).toBe(arriving[i]);
  });
}

function checkOrder(order: TaskOrder): void {
  const { told } = order;
  const before = ancestors(order);
  told.forEach((later, j) => {
    for (let i = 0; i < j; i++) {
      const earlier = told[i];
      if (isPast(earlier) || !(conflict(earlier, later) || later.after.includes(i))) continue;
      if (((before[j] >> BigInt(i)) & 1n) === 0n)
        throw new Error(`nothing orders task ${j} after task ${i}`);
    }
  });
}

/** Whom a caller has to wait for before the memory of a datum can go. */
function checkUsers(order: TaskOrder): void {
  const { told, dependencies } = order;
  const before = ancestors(order);
  for (let d = 0; d < DATA; d++) {
    const uses = (i: number): boolean => told[i].uses.some(({ datum }) => datum === d);
    const users = dependencies.users(datumId(d)).map((id) => order.indexOf(id));
    for (const i of users) expect(uses(i), `task ${i} uses datum ${d}`).toBe(true);
    const covered = users.reduce((bits, i) => bits | before[i] | (1n << BigInt(i)), 0n);
    told.forEach((task, i) => {
      if (isPast(task) || !uses(i)) return;
      expect((covered >> BigInt(i)) & 1n, `task ${i} is one of the users of datum ${d}`).toBe(1n);
    });
    const writers = told.flatMap(({ uses }, i) =>
      uses.some(({ datum, mode }) => datum === d && mode !== read) ? [i] : [],
    );
    const last = writers.at(-1);
    const found = dependencies.writers(datumId(d)).map((id) => order.indexOf(id));
    if (found.length > 0) expect(found).toEqual([last]);
    else expect(last === undefined || isPast(told[last])).toBe(true);
  }
}

const use: fc.Arbitrary<Use> = fc.record({
  datum: fc.nat({ max: DATA - 1 }).map(datumId),
  mode: fc.constantFrom(read, read, write, readWrite),
});
interface Insertion {
  readonly uses: Use[];
  /** Control predecessors, counted back from the newest task. */
  readonly back: number[];
  readonly atOnce: Life;
}
interface Event {
  readonly what: 'issue' | 'body' | 'end' | 'drop' | 'shrink';
  /** Chooses one of the tasks to which it can happen. */
  readonly pick: number;
}
const insertion: fc.Arbitrary<Insertion> = fc.record({
  uses: fc.array(use, { maxLength: 4 }),
  back: fc.oneof(
    { arbitrary: fc.constant<number[]>([]), weight: 3 },
    fc.array(fc.nat({ max: 9 }), { maxLength: 2 }),
  ),
  atOnce: fc.constantFrom(
    'waits' as const,
    'waits' as const,
    'issued' as const,
    'body' as const,
    'dropped' as const,
  ),
});
const event: fc.Arbitrary<Event> = fc.record({
  what: fc.constantFrom(
    'issue' as const,
    'issue' as const,
    'body' as const,
    'end' as const,
    'end' as const,
    'drop' as const,
    'shrink' as const,
  ),
  pick: fc.nat({ max: 1000 }),
});
const program = fc.array(fc.oneof(insertion, insertion, event), {
  maxLength: 60,
  size: 'max',
});

function step(order: TaskOrder, next: Insertion | Event): void {
  if ('uses' in next) {
    const count = order.told.length;
    const after = next.back.map((back) => count - 1 - back).filter((i) => i >= 0);
    order.insert(next.uses, after, next.atOnce);
    return;
  }
  if (next.what === 'shrink') {
    order.shrink();
    return;
  }
  const free = order.those('waits').filter((i) => order.isFree(i));
  const candidates = {
    issue: free,
    body: free,
    end: order.those('issued', 'body', 'outlived'),
    drop: order.those('waits'),
  }[next.what];
  if (candidates.length === 0) return;
  const chosen = candidates[next.pick % candidates.length];
  if (next.what === 'issue') order.issue(chosen);
  else if (next.what === 'body') order.startBody(chosen);
  else if (next.what === 'end') order.end(chosen);
  else order.drop(chosen);
}

describe('dependency inference', () => {
  it.each([1, 2 ** 31 - 10, -10])(
    'orders all pairs that matter and has a reason for every edge, from id %i on',
    (start) => {
      fc.assert(
        fc.property(program, (steps) => {
          const order = new TaskOrder(8, DATA, start);
          for (const next of steps) {
            step(order, next);
            checkEdges(order);
            checkOrder(order);
            checkUsers(order);
          }
          // Everything runs: no task waits for an edge that nobody releases, and no edge is left.
          for (;;) {
            const ready = order.those('waits').find((i) => order.isFree(i));
            const running = order.those('issued', 'body', 'outlived')[0];
            if (ready !== undefined) order.issue(ready);
            else if (running !== undefined) order.end(running);
            else break;
          }
          expect(order.those('done')).toHaveLength(order.told.length);
          expect(order.dependencies.edges.live).toBe(0);
        }),
        { numRuns: 40 },
      );
    },
  );

  it('keeps readers apart from one another and orders the next writer after each of them', () => {
    const order = new TaskOrder(16, 1);
    const [w] = [order.insert([{ datum: datumId(0), mode: write }])];
    const readers = [1, 2, 3].map(() => order.insert([{ datum: datumId(0), mode: read }]));
    const next = order.insert([{ datum: datumId(0), mode: write }]);
    const edges = order.edges().map(({ from, to }) => `${from}>${to}`);
    for (const r of readers) {
      expect(edges).toContain(`${w}>${r}`);
      expect(edges).toContain(`${r}>${next}`);
    }
    expect(order.edges().filter(({ to }) => readers.includes(to))).toHaveLength(3);
    // The last writer stands for everyone before it.
    const later = order.insert([{ datum: datumId(0), mode: write }]);
    expect(order.edges().filter(({ to }) => to === later)).toEqual([
      { from: next, to: later, isControl: false },
    ]);
  });

  it('needs no edge after a task that was issued, and the event of a control predecessor that was', () => {
    const order = new TaskOrder(16, 1);
    const issued = order.insert([{ datum: datumId(0), mode: write }], [], 'issued');
    const body = order.insert([{ datum: datumId(0), mode: read }], [], 'body');
    const dropped = order.insert([], [], 'dropped');
    const done = order.insert([], [], 'issued');
    order.end(done);
    const last = order.insert([{ datum: datumId(0), mode: write }], [issued, body, dropped, done]);
    expect(order.edges()).toEqual(
      expect.arrayContaining([
        { from: body, to: last, isControl: false },
        { from: body, to: last, isControl: true },
      ]),
    );
    expect(order.edges()).toHaveLength(2);
    expect(order.eventsNeeded).toEqual([
      [last, issued],
      [last, dropped],
    ]);
  });

  it('tells of control predecessors that are not over, in pairs of ids', () => {
    const order = new TaskOrder(16, 0, 100);
    const seen: [number, number][] = [];
    order.watched.observer = {
      dependency: (successor, predecessor) => void seen.push([successor, predecessor]),
    };
    const [a, b, c] = [
      order.insert([]),
      order.insert([], [], 'issued'),
      order.insert([], [], 'issued'),
    ];
    order.end(c);
    order.insert([], [a, b, c]);
    expect(seen).toEqual([
      [103, 100],
      [103, 101],
    ]);
  });

  it('weeds finished readers of a datum that is never written, and no others', () => {
    const order = new TaskOrder(1024, 1);
    const kept: number[] = [];
    for (let i = 0; i < 500; i++) {
      const reader = order.insert([{ datum: datumId(0), mode: read }]);
      if (i % 5 === 0) kept.push(reader);
      else {
        order.issue(reader);
        order.end(reader);
      }
    }
    expect(order.dependencies.users(datumId(0)).length).toBeLessThanOrEqual(2 * kept.length);
    const writer = order.insert([{ datum: datumId(0), mode: write }]);
    expect(
      order
        .edges()
        .map(({ from }) => from)
        .sort((a, b) => a - b),
    ).toEqual(kept);
    expect(order.pending(writer)).toBe(kept.length);
  });

  it('keeps the users of more data than it was made for', () => {
    const order = new TaskOrder(2048, 700);
    for (let d = 0; d < 700; d++) order.insert([{ datum: datumId(d), mode: write }]);
    for (let d = 0; d < 700; d++) order.insert([{ datum: datumId(d), mode: read }]);
    expect(order.edges().map(({ from, to }) => [from, to])).toEqual(
      Array.from({ length: 700 }, (_, d) => [d, 700 + d]),
    );
  });

  it('keeps the tasks of its edges when tasks move to other rows', () => {
    const order = new TaskOrder(4, 1, 7);
    for (const mode of [write, read, read, write]) order.insert([{ datum: datumId(0), mode }]);
    const before = order.edges();
    expect(before).toHaveLength(5);
    order.extend();
    expect(order.edges()).toEqual(before);
  });

  it('forgets earlier users of the row of a datum', () => {
    const order = new TaskOrder(16, 1);
    order.insert([{ datum: datumId(0), mode: write }]);
    order.insert([{ datum: datumId(0), mode: read }]);
    order.dependencies.addDatum(datumId(0));
    expect(order.dependencies.users(datumId(0))).toEqual([]);
    order.insert([{ datum: datumId(0), mode: write }]);
    expect(order.edges()).toHaveLength(1);
  });
});
