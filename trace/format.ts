// The binary trace: record kinds, layouts and the names behind the numbers. Owns no state at run time.
// A file is a 32-byte preamble, a JSON header padded to whole units, then 32-byte units. A record is one head
// unit and its continuation units. Byte 1 of every record is its length in units, so a reader can skip unknown
// kinds, and a cut file is good up to its last whole record. docs/trace-format.md has the tables.

/** First eight bytes of a trace; the odd ones make text-mode damage visible, as in PNG. */
export const MAGIC: readonly number[] = [0x89, 0x48, 0x52, 0x54, 0x52, 0x43, 0x0d, 0x0a];

/** A reader refuses a newer major version and skips unknown records of a newer minor one. */
export const VERSION = { major: 1, minor: 4 } as const;

/** Size of the preamble and of every unit in bytes. */
export const UNIT = 32;

/** Written at offset 16 so that a reader with the other byte order notices. */
export const BYTE_ORDER_MARK = 0x01020304;

/** No task, no datum, no message. */
export const NONE = 0xffffffff;
/** No lane, no device, no memory space. */
export const NO_INDEX = 0xff;
/** No peer rank. */
export const NO_PEER = -1;
/** The index of a datum without one. */
export const NO_COORDINATE = -0x80000000;

/** Byte 0 of every record. */
export const RecordKind = {
  end: 1,
  string: 2,
  taskClass: 3,
  datum: 4,
  task: 5,
  /** A task whose life was longer than 4.29 s: ten float64 instead of one float64 and nine uint32. */
  longTask: 6,
  transfer: 7,
  dependencies: 8,
  accesses: 9,
  parameters: 10,
  counter: 11,
  event: 12,
  clock: 13,
  /** A task that waited for no memory and no copy, with its data: written by 1.1, which had one record per task. */
  residentTask: 14,
  /** Tasks that waited for no memory and no copy and share most fields, with their data and parameters. */
  taskGroup: 15,
  /** A thread wanted to run and had no core. */
  stolen: 16,
  /** The tasks of some iterations of a plan that was played. It comes before them. */
  play: 17,
} as const;

/** Ids of played tasks count from here, those of inserted tasks from 0. */
export const FIRST_PLAYED = 0x80000000;

/** Limit of data in a residentTask record. */
export const RESIDENT_DATA = 4;

/** Layout of a taskGroup record. */
export const TaskGroup = {
  /** Byte at which the first task begins. */
  tasks: 32,
  /** Limit of tasks in one record. */
  most: 255,
  /** Bits of byte 9: the number of parameters, and whether each task has a word for the task that released it. */
  parameters: 7,
  released: 128,
} as const;

/** Position of each time in a task's row of ten, in nanoseconds on the rank's clock. */
export const TaskTime = {
  inserted: 0,
  /** All predecessors released it. */
  ready: 1,
  /** Memory for all its data is reserved. */
  alloc: 2,
  /** All local copies have arrived or are queued before it on its lane. */
  stageIn: 3,
  /** All receives are complete. */
  commIn: 4,
  /** Handed to its lane. */
  issued: 5,
  execStart: 6,
  execEnd: 7,
  /** Sends and write-backs are started. */
  stageOut: 8,
  /** Completion seen, dependencies and pins released. */
  finalized: 9,
  count: 10,
} as const;

/** Bits of a task's flags. The low three bits are the number of stages completed (6 = all). */
export const TaskFlag = {
  stagesMask: 7,
  failed: 8,
  cancelled: 16,
  /** The body was a JavaScript function. */
  script: 32,
  /** The program chose the device. */
  hinted: 64,
  /** A task of a plan, played by the native threads. */
  played: 128,
} as const;

/** The ways of bytes. The order is that of the report and of `--json`. */
export const TransferKind = {
  h2d: 0,
  d2h: 1,
  d2d: 2,
  /** Read from memory that another process of this host mapped for this one. */
  ipc: 3,
  /** A message straight into or out of GPU memory. */
  direct: 4,
  /** A message through pinned host memory. */
  staged: 5,
  /** A message whose payload travelled in the announcement. */
  inline: 6,
  count: 7,
} as const;

/** The reasons of transfers. */
export const TransferReason = {
  stageIn: 0,
  /** Memory was short: the only copy of a dirty datum was written to host memory. */
  spill: 1,
  writeThrough: 2,
  /** The program asked for the value. */
  readBack: 3,
  redistribution: 4,
  receive: 5,
  send: 6,
  prefetch: 7,
  count: 8,
} as const;

/** How a task uses a datum; two bits each in an accesses record. */
export const AccessMode = { read: 1, write: 2, readWrite: 3 } as const;

/** The quantities of a counter record, six float64 values each. */
export const CounterKind = {
  /** Per memory space, bytes: used, pinned, dirty, clean, arriving, 0. */
  memory: 0,
  /** Per rank: ready tasks, tasks in the window, bytes in flight, messages in flight, inserted, retired. */
  progress: 1,
} as const;

/** Events at one moment. */
export const EventKind = {
  /** A clean copy was dropped to make room. */
  evict: 0,
  /** A dirty copy was written to host memory to make room. */
  spill: 1,
  fail: 2,
  cancel: 3,
  watchdog: 4,
  /** Writes of the network to GPU memory were flushed. */
  flush: 5,
  /** The task window was full: `insert` waits from here ... */
  throttleBegin: 6,
  /** ... to here. */
  throttleEnd: 7,
  runBegin: 8,
  runEnd: 9,
  /** The program has inserted its last task; from here on an empty queue is not its fault. */
  insertEnd: 10,
  /** Free text of the program. */
  note: 11,
  count: 12,
} as const;

/** Kinds of in-order lanes. */
export type LaneKind =
  | 'worker'
  | 'script-worker'
  | 'compute'
  | 'h2d'
  | 'd2h'
  | 'peer'
  | 'network'
  | 'script';

/** A memory space; the index in the header is the `device`, `source` and `destination` of records. */
export interface TraceSpace {
  /** 'host' | 'emulated' | 'cuda' | 'hip' | 'simulated'. */
  readonly kind: string;
  readonly name: string;
  /** Capacity in bytes. */
  readonly bytes: number;
}

/** An in-order executor; the index in the header is the `lane` of records. */
export interface TraceLane {
  readonly kind: LaneKind;
  readonly name: string;
  /** Index of the memory space it belongs to. */
  readonly space: number;
  /** Source space of a peer lane, else -1. */
  readonly peer: number;
}

/** The JSON header. Unknown keys are kept by readers. */
export interface TraceHeader {
  readonly program: string;
  readonly hostname: string;
  readonly rank: number;
  readonly ranks: number;
  /** The same text in the traces of all ranks of a run, different from other runs. */
  readonly run?: string;
  /** Wall-clock time of the start, ISO 8601. */
  readonly started: string;
  /** Time on the rank's clock at the start, in nanoseconds; readers report times relative to it. */
  readonly clockOrigin: number;
  /** Rank 0's clock minus this rank's clock, in nanoseconds, as known at the start. */
  readonly clockOffset: number;
  /**
   * 'accesses': dependencies records hold explicit (control) dependencies only; the reader infers the others from the
   * data that tasks read and write in program order. Default 'recorded': all are recorded.
   */
  readonly dependencies?: 'recorded' | 'accesses';
  /** Virtual time: the run was simulated. */
  readonly simulated: boolean;
  readonly spaces: readonly TraceSpace[];
  readonly lanes: readonly TraceLane[];
  /** Options of the run, for people and for `trace diff`. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Cores that the rank has for its threads. */
  readonly cores?: number;
}

function names(table: Readonly<Record<string, number>>): readonly string[] {
  const list: string[] = [];
  for (const [name, value] of Object.entries(table)) if (name !== 'count') list[value] = name;
  return list;
}

/** Names of `TransferKind` by number. */
export const transferKindNames: readonly string[] = names(TransferKind);
/** Names of `TransferReason` by number. */
export const transferReasonNames: readonly string[] = names(TransferReason);
/** Names of `EventKind` by number. */
export const eventKindNames: readonly string[] = names(EventKind);
/** Names of `AccessMode` by number. */
export const accessModeNames: readonly string[] = ['', 'read', 'write', 'readWrite'];
/** Names of `TaskTime` by position. */
export const taskTimeNames: readonly string[] = names(TaskTime);

const encoder = new TextEncoder();

/**
 * Preamble and header of a file, a whole number of units.
 * The JSON is padded with spaces so that the first record starts on a unit.
 */
export function encodeHeader(header: TraceHeader): Uint8Array {
  const json = encoder.encode(JSON.stringify(header));
  const padded = Math.ceil(json.length / UNIT) * UNIT;
  const bytes = new Uint8Array(UNIT + padded).fill(0x20, UNIT);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  view.setUint16(8, VERSION.major, true);
  view.setUint16(10, VERSION.minor, true);
  view.setUint32(12, padded, true);
  view.setUint32(16, BYTE_ORDER_MARK, true);
  view.setUint32(20, UNIT, true);
  bytes.set(json, UNIT);
  return bytes;
}

/** The trace file of one rank: `out.hrtrace` for a single rank, `out.0.hrtrace`, `out.1.hrtrace` ... for several. */
export function rankTracePath(path: string, rank: number, ranks: number): string {
  if (ranks <= 1) return path;
  const dot = path.endsWith('.hrtrace') ? path.length - '.hrtrace'.length : path.length;
  return `${path.slice(0, dot)}.${rank}${path.slice(dot) || '.hrtrace'}`;
}
