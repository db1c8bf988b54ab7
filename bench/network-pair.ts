// The cost of a dependency between two ranks, against a plain MPI ping-pong of the same library in the same run, and
// the time of a large tile between emulated GPUs by every way.
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type RunReport, Runtime, readWrite, task } from '../index.js';
import { launchOf } from '../native/launch.js';
import { loadMpi, startMpi } from '../native/mpi.js';
import { commandLine } from './command-line.js';
import { median, WARM_RUNS } from './harness.js';
import { relay } from './network-relay.js';
import { underMpirun } from './ranks.js';

const SMALL = 8;
const LARGE = 16 * 2 ** 20;
/** Too large for an announcement, so it goes the way of a large tile. */
const WARM = 32_768;
const SMALL_STEPS = 2000;
const WARM_STEPS = 400;
const REPEATS = 3;
/** Iterations of a play. */
const PLAYED = 10;
const LARGE_STEPS = 40;

/** What rank 0 prints: times in seconds, rates in bytes per second; `raw` is plain MPI of the same library. */
export interface PairResult {
  readonly library: string;
  readonly small: {
    readonly rawSeconds: number;
    readonly oneWaySeconds: number;
    readonly withInsertionSeconds: number;
    /** Of a plan that is played. */
    readonly playedSeconds: number;
  };
  readonly large: Readonly<Record<'direct' | 'ipc' | 'staged', { readonly shareOfRaw: number }>>;
}

async function measure(): Promise<void> {
  const { rank } = launchOf();
  const addon = loadMpi();
  const facts = await startMpi(addon);
  const raw = await addon.measure(SMALL, 20_000, 'host');
  const rawHost = LARGE / (await addon.measure(LARGE, 100, 'host'));
  const rawRate = LARGE / (await addon.measure(LARGE, 100, 'emulated'));
  const result: Record<string, unknown> = {
    // Without the details of its build.
    library: facts.library.split(/[,\n]/)[0]?.replace(/\s+/g, ' '),
    cores: availableParallelism(),
    small: { bytes: SMALL, rawSeconds: raw, ...(await small(raw)) },
  };
  const ways: Record<string, unknown> = {
    rawBytesPerSecond: rawRate,
    rawHostBytesPerSecond: rawHost,
  };
  for (const comm of ['direct', 'ipc', 'staged'] as const) ways[comm] = await large(comm, rawRate);
  result['large'] = { bytes: LARGE, ...ways };
  if (rank === 0) process.stdout.write(`${JSON.stringify(result)}\n`);
}

/** A token goes back and forth between two ranks: each step is one dependency on the other rank. */
async function small(raw: number): Promise<object> {
  const runtime = await Runtime.create({ workers: 1, gpus: 0 });
  await relay(runtime, SMALL, SMALL_STEPS, WARM_RUNS);
  const seconds = await relay(runtime, SMALL, SMALL_STEPS, REPEATS);
  const pass = task({ name: 'pass', flows: { x: readWrite('f64') }, kernel: 'empty' });
  const x = runtime.data(new Float64Array(SMALL / 8), { rank: 0 });
  const reports: RunReport[] = [];
  for (let repeat = -WARM_RUNS; repeat < REPEATS; repeat++) {
    const run = runtime.run((graph) => {
      for (let i = 0; i < SMALL_STEPS; i++) graph.insert(pass, { x }, { rank: i & 1 });
    });
    const report = await run;
    if (repeat >= 0) reports.push(report);
  }
  const [report] = reports;
  const plan = await runtime.plan((graph) => {
    for (let i = 0; i < SMALL_STEPS; i++) graph.insert(pass, { x }, { rank: i & 1 });
  });
  await plan.run({ times: WARM_RUNS });
  const played = await plan.run({ times: PLAYED });
  await x.read();
  await runtime.close();
  const dependencies = (report.network?.sends ?? 0) + (report.network?.receives ?? 0);
  const messages = (report.network?.messagesSent ?? 0) + (report.network?.messagesReceived ?? 0);
  return {
    oneWaySeconds: seconds,
    timesRaw: seconds / raw,
    withInsertionSeconds: median(reports.map((each) => each.seconds)) / SMALL_STEPS,
    playedSeconds: played.seconds / (PLAYED * SMALL_STEPS),
    messagesPerDependency: messages / dependencies,
    payloadBytesPerDependency: (report.network?.sentBytes ?? 0) / (report.network?.sends ?? 1),
  };
}

/** A tile of 16 MiB goes back and forth between emulated GPUs; each step is a task without work. */
async function large(comm: 'direct' | 'ipc' | 'staged', rawRate: number): Promise<object> {
  const runtime = await Runtime.create({
    workers: 1,
    gpus: 1,
    gpuMemory: '256MiB',
    hostMemory: '512MiB',
    comm,
  });
  // Compiles all code on the way.
  await relay(runtime, WARM, WARM_STEPS, 2);
  const rate = LARGE / (await relay(runtime, LARGE, LARGE_STEPS, REPEATS));
  await runtime.close();
  return { bytesPerSecond: rate, shareOfRaw: rate / rawRate };
}

if (launchOf().size === 2) await measure();
else {
  const usage = `usage: node dist/bench/network-pair.js [options]

What a dependency and a large tile cost between two ranks; one JSON object. It starts itself under mpirun.

  --launcher PROGRAM    what starts the ranks (mpirun)
  --help                this text
`;
  const values = commandLine(usage, { launcher: { type: 'string' } });
  process.exitCode = underMpirun(2, [fileURLToPath(import.meta.url)], values.launcher);
}
