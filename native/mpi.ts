// Finds and loads the message layer's addon (native/mpi), and allocates the memory that the engine and its comm thread share.
//
// There may be one addon per MPI library, because their binary interfaces differ. The launch (launch.ts) selects the one
// for this process. No addon, no libmpi, the wrong library: each is an MpiError with a remedy. None is looked for
// unless ranks are requested.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { OTHER_SOURCES } from './absence.js';
import { netContractNumber } from './contract-numbers.js';
import { doctorCommand, mpiRemedy, packageRoot } from './installation.js';
import { type Launch, launchOf, type MpiLibrary } from './launch.js';
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
  /** The launcher belongs to another MPI library than the addon, or the library does not understand the launcher. */
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

const require = createRequire(import.meta.url);

function candidates(library: MpiLibrary | undefined): string[] {
  const override = process.env['HEADRACE_MPI'];
  if (override !== undefined && override !== '') return [override];
  const folder = join(packageRoot(), 'build', 'Release');
  const names = ['mpi.node', 'mpi-openmpi.node', 'mpi-mpich.node'];
  if (library !== undefined) names.sort((a, b) => rating(b) - rating(a));
  function rating(name: string): number {
    return name.includes(library as string) ? 1 : 0;
  }
  return names.map((name) => join(folder, name)).filter((path) => existsSync(path));
}

/**
 * Settings of UCX (under MPICH, and under Open MPI if selected), which it reads when it is loaded. Without the first one UCX
 * 1.13 tests its hooks then: it grows the heap by a page and shrinks it by a page, and does the second even if the first
 * was refused. In about one of a hundred processes V8 has memory directly behind the heap, so the last page of the heap is
 * lost, and the process crashes. UCX also patches brk, mmap and munmap while other threads call them.
 */
const UCX_SETTINGS: Readonly<Record<string, string>> = {
  UCX_MEM_EVENTS: 'no',
  UCX_HANDLE_ERRORS: 'none',
};

/** The environment in which a process may load an addon of the message layer. The user's own settings stand. */
export function mpiEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...UCX_SETTINGS, ...env };
}

/** File of the MPI library that an addon of this process has loaded; '' when there is none. */
export function loadedMpiFile(): string {
  const maps = readFileSync('/proc/self/maps', 'utf8');
  return /\s(\/\S*\/libmp(?:i|ich)\.so\S*)/.exec(maps)?.[1] ?? '';
}

const loaded: Map<string, NetAddon> = new Map();

/** The options of srun with which the usual builds of the libraries start. */
const SRUN = { openmpi: 'srun --mpi=pmix', mpich: 'srun --mpi=pmi2' } as const;

/**
 * Loads the addon for the library of a launch. srun is no library's own launcher: there the usual one is preferred, and
 * the start of MPI shows whether it understands srun.
 * @throws {MpiError} with the reason.
 */
export function loadMpi(launch: Launch = launchOf()): NetAddon {
  const { launcher, library, pmi, size } = launch;
  const known = loaded.get(library ?? '');
  if (known !== undefined) return known;
  if (pmi === 'none') {
    throw new MpiError(
      'MPI_START',
      `srun started ${size} processes, but without an interface by which MPI finds the others`,
      `${SRUN.openmpi} for Open MPI, ${SRUN.mpich} for MPICH; for processes by themselves: comm: 'off'`,
    );
  }
  const paths = candidates(library);
  if (paths.length === 0) {
    throw new MpiError(
      'MPI_NOT_BUILT',
      'the message layer was not built for an MPI library of this machine',
      mpiRemedy(library),
    );
  }
  for (const [name, value] of Object.entries(UCX_SETTINGS)) process.env[name] ??= value;
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
        mpiRemedy(library),
        error,
      );
      continue;
    }
    const { flavour } = addon.describe();
    if (launcher !== undefined && launcher !== 'srun' && flavour !== launcher) {
      problem = new MpiError(
        'MPI_MISMATCH',
        `this process was started by the launcher of ${launcher}, but the message layer was built for ${flavour}`,
        `use the mpirun of ${flavour}, or: ${mpiRemedy(launcher)}`,
      );
      continue;
    }
    loaded.set(library ?? '', addon);
    return addon;
  }
  throw problem as MpiError;
}

/** Throws if every process of the launch is alone in its own world: the library did not understand the launcher. */
function checkWorld({ size, flavour }: NetFacts, launch: Launch): void {
  if (size > 1 || launch.size === 1) return;
  const isSrun = launch.launcher === 'srun';
  const usual = SRUN[flavour as MpiLibrary];
  const own = `the mpirun of ${flavour}`;
  throw new MpiError(
    'MPI_MISMATCH',
    `${isSrun ? `srun --mpi=${launch.pmi}` : 'the launcher'} started ${launch.size} processes, but ` +
      `the library of the message layer (${flavour}) does not understand it and joined none of them`,
    isSrun && usual !== undefined ? `use ${usual}, or ${own} within the job` : `use ${own}`,
  );
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
  /** A `NetMode` per rank, memory space there, and memory space here (`NetAddon.open`). */
  readonly ways: Uint8Array;
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
  let facts: NetFacts;
  try {
    facts = await starting;
  } catch (error) {
    throw new MpiError(
      'MPI_START',
      `MPI cannot be started: ${(error as Error).message}`,
      `see: ${doctorCommand()}`,
      error,
    );
  }
  checkWorld(facts, launchOf());
  return facts;
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
  const ways = new Uint8Array(
    new SharedArrayBuffer(facts.size * NetLimit.spaces * options.spaces.length),
  );
  let opened: NetOpened;
  try {
    opened = await addon.open(options, words, commands, events, outbox, inbox, ways);
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
    ways,
    wake: () => addon.wake(),
    end: () => addon.end(),
    deadline: addon,
  };
}
