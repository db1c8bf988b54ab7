// The parts of the time of a small dependency between two ranks, hop by hop: medians over a chain of tasks that takes
// turns on two ranks, from the moment when the whole chain has been inserted. Messages and kernels are commands of
// queues, so their records have the times.

import { fileURLToPath } from 'node:url';
import { type Backend, findQueues } from '../devices/backend.js';
import type { QueueId } from '../devices/handles.js';
import { launchOf } from '../devices/launch.js';
import { Runtime } from '../index.js';
import { commandLine } from './command-line.js';
import { WARM_RUNS } from './harness.js';
import { relay } from './network-relay.js';
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

/** Median of the times from each of `from` to the next of `to`, without the margins. */
function median(from: Times, to: Times): number {
  const spans: number[] = [];
  const ends = [...to].sort((a, b) => a - b);
  let j = 0;
  for (const start of [...from].sort((a, b) => a - b).slice(MARGIN, -MARGIN)) {
    while (j < ends.length && ends[j] < start) j++;
    if (j < ends.length) spans.push(ends[j] - start);
  }
  return spans.sort((a, b) => a - b)[spans.length >> 1] ?? Number.NaN;
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
  await relay(runtime, bytes, ROUNDS, WARM_RUNS);
  for (const notes of [kernels, lanes]) for (const times of Object.values(notes)) times.length = 0;
  const seconds = await relay(runtime, bytes, ROUNDS, 1);
  // Before a kernel the lane's command is its receive, after it its send.
  const hops = {
    'kernel ended -> message handed to MPI': median(kernels.end, lanes.end),
    'message here -> kernel started': median(before(kernels.start, lanes.end), kernels.start),
    kernel: median(kernels.start, kernels.end),
  };
  const here = Object.values(hops).reduce((sum, time) => sum + time, 0);
  if (launch.rank === 0) {
    const step = seconds * 1e9;
    const all = {
      ...hops,
      'MPI, and the rest': step - here,
      'one step': step,
      'aside: kernel issued -> started': median(kernels.issued, kernels.start),
      'aside: kernel ended -> seen by the engine': median(kernels.end, kernels.seen),
    };
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
