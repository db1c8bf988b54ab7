// The parts of the time of a small dependency between two ranks, hop by hop: medians over a chain of tasks that takes
// turns on two ranks, from the moment when the whole chain has been inserted. Messages and kernels are commands of
// queues, so their records have the times. Means tell of what happens to few steps, for example that they wait for the engine.

import { fileURLToPath } from 'node:url';
import { type Backend, findQueues } from '../devices/backend.js';
import type { QueueId } from '../devices/handles.js';
import { launchOf } from '../devices/launch.js';
import { Runtime } from '../index.js';
import { commandLine } from './command-line.js';
import { WARM_RUNS } from './harness.js';
import { Relay } from './network-relay.js';
import { underMpirun } from './ranks.js';

const ROUNDS = 2000;
/** The relay's messages are in the middle; the messages that open and close a run are at both ends. */
const MARGIN = 200;

type Times = number[];

/** Commands of some queues: when the engine issued them, when they began and ended, and when the engine saw the end; nanoseconds. */
interface Notes {
  readonly issued: Times;
  readonly start: Times;
  readonly end: Times;
  readonly seen: Times;
}

/** Notes the times of all further commands of some queues. */
function listen(backend: Backend, queues: readonly QueueId[]): Notes {
  const notes: Notes = { issued: [], start: [], end: [], seen: [] };
  const completed = queues.map((q) => backend.completed[q]);
  const issued = queues.map((q) => backend.issued[q]);
  const poll = backend.poll.bind(backend);
  backend.poll = () => {
    if (!poll()) return false;
    const time = backend.now();
    queues.forEach((q, i) => {
      for (; completed[i] !== backend.completed[q]; completed[i]++) {
        const seq = (completed[i] + 1) | 0;
        notes.start.push(backend.startOf(q, seq));
        notes.end.push(backend.endOf(q, seq));
        notes.seen.push(time);
      }
    });
    return true;
  };
  const publish = backend.publish.bind(backend);
  backend.publish = () => {
    publish();
    const time = backend.now();
    queues.forEach((q, i) => {
      for (; issued[i] !== backend.issued[q]; issued[i]++) notes.issued.push(time);
    });
  };
  return notes;
}

/** The times from each of `from` to the next of `to`, in order, without the margins. */
function spansOf(from: Times, to: Times): Times {
  const spans: number[] = [];
  const ends = [...to].sort((a, b) => a - b);
  let j = 0;
  for (const start of [...from].sort((a, b) => a - b).slice(MARGIN, -MARGIN)) {
    while (j < ends.length && ends[j] < start) j++;
    if (j < ends.length) spans.push(ends[j] - start);
  }
  return spans.sort((a, b) => a - b);
}

interface Hop {
  /** The median. */
  readonly ns: number;
  readonly mean: number;
}

function hopOf(spans: Times): Hop {
  const sum = spans.reduce((all, span) => all + span, 0);
  return { ns: spans[spans.length >> 1] ?? Number.NaN, mean: sum / spans.length };
}

/** The time that each kernel's command came later than its message. */
function lateness({ issued, start }: Notes, messages: Times): Times {
  const came = before(start, messages);
  // One worker: its kernels start in the order in which they were issued. The first one waits for no message.
  const first = start.length - came.length;
  const late = came.map((end, i) => Math.max(0, (issued[first + i] as number) - end));
  return late.slice(MARGIN, -MARGIN).sort((a, b) => a - b);
}

/** Measures the passes of the engine: their number, and nanoseconds. */
function watchPasses(
  engine: { pump(): boolean },
  now: () => number,
): { count: number; ns: number } {
  const passes = { count: 0, ns: 0 };
  const pump = engine.pump.bind(engine);
  engine.pump = () => {
    const began = now();
    const moved = pump();
    passes.count++;
    passes.ns += now() - began;
    return moved;
  };
  return passes;
}

const launch = launchOf();
if (launch.size === 2) {
  const runtime = await Runtime.create({ workers: 1, gpus: 0 });
  const bytes = 8;
  const { backend } = runtime.engine;
  backend.setTiming(true);
  const kernels = listen(
    backend,
    findQueues(backend.queues, ({ kind }) => kind === 'worker'),
  );
  const lanes = listen(
    backend,
    findQueues(backend.queues, ({ kind }) => kind === 'lane'),
  );
  // V8 compiles the engine once more when its methods are replaced: the measured runs come after that.
  const passes = watchPasses(runtime.engine, () => backend.now());
  const relay = new Relay(runtime, bytes);
  await relay.run(ROUNDS, WARM_RUNS);
  for (const notes of [kernels, lanes]) for (const times of Object.values(notes)) times.length = 0;
  passes.count = passes.ns = 0;
  const seconds = await relay.run(ROUNDS, 1);
  const spans = (from: Times, to: Times): Hop => hopOf(spansOf(from, to));
  // Before a kernel the lane's command is its receive, after it its send.
  const hops = {
    'kernel ended -> message handed to MPI': spans(kernels.end, lanes.end),
    'message here -> kernel started': spans(before(kernels.start, lanes.end), kernels.start),
    kernel: spans(kernels.start, kernels.end),
  };
  const here = Object.values(hops).reduce((sum, { ns }) => sum + ns, 0);
  const hereMean = Object.values(hops).reduce((sum, { mean }) => sum + mean, 0);
  if (launch.rank === 0) {
    const step = seconds * 1e9;
    const alike = (ns: number): Hop => ({ ns, mean: ns });
    const all: Record<string, Hop> = {
      ...hops,
      'MPI, and the rest': { ns: step - here, mean: step - hereMean },
      'one step': alike(step),
      'aside: message here, its kernel not issued': hopOf(lateness(kernels, lanes.end)),
      'aside: kernel issued -> started': spans(kernels.issued, kernels.start),
      'aside: kernel ended -> seen by the engine': spans(kernels.end, kernels.seen),
      // With insertion, and passes that find nothing.
      'aside: passes of the engine, per step': alike(passes.ns / ROUNDS),
      'aside: a pass': alike(passes.ns / passes.count),
    };
    const table = Object.entries(all).map(([hop, { ns, mean }]) => ({
      hop,
      ns: Math.round(ns),
      mean: Math.round(mean),
    }));
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

/** The last of `ends` before each of `starts`. */
function before(starts: Times, ends: Times): Times {
  const sorted = [...ends].sort((a, b) => a - b);
  let j = 0;
  return [...starts]
    .sort((a, b) => a - b)
    .flatMap((start) => {
      while (j < sorted.length && sorted[j] <= start) j++;
      return j > 0 ? [sorted[j - 1]] : [];
    });
}
