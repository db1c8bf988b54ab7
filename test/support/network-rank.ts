// A rank of the network over a port that carries nothing. It records the calls of its listener and its messages to
// others.
import type { Announcement } from '../../devices/network/announcement.js';
import type { CommMode, FlushPolicy, NetworkListener } from '../../devices/network/context.js';
import { NetworkDevice } from '../../devices/network/device.js';
import { NetOutcome } from '../../devices/network/port.js';
import { eachRecord, WireWriter } from '../../devices/network/wire.js';
import { type PortOptions, type PortRequest, RecordingPort } from './recording-port.js';

export const HOST = 0;
export const GPU = 1;
export const PEER = 2;

export interface RankOptions extends PortOptions {
  readonly comm?: CommMode;
  readonly flush?: FlushPolicy;
  readonly gpus?: number;
}

export class Rank {
  readonly port: RecordingPort;
  readonly device: NetworkDevice;
  readonly told: string[] = [];

  constructor(options: RankOptions = {}) {
    const { comm = 'auto', flush = 'auto', gpus = 1 } = options;
    this.port = new RecordingPort(options);
    const note = (text: string): void => void this.told.push(text);
    const listener: NetworkListener = {
      announced: ({ offer }) => note(`announced ${offer}`),
      received: (cookie, outcome, way) => note(`received ${cookie} ${way} ${outcome}`),
      sent: (cookie, to, _message, way) => note(`sent ${cookie} to ${to} ${way}`),
      offerDone: (cookie, outcome) => note(`offer ${cookie} over ${outcome}`),
      control: (from, { kind }) => note(`control ${kind} from ${from}`),
      departed: (number, outcome) => note(`departed ${number} ${outcome}`),
      came: (number) => note(`came ${number}`),
      lost: (rank) => note(`lost ${rank}`),
    };
    const spaces = Array.from({ length: gpus + 1 }, (_, s) => ({
      kind: s === 0 ? 'host' : 'cuda',
    }));
    const rest = { inlineBytes: 256, treeFrom: 99 };
    this.device = new NetworkDevice(this.port, spaces, { comm, flush, ...rest }, listener);
  }

  fetch(cookie: number, space: number, parts: Partial<Announcement> = {}, keeps = false): void {
    this.device.fetches.fetch(announcement(parts), cookie, space, 0, keeps);
  }

  /** Requests of a kind so far. */
  asked(kind: PortRequest['kind']): PortRequest[] {
    return this.port.requests.filter((request) => request.kind === kind);
  }

  /** Requests end, as one poll finds them. */
  end(requests: readonly PortRequest[], outcome: number = NetOutcome.ok): void {
    for (const { request } of requests) this.device.done(request, outcome, 0, 0);
    this.device.fetches.flushBatches();
  }

  /** Records sent since the last look: kind and fields. */
  said(): number[][] {
    this.device.publish();
    const found: number[][] = [];
    for (const { bytes } of this.port.posted.splice(0)) {
      eachRecord(bytes, ({ kind, words, at, end }) => {
        found.push([kind, ...words.subarray(at + 2, end - 1)]);
      });
    }
    return found;
  }

  /** A message with these records arrives from the peer. */
  hear(...records: readonly (readonly [kind: number, ...fields: number[]])[]): void {
    const port = new RecordingPort();
    const wire = new WireWriter(port);
    for (const [kind, ...fields] of records) wire.write(GPU, kind, fields);
    wire.flush();
    for (const { bytes } of port.posted) this.device.message(PEER, bytes);
  }

  offer(cookie: number, ranks: readonly number[], priority = 0): void {
    const destinations = ranks.flatMap((rank) => [rank, 0]);
    const version = { gid: 1, origin: 0, era: 0, space: HOST, offset: 0, bytes: 64 };
    const apart: number[] = [];
    this.device.offers.offer({
      cookie,
      ...version,
      destinations,
      apart,
      priority,
      payload: undefined,
    });
  }
}

function announcement(parts: Partial<Announcement>): Announcement {
  return {
    key: 1,
    call: -1,
    from: PEER,
    origin: PEER,
    bytes: 64,
    offer: 5,
    space: HOST,
    offset: 0,
    priority: 0,
    children: [],
    payload: undefined,
    isPoisoned: false,
    reason: '',
    ...parts,
  };
}
