// The offsets between the clocks of ranks, measured over a wire with random delays and compared with the offsets that the
// clocks of the test have. There is no engine.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Wire, type WireRecord } from '../../devices/network/wire.js';
import { EngineObserver } from '../../scheduler/engine/observer.js';
import { RankClocks } from '../../scheduler/ranks/clocks.js';
import type { RankHost } from '../../scheduler/ranks/host.js';
import type { RankLinks } from '../../scheduler/ranks/links.js';
import { recordOf } from '../support/joined-ranks.js';

/** One measurement, as a rank reports it. */
interface Measured {
  readonly peer: number;
  readonly time: number;
  readonly offset: number;
  readonly error: number;
}

/** A rank with a clock of its own, which is `ahead` of true time. */
class Rank {
  readonly clocks: RankClocks;
  readonly measured: Measured[] = [];
  readonly sent: { readonly to: number; readonly record: WireRecord }[] = [];
  woken = 0;

  constructor(rank: number, ahead: number, time: { now: number }, tracing = true) {
    const observer = Object.assign(new EngineObserver(), {
      clock: (peer: number, at: number, offset: number, error: number) =>
        void this.measured.push({ peer, time: at, offset, error }),
    });
    const host = {
      x: { tracing },
      backend: { now: () => time.now + ahead },
      wake: () => void this.woken++,
      observer,
    };
    const write = (to: number, kind: number, fields: readonly number[], text = ''): void =>
      void this.sent.push({ to, record: recordOf(kind, fields, text) });
    const links: Partial<RankLinks> = { rank, device: { wire: { write } } };
    this.clocks = new RankClocks(host as unknown as RankHost, links as RankLinks);
  }
}

/** Carries messages between rank 0 and `asker` until there are none, each with the next of the delays. */
function carry(zero: Rank, asker: Rank, time: { now: number }, delays: readonly number[]): number {
  let trips = 0;
  for (;;) {
    const question = asker.sent.shift();
    if (question === undefined) return trips;
    expect(asker.sent).toEqual([]);
    expect([question.to, question.record.kind]).toEqual([0, Wire.clock]);
    time.now += delays[(2 * trips) % delays.length];
    zero.clocks.take(1, question.record);
    const answer = zero.sent.shift();
    expect([answer?.to, answer?.record.kind]).toEqual([1, Wire.time]);
    time.now += delays[(2 * trips + 1) % delays.length];
    asker.clocks.take(0, (answer as { record: WireRecord }).record);
    trips++;
  }
}

describe('clocks of ranks', () => {
  const delay = fc.integer({ min: 0, max: 100_000 });
  const offset = fc.integer({ min: -1_000_000_000, max: 1_000_000_000 });

  it('are measured within the error that is reported, for any delays', () => {
    fc.assert(
      fc.property(
        fc.array(delay, { minLength: 2, maxLength: 16 }),
        offset,
        offset,
        (delays, there, here) => {
          const time = { now: 1000 };
          const [zero, asker] = [new Rank(0, there, time), new Rank(1, here, time)];
          asker.clocks.measure();
          const began = time.now + here;
          const trips = carry(zero, asker, time, delays);
          expect(asker.measured).toHaveLength(trips);
          asker.measured.forEach((each, i) => {
            const [go, back] = [0, 1].map((way) => delays[(2 * i + way) % delays.length]);
            expect(each.peer).toBe(0);
            expect(each.error).toBe((go + back) / 2);
            expect(Math.abs(each.offset - (there - here))).toBeLessThanOrEqual(each.error);
            // The way that takes longer moves the offset by half of the difference.
            expect(each.offset - (there - here)).toBe((go - back) / 2);
            expect(each.time).toBeGreaterThanOrEqual(began);
            expect(each.time).toBeLessThanOrEqual(time.now + here);
          });
        },
      ),
    );
  });

  it('are measured some times in turn, and once more for each request after that', () => {
    const time = { now: 0 };
    const [zero, asker] = [new Rank(0, 5, time), new Rank(1, 0, time)];
    asker.clocks.measure();
    const once = carry(zero, asker, time, [1]);
    expect(once).toBeGreaterThan(1);
    expect(asker.woken).toBe(once);
    asker.clocks.measure();
    expect(carry(zero, asker, time, [1])).toBe(once);
    // A request while a question is under way sends no second one.
    asker.clocks.measure();
    asker.clocks.measure();
    expect(asker.sent).toHaveLength(1);
    expect(carry(zero, asker, time, [1])).toBe(once + 1);
  });

  it('are not measured by rank 0, nor where nobody records a trace', () => {
    const time = { now: 0 };
    for (const rank of [new Rank(0, 0, time), new Rank(1, 0, time, false)]) {
      rank.clocks.measure();
      expect(rank.sent).toEqual([]);
    }
  });
});
