// Movements: receives and the news that their versions will not come find each other by their key, whichever comes first, each exactly once.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { NoVersion } from '../../devices/network/keys.js';
import { type Movement, Movements } from '../../scheduler/ranks/movements.js';
import { NetworkRole } from '../../stages/task-table.js';

const newsOf = (key: number): NoVersion => ({ key, call: -1, from: 1, origin: 1, reason: '' });

function receive(movements: Movements, key: number): Movement {
  return movements.add({
    role: NetworkRole.receive,
    d: 0,
    gid: 1,
    run: 1,
    origin: 1,
    key,
    wanted: 0,
    receive: undefined,
    pull: undefined,
  } as Parameters<Movements['add']>[0]);
}

const KEYS = 6;
const step = fc.record({
  what: fc.constantFrom(
    'receive' as const,
    'receive' as const,
    'refuse' as const,
    'refuse' as const,
    'remove' as const,
    'begin era' as const,
  ),
  key: fc.nat({ max: KEYS - 1 }),
});

describe('movements', () => {
  it('give all news to the one receive of its era that has its key', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const movements = new Movements();
        const live: Movement[] = [];
        const waiting = new Map<number, Movement>();
        const early = new Map<number, NoVersion>();
        let era = 0;
        for (const { what, key } of steps) {
          if (what === 'receive' && !waiting.has(key)) {
            const made = receive(movements, key);
            movements.expect(made);
            expect(made.noVersion).toBe(early.get(key));
            if (!early.delete(key)) waiting.set(key, made);
            live.push(made);
          } else if (what === 'refuse' && !early.has(key)) {
            const told = newsOf(key);
            const taker = waiting.get(key);
            expect(movements.refused(told)).toBe(taker);
            if (!waiting.delete(key)) early.set(key, told);
            if (taker !== undefined) expect(taker.noVersion).toBe(told);
          } else if (what === 'remove' && live.length > 0) {
            const [gone] = live.splice(key % live.length, 1);
            if (waiting.get(gone.key) === gone) waiting.delete(gone.key);
            movements.remove(gone);
            expect(movements.at(gone.index)).toBeUndefined();
          } else if (what === 'begin era') {
            // No receive comes to these news, and no news come to the receives that wait.
            movements.beginEra(++era);
            early.clear();
            waiting.clear();
          }
          expect(movements.live).toBe(live.length);
          expect(new Set(movements.all())).toEqual(new Set(live));
          for (const each of live) {
            expect(movements.at(each.index)).toBe(each);
            const isPast = each.noVersion === undefined && waiting.get(each.key) !== each;
            expect(movements.isLeftBehind(each)).toBe(isPast);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it('are not found under a key that a later receive has', () => {
    const movements = new Movements();
    const [first, second] = [receive(movements, 3), receive(movements, 3)];
    movements.expect(first);
    movements.expect(second);
    movements.remove(first);
    expect(movements.refused(newsOf(3))).toBe(second);
  });

  it('use the numbers of finished movements again, without their state', () => {
    const movements = new Movements();
    const used = receive(movements, 1);
    Object.assign(used, { task: 7, space: 1, waits: true, parcel: {}, withdrawn: true });
    movements.addDestination(used, 2, 9, false);
    movements.addDestination(used, 3, 9, true);
    movements.remove(used);
    movements.program = 5;
    const next = receive(movements, 2);
    expect(next.index).toBe(used.index);
    expect(next).toMatchObject({
      key: 2,
      program: 5,
      task: 0,
      space: -1,
      waits: false,
      parcel: undefined,
      withdrawn: false,
      startedAt: 0,
      destinations: [],
      apart: [],
      noVersion: undefined,
    });
    expect(next.index).toBeGreaterThan(0);
  });

  it('leave a record alone that another part compares with the live one', () => {
    const movements = new Movements();
    const named = receive(movements, 1);
    named.isNamed = true;
    movements.remove(named);
    const next = receive(movements, 2);
    expect(next.index).toBe(named.index);
    expect(next).not.toBe(named);
    expect(named.key).toBe(1);
    movements.remove(next);
    expect(receive(movements, 3)).toBe(next);
  });

  it('find receives by name that were planned before the first news of their era', () => {
    const movements = new Movements();
    const [old, told] = [receive(movements, 1), receive(movements, 2)];
    movements.expect(old);
    movements.beginEra(1);
    const present = receive(movements, 1);
    movements.expect(present);
    movements.remove(told);
    expect(movements.refused(newsOf(2))).toBeUndefined();
    expect(movements.isExpected(newsOf(1))).toBe(true);
    expect(movements.refused(newsOf(1))).toBe(present);
    expect(old.noVersion).toBeUndefined();
    const late = receive(movements, 2);
    movements.expect(late);
    expect(late.noVersion).toEqual(newsOf(2));
  });
});
