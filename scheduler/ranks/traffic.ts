// The payloads between ranks: their bytes are counted, and the observer is told of each.

import type { NetworkTimes, NetworkWay } from '../../devices/network/listener.js';
import type { Payload } from '../engine/observer.js';
import type { RankHost } from './host.js';
import type { Movement } from './movements.js';

export class RankTraffic {
  /** Payload bytes sent and received. */
  readonly figures = { sentBytes: 0, receivedBytes: 0 };
  private readonly engine: RankHost;

  constructor(engine: RankHost) {
    this.engine = engine;
  }

  countSent(bytes: number): void {
    this.figures.sentBytes += bytes;
  }

  countReceived(way: NetworkWay, bytes: number): void {
    this.engine.transfers.bytes[way] += bytes;
    this.figures.receivedBytes += bytes;
  }

  /** Tells the observer of a message that has arrived, here or at the peer. */
  tell(
    { d, task, startedAt }: Movement,
    event: 'sent' | 'received',
    message: Pick<Payload, 'peer' | 'message' | 'way' | 'bytes'>,
    { start, end }: NetworkTimes,
  ): void {
    const { observer, tasks } = this.engine;
    if (observer === undefined) return;
    const space = tasks.device[task & tasks.mask];
    observer[event]({ d, task, space, ...message, start: start === 0 ? startedAt : start, end });
  }
}
