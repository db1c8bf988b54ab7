// The port between the network device and the carrier of bytes between ranks. Two implementations: MPI
// (native/network.ts) and a memory network inside one process, for tests and simulation. The kinds of messages and their
// meaning are above this port (device.ts); the port knows bytes and ranks. Versions of data travel on lanes of the backend.
//
// Contract of every implementation:
// - control messages from one rank to another arrive in the order posted;
// - every offer of a lane ends in exactly one `departed`;
// - once `lost` was delivered, every offer under way departs with `NetOutcome.lost` and nothing more arrives.

/** Outcome of a transfer. The values are those of native code. */
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

/**
 * How bytes travel; both ends use the same. `mapped`: the receiver reads memory of the sender. `open`: a receive that is commanded
 * before its version is announced leaves that to the message layer (`NetworkPort.setWays`).
 */
export const WireMode = { direct: 0, staged: 1, mapped: 2, open: 3 } as const;

/**
 * The readers that see the network's writes to a GPU's memory: none for sure, that GPU, or all readers of that memory. A
 * memory space has such an order by itself; a flush extends it. The values are CUDA's.
 */
export const VisibleTo = { none: 0, owner: 100, all: 200 } as const;

/** Where the bytes of an announced version are; those of a short one are here. */
export interface AnnouncedPlace {
  readonly rank: number;
  /** Memory space of that rank. */
  readonly space: number;
  /** This rank passes the version on. */
  readonly forwards: boolean;
}

/** Takes the news from `poll`. The view of a message is valid during the call only. */
export interface NetworkSink {
  message(rank: number, bytes: Uint8Array): void;
  /**
   * The offer of a lane with that number is over: no rank needs its bytes any more. `start` is 0 if none moved. `mode`: how
   * the last rank got them, a `WireMode`.
   */
  departed(number: number, outcome: number, start: number, end: number, mode: number): void;
  /** The version that was expected with that number has come, or its announcement. */
  came(number: number, from: AnnouncedPlace): void;
  lost(rank: number): void;
}

export interface NetworkPort {
  readonly rank: number;
  readonly size: number;
  /** Longest control message in bytes. */
  readonly longestMessage: number;
  /** Name and version of the library in its own words, for reports. */
  readonly library: string;
  /** The library says that it takes pointers to real device memory. */
  readonly gpuAware: boolean;
  /** Threads of the ranks of this host outnumber its cores: none should spin. */
  readonly crowded: boolean;
  /** No rank has memory besides its host's. All ranks find the same. */
  readonly hostOnly: boolean;
  /** Whether `space` of `rank` can be read by mapping it here. */
  mappable(rank: number, space: number): boolean;
  /** Whether the message layer of `rank` reads and writes its `space` itself; else transfers there are staged. */
  reachable(rank: number, space: number): boolean;
  /** A `VisibleTo`: the readers that see writes of the network to `space` of this rank once these are reported complete. */
  ordering(space: number): number;

  /** The `WireMode` of bytes from `fromSpace` of `rank` into `space` of this rank, for receives that leave it open. */
  setWays(way: (rank: number, fromSpace: number, space: number) => number): void;

  /** Sends a control message; false when there is no room now: try again after the next poll. */
  post(rank: number, bytes: Uint8Array): boolean;
  /** Lanes of the backend have new records; the next `publish` tells. */
  commanded(): void;
  /** Versions of earlier eras that no receive has taken are forgotten. */
  beginEra(era: number): void;
  /** A receive takes the version with that era and key, or refuses it: `declineBefore` leaves it. It may be commanded later. */
  want(era: number, key: number): void;
  /** A run has failed here: long versions of eras before that one are declined, unless a receive waits for them or wants them. */
  declineBefore(era: number): void;
  /**
   * The receive that is the command `sequence` of lane number `lane` (from 0) ends as cancelled, unless its bytes have come. Its
   * version is dropped when it comes.
   */
  withdraw(lane: number, sequence: number): void;
  /** No receive takes the version with that era and key: it is dropped now, or when it comes. */
  refuse(era: number, key: number): void;
  /** The same for all versions of eras from `from` to before `until` with a key below 0 and above `above`. */
  refuseCalls(from: number, until: number, above: number): void;
  /**
   * The news `came` with `number` follow when the version with that era and key is here or announced, unless it is dropped. It is kept
   * for its receive, which is commanded later.
   */
  expect(era: number, key: number, number: number): void;
  /** The ranks are out of step: offers of lanes end, whoever has not answered; requests for their bytes are refused. */
  abandon(): void;
  /** Makes all commands visible. */
  publish(): void;
  /** Delivers the news; true when there was any. */
  poll(sink: NetworkSink): boolean;
  /** Whether `poll` has news. */
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
