// `headrace run cholesky`: gets the matrix, factorises it, checks the factor, solves, reports.
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { shellWord } from '../devices/installation.js';
import { launchOf } from '../devices/launch.js';
import { traceOfRank } from '../trace/file-names.js';
import { awaited } from './awaited.js';
import {
  choleskyResidual,
  forwardError,
  multiply,
  solveLower,
  solveLowerTransposed,
  solveResidual,
} from './cholesky-check.js';
import type { CholeskyJob, CholeskyRunner } from './cholesky-job.js';
import { choleskyResult, describeJob, describeResult } from './cholesky-report.js';
import { type CliContext, ExitCode } from './context.js';
import { readMatrixMarketFile } from './matrix-market.js';
import {
  choice,
  describeOptions,
  flag,
  integer,
  type OptionValues,
  parseOptions,
  size,
  text,
  UsageError,
} from './options.js';
import { createProgress } from './progress.js';
import { launch } from './ranks.js';
import {
  randomSymmetricMatrix,
  rightHandSide,
  roundedTo32,
  type SymmetricMatrix,
  symmetricMatrix,
} from './spd-matrix.js';
import { tileGrid } from './tile-grid.js';
import { createWatch } from './watch.js';

const defaultOrder = 4096;

const options = {
  n: integer({
    min: 1,
    max: 1 << 20,
    fallback: undefined,
    shown: String(defaultOrder),
    help: 'order of the random matrix',
  }),
  tile: integer({ min: 1, max: 1 << 16, fallback: 256, help: 'rows and columns of a tile' }),
  gpus: integer({ min: 0, max: 30, fallback: 2, help: 'emulated GPUs; 0 runs on host workers' }),
  memory: size({ fallback: '24MiB', help: 'memory of each GPU' }),
  ranks: integer({
    min: 1,
    max: 1024,
    fallback: undefined,
    shown: '1, or as launched',
    help: 'processes, started with mpirun',
  }),
  dtype: choice(['f64', 'f32'], { fallback: 'f64', help: 'element type' }),
  matrix: text({ metavar: 'FILE', help: 'factorise this Matrix Market file instead' }),
  rhs: text({
    metavar: 'FILE',
    help: 'right-hand side to solve for',
    shown: 'solution of all ones',
  }),
  seed: integer({ min: 0, max: 2 ** 31 - 1, fallback: 1, help: 'seed of the random matrix' }),
  workers: integer({
    min: 1,
    max: 256,
    fallback: undefined,
    shown: `${availableParallelism()}, the cores`,
    help: 'host worker threads',
  }),
  trace: text({ metavar: 'FILE', help: 'write a trace of every task and transfer' }),
  watch: flag({ help: 'show rates, memory and waits while it runs' }),
  json: flag({ help: 'print the result as one JSON object' }),
  help: flag({ help: 'this text' }),
};

type Values = OptionValues<typeof options>;

/** Usage text of the command. */
function choleskyUsage(): string {
  return `usage: headrace run cholesky [options]

Factorises a symmetric positive definite matrix on emulated GPUs, A = L L^T, solves a system with the factor
and checks both.

${describeOptions(options)}`;
}

/** Loads the real runtime only if it is needed. */
const onHeadrace: CholeskyRunner = async (job) => {
  const { factoriseOnHeadrace } = await import('./cholesky-on-headrace.js');
  return factoriseOnHeadrace(job);
};

/** Runs the command; `runner` stands in for the runtime in tests. */
export async function runCholeskyCommand(
  argv: readonly string[],
  context: CliContext,
  runner: CholeskyRunner = onHeadrace,
): Promise<number> {
  const given = parse(argv);
  // Not left to the runtime: this thread is not the program's, and the file has no number.
  const values = { ...given, trace: given.trace ?? (context.env['HEADRACE_TRACE'] || undefined) };
  if (values.help) {
    context.stdout.write(choleskyUsage());
    return ExitCode.ok;
  }
  const world = launchOf(context.env);
  if (world.launcher === undefined && (values.ranks ?? 1) > 1) {
    const program = fileURLToPath(new URL('main.js', import.meta.url));
    const command = [process.execPath, program, 'run', 'cholesky', ...argv];
    return awaited('mpirun', launch(command, values.ranks ?? 1, context));
  }
  const speaks = world.rank === 0;
  const progress = createProgress({
    stream: context.stderr,
    enabled: !values.json && !values.watch && speaks,
    env: context.env,
  });
  const watch =
    values.watch && speaks ? createWatch({ stream: context.stderr, env: context.env }) : undefined;
  try {
    const source = await readMatrix(values);
    const grid = tileGrid(source.n, values.tile);
    const job: CholeskyJob = {
      grid,
      matrix: values.dtype === 'f32' ? roundedTo32(source) : source,
      dtype: values.dtype,
      gpus: values.gpus,
      memory: values.memory,
      workers: values.workers,
      trace:
        world.size === 1 ? values.trace : values.trace && traceOfRank(values.trace, world.rank),
      signal: context.signal,
      onProgress: (done, total) => progress.update('factorise', done, total),
      onStatus: watch?.show,
    };
    const rhs =
      values.rhs === undefined
        ? undefined
        : rightHandSide(await readMatrixMarketFile(values.rhs), source.n, values.rhs);
    if (!values.json && speaks) context.stdout.write(`${describeJob(job)}\n`);
    const outcome = await awaited('the factorisation', runner(job)).finally(() => watch?.end());
    context.signal.throwIfAborted();
    // Every rank has the factor; one is enough to check it.
    if (!speaks) return ExitCode.ok;

    const residual = await choleskyResidual(grid, job.matrix, outcome.factor, (done, total) => {
      context.signal.throwIfAborted();
      progress.update('check', done, total);
    });
    const ones = new Float64Array(source.n).fill(1);
    const b = rhs ?? multiply(grid, job.matrix, ones);
    const x = solveLowerTransposed(grid, outcome.factor, solveLower(grid, outcome.factor, b));
    const result = choleskyResult(job, outcome, {
      residual,
      forwardError: rhs === undefined ? forwardError(x, ones) : null,
      solveResidual: solveResidual(grid, job.matrix, x, b, residual.matrixNorm),
    });
    progress.clear();
    context.stdout.write(values.json ? `${JSON.stringify(result)}\n` : describeResult(result));
    if (!values.json && values.trace !== undefined) {
      const { trace } = values;
      const ranks = world.size;
      const files = Array.from({ length: ranks }, (_, r) =>
        ranks === 1 ? trace : traceOfRank(trace, r),
      );
      context.stdout.write(
        `\nThe timeline of this run is in ${files.join(', ')}. To open it:\n\n` +
          `  ${context.program} trace view ${files.map(shellWord).join(' ')}\n`,
      );
    }
    return result.ok ? ExitCode.ok : ExitCode.failure;
  } finally {
    progress.clear();
  }
}

function parse(argv: readonly string[]): Values {
  const usage = choleskyUsage();
  const values = parseOptions(argv, options, usage);
  if (values.matrix !== undefined && values.n !== undefined) {
    throw new UsageError(
      '--n and --matrix exclude each other: the file gives the order of the matrix',
      usage,
    );
  }
  return values;
}

async function readMatrix(values: Values): Promise<SymmetricMatrix> {
  if (values.matrix === undefined) {
    return randomSymmetricMatrix(values.n ?? defaultOrder, values.seed);
  }
  const matrix = symmetricMatrix(await readMatrixMarketFile(values.matrix), values.matrix);
  return { ...matrix, description: `matrix from ${path.basename(values.matrix)}` };
}
