// The errors of the other ranks when one fails. Argument: JSON with `way`; `who`, the rank that fails; and `fetch`, how inputs come.

import { Runtime, read, readWrite, task, write } from '../../../dist/index.js';
import { report } from './report.mjs';

const { way, who = 1, fetch = 'push', ...rest } = JSON.parse(process.argv[2]);
const runtime = await Runtime.create({ workers: 1, checked: true, hostMemory: '64MiB', ...rest });
const { rank, ranks } = runtime;
const began = performance.now();
const say = (more) => report(rank, { seconds: (performance.now() - began) / 1000, ...more });
const describe = (error) => ({
  code: error.code,
  message: error.message,
  from: error.details?.rank ?? null,
  cause: error.cause?.code ?? null,
});

const step = task({
  name: 'step',
  fetch,
  flows: { x: readWrite('f64') },
  params: { i: 'i32' },
  body: ({ x, i }) => {
    x[0] += 1;
    if (rank === who && i === ranks + who) {
      if (way === 'kill') process.kill(process.pid, 'SIGKILL');
      if (way === 'throw') throw new Error('the body threw');
      if (way === 'exit') process.exit(7);
    }
  },
});
const use = task({
  name: 'use',
  fetch,
  flows: { a: read('f64'), x: write('f64') },
  body: ({ a, x }) => {
    x[0] = a[0];
  },
});
const fillTile = task({
  name: 'fillTile',
  flows: { to: write('f64') },
  params: { count: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});
const copyTile = task({
  name: 'copyTile',
  flows: { b: write('f64'), a: read('f64') },
  params: { bytes: 'i32' },
  kernel: 'copy_bytes',
});
const n = 1024;
const x = runtime.data(new Float64Array(n), { name: 'x', rank: 0 });
const y = runtime.data(new Float64Array(n), { name: 'y', rank: who });
const y2 = runtime.data(new Float64Array(n), { name: 'y2', rank: who });
const z = runtime.data(new Float64Array(n), { name: 'z', rank: 0 });

let tilesBytes = 0;
/** Rank 0 kills the other as soon as the first of many tiles has come from its GPU: the next are on their way. */
async function killWhileMoving() {
  const count = 24;
  const length = 2 ** 19;
  const tiles = Array.from({ length: count }, (_, i) =>
    runtime.data('f64', length, { name: `t${i}`, rank: who, device: 0 }),
  );
  const copies = Array.from({ length: count * ranks }, (_, i) =>
    runtime.data('f64', length, { name: `c${i}`, rank: i % ranks, device: 0 }),
  );
  const pid = runtime.data(new Float64Array([process.pid]), { name: 'pid', rank: who });
  const victim = (await pid.read())[0];
  const before = runtime.peers.report().receivedBytes;
  const watch = () => {
    if (runtime.peers.report().receivedBytes > before) process.kill(victim, 'SIGKILL');
    else setImmediate(watch);
  };
  if (rank === 0) watch();
  const rounds = 20;
  tilesBytes = rounds * count * length * 8;
  await runtime.run((graph) => {
    for (let round = 0; round < rounds; round++) {
      for (const x of tiles) graph.insert(fillTile, { to: x, count: length, value: round });
      for (const [i, b] of copies.entries()) {
        if (i % ranks !== who)
          graph.insert(copyTile, { a: tiles[Math.floor(i / ranks)], b, bytes: length * 8 });
      }
    }
  });
}

async function failing() {
  try {
    if (way === 'kill-moving') {
      await killWhileMoving();
      return { code: 'none' };
    }
    if (way === 'pruned') {
      // One rank leaves out a task that writes its own datum: the other sends data that no rank receives.
      await runtime.run(
        (graph) => {
          const handle = graph.insert(step, { x, i: 1000 }, { rank: 0 });
          if (rank === who) {
            try {
              graph.insert(use, { a: y, x: y2 }, { after: [handle] });
            } catch (error) {
              say({ refused: error.code });
            }
          } else graph.insert(use, { a: x, x: y });
        },
        { pruned: true },
      );
      return { code: 'none' };
    }
    await runtime.run(async (graph) => {
      for (let i = 0; i < 12; i++) {
        graph.insert(step, { x, i }, { rank: i % ranks });
        if (way === 'program' && rank === who && i === 5) throw new Error('the program threw');
        if (way === 'mismatch' && rank === who && i === 5) graph.insert(use, { a: y, x: z });
        if (way === 'loop' && i === 5 && rank === who)
          setTimeout(() => process.kill(process.pid, 'SIGKILL'), 300);
      }
      if (way === 'loop') {
        // A plain loop that never yields: the engine alone must notice. This rank does nothing until it is killed.
        if (rank === who) await new Promise((r) => setTimeout(r, 20000));
        graph.insert(use, { a: y, x: z });
        for (;;) graph.insert(step, { x: z, i: 100 }, { rank: 0 });
      }
    });
    return { code: 'none' };
  } catch (error) {
    return describe(error);
  }
}
const first = await failing();
const received = runtime.peers?.report().receivedBytes ?? 0;
say({ first, received, of: tilesBytes });
let again;
if (way === 'throw' || way === 'program' || way === 'mismatch' || way === 'pruned') {
  // The runtime stays usable: all ranks start over together.
  try {
    const v = runtime.data(new Float64Array(n), { name: 'v', rank: who });
    await runtime.run((graph) => {
      for (let i = 0; i < 3 * ranks; i++)
        graph.insert(step, { x: v, i: 1000 + i }, { rank: i % ranks });
    });
    again = (await v.read())[0];
  } catch (error) {
    again = describe(error);
  }
}
let poisoned;
if (way === 'throw') {
  try {
    poisoned = (await x.read())[0];
  } catch (error) {
    poisoned = describe(error);
  }
}
const closing = performance.now();
await runtime.close();
say({ again, poisoned, closeSeconds: (performance.now() - closing) / 1000 });
