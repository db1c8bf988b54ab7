// The program that gpu-aware.ts runs on two ranks. Each rank offers bytes of its GPU's memory to the GPU of the other, which
// fetches them by MPI and checks what has arrived. It runs in a process of its own, because a library without support may crash.

import { findQueue, Status } from '../backend.js';
import { FIRST_GPU, HOST, NO_QUEUE } from '../handles.js';
import { firstGpuOf } from '../launch.js';
import { NetOutcome, WireMode } from '../network/port.js';
import { type NativeBackend, openNativeBackend } from './backend.js';
import { LaneProbe, PROBE_LANES } from './lane-probe.js';
import { openNativeNetwork } from './open-network.js';

const MIB = 2 ** 20;
const AREA = 8 * MIB;
const SIZES: readonly number[] = [8, 4096, 256 * 1024, 4 * MIB + 8];
const PATIENCE_MS = 10_000;

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function until(condition: () => boolean, poll: () => void): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  while (!condition()) {
    if (Date.now() > end) throw new Error('device memory was sent, but did not arrive');
    poll();
    await turn();
  }
}

/** Copies between host and GPU at the same offsets. */
async function copy(
  backend: NativeBackend,
  kind: 'h2d' | 'd2h',
  at: number,
  bytes: number,
): Promise<void> {
  const queue = findQueue(backend.queues, (each) => each.kind === kind);
  const [to, from] = kind === 'h2d' ? [FIRST_GPU, HOST] : [HOST, FIRST_GPU];
  const sequence = backend.copy(queue, 0, to, at, from, at, bytes, NO_QUEUE, 0);
  backend.publish();
  await until(
    () => ((backend.completed[queue] - sequence) | 0) >= 0,
    () => backend.poll(),
  );
  if (backend.status(queue, sequence) !== 0) throw new Error(backend.lastError(queue));
}

/** Gives bytes to the other rank and takes its own. Returns the first wrong byte, or ''. */
async function exchange(
  backend: NativeBackend,
  probe: LaneProbe,
  rank: number,
  bytes: number,
): Promise<string> {
  const other = 1 - rank;
  const value = (of: number, i: number): number => (of * 101 + i * 7 + (i >> 9) + 1) & 255;
  const source = backend.hostView(0, bytes);
  const target = backend.hostView(AREA, bytes);
  for (let i = 0; i < bytes; i++) source[i] = value(rank, i);
  for (let i = 0; i < bytes; i++) target[i] = ~value(other, i);
  await copy(backend, 'h2d', 0, bytes);
  await copy(backend, 'h2d', AREA, bytes);
  probe.receive(other, { space: FIRST_GPU, offset: AREA, bytes }, WireMode.direct);
  probe.offer(other, { space: FIRST_GPU, offset: 0, bytes });
  await until(
    () => probe.outcome !== undefined && probe.status !== undefined,
    () => probe.poll(),
  );
  if (probe.outcome !== NetOutcome.ok || probe.status !== Status.ok)
    return 'MPI refused device memory';
  await copy(backend, 'd2h', AREA, bytes);
  const wrong = target.findIndex((byte, i) => byte !== value(other, i));
  return wrong < 0 ? '' : `byte ${wrong} of ${bytes} did not arrive in device memory`;
}

const backend = openNativeBackend({
  driver: 'cuda',
  gpus: 1,
  firstGpu: firstGpuOf('cuda', 1),
  gpuBytes: 2 * AREA,
  hostBytes: 2 * AREA,
  workers: 1,
  lanes: PROBE_LANES,
  computeStreams: 1,
  ringRecords: 64,
  checked: false,
});
const port = await openNativeNetwork({
  spaces: backend.exported(),
  direct: 'unproven',
  flush: 'off',
  doorbell: backend.doorbell(),
  lanes: backend.lanes(),
  chunkBytes: 65_536,
  crowded: true,
});
let wrong = port.reachable(port.rank, FIRST_GPU) ? '' : port.directProblem;
const probe = new LaneProbe(backend, port);
for (const bytes of SIZES)
  if (wrong === '') wrong = await exchange(backend, probe, port.rank, bytes);
await port.close();
backend.close();
if (wrong !== '') throw new Error(wrong);
if (port.rank === 0) process.stdout.write('{}\n');
