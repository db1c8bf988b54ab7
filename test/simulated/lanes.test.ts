// The lanes of a simulated rank (devices/simulated/machine/lanes.ts): which receive takes which letter.
import { describe, expect, it } from 'vitest';
import { Lanes, type Letter } from '../../devices/simulated/machine/lanes.js';
import { queueId } from '../support/handles.js';

const RUN = 3;
const lane = queueId(5);
const announced: Letter = {
  ...{ from: 1, era: 0, key: 7, bytes: 64, payload: undefined, knowledge: undefined },
  offered: { id: 1, space: 0, offset: 0, children: [] },
};

describe('a receive of an announced version', () => {
  it('takes its letter', () => {
    const lanes = new Lanes();
    expect(lanes.arrives(announced)).toBeUndefined();
    expect(lanes.take(0, 7, lane, RUN)).toBe(announced);
    expect(lanes.cancel(RUN).receives).toEqual([]);
  });

  it('waits for the end of its run if a rank is lost before it is carried out', () => {
    const lanes = new Lanes();
    lanes.arrives(announced);
    lanes.lost();
    expect(lanes.take(0, 7, lane, RUN)).toBeUndefined();
    expect(lanes.cancel(RUN).receives).toEqual([lane]);
  });

  it('waits for it, too, if the letter comes after the loss', () => {
    const lanes = new Lanes();
    expect(lanes.take(0, 7, lane, RUN)).toBeUndefined();
    lanes.lost();
    expect(lanes.arrives(announced)).toBeUndefined();
    expect(lanes.cancel(RUN).receives).toEqual([lane]);
  });
});
