// One rank gets a signal while its event loop is blocked, or runs. Argument: JSON with `way`, `signal`, `who`, and
// perhaps `target: 'launcher'`.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Runtime, read, readWrite, task, write } from '../../../dist/index.js';
import { report } from './report.mjs';

const { way, signal, who, target = 'rank' } = JSON.parse(process.argv[2]);
const runtime = await Runtime.create({ workers: 1, hostMemory: '64MiB', window: 256 });
const { rank } = runtime;
const step = task({
  name: 'step',
  flows: { x: readWrite('f64') },
  body: ({ x }) => {
    x[0] += 1;
  },
});
const use = task({
  name: 'use',
  flows: { a: read('f64'), b: write('f64') },
  body: ({ a, b }) => {
    b[0] = a[0];
  },
});
const x = runtime.data(new Float64Array(1024), { name: 'x', rank: who });
const y = runtime.data(new Float64Array(1024), { name: 'y', rank: 0 });
const z = runtime.data(new Float64Array(1024), { name: 'z', rank: 0 });
await x.read();

if (rank === who) {
  // A program with a listener of its own counts on Node to call it.
  if (signal === 'SIGINT' && way !== 'idle') process.on('SIGINT', () => report(rank, { heard: 1 }));
  const watcher = fileURLToPath(new URL('signals-watch.mjs', import.meta.url));
  spawn(process.execPath, [watcher, String(process.pid), signal, String(rank), target], {
    detached: true,
    stdio: 'ignore',
  }).unref();
}

const never = () => new Promise((resolve) => setTimeout(resolve, 60_000));
const programs = {
  /** Inserts for ever, without room ever missing. */
  loop: (graph) => {
    for (;;) graph.insert(step, { x });
  },
  /** Inserts for ever, and waits for room that another rank's datum would make. */
  window: (graph) => {
    graph.insert(step, { x: y });
    for (;;) graph.insert(use, { a: y, b: x });
  },
  idle: never,
};
let first = { code: 'none' };
try {
  await runtime.run(async (graph) => {
    if (rank === who) await programs[way](graph);
    else {
      // Insertion throws once the run has failed.
      while (way === 'window') {
        graph.insert(step, { x: z });
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      graph.insert(use, { a: x, b: z });
    }
  });
} catch (error) {
  first = { code: error.code, from: error.details?.rank ?? null };
}
report(rank, { first });
await runtime.close();
