// Drives lanes alone, without the engine: kernels of all ranks that depend on each other through sends and receives, with
// every value checked, over several eras and along trees; then what a failure leaves behind, and runs that are cancelled while
// their versions are under way.
// It measures how long such a dependency takes, beside a ping-pong by hand.

import { Status } from '../../../dist/devices/backend.js';
import { launchOf } from '../../../dist/devices/launch.js';
import { NativeBackend } from '../../../dist/devices/native/backend.js';
import { openNativeNetwork } from '../../../dist/devices/native/open-network.js';
import { loadNative } from '../../../dist/native/index.js';
import { loadMpi, startMpi } from '../../../dist/native/mpi.js';
import { report } from './report.mjs';

const NONE = -1;
const RUN = 1;
const ROUNDS = 200;
const { size } = launchOf();
const addon = loadMpi();
await startMpi(addon);
// Further ranks would wait for these two without sleeping.
const raw = size === 2 ? (await addon.measure(8, 500, 'host')) * 1e6 : 0;

const core = loadNative().open({
  driver: 'emulated',
  gpus: 0,
  gpuBytes: 0,
  hostBytes: 2 ** 23,
  workers: 1,
  lanes: 4,
  computeStreams: 1,
  ringRecords: 4096,
  checked: false,
});
const backend = new NativeBackend(core);
const lanes = backend.queues.flatMap(({ kind }, q) => (kind === 'lane' ? [q] : []));
const worker = 0;
// LANES_CALM=0: every thread has a core, so that the comm thread may spin. For measurements.
const crowded = process.env['LANES_CALM'] !== '0';
const port = await openNativeNetwork({
  spaces: backend.exported(),
  direct: 'never',
  flush: 'auto',
  doorbell: core.doorbell(),
  lanes: backend.lanes(),
  treeFrom: 3,
  chunkBytes: 65536,
  crowded,
});
const { rank } = port;
let lost = -1;
/** Outcomes of offers by their numbers. */
const departed = new Map();
const messages = [];
/** Messages that have come once this rank has passed all barriers so far. */
let barriers = 0;
const sink = {
  message: (from, bytes) => messages.push({ from, bytes: bytes.slice() }),
  done: () => {},
  departed: (number, outcome) => departed.set(number, outcome),
  lost: (r) => {
    lost = r;
  },
};
const numbers = new Float64Array(core.hostView(0, 2 ** 20));
const add = backend.kernel('add_f64', 0);
const fail = backend.kernel('fail', 0);

const exec = (args, flows, wait, run = RUN, kernel = add) => [
  worker,
  backend.exec(
    worker,
    kernel,
    0,
    run,
    flows,
    args.length,
    Float64Array.from(args),
    wait?.[0] ?? NONE,
    wait?.[1] ?? 0,
  ),
];
const message = (kind, lane, args, wait, run) => [
  lanes[lane],
  backend.message(
    kind,
    lanes[lane],
    0,
    run,
    args.length,
    Float64Array.from(args),
    wait?.[0] ?? NONE,
    wait?.[1] ?? 0,
  ),
];
const send = (lane, args, wait, run = RUN) => message('send', lane, args, wait, run);
const offer = (lane, args, wait, run = RUN) => message('offer', lane, args, wait, run);
const receive = (lane, args, wait, run = RUN) => message('receive', lane, args, wait, run);
function publish() {
  backend.publish();
  port.commanded();
  port.publish();
}
const isDone = ([queue, seq]) => ((backend.completed[queue] - seq) | 0) >= 0;
const statusOf = ([queue, seq]) => backend.status(queue, seq);

/** Sleeps on the doorbell as the engine does, until all events have happened. */
async function until(events, what) {
  publish();
  const end = performance.now() + 20_000;
  for (;;) {
    backend.poll();
    port.poll(sink);
    const open = events.filter((event) => !isDone(event));
    if (open.length === 0) return;
    if (performance.now() > end) throw new Error(`rank ${rank}: ${what} never ended`);
    for (const [queue, seq] of open) backend.arm(queue, seq);
    backend.block(1e6);
  }
}
/** Waits until so many offers are over. */
async function departures(count) {
  const end = performance.now() + 20_000;
  while (departed.size < count) {
    port.poll(sink);
    if (performance.now() > end)
      throw new Error(`rank ${rank}: ${count - departed.size} offers never ended`);
    await new Promise((go) => setTimeout(go, 0));
  }
}
/** All ranks are here: control messages, so that the lanes have no part in it. */
async function barrier() {
  const others = Array.from({ length: size }, (_, r) => r).filter((r) => r !== rank);
  barriers += others.length;
  for (const r of others) {
    while (!port.post(r, new Uint8Array(8))) port.poll(sink);
  }
  port.publish();
  while (messages.length < barriers) {
    port.poll(sink);
    await new Promise((go) => setTimeout(go, 0));
  }
}

const problems = [];
const expectValue = (what, at, value) => {
  if (numbers[at / 8] !== value) problems.push(`${what}: ${numbers[at / 8]}, not ${value}`);
};

// 1. A number goes back and forth between kernels of ranks 0 and 1; each adds one. All commands are written at once.
const VALUE = 0;
const ONE = 8;
let hop = 0;
for (const era of [1, 2, 3]) {
  port.beginEra(era);
  numbers[VALUE / 8] = 0;
  numbers[ONE / 8] = 1;
  await barrier();
  if (rank < 2) {
    const other = 1 - rank;
    const began = performance.now();
    let last;
    for (let round = 0; round < ROUNDS; round++) {
      const key = 2 * round;
      if (rank === 1) last = receive(1, [VALUE, 8, era, key], last);
      last = exec([VALUE, ONE, 1, 1], 2, last);
      last = send(0, [VALUE, 8, era, other, key + rank], last);
      if (rank === 0) last = receive(1, [VALUE, 8, era, key + 1], last);
    }
    await until([last], `era ${era}`);
    hop = ((performance.now() - began) * 1000) / (2 * ROUNDS);
    expectValue(`era ${era}`, VALUE, 2 * ROUNDS);
  }
}

// 2. Every rank sends its block to all others, along trees; receives of every second rank come late.
const BLOCK = 512;
const block = (r) => 4096 + r * BLOCK;
for (const [era, bytes] of [
  [4, 8],
  [5, 0],
  [6, 500],
]) {
  port.beginEra(era);
  const bytesOf = new Uint8Array(numbers.buffer, 0, 2 ** 20);
  for (let r = 0; r < size; r++)
    bytesOf.fill(r === rank ? 10 * era + r : 0, block(r), block(r) + BLOCK);
  await barrier();
  const destinations = Array.from({ length: size - 1 }, (_, i) => (rank + 1 + i) % size);
  const sent = send(0, [
    block(rank),
    bytes,
    era,
    ...destinations.flatMap((to) => [to, 1000 * rank + to]),
  ]);
  if (rank % 2 === 1) {
    await until([sent], 'send');
    await barrier();
  }
  const taken = destinations.map((from, i) =>
    receive(1 + (i % 3), [block(from), bytes, era, 1000 * from + rank]),
  );
  publish();
  if (rank % 2 === 0) await barrier();
  await until([sent, ...taken], `exchange of ${bytes} bytes`);
  for (let r = 0; r < size; r++) {
    const value = 10 * era + r;
    for (let i = 0; i < BLOCK; i++) {
      const expected = i < bytes || r === rank ? value : 0;
      if (bytesOf[block(r) + i] !== expected) problems.push(`era ${era}, rank ${r}, byte ${i}`);
    }
  }
}

// 3. The same with long versions: other ranks fetch them when their receives are commanded, and pass them on.
const LONG = 150_000;
/** Space and priority of an offer. */
const HOST = [0, 0];
const long = (r) => 65_536 + r * 200_000;
for (const era of [7, 8]) {
  departed.clear();
  port.beginEra(era);
  const bytesOf = new Uint8Array(numbers.buffer, 0, 2 ** 20);
  for (let r = 0; r < size; r++)
    bytesOf.fill(r === rank ? 10 * era + r : 0, long(r), long(r) + LONG + 1);
  await barrier();
  const destinations = Array.from({ length: size - 1 }, (_, i) => (rank + 1 + i) % size);
  const pairs = destinations.flatMap((to) => [to, 1000 * rank + to]);
  const offered = offer(0, [long(rank), LONG, era, 1, 0, ...HOST, ...pairs]);
  if ((rank + era) % 2 === 1) {
    await until([offered], 'announcement');
    await barrier();
  }
  const taken = destinations.flatMap((from, i) => {
    const lane = 1 + (i % 3);
    const key = 1000 * from + rank;
    const arrival = receive(lane, [long(from), LONG, era, key]);
    return [arrival, offer(lane, [long(from), LONG, era, 2 + i, key, ...HOST], arrival)];
  });
  publish();
  if ((rank + era) % 2 === 0) await barrier();
  await until([offered, ...taken], 'exchange of long versions');
  await departures(size);
  for (const [number, outcome] of departed)
    if (outcome !== 0) problems.push(`offer ${number}: ${outcome}`);
  for (let r = 0; r < size; r++) {
    const wrong = bytesOf.subarray(long(r), long(r) + LONG).findIndex((b) => b !== 10 * era + r);
    if (wrong >= 0) problems.push(`era ${era}, long version of rank ${r}, byte ${wrong}`);
    if (r !== rank && bytesOf[long(r) + LONG] !== 0) problems.push(`behind that of rank ${r}`);
  }
}

// 4. A failed kernel: its run sends nothing, another run waits until the failure is handled; a receive is cancelled. A long
// version that no receive takes is declined in the next era.
departed.clear();
port.beginEra(9);
await barrier();
const ignored = offer(0, [long(rank), LONG, 9, 1, 0, ...HOST, (rank + 1) % size, 5]);
await until([ignored], 'announcement');
if (departed.size > 0) problems.push('an offer departed before its receiver had answered');
await barrier();
port.beginEra(10);
port.publish();
await departures(1);
await barrier();
const bad = exec([3], 0, undefined, 2, fail);
const same = send(0, [VALUE, 8, 10, (rank + 1) % size, 1], bad, 2);
const lonely = receive(1, [VALUE, 8, 10, 1], bad, 2);
const unsent = offer(0, [long(rank), LONG, 10, 2, 0, ...HOST, (rank + 1) % size, 6], bad, 2);
await until([bad, same, lonely, unsent], 'the failed run');
await departures(2);
let failures = 0;
for (let q = 0; q < backend.queues.length; q++) failures += backend.failures[q];
const other = send(0, [ONE, 8, 10, (rank + 1) % size, 2], undefined, 3);
// The server serves this lane after that of the send.
backend.wait(lanes[2], bad[0], bad[1]);
await until([[lanes[2], backend.issued[lanes[2]]]], 'the wait');
const held = !isDone(other);
backend.handledFailures(failures);
const arrival = receive(1, [VALUE, 8, 10, 2], undefined, 3);
await until([other, arrival], 'the other run');
expectValue('after a failure', VALUE, 1);
await barrier();

const ofFailures = [departed.get(1), departed.get(2)];

// 5. Runs are cancelled at any time from before their announcements to after their bytes. What a receive that has ended was to
// fill is not written any more, its offer departs, and its lane takes the version of the next run.
const HUGE = 2 ** 21;
const SOURCE = 2 * HUGE;
const CANCELLED_ROUNDS = 24;
const MICROSECONDS = 60;
const source = Buffer.from(core.hostView(SOURCE, HUGE));
const target = Buffer.from(core.hostView(HUGE, HUGE));
const [to, from] = [(rank + 1) % size, (rank + size - 1) % size];
function handleFailures() {
  backend.poll();
  backend.handledFailures(backend.failures.reduce((sum, count) => sum + count, 0));
}
let cancelled = 0;
departed.clear();
port.beginEra(11);
source.fill(rank + 1);
await barrier();
for (let round = 0; round < CANCELLED_ROUNDS; round++) {
  const key = 2 * round;
  if (round === 0) backend.setCancelled(4, true);
  const taken = receive(1, [HUGE, HUGE, 11, key], undefined, 4);
  const given = offer(0, [SOURCE, HUGE, 11, key, 0, ...HOST, to, key], undefined, 5);
  publish();
  const at = performance.now() + (round * MICROSECONDS) / 1000;
  while (performance.now() < at);
  backend.setCancelled(4, true);
  await until([taken], `the receive of round ${round}`);
  target.fill(0xee);
  handleFailures();
  if (statusOf(taken) === Status.cancelled) cancelled++;
  // Its version may come later.
  port.refuse(11, key);
  await until([given], `the offer of round ${round}`);
  await departures(2 * round + 1);
  await barrier();
  const written = target.findIndex((byte) => byte !== 0xee);
  if (written >= 0) problems.push(`round ${round}: byte ${written} was written after the end`);
  backend.setCancelled(4, false);
  const next = receive(1, [HUGE, HUGE, 11, key + 1], undefined, 4);
  const last = offer(0, [SOURCE, HUGE, 11, key + 1, 0, ...HOST, to, key + 1], undefined, 5);
  await until([next, last], `the next version of round ${round}`);
  await departures(2 * round + 2);
  const wrong = target.findIndex((byte) => byte !== from + 1);
  if (statusOf(next) !== Status.ok || wrong >= 0)
    problems.push(`round ${round}: status ${statusOf(next)}, byte ${wrong} of the next version`);
}
for (const [number, outcome] of departed)
  if (outcome !== 0) problems.push(`offer ${number} of a cancelled receive: ${outcome}`);
await barrier();

await port.close();
core.close();
report(rank, {
  size,
  problems,
  lost,
  failures,
  held,
  cancelled,
  departures: ofFailures,
  statuses: [statusOf(bad), statusOf(same), statusOf(lonely), statusOf(other), statusOf(arrival)],
  hop,
  raw,
});
