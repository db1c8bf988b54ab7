// Runs that are compared with a plan are held back until they differ, however long the program takes. The time limit (`heldSoon`) counts
// the work of the program's thread, and on a busy machine a collection of the heap or the compiler takes as long. A test on real threads
// that says which runs are played imports this file before every other one. The limit has tests on simulated time
// (test/simulated/recognition-cost.test.ts).
import './removable-guards.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';

setGuard('heldSoon', false);
