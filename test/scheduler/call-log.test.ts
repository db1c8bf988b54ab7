// The log of calls against a plain list of all calls that were made.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Call, CallKind, CallLog, wordsOf } from '../../scheduler/ranks/call-log.js';

const call = fc.record({
  kind: fc.constantFrom(...Object.values(CallKind)),
  subject: fc.integer({ min: 0, max: 5 }),
  more: fc.nat({ max: 3 }),
});
type Made = Pick<Call, 'kind' | 'subject' | 'more'>;
const object = { name: 'd' };

function logOf(calls: readonly Made[]): CallLog {
  const log = new CallLog('');
  for (const { kind, subject, more } of calls) log.add(kind, subject, more, object);
  return log;
}

describe('a log of calls', () => {
  it('counts positions from the beginning, whatever was forgotten', () => {
    const steps = fc.array(fc.oneof(call, call, fc.record({ forget: fc.nat({ max: 30 }) })), {
      maxLength: 60,
      size: 'max',
    });
    fc.assert(
      fc.property(steps, (program) => {
        const log = new CallLog('');
        const all: Made[] = [];
        let forgotten = 0;
        for (const next of program) {
          if ('forget' in next) {
            const position = Math.min(next.forget, all.length);
            log.forget(position);
            forgotten = Math.max(forgotten, position);
          } else {
            log.add(next.kind, next.subject, next.more, object);
            all.push(next);
          }
          expect([log.first, log.length]).toEqual([forgotten, all.length]);
        }
        for (let i = 0; i < all.length + 2; i++) {
          if (i < forgotten || i >= all.length) expect(log.at(i)).toBeUndefined();
          else expect(log.at(i)).toEqual({ ...all[i], object });
        }
        expect(log.digest).toBe(logOf(all).digest);
      }),
    );
  });

  it('has another digest when a call differs, is left out, or comes in another order', () => {
    fc.assert(
      fc.property(
        fc.array(call, { minLength: 2, maxLength: 20 }),
        fc.constantFrom('kind' as const, 'subject' as const, 'more' as const),
        fc.nat({ max: 100 }),
        (calls, field, pick) => {
          const { digest } = logOf(calls);
          const at = pick % calls.length;
          const changed = calls.with(at, { ...calls[at], [field]: calls[at][field] + 1 });
          const same = (a: Made, b: Made): boolean =>
            a.kind === b.kind && a.subject === b.subject && a.more === b.more;
          expect(logOf(changed).digest).not.toBe(digest);
          expect(logOf(calls.toSpliced(at, 1)).digest).not.toBe(digest);
          const next = (at + 1) % calls.length;
          const swapped = calls.with(at, calls[next]).with(next, calls[at]);
          expect(logOf(swapped).digest === digest).toBe(same(calls[at], calls[next]));
        },
      ),
    );
  });

  it('keeps the latest calls when there are very many, in memory that stays the same', () => {
    const log = new CallLog('');
    const count = 200_000;
    for (let i = 0; i < count; i++) log.add(CallKind.read, i, 0, object);
    expect(log.length).toBe(count);
    expect(log.length - log.first).toBeLessThanOrEqual(65_536);
    expect(log.length - log.first).toBeGreaterThan(50_000);
    expect([log.at(log.first)?.subject, log.at(count - 1)?.subject]).toEqual([
      log.first,
      count - 1,
    ]);
  });

  it('names places and calls in the words of the program', () => {
    expect(new CallLog('').place(2)).toBe('call 3');
    expect(new CallLog(" in the program of run 'solve'").place(0)).toBe(
      "call 1 in the program of run 'solve'",
    );
    const words = (kind: number, more = 0): string =>
      wordsOf({ kind, subject: 1, more, object: { name: 'x', element: 'f64', length: 9 } });
    expect(words(CallKind.data, 2)).toBe("creation of datum 'x' (9 elements of f64, rank 2)");
    expect(words(CallKind.run)).toBe("run 'x'");
    // Every kind has words of its own.
    expect(new Set(Object.values(CallKind).map((kind) => words(kind))).size).toBe(
      Object.keys(CallKind).length,
    );
  });
});
