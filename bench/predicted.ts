// What the simulator predicts for the Cholesky factorisations that gpu-algorithms.ts measures: of the second one, with the matrix in the memory
// of the GPUs at the begin or, out of core, on the host (docs/simulation.md).
import { cholesky, choleskyFlops } from '../algorithms/index.js';
import { SimulatedBackend } from '../devices/simulated/machine/backend.js';
import { presets } from '../devices/simulated/machine/presets.js';
import { Runtime, TiledMatrix, task, write } from '../index.js';
import { commandLine } from './command-line.js';

const usage = `usage: node dist/bench/predicted.js

TF/s of Cholesky on simulated H200 nodes, fp64, tile 2048, 4 streams.

  --help   this text
`;
commandLine(usage, {});

const TILE = 2048;
const STREAMS = 4;
const MIB = 2 ** 20;

/** The kernel says nothing of the values: in the simulator a tile is made in no time. */
const make = task({ name: 'make', flows: { to: write('f64') }, kernel: 'made' });

/** `memory`: MiB of each GPU; all that it has if there is none. */
async function predicted(gpus: number, n: number, memory?: number): Promise<number> {
  const preset = presets[`h200-${gpus}`];
  const machine = {
    ...{ ...preset, workers: 1, computeStreams: STREAMS },
    gpuMemory: memory === undefined ? preset.gpuMemory : memory * MIB,
    kernels: { ...preset.kernels, made: 0 },
  };
  const backend = new SimulatedBackend({ machine, story: false });
  const { gpuMemory, hostMemory } = machine;
  const options = { ...{ gpus, gpuMemory, hostMemory }, workers: 1, computeStreams: STREAMS };
  await using runtime = Runtime.over(backend, { ...options, plans: 'off' });
  const A = new TiledMatrix(runtime, 'f64', { rows: n, tile: TILE, lower: true });
  const where = memory === undefined ? {} : { device: 'host' as const };
  let seconds = 0;
  for (let round = 0; round < 2; round++) {
    await runtime.run((graph) => {
      for (let j = 0; j < A.tileColumns; j++)
        for (let i = j; i < A.tileRows; i++) graph.insert(make, { to: A.at(i, j) }, where);
    });
    ({ seconds } = await runtime.run((graph) => cholesky(graph, A)));
  }
  return choleskyFlops(n) / seconds / 1e12;
}

const ROWS: readonly (readonly [gpus: number, n: number, memory?: number])[] = [
  ...([1, 2, 4] as const).map((gpus) => [gpus, 65536] as const),
  ...([1, 2, 4] as const).map((gpus) => [gpus, 32768] as const),
  [1, 32768, 1230],
  [2, 32768, 615],
];
for (const [gpus, n, memory] of ROWS) {
  const rate = await predicted(gpus, n, memory);
  const where = memory === undefined ? '' : `, ${memory} MiB each`;
  process.stdout.write(`n = ${n}, GPUs: ${gpus}${where}: ${rate.toFixed(1)}\n`);
}
