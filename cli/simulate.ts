// `headrace simulate`: predicts a run on a machine that is described, not present. Not part of this version.
import { HeadraceError } from '../scheduler/errors.js';
import type { CommandRunner } from './commands.js';

/** Says that there is no simulation yet. */
export const runSimulateCommand: CommandRunner = () => {
  throw new HeadraceError('ERR_NOT_AVAILABLE', 'this version cannot simulate runs', {
    remedy: 'headrace run cholesky --gpus N --memory SIZE runs on emulated GPUs',
  });
};
