// Sends a signal to a rank and reports its remaining lifetime and its shared memory: `PID SIGNAL RANK`. With the further
// word `launcher`, the launcher that started it gets the signal.
import { existsSync, readFileSync } from 'node:fs';
import { report } from './report.mjs';

const [, , pid, signal, rank, target] = process.argv;
const LIMIT_MS = 6000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const read = (file) => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
};
const isAlive = () => existsSync(`/proc/${pid}`) && !/\) Z/.test(read('stat'));
const ticks = () => Number(read('stat').split(') ')[1]?.split(' ')[11] ?? 0);

/** The process above the rank's own that is no proxy any more. */
function launcher() {
  let at = Number(pid);
  for (;;) {
    const stat = readFileSync(`/proc/${at}/stat`, 'utf8');
    const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
    if (/^(mpirun|mpiexec|orterun)/.test(name)) return at;
    at = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  }
}

// It is where it should be once it computes, or has done nothing for a while.
const began = ticks();
for (let i = 0; i < 10 && ticks() < began + 20; i++) await pause(50);
const shared = [...new Set(read('maps').match(/\/dev\/shm\/\S+/g) ?? [])];
process.kill(target === 'launcher' ? launcher() : Number(pid), signal);
const sent = performance.now();
while (isAlive() && performance.now() - sent < LIMIT_MS) await pause(5);
const lived = performance.now() - sent;
if (isAlive()) process.kill(Number(pid), 'SIGKILL');
report(Number(rank), { lived, shared });
