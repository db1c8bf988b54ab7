// Finds and loads the message layer's addon (native/mpi), and allocates the memory that the engine and its comm thread share.
//
// There may be one addon per MPI library, because their binary interfaces differ. The launcher's environment selects the
// one for this process. No addon, no libmpi, the wrong library: each is an MpiError with a remedy. None is looked for
// unless ranks are requested.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { OTHER_SOURCES } from './absence.js';
import { netContractNumber } from './contract-numbers.js';
import { doctorCommand, mpiRemedy, packageRoot } from './installation.js';
import {
  type NetAddon,
  type NetFacts,
  type NetGpu,
  NetLimit,
  type NetOpened,
  type NetOptions,
  NetRecord,
  NetWord,
} from './mpi-contract.js';

export * from './mpi-contract.js';

/** The reasons why there is no message layer. */
type MpiErrorCode =
  /** The addon was not built. */
  | 'MPI_NOT_BUILT'
  /** It exists but cannot be loaded, e.g. because libmpi is gone. */
  | 'MPI_NOT_LOADABLE'
  /** The launcher belongs to another MPI library than the addon. */
  | 'MPI_MISMATCH'
  /** The library refused to start, or the ranks cannot reach each other. */
  | 'MPI_START';

export class MpiError extends Error {
  readonly code: MpiErrorCode;
  readonly remedy: string;

  constructor(code: MpiErrorCode, message: string, remedy: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'MpiError';
    this.code = code;
    this.remedy = remedy;
  }
}

/** The launch of this process, according to its environment. */
export interface Launch {
  /** 'openmpi' | 'mpich', or undefined: not started by an MPI launcher. */
  readonly launcher: 'openmpi' | 'mpich' | undefined;
  readonly rank: number;
  readonly size: number;
  /** The same among the ranks of this host. */
  readonly localRank: number;
  readonly localSize: number;
}

/** Reads the environment that mpirun sets. */
export function launchOf(env: Readonly<Record<string, string | undefined>>): Launch {
  const number = (name: string): number => Number.parseInt(env[name] ?? '', 10);
  // If a launcher does not tell the places of its ranks, each counts as alone on its host.
  const local = (rank: string, size: string) => ({
    localRank: number(rank) || 0,
    localSize: number(size) || 1,
  });
  const open = number('OMPI_COMM_WORLD_SIZE');
  if (open > 0) {
    const where = local('OMPI_COMM_WORLD_LOCAL_RANK', 'OMPI_COMM_WORLD_LOCAL_SIZE');
    return { launcher: 'openmpi', rank: number('OMPI_COMM_WORLD_RANK'), size: open, ...where };
  }
  const mpich = number('PMI_SIZE');
  if (mpich > 0) {
    const where = local('MPI_LOCALRANKID', 'MPI_LOCALNRANKS');
    return { launcher: 'mpich', rank: number('PMI_RANK'), size: mpich, ...where };
  }
  return { launcher: undefined, rank: 0, size: 1, localRank: 0, localSize: 1 };
}

const require = createRequire(import.meta.url);

function candidates(launcher: Launch['launcher']): string[] {
  const override = process.env['HEADRACE_MPI'];
  if (override !== undefined && override !== '') return [override];
  const folder = join(packageRoot(), 'build', 'Release');
  const names = ['mpi.node', 'mpi-openmpi.node', 'mpi-mpich.node'];
  if (launcher !== undefined) names.sort((a, b) => rating(b) - rating(a));
  function rating(name: string): number {
    return name.includes(launcher as string) ? 1 : 0;
  }
  return names.map((name) => join(folder, name)).filter((path) => existsSync(path));
}

/**
 * UCX (under MPICH, and under Open MPI if selected) patches brk, mmap and munmap of the whole process while other
 * threads allocate. In a process with as many threads as Node has, this crashes V8 now and then (UCX 1.13).
 * UCX reads its settings when it is loaded, so they are set before. The user's own settings stand.
 */
function tameUcx(): void {
  process.env['UCX_MEM_EVENTS'] ??= 'no';
  process.env['UCX_HANDLE_ERRORS'] ??= 'none';
}

/** File of the MPI library that an addon of this process has loaded; '' when there is none. */
export function loadedMpiFile(): string {
  const maps = readFileSync('/proc/self/maps', 'utf8');
  return /\s(\/\S*\/libmp(?:i|ich)\.so\S*)/.exec(maps)?.[1] ?? '';
}

const loaded: Map<string, NetAddon> = new Map();

/**
 * Loads the addon for a launcher's library (undefined: any).
 * @throws {MpiError} with the reason.
 */
export function loadMpi(launcher: Launch['launcher']): NetAddon {
  const known = loaded.get(launcher ?? '');
  if (known !== undefined) return known;
  const paths = candidates(launcher);
  if (paths.length === 0) {
    throw new MpiError(
      'MPI_NOT_BUILT',
      'the message layer was not built for an MPI library of this machine',
      mpiRemedy(launcher),
    );
  }
  tameUcx();
  let problem: MpiError | undefined;
  for (const path of paths) {
    let addon: NetAddon;
    try {
      addon = require(path) as NetAddon;
      if (addon.contract !== netContractNumber) throw new Error(OTHER_SOURCES);
    } catch (error) {
      const text = (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
      problem ??= new MpiError(
        'MPI_NOT_LOADABLE',
        `${path} cannot be loaded: ${text}`,
        mpiRemedy(launcher),
        error,
      );
      continue;
    }
    const { flavour } = addon.describe();
    if (launcher !== undefined && flavour !== launcher) {
      problem = new MpiError(
        'MPI_MISMATCH',
        `this process was started by the launcher of ${launcher}, but the message layer was built for ${flavour}`,
        `use the mpirun of ${flavour}, or: ${mpiRemedy(launcher)}`,
      );
      continue;
    }
    loaded.set(launcher ?? '', addon);
    return addon;
  }
  throw problem as MpiError;
}

/** An open session: the shared memory, and the facts about the other ranks. */
export interface NetSession {
  readonly facts: NetFacts;
  readonly opened: NetOpened;
  readonly words: Int32Array;
  readonly commands: Int32Array;
  readonly events: Int32Array;
  readonly outbox: Uint8Array;
  readonly inbox: Uint8Array;
  wake(): void;
  /** Releases the shared memory; after `closed` or `lost`. */
  end(): void;
  /** The end of the process in time after a signal, natively. */
  readonly deadline: Pick<NetAddon, 'watchSignal' | 'heardSignal' | 'leaveSignal'>;
}

/** `words` zeroed int32 words of shared memory that start at a cache line. */
function sharedWords(addon: NetAddon, words: number): Int32Array {
  const buffer = new SharedArrayBuffer(words * 4 + 64);
  const over = addon.misalignment(new Int32Array(buffer));
  return new Int32Array(buffer, (64 - over) & 63, words);
}

let starting: Promise<NetFacts> | undefined;

/** Starts MPI in this process (once); `gpu` as in `NetAddon.start`. */
export async function startMpi(addon: NetAddon, gpu?: NetGpu): Promise<NetFacts> {
  if (starting === undefined) {
    starting = addon.start(gpu);
    process.once('exit', (code) => {
      // A process that fails must not wait for the others: its end tells them.
      addon.finish(FINISH_MS, code !== 0);
    });
  }
  try {
    return await starting;
  } catch (error) {
    throw new MpiError(
      'MPI_START',
      `MPI cannot be started: ${(error as Error).message}`,
      `see: ${doctorCommand()}`,
      error,
    );
  }
}

const FINISH_MS = 20_000;

/** Opens a session; collective over all ranks. */
export async function openMpi(
  addon: NetAddon,
  facts: NetFacts,
  options: NetOptions,
): Promise<NetSession> {
  const words = sharedWords(addon, NetWord.words);
  const commands = sharedWords(addon, NetLimit.records * NetRecord.words);
  const events = sharedWords(addon, NetLimit.records * NetRecord.words);
  const bytes = (): Uint8Array => {
    const all = sharedWords(addon, NetLimit.ring / 4);
    return new Uint8Array(all.buffer, all.byteOffset, NetLimit.ring);
  };
  const outbox = bytes();
  const inbox = bytes();
  let opened: NetOpened;
  try {
    opened = await addon.open(options, words, commands, events, outbox, inbox);
  } catch (error) {
    throw new MpiError(
      'MPI_START',
      `the ranks cannot be joined: ${(error as Error).message}`,
      `see: ${doctorCommand()}`,
      error,
    );
  }
  return {
    facts,
    opened,
    words,
    commands,
    events,
    outbox,
    inbox,
    wake: () => addon.wake(),
    end: () => addon.end(),
    deadline: addon,
  };
}
