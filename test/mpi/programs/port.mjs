// Drives the network port alone: control messages around a ring, and data on lanes from emulated GPU and host memory by all
// three ways, with every byte checked.

import { Status } from '../../../dist/devices/backend.js';
import { NativeBackend } from '../../../dist/devices/native/backend.js';
import { LaneProbe, PROBE_LANES } from '../../../dist/devices/native/lane-probe.js';
import { openNativeNetwork } from '../../../dist/devices/native/open-network.js';
import { NetOutcome, WireMode } from '../../../dist/devices/network/port.js';
import { loadNative } from '../../../dist/native/index.js';
import { report } from './report.mjs';

const MIB = 2 ** 20;
const GPU = 1;
const core = loadNative().open({
  driver: 'emulated',
  gpus: 1,
  gpuBytes: 64 * MIB,
  hostBytes: 64 * MIB,
  workers: 1,
  lanes: PROBE_LANES,
  computeStreams: 1,
  ringRecords: 64,
  checked: false,
});
const backend = new NativeBackend(core);
const port = await openNativeNetwork({
  spaces: backend.exported(),
  direct: 'never',
  flush: 'auto',
  doorbell: core.doorbell(),
  lanes: backend.lanes(),
  chunkBytes: 65536,
  crowded: true,
});
const { rank, size } = port;
const next = (rank + 1) % size;
const previous = (rank + size - 1) % size;

const messages = [];
const probe = new LaneProbe(backend, port);
let lost = -1;
const sink = {
  message: (from, bytes) => messages.push({ from, bytes: bytes.slice() }),
  departed: (number, outcome) => probe.departed(number, outcome),
  lost: (r) => {
    lost = r;
  },
};
async function until(condition, what) {
  const end = Date.now() + 10000;
  while (!condition()) {
    port.publish();
    port.poll(sink);
    backend.poll();
    if (Date.now() > end) throw new Error(`rank ${rank}: no ${what}`);
    await new Promise((r) => setImmediate(r));
  }
}
// GPU bytes are reached from here by copies of the core's own queues only: use the h2d and d2h queues.
const host = new Uint8Array(core.hostView(0, 64 * MIB));
const queueOf = (kind) => backend.queues.findIndex((q) => q.kind === kind);
async function copy(kind, dstSpace, dstOffset, srcSpace, srcOffset, bytes) {
  const q = queueOf(kind);
  const seq = backend.copy(q, 0, dstSpace, dstOffset, srcSpace, srcOffset, bytes, -1, 0);
  backend.publish();
  while (((backend.completed[q] - seq) | 0) < 0) {
    backend.poll();
    await new Promise((r) => setImmediate(r));
  }
}
const value = (from, i) => (from * 31 + i * 7 + (i >> 8)) & 255;

// 1. Control: many small and one largest message, in order.
const count = 200;
for (let i = 0; i < count; i++) {
  const bytes = new Uint8Array(i === 100 ? port.longestMessage : 16 + (i % 50));
  bytes.fill(i & 255);
  await until(() => port.post(next, bytes), 'room');
}
await until(() => messages.length >= count, 'messages');
let inOrder = true;
messages.slice(0, count).forEach(({ from, bytes }, i) => {
  const length = i === 100 ? port.longestMessage : 16 + (i % 50);
  if (from !== previous || bytes.length !== length || bytes.some((b) => b !== (i & 255)))
    inOrder = false;
});

// 2. Data: sizes around the chunk size, direct and staged, GPU to GPU, GPU to host, host to GPU; ipc.
const problems = [];
for (const bytes of [8, 4096, 65536, 65544, 3 * MIB + 8]) {
  for (const [from, to, mode] of [
    [GPU, GPU, 0],
    [GPU, GPU, 1],
    [GPU, 0, 1],
    [0, GPU, 1],
    [0, 0, 0],
    [GPU, GPU, 2],
  ]) {
    for (let i = 0; i < bytes; i++) host[i] = value(rank, i);
    if (from === GPU) await copy('h2d', GPU, 512, 0, 0, bytes);
    host.fill(0xa5, 8 * MIB, 8 * MIB + bytes);
    const target = to === GPU ? 16 * MIB : 8 * MIB;
    probe.receive(previous, { space: to, offset: target, bytes }, mode);
    probe.offer(next, { space: from, offset: from === GPU ? 512 : 0, bytes });
    await until(
      () => probe.outcome !== undefined && probe.status !== undefined,
      `outcome of ${bytes} bytes ${from}->${to} mode ${mode}`,
    );
    if (to === GPU) await copy('d2h', 0, 8 * MIB, GPU, target, bytes);
    let wrong = probe.status !== Status.ok || probe.outcome !== NetOutcome.ok;
    for (let i = 0; i < bytes && !wrong; i++) wrong = host[8 * MIB + i] !== value(previous, i);
    if (wrong) problems.push(`${bytes} bytes ${from}->${to} mode ${mode}: ${probe.status}`);
  }
}
// 3. A bad offset is refused.
probe.receive(previous, { space: 0, offset: 64 * MIB, bytes: 64 }, WireMode.direct);
await until(() => probe.status !== undefined, 'refusal');
const refused = probe.status;

const counters = port.counters();
await port.close();
core.close();
report(rank, {
  size,
  library: port.library,
  inOrder,
  problems,
  lost,
  refused,
  counters,
  mappable: port.mappable(next, GPU),
});
