// What `headrace run cholesky` asks of a runtime and what it gets back, apart from how either is done, so that
// the command can be tested without one.
import type { RunReport } from '../scheduler/report.js';
import type { RunStatus } from '../scheduler/run-status.js';
import type { SymmetricMatrix } from './spd-matrix.js';
import type { Dtype, TileGrid, TileValues } from './tile-grid.js';

/** A factorisation to do. */
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
  /** Told how the run is doing, several times a second also when nothing moves; undefined: nobody watches. */
  readonly onStatus: ((status: RunStatus) => void) | undefined;
}

/** What came of it. */
export interface CholeskyOutcome {
  /** Tile (i, j), i >= j, of the factor. */
  readonly factor: (i: number, j: number) => TileValues;
  readonly ranks: number;
  /** Of the factorisation alone. */
  readonly report: RunReport;
}

/** Does the job on a runtime. */
export type CholeskyRunner = (job: CholeskyJob) => Promise<CholeskyOutcome>;
