// The stencil of the METG measurement over ranks: some columns and one worker per rank, insertion included, in runs that come again
// and again and are recognised; in pruned runs, which are not; or as a plan of some steps that is played. The program by hand is
// peers/mpi_stencil.cpp.
import { fileURLToPath } from 'node:url';
import { Runtime } from '../index.js';
import { launchOf } from '../native/launch.js';
import { commandLine, positive, usageError } from './command-line.js';
import { insertShape, makeColumns, median, runShape, WARM_RUNS } from './harness.js';
import { underMpirun } from './ranks.js';

const usage = `usage: node dist/bench/network-stencil.js [options]

Seconds of a stencil on several ranks for each number of kernel iterations per task and of steps, medians of five runs; a JSON
array. By default each point comes again and again before, until it is played. It starts itself under mpirun.

  --points LIST         ITERATIONSxSTEPS, with commas between them (64x400,16384x20)
  --ranks N             ranks (2)
  --columns N           columns per rank (4)
  --unrecognised        pruned runs, which are not recognised: no point is played
  --played              each point as a plan of up to 20 steps, played as often as it takes
  --before N            runs of a point before those that are timed, unless it is --unrecognised (40 of at least 1000 steps, 15 of fewer)
  --launcher PROGRAM    what starts the ranks (mpirun)
  --help                this text
`;
const values = commandLine(usage, {
  points: { type: 'string', default: '64x400,16384x20' },
  ranks: { type: 'string', default: '2' },
  columns: { type: 'string', default: '4' },
  unrecognised: { type: 'boolean', default: false },
  played: { type: 'boolean', default: false },
  before: { type: 'string' },
  launcher: { type: 'string', default: 'mpirun' },
});
const ranks = positive(usage, 'ranks', values.ranks);
const columns = positive(usage, 'columns', values.columns);
/** Runs before those that are timed. */
const before = values.before === undefined ? undefined : positive(usage, 'before', values.before);
if (values.unrecognised && values.played) usageError(usage, '--unrecognised or --played, not both');
const points = values.points.split(',').map((point) => {
  const [, iterations, steps] =
    /^(\d+)x(\d+)$/.exec(point) ?? usageError(usage, `--points: ${point}`);
  return { iterations: Number(iterations), steps: Number(steps) };
});

/** Runs of small tasks after which V8 compiles nothing any more. */
const WARM = 60;
const WARM_STEPS = 400;
const WARM_ITERATIONS = 4;
const TIMED = 5;
/** The runs of a point are recorded, planned, played, and inserted for a trial; after so many that is over. Long tasks need no more. */
const UNTIL_PLAYED = 15;
/** Steps of a point from which on its tasks are short. */
const OF_SHORT_TASKS = 1000;
/** Limit for the steps of a plan. */
const PLANNED = 20;

/** Seconds of the last runs of a point that comes again and again. */
async function repeated(iterations: number, steps: number, runs: number): Promise<number> {
  // A runtime that has made many plans, and played each a few times, makes no more for a while.
  const runtime = await Runtime.create({ workers: 1, gpus: 0 });
  const row = makeColumns(runtime, columns * runtime.ranks, 0, runtime.ranks);
  const seconds: number[] = [];
  for (let i = 0; i < runs + TIMED; i++) {
    const start = performance.now();
    await runtime.run((graph) => insertShape(graph, row, 'stencil', steps, iterations));
    seconds.push((performance.now() - start) / 1e3);
  }
  await runtime.close();
  return median(seconds.slice(runs));
}

/** Seconds of each point, inserted and never played. */
async function unrecognised(): Promise<number[]> {
  const runtime = await Runtime.create({ workers: 1, gpus: 0 });
  const row = makeColumns(runtime, columns * runtime.ranks, 0, runtime.ranks);
  for (let i = 0; i < WARM; i++)
    await runShape(runtime, row, 'stencil', WARM_STEPS, WARM_ITERATIONS);
  const seconds: number[] = [];
  for (const { iterations, steps } of points) {
    const times: number[] = [];
    for (let i = 0; i < TIMED; i++)
      times.push(await runShape(runtime, row, 'stencil', steps, iterations));
    seconds.push(median(times));
  }
  await runtime.close();
  return seconds;
}

/** Seconds of the last plays of a point; the plan is made before. */
async function played(iterations: number, steps: number, plays: number): Promise<number> {
  const runtime = await Runtime.create({ workers: 1, gpus: 0 });
  const row = makeColumns(runtime, columns * runtime.ranks, 0, runtime.ranks);
  let planned = Math.min(PLANNED, steps);
  while (steps % planned > 0) planned--;
  const plan = await runtime.plan((graph) =>
    insertShape(graph, row, 'stencil', planned, iterations),
  );
  const seconds: number[] = [];
  for (let i = 0; i < plays + TIMED; i++) {
    const start = performance.now();
    await plan.run({ times: steps / planned });
    seconds.push((performance.now() - start) / 1e3);
  }
  await runtime.close();
  return median(seconds.slice(plays));
}

/** Seconds of each point, with a runtime of its own, once all code is compiled. */
async function each(seconds: typeof repeated): Promise<number[]> {
  await seconds(WARM_ITERATIONS, WARM_STEPS, WARM);
  const all: number[] = [];
  for (const { iterations, steps } of points) {
    const usual = steps >= OF_SHORT_TASKS ? WARM_RUNS : UNTIL_PLAYED;
    all.push(await seconds(iterations, steps, before ?? usual));
  }
  return all;
}

function measured(): Promise<number[]> {
  if (values.unrecognised) return unrecognised();
  return each(values.played ? played : repeated);
}

const { launcher, rank } = launchOf();
if (launcher !== undefined) {
  const seconds = await measured();
  if (rank === 0) process.stdout.write(`${JSON.stringify(seconds)}\n`);
} else {
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  process.exitCode = underMpirun(ranks, args, values.launcher);
}
