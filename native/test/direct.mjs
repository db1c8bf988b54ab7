// Direct use of the addon from plain JavaScript, for the cost script and the programs of the teardown tests, which run
// before any TypeScript is built. It is not a second backend: one opcode, no checks.
import { createRequire } from 'node:module';

const path = process.env.HEADRACE_NATIVE || '../../build/Release/headrace.node';
export const addon = createRequire(import.meta.url)(path);
export const RECORD = 16;
export const CONTROL = 64;
export const EXEC = 2;

/** Opens a core with one compute stream per GPU. */
export function open(workers, gpus, ringRecords) {
  const table = Int32Array.from(addon.queueTable(workers, gpus, 1, 0, 0));
  const words = (count) => {
    const buffer = new SharedArrayBuffer(count * 4 + 64);
    return new Int32Array(
      buffer,
      (64 - Number(addon.address(new Int32Array(buffer)) & 63n)) & 63,
      count,
    );
  };
  const rings = Array.from({ length: table.length / 3 }, () => words(ringRecords * RECORD));
  const times = rings.map(() => {
    const pairs = words(ringRecords * 4);
    return new Float64Array(pairs.buffer, pairs.byteOffset, ringRecords * 2);
  });
  const control = words(rings.length * CONTROL);
  const shared = words(128);
  const options = { driver: 'emulated', gpus, gpuBytes: 1 << 20, hostBytes: 1 << 20, workers };
  Object.assign(options, { computeStreams: 1, ringRecords, checked: false });
  const core = new addon.Core(options, table, rings, times, control, shared);
  return { core, rings, control, shared, mask: ringRecords - 1, kernel: core.kernel('empty') };
}

/** Writes an exec record of the machine's kernel, without arguments. */
export function exec(machine, queue, seq, waitQueue, waitSeq) {
  const ring = machine.rings[queue];
  const at = ((seq - 1) & machine.mask) * RECORD;
  ring[at] = EXEC;
  ring[at + 1] = machine.kernel | ((waitQueue + 1) << 16);
  ring[at + 2] = seq;
  ring[at + 3] = 0;
  ring[at + 4] = waitSeq;
  ring[at + 5] = 0;
}

/** Makes the records up to `seq` visible and wakes the queue's thread. */
export function publish(machine, queue, seq) {
  Atomics.store(machine.control, queue * CONTROL, seq);
  if (Atomics.load(machine.control, queue * CONTROL + 32) !== 0) machine.core.wake(queue);
}

export const completed = (machine, queue) => Atomics.load(machine.control, queue * CONTROL + 16);

/** Blocks until the queue has completed `seq`, for a millisecond at most. */
export function arm(machine, queue, seq) {
  machine.control[queue * CONTROL + 1] = seq;
  Atomics.store(machine.control, queue * CONTROL + 2, 1);
  machine.core.waitForDoorbell(1000);
}
