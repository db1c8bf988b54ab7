// The network of a rank: the ways of bytes and the flush that they need, and the news that versions will not come.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NetworkDevice } from '../../devices/network/device.js';
import { keyOf, MAX_RANKS, sequenceOfCall } from '../../devices/network/keys.js';
import type { CommMode, FlushPolicy, NetworkListener } from '../../devices/network/listener.js';
import { VisibleTo } from '../../devices/network/port.js';
import { WAYS } from '../../devices/network/ways.js';
import { Wire, WireWriter } from '../../devices/network/wire.js';
import { type PortOptions, RecordingPort } from '../support/recording-port.js';

const [HOST, GPU, PEER] = [0, 1, 2];

interface RankOptions extends PortOptions {
  readonly comm?: CommMode;
  readonly flush?: FlushPolicy;
  readonly gpus?: number;
}

function rankOf(options: RankOptions = {}): {
  port: RecordingPort;
  device: NetworkDevice;
  told: unknown[];
} {
  const { comm = 'auto', flush = 'auto', gpus = 1 } = options;
  const port = new RecordingPort(options);
  const told: unknown[] = [];
  const listener: NetworkListener = {
    refused: (news) => void told.push(news),
    control: (from, { kind }) => void told.push(`control ${kind} from ${from}`),
    departed: (number, outcome) => void told.push(`departed ${number} ${outcome}`),
    came: (number) => void told.push(`came ${number}`),
    lost: (rank) => void told.push(`lost ${rank}`),
  };
  const spaces = Array.from({ length: gpus + 1 }, (_, s) => ({ kind: s === 0 ? 'host' : 'cuda' }));
  const device = new NetworkDevice(
    port,
    spaces,
    { comm, flush, inlineBytes: 256, treeFrom: 99 },
    listener,
  );
  return { port, device, told };
}

describe('bytes go', () => {
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
    const { device, port } = rankOf({ comm, isReachable, isMappable });
    expect(device.wayFrom({ rank: PEER, space: HOST, forwards: false }, GPU)).toBe(way);
    expect(WAYS[port.wayOf(PEER, HOST, GPU)]).toBe(way);
  });

  it('directly between two hosts, also if the option asks for staging', () => {
    const { device } = rankOf({ comm: 'staged' });
    for (const [from, to, way] of [
      [HOST, HOST, 'direct'],
      [GPU, HOST, 'staged'],
      [HOST, GPU, 'staged'],
    ] as const)
      expect(device.wayFrom({ rank: PEER, space: from, forwards: false }, to)).toBe(way);
  });
});

describe('a flush', () => {
  const { none, owner, all } = VisibleTo;
  it.each([
    // Policy, order the space has by itself, GPUs of the rank, passed on: who must see the bytes.
    ['auto', none, 1, false, owner],
    ['auto', owner, 1, false, none],
    ['auto', owner, 1, true, all],
    ['auto', owner, 2, false, all],
    ['auto', all, 2, true, none],
    ['force', all, 1, false, owner],
    ['off', none, 2, true, none],
  ] as const)('%s, ordering %i, %i GPUs, passed on %s: %s', (flush, ordering, gpus, on, scope) => {
    const { device } = rankOf({ flush, ordering, gpus });
    expect(device.flushFor(GPU, 'direct', on)).toBe(scope);
  });

  it('is not made for the host, for staged bytes, or for those that this rank reads itself', () => {
    const { device } = rankOf({ ordering: none, flush: 'force' });
    expect(device.flushFor(HOST, 'direct', true)).toBe(none);
    for (const way of ['staged', 'ipc'] as const)
      expect(device.flushFor(GPU, way, true)).toBe(none);
  });
});

describe('the news that a version will not come', () => {
  it('reach every destination as they were told', () => {
    const version = fc.record({
      gid: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
      origin: fc.nat({ max: MAX_RANKS - 1 }),
      sequence: fc.oneof(fc.nat({ max: 10_000 }), fc.nat({ max: 10_000 }).map(sequenceOfCall)),
      reason: fc.constantFrom('', 'task bad #1 failed: \u20ac \ud83d\ude00', '\ufeffx'),
    });
    fc.assert(
      fc.property(version, ({ gid, origin, sequence, reason }) => {
        const [sender, receiver] = [rankOf(), rankOf()];
        sender.device.refuse({ gid, origin, era: 0 }, [1, sequence, 3, sequence], reason);
        sender.device.publish();
        expect(sender.port.posted.map(({ rank }) => rank)).toEqual([1, 3]);
        for (const { bytes } of sender.port.posted) receiver.device.message(PEER, bytes);
        const call = sequence < 0 ? -1 - sequence : -1;
        const news = { key: keyOf(gid, sequence), call, from: PEER, origin, reason };
        expect(receiver.told).toEqual([news, news]);
      }),
    );
  });

  it('wait for an era that has not begun, with the rest of the message', () => {
    const { device, told } = rankOf();
    const port = new RecordingPort();
    const wire = new WireWriter(port);
    wire.write(1, Wire.clock, [1]);
    wire.write(1, Wire.noVersion, [2, 5, 0, 1]);
    wire.write(1, Wire.time, [1, 2]);
    wire.flush();
    for (const { bytes } of port.posted) device.message(PEER, bytes);
    expect(told).toEqual([`control ${Wire.clock} from ${PEER}`]);
    device.beginEra(1);
    expect(told).toHaveLength(1);
    device.beginEra(2);
    expect(told.slice(1)).toEqual([
      { key: keyOf(5, 0), call: -1, from: PEER, origin: 1, reason: '' },
      `control ${Wire.time} from ${PEER}`,
    ]);
  });

  it('are dropped if their era is over', () => {
    const [sender, receiver] = [rankOf(), rankOf()];
    sender.device.refuse({ gid: 5, origin: 1, era: 0 }, [1, 0]);
    sender.device.publish();
    receiver.device.beginEra(3);
    for (const { bytes } of sender.port.posted) receiver.device.message(PEER, bytes);
    expect(receiver.told).toEqual([]);
  });
});
