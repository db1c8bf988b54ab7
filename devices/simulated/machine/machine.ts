// A machine that exists as a description only: its memory, the speed of its links, the duration of its kernels.
// Invariant: a description that passes `checkMachine` can be opened; every wrong value is reported with its place.

import type { QueueInfo, SpaceInfo } from '../../backend.js';
import { HeadraceError } from '../../errors.js';
import { FIRST_GPU, HOST, NO_SPACE } from '../../handles.js';
import { compileTime, type KernelTime, shareOf } from './kernel-times.js';
import type { HostMemoryRates } from './shared-capacity.js';

/** A link: seconds = latency + bytes / bandwidth. */
export interface Link {
  /** Bytes per second. */
  readonly bandwidth: number;
  /** Seconds before the first byte. */
  readonly latency: number;
}

/** One direction between two GPUs, counted from 0, that differs from the others; `null`: no peer access. */
interface PairLink {
  readonly from: number;
  readonly to: number;
  readonly link: Link | null;
}

/** Costs of the runtime itself, in seconds. */
interface EngineCosts {
  /** Engine time per command. */
  readonly command: number;
  /** From a doorbell to the engine's poll. */
  readonly wake: number;
  /** From submission to the start of a kernel on an idle queue, and the least time between two kernels. */
  readonly launch: number;
}

export interface MachineDescription {
  readonly name: string;
  readonly gpus: number;
  /** Bytes per GPU. */
  readonly gpuMemory: number;
  readonly hostMemory: number;
  readonly workers: number;
  /** Threads that run the JavaScript bodies of classes with a module; default 0. */
  readonly scriptWorkers?: number;
  /** Compute streams per GPU; default 1. */
  readonly computeStreams?: number;
  readonly h2d: Link;
  readonly d2h: Link;
  /** What the host's memory gives to the copies of all GPUs of a rank together. Default: they do not slow each other down. */
  readonly hostCopies?: HostMemoryRates;
  /** Bytes per second each way while one GPU copies from and to the host at the same time. Default: as fast as in one direction. */
  readonly bothWays?: number;
  /** Between any two GPUs; null: no peer access. */
  readonly d2d: Link | null;
  readonly pairs?: readonly PairLink[];
  /** Between any two ranks, in and out of each; needed for more than one rank. */
  readonly network?: Link;
  /** Ranks that share a host and read each other's memory; default 1. */
  readonly ranksPerHost?: number;
  /** Lanes of a rank to other ranks: 2 or more on several ranks. */
  readonly lanes?: number;
  readonly engine: EngineCosts;
  /** Seconds per kernel by name; `*` for all others. */
  readonly kernels: Readonly<Record<string, KernelTime>>;
  /** Host kernels that differ. */
  readonly hostKernels?: Readonly<Record<string, KernelTime>>;
  /** The source of the numbers; for people. */
  readonly source?: string;
}

function wrong(where: string, expected: string, found: unknown): HeadraceError {
  return new HeadraceError(
    'ERR_MACHINE',
    `machine description: ${where} must be ${expected}, found ${JSON.stringify(found)}`,
  );
}

function checkNumber(value: unknown, where: string, least: number, whole = false): void {
  const good = typeof value === 'number' && value >= least && Number.isFinite(value);
  if (!good || (whole && !Number.isInteger(value))) {
    throw wrong(where, `a${whole ? ' whole' : ''} number of at least ${least}`, value);
  }
}

function checkRate(value: number, where: string): void {
  if (!(value > 0)) throw wrong(where, 'a positive number (bytes per second)', value);
}

function checkLink(value: unknown, where: string): void {
  if (value === null || typeof value !== 'object') throw wrong(where, 'a link', value);
  const link = value as Link;
  checkRate(link.bandwidth, `${where}.bandwidth`);
  checkNumber(link.latency, `${where}.latency`, 0);
}

function checkRates(value: unknown, where: string): void {
  if (value === null || typeof value !== 'object') throw wrong(where, 'an object', value);
  const { read, write } = value as HostMemoryRates;
  checkRate(read, `${where}.read`);
  checkRate(write, `${where}.write`);
}

/** Checks a description from a file. @throws HeadraceError `ERR_MACHINE` naming the place */
export function checkMachine(value: unknown): MachineDescription {
  if (value === null || typeof value !== 'object') throw wrong('the file', 'an object', value);
  const m = value as MachineDescription;
  if (typeof m.name !== 'string' || m.name === '') throw wrong('name', 'a text', m.name);
  checkNumber(m.gpus, 'gpus', 0, true);
  if (m.gpus > 30) throw wrong('gpus', 'at most 30 per rank', m.gpus);
  if (m.gpus > 0) checkNumber(m.gpuMemory, 'gpuMemory', 512);
  checkNumber(m.hostMemory, 'hostMemory', 512);
  checkNumber(m.workers, 'workers', 1, true);
  if (m.scriptWorkers !== undefined) checkNumber(m.scriptWorkers, 'scriptWorkers', 0, true);
  if (m.computeStreams !== undefined) checkNumber(m.computeStreams, 'computeStreams', 1, true);
  checkLink(m.h2d, 'h2d');
  checkLink(m.d2h, 'd2h');
  if (m.hostCopies !== undefined) checkRates(m.hostCopies, 'hostCopies');
  if (m.bothWays !== undefined) checkRate(m.bothWays, 'bothWays');
  if (m.d2d !== null) checkLink(m.d2d, 'd2d');
  m.pairs?.forEach((pair, i) => {
    checkNumber(pair.from, `pairs[${i}].from`, 0, true);
    checkNumber(pair.to, `pairs[${i}].to`, 0, true);
    if (pair.link !== null) checkLink(pair.link, `pairs[${i}].link`);
  });
  if (m.network !== undefined) checkLink(m.network, 'network');
  if (m.lanes !== undefined) checkNumber(m.lanes, 'lanes', 2, true);
  if (m.ranksPerHost !== undefined) checkNumber(m.ranksPerHost, 'ranksPerHost', 1, true);
  for (const key of ['command', 'wake', 'launch'] as const)
    checkNumber(m.engine?.[key], `engine.${key}`, 0);
  if (m.kernels === null || typeof m.kernels !== 'object')
    throw wrong('kernels', 'an object', m.kernels);
  for (const [name, model] of Object.entries({ ...m.kernels, ...m.hostKernels })) {
    compileTime(model, `machine description: kernel '${name}'`);
    shareOf(model, `machine description: kernel '${name}'`);
  }
  return m;
}

/** The link over which GPU `to` copies from GPU `from`, or null. */
function pairLink(m: MachineDescription, to: number, from: number): Link | null {
  const special = m.pairs?.find((p) => p.from === from && p.to === to);
  return special === undefined ? m.d2d : special.link;
}

/** The link of a queue that copies, or null. */
export function linkOf(machine: MachineDescription, queue: QueueInfo): Link | null {
  switch (queue.kind) {
    case 'h2d':
      return machine.h2d;
    case 'd2h':
      return machine.d2h;
    case 'peer':
      return pairLink(machine, queue.space - 1, queue.peer - 1);
    default:
      return null;
  }
}

/** Memory spaces of a machine: the host, then its GPUs. */
export function spacesOf(m: MachineDescription): SpaceInfo[] {
  const gpus = Array.from({ length: m.gpus }, (_, g) => ({
    kind: 'simulated' as const,
    name: `gpu ${g}`,
    bytes: m.gpuMemory,
  }));
  return [{ kind: 'host', name: 'host', bytes: m.hostMemory }, ...gpus];
}

/** Queues of a machine in the order of the native backend: workers, then per GPU compute, h2d, d2h, peers, then script workers and lanes. */
export function queuesOf(m: MachineDescription): QueueInfo[] {
  const list: QueueInfo[] = Array.from({ length: m.workers }, () => ({
    kind: 'worker' as const,
    space: HOST,
    peer: NO_SPACE,
  }));
  for (let space = FIRST_GPU; space <= m.gpus; space++) {
    for (let i = 0; i < (m.computeStreams ?? 1); i++)
      list.push({ kind: 'compute', space, peer: NO_SPACE });
    list.push({ kind: 'h2d', space, peer: NO_SPACE }, { kind: 'd2h', space, peer: NO_SPACE });
    for (let peer = FIRST_GPU; peer <= m.gpus; peer++) {
      if (peer !== space && pairLink(m, space - 1, peer - 1) !== null)
        list.push({ kind: 'peer', space, peer });
    }
  }
  for (let i = 0; i < (m.scriptWorkers ?? 0); i++)
    list.push({ kind: 'script', space: HOST, peer: NO_SPACE });
  for (let i = 0; i < (m.lanes ?? 0); i++) list.push({ kind: 'lane', space: HOST, peer: NO_SPACE });
  return list;
}
