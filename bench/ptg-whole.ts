// The whole of a parameterised Cholesky factorisation on simulated ranks with 8 GPUs each, in one process: what the engines of all ranks
// and their simulated machine take together. The ranks insert in turn while their windows have room. With `--inserted` each rank
// inserts all of its tasks at once, so its window must hold them with their movements.
import { cholesky, choleskyGraph } from '../algorithms/index.js';
import { SimulatedBackend } from '../devices/simulated/machine/backend.js';
import { presets } from '../devices/simulated/machine/presets.js';
import { World } from '../devices/simulated/machine/world.js';
import { SimulatedNetwork } from '../devices/simulated/network/network.js';
import { type Graph, Runtime, range, TiledMatrix, task, write } from '../scheduler/index.js';
import { commandLine, positive } from './command-line.js';

const GPUS = 8;
const TILE = 2048;
/** Commands that a queue has room for. A rank has some 80 queues, whose rings come into its memory as they are used. */
const RING = 256;
const init = task({ name: 'init', flows: { a: write('f64') }, kernel: 'init', gpuKernel: false });

const usage = `usage: node dist/bench/ptg-whole.js [options]

A tiled Cholesky factorisation on simulated ranks with ${GPUS} GPUs each, all in this process; prints tasks, processor time
and memory as JSON.

  --ranks N      ranks (16)
  --tiles N      tiles along the diagonal (64)
  --window N     rows of the window of a rank, for tasks and movements; with --inserted for all of them (16384)
  --wake N       microseconds from an event to the turn of an engine that sleeps (50, as measured); longer ones make a faster simulation
                 of a slower machine
  --progress     a line every 20 s on stderr
  --inserted     the program is inserted, pruned, in place of the parameterised graph
  --help         this text
`;
const values = commandLine(usage, {
  ranks: { type: 'string', default: '16' },
  tiles: { type: 'string', default: '64' },
  window: { type: 'string', default: '16384' },
  wake: { type: 'string', default: '50' },
  progress: { type: 'boolean', default: false },
  inserted: { type: 'boolean', default: false },
});
const ranks = positive(usage, 'ranks', values.ranks);
const tiles = positive(usage, 'tiles', values.tiles);
const window = positive(usage, 'window', values.window);
const wake = positive(usage, 'wake', values.wake);

function openRanks(): Runtime[] {
  const preset = presets['h200-8'];
  const engine = { ...preset.engine, wake: wake / 1e6 };
  const machine = { ...preset, gpus: GPUS, workers: 1, lanes: 32, engine };
  const world = new World();
  const backends = Array.from(
    { length: ranks },
    () => new SimulatedBackend({ machine, world, story: false, ringRecords: RING }),
  );
  const { network: link = { bandwidth: 50e9, latency: 2e-6 } } = machine;
  const { adversary } = backends[0];
  const { ports } = new SimulatedNetwork(world, backends, { link, adversary });
  return backends.map((backend, rank) =>
    Runtime.over(backend, { workers: 1, window }, ports[rank]),
  );
}

/** Tiles begin in host memory. */
function insertValues(graph: Graph, A: TiledMatrix<'f64'>): void {
  const lines = range(0, tiles);
  for (const j of A.ownColumns(graph.rank, lines))
    for (const i of A.ownRows(graph.rank, lines)) if (i >= j) graph.insert(init, { a: A.at(i, j) });
}

const states: { readonly retired: number }[] = [];
const runs = openRanks().map((runtime) => {
  const rows = tiles * TILE;
  const A = new TiledMatrix(runtime, 'f64', { rows, tile: TILE, lower: true, name: 'A' });
  return runtime.run(
    (graph) => {
      states.push(graph.state);
      insertValues(graph, A);
      if (values.inserted) cholesky(graph, A);
      else return choleskyGraph.insertInTurns(graph, { A }).then(() => {});
    },
    { pruned: true },
  ).done;
});
const line = (): void => {
  const retired = states.reduce((sum, state) => sum + state.retired, 0);
  const { rss } = process.memoryUsage();
  process.stderr.write(
    `${process.uptime().toFixed(0)} s: ${retired} tasks and movements, ${(rss / 2 ** 20).toFixed(0)} MB\n`,
  );
};
const clock = values.progress ? setInterval(line, 20_000) : undefined;
await Promise.all(runs);
clearInterval(clock);
const all = process.cpuUsage();
const seconds = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1e6;
const tasks = (tiles * (tiles + 1) * (tiles + 2)) / 6;
process.stdout.write(
  `${JSON.stringify({
    ...{ ranks, gpus: GPUS, tiles, tasks, wake, inserted: values.inserted },
    seconds: seconds(all),
    microsecondsPerTask: (seconds(all) / tasks) * 1e6,
    memoryMB: process.resourceUsage().maxRSS / 1024,
  })}\n`,
);
process.exit(0);
