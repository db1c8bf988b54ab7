// The options of the network, and the listener to whom it tells its news.

import type { NoVersion } from './keys.js';
import type { AnnouncedPlace } from './port.js';
import type { WireRecord } from './wire.js';

/** How bytes between ranks travel. */
export type CommMode = 'auto' | 'direct' | 'staged' | 'ipc';
/** When writes of the network to device memory are flushed. */
export type FlushPolicy = 'auto' | 'force' | 'off';

/** The way a payload took. */
export type NetworkWay = 'ipc' | 'direct' | 'staged' | 'inline';

/** When the bytes of a message moved, in nanoseconds on this rank's clock. */
export interface NetworkTimes {
  readonly start: number;
  readonly end: number;
}

/** The part of a memory space that the device needs. */
export interface NetworkSpace {
  readonly kind: string;
}

export interface NetworkOptions {
  readonly comm: CommMode;
  readonly flush: FlushPolicy;
  /** Payloads up to this size travel in their message. */
  readonly inlineBytes: number;
  /** Number of destinations from which on a tree is used. */
  readonly treeFrom: number;
}

/** Gets a call for every event of the network. */
export interface NetworkListener {
  /** A version that this rank awaits will not come. */
  refused(news: NoVersion): void;
  /** No destination needs the bytes of a lane's offer any more. */
  departed(number: number, outcome: number, way: NetworkWay, times: NetworkTimes): void;
  /** The version that was expected with that number has come, or its announcement (`NetworkPort.expect`). */
  came(number: number, from: AnnouncedPlace): void;
  /** A record that is not about data. */
  control(from: number, record: WireRecord): void;
  lost(rank: number): void;
}
