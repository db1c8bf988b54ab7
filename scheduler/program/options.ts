// Options of a runtime: their defaults, their limits, and the errors for wrong values.
import { totalmem } from 'node:os';
import { HeadraceError } from '../../devices/errors.js';
import { ALIGNMENT } from '../../devices/memory/zone.js';
import { checkFile, checkText, checkTruth, oneOf, optionsOf, shown } from '../checks.js';
import { ownCores } from './own-cores.js';

/** Bytes, or a text such as '24MiB', '1.5 GiB', '512kB'. */
export type ByteSize = number | string;

/** Options of `Runtime.create`. Every option has a default. */
export interface RuntimeOptions {
  /** Host worker threads; default: one per core. Ranks of one host share its cores. */
  readonly workers?: number;
  /**
   * Script workers: threads that run the JavaScript bodies of classes with a `module`; default: one per core. They start with
   * the first such class. 0: those bodies run on the engine's thread like all others.
   */
  readonly scriptWorkers?: number;
  /** Number of GPUs; default 0 for the emulated driver, 1 for the others. */
  readonly gpus?: number;
  /** Driver of the GPUs: 'emulated' (host memory with a capacity limit), 'cuda' or 'hip'. Default 'emulated'. */
  readonly driver?: 'emulated' | 'cuda' | 'hip';
  /**
   * Memory per GPU, taken when the runtime opens, at least 512 bytes; default: 256 MiB of an emulated GPU, and nine tenths of
   * what is free on a real one. Ranks that share a real GPU take equal parts of nine tenths of it.
   */
  readonly gpuMemory?: ByteSize;
  /** Limit for host memory of data; default: three quarters of the machine's. */
  readonly hostMemory?: ByteSize;
  /**
   * Host memory that is page-locked when the runtime opens, so that real GPUs copy to and from it at full speed;
   * default: 1 GiB, or `hostMemory` if that is less. Data use this memory first. More memory is locked on its first use
   * while no kernel runs.
   */
  readonly pinnedMemory?: ByteSize;
  /** Compute streams per GPU; default 1 for emulated GPUs, 8 for one real GPU, 4 for several. */
  readonly computeStreams?: number;
  /** Limit for tasks between insertion and retirement, a power of two; default 16384. */
  readonly window?: number;
  /**
   * Limit for tasks that bodies insert beyond the window, where they need not wait; default 1 048 576. Each takes about
   * 60 bytes, 4 per datum and 8 per parameter while it is live, and up to twice that as tables double.
   */
  readonly overflow?: number;
  /**
   * Seconds without progress after which the watchdog reports all waiting tasks and their reasons; default 30; 0: never.
   */
  readonly watchdog?: number;
  /** Limit for commands queued ahead per queue, a power of two; default 1024. */
  readonly runAhead?: number;
  /** Poison freed memory with 0xA5 and check the engine's invariants after each pass. Slow; for tests. */
  readonly checked?: boolean;
  /**
   * Transport of data between ranks of an mpirun launch: 'direct' (the message layer reads and writes device memory),
   * 'staged' (in chunks through host memory), 'ipc' (the receiver reads the sender's memory, on one host), 'auto' (the
   * best of the available ways) or 'off' (each process by itself). Default 'auto'. With 'auto' and 'ipc' short messages
   * between ranks of one host go through memory of both, otherwise by MPI.
   */
  readonly comm?: 'auto' | 'direct' | 'staged' | 'ipc' | 'off';
  /** Data up to this size travel in their announcement; default 4 KiB. */
  readonly inlineBytes?: ByteSize;
  /**
   * Lanes to other ranks, 2 to 256: queues whose commands send and receive versions without the engine, so that tasks are
   * issued before their inputs come (docs/network.md). Of four lanes one sends. Default 32.
   */
  readonly lanes?: number;
  /** If at least that many ranks want one version, it travels along a tree; default 4. */
  readonly treeFrom?: number;
  /** Time at which writes of the network to device memory are flushed; default 'auto'. */
  readonly flush?: 'auto' | 'force' | 'off';
  /**
   * 'auto': runs that insert the same tasks again, and stretches that a run repeats, are recognised and played as plans
   * (docs/plans.md). Default 'auto', and 'off' with `checked`, so that `story` knows every task. On several ranks whole
   * runs are recognised, and nothing if a rank has GPUs.
   */
  readonly plans?: 'auto' | 'off';
  /** Write a trace of everything to this file. */
  readonly trace?: string;
  /** Program name in the trace. */
  readonly name?: string;
}

/** Options with every default filled in; sizes in bytes. */
export interface ResolvedOptions {
  readonly workers: number;
  readonly scriptWorkers: number;
  readonly gpus: number;
  readonly driver: 'emulated' | 'cuda' | 'hip';
  /** Undefined: what a real GPU has. */
  readonly gpuBytes: number | undefined;
  readonly hostBytes: number;
  readonly pinnedBytes: number;
  readonly computeStreams: number;
  readonly window: number;
  readonly overflow: number;
  /** Nanoseconds. */
  readonly watchdog: number;
  readonly runAhead: number;
  readonly checked: boolean;
  readonly trace: string | undefined;
  readonly name: string;
  readonly comm: 'auto' | 'direct' | 'staged' | 'ipc' | 'off';
  readonly inlineBytes: number;
  readonly lanes: number;
  readonly treeFrom: number;
  readonly flush: 'auto' | 'force' | 'off';
  readonly plans: 'auto' | 'off';
}

/** Bytes, offsets and counts are exact up to this value. */
export const MOST_BYTES: number = 2 ** 53;
const RUNTIME_OPTIONS: Readonly<Record<keyof RuntimeOptions, true>> = {
  workers: true,
  scriptWorkers: true,
  gpus: true,
  driver: true,
  gpuMemory: true,
  hostMemory: true,
  pinnedMemory: true,
  computeStreams: true,
  window: true,
  overflow: true,
  watchdog: true,
  runAhead: true,
  checked: true,
  comm: true,
  inlineBytes: true,
  lanes: true,
  treeFrom: true,
  flush: true,
  plans: true,
  trace: true,
  name: true,
};

/** Memory of an emulated GPU, by default. */
const EMULATED_BYTES = 256 * 2 ** 20;

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
  pb: 1e15,
  pib: 2 ** 50,
};

/**
 * Bytes of a size such as 4096, '24MiB' or '1.5 GB'.
 * @throws HeadraceError `ERR_OPTION` for any other value; `what` names it in the message.
 */
export function parseBytes(size: ByteSize, what: string): number {
  const text = typeof size === 'number' || typeof size === 'string' ? String(size) : '';
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(text);
  const name = match === null ? '' : (match[2] as string).toLowerCase();
  if (match === null || !Object.hasOwn(UNITS, name)) {
    throw new HeadraceError('ERR_OPTION', `${what}: ${shown(size)} is not a number of bytes`, {
      remedy: "write it like 25165824, '24MiB' or '1.5GB'",
    });
  }
  const bytes = Math.floor(Number(match[1]) * UNITS[name]);
  if (bytes > MOST_BYTES) {
    throw new HeadraceError('ERR_OPTION', `${what}: ${shown(size)} is more than 2^53 bytes`, {
      limit: MOST_BYTES,
    });
  }
  return bytes;
}

function gpuBytesOf(size: ByteSize | undefined, driver: string): number | undefined {
  if (size === undefined) return driver === 'emulated' ? EMULATED_BYTES : undefined;
  const bytes = parseBytes(size, 'gpuMemory');
  if (bytes < ALIGNMENT) {
    throw new HeadraceError(
      'ERR_OPTION',
      `gpuMemory must be at least ${ALIGNMENT} bytes, not ${shown(size)}`,
      { limit: ALIGNMENT },
    );
  }
  return bytes;
}

function integer(value: number, what: string, least: number, most: number): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new HeadraceError(
      'ERR_OPTION',
      `${what} must be an integer from ${least} to ${most}, not ${shown(value)}`,
    );
  }
  return value;
}

function seconds(value: number, what: string): number {
  if (typeof value !== 'number' || !(value >= 0 && value <= 1e6)) {
    throw new HeadraceError(
      'ERR_OPTION',
      `${what} must be a number of seconds from 0 to 1000000, not ${shown(value)}`,
    );
  }
  return value;
}

function powerOfTwo(value: number, what: string, least: number, most: number): number {
  integer(value, what, least, most);
  if ((value & (value - 1)) !== 0) {
    throw new HeadraceError('ERR_OPTION', `${what} must be a power of two, not ${value}`);
  }
  return value;
}

/**
 * Fills in defaults and checks limits. `outside`: values for options that the program does not give.
 * @internal
 */
export function resolveOptions(
  given: RuntimeOptions,
  outside: RuntimeOptions = {},
): ResolvedOptions {
  const own = optionsOf(given, Object.keys(RUNTIME_OPTIONS), 'the options of a runtime');
  const options: RuntimeOptions = { ...outside, ...own };
  const driver = oneOf(options.driver ?? 'emulated', 'driver', ['emulated', 'cuda', 'hip']);
  const gpus = integer(options.gpus ?? (driver === 'emulated' ? 0 : 1), 'gpus', 0, 30);
  const hostBytes = parseBytes(options.hostMemory ?? Math.floor(totalmem() * 0.75), 'hostMemory');
  return {
    workers: integer(options.workers ?? ownCores(), 'workers', 1, 256),
    scriptWorkers: integer(options.scriptWorkers ?? ownCores(), 'scriptWorkers', 0, 256),
    gpus,
    driver,
    gpuBytes: gpuBytesOf(options.gpuMemory, driver),
    hostBytes,
    pinnedBytes: Math.min(parseBytes(options.pinnedMemory ?? '1GiB', 'pinnedMemory'), hostBytes),
    computeStreams: integer(
      options.computeStreams ?? (driver === 'emulated' ? 1 : gpus === 1 ? 8 : 4),
      'computeStreams',
      1,
      32,
    ),
    window: powerOfTwo(options.window ?? 16384, 'window', 4, 2 ** 22),
    overflow: integer(options.overflow ?? 2 ** 20, 'overflow', 0, 2 ** 24),
    watchdog: seconds(options.watchdog ?? 30, 'watchdog') * 1e9,
    runAhead: powerOfTwo(options.runAhead ?? 1024, 'runAhead', 1, 2 ** 15),
    checked: checkTruth(options.checked ?? false, 'checked'),
    trace: options.trace === undefined ? undefined : checkFile(options.trace, 'trace'),
    name: checkText(options.name ?? 'headrace', 'name'),
    comm: oneOf(options.comm ?? 'auto', 'comm', ['auto', 'direct', 'staged', 'ipc', 'off']),
    inlineBytes: parseBytes(options.inlineBytes ?? 4096, 'inlineBytes'),
    lanes: integer(options.lanes ?? 32, 'lanes', 2, 256),
    treeFrom: integer(options.treeFrom ?? 4, 'treeFrom', 2, 1 << 20),
    flush: oneOf(options.flush ?? 'auto', 'flush', ['auto', 'force', 'off']),
    plans: oneOf(options.plans ?? (options.checked === true ? 'off' : 'auto'), 'plans', [
      'auto',
      'off',
    ]),
  };
}
