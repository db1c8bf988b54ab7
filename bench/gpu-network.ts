// Large tiles between two ranks with a real GPU each, by every way, beside the same bytes moved by hand in the same run:
// plain MPI_Send and MPI_Recv of device memory, and copies from memory opened by its IPC handle.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { HeadraceError, type RunReport, Runtime, read, readWrite, task } from '../index.js';
import { launchOf } from '../native/launch.js';
import { loadMpi } from '../native/mpi.js';
import { commandLine, positive } from './command-line.js';
import { median } from './harness.js';
import { noLauncher } from './ranks.js';

const usage = `usage: node dist/bench/gpu-network.js [options]

Tiles between two ranks with an NVIDIA GPU each; one JSON object. It starts itself under mpirun.

  --launcher PROGRAM    what starts the ranks (mpirun)
  --mib N               MiB of a tile (128)
  --ways LIST           ways to measure (direct,ipc,staged)
  --help                this text
`;
const values = commandLine(usage, {
  launcher: { type: 'string', default: 'mpirun' },
  mib: { type: 'string', default: '128' },
  ways: { type: 'string', default: 'direct,ipc,staged' },
});
type Way = 'direct' | 'ipc' | 'staged';
const ways = values.ways.split(',') as Way[];
const bytes = positive(usage, 'mib', values.mib) * 2 ** 20;
/** Tiles under way at once. */
const TILES = 8;
const ROUNDS = 24;
const HOPS = 20;
/** Hops of 8 bytes. */
const LATENCY_HOPS = 2000;
const REPEATS = 3;
const GIGA = 1e9;

const touch = task({ name: 'touch', flows: { x: readWrite('f64') }, kernel: 'empty' });
const look = task({ name: 'look', flows: { x: read('f64') }, kernel: 'empty' });
const fill = task({
  name: 'fill',
  flows: { x: readWrite('f64') },
  params: { n: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});

/** GB/s of tiles written on rank 0 and read on rank 1, many at once; of one that goes to and fro; and us per hop of 8 bytes. */
async function measure(comm: Way): Promise<object> {
  const runtime = await Runtime.create({
    driver: 'cuda',
    gpus: 1,
    workers: 1,
    gpuMemory: TILES * bytes * 6,
    hostMemory: TILES * bytes * 2,
    comm,
  });
  const n = bytes / 8;
  const tiles = Array.from({ length: TILES }, (_, i) =>
    runtime.data(new Float64Array(n), { name: `tile ${i}`, rank: 0, device: 0 }),
  );
  const streamed = (rounds: number): PromiseLike<RunReport> =>
    runtime.run((graph) => {
      for (let round = 0; round < rounds; round++) {
        for (const x of tiles) graph.insert(fill, { x, n, value: round }, { rank: 0, device: 0 });
        for (const x of tiles) graph.insert(look, { x }, { rank: 1, device: 0 });
      }
    });
  const [token] = tiles as [(typeof tiles)[0]];
  const word = runtime.data(new Float64Array(1), { name: 'word', rank: 0, device: 0 });
  const hops = (x: typeof word, count: number): PromiseLike<RunReport> =>
    runtime.run((graph) => {
      for (let i = 0; i < count; i++) graph.insert(touch, { x }, { rank: i & 1, device: 0 });
    });
  await streamed(1);
  const rates: number[] = [];
  let moved: RunReport['bytes'] | undefined;
  for (let i = 0; i < REPEATS; i++) {
    const report = await streamed(ROUNDS);
    rates.push((TILES * ROUNDS * bytes) / report.seconds / GIGA);
    moved = report.bytes;
  }
  await hops(token, 3);
  const there = await hops(token, HOPS);
  const latencies: number[] = [];
  for (let i = 0; i < REPEATS; i++) {
    const report = await hops(word, LATENCY_HOPS);
    latencies.push((report.seconds / LATENCY_HOPS) * 1e6);
  }
  await runtime.close();
  return {
    gigabytesPerSecond: median(rates),
    toAndFro: (HOPS * bytes) / there.seconds / GIGA,
    microsecondsPerHop: median(latencies),
    bytes: moved,
  };
}

async function rank(): Promise<void> {
  const { rank: me } = launchOf();
  const result: Record<string, unknown> = { bytes, tilesAtOnce: TILES };
  let isDirect = false;
  for (const way of ways) {
    try {
      result[way] = await measure(way);
      isDirect ||= way === 'direct';
    } catch (error) {
      if (!(error instanceof HeadraceError)) throw error;
      result[way] = { unavailable: error.message };
    }
  }
  const addon = loadMpi();
  result['library'] = addon.describe().library;
  const rate = async (how: 'gpu' | 'ipc'): Promise<number> =>
    bytes / (await addon.measure(bytes, 50, how)) / GIGA;
  result['raw'] = {
    ...(isDirect ? { direct: await rate('gpu') } : {}),
    ipc: await rate('ipc'),
    // Without a kernel between two messages.
    ...(isDirect
      ? { microsecondsPerHop: (await addon.measure(8, LATENCY_HOPS, 'gpu')) * 1e6 }
      : {}),
  };
  // The bytes that rank 1 receives give the rate of a way.
  if (me === 1) process.stdout.write(`${JSON.stringify(result)}\n`);
}

if (launchOf().size === 2) await rank();
else {
  const isOpen = /Open MPI|OpenRTE/.test(
    spawnSync(values.launcher, ['--version'], { encoding: 'utf8' }).stdout ?? '',
  );
  const options = isOpen ? ['--allow-run-as-root', '--oversubscribe', '--timeout', '150'] : [];
  const { status, error } = spawnSync(
    values.launcher,
    [
      ...options,
      ...['--bind-to', 'none', '-n', '2', process.execPath, fileURLToPath(import.meta.url)],
      ...process.argv.slice(2),
    ],
    { stdio: 'inherit', env: { ...process.env, MPIEXEC_TIMEOUT: '150' } },
  );
  if (error !== undefined) process.stderr.write(noLauncher(values.launcher));
  process.exitCode = status ?? 1;
}
