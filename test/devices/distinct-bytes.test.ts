// Bytes of a task's data: each datum counts once, in whole blocks, also if several flows name it.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Directory, NO_BLOCK } from '../../devices/memory/directory.js';
import { distinctBytes, missingBytes } from '../../devices/memory/distinct-bytes.js';
import { roundedBytes } from '../../devices/memory/zone.js';
import { dataColumn, spaceId } from '../support/handles.js';

const SPACES = 3;

describe('bytes of the data of a task', () => {
  it('count a datum once, rounded up to its block', () => {
    const dir = new Directory(SPACES);
    const [a, b] = [dir.add(1, { name: 'a' }), dir.add(600, { name: 'b' })];
    // The flows of another task lie on both sides.
    const flows = dataColumn([b, a, b, a, a, b]);
    expect(distinctBytes(dir, flows, 1, 5)).toBe(512 + 1024);
    expect(distinctBytes(dir, flows, 3, 5)).toBe(512);
    expect(distinctBytes(dir, flows, 2, 2)).toBe(0);
    dir.block[b * SPACES + 1] = 0;
    expect(missingBytes(dir, flows, 1, 5, spaceId(1))).toBe(512);
    expect(missingBytes(dir, flows, 1, 5, spaceId(2))).toBe(512 + 1024);
  });

  it('equal those of the set of data, and of the data without a block, for any flows', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ bytes: fc.nat(3000), spaces: fc.nat(7) }), { minLength: 1 }),
        fc.array(fc.nat(), { maxLength: 10 }),
        fc.nat(SPACES - 1),
        (data, picks, s) => {
          const dir = new Directory(SPACES);
          for (const { bytes, spaces } of data) {
            const d = dir.add(bytes, { name: 'datum' });
            for (let t = 0; t < SPACES; t++)
              dir.block[d * SPACES + t] = (spaces >> t) & 1 ? 512 : NO_BLOCK;
          }
          const flows = dataColumn(picks.map((pick) => pick % data.length));
          const all = [...new Set(flows)];
          const sum = (set: number[]): number =>
            set.reduce((bytes, d) => bytes + roundedBytes(data[d].bytes), 0);
          expect(distinctBytes(dir, flows, 0, flows.length)).toBe(sum(all));
          expect(missingBytes(dir, flows, 0, flows.length, spaceId(s))).toBe(
            sum(all.filter((d) => ((data[d].spaces >> s) & 1) === 0)),
          );
        },
      ),
    );
  });
});
