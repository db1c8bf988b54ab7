// The result of `headrace run cholesky`: the JSON object other programs read and the text people read.
// The JSON keys are a contract: keys may be added, none may change its meaning.
import { choleskyFlops } from '../algorithms/index.js';
import type { DeviceReport, RunReport } from '../scheduler/reports/run-report.js';
import type { Residual } from './cholesky-check.js';
import type { CholeskyJob, CholeskyOutcome } from './cholesky-job.js';
import { formatBytes, formatSeconds, formatTable } from './format.js';
import { type Dtype, epsilonOf, lowerBytes } from './tile-grid.js';

type BytesByKind = RunReport['bytes'];

/** The order in which tables show the ways of bytes. */
const byteKinds = ['h2d', 'd2h', 'd2d', 'ipc', 'direct', 'staged', 'inline'] as const;

/** The object `--json` prints. */
interface CholeskyResult {
  /** True when the backward error is at the level of rounding. */
  readonly ok: boolean;
  readonly algorithm: 'cholesky';
  readonly matrix: string;
  readonly n: number;
  readonly tile: number;
  readonly dtype: Dtype;
  readonly ranks: number;
  readonly gpus: number;
  /** Bytes of memory per GPU. */
  readonly memory: number;
  /** ||A - L L^T||_F / (n ||A||_F). */
  readonly backwardError: number;
  /** max |x - exact| / max |exact|; null if the right-hand side is the user's and the solution is unknown. */
  readonly forwardError: number | null;
  /** max |b - A x| / (||A||_F max |x| + max |b|). */
  readonly solveResidual: number;
  readonly tasks: number;
  readonly seconds: number;
  readonly gflops: number;
  /** Bytes moved, by way. */
  readonly bytes: BytesByKind;
  readonly evictions: number;
  readonly spills: number;
  readonly devices: readonly DeviceReport[];
}

/** The results of the checks. */
interface CholeskyChecks {
  readonly residual: Residual;
  readonly forwardError: number | null;
  readonly solveResidual: number;
}

/** Largest backward error that counts as rounding. */
function backwardErrorLimit(dtype: Dtype): number {
  return 40 * epsilonOf(dtype); // 8.9e-15 in f64
}

/** Puts the result together. */
export function choleskyResult(
  job: CholeskyJob,
  outcome: CholeskyOutcome,
  checks: CholeskyChecks,
): CholeskyResult {
  const { n, tile } = job.grid;
  const { backwardError } = checks.residual;
  const { tasks, seconds, bytes, evictions, spills, devices } = outcome.report;
  return {
    ok: backwardError <= backwardErrorLimit(job.dtype), // false for NaN too
    algorithm: 'cholesky',
    matrix: job.matrix.description,
    n,
    tile,
    dtype: job.dtype,
    ranks: outcome.ranks,
    gpus: job.gpus,
    memory: job.memory,
    backwardError,
    forwardError: checks.forwardError,
    solveResidual: checks.solveResidual,
    tasks,
    seconds,
    gflops: choleskyFlops(n) / seconds / 1e9,
    bytes,
    evictions,
    spills,
    devices,
  };
}

const count = (value: number, noun: string): string => `${value} ${noun}${value === 1 ? '' : 's'}`;

/** The job in two lines, before it begins. */
export function describeJob(job: CholeskyJob): string {
  const { grid, dtype, gpus, memory, matrix } = job;
  const tiles = `tiles of ${grid.tile} (${grid.count} x ${grid.count}, ${formatBytes(lowerBytes(grid, dtype))} of ${dtype})`;
  const where =
    gpus === 0
      ? 'on host workers'
      : `on ${count(gpus, 'emulated GPU')} of ${formatBytes(memory)}${gpus === 1 ? '' : ' each'}`;
  return `Cholesky factorisation of a ${matrix.description}, order ${grid.n}, ${tiles},\n${where}.\n`;
}

/** The result for people. */
export function describeResult(result: CholeskyResult): string {
  const { devices, bytes, backwardError, dtype } = result;
  const solved = result.forwardError !== null;
  const figures = [
    ['backward error', backwardError.toExponential(2), '||A - L L^T|| / (n ||A||)'],
    [
      'forward error',
      solved ? result.forwardError.toExponential(2) : '-',
      solved ? 'max |x - 1| after solving A x = A 1' : 'the solution is not known',
    ],
    [
      'residual',
      result.solveResidual.toExponential(2),
      'max |b - A x| / (||A|| max |x| + max |b|)',
    ],
    ['time', formatSeconds(result.seconds), `for ${count(result.tasks, 'task')}`],
    ['speed', result.gflops.toPrecision(3), 'GFLOP/s'],
  ]
    .map(([name, value, remark]) => `${name.padEnd(14)}  ${value.padStart(9)}  ${remark}\n`)
    .join('');
  const used = byteKinds.filter((kind) => bytes[kind] > 0);
  const moved = formatTable([
    ['bytes moved', ...used, 'evictions', 'spills'],
    [
      '',
      ...used.map((kind) => formatBytes(bytes[kind])),
      String(result.evictions),
      String(result.spills),
    ],
  ]);
  const perDevice = formatTable([
    ['device', 'bytes in', 'bytes out', 'most in use', 'of', 'busy, all lanes'],
    ...devices.map((device) => [
      device.name,
      formatBytes(device.bytesIn),
      formatBytes(device.bytesOut),
      formatBytes(device.highWaterBytes),
      formatBytes(device.capacityBytes),
      formatSeconds(device.busySeconds),
    ]),
  ]);
  const warning = result.ok
    ? ''
    : `\nWRONG RESULT: the backward error is above ${backwardErrorLimit(dtype).toExponential(1)}.\n`;
  return `${figures}\n${moved}\n${perDevice}${warning}`;
}
