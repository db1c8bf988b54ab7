// The program that `headrace doctor` runs on two ranks under mpirun. It starts the message layer, reads eight bytes of the
// other rank's GPU (its argument names the driver), and prints its findings as one JSON line. It is a program of its own,
// because a broken MPI may end the process.

import { Status } from '../devices/backend.js';
import { FIRST_GPU } from '../devices/handles.js';
import { firstGpuOf } from '../devices/launch.js';
import { openNativeBackend } from '../devices/native/backend.js';
import { LaneProbe, PROBE_LANES } from '../devices/native/lane-probe.js';
import { loadedMpiFile, openNativeNetwork } from '../devices/native/open-network.js';
import { WireMode } from '../devices/network/port.js';

const PATIENCE_MS = 5000;

const driver = process.argv[2] ?? 'emulated';
const backend = openNativeBackend({
  driver,
  gpus: 1,
  firstGpu: firstGpuOf(driver, 1),
  gpuBytes: 1 << 20,
  hostBytes: 1 << 20,
  workers: 1,
  lanes: PROBE_LANES,
  computeStreams: 1,
  ringRecords: 64,
  checked: false,
});
const port = await openNativeNetwork({
  spaces: backend.exported(),
  direct: 'never',
  flush: 'auto',
  doorbell: backend.doorbell(),
  lanes: backend.lanes(),
  chunkBytes: 65_536,
  crowded: true,
});
let ipc = false;
if (port.size > 1) {
  const { rank, size } = port;
  const probe = new LaneProbe(backend, port);
  probe.offer((rank + size - 1) % size, { space: FIRST_GPU, offset: 0, bytes: 8 });
  probe.receive((rank + 1) % size, { space: FIRST_GPU, offset: 8, bytes: 8 }, WireMode.mapped);
  const until = Date.now() + PATIENCE_MS;
  while (probe.status === undefined && Date.now() < until) {
    probe.poll();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  ipc = probe.status === Status.ok;
}
const { rank, size, library, threadLevel, gpuAware, mappingProblem: problem } = port;
const libraryFile = loadedMpiFile();
await port.close();
backend.close();
if (rank === 0) {
  const found = { size, library, libraryFile, threadLevel, gpuAware, ipc, problem };
  process.stdout.write(`${JSON.stringify(found)}\n`);
}
