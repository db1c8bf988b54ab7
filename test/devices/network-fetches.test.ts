// The receiving side of the network: the way of a fetch, the flush before it counts as arrived, and the number of receives
// that are under way.
import { describe, expect, it } from 'vitest';
import type { CommMode } from '../../devices/network/context.js';
import { NetOutcome, VisibleTo, WireMode } from '../../devices/network/port.js';
import { Wire } from '../../devices/network/wire.js';
import { GPU, HOST, PEER, Rank } from '../support/network-rank.js';
import type { PortRequest } from '../support/recording-port.js';

describe('a fetch goes', () => {
  const ways: readonly [CommMode, boolean, boolean, string][] = [
    // What was asked for, whether the ends are reachable, whether the peer's memory can be mapped.
    ['auto', true, true, 'ipc'],
    ['auto', true, false, 'direct'],
    ['auto', false, true, 'ipc'],
    ['auto', false, false, 'staged'],
    ['ipc', true, true, 'ipc'],
    ['ipc', true, false, 'direct'],
    ['direct', true, true, 'direct'],
    ['direct', false, true, 'ipc'],
    ['direct', false, false, 'staged'],
    ['staged', true, true, 'staged'],
  ];
  it.each(ways)('for %s, reachable %s, mappable %s: %s', (comm, isReachable, isMappable, way) => {
    const rank = new Rank({ comm, isReachable, isMappable });
    rank.fetch(7, GPU);
    const [request] = rank.port.requests;
    expect(request.kind).toBe(way === 'ipc' ? 'ipc' : 'receive');
    if (way !== 'ipc')
      expect(request.mode).toBe(way === 'staged' ? WireMode.staged : WireMode.direct);
    rank.end([request]);
    rank.end(rank.asked('flush'));
    expect(rank.told).toEqual([`received 7 ${way} ${NetOutcome.ok}`]);
  });

  it('directly between two hosts, also if the option asks for staging', () => {
    for (const [space, from, mode] of [
      [HOST, HOST, WireMode.direct],
      [HOST, GPU, WireMode.staged],
      [GPU, HOST, WireMode.staged],
    ] as const) {
      const rank = new Rank({ comm: 'staged' });
      rank.fetch(1, space, { space: from });
      expect(rank.port.requests[0].mode).toBe(mode);
    }
  });

  it('with a receive that is posted before the request, under the same tag and number', () => {
    const rank = new Rank();
    rank.fetch(1, HOST, { offer: 12 });
    const [{ tag, mode, request }] = rank.asked('receive');
    expect(rank.port.posted).toEqual([]);
    expect(rank.said()).toEqual([[Wire.get, 0, 12, tag, mode, request]]);
  });

  it('and reports that mapped memory was read', () => {
    const rank = new Rank({ isMappable: true });
    rank.fetch(1, HOST, { offer: 12 });
    expect(rank.said()).toEqual([]);
    rank.end(rank.asked('ipc'));
    expect(rank.said()).toEqual([[Wire.done, 0, 12]]);
  });
});

describe('tags', () => {
  it('distinguish receives that are under way, after any number of earlier ones', () => {
    const rank = new Rank();
    rank.fetch(0, HOST);
    const [first] = rank.asked('receive');
    for (let i = 0; i < 32_100; i++) {
      rank.fetch(1, HOST);
      const last = rank.port.requests.pop() as PortRequest;
      if (last.tag === first.tag || last.tag < 1 || last.tag > 32_767)
        throw new Error(`tag ${last.tag}`);
      rank.end([last]);
      if (i % 1000 === 0) rank.said();
    }
  });
});

describe('staged receives', () => {
  it('are as many as the port has buffers for, the most urgent of the others first', () => {
    const rank = new Rank({ comm: 'staged', stagedReceives: 2 });
    const priorities = [1, 1, 1, 9, 1, 5];
    priorities.forEach((priority, cookie) => void rank.fetch(cookie, GPU, { priority }));
    expect(rank.asked('receive')).toHaveLength(2);
    for (let i = 0; i < priorities.length; i++) rank.end([rank.asked('receive')[i]]);
    const order = rank.told.map((text) => Number(text.split(' ')[1]));
    expect(order).toEqual([0, 1, 3, 5, 2, 4]);
  });

  it('that were not begun end when a rank is lost', () => {
    const rank = new Rank({ comm: 'staged', stagedReceives: 1 });
    for (const cookie of [1, 2]) rank.fetch(cookie, GPU);
    rank.device.lost(PEER);
    expect(rank.told).toEqual([`lost ${PEER}`, `received 2 staged ${NetOutcome.lost}`]);
  });
});

describe('a flush', () => {
  const { none, owner, all } = VisibleTo;
  it.each([
    // Policy, order the space has by itself, GPUs of the rank, passed on: who must see the bytes, or undefined.
    ['auto', none, 1, false, owner],
    ['auto', owner, 1, false, undefined],
    ['auto', owner, 1, true, all],
    ['auto', owner, 2, false, all],
    ['auto', all, 2, true, undefined],
    ['force', all, 1, false, owner],
    ['off', none, 2, true, undefined],
  ] as const)(
    '%s, ordering %i, %i GPUs, passed on %s: %s',
    (flush, ordering, gpus, keeps, scope) => {
      const rank = new Rank({ flush, ordering, gpus });
      rank.fetch(1, GPU, {}, keeps);
      rank.end(rank.asked('receive'));
      expect(rank.asked('flush').map((request) => request.scope)).toEqual(
        scope === undefined ? [] : [scope],
      );
      expect(rank.told).toHaveLength(scope === undefined ? 1 : 0);
    },
  );

  it('covers all receives of a poll on one device, and they arrive behind it', () => {
    const rank = new Rank({ gpus: 2, flush: 'force' });
    for (const [cookie, space] of [
      [1, GPU],
      [2, GPU],
      [3, 2],
    ])
      rank.fetch(cookie, space);
    rank.end(rank.asked('receive'));
    expect(rank.told).toEqual([]);
    expect(rank.asked('flush').map(({ space }) => space)).toEqual([GPU, 2]);
    rank.end(rank.asked('flush').slice(0, 1), NetOutcome.flush);
    expect(rank.told).toEqual([1, 2].map((i) => `received ${i} direct ${NetOutcome.flush}`));
    rank.end(rank.asked('flush').slice(1));
    expect(rank.told[2]).toBe(`received 3 direct ${NetOutcome.ok}`);
    expect(rank.device.underWay).toBe(0);
  });

  it('is not made for the host, for staged bytes, or for failed receives', () => {
    const rank = new Rank({ ordering: none });
    rank.fetch(1, HOST);
    rank.fetch(2, GPU);
    rank.end(rank.asked('receive'), NetOutcome.truncated);
    const staged = new Rank({ ordering: none, comm: 'staged' });
    staged.fetch(3, GPU);
    staged.end(staged.asked('receive'));
    expect([...rank.asked('flush'), ...staged.asked('flush')]).toEqual([]);
    expect([...rank.told, ...staged.told]).toHaveLength(3);
  });
});
