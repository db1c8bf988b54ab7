// The parts of the time of a small dependency between two ranks, hop by hop: medians over a chain of tasks that takes
// turns on two ranks, from the moment when the whole chain has been inserted.

import { fileURLToPath } from 'node:url';
import { FIRST_QUEUE } from '../devices/handles.js';
import { launchOf } from '../devices/launch.js';
import type { NativeNetwork } from '../devices/native/network.js';
import { Runtime } from '../index.js';
import { NetLimit, NetRecord } from '../native/mpi-contract.js';
import { commandLine } from './command-line.js';
import { relay } from './network-relay.js';
import { underMpirun } from './ranks.js';

const ROUNDS = 4000;
/** The relay's messages are in the middle; the messages that open and close a run are at both ends. */
const MARGIN = 200;

type Times = number[];

/** The notes of one rank, in nanoseconds of one clock for all processes of a host. */
interface Notes {
  readonly kernelStart: Times;
  readonly kernelEnd: Times;
  readonly ended: Times;
  readonly published: Times;
  readonly taken: Times;
  readonly arrived: Times;
  readonly polled: Times;
  readonly issued: Times;
}

/** Makes the ports of a runtime note the times of passing messages. */
function listen(runtime: Runtime): Notes {
  const { engine } = runtime;
  const { backend } = engine;
  const port = runtime.peers?.device.port as NativeNetwork;
  const notes: Notes = {
    kernelStart: [],
    kernelEnd: [],
    ended: [],
    published: [],
    taken: [],
    arrived: [],
    polled: [],
    issued: [],
  };
  backend.setTiming(true);
  let seen = backend.completed[0];
  const poll = backend.poll.bind(backend);
  backend.poll = () => {
    const moved = poll();
    if (!moved || backend.completed[0] === seen) return moved;
    seen = backend.completed[0];
    notes.ended.push(backend.now());
    notes.kernelStart.push(backend.startOf(FIRST_QUEUE, seen));
    notes.kernelEnd.push(backend.endOf(FIRST_QUEUE, seen));
    return moved;
  };
  let issued = backend.issued[0];
  const publish = backend.publish.bind(backend);
  backend.publish = () => {
    publish();
    if (backend.issued[0] === issued) return;
    issued = backend.issued[0];
    notes.issued.push(backend.now());
  };
  const inside = port as unknown as Inside;
  const commands = inside.commandNumbers;
  const at = (index: number): number => (index & (NetLimit.records - 1)) * NetRecord.doubles;
  const messages: number[] = [];
  const post = port.post.bind(port);
  port.post = (rank, bytes) => {
    const fits = post(rank, bytes);
    // The comm thread's note about the message before: by now it has left.
    const before = messages.pop();
    if (before !== undefined) notes.taken.push(commands[before] as number);
    messages.push(at(inside.published - 1) + NetRecord.start);
    return fits;
  };
  const publishMessages = port.publish.bind(port);
  port.publish = () => {
    const isNew = inside.dirty;
    publishMessages();
    if (isNew) notes.published.push(backend.now());
  };
  const pollMessages = port.poll.bind(port);
  port.poll = (sink) => {
    const { taken } = inside;
    const moved = pollMessages(sink);
    const time = moved ? backend.now() : 0;
    for (let i = taken; i !== inside.taken; i++) {
      notes.polled.push(time);
      notes.arrived.push(inside.eventNumbers[at(i) + NetRecord.start] as number);
    }
    return moved;
  };
  return notes;
}

/** Parts of the port that only this benchmark uses. */
interface Inside {
  readonly commandNumbers: Float64Array;
  readonly eventNumbers: Float64Array;
  readonly dirty: boolean;
  readonly published: number;
  readonly taken: number;
}

/** Median of the times from each of `from` to the next of `to`, without the margins. */
function median(from: Times, to: Times): number {
  const spans: number[] = [];
  let j = 0;
  for (const start of from.slice(MARGIN, -MARGIN)) {
    while (j < to.length && (to[j] as number) < start) j++;
    if (j < to.length) spans.push((to[j] as number) - start);
  }
  return spans.sort((a, b) => a - b)[spans.length >> 1] ?? Number.NaN;
}

const launch = launchOf();
if (launch.size === 2) {
  const runtime = await Runtime.create({ workers: 1, gpus: 0 });
  const bytes = 8;
  await relay(runtime, bytes, ROUNDS, 3);
  const notes = listen(runtime);
  const seconds = await relay(runtime, bytes, ROUNDS, 1);
  const { kernelStart, kernelEnd, ended, published, taken, arrived, polled, issued } = notes;
  const hops = {
    'kernel ended -> seen by the engine': median(kernelEnd, ended),
    'seen -> message handed over': median(ended, published),
    'handed over -> taken by the comm thread': median(published, taken),
    'arrived at the other comm thread -> read by the engine': median(arrived, polled),
    'read -> next task issued': median(polled, issued),
    'issued -> kernel started': median(issued, kernelStart),
    kernel: median(kernelStart, kernelEnd),
  };
  const here = Object.values(hops).reduce((sum, time) => sum + time, 0);
  if (launch.rank === 0) {
    const step = seconds * 1e9;
    const all = { ...hops, 'MPI, and the rest': step - here, 'one step': step };
    const table = Object.entries(all).map(([hop, time]) => ({ hop, ns: Math.round(time) }));
    process.stdout.write(`${JSON.stringify(table, null, 1)}\n`);
  }
  await runtime.close();
} else {
  const usage = `usage: node dist/bench/network-hops.js [options]

Where the time of a small dependency between two ranks goes; a JSON array. It starts itself under mpirun.

  --launcher PROGRAM    what starts the ranks (mpirun)
  --help                this text
`;
  const values = commandLine(usage, { launcher: { type: 'string' } });
  process.exitCode = underMpirun(2, [fileURLToPath(import.meta.url)], values.launcher);
}
