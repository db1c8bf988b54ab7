// A rank's table of data, compared with a record per datum: owner, producer of the latest version, and its place.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_GID, NOT_SENT, RankData } from '../../scheduler/ranks/data.js';
import { datumId } from '../support/handles.js';

/** Ranks enough for four words of a mask. */
const SIZE = 100;
/** Data beyond the rows there are at first. */
const rows = fc.constantFrom(0, 1, 2, 255, 256, 700);
const someRank = fc.constantFrom(0, 1, 31, 32, 63, 64, SIZE - 1);

interface Record {
  gid: number;
  owner: number;
  producer: number;
  readonly sent: Set<number>;
}
type Step =
  | { readonly add: number; readonly owner: number; readonly alone: boolean }
  | { readonly written: number; readonly rank: number }
  | { readonly sent: number; readonly rank: number }
  | { readonly reset: true };
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ add: rows, owner: someRank, alone: fc.boolean() }),
  fc.record({ written: rows, rank: someRank }),
  fc.record({ sent: rows, rank: someRank }),
  fc.record({ sent: rows, rank: someRank }),
  fc.constant({ reset: true as const }),
);

class Reference {
  readonly known: Map<number, Record> = new Map();
  private nextGid = 1;

  take(next: Step, data: RankData): void {
    if ('add' in next) {
      const gid = next.alone ? NO_GID : this.nextGid++;
      data.add(datumId(next.add), next.owner, next.alone ? NO_GID : undefined);
      this.known.set(next.add, { gid, owner: next.owner, producer: next.owner, sent: new Set() });
    } else if ('reset' in next) {
      data.reset();
      for (const record of this.known.values()) {
        record.producer = record.owner;
        record.sent.clear();
      }
    } else if ('written' in next) {
      const record = this.known.get(next.written);
      if (record === undefined) return;
      data.openSend[next.written] = 7;
      data.written(datumId(next.written), next.rank);
      expect(data.openSend[next.written]).toBe(NOT_SENT);
      record.producer = next.rank;
      record.sent.clear();
    } else {
      const record = this.known.get(next.sent);
      if (record === undefined) return;
      expect(data.markSent(datumId(next.sent), next.rank)).toBe(!record.sent.has(next.rank));
      record.sent.add(next.rank);
    }
  }
}

describe('the data of a rank', () => {
  it.each([0, 32])('are the same as in a record per datum, on rank %i', (rank) => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const data = new RankData(rank);
        const reference = new Reference();
        for (const next of steps) {
          reference.take(next, data);
          for (const [d, { gid, owner, producer, sent }] of reference.known) {
            expect([data.gid[d], data.owner[d], data.producer[d]]).toEqual([gid, owner, producer]);
            expect(data.have[d]).toBe(producer === rank ? 1 : 0);
            expect(data.isSent(datumId(d))).toBe(sent.size > 0);
            expect(data.isBehind(datumId(d))).toBe(
              gid !== NO_GID && owner === rank && producer !== rank,
            );
          }
        }
      }),
      { numRuns: 40 },
    );
  });

  it('have the same names on all ranks, whatever data single ranks have of their own', () => {
    const [a, b] = [new RankData(0), new RankData(1)];
    a.add(datumId(0), 0);
    a.add(datumId(1), 0, NO_GID);
    a.add(datumId(2), 1);
    b.add(datumId(5), 0);
    b.add(datumId(300), 1);
    expect([a.gid[0], a.gid[2]]).toEqual([b.gid[5], b.gid[300]]);
    expect(a.gid[1]).toBe(NO_GID);
  });

  it('take no more destinations for rows that were not there yet', () => {
    const data = new RankData(0);
    data.openSend[0] = 3;
    data.add(datumId(1000), 1);
    expect(data.openSend[0]).toBe(3);
    expect([...data.openSend.subarray(1)].every((send) => send === NOT_SENT)).toBe(true);
  });
});
