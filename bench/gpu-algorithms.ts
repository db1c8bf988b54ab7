// Tiled Cholesky and product on real GPUs, with data in device memory at the start: the data are made there, factorised
// once to warm up, made again, and factorised under the clock. A product leaves its factors as they are: they are made once,
// and each time begins where the one before has left the data. With less --memory than the data need they go through host
// memory, and a matrix to be factorised is made there: it would not be in the memory of the GPUs, and a part of it that was would first be
// written back. Tiles of the last result are compared with a closed form; a difference ends the program with an error.
import { cholesky, choleskyFlops, gemm, gemmFlops } from '../algorithms/index.js';
import { type Graph, Runtime, read, TiledMatrix, task, write } from '../index.js';
import { commandLine, positive, usageError } from './command-line.js';
import { expectedFactor, expectedProduct, worstDifference } from './gpu-reference.js';
import { type BenchEntry, log, median } from './harness.js';

const usage = `usage: node dist/bench/gpu-algorithms.js [options]

Cholesky or a product on the NVIDIA GPUs of this machine, with its result checked.

  --what NAME           cholesky or gemm (cholesky)
  --gpus N              GPUs (1)
  --n N                 order of the matrix (32768)
  --tile N              order of a tile (2048)
  --memory SIZE         memory of each GPU (what it has); the matrix of cholesky is made on the host then
  --host-memory SIZE    host memory (64GiB)
  --pinned SIZE         of it page-locked at the start (1GiB)
  --streams N           streams of each GPU (4)
  --grid RxC            rows and columns of the grid of GPUs (that of TiledMatrix)
  --play WAY            play a plan: 'lists' or 'graph' (insert)
  --times N             iterations of a play, for a product (1)
  --repeats N           times under the clock (3)
  --check N             tiles that are compared (16)
  --trace FILE          write a trace
  --json                one JSON object
  --help                this text
`;
const values = commandLine(usage, {
  gpus: { type: 'string', default: '1' },
  n: { type: 'string', default: '32768' },
  tile: { type: 'string', default: '2048' },
  what: { type: 'string', default: 'cholesky' },
  memory: { type: 'string' },
  'host-memory': { type: 'string', default: '64GiB' },
  pinned: { type: 'string', default: '1GiB' },
  check: { type: 'string', default: '16' },
  streams: { type: 'string', default: '4' },
  grid: { type: 'string' },
  play: { type: 'string', default: 'insert' },
  times: { type: 'string', default: '1' },
  repeats: { type: 'string', default: '3' },
  trace: { type: 'string' },
  json: { type: 'boolean' },
});
if (!['cholesky', 'gemm'].includes(values.what))
  usageError(usage, `--what is 'cholesky' or 'gemm', not '${values.what}'`);
if (!['insert', 'lists', 'graph'].includes(values.play))
  usageError(usage, `--play is 'lists' or 'graph', not '${values.play}'`);
const gpus = positive(usage, 'gpus', values.gpus);
const n = positive(usage, 'n', values.n);
const tile = positive(usage, 'tile', values.tile);
const shape = values.grid?.split('x').map((part) => positive(usage, 'grid', part));
if (shape !== undefined && shape.length !== 2)
  usageError(usage, `--grid is ROWSxCOLUMNS, not '${values.grid}'`);
const grid = shape === undefined ? {} : { grid: { rows: shape[0], columns: shape[1] } };
const times = positive(usage, 'times', values.times);
if (times > 1 && (values.play === 'insert' || values.what !== 'gemm'))
  usageError(usage, '--times needs --play, and a product: a factor is factorised once');

const constant = task({
  name: 'fill',
  flows: { to: write('f64') },
  params: { count: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});
const copy = task({
  name: 'copy',
  flows: { to: write('f64'), from: read('f64') },
  params: { bytes: 'f64' },
  kernel: 'copy_bytes',
});

const opening = performance.now();
await using runtime = await Runtime.create({
  driver: 'cuda',
  gpus,
  ...(values.memory === undefined ? {} : { gpuMemory: values.memory }),
  computeStreams: Number(values.streams),
  hostMemory: values['host-memory'],
  pinnedMemory: values.pinned,
  workers: 1,
  plans: 'off',
  name: `bench ${values.what}`,
  ...(values.trace === undefined ? {} : { trace: values.trace }),
});

log(`opened in ${((performance.now() - opening) / 1e3).toFixed(2)} s, ${values.pinned} pinned`);

/** Off the diagonal 1, on it n: positive definite and well conditioned. */
const diagonal = new Float64Array(tile * tile).fill(1);
for (let i = 0; i < tile; i++) diagonal[i * tile + i] = n;
const pattern = runtime.data(diagonal, { name: 'diagonal tile' });

/** Where a matrix is made. */
const where =
  values.memory === undefined || values.what === 'gemm' ? {} : { device: 'host' as const };

function fillAll(graph: Graph, a: TiledMatrix<'f64'>): void {
  for (let j = 0; j < a.tileColumns; j++) {
    for (let i = a.lower ? j : 0; i < a.tileRows; i++) {
      const to = a.at(i, j);
      if (i === j) graph.insert(copy, { to, from: pattern, bytes: to.bytes }, where);
      else graph.insert(constant, { to, count: to.length, value: 1 }, where);
    }
  }
}

const lower = values.what === 'cholesky';
const A = new TiledMatrix(runtime, 'f64', { rows: n, tile, lower, name: 'A', ...grid });
const matrices = [A];
if (!lower) {
  matrices.push(new TiledMatrix(runtime, 'f64', { rows: n, tile, name: 'B', ...grid }));
  matrices.push(new TiledMatrix(runtime, 'f64', { rows: n, tile, name: 'C', ...grid }));
}
const flops = lower ? choleskyFlops(n) : gemmFlops(n, n, n);
const rates: number[] = [];
const insertAll = (graph: Graph): void => {
  if (lower) cholesky(graph, A);
  else gemm(graph, A, matrices[1], matrices[2]);
};
const fill = async (): Promise<unknown> =>
  await runtime.run((graph) => {
    for (const m of matrices) if (m.name !== 'C') fillAll(graph, m);
  });
// A plan is made of data that have values, with the times of kernels that have run.
await fill();
if (values.play !== 'insert') {
  await runtime.run(insertAll);
  await fill();
}
const plan =
  values.play === 'insert'
    ? undefined
    : await runtime.plan(insertAll, { graph: values.play === 'graph' ? 'always' : 'never' });
if (plan !== undefined) {
  const { tasks, waits, planning, makespan, bytes } = plan.report;
  log(
    `plan: ${tasks} tasks, ${waits} waits, planned in ${planning.toFixed(3)} s, makespan ${makespan.toFixed(3)} s, ` +
      `bytes per play ${JSON.stringify(bytes)}`,
  );
}
/** Solves the problem once; seconds and what there is to say. */
async function solve(): Promise<{ seconds: number; words: string }> {
  if (plan !== undefined) {
    const { seconds } = await plan.run({ times });
    return { seconds: seconds / times, words: `graph: ${plan.report.graph}` };
  }
  const report = await runtime.run(insertAll);
  const busy = report.devices.slice(1).map((d) => (d.busySeconds / report.seconds).toFixed(2));
  const words =
    `h2d ${(report.bytes.h2d / 1e9).toFixed(2)} GB, d2h ${(report.bytes.d2h / 1e9).toFixed(2)} GB, ` +
    `d2d ${(report.bytes.d2d / 1e9).toFixed(2)} GB, evictions ${report.evictions}, busy ${busy.join(' ')}`;
  return { seconds: report.seconds, words };
}
for (let i = 0; i <= Number(values.repeats); i++) {
  if (i > 0 && lower) await fill();
  const { seconds, words } = await solve();
  const rate = flops / seconds / 1e12;
  if (i > 0) rates.push(rate);
  log(
    `${values.what} n=${n} tile=${tile} gpus=${gpus}: ${rate.toFixed(1)} TF/s in ${seconds.toFixed(3)} s, ${words}`,
  );
}
const tolerance = 1e-10;
const difference = lower
  ? await worstDifference(A, expectedFactor(n), Number(values.check))
  : await worstDifference(matrices[2], expectedProduct(n), Number(values.check));
log(`largest relative difference from the closed form: ${difference.toExponential(1)}`);
if (!(difference <= tolerance)) throw new Error(`the result is wrong by ${difference}`);
const entry: BenchEntry = {
  name: `gpu/${values.what}${values.play === 'insert' ? '' : `/${values.play}`}`,
  value: median(rates),
  unit: 'TF/s',
  params: {
    gpus,
    n,
    tile,
    streams: Number(values.streams),
    memory: values.memory ?? 'all',
    times,
    grid: `${A.grid.rows}x${A.grid.columns}`,
  },
};
process.stdout.write(
  values.json === true
    ? `${JSON.stringify([entry])}\n`
    : `${entry.name} ${entry.value.toFixed(1)} TF/s\n`,
);
