// Prints the name of the MPI library that starts it.
import { launchOf } from '../native/launch.js';
import { loadMpi, startMpi } from '../native/mpi.js';
import { shortName } from './ranks.js';

const { library } = await startMpi(loadMpi());
if (launchOf().rank === 0) process.stdout.write(shortName(library));
