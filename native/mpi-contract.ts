// The agreement between the engine and the comm thread (native/mpi): commands, events and the words that they share.
// `scripts/generate-contract.mjs` writes native/mpi/contract.h from these tables; a test fails when the two differ.
//
// One ring of 64-byte records goes each way, with one producer and one consumer. Payloads of control messages lie in
// two byte rings beside them (outbox: engine to comm thread, inbox: the other way). Only TypeScript knows the
// meaning of a message: the comm thread carries bytes.
// Invariants: positions count records (or bytes) ever written and wrap as int32; a record is valid from the moment
// `published` passes it until the other side has moved `taken` past it; a message in a byte ring is contiguous and
// starts at a multiple of 8.

/** Commands, engine to comm thread. */
export const NetCommand = {
  /** Send `bytes` of the outbox at `offset` to `rank` as one control message; `position` is freed when it has left. */
  message: 1,
  /** Join all ranks at a barrier; the event `closed` follows when all are there. */
  close: 2,
  /** The era number `tag` begins here: lanes forget versions of earlier eras that no receive took. */
  era: 3,
  /** The ranks are out of step: no version that lanes have announced is given away any more. */
  abandon: 4,
  /** A run has failed here: announcements of eras before number `tag` are declined, unless a receive at its turn takes them. */
  decline: 5,
  /** The receive of lane `request` whose last record has the number `tag` ends as cancelled if its bytes have not come. */
  withdraw: 6,
  /** No receive takes the version of era `tag` with key `offset`: it is dropped now, or when it comes. */
  refuse: 7,
  /** The same for all versions of eras from `tag` to before `size` with keys below 0 and above `offset`. */
  refuseCalls: 8,
  /** Tell with the event `came` and the number `request` when the version of era `tag` with key `offset` has come; keep it. */
  expect: 9,
  /** A receive takes the version of era `tag` with key `offset`, or refuses it: `decline` leaves it. */
  want: 10,
} as const;

/** Events, comm thread to engine. */
export const NetEvent = {
  /** A control message from `rank`: `bytes` of the inbox at `offset`; free up to `position` when read. */
  message: 1,
  /** `rank` is gone: its process ended without announcing it. No event will come from any rank. */
  lost: 2,
  /** All ranks have asked to close. */
  closed: 3,
  /**
   * No rank needs the version any more that a lane has announced with number `request`; `status` is a `NetStatus`, and `tag` the
   * `NetMode` of its last transfer.
   */
  departed: 4,
  /**
   * The version has come, or its announcement, that was expected with number `request`. It is in `space` of `rank`; `tag` is 1 if
   * this rank passes it on.
   */
  came: 5,
} as const;

/** Fields of a record: int32 words, then float64 (index from the record's start). */
export const NetRecord = {
  bytes: 64,
  words: 16,
  doubles: 8,
  kind: 0,
  rank: 1,
  request: 2,
  tag: 3,
  /** Of events: a `NetStatus`. */
  status: 4,
  space: 5,
  /** Byte-ring position behind the message. */
  position: 6,
  /** Float64 from here. */
  offset: 4,
  size: 5,
  /** Of events, in nanoseconds. */
  start: 6,
  end: 7,
} as const;

/** How the bytes of a version that was announced travel. */
export const NetMode = {
  /** One message straight from and into the memory space. */
  direct: 0,
  /** In chunks; a side whose space is a device copies each chunk through host memory. */
  staged: 1,
  /** The receiver reads it from the sender's memory, which it has mapped. */
  mapped: 2,
  /** Of a receive that was commanded before its announcement: as the table says that was given to `open`. */
  open: 3,
} as const;

/** The readers that must see the network's writes to a GPU's memory: that GPU, or all readers there. CUDA's numbers. */
export const NetScope = { none: 0, owner: 100, all: 200 } as const;

/** Outcome of a transfer. */
export const NetStatus = {
  ok: 0,
  cancelled: 1,
  /** The message was not as long as announced. */
  truncated: 2,
  /** The MPI library refused. */
  library: 3,
  /** The peer's memory could not be mapped. */
  mapping: 4,
  /** An offset lies outside of its space. */
  outOfRange: 5,
  /** Writes of the network could not be flushed. */
  flush: 6,
  /** The peer is gone. */
  lost: 7,
  /** A GPU refused a copy. */
  device: 8,
  /** Flushing took too long. */
  flushTimeout: 9,
} as const;

/** Words shared by both sides: int32, one 64-byte line per writer. */
export const NetWord = {
  words: 64,
  /** Engine: commands written. */
  commandsPublished: 0,
  /** Engine: events read. */
  eventsTaken: 1,
  /** Engine: inbox position read. */
  inboxFreed: 2,
  /** Engine: 1 while no task is live, so that the comm thread may sleep longer. */
  quiet: 3,
  /** Engine: changes with every batch of records that lanes have got. */
  lanesPublished: 4,
  /** Comm thread: commands read. */
  commandsTaken: 16,
  /** Comm thread: events written. */
  eventsPublished: 17,
  /** Comm thread: outbox position that has left. */
  outboxFreed: 18,
  /** Comm thread: 1 while it sleeps and wants a wake-up call for a command. */
  sleeping: 32,
  /** Comm thread: control messages sent and received, flushes. For reports. */
  messagesSent: 33,
  messagesReceived: 34,
  flushes: 35,
} as const;

/** Limits. */
export const NetLimit = {
  /** Longest control message. */
  message: 65536,
  /** Bytes of each byte ring; a power of two. */
  ring: 2097152,
  /** Records of each record ring; a power of two. */
  records: 4096,
  /** Longest letter (a version with its header, native/mpi/lane_server.h) that a lane sends. */
  letter: 65536,
  /** Numbers that a rank tells the others when a session opens. */
  told: 4,
  /** Staging buffers for sends, and as many for receives. */
  buffers: 32,
  /** Memory spaces of one rank. */
  spaces: 32,
} as const;

/** The facts about the MPI library and the launch. */
export interface NetFacts {
  readonly rank: number;
  readonly size: number;
  /** 'openmpi' | 'mpich' | 'other'. */
  readonly flavour: string;
  /** The library's own words. */
  readonly library: string;
  /** MPI standard, e.g. '3.1'. */
  readonly standard: string;
  /** 'single' | 'funneled' | 'serialized' | 'multiple'. */
  readonly threadLevel: string;
  /** The library says that it takes device pointers. */
  readonly gpuAware: boolean;
}

/** One memory space for the comm thread. */
export interface NetSpace {
  readonly kind: number;
  readonly base: bigint;
  readonly bytes: number;
  /** File descriptor behind the space that another process of this host can map, or -1. */
  readonly fd: number;
  /** UUID of a real GPU; '' for others. */
  readonly uuid: string;
  /** The handle by which another process of this host opens a real GPU's memory. */
  readonly exported: NetExport | undefined;
  /** The MPI library may get addresses of this space. */
  readonly direct: boolean;
}

/** An allocation that others can open (native/contract.ts, `NativeIpcExport`). */
export interface NetExport {
  readonly handle: Uint8Array;
  readonly base: bigint;
  readonly offset: number;
  readonly generation: bigint;
}

/** A real GPU: its `SpaceKind` and UUID. */
export interface NetGpu {
  readonly kind: number;
  readonly uuid: string;
}

/** Options of `NetModule.open`. */
export interface NetOptions {
  readonly spaces: readonly NetSpace[];
  /** Address of the core's doorbell (native/include/headrace/doorbell.h), or 0n: none is rung. */
  readonly doorbell: bigint;
  /** Address of the core's lanes (native/include/headrace/lanes.h), or 0n: it has none. */
  readonly lanes: bigint;
  /** Destinations from which on a version goes along a tree of ranks. */
  readonly treeFrom: number;
  /** Bytes of the longest staged chunk (native/mpi/chunks.h). All ranks give the same. */
  readonly chunkBytes: number;
  /** Chunks in flight per transfer. */
  readonly chunksInFlight: number;
  /** Nanoseconds of plain spinning before the comm thread yields; larger only if cores are free. */
  readonly spinNanoseconds: number;
  /** Short letters to ranks of this host go through memory that both map (native/mpi/mailbox.h). All ranks give the same. */
  readonly mailboxes: boolean;
  /** Numbers that the other ranks see (`NetPeer.told`), `NetLimit.told` at most. */
  readonly told: readonly number[];
}

/** The facts that each rank told about itself. */
export interface NetPeer {
  /** Same host and process namespace, so that its memory can be mapped. */
  readonly sameHost: boolean;
  readonly pid: number;
  /** Its `NetOptions.told`, and zeros up to `NetLimit.told`. */
  readonly told: readonly number[];
  /** This rank writes its short letters into the other's memory. */
  readonly mailbox: boolean;
  /** Per space: this process can read it without the owner's help. */
  readonly mappable: readonly boolean[];
  /** Per space: the owner's MPI library reads and writes it. */
  readonly reachable: readonly boolean[];
}

/** The findings of `open`. */
export interface NetOpened {
  readonly peers: readonly NetPeer[];
  /** Why MPI gets no memory of real GPUs although that was allowed; '' when it does. */
  readonly directProblem: string;
  /** Why memory of a GPU of this host could not be opened; '' when all could. */
  readonly mappingProblem: string;
}

/** The addon's exports (native/mpi/addon.cpp). */
export interface NetAddon {
  /** Number of the contract from which it was built; addons before the number have none. */
  readonly contract?: number;
  /** Facts that need no initialisation. */
  describe(): {
    readonly flavour: string;
    readonly library: string;
    readonly standard: string;
    readonly gpuAware: boolean;
  };
  misalignment(view: Int32Array): number;
  /**
   * Starts the comm thread and MPI; once per process, later calls give the same answer. `gpu` is made current on the
   * thread first: an MPI library that takes device pointers binds itself to it.
   */
  start(gpu: NetGpu | undefined): Promise<NetFacts>;
  /**
   * Collective over all ranks. One session at a time. `ways`: how bytes travel to receives that leave it open, a `NetMode` per rank, memory space
   * there (of `NetLimit.spaces`), and memory space here. It is complete before such a receive is commanded.
   */
  open(
    options: NetOptions,
    words: Int32Array,
    commands: Int32Array,
    events: Int32Array,
    outbox: Uint8Array,
    inbox: Uint8Array,
    ways: Uint8Array,
  ): Promise<NetOpened>;
  /**
   * Seconds of one transfer by hand between ranks 0 and 1; all ranks call it, before `open`. 'host', 'emulated', 'gpu':
   * one way of a ping-pong by MPI_Send and MPI_Recv in host memory, in memory as emulated GPUs have it (shared between
   * processes), or in memory of the GPU given to `start`; 'ipc': a read of the other
   * rank's GPU memory.
   */
  measure(bytes: number, rounds: number, how: 'host' | 'emulated' | 'gpu' | 'ipc'): Promise<number>;
  /** Wakes the comm thread, if `NetWord.sleeping` was seen set. */
  wake(): void;
  /** Ends the session after `closed` or `lost`. */
  end(): void;
  /**
   * Finalizes MPI and joins the thread; blocks at most that long. False: a peer was lost or did not come. With
   * `abandon`, the thread ends without MPI: this process dies and the others learn it.
   */
  finish(milliseconds: number, abandon: boolean): boolean;
  /**
   * From now on signal number `signal` ends this process after that time (exit code 128 + `signal`), whatever JavaScript
   * does. Node's own handler must be in place; it is called as before.
   */
  watchSignal(signal: number, milliseconds: number): void;
  /** JavaScript has seen the signal and ends the process itself. */
  heardSignal(signal: number): void;
  /** Undoes `watchSignal`. */
  leaveSignal(signal: number): void;
}
