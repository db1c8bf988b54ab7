// The program that `headrace doctor` runs on two ranks under mpirun. It starts the message layer, reads eight bytes of the
// other rank's GPU (its argument names the driver), and prints its findings as one JSON line. It is a program of its own,
// because a broken MPI may end the process.

import { firstGpuOf } from '../devices/launch.js';
import { openNativeBackend } from '../devices/native/backend.js';
import { loadedMpiFile, openNativeNetwork } from '../devices/native/open-network.js';

const GPU = 1;
const PATIENCE_MS = 5000;

const driver = process.argv[2] ?? 'emulated';
const backend = openNativeBackend({
  driver,
  gpus: 1,
  firstGpu: firstGpuOf(driver, 1),
  gpuBytes: 1 << 20,
  hostBytes: 1 << 20,
  workers: 1,
  computeStreams: 1,
  ringRecords: 64,
  checked: false,
});
const port = await openNativeNetwork({
  spaces: backend.exported(),
  direct: 'never',
  flush: 'auto',
  doorbell: backend.doorbell(),
  chunkBytes: 65_536,
  crowded: true,
});
let ipc = false;
if (port.size > 1) {
  const other = (port.rank + 1) % port.size;
  let outcome = -1;
  port.ipcRead(other, GPU, 0, GPU, 0, 8, 1);
  port.publish();
  const until = Date.now() + PATIENCE_MS;
  while (outcome < 0 && Date.now() < until) {
    port.poll({
      message: () => {},
      done: (_request, result) => (outcome = result),
      departed: () => {},
      came: () => {},
      lost: () => {},
    });
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  ipc = outcome === 0;
}
const { rank, size, library, threadLevel, gpuAware, mappingProblem: problem } = port;
const libraryFile = loadedMpiFile();
await port.close();
backend.close();
if (rank === 0) {
  const found = { size, library, libraryFile, threadLevel, gpuAware, ipc, problem };
  process.stdout.write(`${JSON.stringify(found)}\n`);
}
