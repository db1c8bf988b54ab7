// Finds and loads the native addon and wraps it: `loadNative()` returns the NativeModule of contract.ts.
//
// The shared memory (rings, control words, shared words) is allocated here, because Node 20's native interface
// cannot make a SharedArrayBuffer, and is handed over once. Invariant: every ring and every control block starts at a
// 64-byte boundary, so the views have a byteOffset: make other views with `ring.buffer, ring.byteOffset`.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { causeOfAbsence, causeOfOverride, type NativeAttempt, OTHER_SOURCES } from './absence.js';
import type {
  NativeCore,
  NativeIpcExport,
  NativeKernelSource,
  NativeModule,
  NativeOptions,
  NativePlanQueue,
  NativePlay,
  NativeProbe,
  NativeScriptServer,
  NativeSpace,
} from './contract.js';
import { Control, Record, Shared, Times } from './contract.js';
import { contractNumber } from './contract-numbers.js';
import { packageRoot, packageVersion, platformPackage } from './installation.js';

export type { NativeAttempt } from './absence.js';
export type * from './contract.js';

/** The reasons of native failures. */
type NativeErrorCode =
  /** No usable addon was found; `attempts` names the places. */
  | 'NATIVE_UNAVAILABLE'
  | 'INVALID_OPTION'
  /** The GPU driver is missing, has too few devices, or refused to open one. */
  | 'DRIVER_UNAVAILABLE'
  | 'DRIVER'
  | 'OUT_OF_MEMORY'
  | 'OUT_OF_RANGE'
  /** A kernel library could not be loaded. */
  | 'KERNEL_LIBRARY'
  /** A kernel source does not compile, or its kernels differ from their declaration. */
  | 'KERNEL_SOURCE'
  /** The core was closed before. */
  | 'CLOSED';

interface NativeErrorDetails {
  readonly attempts?: readonly NativeAttempt[];
  readonly remedy?: string;
  readonly cause?: unknown;
}

/** Error of the native layer; the scheduler maps it to its own. */
export class NativeError extends Error {
  readonly code: NativeErrorCode;
  readonly attempts: readonly NativeAttempt[];
  /** The remedy for the installation; undefined for all other errors. */
  readonly remedy: string | undefined;

  constructor(code: NativeErrorCode, message: string, details: NativeErrorDetails = {}) {
    const { attempts = [], remedy, cause } = details;
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'NativeError';
    this.code = code;
    this.attempts = attempts;
    this.remedy = remedy;
  }
}

/** The addon's own exports (native/addon/addon.cpp). */
interface Addon {
  /** Number of the contract from which it was built; addons before the number have none. */
  readonly contract?: number;
  readonly Core: new (
    options: NativeOptions,
    queueTable: Int32Array,
    rings: readonly Int32Array[],
    times: readonly Float64Array[],
    control: Int32Array,
    shared: Int32Array,
  ) => AddonCore;
  readonly ScriptServer: new (
    ...hold: Parameters<NativeModule['serveScripts']>
  ) => Omit<NativeScriptServer, 'hostBytes'> & { hostBytes(): number };
  address(view: ArrayBufferView): bigint;
  now(): number;
  workTime(): number;
  queueTable(
    workers: number,
    gpus: number,
    computeStreams: number,
    lanes: number,
    scriptWorkers: number,
  ): number[];
  kernels(): string[];
  probe(): NativeProbe;
  rawLoop: NativeModule['rawLoop'];
}

interface AddonCore {
  spaces(): NativeSpace[];
  kernel(name: string, space?: number): number;
  takesLengths(kernel: number): boolean;
  steered(kernel: number, positions: Int32Array, isInteger: Uint8Array): number;
  numberLengths(lengths: Float64Array): number;
  loadKernels(path: string): string[];
  compileKernels(source: NativeKernelSource): string[];
  wake(queue: number): void;
  waitForDoorbell(microseconds: number): boolean;
  spinForDoorbell(microseconds: number): boolean;
  full(): boolean;
  serveUntilDoorbell(microseconds: number): boolean;
  recall(): void;
  takeStolen(into: Float64Array): number;
  onDoorbell(callback: () => void): void;
  hold(on: boolean): void;
  hostView(offset: number, bytes: number): ArrayBuffer;
  lastError(queue: number): string;
  scripts(): bigint;
  thrown(queue: number, sequence: number): Uint8Array | null;
  refuse(queue: number, thrown: Uint8Array): void;
  shareable(space: number): { pid: number; fd: number; bytes: number } | null;
  ipcExport(space: number): NativeIpcExport | null;
  address(space: number): bigint;
  peerAccess(to: number, from: number): boolean;
  keepShared(): void;
  doorbell(): bigint;
  lanes(): bigint;
  capture(queues: readonly NativePlanQueue[]): number;
  graphFailure(queue: number, graph: number): readonly [list: number, record: number] | undefined;
  releaseGraph(queue: number, graph: number): void;
  play(play: NativePlay): void;
  extendPlay(times: number): boolean;
  playOutcome(): Float64Array;
  close(): void;
}

const require = createRequire(import.meta.url);

let loaded: NativeModule | undefined;

/**
 * Loads the addon once per thread: only `HEADRACE_NATIVE` if it is set, else the built addon of this
 * installation, else the package for this platform.
 * @throws {NativeError} `NATIVE_UNAVAILABLE`, with the cause, a remedy, and every place that was tried.
 */
export function loadNative(): NativeModule {
  if (loaded !== undefined) return loaded;
  const override = process.env['HEADRACE_NATIVE'];
  const attempts: NativeAttempt[] = [];
  const attempt = (path: string): NativeModule | undefined => {
    try {
      const addon = require(path) as Addon;
      if (addon.contract !== contractNumber) throw new Error(OTHER_SOURCES);
      return wrap(addon);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      attempts.push({ path, reason: text.split('\n')[0] ?? text });
      return undefined;
    }
  };
  if (override !== undefined && override !== '') {
    if (existsSync(override)) loaded = attempt(override);
    else attempts.push({ path: override, reason: 'no such file' });
    if (loaded === undefined) throw unavailable(causeOfOverride(override), attempts);
    return loaded;
  }
  const built = join(packageRoot(), 'build', 'Release', 'headrace.node');
  if (existsSync(built)) loaded = attempt(built);
  else attempts.push({ path: built, reason: 'no such file' });
  if (loaded !== undefined) return loaded;
  const version = platformVersion();
  if (version === packageVersion()) {
    loaded = attempt(platformPackage());
    if (loaded !== undefined) return loaded;
  } else {
    const reason = version === undefined ? 'it is not installed' : `its version is ${version}`;
    attempts.push({ path: platformPackage(), reason });
  }
  throw unavailable(causeOfAbsence(attempts), attempts);
}

/** Version of the installed platform package; undefined when there is none. */
function platformVersion(): string | undefined {
  try {
    return (require(`${platformPackage()}/package.json`) as { version: string }).version;
  } catch {
    return undefined;
  }
}

function unavailable(
  { cause, remedy }: { readonly cause: string; readonly remedy: string },
  attempts: readonly NativeAttempt[],
): NativeError {
  const tried = attempts.map(({ path, reason }) => `${path}: ${reason}`).join('; ');
  return new NativeError(
    'NATIVE_UNAVAILABLE',
    `The native addon cannot be loaded: ${cause}. Tried: ${tried}`,
    { attempts, remedy },
  );
}

/** Runs a native call; its errors carry a `code` and become NativeError. */
function typed<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (error instanceof Error && typeof code === 'string') {
      throw new NativeError(code as NativeErrorCode, error.message, { cause: error });
    }
    throw error;
  }
}

function wrap(addon: Addon): NativeModule {
  return {
    kernels: () => addon.kernels(),
    probe: () => addon.probe(),
    rawLoop: (...loop) => typed(() => addon.rawLoop(...loop)),
    open: (options) => typed(() => openCore(addon, options)),
    serveScripts: (...hold) => typed(() => serveScripts(addon, ...hold)),
    address: (view) => addon.address(view),
  };
}

function serveScripts(
  addon: Addon,
  ...hold: Parameters<NativeModule['serveScripts']>
): NativeScriptServer {
  const server = new addon.ScriptServer(...hold);
  return {
    next: (status) => server.next(status),
    rest: () => server.rest(),
    throws: (bytes) => server.throws(bytes),
    ends: (bytes) => server.ends(bytes),
    hostView: (offset, bytes) => typed(() => server.hostView(offset, bytes)),
    forget: (view) => server.forget(view),
    hostBytes: server.hostBytes(),
  };
}

/** `words` zeroed int32 words of shared memory that start at a cache line. */
function sharedWords(addon: Addon, words: number): Int32Array {
  const buffer = new SharedArrayBuffer(words * 4 + 64);
  const over = Number(addon.address(new Int32Array(buffer)) & 63n);
  return new Int32Array(buffer, (64 - over) & 63, words);
}

function clocks(addon: Addon): Pick<NativeCore, 'now' | 'workTime'> {
  return { now: () => addon.now(), workTime: () => addon.workTime() };
}

function plays(core: AddonCore): Pick<NativeCore, 'play' | 'extendPlay' | 'playOutcome'> {
  return {
    play: (play) => typed(() => core.play(play)),
    extendPlay: (times) => core.extendPlay(times),
    playOutcome: () => core.playOutcome(),
  };
}

function openCore(addon: Addon, options: NativeOptions): NativeCore {
  const { workers, gpus, computeStreams, ringRecords } = options;
  if (
    !Number.isInteger(ringRecords) ||
    ringRecords < 16 ||
    (ringRecords & (ringRecords - 1)) !== 0
  ) {
    throw new NativeError(
      'INVALID_OPTION',
      `ringRecords must be a power of two of at least 16, not ${ringRecords}`,
    );
  }
  const lanes = options.lanes ?? 0;
  const scripts = options.scriptWorkers ?? 0;
  const table = Int32Array.from(addon.queueTable(workers, gpus, computeStreams, lanes, scripts));
  const count = table.length / 3;
  const queues = Array.from({ length: count }, (_, i) => ({
    kind: table[3 * i]!,
    space: table[3 * i + 1]!,
    peer: table[3 * i + 2]!,
  }));
  const rings = queues.map(() => sharedWords(addon, ringRecords * Record.words));
  const times = queues.map(() => {
    const words = sharedWords(addon, ringRecords * Times.doubles * 2);
    return new Float64Array(words.buffer, words.byteOffset, words.length / 2);
  });
  const control = sharedWords(addon, Math.max(1, count) * Control.words);
  const shared = sharedWords(addon, Shared.words);
  const first = options.firstSequence ?? 0;
  for (let q = 0; q < count; q++) {
    for (const word of [Control.published, Control.completed, Control.submitted]) {
      control[q * Control.words + word] = first;
    }
  }
  const core = new addon.Core(options, table, rings, times, control, shared);
  return {
    spaces: core.spaces(),
    queues,
    rings,
    times,
    control,
    shared,
    kernel: (name, space) => typed(() => core.kernel(name, space)),
    takesLengths: (kernel) => core.takesLengths(kernel),
    steered: (...kernel) => typed(() => core.steered(...kernel)),
    numberLengths: (lengths) => core.numberLengths(lengths),
    loadKernels: (path) => typed(() => core.loadKernels(path)),
    compileKernels: (source) => typed(() => core.compileKernels(source)),
    wake: (queue) => core.wake(queue),
    waitForDoorbell: (microseconds) => core.waitForDoorbell(microseconds),
    spinForDoorbell: (microseconds) => core.spinForDoorbell(microseconds),
    full: core.full(),
    serveUntilDoorbell: (microseconds) => core.serveUntilDoorbell(microseconds),
    recall: () => core.recall(),
    takeStolen: (into) => core.takeStolen(into),
    onDoorbell: (callback) => core.onDoorbell(callback),
    hold: (on) => core.hold(on),
    ...clocks(addon),
    hostView: (offset, bytes) => typed(() => core.hostView(offset, bytes)),
    hostBytes: core.spaces()[0]!.bytes,
    lastError: (queue) => core.lastError(queue),
    scripts: () => typed(() => core.scripts()),
    thrown: (queue, sequence) => core.thrown(queue, sequence),
    refuse: (queue, thrown) => core.refuse(queue, thrown),
    shareable: (space) => core.shareable(space),
    ipcExport: (space) => core.ipcExport(space),
    address: (space) => typed(() => core.address(space)),
    peerAccess: (to, from) => core.peerAccess(to, from),
    keepShared: () => core.keepShared(),
    doorbell: () => typed(() => core.doorbell()),
    lanes: () => typed(() => core.lanes()),
    capture: (queues) => typed(() => core.capture(queues)),
    graphFailure: (queue, graph) => core.graphFailure(queue, graph),
    releaseGraph: (queue, graph) => typed(() => core.releaseGraph(queue, graph)),
    ...plays(core),
    close: () => core.close(),
  };
}
