// Files of a plan of several ranks: those that fit are loaded by other runtimes, and one that does not fit on one rank is refused on
// all. Argument: a folder. Reports problems.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Runtime, read, readWrite, slot, task } from '../../../dist/index.js';
import { report } from './report.mjs';

const folder = process.argv[2];
const axpy = task({
  name: 'axpy',
  flows: { y: readWrite('f64'), x: read('f64') },
  params: { n: 'i32', a: 'f64' },
  kernel: 'add_f64',
});
const N = 1000;
const runtime = await Runtime.create({ workers: 2, hostMemory: '64MiB', checked: true });
const { rank, ranks } = runtime;
const last = ranks - 1;
const problems = [];
const file = (name, of = rank) => path.join(folder, `${name}.${of}.plan`);

/** The value goes around all ranks. */
const tiles = Array.from({ length: ranks }, (_, r) =>
  runtime.data(new Float64Array(N).fill(r + 1), { name: `tile ${r}`, rank: r }),
);
const insert = (graph, a) => {
  for (let r = 0; r < ranks; r++)
    graph.insert(axpy, { y: tiles[(r + 1) % ranks], x: tiles[r], n: N, a });
};
for (const [name, a] of [
  ['ring', slot('a')],
  ['other', 2],
]) {
  const plan = await runtime.plan((graph) => insert(graph, a), { name });
  await plan.save(file(name));
  plan.close();
}
const bytes = readFileSync(file('ring'));
writeFileSync(file('half'), bytes.subarray(0, bytes.length / 2));

/** Loads `from` on one rank and the ring on the others. */
const refused = async (at, from, own, peers) => {
  const error = await runtime
    .loadPlan(rank === at ? from : file('ring'), { data: tiles, classes: axpy })
    .then(() => ({ code: 'loaded', message: '' }))
    .catch((thrown) => thrown);
  const [code, text] = rank === at ? own : peers;
  if (error.code !== code || !error.message.includes(text))
    problems.push(`${from} at rank ${at}: ${error.code} ${error.message}`);
};
for (const at of new Set([0, last])) {
  const peer = (name, of = at) => ['ERR_PEER_FAILED', `${name}.${of}.plan`];
  await refused(at, file('none', at), ['ERR_PLAN_FILE', 'cannot be read'], peer('none'));
  await refused(at, file('half', at), ['ERR_PLAN_FILE', 'bytes, and should have'], peer('half'));
  const next = (at + 1) % ranks;
  await refused(
    at,
    file('ring', next),
    ['ERR_PLAN_MISMATCH', `it was made for rank ${next} of ${ranks}`],
    peer('ring', next),
  );
  const text = 'is not of the same plan as the files of the other ranks';
  await refused(
    at,
    file('other', at),
    ['ERR_PLAN_MISMATCH', `other.${at}.plan of rank ${at} ${text}`],
    ['ERR_PLAN_MISMATCH', `ring.${rank}.plan of rank ${rank} ${text}`],
  );
}
// The runtime goes on.
const plan = await runtime.loadPlan(file('ring'), { data: tiles, classes: axpy });
await plan.run({ times: 2, values: { a: (k) => 0.5 + k } });
const { iterations } = await plan.run({
  times: 50,
  values: { a: 1 },
  while: { datum: tiles[0], below: 1e4 },
});
const found = await Promise.all(tiles.map((tile) => tile.read()));
const expected = tiles.map((_, r) => r + 1);
const step = (a) => {
  for (let r = 0; r < ranks; r++) expected[(r + 1) % ranks] += a * expected[r];
};
step(0.5);
step(1.5);
let count = 0;
do {
  step(1);
  count++;
} while (expected[0] < 1e4);
if (iterations !== count) problems.push(`${iterations} iterations, not ${count}`);
for (const [r, values] of found.entries())
  if (!values.every((value) => value === expected[r]))
    problems.push(`tile ${r} is ${values[0]}, not ${expected[r]}`);
await runtime.close();
report(rank, { ranks, problems });
