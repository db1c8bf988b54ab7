// `headrace doctor` under a launcher of several ranks: they join as a program does, and rank 0 gets the facts of all. It
// groups them by host.
//
// The messages are JSON. A rank asks rank 0 for its time some times, sends its facts, and leaves when rank 0 has all.
import { hostname } from 'node:os';
import { firstGpuOf, launchOf } from '../devices/launch.js';
import { openNativeBackend } from '../devices/native/backend.js';
import type { NativeNetwork } from '../devices/native/network.js';
import { openNativeNetwork } from '../devices/native/open-network.js';
import { type ClockOffset, clockOffset } from '../devices/network/clock-offset.js';
import { ownCores } from '../scheduler/program/own-cores.js';
import { probeNative } from './doctor-probe.js';
import { formatSeconds } from './format.js';

/** The space of a rank's first GPU. */
const GPU = 1;
/** Measurements of a rank's clock; the one with the smallest error counts. */
const SAMPLES = 32;

/** The facts of one rank. */
interface RankFacts {
  readonly rank: number;
  readonly host: string;
  /** Ranks of this host, this one included. */
  readonly neighbours: readonly number[];
  readonly cores: number;
  readonly driver: string;
  /** Names of the GPUs that this rank sees, real ones only: UUIDs where the driver has them. */
  readonly gpus: readonly string[];
  /** The one that it takes with `gpus: 1`. */
  readonly gpu: string | undefined;
  /** Neighbours whose GPU memory it opens. */
  readonly mapped: readonly number[];
  /** Neighbours into whose memory it writes short letters. */
  readonly mailed: readonly number[];
  /** MPI takes the memory of its GPU. */
  readonly direct: boolean;
  readonly problems: { readonly direct: string; readonly ipc: string };
  readonly clock: ClockOffset;
}

/** One host of the launch, in the form promised to programs (docs/network.md). */
interface HostFacts {
  readonly name: string;
  readonly ranks: readonly number[];
  /** Per rank. */
  readonly cores: readonly number[];
  /** GPUs that ranks of this host see. */
  readonly gpus: number;
  /** GPUs for each rank if they divide them evenly; 0: ranks have to share, or there is none. */
  readonly gpusPerRank: number;
  /** Lists of ranks that take the same GPU. */
  readonly shared: readonly (readonly number[])[];
  /** `ipc`: every rank opens the GPU memory of every other. `direct`: MPI takes GPU memory on every rank. */
  readonly ways: { readonly ipc: boolean; readonly direct: boolean; readonly staged: true };
  /** How short messages go between its ranks: through memory if every rank opens that of every other. */
  readonly letters: 'memory' | 'mpi';
  /** Why a way is absent; '' otherwise. */
  readonly problems: { readonly direct: string; readonly ipc: string };
  /** Per rank: the clock of rank 0 less its own, and the bound of the error, in nanoseconds. */
  readonly clocks: readonly { readonly offset: number; readonly error: number }[];
}

/** The facts about a launch, on rank 0. */
export interface LaunchFacts {
  readonly launcher: string;
  readonly ranks: number;
  readonly library: string;
  readonly threadLevel: string;
  readonly gpuAware: boolean;
  /** The ways were examined with GPUs of this driver. */
  readonly driver: string;
  readonly hosts: readonly HostFacts[];
}

type Message =
  | { readonly kind: 'ask'; readonly at: number }
  | { readonly kind: 'time'; readonly asked: number; readonly there: number }
  | { readonly kind: 'facts'; readonly facts: RankFacts }
  | { readonly kind: 'leave' };

const text = new TextDecoder();

/** Sends and takes messages until `isOver`; throws when a rank is gone. */
async function converse(
  port: NativeNetwork,
  take: (from: number, message: Message) => void,
  isOver: () => boolean,
): Promise<void> {
  const sink = {
    message: (from: number, bytes: Uint8Array): void =>
      take(from, JSON.parse(text.decode(bytes)) as Message),
    departed: () => {},
    came: () => {},
    lost: (rank: number): void => {
      throw new Error(`rank ${rank} is gone`);
    },
  };
  while (!isOver()) {
    port.poll(sink);
    port.publish();
    await new Promise(setImmediate);
  }
}

function post(port: NativeNetwork, rank: number, message: Message): void {
  port.post(rank, new TextEncoder().encode(JSON.stringify(message)));
}

/** Measures this rank's clock against that of rank 0, sends the facts, and waits for the permission to leave. */
async function tell(port: NativeNetwork, now: () => number, facts: RankFacts): Promise<void> {
  let clock: ClockOffset = { at: 0, offset: 0, error: Number.POSITIVE_INFINITY };
  let left = SAMPLES;
  let mayLeave = false;
  const go = (): void => {
    if (left-- > 0) post(port, 0, { kind: 'ask', at: now() });
    else post(port, 0, { kind: 'facts', facts: { ...facts, clock } });
  };
  go();
  await converse(
    port,
    (_from, message) => {
      if (message.kind === 'leave') mayLeave = true;
      if (message.kind !== 'time') return;
      const measured = clockOffset(message.asked, message.there, now());
      if (measured.error < clock.error) clock = measured;
      go();
    },
    () => mayLeave,
  );
  port.publish();
}

/** Answers the others and returns the facts of all ranks. */
async function gather(
  port: NativeNetwork,
  now: () => number,
  own: RankFacts,
): Promise<RankFacts[]> {
  const all: RankFacts[] = [own];
  await converse(
    port,
    (from, message) => {
      if (message.kind === 'ask')
        post(port, from, { kind: 'time', asked: message.at, there: now() });
      if (message.kind === 'facts') all[from] = message.facts;
    },
    () => all.filter(() => true).length === port.size,
  );
  for (let rank = 1; rank < port.size; rank++) post(port, rank, { kind: 'leave' });
  port.publish();
  return all;
}

/** The names of the real GPUs that this process sees, and their driver. */
async function visibleGpus(): Promise<{ driver: string; gpus: string[] }> {
  const probe = await probeNative(false);
  const real = 'absent' in probe ? [] : probe.drivers.filter(({ name }) => name !== 'emulated');
  const driver = real.find(({ found, devices }) => found && devices > 0);
  if ('absent' in probe || driver === undefined) return { driver: 'emulated', gpus: [] };
  const gpus = Array.from({ length: driver.devices }, (_, i) =>
    driver.name === 'cuda' ? (probe.cuda.devices[i]?.uuid ?? `${i}`) : `${driver.name} GPU ${i}`,
  );
  return { driver: driver.name, gpus };
}

/** Joins the ranks of this launch, all of which call it. Resolves on rank 0 to the facts, on the others to undefined. */
export async function examineLaunch(): Promise<LaunchFacts | undefined> {
  const launch = launchOf();
  const visible = await visibleGpus();
  const first = firstGpuOf(visible.driver, 1);
  const driver = first < visible.gpus.length ? visible.driver : 'emulated';
  const backend = openNativeBackend({
    driver,
    gpus: 1,
    firstGpu: driver === 'emulated' ? 0 : first,
    gpuBytes: 1 << 20,
    hostBytes: 1 << 20,
    workers: 1,
    computeStreams: 1,
    ringRecords: 64,
    checked: false,
  });
  const port = await openNativeNetwork({
    spaces: backend.exported(),
    direct: 'proven',
    flush: 'auto',
    doorbell: backend.doorbell(),
    chunkBytes: 65_536,
    crowded: true,
    mailboxes: true,
  });
  const neighbours = port.neighbours();
  const others = neighbours.filter((rank) => rank !== port.rank);
  const own: RankFacts = {
    rank: port.rank,
    host: hostname(),
    neighbours,
    cores: ownCores(),
    driver,
    gpus: visible.gpus,
    gpu: driver === 'emulated' ? undefined : visible.gpus[first],
    mapped: others.filter((rank) => port.mappable(rank, GPU)),
    mailed: others.filter((rank) => port.writesTo(rank)),
    direct: port.reachable(port.rank, GPU),
    problems: { direct: port.directProblem, ipc: port.mappingProblem },
    clock: { at: 0, offset: 0, error: 0 },
  };
  const now = (): number => backend.now();
  let all: RankFacts[] | undefined;
  if (port.rank === 0) all = await gather(port, now, own);
  else await tell(port, now, own);
  await port.close();
  backend.close();
  if (all === undefined) return undefined;
  return {
    launcher: launch.pmi === undefined ? 'mpirun' : `srun --mpi=${launch.pmi}`,
    ranks: port.size,
    library: (port.library.split(',')[0] ?? '').replace('\t', ' '),
    threadLevel: port.threadLevel,
    gpuAware: port.gpuAware,
    driver: all.every((each) => each.driver === driver) ? driver : 'mixed',
    hosts: byHost(all),
  };
}

function byHost(all: readonly RankFacts[]): HostFacts[] {
  // Ranks that share neither a host nor its process namespace have different first neighbours.
  const leaders = [...new Set(all.map(({ neighbours }) => neighbours[0]))];
  return leaders.map((leader) => {
    const here = all.filter(({ neighbours }) => neighbours[0] === leader);
    const gpus = new Set(here.flatMap((each) => each.gpus));
    const taken = [...new Set(here.map(({ gpu }) => gpu))].filter((gpu) => gpu !== undefined);
    const reachAll = (reached: (rank: RankFacts) => readonly number[]): boolean =>
      here.length > 1 && here.every((rank) => reached(rank).length === here.length - 1);
    const ways = {
      ipc: reachAll(({ mapped }) => mapped),
      direct: here.every(({ direct }) => direct),
      staged: true as const,
    };
    const problem = (way: 'direct' | 'ipc'): string =>
      (!ways[way] && here.map(({ problems }) => problems[way]).find((each) => each !== '')) || '';
    return {
      name: here[0].host,
      ranks: here.map(({ rank }) => rank),
      cores: here.map(({ cores }) => cores),
      gpus: gpus.size,
      gpusPerRank: Math.floor(gpus.size / here.length),
      shared: taken
        .map((gpu) => here.filter((each) => each.gpu === gpu).map(({ rank }) => rank))
        .filter((ranks) => ranks.length > 1),
      ways,
      letters: reachAll(({ mailed }) => mailed) ? 'memory' : 'mpi',
      problems: {
        direct: problem('direct'),
        ipc: here.length > 1 ? problem('ipc') : 'one rank only',
      },
      clocks: here.map(({ clock: { offset, error } }) => ({ offset, error })),
    };
  });
}

/** `0-3, 8` */
function ranges(numbers: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < numbers.length; i++) {
    const begin = numbers[i];
    while (numbers[i + 1] === numbers[i] + 1) i++;
    parts.push(begin === numbers[i] ? `${begin}` : `${begin}-${numbers[i]}`);
  }
  return parts.join(', ');
}

const seconds = (nanoseconds: number): string => formatSeconds(Math.abs(nanoseconds) / 1e9);

/** A line of the report. */
interface Line {
  readonly name: string;
  readonly state: 'ok' | 'absent';
  readonly found: string;
}

/** The report about a launch. */
export function describeLaunch(facts: LaunchFacts): Line[] {
  const { launcher, ranks, library, threadLevel, gpuAware, driver, hosts } = facts;
  const plural = (count: number, word: string): string =>
    `${count} ${word}${count === 1 ? '' : 's'}`;
  const lines: Line[] = [
    {
      name: 'MPI',
      state: 'ok',
      found: `${library}, thread level ${threadLevel}, ${gpuAware ? 'claims to take' : 'takes no'} device pointers`,
    },
    {
      name: 'launch',
      state: 'ok',
      found: `${plural(ranks, 'rank')} on ${plural(hosts.length, 'host')} by ${launcher}`,
    },
  ];
  for (const host of hosts) {
    const { ways, problems, clocks } = host;
    const cores = [...new Set(host.cores)].sort((a, b) => a - b).join(' to ');
    const gpus = host.gpus === 0 ? 'no GPU' : `${plural(host.gpusPerRank, 'GPU')} of ${host.gpus}`;
    lines.push({
      name: `host ${host.name}`,
      state: host.shared.length > 0 || (host.gpus > 0 && host.gpusPerRank === 0) ? 'absent' : 'ok',
      found: `rank ${ranges(host.ranks)}; per rank ${cores} core${cores === '1' ? '' : 's'}, ${gpus}${host.shared
        .map((each) => `; rank ${ranges(each)} take the same GPU`)
        .join('')}`,
    });
    const way = (name: 'ipc' | 'direct'): string =>
      ways[name] ? name : `no ${name}${problems[name] === '' ? '' : ` (${problems[name]})`}`;
    lines.push({
      name: '  ways',
      state: 'ok',
      found: `${way('ipc')}, ${way('direct')}, staged${driver === 'emulated' ? '; emulated GPUs' : ''}; letters ${host.letters === 'memory' ? 'through memory' : 'by MPI'}`,
    });
    lines.push({
      name: '  clocks',
      state: 'ok',
      found: `within ${seconds(Math.max(...clocks.map(({ offset }) => Math.abs(offset))))} of rank 0, known to ${seconds(Math.max(...clocks.map(({ error }) => error)))}`,
    });
  }
  return lines;
}
