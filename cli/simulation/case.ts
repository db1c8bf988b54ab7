// A simulated case: machine, data, tasks, faults and adversary as plain JSON, so that a failing one can be printed,
// kept in a file, shrunk and replayed (`headrace simulate --replay FILE`).
// Invariant: a case names everything that happens; running it twice gives the same run.
import type { AdversaryOptions } from '../../devices/simulated/adversary.js';
import type { Fault } from '../../devices/simulated/faults.js';
import { Random } from '../../devices/simulated/random.js';

/** Access modes as in trace/format.ts: 1 read, 2 write, 3 read and write. */
export type CaseFlow = readonly [datum: number, mode: 1 | 2 | 3];

export interface CaseTask {
  readonly flows: readonly CaseFlow[];
  /** A kernel for GPUs (or workers without GPUs), a kernel for workers, or a JavaScript body. */
  readonly body: 'kernel' | 'host' | 'script';
  /** GPU asked for, counted from 0. */
  readonly device?: number;
  readonly priority?: number;
  /** Earlier tasks that it follows without data. */
  readonly after?: readonly number[];
  /** Length in virtual microseconds. */
  readonly micros: number;
}

export interface CaseDatum {
  /** Size in allocation units of 512 bytes. */
  readonly units: number;
  /** It has a value from the start; otherwise a task writes it first. */
  readonly initial: boolean;
  /** GPU advised for its writers. */
  readonly home?: number;
}

export interface SimulatedCase {
  readonly seed: number;
  readonly gpus: number;
  readonly gpuUnits: number;
  readonly hostUnits: number;
  /** Host memory may not suffice: running out of it is a proper end. */
  readonly shortOfHost: boolean;
  readonly workers: number;
  readonly streams: number;
  readonly peers: boolean;
  readonly window: number;
  readonly runAhead: number;
  /** Rings are as small as they may be. */
  readonly smallRings: boolean;
  /** Some task fits on no device it may run on: it must be refused. */
  readonly tooLarge: boolean;
  /** Poison freed blocks. */
  readonly checked: boolean;
  readonly data: readonly CaseDatum[];
  readonly tasks: readonly CaseTask[];
  /** Data read back after the run. */
  readonly reads: readonly number[];
  readonly faults: readonly Fault[];
  /** Cancel the run after this many insertions. */
  readonly cancelAt?: number;
  readonly adversary: AdversaryOptions;
}

/** What a random case may contain. */
export interface CaseOptions {
  readonly tasks?: number;
  readonly gpus?: number;
  readonly faults?: boolean;
  /** Device memory just enough for the largest task. */
  readonly tight?: boolean;
  /** Device memory not even enough for the largest task. */
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
      return [{ kind: 'deviceLost', at, space: r.between(1, gpus) }];
  }
}

/** Bytes, in units, of the largest task that must fit on a device. */
export function largestTask(
  data: readonly CaseDatum[],
  tasks: readonly CaseTask[],
  anywhere = false,
): number {
  let largest = 1;
  for (const task of tasks) {
    if (task.body !== 'kernel' && !anywhere) continue;
    let units = 0;
    for (const [d] of task.flows) units += data[d].units;
    if (units > largest) largest = units;
  }
  return largest;
}

/** The case of a seed. Equal seeds and options give equal cases. */
export function randomCase(seed: number, options: CaseOptions = {}): SimulatedCase {
  const r = new Random(seed);
  const tooLarge = options.tooLarge === true;
  const gpus = options.gpus ?? r.between(tooLarge ? 1 : 0, 4);
  const count = options.tasks ?? r.between(1, 200);
  const data = randomData(r, r.between(1, 24)).map((d) =>
    gpus > 0 && r.chance(0.2) ? { ...d, home: r.below(gpus) } : d,
  );
  const tasks = randomTasks(r, count, data, gpus);
  const largest = largestTask(data, tasks);
  let all = 0;
  for (const d of data) all += d.units;
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
