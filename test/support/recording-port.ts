// A network port that carries nothing: it keeps its messages, and tests set whether it has room.
import type { NetworkPort } from '../../devices/network/port.js';
import { VisibleTo } from '../../devices/network/port.js';

export interface PortOptions {
  readonly size?: number;
  readonly longestMessage?: number;
  readonly isMappable?: boolean;
  readonly isReachable?: boolean;
  /** A VisibleTo: who sees what the network wrote, without a flush. */
  readonly ordering?: number;
}

export class RecordingPort implements NetworkPort {
  readonly rank = 0;
  readonly size: number;
  readonly longestMessage: number;
  readonly library = '';
  readonly gpuAware = true;
  readonly crowded = false;
  readonly hostOnly = false;
  /** Messages in the order they were taken. */
  readonly posted: { readonly rank: number; readonly bytes: Uint8Array }[] = [];
  /** Messages that still find room. */
  room: number = Number.POSITIVE_INFINITY;
  /** How bytes come to receives that leave it open. */
  wayOf: (rank: number, fromSpace: number, space: number) => number = () => -1;
  private readonly options: PortOptions;

  constructor(options: PortOptions = {}) {
    this.options = options;
    this.size = options.size ?? 4;
    this.longestMessage = options.longestMessage ?? 65_536;
  }

  setWays(way: (rank: number, fromSpace: number, space: number) => number): void {
    this.wayOf = way;
  }

  post(rank: number, bytes: Uint8Array): boolean {
    if (this.room <= 0) return false;
    this.room--;
    this.posted.push({ rank, bytes: bytes.slice() });
    return true;
  }

  commanded(): void {
    // No lanes.
  }

  beginEra(): void {
    // Nothing is kept.
  }

  want(): void {
    // No lanes.
  }

  declineBefore(): void {
    // No lanes.
  }

  withdraw(): void {
    // No lanes.
  }

  refuse(): void {
    // No lanes.
  }

  refuseCalls(): void {
    // No lanes.
  }

  expect(): void {
    // No lanes.
  }

  abandon(): void {
    // No lanes.
  }

  mappable(): boolean {
    return this.options.isMappable ?? false;
  }

  reachable(): boolean {
    return this.options.isReachable ?? true;
  }

  ordering(): number {
    return this.options.ordering ?? VisibleTo.all;
  }

  publish(): void {}

  poll(): boolean {
    return false;
  }

  due(): boolean {
    return false;
  }

  setQuiet(): void {}

  counters(): { messagesSent: number; messagesReceived: number; flushes: number } {
    return { messagesSent: this.posted.length, messagesReceived: 0, flushes: 0 };
  }

  async close(): Promise<void> {}
}
