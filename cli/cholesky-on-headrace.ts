// Does the job of `headrace run cholesky` on a runtime: tiles in, tasks, tiles out.
import { HeadraceError } from '../scheduler/errors.js';
import type { CholeskyRunner } from './cholesky-job.js';

/** Factorises on emulated GPUs (or host workers). */
export const factoriseOnHeadrace: CholeskyRunner = () => {
  throw new HeadraceError(
    'ERR_NOT_AVAILABLE',
    'the tiled Cholesky factorisation is not wired up yet',
  );
};
