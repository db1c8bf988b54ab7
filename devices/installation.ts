// The installation as the rooms above see it: where it lies, and the commands that mend it.
export {
  aptCommand,
  buildCommand,
  doctorCommand,
  isClone,
  isOnPath,
  missingTools,
  mpiRemedy,
  packageRoot,
  packageVersion,
  programWords,
  shellWord,
} from '../native/installation.js';
