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
const init = task({ name: 'init', flows: { a: write('f64') }, kernel: 'init', gpuKernel: false });

const usage = `usage: node dist/bench/ptg-whole.js [options]

A tiled Cholesky factorisation on simulated ranks with ${GPUS} GPUs each, all in this process; prints tasks, processor time
and memory as JSON.

  --ranks N      ranks (16)
  --tiles N      tiles along the diagonal (64)
  --window N     rows of the window of a rank, for tasks and movements; with --inserted for all of them (16384)
  --inserted     the program is inserted, pruned, in place of the parameterised graph
  --help         this text
`;
const values = commandLine(usage, {
  ranks: { type: 'string', default: '16' },
  tiles: { type: 'string', default: '64' },
  window: { type: 'string', default: '16384' },
  inserted: { type: 'boolean', default: false },
});
const ranks = positive(usage, 'ranks', values.ranks);
const tiles = positive(usage, 'tiles', values.tiles);
const window = positive(usage, 'window', values.window);

function openRanks(): Runtime[] {
  const machine = { ...presets['h200-8'], gpus: GPUS, workers: 1, lanes: 32 };
  const world = new World();
  const backends = Array.from(
    { length: ranks },
    () => new SimulatedBackend({ machine, world, story: false }),
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

const runs = openRanks().map((runtime) => {
  const rows = tiles * TILE;
  const A = new TiledMatrix(runtime, 'f64', { rows, tile: TILE, lower: true, name: 'A' });
  return runtime.run(
    (graph) => {
      insertValues(graph, A);
      if (values.inserted) cholesky(graph, A);
      else return choleskyGraph.insertInTurns(graph, { A }).then(() => {});
    },
    { pruned: true },
  ).done;
});
await Promise.all(runs);
const all = process.cpuUsage();
const seconds = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1e6;
const tasks = (tiles * (tiles + 1) * (tiles + 2)) / 6;
process.stdout.write(
  `${JSON.stringify({
    ...{ ranks, gpus: GPUS, tiles, tasks, inserted: values.inserted },
    seconds: seconds(all),
    microsecondsPerTask: (seconds(all) / tasks) * 1e6,
    memoryMB: process.resourceUsage().maxRSS / 1024,
  })}\n`,
);
process.exit(0);
