// The directory: rows, ownership, reader lists, and a validation that detects errors.

import { describe, expect, it } from 'vitest';
import { type DatumId, HOST, NO_QUEUE } from '../../devices/handles.js';
import { CopyEvent, CopyState } from '../../devices/memory/coherency.js';
import { Directory, NO_BLOCK, NO_HOME, Poison } from '../../devices/memory/directory.js';
import { datumId, queueId, spaceId } from '../support/handles.js';

function directory(spaces = 3): { dir: Directory; d: DatumId } {
  const dir = new Directory(spaces);
  return { dir, d: dir.add(1024, { name: 'datum' }) };
}

describe('directory', () => {
  it('starts a datum with nothing anywhere', () => {
    const { dir, d } = directory();
    expect(dir.owner(d)).toBe(-1);
    expect(dir.validMask[d]).toBe(0);
    expect(dir.home[d]).toBe(NO_HOME);
    for (let s = 0; s < 3; s++) {
      expect(dir.block[d * 3 + s]).toBe(NO_BLOCK);
      expect(dir.writeQueue[d * 3 + s]).toBe(NO_QUEUE);
    }
    dir.validate();
  });

  it('follows ownership and the mask of valid copies through a life', () => {
    const { dir, d } = directory();
    dir.block[d * 3] = 0;
    dir.block[d * 3 + 2] = 512;
    dir.apply(d, HOST, CopyEvent.write);
    expect([dir.owner(d), dir.validMask[d]]).toEqual([0, 0b001]);
    dir.apply(d, spaceId(2), CopyEvent.fetch);
    expect([dir.owner(d), dir.validMask[d]]).toEqual([0, 0b101]);
    dir.apply(d, spaceId(2), CopyEvent.arrived);
    dir.validate();
    dir.apply(d, HOST, CopyEvent.yieldOwnership);
    dir.apply(d, spaceId(2), CopyEvent.takeOwnership);
    expect(dir.owner(d)).toBe(2);
    dir.apply(d, HOST, CopyEvent.drop);
    dir.block[d * 3] = NO_BLOCK;
    expect([dir.owner(d), dir.validMask[d]]).toEqual([2, 0b100]);
    dir.validate();
  });

  it('throws on an event that must not happen, naming the datum', () => {
    const { dir, d } = directory();
    dir.apply(d, HOST, CopyEvent.write);
    expect(() => dir.apply(d, HOST, CopyEvent.drop)).toThrow(
      /illegal for datum 'datum' in space 0/,
    );
    expect(() => dir.apply(d, spaceId(1), CopyEvent.read)).toThrow(/illegal/);
    expect(dir.state[d * 3]).toBe(CopyState.owned);
  });

  it('keeps one event per queue among the readers, and forgets them at a write', () => {
    const { dir, d } = directory();
    const c = d * 3 + 1;
    const readers = (): Record<number, number> => {
      const found: Record<number, number> = {};
      if (dir.readerQueue[c] !== NO_QUEUE) found[dir.readerQueue[c]] = dir.readerSeq[c];
      for (let n = dir.readersHead[c]; n >= 0; n = dir.readers.next[n]) {
        expect(found[dir.readers.value[n]]).toBe(undefined);
        found[dir.readers.value[n]] = dir.readers.extra[n];
      }
      return found;
    };
    dir.addReader(c, queueId(4), 10);
    dir.addReader(c, queueId(5), 3);
    dir.addReader(c, queueId(4), 12);
    dir.addReader(c, queueId(7), 5);
    dir.addReader(c, queueId(5), 4);
    expect(readers()).toEqual({ 4: 12, 5: 4, 7: 5 });
    dir.setWriter(c, queueId(6), 1);
    expect(readers()).toEqual({});
    expect([dir.writeQueue[c], dir.writeSeq[c]]).toEqual([6, 1]);
    expect(dir.readers.live).toBe(0);
  });

  it('gives rows of forgotten data to new ones, clean', () => {
    const { dir, d } = directory();
    dir.block[d * 3] = 0;
    dir.apply(d, HOST, CopyEvent.write);
    dir.written[d] = 1;
    dir.home[d] = spaceId(2);
    dir.setPoison(d, Poison.writerFailed);
    dir.addReader(d * 3, queueId(1), 1);
    expect(() => dir.remove(d)).toThrow('still has memory');
    dir.block[d * 3] = NO_BLOCK;
    dir.remove(d);
    expect(dir.poisonedData).toBe(0);
    const again = dir.add(99, { name: 'again' });
    expect(again).toBe(d);
    expect([dir.bytes[d], dir.written[d], dir.home[d], dir.validMask[d], dir.poison[d]]).toEqual([
      99,
      0,
      NO_HOME,
      0,
      0,
    ]);
    expect(dir.readers.live).toBe(0);
    dir.validate();
  });

  it('grows without losing its contents', () => {
    const dir = new Directory(2);
    for (let i = 0; i < 2000; i++) {
      const d = dir.add(i + 1, { name: `datum ${i}` });
      dir.block[d * 2] = i * 512;
      dir.apply(d, HOST, CopyEvent.write);
      dir.setWriter(d * 2, queueId(i % 7), i);
    }
    for (let d = 0; d < 2000; d++) {
      expect(dir.bytes[d]).toBe(d + 1);
      expect(dir.block[d * 2]).toBe(d * 512);
      expect(dir.block[d * 2 + 1]).toBe(NO_BLOCK);
      expect(dir.writeQueue[d * 2 + 1]).toBe(NO_QUEUE);
      expect(dir.writeSeq[d * 2]).toBe(d);
      expect(dir.owner(datumId(d))).toBe(0);
    }
    dir.validate();
  });

  it('counts poisoned data once each', () => {
    const { dir, d } = directory();
    const e = dir.add(8, { name: 'other' });
    dir.setPoison(d, Poison.writerFailed);
    dir.setPoison(d, Poison.transferFailed);
    dir.setPoison(e, Poison.writerCancelled);
    expect(dir.poisonedData).toBe(2);
    dir.setPoison(d, Poison.none);
    dir.setPoison(d, Poison.none);
    expect(dir.poisonedData).toBe(1);
  });

  it('validation sees two owners, a wrong mask, valid copies without memory and negative pins', () => {
    const breakages: readonly [RegExp, (dir: Directory, d: DatumId) => void][] = [
      [
        /2 owners/,
        (dir, d) => {
          dir.state[d * 3 + 1] = CopyState.owned;
          dir.validMask[d] |= 2;
          dir.block[d * 3 + 1] = 0;
        },
      ],
      [
        /0 owners/,
        (dir, d) => {
          dir.state[d * 3] = CopyState.shared;
        },
      ],
      [
        /validMask/,
        (dir, d) => {
          dir.validMask[d] = 0b111;
        },
      ],
      [
        /without memory/,
        (dir, d) => {
          dir.block[d * 3] = NO_BLOCK;
        },
      ],
      [
        /negative pins/,
        (dir, d) => {
          dir.pins[d * 3] = -1;
        },
      ],
      [
        /pinned without memory/,
        (dir, d) => {
          dir.pins[d * 3 + 2] = 1;
        },
      ],
    ];
    for (const [message, spoil] of breakages) {
      const { dir, d } = directory();
      dir.block[d * 3] = 0;
      dir.apply(d, HOST, CopyEvent.write);
      dir.validate();
      spoil(dir, d);
      expect(() => dir.validate()).toThrow(message);
    }
  });
});
