// The cost of a dependency between two ranks, against a plain MPI ping-pong of the same library in the same run, and
// the time of a large tile between emulated GPUs by every way.
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Datum, Runtime, readWrite, type TaskGraph, task } from '../index.js';
import { launchOf } from '../native/launch.js';
import { loadMpi, startMpi } from '../native/mpi.js';
import { commandLine } from './command-line.js';
import { median, WARM_RUNS } from './harness.js';
import { type Holder, Relay } from './network-relay.js';
import { shortName, underMpirun } from './ranks.js';

const SMALL = 8;
const LARGE = 16 * 2 ** 20;
/** Too large for an announcement, so it goes the way of a large tile. */
const WARM = 32_768;
const SMALL_STEPS = 2000;
const WARM_STEPS = 400;
/** Each turn measures plain MPI before and after every figure: the speed of two cores and of what lies between them changes. */
const TURNS = 3;
const REPEATS = 3;
/** Runs before those that are measured, once all code is compiled. */
const FEW_RUNS = 10;
/** Runs until one is played, and until those are over that are inserted to see how long that takes. */
const UNTIL_PLAYED = 20;
/** Iterations of a play. */
const PLAYED = 10;
/** The processor of a virtual machine takes some 60 ms to come to its full speed. */
const LARGE_STEPS = 200;
/** Round trips of plain MPI. */
const RAW_SMALL = 20_000;
const RAW_LARGE = 100;

/** A figure, and its ratio to plain MPI of the same library: medians of the turns. */
export interface Compared {
  /** Seconds of a step, or bytes per second. */
  readonly value: number;
  readonly ratio: number;
}

/** What rank 0 prints. */
export interface PairResult {
  readonly library: string;
  /** Seconds of a step, and how many times that of plain MPI it is. */
  readonly small: {
    readonly oneWay: Compared;
    /** The same, but none of its tasks can be issued on one rank before the clock starts. */
    readonly behindBody: Compared;
    readonly withInsertion: Compared;
    /** The same, of a run that has come often enough to be played. */
    readonly recognised: Compared;
    /** The same, from the end of its insertion. */
    readonly again: Compared;
    /** Of a plan that is played. */
    readonly played: Compared;
  };
  /** Rates, and their shares of that of plain MPI. */
  readonly large: Readonly<Record<'direct' | 'ipc' | 'staged', Compared>>;
}

const { rank, size } = launchOf();

async function measure(): Promise<void> {
  const addon = loadMpi();
  const facts = await startMpi(addon);
  const rawSeconds: number[] = [];
  const rawRates: number[] = [];
  const raw = async (): Promise<number> => {
    rawSeconds.push(await addon.measure(SMALL, RAW_SMALL, 'host'));
    return rawSeconds.at(-1) as number;
  };
  const rawRate = async (): Promise<number> => {
    rawRates.push(LARGE / (await addon.measure(LARGE, RAW_LARGE, 'emulated')));
    return rawRates.at(-1) as number;
  };
  const small = {
    oneWay: figures(),
    behindBody: figures(),
    withInsertion: figures(),
    recognised: figures(),
    again: figures(),
    played: figures(),
  };
  const large = { direct: figures(), ipc: figures(), staged: figures() };
  for (let turn = 0; turn < TURNS; turn++) {
    const warm = turn === 0 ? WARM_RUNS : FEW_RUNS;
    await between(raw, small.oneWay, () => oneWay(warm, 'kernel'));
    await between(raw, small.behindBody, () => oneWay(warm, 'body'));
    const untilPlayed = Math.max(warm, UNTIL_PLAYED);
    await between(raw, small.withInsertion, () => chain('off', warm, 'whole'));
    await between(raw, small.recognised, () => chain('auto', untilPlayed, 'whole'));
    await between(raw, small.again, () => chain('auto', untilPlayed, 'inserted'));
    await between(raw, small.played, () => played(warm));
    for (const comm of ['direct', 'ipc', 'staged'] as const)
      await between(rawRate, large[comm], () => rateOf(comm, warm));
  }
  const result: PairResult & Record<string, unknown> = {
    library: shortName(facts.library),
    cores: availableParallelism(),
    turns: TURNS,
    rawSeconds: median(rawSeconds),
    rawBytesPerSecond: median(rawRates),
    small: {
      oneWay: compared(small.oneWay),
      behindBody: compared(small.behindBody),
      withInsertion: compared(small.withInsertion),
      recognised: compared(small.recognised),
      again: compared(small.again),
      played: compared(small.played),
    },
    large: {
      direct: compared(large.direct),
      ipc: compared(large.ipc),
      staged: compared(large.staged),
    },
  };
  if (rank === 0) process.stdout.write(`${JSON.stringify(result)}\n`);
}

/** The values of a figure, and their ratios, turn by turn. */
interface Figures {
  readonly values: number[];
  readonly ratios: number[];
}

function figures(): Figures {
  return { values: [], ratios: [] };
}

function compared({ values, ratios }: Figures): Compared {
  return { value: median(values), ratio: median(ratios) };
}

/** Notes a figure, and its ratio to the mean of plain MPI before and after it. */
async function between(
  raw: () => Promise<number>,
  into: Figures,
  figure: () => Promise<number>,
): Promise<void> {
  const before = await raw();
  const value = await figure();
  const after = await raw();
  into.values.push(value);
  into.ratios.push(value / ((before + after) / 2));
}

const pass = task({ name: 'pass', flows: { x: readWrite('f64') }, kernel: 'empty' });

/** The steps, taken in turn on the two ranks. */
function steps(x: Datum<'f64'>): (graph: TaskGraph) => void {
  return (graph) => {
    for (let i = 0; i < SMALL_STEPS; i++) graph.insert(pass, { x }, { rank: i & 1 });
  };
}

/** A token goes back and forth between two ranks: each step is one dependency on the other rank. Seconds of a step. */
async function oneWay(warm: number, holder: Holder): Promise<number> {
  const runtime = await Runtime.create({ workers: 1, gpus: 0 });
  const relay = new Relay(runtime, SMALL, holder);
  await relay.run(SMALL_STEPS, warm);
  const seconds = await relay.run(SMALL_STEPS, REPEATS);
  await runtime.close();
  return seconds;
}

/** Seconds of a step of a whole run, or from the end of its insertion. With 'auto' the runs are played in the end. */
async function chain(
  plans: 'auto' | 'off',
  warm: number,
  from: 'whole' | 'inserted',
): Promise<number> {
  const runtime = await Runtime.create({ workers: 1, gpus: 0, plans });
  const x = runtime.data(new Float64Array(SMALL / 8), { rank: 0 });
  const seconds: number[] = [];
  for (let repeat = -warm; repeat < REPEATS; repeat++) {
    let inserted = 0;
    const report = await runtime.run((graph) => {
      steps(x)(graph);
      inserted = performance.now();
    });
    const after = (performance.now() - inserted) / 1e3;
    if (repeat >= 0) seconds.push(from === 'whole' ? report.seconds : after);
  }
  await runtime.close();
  return median(seconds) / SMALL_STEPS;
}

/** Seconds of a step of a plan that is played. */
async function played(warm: number): Promise<number> {
  const runtime = await Runtime.create({ workers: 1, gpus: 0 });
  const x = runtime.data(new Float64Array(SMALL / 8), { rank: 0 });
  const plan = await runtime.plan(steps(x));
  await plan.run({ times: warm });
  const { seconds } = await plan.run({ times: PLAYED });
  await runtime.close();
  return seconds / (PLAYED * SMALL_STEPS);
}

/** A tile of 16 MiB goes back and forth between emulated GPUs; each step is a task without work. Bytes per second. */
async function rateOf(comm: 'direct' | 'ipc' | 'staged', warm: number): Promise<number> {
  const runtime = await Runtime.create({
    workers: 1,
    gpus: 1,
    gpuMemory: '256MiB',
    hostMemory: '512MiB',
    comm,
  });
  // Compiles all code on the way.
  await new Relay(runtime, WARM).run(WARM_STEPS, warm);
  const seconds = await new Relay(runtime, LARGE).run(LARGE_STEPS, REPEATS);
  await runtime.close();
  return LARGE / seconds;
}

if (size === 2) await measure();
else {
  const usage = `usage: node dist/bench/network-pair.js [options]

What a dependency and a large tile cost between two ranks; one JSON object. It starts itself under mpirun.

  --launcher PROGRAM    what starts the ranks (mpirun)
  --help                this text
`;
  const values = commandLine(usage, { launcher: { type: 'string' } });
  process.exitCode = underMpirun(2, [fileURLToPath(import.meta.url)], values.launcher);
}
