// The one agreement between TypeScript and C++: opcodes, record layout, control words, status codes.
// `scripts/generate-contract.mjs` writes native/include/headrace/contract.h from the tables below, and a
// test fails when the two differ. This file depends on no other file of the project.
//
// A *queue* is an in-order executor: a host worker, a script worker or one stream of a GPU. Each queue has one command ring
// (single producer: the engine; single consumer: the queue's native thread). A command's *sequence number* is
// the count of records written to that ring up to and including it, as a wrapping int32; the queue's
// `completed` word is the sequence number of the last record that has finished, and it only moves forward in
// order. The record with sequence number s lies in slot (s - 1) & (ringRecords - 1). The number of its first record names
// an exec with continuations (status and times are there), and it completes as a whole. So an event is just
// (queue, sequence number), and a wait for one is `completed - seq >= 0`.

/** The operation of a command record. */
export const Opcode = {
  /** Does nothing; completes in order. Used to pad the ring and as a fence. */
  nop: 0,
  /** Holds the queue until the event of its record (word `kernel`, `waitSeq`) has happened. */
  wait: 1,
  /**
   * Runs a kernel: `nFlows` space-relative byte offsets, then the parameters, then the element counts of the flows if the
   * kernel takes them (`NativeCore.takesLengths`) and the record does not name a list of them, all as float64.
   */
  exec: 2,
  /**
   * Copies bytes between two memory spaces: arguments are dstOffset, srcOffset, bytes. In a plan also the datum, carried
   * for traces only.
   */
  copy: 3,
  /** Fills bytes of the queue's own space with one byte value: arguments are offset, bytes, value. */
  fill: 4,
  /** Continuation of the exec record before it: eight more float64 arguments. */
  args: 5,
  /** Ends the queue's thread after everything before it. */
  stop: 6,
  /**
   * On a lane: sends bytes of host space to other ranks. Arguments: offset, bytes, era, then per destination its rank and
   * the key of its receive.
   */
  send: 7,
  /**
   * On a lane: takes a version that another rank sends into host space. Arguments: offset, bytes, era, key. Of a long version
   * that is announced also space + 32 * (way + 4 * scope): its memory space, a `NetMode`, and a `NetScope`, who sees the bytes when
   * the command is over.
   */
  receive: 8,
  /**
   * On a lane: announces a version that is too long for a letter to other ranks, which fetch it. The command
   * is over when the announcements have left. The event `NetEvent.departed` follows when no rank needs the bytes any more.
   * Arguments: offset, bytes, era, the number for that event, a key, the memory space of the bytes, the priority of their
   * transfers, then destinations as in `send`. Without any,
   * the version goes to the ranks to which the announcement of that key has asked this rank to pass it on.
   */
  offer: 9,
  /** On a GPU's queue: launches a graph. Argument: its number (`NativeCore.capture`). */
  graph: 10,
  /**
   * On a lane: announces a version as `offer` does, and is over when no rank needs the bytes any more. For plans, in which every
   * receive has the place of its send. Arguments: those of `send`, with one destination.
   */
  deliver: 11,
} as const;

/** Layout of a 64-byte command record, in int32 words (arguments: float64 index from the record's start). */
export const Record = {
  bytes: 64,
  words: 16,
  doubles: 8,
  /** opcode in bits 0-6, `timed` in bit 7, number of flow arguments in bits 8-19, total arguments in bits 20-31. */
  head: 0,
  /** Of an exec: its times are kept, also with timing off. */
  timed: 0x80,
  /**
   * Bits 0-15: the kernel's id (exec), or destination space in bits 0-7 and source space in bits 8-15 (copy).
   * Bits 16-31: one more than the queue to wait for before this record starts; 0 for none.
   */
  kernel: 1,
  /** Task id (exec) or transfer id (copy); carried for traces and error reports only. */
  task: 2,
  /**
   * Index of the run's word in the cancel table, or -1. Above 8 bits (exec) the number of the list of lengths that the kernel
   * gets (`NativeCore.numberLengths`); 0: they follow the parameters. A cancelled run's exec commands complete without running; a
   * command of any kind that fails sets its run's word before it completes.
   */
  run: 3,
  /** The sequence number that the awaited queue must have completed. */
  waitSeq: 4,
  /** Written by the queue's thread before it publishes completion: a `Status` value. */
  status: 5,
  /** First float64 argument; five fit, the rest continue in `args` records. */
  argument: 3,
  inlineArguments: 5,
} as const;

/**
 * Times of records: a pair of float64 per slot of a ring, in memory of their own, so that reading them does not fetch
 * the records back from the core that executed them.
 */
export const Times = {
  doubles: 2,
  /** After completion with timing on, or if the record asks for it: nanoseconds on the runtime clock. */
  start: 0,
  end: 1,
} as const;

/** Words of a queue's control block: int32, one 64-byte line per writer so that no two writers share a line. */
export const Control = {
  words: 64,
  /** Written by the engine: sequence number of the last visible record. */
  published: 0,
  /** Written by the engine: the queue rings the doorbell when `completed` reaches this, if armed. */
  doorbellAt: 1,
  /** Written by the engine (1), and cleared by the thread that rings (0); unchanged while the engine is awake. */
  doorbellArmed: 2,
  /** Written by the queue's thread. */
  completed: 16,
  /** Written by the queue's thread: number of records finished with a status other than ok. */
  failures: 17,
  /** Written by the queue's thread: 1 while it sleeps and needs a wake-up call. */
  sleeping: 32,
  /** On the queue of a script worker, a value of `Serving`. */
  serving: 40,
  /**
   * Written by the queue's thread: sequence number of the last record it has started or submitted. It has a cache line apart
   * from `completed`, which other threads poll: the start of a record does not take that line from them.
   */
  submitted: 48,
  /**
   * Written by the queue's thread, one int64 in two words: the nanoseconds during which it had work, from before the last
   * published record completes. While it has work, that number minus the time at which the work began (negative).
   */
  busy: 50,
} as const;

/** Who serves the queue of a script worker. */
export const Serving = {
  /** Nobody yet. */
  none: 0,
  /** A thread that runs JavaScript. */
  script: 1,
  /** Nobody any more: its thread has ended. */
  ended: 2,
  /** A thread of the core, which fails every body: no script worker can start. */
  refused: 3,
} as const;

/** Words shared by all queues: int32. */
export const Shared = {
  words: 128,
  /** 1: queues write start and end times into finished records. */
  timing: 0,
  /** 1: the engine sleeps in `waitForDoorbell`; 2: it sleeps in the event loop; 0: awake. */
  engineAsleep: 16,
  /** Written by the engine: changes with every pass, so that workers see that it is at work. */
  beat: 17,
  /** Written by native code when the engine wakes: the core that it runs on. */
  engineCore: 18,
  /** Written by native code: workers that have stepped aside for the engine (native/queues/queue_ownership.h). */
  aside: 32,
  /** Written by native threads: records of all queues that have finished with a status other than ok. */
  failed: 48,
  /**
   * Written by the engine: failed records of all queues that it has handled. A lane sends nothing while more have failed
   * (`failed`): the bytes may have been computed from a failure that the engine does not know yet. The engine writes it
   * seldom, so it is not in the line of `beat`: each send looks at it.
   */
  failuresHandled: 49,
  /** Written by the message layer: records that lanes have completed. The engine looks at its lanes when it has moved. */
  arrivals: 56,
  /** First of `runs` words, one per concurrently open run: non-zero cancels its exec commands. */
  cancel: 64,
  runs: 64,
} as const;

/** Outcome of a command. Positive values are a kernel's own code (for potrf: the pivot, counted from 1). */
export const Status = {
  ok: 0,
  /** The run was cancelled before the command started; it ran no kernel. */
  cancelled: -1,
  /** No kernel of that id exists on this queue's device. */
  unknownKernel: -2,
  /** A copy or fill left its memory space. */
  outOfRange: -3,
  /** The device no longer works; everything on it fails from here on. */
  deviceLost: -4,
  /** The driver refused the command; `lastError(queue)` has its text. */
  driver: -5,
  /** The kernel refused its arguments (wrong number of flows or parameters). */
  badArguments: -6,
  /** A version of another length came than the receive expects: the ranks run different programs. */
  truncated: -7,
  /** A body on a script worker threw, or could not be loaded; `thrown(queue, seq)` says what. */
  threw: -8,
  /** The script worker ended while it ran the body; `thrown(queue, seq)` says why, if that is known. */
  workerEnded: -9,
  /** The bytes of a version between ranks have not come: this less the outcome of their transfer, a `NetStatus`. */
  transfer: -32,
} as const;

/** An open parameter of a plan, int32: which float64 of which record of a queue's list takes which slot. */
export const PlanOpen = { words: 3, record: 0, argument: 1, slot: 2 } as const;

/** Element types of the number that the condition of a play looks at. */
export const PlanElement = { f64: 0, f32: 1, i32: 2, u32: 3, u8: 4 } as const;

/** Kinds of memory spaces. */
export const SpaceKind = { host: 0, emulated: 1, cuda: 2, hip: 3 } as const;

/**
 * Purposes of queues. A GPU has `compute` streams, one `h2d`, one `d2h`, and one `peer` stream per peer. A `lane` is a
 * queue without a thread of the core: the message layer takes its sends and receives, and completes them. The queue of a
 * `script` worker is served by JavaScript on a worker thread (`NativeModule.serveScripts`).
 */
export const QueueKind = {
  worker: 0,
  compute: 1,
  h2d: 2,
  d2h: 3,
  peer: 4,
  lane: 5,
  script: 6,
} as const;

/** Facts about one memory space. Space 0 is the host; space g is GPU g-1. */
export interface NativeSpace {
  readonly kind: number;
  readonly name: string;
  /** Usable bytes; offsets run from 0 to this. */
  readonly bytes: number;
  /** The device's unique id, or '' if it has none. */
  readonly uuid: string;
  /**
   * How a network card's writes to it can be flushed (bit 0: from the host), and the readers that see them without a flush:
   * 0 none for sure, 100 the GPU itself, 200 all.
   */
  readonly flushOptions: number;
  readonly writeOrdering: number;
}

/** Facts about one queue. */
export interface NativeQueue {
  readonly kind: number;
  /** Space the queue belongs to (its kernels' arguments are offsets into it). */
  readonly space: number;
  /** For `peer` queues the source space, else -1. */
  readonly peer: number;
}

/** Options of `NativeCore.open`. Sizes in bytes. */
export interface NativeOptions {
  /** 'emulated' | 'cuda' | 'hip'. */
  readonly driver: string;
  /** GPUs to open. */
  readonly gpus: number;
  /** The driver's number of the first one, modulo the number of GPUs; the others follow it (default 0). */
  readonly firstGpu?: number;
  /** Device memory per GPU; default: nine tenths of what is free on a real GPU, or of this process's share. */
  readonly gpuBytes?: number;
  /** Processes of this host that take `gpus` each, one after the other, until they begin with the first again (default 1). */
  readonly gpuRanks?: number;
  /** Address space reserved for host data; pages are touched only when used. */
  readonly hostBytes: number;
  /** Host worker threads. */
  readonly workers: number;
  /** Script workers (default 0); their queues come before the lanes. */
  readonly scriptWorkers?: number;
  /** Lanes to other ranks (default 0); the last queues. */
  readonly lanes?: number;
  /** Threads that run at once; default: the cores this process may use. */
  readonly cores?: number;
  /**
   * Nanoseconds of plain spinning before an idle thread yields (default: a few). Longer only if every
   * thread has a core and the awaited event is sure to happen soon.
   */
  readonly spinNanoseconds?: number;
  /** Compute streams per GPU. */
  readonly computeStreams: number;
  /** Records per command ring; a power of two. */
  readonly ringRecords: number;
  /** Test mode: freed blocks are filled with 0xA5 by the engine's `fill` commands and checks are on. */
  readonly checked: boolean;
  /** First bytes of host space that are page-locked for a real GPU driver (default 0). */
  readonly pinnedBytes?: number;
  /** Sequence number that all queues start from, for tests of its wrapping (default 0). */
  readonly firstSequence?: number;
}

/** GPU memory as another process of this host can open it. */
export interface NativeIpcExport {
  /** 64 bytes that name the whole allocation. */
  readonly handle: Uint8Array;
  /** First address of the allocation in this process, and the space's first byte in it. */
  readonly base: bigint;
  readonly offset: number;
  /** Differs for every allocation of this process, also at the same address. */
  readonly generation: bigint;
}

/** Type of one argument of a kernel. */
export type NativeArgumentType = 'pointer' | 'f64' | 'f32' | 'i32' | 'i64';

/**
 * One argument of a kernel: the flow (pointer) or parameter at `index`; a type alone takes the next one in order.
 */
export type NativeArgument =
  | NativeArgumentType
  | { readonly type: NativeArgumentType; readonly index: number };

/** A launch extent: a constant, or the task's parameter `param` divided by `divisor` (default 1), rounded up. */
export type NativeExtent = number | { readonly param: number; readonly divisor?: number };

/** Kernels as CUDA C source (`source`), or as PTX or a cubin (`image`). */
export interface NativeKernelSource {
  /** Name of the file in the compiler's messages. */
  readonly name: string;
  readonly source?: string;
  readonly image?: Uint8Array;
  /** Options of NVRTC, such as `--use_fast_math` or `-I<folder>`. */
  readonly options?: readonly string[];
  readonly kernels: readonly {
    readonly name: string;
    /** Name in the source, or an expression such as `scale<double>`; default: `name`. */
    readonly symbol?: string;
    readonly signature: readonly NativeArgument[];
    /** Up to three extents; missing ones are 1. */
    readonly grid: readonly NativeExtent[];
    readonly block: readonly NativeExtent[];
    readonly sharedBytes?: NativeExtent;
  }[];
}

/** The commands of one queue in a plan. The arrays stay as they are while a play uses them. */
export interface NativePlanQueue {
  readonly queue: number;
  /**
   * Records as in the ring. `waitSeq` counts from the beginning of an iteration: i + 1 names record i of the awaited queue in
   * the same iteration; that number less the length of the awaited list, in the iteration before.
   */
  readonly records: Int32Array;
  /** Entries of `PlanOpen`, in the order of the records. */
  readonly open: Int32Array;
}

/** A play of a plan. At most one at a time; the engine writes nothing to its queues until all of it has completed. */
export interface NativePlay {
  readonly queues: readonly NativePlanQueue[];
  /** Iterations. Times the records of the longest list, it must stay below 2^30. */
  readonly times: number;
  /**
   * Iterations for whose parameters there is room; then `extendPlay` may give the play more. 0: it has all iterations, and there is
   * room for them.
   */
  readonly room: number;
  /** Slot of the run whose word cancels the play. */
  readonly run: number;
  /** `slots` values per iteration. Iteration `room` has the place of the first one again. */
  readonly parameters: Float64Array;
  readonly slots: number;
  /**
   * Takes the times of all records, `Times.doubles` for each: a list per queue, iteration after iteration, filled with NaN
   * by the caller. It stays NaN for a record that has not run or has no times. Empty: nobody wants them. Complete once
   * `playOutcome` has returned.
   */
  readonly recordTimes: readonly Float64Array[];
  /** The play ends after a multiple of `every` iterations when the number does not satisfy the condition any more. */
  readonly condition:
    | {
        readonly space: number;
        readonly offset: number;
        /** A value of `PlanElement`. */
        readonly element: number;
        readonly limit: number;
        /** The number must be smaller than the limit, not greater. */
        readonly below: boolean;
        readonly every: number;
        /** The number is looked at before the first iteration, too. */
        readonly first: boolean;
      }
    | undefined;
}

/** One opened core: its memory spaces, its queues, and the shared words. All methods are cheap and synchronous. */
export interface NativeCore {
  readonly spaces: readonly NativeSpace[];
  readonly queues: readonly NativeQueue[];
  /** One ring per queue: `ringRecords * Record.words` int32 over shared memory, at `ring.byteOffset` of its buffer. */
  readonly rings: readonly Int32Array[];
  /** One per queue: `ringRecords * Times.doubles` float64 over shared memory; the slot of a record is that of its ring. */
  readonly times: readonly Float64Array[];
  /** `queues.length * Control.words` int32. */
  readonly control: Int32Array;
  /** `Shared.words` int32. */
  readonly shared: Int32Array;
  /**
   * Id of a kernel usable on the given space (on any, if none is given), or -1. Looks in the built-in kernels and
   * loaded libraries, newest first. One id serves host workers and GPUs.
   */
  kernel(name: string, space?: number): number;
  /** Whether a kernel gets the element counts of the flows. */
  takesLengths(kernel: number): boolean;
  /**
   * A kernel that gets the first elements of its last flows as parameters in place of these flows: the parameter at `positions[i]`
   * (ascending) from an i32 if `isInteger[i]` is 1, else from an f64. For host workers and emulated GPUs.
   */
  steered(kernel: number, positions: Int32Array, isInteger: Uint8Array): number;
  /** Keeps a list of element counts as long as the core. Its number for records, or 0 when there is no room. */
  numberLengths(lengths: Float64Array): number;
  /** Loads a shared object with kernels (docs/kernels.md); returns the names it registered. */
  loadKernels(path: string): string[];
  /**
   * Compiles CUDA C (or takes PTX or a cubin) and registers its kernels for the CUDA GPUs of this core; returns their
   * names. Blocks while it compiles; results are kept on disk. Fails with KERNEL_SOURCE and the compiler's log.
   */
  compileKernels(source: NativeKernelSource): string[];
  /** Wakes the thread of a queue whose `sleeping` word was seen set. */
  wake(queue: number): void;
  /**
   * Blocks the calling thread until the doorbell rings or the time is over; true when it rang. Sets `engineAsleep`
   * to 1 meanwhile. Returns at once if a ring is due already, and now and then without reason.
   */
  waitForDoorbell(microseconds: number): boolean;
  /**
   * As `waitForDoorbell`, but keeps the core. It looks at nothing but the doorbell: threads that complete records keep the words
   * that they write.
   */
  spinForDoorbell(microseconds: number): boolean;
  /** True when workers take all cores, so that the engine's thread has none of its own. */
  readonly full: boolean;
  /**
   * As `waitForDoorbell`, but if `full` the calling thread executes commands of worker queues meanwhile. False when
   * there were none to execute and no doorbell rang.
   */
  serveUntilDoorbell(microseconds: number): boolean;
  /** Calls back workers that have stepped aside; the engine calls it before it sleeps on the event loop. */
  recall(): void;
  /**
   * Moves out spans of stolen time (a thread wanted to run and had no core) as triples queue, from and to: nanoseconds on
   * the runtime clock, queue -1 for the calling thread, the first queue of a GPU for its thread. At most
   * `into.length / 3`, oldest first; returns their number. There are none without timing, or if the kernel counts none.
   */
  takeStolen(into: Float64Array): number;
  /**
   * Called on the JavaScript thread when the doorbell rings while `engineAsleep` is 2. To go to sleep, store 2 and
   * then check whether an armed number is reached already: no doorbell rings for events while the engine was awake.
   */
  onDoorbell(callback: () => void): void;
  /** Keeps (true) or does not keep (false) the process alive for the doorbell. */
  hold(on: boolean): void;
  /** Nanoseconds on the runtime clock (CLOCK_MONOTONIC), as used in records. */
  now(): number;
  /** Nanoseconds of processor time that the calling thread has used. */
  workTime(): number;
  /** A view of host space bytes [offset, offset + bytes); shows zeros after `close`. */
  hostView(offset: number, bytes: number): ArrayBuffer;
  /** Bytes of host space. */
  readonly hostBytes: number;
  /** Text of the last driver error on a queue, or ''. */
  lastError(queue: number): string;
  /** Address of this core for `NativeModule.serveScripts`; valid until `close`. */
  scripts(): bigint;
  /** What the body of a failed record of a script worker threw, as the worker has written it; null: nothing. Once. */
  thrown(queue: number, sequence: number): Uint8Array | null;
  /** From now on a thread of the core serves the queue of a script worker that cannot start: every body fails with `thrown`. */
  refuse(queue: number, thrown: Uint8Array): void;
  /** The file by which another process can map a space's memory (/proc/<pid>/fd/<fd>), or null if it cannot. */
  shareable(
    space: number,
  ): { readonly pid: number; readonly fd: number; readonly bytes: number } | null;
  /** The handle by which another process opens a CUDA or HIP GPU's slab (cuIpcOpenMemHandle), or null if it cannot. */
  ipcExport(space: number): NativeIpcExport | null;
  /** Address of a space's first byte in this process (or on its device). */
  address(space: number): bigint;
  /** True when GPU space `to` can copy from GPU space `from` directly. */
  peerAccess(to: number, from: number): boolean;
  /** Address of the doorbell for other addons (native/include/headrace/doorbell.h); valid until `close`. */
  doorbell(): bigint;
  /** Address of the lanes for the message layer (native/include/headrace/lanes.h); valid until `close`. */
  lanes(): bigint;
  /**
   * From now on `close` does not free device memory that other processes may have opened by its IPC handle: it stays until
   * this process ends.
   */
  keepShared(): void;
  /**
   * Makes one graph of the commands of a plan whose queues are all of one GPU, and returns its number. A `graph` record in the
   * first queue launches it. Nothing may be under way. Throws DRIVER with the reason when it cannot be captured.
   */
  capture(queues: readonly NativePlanQueue[]): number;
  /** Index of the queue in `queues`, and of the record, of the task that a launch of the graph has failed with; undefined: none. */
  graphFailure(queue: number, graph: number): readonly [list: number, record: number] | undefined;
  releaseGraph(queue: number, graph: number): void;
  /** Begins a play. Afterwards the last record of each queue has the number: begin + times * records, as int32. */
  play(play: NativePlay): void;
  /**
   * Gives the play more iterations: `times` in all. The values of their parameters have been written, in the place of iterations that
   * are over. False if a queue has no records left to begin: the play ends with the iterations that it has.
   */
  extendPlay(times: number): boolean;
  /**
   * Ends a play whose last records have all completed. The iterations that were allowed, then per queue of the play the
   * number of records that succeeded (counted over all iterations) and the status of the next one; `Status.ok`: there was
   * none.
   */
  playOutcome(): Float64Array;
  /** Stops all threads after the commands so far and frees everything. Idempotent. */
  close(): void;
}

/** The findings of the addon on this machine. */
export interface NativeProbe {
  readonly blas: { readonly found: boolean; readonly library: string; readonly reason: string };
  readonly drivers: readonly {
    readonly name: string;
    readonly found: boolean;
    readonly devices: number;
    readonly reason: string;
  }[];
  /** The CUDA GPUs and the libraries for their kernels. */
  readonly cuda: {
    readonly devices: readonly {
      readonly name: string;
      readonly uuid: string;
      readonly bytes: number;
      readonly multiprocessors: number;
      readonly capability: string;
      /** Attribute 116. */
      readonly rdmaSupported: boolean;
      /** Attribute 117: bit 0 flush by the host, bit 1 by stream memory operations. */
      readonly rdmaFlushOptions: number;
      /** Attribute 118: 0 none, 100 owner, 200 all devices. */
      readonly rdmaOrdering: number;
      /** By ordinal: it can reach that GPU's memory. */
      readonly peers: readonly boolean[];
    }[];
    readonly nvrtc: NativeLibrary;
    readonly cublas: NativeLibrary;
    readonly cusolver: NativeLibrary;
  };
}

/** A library that the addon looked for. */
export interface NativeLibrary {
  readonly found: boolean;
  readonly library: string;
  readonly reason: string;
}

/** The next thing to do for a script worker, if it is no body: a body has its class's number, which is not negative. */
export const ScriptNext = {
  /** There is nothing to do: it calls `rest`. */
  rest: -1,
  /** It has worked for a while: its event loop should turn once. */
  turn: -2,
  /** The core closes: the queue is given up. */
  end: -3,
} as const;

/** Words that describe the body to run: int32. */
export const ScriptCall = { words: 4, flows: 0, arguments: 1 } as const;

/**
 * A script worker's hold on its queue, on its own thread. No call blocks for longer than some 50 us, so the thread can be
 * ended at any time; the queue is then free for another one, and a body that has not ended fails with `workerEnded`.
 */
export interface NativeScriptServer {
  /**
   * Ends the body that `next` has begun, if any, with a value of `Status`, and begins the next one: its arguments are in the
   * array that was given. Returns its kernel number, or a value of `ScriptNext`.
   */
  next(status: number): number;
  /** Sleeps until the callback is called, once. False: there is something to do already. */
  rest(): boolean;
  /** What the body that runs has thrown. Before its end. */
  throws(bytes: Uint8Array): void;
  /** What a body that runs fails with if the thread ends. */
  ends(bytes: Uint8Array): void;
  /** As `NativeCore.hostView`. */
  hostView(offset: number, bytes: number): ArrayBuffer;
  /** Makes all views of such a buffer useless: they have no elements. */
  forget(view: ArrayBuffer): void;
  /** Bytes of host space. */
  readonly hostBytes: number;
}

/** The core addon's exports. */
export interface NativeModule {
  open(options: NativeOptions): NativeCore;
  /**
   * Begins to serve a queue of a core of this process (`NativeCore.scripts`) on the calling thread. `into` has room for 8192
   * arguments, `call` for `ScriptCall.words`. `wake` ends a `rest`.
   * Throws CLOSED when the core is closing or another thread serves the queue.
   */
  serveScripts(
    core: bigint,
    queue: number,
    into: Float64Array,
    call: Int32Array,
    wake: () => void,
  ): NativeScriptServer;
  /** Address of the first byte of a view. */
  address(view: ArrayBufferView): bigint;
  probe(): NativeProbe;
  /** Names of the built-in kernels. */
  kernels(): string[];
  /**
   * Nanoseconds per operation of a loop by hand over the CUDA driver, for comparison: 'launch', 'streams', 'devices',
   * 'stencil', 'parallel' (on `gpus` GPUs), 'h2d', 'd2h' (of `bytes`, GPU `to`, default 0), 'd2d' (from GPU `from`,
   * default 1); native/gpu/driver_baseline.h describes each.
   */
  rawLoop(
    name: string,
    gpus: number,
    count: number,
    bytes: number,
    to?: number,
    from?: number,
  ): number;
}
