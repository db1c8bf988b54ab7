// Does the job of `headrace run cholesky` on a runtime: tiles in, tasks, tiles out.
import { cholesky } from '../algorithms/index.js';
import { type Run, type RunReport, Runtime, TiledMatrix } from '../index.js';
import type { CholeskyJob, CholeskyRunner } from './cholesky-job.js';
import type { TileValues } from './tile-grid.js';

/** Milliseconds between two reports about a run in which nothing completes. */
const watchMs = 250;

/** Waits for the run and reports its state meanwhile. */
async function followed(run: Run, job: CholeskyJob): Promise<RunReport> {
  const { onProgress, onStatus } = job;
  run.events.on('progress', (status) => {
    onProgress(status.completed, status.inserted);
    onStatus?.(status);
  });
  const timer = onStatus && setInterval(() => onStatus(run.status()), watchMs);
  try {
    return await run;
  } finally {
    clearInterval(timer);
  }
}

/** Factorises on emulated GPUs (or host workers). */
export const factoriseOnHeadrace: CholeskyRunner = async (job) => {
  const { grid, matrix, dtype } = job;
  await using runtime = await Runtime.create({
    gpus: job.gpus,
    gpuMemory: job.memory,
    name: 'run cholesky',
    ...(job.workers === undefined ? {} : { workers: job.workers }),
    ...(job.trace === undefined ? {} : { trace: job.trace }),
  });
  const a = new TiledMatrix<'f64' | 'f32'>(
    runtime,
    dtype,
    { rows: grid.n, tile: grid.tile, lower: true, name: 'A' },
    (values, row, column, rows, columns) => matrix.fill(row, column, rows, columns, values),
  );
  const run = runtime.run((graph) => cholesky(graph, a), { signal: job.signal, name: 'cholesky' });
  const report = await followed(run, job);
  const tiles: TileValues[][] = [];
  for (let i = 0; i < grid.count; i++) {
    tiles.push(await Promise.all(Array.from({ length: i + 1 }, (_, j) => a.at(i, j).read())));
  }
  a.close();
  return { factor: (i, j) => tiles[i][j], ranks: runtime.ranks, report };
};
