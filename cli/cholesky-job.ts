// The job that `headrace run cholesky` gives to a runtime, and its result. Both are apart from the runtime, so that
// the command can be tested without one.
import type { RunReport } from '../scheduler/reports/run-report.js';
import type { RunStatus } from '../scheduler/reports/status.js';
import type { SymmetricMatrix } from './spd-matrix.js';
import type { Dtype, TileGrid, TileValues } from './tile-grid.js';

/** A factorisation. */
export interface CholeskyJob {
  readonly grid: TileGrid;
  readonly matrix: SymmetricMatrix;
  readonly dtype: Dtype;
  /** Emulated GPUs. */
  readonly gpus: number;
  /** Bytes of memory per GPU. */
  readonly memory: number;
  /** Host worker threads; undefined: the runtime's own choice. */
  readonly workers: number | undefined;
  /** File for the trace; undefined: none. */
  readonly trace: string | undefined;
  readonly signal: AbortSignal;
  /** Tasks finished of tasks inserted. */
  readonly onProgress: (done: number, total: number) => void;
  /** Gets the state of the run several times a second, also when nothing moves; undefined: no listener. */
  readonly onStatus: ((status: RunStatus) => void) | undefined;
}

/** The result of a job. */
export interface CholeskyOutcome {
  /** Tile (i, j), i >= j, of the factor. */
  readonly factor: (i: number, j: number) => TileValues;
  readonly ranks: number;
  /** Of the factorisation alone. */
  readonly report: RunReport;
}

/** Does the job on a runtime. */
export type CholeskyRunner = (job: CholeskyJob) => Promise<CholeskyOutcome>;
