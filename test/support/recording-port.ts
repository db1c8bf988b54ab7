// A network port that carries nothing: it keeps its messages and requests, and tests set whether it has room.
import type { NetworkPort } from '../../devices/network/port.js';
import { VisibleTo } from '../../devices/network/port.js';

/** A request as it was made. */
export interface PortRequest {
  readonly kind: 'send' | 'receive' | 'ipc' | 'flush' | 'cancel';
  readonly request: number;
  readonly rank: number;
  readonly tag: number;
  readonly space: number;
  readonly mode: number;
  /** Of a flush: who is to see the bytes. */
  readonly scope: number;
}

export interface PortOptions {
  readonly size?: number;
  readonly longestMessage?: number;
  readonly stagedReceives?: number;
  readonly isMappable?: boolean;
  readonly isReachable?: boolean;
  /** A VisibleTo: who sees what the network wrote, without a flush. */
  readonly ordering?: number;
}

export class RecordingPort implements NetworkPort {
  readonly rank = 0;
  readonly size: number;
  readonly longestMessage: number;
  readonly stagedReceives: number;
  readonly library = '';
  readonly gpuAware = true;
  readonly crowded = false;
  readonly hostOnly = false;
  readonly anySpace = false;
  /** Messages in the order they were taken. */
  readonly posted: { readonly rank: number; readonly bytes: Uint8Array }[] = [];
  readonly requests: PortRequest[] = [];
  /** Messages that still find room. */
  room: number = Number.POSITIVE_INFINITY;
  private readonly options: PortOptions;

  constructor(options: PortOptions = {}) {
    this.options = options;
    this.size = options.size ?? 4;
    this.longestMessage = options.longestMessage ?? 65_536;
    this.stagedReceives = options.stagedReceives ?? 4;
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

  // biome-ignore lint/complexity/useMaxParams: stands for the methods of NetworkPort.
  send(
    rank: number,
    tag: number,
    space: number,
    _offset: number,
    _bytes: number,
    mode: number,
    request: number,
  ): void {
    this.add({ kind: 'send', rank, tag, space, mode, request });
  }

  // biome-ignore lint/complexity/useMaxParams: stands for the methods of NetworkPort.
  receive(
    rank: number,
    tag: number,
    space: number,
    _offset: number,
    _bytes: number,
    mode: number,
    request: number,
  ): void {
    this.add({ kind: 'receive', rank, tag, space, mode, request });
  }

  // biome-ignore lint/complexity/useMaxParams: stands for the methods of NetworkPort.
  ipcRead(
    rank: number,
    _remoteSpace: number,
    _remoteOffset: number,
    space: number,
    _offset: number,
    _bytes: number,
    request: number,
  ): void {
    this.add({ kind: 'ipc', rank, space, request });
  }

  cancel(request: number): void {
    this.add({ kind: 'cancel', request });
  }

  flush(space: number, scope: number, request: number): void {
    this.add({ kind: 'flush', space, scope, request });
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

  private add(request: Partial<PortRequest> & Pick<PortRequest, 'kind' | 'request'>): void {
    this.requests.push({ rank: -1, tag: 0, space: -1, mode: -1, scope: -1, ...request });
  }
}
