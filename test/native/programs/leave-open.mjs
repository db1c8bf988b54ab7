// Opens cores, gives their threads work, and ends without closing anything. As a program the process must end by
// itself; as a worker the environment is torn down around running threads.
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { exec, open, publish } from '../../../native/test/direct.mjs';

const mode = workerData?.mode ?? process.argv[2] ?? 'idle';
const machines = [open(2, 2, 1024), open(1, 0, 64)];
for (const machine of machines) {
  machine.core.onDoorbell(() => {});
  machine.core.hostView(0, 4096);
  if (mode === 'idle') continue;
  for (let queue = 0; queue < Math.min(2, machine.rings.length); queue++) {
    // The second queue waits for the first; its last record waits for something that is never published.
    for (let seq = 1; seq <= 50; seq++) exec(machine, queue, seq, queue === 1 ? 0 : -1, seq);
    publish(machine, queue, 50);
  }
  if (machine.rings.length > 1) {
    exec(machine, 1, 51, 0, 1000);
    publish(machine, 1, 51);
  }
  // A doorbell that rings into the event loop while the environment goes away.
  machine.shared[16] = 2;
  machine.control[1] = 50;
  Atomics.store(machine.control, 2, 1);
}
if (isMainThread) console.log('end of program');
else parentPort.postMessage(machines.length);
if (mode === 'exit') process.exit(0);
