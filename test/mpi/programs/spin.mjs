// A kernel spins on a word of its GPU's memory (one thread, and enough blocks to fill the GPU) while the other rank's
// bytes, the word last, are delivered there: by MPI, in staged chunks, by reading the other rank's memory. A step that
// waited for the kernel would wait for ever. Argument: JSON with `driver`.

import { Status } from '../../../dist/devices/backend.js';
import { firstGpuOf } from '../../../dist/devices/launch.js';
import { openNativeBackend } from '../../../dist/devices/native/backend.js';
import { LaneProbe, PROBE_LANES } from '../../../dist/devices/native/lane-probe.js';
import { openNativeNetwork } from '../../../dist/devices/native/open-network.js';
import { NetOutcome } from '../../../dist/devices/network/port.js';
import { MODES } from '../../../dist/devices/network/ways.js';
import { report } from './report.mjs';

const { driver = 'cuda', rounds = 1 } = JSON.parse(process.argv[2] ?? '{}');
const MIB = 2 ** 20;
const GPU = 1;
const SEEN = 15 * MIB;
const LIMIT_MS = 10_000;

const backend = openNativeBackend({
  driver,
  gpus: 1,
  firstGpu: firstGpuOf(driver, 1),
  gpuBytes: 16 * MIB,
  hostBytes: 16 * MIB,
  pinnedBytes: 16 * MIB,
  workers: 1,
  lanes: PROBE_LANES,
  computeStreams: 1,
  ringRecords: 64,
  checked: true,
});
const port = await openNativeNetwork({
  spaces: backend.exported(),
  direct: 'proven',
  flush: 'auto',
  doorbell: backend.doorbell(),
  lanes: backend.lanes(),
  chunkBytes: 512 * 1024,
  crowded: true,
});
const { rank } = port;
const other = 1 - rank;
const kernel = backend.kernel('await_word', GPU);
const queueOf = (kind) => backend.queues.findIndex((each) => each.kind === kind);

let heard = 0;
const probe = new LaneProbe(backend, port);
const sink = {
  message: () => heard++,
  departed: (number, outcome) => probe.departed(number, outcome),
  came: () => {},
  lost: (who) => {
    throw new Error(`rank ${who} is gone`);
  },
};
async function until(condition, what) {
  const end = performance.now() + LIMIT_MS;
  while (!condition()) {
    port.publish();
    port.poll(sink);
    backend.poll();
    if (performance.now() > end) throw new Error(`rank ${rank}: no ${what} within 10 s`);
    await new Promise((r) => setImmediate(r));
  }
}
const over = (queue, sequence) => ((backend.completed[queue] - sequence) | 0) >= 0;
async function copy(kind, at, bytes) {
  const queue = queueOf(kind);
  const [to, from] = kind === 'h2d' ? [GPU, 0] : [0, GPU];
  const sequence = backend.copy(queue, 0, to, at, from, at, bytes, -1, 0);
  backend.publish();
  await until(() => over(queue, sequence), kind);
}
let said = 0;
async function meet() {
  await until(() => port.post(other, new Uint8Array(8)), 'room');
  said++;
  await until(() => heard >= said, 'meeting');
}

const ways = [
  ...(port.reachable(0, GPU) && port.reachable(1, GPU) ? ['direct'] : []),
  'staged',
  ...(port.mappable(other, GPU) || driver === 'emulated' ? ['ipc'] : []),
];
const cases = [];
let value = 1000;
for (let round = 0; round < rounds; round++) {
  for (const way of ways) {
    for (const bytes of [8, 4096, 65536, 4 * MIB]) {
      for (const [blocks, threads] of [
        [1, 1],
        [208, 128],
      ]) {
        value++;
        const host = backend.hostView(0, bytes);
        host.fill(rank === 0 ? value & 255 : 0);
        new DataView(host.buffer, host.byteOffset).setBigInt64(
          bytes - 8,
          rank === 0 ? BigInt(value) : 0n,
          true,
        );
        await copy('h2d', 0, bytes);
        await meet();
        const began = performance.now();
        if (rank === 0) {
          await meet();
          probe.offer(1, { space: GPU, offset: 0, bytes });
          await until(() => probe.outcome !== undefined, 'departure');
          if (probe.outcome !== NetOutcome.ok) throw new Error(`${way}: outcome ${probe.outcome}`);
        } else {
          const queue = queueOf('compute');
          const args = Float64Array.of(bytes - 8, SEEN, value, blocks, threads);
          const sequence = backend.exec(queue, kernel, 0, -1, 2, args.length, args, -1, 0);
          backend.publish();
          // The kernel is there and spins before anything is on its way. A kernel says nothing when it begins: it gets time.
          await new Promise((r) => setTimeout(r, 20));
          backend.poll();
          if (over(queue, sequence)) throw new Error('the kernel does not spin');
          probe.receive(0, { space: GPU, offset: 0, bytes }, MODES[way]);
          await meet();
          await until(() => probe.status !== undefined, `${way} of ${bytes} bytes`);
          await until(() => over(queue, sequence), `end of the kernel after ${way}`);
          await copy('d2h', SEEN, 8);
          const view = backend.hostView(SEEN, 8);
          const seen = new DataView(view.buffer, view.byteOffset).getBigInt64(0, true);
          const ok = seen === BigInt(value) && probe.status === Status.ok;
          const seconds = (performance.now() - began) / 1000;
          cases.push({ way, bytes, blocks, threads, ok, seconds: Number(seconds.toFixed(4)) });
        }
        await meet();
      }
    }
  }
}
await port.close();
backend.close();
report(rank, { ways, cases, ok: cases.every(({ ok }) => ok) });
