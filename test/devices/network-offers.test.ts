// The sending side of the network: when an offer is over, how many sends are under way, and messages of other eras.
import { beforeEach, describe, expect, it } from 'vitest';
import { NetOutcome, WireMode } from '../../devices/network/port.js';
import { Wire } from '../../devices/network/wire.js';
import { HOST, PEER, Rank } from '../support/network-rank.js';

describe('an offer', () => {
  let rank: Rank;
  const get = (offer: number, request = 77): [number, ...number[]] => [
    Wire.get,
    0,
    offer,
    3,
    WireMode.direct,
    request,
  ];

  beforeEach(() => {
    rank = new Rank({ size: 50 });
  });

  it('is over when every destination has it or will not ask', () => {
    rank.offer(7, [1, 2, 3]);
    rank.hear(get(1));
    rank.hear([Wire.declined, 0, 1]);
    rank.hear([Wire.done, 0, 1]);
    expect(rank.told).toEqual([`sent 7 to ${PEER} ipc`]);
    rank.end(rank.asked('send'));
    expect(rank.told.slice(1)).toEqual([
      `sent 7 to ${PEER} direct`,
      `offer 7 over ${NetOutcome.ok}`,
    ]);
    expect(rank.device.underWay).toBe(0);
  });

  it('that is over or withdrawn is refused to every rank that asks, and the refusal cancels the receive', () => {
    rank.offer(7, [1, 2]);
    rank.said();
    rank.hear(get(1));
    rank.device.offers.withdraw((cookie) => cookie === 7);
    rank.hear(get(1, 78));
    rank.hear(get(9, 79));
    expect(rank.told).toEqual([]);
    rank.end(rank.asked('send'));
    expect(rank.told).toContain(`offer 7 over ${NetOutcome.cancelled}`);
    expect(rank.said()).toEqual([
      [Wire.refused, 0, 78],
      [Wire.refused, 0, 79],
    ]);
    rank.fetch(4, HOST);
    const [{ request }] = rank.asked('receive');
    rank.hear([Wire.refused, 0, request], [Wire.refused, 0, request + 1]);
    expect(rank.asked('cancel').map((cancel) => cancel.request)).toEqual([request]);
  });

  it('that is withdrawn holds its copy until every destination has answered: one may be reading it', () => {
    rank.offer(7, [1, 2, 3]);
    rank.device.offers.withdraw((cookie) => cookie === 7);
    rank.hear(get(1));
    rank.hear([Wire.declined, 0, 1]);
    expect(rank.told).toEqual([]);
    rank.hear([Wire.done, 0, 1]);
    expect(rank.told.at(-1)).toBe(`offer 7 over ${NetOutcome.cancelled}`);
    expect(rank.device.underWay).toBe(0);
  });

  it('ends at once when the ranks are out of step, but for sends under way', () => {
    rank.offer(7, [1]);
    rank.device.offers.abandon();
    expect(rank.told).toEqual([`offer 7 over ${NetOutcome.cancelled}`]);
  });

  it('reports a failed send, and a lost rank', () => {
    rank.offer(7, [1]);
    rank.hear(get(1));
    rank.end(rank.asked('send'), NetOutcome.library);
    rank.offer(8, [1]);
    rank.hear(get(2));
    rank.device.lost(1);
    // The send may never end: the peer is gone.
    expect(rank.told).toContain(`offer 8 over ${NetOutcome.lost}`);
    rank.end(rank.asked('send').slice(1), NetOutcome.lost);
    expect(rank.told).toEqual([
      `offer 7 over ${NetOutcome.library}`,
      'lost 1',
      `offer 8 over ${NetOutcome.lost}`,
    ]);
  });

  it('waits while 32 sends are under way, the most urgent first', () => {
    for (let i = 0; i < 32; i++) rank.offer(100 + i, [1]);
    const priorities = [1, 1, 9];
    priorities.forEach((priority, i) => void rank.offer(i, [1], priority));
    for (let i = 0; i < 35; i++) rank.hear(get(i + 1));
    expect(rank.asked('send')).toHaveLength(32);
    for (let i = 0; i < 35; i++) rank.end([rank.asked('send')[i]]);
    const order = rank.told.filter((text) => /^offer \d over/.test(text)).map((text) => text[6]);
    expect(order).toEqual(['2', '0', '1']);
  });
});

describe('messages of another era', () => {
  it('that has not begun wait for it, with the rest of the message', () => {
    const rank = new Rank();
    rank.hear([Wire.clock, 1], [Wire.declined, 2, 5], [Wire.time, 1, 2]);
    rank.hear([Wire.waiting]);
    expect(rank.told).toEqual([Wire.clock, Wire.waiting].map((kind) => `control ${kind} from 2`));
    rank.device.beginEra(1);
    expect(rank.told).toHaveLength(2);
    rank.device.beginEra(2);
    expect(rank.told.slice(2)).toEqual([`control ${Wire.time} from 2`]);
  });

  it('that is over are declined if they are announcements, and not shown', () => {
    const rank = new Rank();
    const sender = new Rank();
    sender.offer(1, [1]);
    sender.device.publish();
    rank.device.beginEra(3);
    for (const { bytes } of sender.port.posted) rank.device.message(PEER, bytes);
    expect(rank.told).toEqual([]);
    expect(rank.said()).toEqual([[Wire.declined, 3, 1]]);
  });
});
