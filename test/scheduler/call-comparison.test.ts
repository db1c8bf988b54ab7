// The comparison of the ranks' calls, without an engine: the verdict is the same on all ranks for any order of messages and
// of the moments at which ranks notice that they wait.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HeadraceError } from '../../scheduler/errors.js';
import { CallingRanks, type ProgramCall } from '../support/calling-ranks.js';

const DATA = 3;
const call: fc.Arbitrary<ProgramCall> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('read' as const, 'set' as const, 'restore' as const, 'close' as const),
    d: fc.nat(DATA - 1),
  }),
  fc.record({
    kind: fc.constant('data' as const),
    length: fc.constantFrom(8, 64),
    owner: fc.nat(1),
  }),
);
const program = fc.array(call, { minLength: 1, maxLength: 10 });
/** Order in which messages arrive and ranks notice that they wait. */
const order = fc.array(fc.nat(), { minLength: 1, maxLength: 30, size: 'max' });
const someRanks = fc.integer({ min: 2, max: 5 });
const isSame = (a: ProgramCall, b: ProgramCall): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Lets ranks look and messages arrive in the given order, and then all of them. */
function mix(joined: CallingRanks, choices: readonly number[]): void {
  for (const choice of choices) {
    if (choice % 3 === 0) joined.ranks[choice % joined.size].standsStill();
    else joined.deliver(choice);
  }
  for (let turn = 0; turn < 3; turn++) {
    for (const rank of joined.ranks) rank.standsStill();
    joined.settle();
  }
}
/** Everything that a promise has brought about is done. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const mismatches = (joined: CallingRanks): (HeadraceError | undefined)[] =>
  joined.ranks.map(({ calls }) => calls.mismatch);

describe('calls of ranks', () => {
  it('that are the same differ nowhere, also when ranks are late', () => {
    fc.assert(
      fc.property(someRanks, program, fc.array(fc.nat()), order, (size, calls, late, choices) => {
        const joined = new CallingRanks(size, DATA);
        joined.ranks.forEach((rank, r) => {
          const made = calls.length - ((late[r] ?? 0) % (calls.length + 1));
          for (const each of calls.slice(0, made)) rank.make(each);
        });
        mix(joined, choices);
        expect(mismatches(joined)).toEqual(joined.ranks.map(() => undefined));
      }),
    );
  });

  it('of which one differs are named on every rank, in the same words', () => {
    fc.assert(
      fc.property(
        someRanks,
        program,
        fc.record({ odd: fc.nat(), at: fc.nat(), other: call }),
        order,
        (size, calls, { odd, at, other }, choices) => {
          const position = at % calls.length;
          fc.pre(!isSame(calls[position], other));
          const joined = new CallingRanks(size, DATA);
          joined.ranks.forEach((rank, r) => {
            calls.forEach((each, i) => {
              rank.make(r === odd % size && i === position ? other : each);
            });
          });
          mix(joined, choices);
          const errors = mismatches(joined);
          expect(new Set(errors.map((error) => error?.message)).size).toBe(1);
          for (const [r, error] of errors.entries()) {
            expect(error?.code).toBe('ERR_PROGRAM_MISMATCH');
            expect(error?.message).toContain(`(call ${DATA + position + 1})`);
            // Seen from each rank another one is concerned.
            expect(error?.details.rank).not.toBe(r);
            if (odd % size !== 0 && r !== odd % size) expect(error?.details.rank).toBe(odd % size);
          }
        },
      ),
    );
  });

  it('of the program and of a run may interleave in any way, and are compared each by itself', () => {
    const steps = fc.array(fc.record({ isOwn: fc.boolean(), call }), { maxLength: 12 });
    fc.assert(
      fc.property(someRanks, steps, fc.boolean(), order, (size, calls, isWrong, choices) => {
        const joined = new CallingRanks(size, DATA);
        const creates = calls.some((each) => each.call.kind === 'data');
        fc.pre(!creates);
        joined.ranks.forEach((rank, r) => {
          rank.calls.runBegins(1, 'solve', false);
          const own = calls.filter(({ isOwn }) => isOwn);
          const rest = calls.filter(({ isOwn }) => !isOwn);
          const inside = (): void =>
            rank.calls.within(1, () => {
              for (const each of own) rank.make(each.call);
              if (isWrong && r === size - 1) rank.make({ kind: 'read', d: 0 });
              rank.calls.programEnds(1);
            });
          if (r % 2 === 0) inside();
          for (const each of rest) rank.make(each.call);
          if (r % 2 === 1) inside();
        });
        mix(joined, choices);
        const place = calls.filter(({ isOwn }) => isOwn).length + 1;
        for (const error of mismatches(joined)) {
          if (isWrong)
            expect(error?.message).toContain(`(call ${place} in the program of run 'sol`);
          else expect(error).toBeUndefined();
        }
      }),
    );
  });

  it('are not asked for while a rank waits for nothing, and again only when its program has moved', () => {
    const joined = new CallingRanks(2, DATA);
    const [zero, one] = joined.ranks;
    one.expecting = false;
    one.standsStill();
    one.standsStill();
    expect(joined.deliver(0)).toBe(false);
    zero.standsStill();
    expect(joined.deliver(0)).toBe(true);
    joined.settle();
    // Nothing has changed since the last question.
    zero.standsStill();
    expect(joined.deliver(0)).toBe(false);
    zero.make({ kind: 'read', d: 0 });
    zero.standsStill();
    expect(joined.deliver(0)).toBe(true);
  });

  it('that rank 0 has not made yet are compared when it makes them', () => {
    const joined = new CallingRanks(2, DATA);
    const [zero, one] = joined.ranks;
    one.make({ kind: 'read', d: 0 });
    one.make({ kind: 'read', d: 1 });
    mix(joined, []);
    expect(mismatches(joined)).toEqual([undefined, undefined]);
    zero.make({ kind: 'set', d: 0 });
    mix(joined, []);
    for (const error of mismatches(joined)) expect(error?.message).toContain(`(call ${DATA + 1})`);
  });

  it('are asked for once until the answer is there', () => {
    const joined = new CallingRanks(2, DATA);
    const [zero, one] = joined.ranks;
    for (let i = 0; i < 4; i++) {
      zero.standsStill();
      one.standsStill();
    }
    let questions = 0;
    const { take } = one.calls;
    one.calls.take = (from, record) => {
      questions++;
      take.call(one.calls, from, record);
    };
    joined.settle();
    expect(questions).toBe(1);
  });
});

describe('a rank that is out of step', () => {
  const differing = (): CallingRanks => {
    const joined = new CallingRanks(3, DATA);
    joined.ranks.forEach((rank, r) => {
      rank.make({ kind: r === 1 ? 'set' : 'read', d: 2 });
    });
    return joined;
  };

  it('learns of it from the next call, unless a promise has told the program', () => {
    const joined = differing();
    joined.ranks[2].breaksOff = true;
    mix(joined, []);
    const [zero, , two] = joined.ranks;
    expect([zero.calls.told, two.calls.told]).toEqual([false, true]);
    expect(() => zero.make({ kind: 'read', d: 0 })).toThrow(/read of datum 'd2'.*set of datum/);
    expect(zero.calls.told).toBe(true);
    // Data can be given back all the same.
    zero.make({ kind: 'close', d: 0 });
  });

  it('gets the verdict no later than rank 0 makes use of it, also if a rank is lost', () => {
    const joined = differing();
    const zero = joined.ranks[0];
    const looks = (): void => {
      zero.standsStill();
      zero.standsStill();
    };
    looks();
    // Questions arrive and are answered; the verdict is on its way.
    while (zero.calls.mismatch === undefined && joined.deliver(0)) {
      if (joined.ranks[1].calls.mismatch !== undefined) break;
    }
    expect(joined.ranks[1].calls.mismatch?.code).toBe('ERR_PROGRAM_MISMATCH');
    expect(zero.calls.mismatch).toBeUndefined();
    zero.calls.lost();
    expect(zero.calls.mismatch?.message).toBe(joined.ranks[1].calls.mismatch?.message);
  });
});

describe('leaving', () => {
  const leave = (joined: CallingRanks, left: Set<number>): void => {
    joined.ranks.forEach((rank, r) => {
      rank.calls.closes();
      void rank.calls.leaves().then(() => left.add(r));
    });
  };

  it('waits for all ranks, in any order of messages', async () => {
    await fc.assert(
      fc.asyncProperty(someRanks, program, order, async (size, calls, choices) => {
        const joined = new CallingRanks(size, DATA);
        const left = new Set<number>();
        const last = joined.ranks[size - 1];
        for (const rank of joined.ranks) for (const each of calls) rank.make(each);
        for (const [r, rank] of joined.ranks.slice(0, -1).entries()) {
          rank.calls.closes();
          void rank.calls.leaves().then(() => left.add(r));
        }
        mix(joined, choices);
        await turn();
        expect([...left]).toEqual([]);
        last.calls.closes();
        const end = last.calls.leaves();
        mix(joined, choices);
        await end;
        await turn();
        expect(left.size).toBe(size - 1);
        expect(mismatches(joined)).toEqual(joined.ranks.map(() => undefined));
      }),
    );
  });

  it('of ranks with other calls ends with the error on all of them', async () => {
    const joined = new CallingRanks(3, DATA);
    const left = new Set<number>();
    joined.ranks[2].make({ kind: 'read', d: 1 });
    leave(joined, left);
    joined.settle();
    mix(joined, []);
    await turn();
    expect(left).toEqual(new Set([0, 1, 2]));
    for (const error of mismatches(joined))
      expect(error?.message).toMatch(/rank 0 is at close of the runtime .* rank 2 is at read of/);
  });

  it('does not wait for a rank that was lost', async () => {
    const joined = new CallingRanks(2, DATA);
    const [zero, one] = joined.ranks;
    const waiting = one.calls.leaves();
    one.calls.lost();
    await waiting;
    zero.isLost = true;
    await zero.calls.leaves();
    expect(zero.calls.leaving).toBe(false);
  });
});

describe('a call', () => {
  it('of a body is refused with the name of the datum; one on a datum of this rank alone is no matter', () => {
    const [rank] = new CallingRanks(2, DATA).ranks;
    const before = rank.calls.length;
    rank.inBody = true;
    expect(() => rank.make({ kind: 'set', d: 1 })).toThrow(
      expect.objectContaining({
        code: 'ERR_INSERT_ALONE',
        message: expect.stringContaining("'d1'"),
      }),
    );
    rank.create(8, 0, true);
    rank.make({ kind: 'read', d: DATA });
    expect(rank.calls.length).toBe(before);
  });
});
