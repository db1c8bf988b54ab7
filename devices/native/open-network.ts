// Opens the network port over MPI: whether MPI may get memory of real GPUs, the options of the comm thread, and typed errors.

import {
  loadedMpiFile,
  loadMpi,
  MpiError,
  type NetAddon,
  openMpi,
  startMpi,
} from '../../native/mpi.js';
import { HeadraceError } from '../errors.js';
import { launchOf } from '../launch.js';
import { VisibleTo } from '../network/port.js';
import type { ExportedSpace } from './description.js';
import { knownProof, type Proof, prove } from './gpu-aware.js';
import { CHUNKS_IN_FLIGHT, NativeNetwork } from './network.js';

/** Options of `openNativeNetwork`. */
interface NativeNetworkOptions {
  readonly spaces: readonly ExportedSpace[];
  /**
   * Whether the MPI library gets memory of real GPUs: never; if a proof says that it can take it; or without
   * a proof, which ends in a crash if it cannot.
   */
  readonly direct: 'never' | 'proven' | 'unproven';
  /** When writes of the network to device memory are flushed; 'off' needs no means to do so. */
  readonly flush: 'auto' | 'force' | 'off';
  readonly doorbell: bigint;
  /** Lanes of the backend; none by default. */
  readonly lanes?: bigint;
  /** Destinations from which on a lane's version goes along a tree of ranks (default 4). */
  readonly treeFrom?: number;
  readonly chunkBytes: number;
  /** Not every thread of this rank has a core of its own: none may spin for long. */
  readonly crowded: boolean;
  /** Short letters to ranks of this host go through memory (default no). */
  readonly mailboxes?: boolean;
  /** Options by name that must be the same on all ranks; default none. */
  readonly same?: Readonly<Record<string, number>>;
}

const TREE_FROM = 4;
const CALM_SPIN_NS = 1_000;
const EAGER_SPIN_NS = 10_000_000;

const CODES: Readonly<Record<string, string>> = {
  MPI_NOT_BUILT: 'ERR_MPI_MISSING',
  MPI_NOT_LOADABLE: 'ERR_MPI_MISSING',
  MPI_MISMATCH: 'ERR_MPI_MISMATCH',
  MPI_START: 'ERR_MPI_START',
};

export { loadedMpiFile, mpiEnvironment } from '../../native/mpi.js';

/** One process per host proves before it starts MPI. The start of the others waits for it, so they find the answer. */
async function proofOf(
  addon: NetAddon,
  options: NativeNetworkOptions,
  start: () => Promise<unknown>,
): Promise<Proof> {
  const isWanted = options.direct === 'proven' && options.spaces.some(({ isReal }) => isReal);
  const { gpuAware, library } = addon.describe();
  const file = loadedMpiFile();
  if (isWanted && gpuAware && launchOf().localRank === 0) await prove(file);
  await start();
  if (options.direct === 'unproven') return { isProven: true, why: '' };
  if (!isWanted) return { isProven: false, why: 'it was not requested' };
  if (!gpuAware) return { isProven: false, why: `${library} does not take device pointers` };
  return knownProof(file) ?? { isProven: false, why: 'no process on this host has proven it' };
}

/** Whether writes of the network to this space can be made visible, or need not be. */
function isFlushable(space: ExportedSpace, flush: NativeNetworkOptions['flush']): boolean {
  return flush === 'off' || space.writeOrdering >= VisibleTo.all || (space.flushOptions & 1) !== 0;
}

function typed(error: unknown): unknown {
  if (!(error instanceof MpiError)) return error;
  return new HeadraceError(CODES[error.code] ?? 'ERR_MPI_START', error.message, {
    cause: error,
    remedy: error.remedy,
  });
}

/** Throws a typed error when there is no message layer. Starts nothing. */
export function checkMpi(): void {
  try {
    loadMpi();
  } catch (error) {
    throw typed(error);
  }
}

/** The error if a rank has another value of an option than rank 0. All ranks find the same one. */
function differenceOf(
  same: Readonly<Record<string, number>>,
  peers: readonly { readonly told: readonly number[] }[],
): HeadraceError | undefined {
  for (const [i, name] of Object.keys(same).entries()) {
    const of = (rank: number): number => peers[rank].told[i];
    const rank = peers.findIndex((_, r) => of(r) !== of(0));
    if (rank < 0) continue;
    const values = `${of(0)} on rank 0 and ${of(rank)} on rank ${rank}`;
    return new HeadraceError('ERR_OPTION', `\`${name}\` is ${values}`, {
      remedy: `open the runtime with the same \`${name}\` on all ranks`,
    });
  }
  return undefined;
}

/** Starts MPI and opens a session; collective over all ranks. Errors are typed. */
export async function openNativeNetwork(options: NativeNetworkOptions): Promise<NativeNetwork> {
  const { same = {} } = options;
  try {
    const addon = loadMpi();
    const gpu = options.spaces.find(({ isReal }) => isReal);
    const proof = await proofOf(addon, options, () => startMpi(addon, gpu));
    const facts = await startMpi(addon, gpu);
    const isDirect = (space: ExportedSpace): boolean =>
      !space.isReal || (proof.isProven && isFlushable(space, options.flush));
    const session = await openMpi(addon, facts, {
      spaces: options.spaces.map((space) => ({ ...space, direct: isDirect(space) })),
      doorbell: options.doorbell,
      lanes: options.lanes ?? 0n,
      treeFrom: options.treeFrom ?? TREE_FROM,
      chunkBytes: options.chunkBytes,
      chunksInFlight: CHUNKS_IN_FLIGHT,
      spinNanoseconds: options.crowded ? CALM_SPIN_NS : EAGER_SPIN_NS,
      mailboxes: options.mailboxes ?? false,
      told: Object.values(same),
    });
    const unflushable =
      proof.isProven && gpu !== undefined && !isDirect(gpu)
        ? 'writes of the network to its memory cannot be flushed'
        : '';
    const why = proof.why || unflushable || session.opened.directProblem;
    const network = new NativeNetwork(session, options.spaces, options.crowded, why);
    const different = differenceOf(same, session.opened.peers);
    if (different === undefined) return network;
    await network.close();
    throw different;
  } catch (error) {
    throw typed(error);
  }
}
