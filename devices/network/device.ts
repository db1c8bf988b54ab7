// The network as a device: versions of data travel on lanes, which are queues of the machine (devices/backend.ts). This file
// tells their news, knows the ways of their bytes, and carries the messages of the engines.
//
// Invariant: the news that a version will not come belong to an era. Those of an earlier era (before a failed run was settled)
// are dropped; those of a later one wait until this rank has entered it, with what the sender has said behind.
import { HeadraceError } from '../errors.js';
import { noVersionOf } from './keys.js';
import type { NetworkListener, NetworkOptions, NetworkSpace, NetworkWay } from './listener.js';
import {
  type AnnouncedPlace,
  NetOutcome,
  type NetworkPort,
  type NetworkSink,
  OUTCOME_NAMES,
} from './port.js';
import { flushFor, MODES, WAYS, wayBetween } from './ways.js';
import { eachRecord, payloadOf, Wire, WireWriter } from './wire.js';

/** Bytes of a letter besides the version and the ranks to which it goes on, and some to spare (native/mpi/lane_server.h). */
const LETTER_HEAD = 104;

export class NetworkDevice implements NetworkSink {
  readonly port: NetworkPort;
  readonly wire: WireWriter;
  readonly spaces: readonly NetworkSpace[];
  readonly options: NetworkOptions;
  private readonly listener: NetworkListener;
  private readonly later: { from: number; bytes: Uint8Array }[] = [];
  /** The present era. */
  private era = 0;

  constructor(
    port: NetworkPort,
    spaces: readonly NetworkSpace[],
    options: NetworkOptions,
    listener: NetworkListener,
  ) {
    this.port = port;
    this.wire = new WireWriter(port);
    this.spaces = spaces;
    this.options = options;
    this.listener = listener;
    if (!port.hostOnly)
      port.setWays((rank, fromSpace, space) => MODES[wayBetween(this, rank, fromSpace, space)]);
  }

  /** Whether a payload of that size travels in its message. */
  isInline(bytes: number): boolean {
    return (
      bytes <= this.options.inlineBytes &&
      bytes <= this.port.longestMessage - LETTER_HEAD - 16 * this.port.size
    );
  }

  /** The way of bytes from a space of another rank into `space`. */
  wayFrom(from: AnnouncedPlace, space: number): Exclude<NetworkWay, 'inline'> {
    return wayBetween(this, from.rank, from.space, space);
  }

  /** The flush that bytes need which came into `space` by that way, a `VisibleTo`. */
  flushFor(space: number, way: NetworkWay, forwards: boolean): number {
    return flushFor(this, space, way, forwards);
  }

  /** Tells ranks that a version that they await will not come: pairs (rank, sequence). */
  refuse(
    { gid, origin, era }: { readonly gid: number; readonly origin: number; readonly era: number },
    destinations: readonly number[],
    reason = '',
  ): void {
    for (let i = 0; i < destinations.length; i += 2)
      this.wire.write(
        destinations[i],
        Wire.noVersion,
        [era, gid, destinations[i + 1], origin],
        reason,
      );
  }

  /** Takes what has arrived; true when anything did. */
  poll(): boolean {
    return this.port.poll(this);
  }

  /** Makes messages and commands visible. */
  publish(): void {
    this.wire.flush();
    this.port.publish();
  }

  message(from: number, bytes: Uint8Array): void {
    let early = false;
    eachRecord(bytes, (record) => {
      if (early) return;
      const { kind, words, at } = record;
      if (kind !== Wire.noVersion) {
        this.listener.control(from, record);
        return;
      }
      const era = words[at + 2];
      if (era === this.era) this.listener.refused(noVersionOf(from, record));
      else if (era > this.era) {
        // The sender has entered a new era before this rank: its messages wait for this rank's.
        early = true;
        this.later.push({ from, bytes: payloadOf(record, at, (words.length - at) * 8).slice() });
      }
    });
  }

  departed(number: number, outcome: number, start: number, end: number, mode: number): void {
    this.listener.departed(number, outcome, WAYS[mode], { start, end });
  }

  came(number: number, from: AnnouncedPlace): void {
    this.listener.came(number, from);
  }

  lost(rank: number): void {
    this.listener.lost(rank);
  }

  /** A failed run is settled on all ranks: a new era begins. */
  beginEra(era: number): void {
    this.era = era;
    const early = this.later.splice(0);
    for (const { from, bytes } of early) this.message(from, bytes);
  }
}

/** The error for a transfer that did not end well. */
export function transferError(outcome: number, datum: string, peer: number): HeadraceError {
  const words = OUTCOME_NAMES[outcome] ?? `outcome ${outcome}`;
  const code =
    outcome === NetOutcome.lost
      ? 'ERR_PEER_LOST'
      : outcome === NetOutcome.flush
        ? 'ERR_FLUSH_FAILED'
        : outcome === NetOutcome.flushTimeout
          ? 'ERR_FLUSH_TIMEOUT'
          : 'ERR_TRANSFER_FAILED';
  return new HeadraceError(code, `datum '${datum}' from rank ${peer}: ${words}`, {
    datum,
    rank: peer,
    stage: 'comm-in',
  });
}
