// The port between the network device and what carries bytes between ranks. Two implementations: MPI
// (native-network.ts) and a memory network inside one process, for tests and simulation. Which messages exist and what
// they mean is above this port (network.ts); the port knows bytes, ranks, spaces and requests.
//
// Contract of every implementation:
// - control messages from one rank to another arrive in the order posted;
// - every send, receive, ipc read and flush ends in exactly one `done`;
// - transfers with the same pair of ranks and tag match in order;
// - once `lost` was delivered, everything under way ends with `Outcome.lost` and nothing more arrives.

/** Outcome of a request. The values are those of native code. */
export const NetOutcome = {
  ok: 0,
  cancelled: 1,
  truncated: 2,
  library: 3,
  mapping: 4,
  outOfRange: 5,
  flush: 6,
  lost: 7,
  device: 8,
  flushTimeout: 9,
} as const;

/** Words for an outcome. */
export const OUTCOME_NAMES: readonly string[] = [
  'ok',
  'cancelled',
  'the message was not as long as announced',
  'the MPI library refused',
  "the peer's memory could not be mapped",
  'an offset lies outside of its space',
  'writes of the network to device memory could not be flushed',
  'the peer is gone',
  'a GPU refused a copy',
  'flushing writes of the network to device memory took too long',
];

/** How a send and its receive travel; both ends use the same. */
export const WireMode = { direct: 0, staged: 1 } as const;

/**
 * Who sees what the network wrote to a GPU's memory: nobody for sure, that GPU, or others that read there as well. A
 * memory space has such an order by itself; a flush brings about more. The values are CUDA's.
 */
export const VisibleTo = { none: 0, owner: 100, all: 200 } as const;

/** Takes what `poll` delivers. The view of a message is valid during the call only. */
export interface NetworkSink {
  message(rank: number, bytes: Uint8Array): void;
  done(request: number, outcome: number, start: number, end: number): void;
  lost(rank: number): void;
}

export interface NetworkPort {
  readonly rank: number;
  readonly size: number;
  /** Longest control message in bytes. */
  readonly longestMessage: number;
  /** Staged receives that may be under way at once: more could leave no buffers for those they wait for. */
  readonly stagedReceives: number;
  /** The library's own words, for reports. */
  readonly library: string;
  /** The library says that it takes pointers to real device memory. */
  readonly gpuAware: boolean;
  /** Threads of the ranks of this host outnumber its cores: nobody should spin. */
  readonly crowded: boolean;
  /** Whether `space` of `rank` can be read by mapping it here. */
  mappable(rank: number, space: number): boolean;
  /** Whether the message layer of `rank` reads and writes its `space` itself; else transfers there are staged. */
  reachable(rank: number, space: number): boolean;
  /** A `VisibleTo`: who sees writes of the network to `space` of this rank once they are reported complete. */
  ordering(space: number): number;

  /** Sends a control message; false when there is no room now: try again after the next poll. */
  post(rank: number, bytes: Uint8Array): boolean;
  send(
    rank: number,
    tag: number,
    space: number,
    offset: number,
    bytes: number,
    mode: number,
    request: number,
  ): void;
  receive(
    rank: number,
    tag: number,
    space: number,
    offset: number,
    bytes: number,
    mode: number,
    request: number,
  ): void;
  ipcRead(
    rank: number,
    remoteSpace: number,
    remoteOffset: number,
    space: number,
    offset: number,
    bytes: number,
    request: number,
  ): void;
  /** Withdraws a receive that will not be matched. */
  cancel(request: number): void;
  /** Makes what the network wrote to `space` visible to `scope`, a `VisibleTo`. */
  flush(space: number, scope: number, request: number): void;
  /** Makes all commands visible. */
  publish(): void;
  /** Delivers what has happened; true when there was anything. */
  poll(sink: NetworkSink): boolean;
  /** Something is to be polled. */
  due(): boolean;
  /** Whether any task is live: while none is, the comm thread may sleep longer. */
  setQuiet(quiet: boolean): void;
  /** Counters for reports. */
  counters(): {
    readonly messagesSent: number;
    readonly messagesReceived: number;
    readonly flushes: number;
  };
  /** Joins all ranks, then ends. Resolves at once when a rank was lost. */
  close(): Promise<void>;
}
