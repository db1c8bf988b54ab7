// A simulated case: machine, data, tasks, faults and adversary as plain JSON, so that a failing one can be printed,
// kept in a file, shrunk and replayed (`headrace simulate --replay FILE`).
// Invariant: a case names every event; running it twice gives the same run.

import type { SpaceId } from '../../handles.js';
import { ALIGNMENT } from '../../memory/zone.js';
import type { AdversaryOptions } from '../machine/adversary.js';
import type { Fault, NetworkFault } from '../machine/faults.js';
import { Random } from '../machine/random.js';
import type { WritesOrdering } from '../network/weak-network.js';
import { type MixedKind, mixedProgram } from './mixed-programs.js';
import type { CaseDatum, CaseFlow, CaseStep, CaseTask } from './program.js';
import { largestTask, unitsOf } from './sizes.js';

/** How ranks are connected. */
export interface CaseNetwork {
  readonly comm: 'auto' | 'direct' | 'staged';
  readonly flush: 'auto' | 'force';
  readonly inlineBytes: number;
  readonly treeFrom: number;
  readonly ranksPerHost: number;
  /** Limit of control messages of a rank under way. */
  readonly room: number;
  /** Lanes of each rank, 2 or more. */
  readonly lanes: number;
  readonly ordering: WritesOrdering;
  readonly faults: readonly NetworkFault[];
}

export interface SimulatedCase {
  readonly seed: number;
  /** Several ranks, each with a machine as described; absent: one. */
  readonly ranks?: number;
  readonly network?: CaseNetwork;
  readonly gpus: number;
  readonly gpuUnits: number;
  readonly hostUnits: number;
  /** Host memory may not suffice: running out of it is a valid end. */
  readonly shortOfHost: boolean;
  readonly workers: number;
  readonly streams: number;
  readonly peers: boolean;
  readonly window: number;
  readonly runAhead: number;
  /** Rings have their least size. */
  readonly smallRings: boolean;
  /** Some task fits on no device that it may run on: insertion must refuse it. */
  readonly tooLarge: boolean;
  /** Poison freed blocks. */
  readonly checked: boolean;
  readonly data: readonly CaseDatum[];
  readonly tasks: readonly CaseTask[];
  /** The program; without, all tasks are inserted into one run. */
  readonly steps?: readonly CaseStep[];
  /** Data read back after the run. */
  readonly reads: readonly number[];
  readonly faults: readonly Fault[];
  /** Cancel the run after this many insertions. */
  readonly cancelAt?: number;
  readonly adversary: AdversaryOptions;
}

/** The contents of random cases. */
export interface CaseOptions {
  /** Ranks; default: any number from 1 to 4. */
  readonly ranks?: number;
  /** Some cases have more than 4 ranks, up to 8. */
  readonly moreRanks?: boolean;
  /** Programs of several runs, with all actions of a program (mixed-programs.ts). */
  readonly mixed?: boolean;
  /** Actions that such programs omit. */
  readonly without?: readonly MixedKind[];
  /** No asynchronous bodies. */
  readonly synchronous?: boolean;
  readonly tasks?: number;
  readonly gpus?: number;
  readonly faults?: boolean;
  /** With faults on several ranks, host memory may be short on each. */
  readonly shortHosts?: boolean;
  /** On several ranks small versions, too, may travel as long ones do. */
  readonly announced?: boolean;
  /** On several ranks half of the tasks pull the data that they read. */
  readonly pulls?: boolean;
  /** Device memory that is just enough for the largest task. */
  readonly tight?: boolean;
  /** Device memory that is too small for the largest task. */
  readonly tooLarge?: boolean;
}

function randomData(
  r: Random,
  count: number,
): { units: number; initial: boolean; home?: number }[] {
  const same = r.chance(0.4) ? r.between(1, 4) : 0;
  return Array.from({ length: count }, () => ({
    units: same > 0 ? same : r.between(1, 6),
    initial: r.chance(0.5),
  }));
}

function randomTasks(r: Random, count: number, data: CaseDatum[], gpus: number): CaseTask[] {
  const written = data.map((d) => d.initial);
  const tasks: CaseTask[] = [];
  const longest = r.pick([1, 20, 20, 200]);
  const scripts = r.chance(0.5) ? r.pick([0.02, 0.1, 0.5]) : 0;
  const onHost = gpus > 0 ? r.pick([0, 0.1, 0.3]) : 1;
  const hot = r.chance(0.3) ? Math.max(1, data.length >> 2) : data.length;
  for (let i = 0; i < count; i++) {
    const kind = r.chance(scripts) ? 'script' : r.chance(onHost) ? 'host' : 'kernel';
    const flows: CaseFlow[] = [];
    const wanted = Math.min(r.pick([0, 1, 1, 2, 2, 3, 4]), data.length);
    while (flows.length < wanted) {
      const d = r.chance(0.7) ? r.below(hot) : r.below(data.length);
      if (flows.some(([other]) => other === d)) continue;
      const mode = written[d] ? r.pick([1, 1, 3, 3, 2] as const) : 2;
      flows.push([d, mode]);
    }
    for (const [d, mode] of flows) if (mode !== 1) written[d] = true;
    const after =
      i > 0 && r.chance(0.1)
        ? Array.from({ length: r.between(1, 3) }, () => r.below(i))
        : undefined;
    const device = kind === 'kernel' && gpus > 1 && r.chance(0.3) ? r.below(gpus) : undefined;
    const priority = r.chance(0.2) ? r.between(-2, 5) : undefined;
    tasks.push({
      flows,
      body: kind,
      micros: Math.ceil(r.real() * longest * 10) / 10,
      ...(device === undefined ? {} : { device }),
      ...(priority === undefined ? {} : { priority }),
      ...(after === undefined ? {} : { after }),
    });
  }
  return tasks;
}

function randomFaults(r: Random, gpus: number, tasks: number): Fault[] {
  const at = r.below(Math.max(1, tasks));
  switch (r.below(gpus > 0 ? 6 : 3)) {
    case 0:
      return [{ kind: 'kernel', at, code: r.between(1, 9) }];
    case 1:
      return Array.from({ length: 4 }, () => ({
        kind: 'slowHost',
        at: r.below(60),
        ns: r.real() * 1e6,
      }));
    case 2:
      return []; // host memory is short instead, see below
    case 3:
    case 4:
      return [{ kind: 'transfer', at: r.below(Math.max(1, tasks)) }];
    default:
      return [{ kind: 'deviceLost', at, space: r.between(1, gpus) as SpaceId }];
  }
}

/** The case of a seed on one rank, with so many tasks at most, without asynchronous bodies. */
function caseOfOneRank(seed: number, options: CaseOptions, most: number): SimulatedCase {
  const r = new Random(seed);
  const tooLarge = options.tooLarge === true;
  const gpus = options.gpus ?? r.between(tooLarge ? 1 : 0, 4);
  const count = options.tasks ?? r.between(1, most);
  const data = randomData(r, r.between(1, 24)).map((d) =>
    gpus > 0 && r.chance(0.2) ? { ...d, home: r.below(gpus) } : d,
  );
  const tasks = randomTasks(r, count, data, gpus);
  const largest = largestTask(data, tasks);
  const all = unitsOf(data);
  const tight = options.tight ?? r.chance(0.6);
  const gpuUnits = tooLarge
    ? Math.max(1, largest - 1)
    : tight
      ? largest + r.below(3)
      : largest + r.below(all + 8);
  const faults = options.faults === true ? randomFaults(r, gpus, count) : [];
  const shortOfHost = options.faults === true && faults.length === 0;
  let initial = 0;
  for (const d of data) if (d.initial) initial += d.units;
  return {
    seed,
    gpus,
    gpuUnits,
    smallRings: r.chance(0.3),
    tooLarge: tooLarge && largest > 1,
    hostUnits: shortOfHost ? initial + largestTask(data, tasks, true) + r.below(all) : all * 2 + 16,
    shortOfHost,
    workers: r.between(1, 3),
    streams: r.between(1, 2),
    peers: r.chance(0.8),
    window: r.pick([4, 16, 64, 256]),
    runAhead: r.pick([1, 4, 16, 64]),
    checked: r.chance(0.3),
    data,
    tasks,
    reads: data.flatMap((_, d) => (r.chance(0.3) ? [d] : [])),
    faults,
    ...(options.faults === true && r.chance(0.15) ? { cancelAt: r.between(1, count) } : {}),
    adversary: {
      seed: r.next(),
      spread: r.pick([0, 1, 4, 8]),
      holdBack: r.pick([0, 0.3, 0.8]),
      stall: r.pick([0, 0, 0.2]),
      stallNs: 1e5,
      spurious: r.pick([0, 0.1]),
    },
  };
}

/** Rank that a task runs on. */
export function rankOf(c: SimulatedCase, task: CaseTask): number {
  if (task.rank !== undefined) return task.rank;
  const flow = task.flows.find(([, mode]) => mode !== 1) ?? task.flows[0];
  return flow === undefined ? 0 : (c.data[flow[0]].owner ?? 0);
}

/** Rows that a task needs in the window at once, with its receives and forwards, several times over. */
const LEAST_WINDOW = 64;
/** Insertion does not wait for asynchronous bodies, so the window holds all tasks. */
const WHOLE_WINDOW = 2048;

function randomNetwork(
  r: Random,
  ranks: number,
  faults: boolean,
  tasks: number,
  seed: number,
): CaseNetwork {
  const list: NetworkFault[] = [];
  if (faults) {
    const rank = r.below(ranks);
    const kind = r.below(4);
    if (kind === 0) list.push({ kind: 'peerLost', rank, ns: r.real() * 1e3 * tasks });
    else if (kind === 1) list.push({ kind: 'flush', rank, at: r.below(4), waits: seed % 3 === 0 });
    else if (kind === 2)
      for (let i = 0; i < 4; i++)
        list.push({ kind: 'late', at: r.below(tasks * 2), ns: r.real() * 1e6 });
  }
  return {
    comm: r.pick(['auto', 'direct', 'direct', 'staged'] as const),
    flush: r.pick(['auto', 'force'] as const),
    inlineBytes: r.pick([0, 0, ALIGNMENT, 8 * ALIGNMENT]),
    treeFrom: r.pick([2, 3, 4]),
    ranksPerHost: r.pick([1, 1, 2, 4]),
    room: r.pick([1, 4, 1000]),
    lanes: [2, 4, 12][seed % 3],
    ordering: r.pick(['none', 'owner', 'allDevices'] as const),
    faults: list,
  };
}

/** The case with host memory for all. */
function withHostMemory(c: SimulatedCase): SimulatedCase {
  return { ...c, shortOfHost: false, hostUnits: unitsOf(c.data) * 2 + 16 };
}

function onRanks(c: SimulatedCase, r: Random, ranks: number, faults: boolean): SimulatedCase {
  const data = c.data.map((d) => ({ ...d, owner: r.below(ranks) }));
  const spread: SimulatedCase = { ...c, ranks, data };
  const asked = c.tasks.map((t) => (r.chance(0.2) ? { ...t, rank: r.below(ranks) } : t));
  // A task of a pruned run cannot follow tasks of other ranks without data.
  const tasks = asked.map((t) => {
    const { after, ...rest } = t;
    const kept = after?.filter((p) => rankOf(spread, asked[p]) === rankOf(spread, t));
    return kept === undefined || kept.length === 0 ? rest : { ...rest, after: kept };
  });
  return {
    ...spread,
    tasks,
    faults: c.faults.map((fault) => ({ ...fault, rank: r.below(ranks) })),
    window: Math.max(c.window, LEAST_WINDOW),
    network: randomNetwork(r, ranks, faults, c.tasks.length, c.seed),
  };
}

const MOST_TASKS = 200;
/** All ranks insert all tasks, so more than 4 ranks get no more tasks together than 4 do. */
const MOST_INSERTED = 4 * MOST_TASKS;

/** Ranks of a case with more than 4; undefined for most seeds. The more, the rarer. */
function moreRanks(seed: number): number | undefined {
  // Numbers of its own, so that the other cases of a seed are the same with this option and without.
  const r = new Random(seed ^ 0x3a9d7e15);
  return r.chance(0.25) ? r.pick([5, 5, 5, 5, 6, 6, 6, 7, 7, 8]) : undefined;
}

/** The case, of which half of the tasks pull. */
function withPulls(c: SimulatedCase): SimulatedCase {
  const r = new Random(c.seed ^ 0x7011ed);
  return { ...c, tasks: c.tasks.map((t) => (r.chance(0.5) ? { ...t, pulls: true } : t)) };
}

/** The case of a seed. Equal seeds and options give equal cases. */
export function randomCase(seed: number, options: CaseOptions = {}): SimulatedCase {
  const more =
    options.moreRanks === true && options.ranks === undefined ? moreRanks(seed) : undefined;
  const most = Math.min(MOST_TASKS, Math.floor(MOST_INSERTED / (more ?? 1)));
  let c = caseOfOneRank(seed, options, most);
  // Numbers of its own, so that the case of a seed on one rank does not depend on the cases for several.
  const r = new Random(seed ^ 0x5ca1ab1e);
  if (options.synchronous !== true && r.chance(0.3)) {
    const tasks = c.tasks.map((t) =>
      t.body === 'script' && r.chance(0.5) ? { ...t, body: 'async' as const } : t,
    );
    if (tasks.some((t) => t.body === 'async')) c = { ...c, tasks, window: WHOLE_WINDOW };
  }
  const ranks = options.ranks ?? more ?? r.pick([1, 1, 1, 2, 2, 3, 4]);
  if (options.mixed === true)
    c = mixedProgram(c, new Random(seed ^ 0x0ddba11), ranks, options.without);
  if (ranks === 1) return c;
  if (c.shortOfHost && options.shortHosts !== true) c = withHostMemory(c);
  let spread = onRanks(c, r, ranks, options.faults === true && r.chance(0.5));
  if (options.pulls === true) spread = withPulls(spread);
  const { network } = spread;
  if (options.announced === true || network === undefined) return spread;
  const inlineBytes = Math.max(network.inlineBytes, 2 * ALIGNMENT);
  return { ...spread, network: { ...network, inlineBytes } };
}
