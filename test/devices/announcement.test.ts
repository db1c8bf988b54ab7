// Announcements: another rank reads exactly the offer of a rank, for all numbers; every transfer has a name of its own;
// a tree reaches every destination once.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Announcement,
  announcementOf,
  keepPayload,
  keyOf,
  MAX_RANKS,
  sequenceOfCall,
} from '../../devices/network/announcement.js';
import { NetworkContext, type NetworkListener } from '../../devices/network/context.js';
import { NetworkOffers } from '../../devices/network/offers.js';
import { tree } from '../../devices/network/tree.js';
import { eachRecord, Wire } from '../../devices/network/wire.js';
import { RecordingPort } from '../support/recording-port.js';

const nobody: NetworkListener = {
  announced: () => {},
  received: () => {},
  sent: () => {},
  offerDone: () => {},
  control: () => {},
  departed: () => {},
  came: () => {},
  lost: () => {},
};

function sender(
  size: number,
  treeFrom: number,
): { port: RecordingPort; offers: NetworkOffers; n: NetworkContext } {
  const port = new RecordingPort({ size });
  const options = { comm: 'auto', flush: 'auto', inlineBytes: 256, treeFrom } as const;
  const n = new NetworkContext(port, [{ kind: 'host' }, { kind: 'cuda' }], options, nobody);
  return { port, offers: new NetworkOffers(n), n };
}

/** What every rank reads, in order. Payloads are kept. */
function read(port: RecordingPort): { to: number; what: Announcement }[] {
  const found: { to: number; what: Announcement }[] = [];
  for (const { rank, bytes } of port.posted) {
    eachRecord(bytes, (record) => {
      expect(record.kind).toBe(Wire.activate);
      const what = announcementOf(0, record);
      keepPayload(what);
      found.push({ to: rank, what });
    });
    // Whatever is read has been copied: the message is gone.
    bytes.fill(0xee);
  }
  return found;
}

const MOST = 2 ** 31 - 1;
const big = fc.integer({ min: 0, max: 2 ** 50 });
const offer = fc.record({
  gid: fc.integer({ min: 1, max: MOST }),
  origin: fc.nat({ max: MAX_RANKS - 1 }),
  ranks: fc.uniqueArray(fc.integer({ min: 1, max: 19 }), { minLength: 1, maxLength: 19 }),
  sequence: fc.nat({ max: 10_000 }),
  apart: fc.nat({ max: 2 }),
  space: fc.nat({ max: 1 }),
  offset: big,
  bytes: big,
  priority: fc.integer({ min: -MOST, max: MOST }),
  payload: fc.option(fc.uint8Array({ maxLength: 40 }), { nil: undefined }),
});

describe('an offer', () => {
  it('is read by every branch as it was made', () => {
    fc.assert(
      fc.property(offer, fc.constantFrom(2, 4, 99), (made, treeFrom) => {
        const { port, offers, n } = sender(20, treeFrom);
        const pairs = made.ranks.map((rank, i) => [rank, made.sequence + i]);
        const apart = pairs.slice(0, made.apart).flat();
        const together = pairs.slice(made.apart).flat();
        const { gid, origin, space, offset, priority, payload } = made;
        const bytes = payload?.length ?? made.bytes;
        const served = offers.offer({
          cookie: 7,
          gid,
          origin,
          era: n.era,
          destinations: together,
          apart,
          space,
          offset,
          bytes,
          priority,
          payload,
        });
        n.wire.flush();
        const found = read(port);
        expect(found).toHaveLength(served);
        const reached: number[] = [];
        for (const { to, what } of found) {
          const [, sequence] = pairs.find(([rank]) => rank === to) as number[];
          reached.push(to, sequence, ...what.children);
          expect(what).toMatchObject({ origin, bytes, space, offset, priority });
          expect([what.origin, what.key]).toEqual([origin, keyOf(gid, sequence)]);
          expect([what.space, what.isPoisoned, what.reason]).toEqual([space, false, '']);
          expect(what.payload).toEqual(payload);
          expect(what.offer).toBe(found[0].what.offer);
        }
        const byRank = (list: readonly number[]): number[][] =>
          list
            .flatMap((rank, i) => (i % 2 === 0 ? [[rank, list[i + 1]]] : []))
            .sort(([a], [b]) => a - b);
        expect(byRank(reached)).toEqual(byRank([...together, ...apart]));
        // Who asks in its own time serves nobody else.
        for (let i = 0; i < apart.length; i += 2)
          expect(found.find(({ to }) => to === apart[i])?.what.children).toEqual([]);
        expect(offers.open).toBe(payload === undefined ? 1 : 0);
      }),
      { numRuns: 300 },
    );
  });

  it('that is impossible gives the reason to every destination', () => {
    const { port, offers, n } = sender(4, 2);
    // The words of a message that was sent before are still there.
    offers.offer({
      cookie: 7,
      gid: 1,
      origin: 1,
      era: n.era,
      destinations: [1, 5, 2, 6, 3, 7],
      apart: [],
      space: 1,
      offset: 64,
      bytes: 64,
      priority: 9,
      payload: undefined,
    });
    n.wire.flush();
    port.posted.length = 0;
    for (const reason of ['', 'task bad #1 failed: \u20ac \ud83d\ude00'])
      offers.poison(9, 3, n.era, [1, 5, 2, 6], reason);
    n.wire.flush();
    const told = read(port);
    const found = told.map(({ to, what }) => [to, what.key, what.isPoisoned, what.reason]);
    expect(found).toEqual(
      [1, 2].flatMap((to) =>
        ['', 'task bad #1 failed: \u20ac \ud83d\ude00'].map((reason) => [
          to,
          keyOf(9, to + 4),
          true,
          reason,
        ]),
      ),
    );
    for (const { what } of told) expect([what.children, what.payload]).toEqual([[], undefined]);
  });
});

describe('the key of a transfer', () => {
  const name = fc.record({
    gid: fc.integer({ min: 1, max: MOST }),
    sequence: fc.nat({ max: 20_000_000 }),
  });

  it('is exact, and distinguishes data and up to four million transfers in a row', () => {
    fc.assert(
      fc.property(name, name, fc.constantFrom(1, 77, 4096, 2 ** 22 - 1), (a, b, later) => {
        const key = keyOf(a.gid, a.sequence);
        expect(Number.isSafeInteger(key)).toBe(true);
        expect(keyOf(a.gid, a.sequence + later)).not.toBe(key);
        if (a.gid !== b.gid) expect(keyOf(b.gid, b.sequence)).not.toBe(key);
      }),
    );
  });

  it('of a call is exact, and distinguishes calls, and calls from other transfers', () => {
    const position = fc.nat({ max: 2 ** 33 });
    fc.assert(
      fc.property(name, name, position, position, (a, b, first, second) => {
        const key = keyOf(a.gid, sequenceOfCall(first));
        expect(Number.isSafeInteger(key)).toBe(true);
        expect(keyOf(a.gid, sequenceOfCall(first + 1))).not.toBe(key);
        if (first !== second) expect(keyOf(b.gid, sequenceOfCall(second))).not.toBe(key);
        expect(keyOf(b.gid, b.sequence)).not.toBe(key);
      }),
    );
  });
});

describe('a tree', () => {
  /** Sends to every destination, in steps: who has the datum serves one branch per step. */
  function spread(
    destinations: readonly number[],
    from: number,
  ): { reached: number[]; steps: number; most: number } {
    const branches = tree(destinations, from);
    const reached: number[] = [];
    let steps = 0;
    let most = branches.length;
    branches.forEach((branch, i) => {
      reached.push(branch[0], branch[1]);
      const below = spread(branch.slice(2), from);
      reached.push(...below.reached);
      steps = Math.max(steps, i + 1 + below.steps);
      most = Math.max(most, below.most);
    });
    return { reached, steps, most };
  }

  it.each([1, 2, 3, 7, 8, 31, 64, 100, 1023])(
    'reaches %i destinations once each, in about log2 steps, and no rank sends more often',
    (count) => {
      const destinations = Array.from({ length: count }, (_, i) => [i + 1, i + 100]).flat();
      const { reached, steps, most } = spread(destinations, 2);
      const ranks = reached.filter((_, i) => i % 2 === 0).sort((a, b) => a - b);
      expect(ranks).toEqual(Array.from({ length: count }, (_, i) => i + 1));
      reached.forEach((value, i) => {
        if (i % 2 === 1) expect(value).toBe(reached[i - 1] + 99);
      });
      const bound = Math.floor(Math.log2(count)) + 1;
      expect(steps).toBeLessThanOrEqual(bound);
      expect(most).toBeLessThanOrEqual(bound);
    },
  );

  it('is not used for few destinations: each is served from here', () => {
    expect(tree([1, 10, 2, 20, 3, 30], 4)).toEqual([
      [1, 10],
      [2, 20],
      [3, 30],
    ]);
    expect(tree([1, 10, 2, 20, 3, 30, 4, 40], 4).length).toBeLessThan(4);
    expect(tree([], 0)).toEqual([]);
  });
});
