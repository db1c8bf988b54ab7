// Bytes between ranks on lanes without an engine: for programs that find out what a machine can do (gpu-aware-program.ts,
// cli/doctor-ranks.ts).
//
// Invariant: a rank offers one version at a time, and the number of the rank is its key: an offer is over when its receive has
// taken the letter, so no letter meets one with the same key.

import { findQueues } from '../backend.js';
import { NO_QUEUE, type QueueId, type SpaceId } from '../handles.js';
import { type NetworkPort, type NetworkSink, VisibleTo } from '../network/port.js';
import { arrivalNumber } from '../network/ways.js';
import type { NativeBackend } from './backend.js';

/** Lanes that a probe needs of its backend: one for offers, one for receives. */
export const PROBE_LANES = 2;

const NO_RUN = -1;
/** All versions of a probe are of the first era. */
const ERA = 1;

/** Bytes in a memory space of this rank. */
interface ProbePlace {
  readonly space: SpaceId;
  readonly offset: number;
  readonly bytes: number;
}

export class LaneProbe implements NetworkSink {
  /** Outcome of the last offer, a `NetOutcome`; undefined while it is not over. */
  outcome: number | undefined;
  private readonly backend: NativeBackend;
  private readonly port: NetworkPort;
  private readonly offers: QueueId;
  private readonly receives: QueueId;
  private received = 0;

  constructor(backend: NativeBackend, port: NetworkPort) {
    this.backend = backend;
    this.port = port;
    [this.offers, this.receives] = findQueues(backend.queues, ({ kind }) => kind === 'lane');
  }

  /** Lets a rank fetch bytes, which stay as they are until `outcome` is there. */
  offer(to: number, { space, offset, bytes }: ProbePlace): void {
    this.outcome = undefined;
    const { rank } = this.port;
    // Number of the offer, key of a version that it passes on, space, priority; then the receiver and the key there.
    this.command('offer', this.offers, [offset, bytes, ERA, 0, 0, space, 0, to, rank]);
  }

  /** Fetches the bytes that a rank offers, by a `WireMode`. No flush follows. */
  receive(from: number, { space, offset, bytes }: ProbePlace, mode: number): void {
    const args = [offset, bytes, ERA, from, arrivalNumber(space, mode, VisibleTo.none)];
    this.received = this.command('receive', this.receives, args);
  }

  /** Outcome of the last receive, a `Status`; undefined while it is not over. */
  get status(): number | undefined {
    const { backend, receives, received } = this;
    const isOver = ((backend.completed[receives] - received) | 0) >= 0;
    return isOver ? backend.status(receives, received) : undefined;
  }

  /** Takes the news of the offer and of the receive. */
  poll(): void {
    this.backend.poll();
    this.port.poll(this);
  }

  departed(_number: number, outcome: number): void {
    this.outcome = outcome;
  }

  /** There are no messages, and receives that wait for news. */
  message(): void {}
  came(): void {}

  lost(rank: number): void {
    throw new Error(`rank ${rank} is gone`);
  }

  private command(kind: 'offer' | 'receive', lane: QueueId, args: readonly number[]): number {
    const { backend, port } = this;
    const all = Float64Array.from(args);
    const seq = backend.message(kind, lane, 0, NO_RUN, all.length, all, NO_QUEUE, 0);
    backend.publish();
    port.commanded();
    port.publish();
    return seq;
  }
}
