// The installation for the rooms above: its folder, and the commands that mend it.
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
