// Plays on several ranks that fail or are aborted on one of them. Reports problems.
import { Runtime, read, readWrite, slot, task } from '../../../dist/index.js';
import { report } from './report.mjs';

const options = JSON.parse(process.argv[2] ?? '{}');
const check = task({
  name: 'check',
  flows: { y: readWrite('f64') },
  params: { code: 'i32' },
  kernel: 'fail',
});
const axpy = task({
  name: 'axpy',
  flows: { y: readWrite('f64'), x: read('f64') },
  params: { n: 'i32', a: 'f64' },
  kernel: 'add_f64',
});
const runtime = await Runtime.create({
  workers: 2,
  hostMemory: '64MiB',
  checked: true,
  ...options,
});
const { rank, ranks } = runtime;
const problems = [];
const expect = (what, is, wanted) => {
  if (is !== wanted) problems.push(`${what}: ${is} instead of ${wanted}`);
};
const N = 1000;
const last = ranks - 1;

/** A ring: the value goes around all ranks, and rank `last` may fail. */
const tiles = Array.from({ length: ranks }, (_, r) =>
  runtime.data(new Float64Array(N).fill(r), { name: `tile ${r}`, rank: r }),
);
const alone = runtime.data(Float64Array.of(5), { name: 'alone', rank: 0 });
const plan = await runtime.plan(
  (graph) => {
    for (let r = 0; r < ranks; r++)
      graph.insert(axpy, { y: tiles[(r + 1) % ranks], x: tiles[r], n: N, a: 0.5 });
    graph.insert(check, { y: tiles[last], code: slot('code') });
  },
  { name: 'ring' },
);
for (let round = 0; round < 3; round++) {
  let caught;
  try {
    await plan.run({ times: 50, values: { code: (k) => (k === 7 + round ? 9 : 0) } });
  } catch (error) {
    caught = error;
  }
  const code = rank === last ? 'ERR_TASK_FAILED' : 'ERR_PEER_FAILED';
  expect('code', caught?.code, code);
  if (!/check\(code = 9\) in iteration/.test(caught?.message ?? ''))
    problems.push(`message ${caught?.message}`);
  if (!String(caught?.message).includes(`in iteration ${7 + round} of plan 'ring'`))
    problems.push(`message ${caught?.message}`);
  // The data of the plan have no values; others do.
  const reads = await Promise.allSettled(tiles.map((tile) => tile.read()));
  for (const [r, each] of reads.entries())
    if (each.status === 'fulfilled')
      problems.push(`tile ${r} has a value after the failure: ${each.value[0]}`);
  expect('alone', (await alone.read())[0], 5);
  for (const [r, tile] of tiles.entries()) tile.set(new Float64Array(N).fill(r + 1));
  await plan.run({ times: 3, values: { code: 0 } });
  const values = await Promise.all(tiles.map((tile) => tile.read()));
  const wanted = Array.from({ length: ranks }, (_, r) => r + 1);
  for (let k = 0; k < 3; k++)
    for (let r = 0; r < ranks; r++) wanted[(r + 1) % ranks] += 0.5 * wanted[r];
  for (const [r, value] of values.entries())
    expect(`tile ${r} after ${round}`, value[N - 1], wanted[r]);
}
// An abort on one rank ends the play on all.
const controller = new AbortController();
if (rank === 0) setTimeout(() => controller.abort(new Error('enough')), 50);
let aborted;
try {
  await plan.run({ times: 1e7, values: { code: 0 }, signal: controller.signal });
} catch (error) {
  aborted = error;
}
expect(
  'aborted',
  rank === 0 ? aborted?.name : aborted?.code,
  rank === 0 ? 'AbortError' : 'ERR_PEER_FAILED',
);
for (const [r, tile] of tiles.entries()) tile.set(new Float64Array(N).fill(r));
await plan.run({ times: 1, values: { code: 0 } });
// The same in plays without a limit.
for (const [what, code] of [
  ['fails', (k) => (k === 40 ? 9 : 0)],
  ['is aborted', () => 0],
]) {
  const stop = new AbortController();
  if (what === 'is aborted' && rank === 0) setTimeout(() => stop.abort(new Error('enough')), 50);
  const condition = { datum: tiles[last], above: -1 };
  let ended;
  try {
    await plan.run({ values: { code }, while: condition, signal: stop.signal });
  } catch (error) {
    ended = error;
  }
  if (what === 'fails')
    expect(what, ended?.code, rank === last ? 'ERR_TASK_FAILED' : 'ERR_PEER_FAILED');
  else
    expect(
      what,
      rank === 0 ? ended?.name : ended?.code,
      rank === 0 ? 'AbortError' : 'ERR_PEER_FAILED',
    );
  for (const [r, tile] of tiles.entries()) tile.set(new Float64Array(N).fill(r));
}
// Ranks that play with different options are told.
let differ;
try {
  await plan.run({ values: { code: 0 }, while: { datum: tiles[0], below: rank === 0 ? 5 : 50 } });
} catch (error) {
  differ = error;
}
expect('options differ', differ?.code, 'ERR_GRAPH_MISMATCH');
for (const [r, tile] of tiles.entries()) tile.set(new Float64Array(N).fill(r));
await plan.run({ times: 1, values: { code: 0 } });
// Different plans on different ranks are found.
let differs;
try {
  await runtime.plan((graph) => {
    graph.insert(axpy, { y: tiles[0], x: tiles[last], n: rank === 0 ? N : N - 1, a: 1 });
  });
} catch (error) {
  differs = error;
}
expect('differs', differs?.code, 'ERR_GRAPH_MISMATCH');
plan.close();
await runtime.close();
report(rank, { ranks, problems });
