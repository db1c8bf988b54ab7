// Defects of the engine that simulation found, each with its random case.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { randomCase } from '../../devices/simulated/cases/case.js';
import { directedCases } from '../../devices/simulated/cases/directed-cases.js';
import { Player, play } from '../../devices/simulated/cases/play.js';
import { largestTask } from '../../devices/simulated/cases/sizes.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { Runtime, read, task, write } from '../../index.js';

/** A block of seeds in which the engine goes wrong without the fix, and whether the cases have faults. */
const found: readonly (readonly [string, number, number, boolean])[] = [
  ['compaction while freed blocks are being poisoned', 150, 260, false],
  ['results computed behind a failed copy are not readable', 1000, 1120, true],
  ['a copy made from a copy that failed counts as failed', 10_020, 10_040, true],
  ['failures of copies are handled before those of kernels', 10_080, 10_100, true],
  ['a body that was queued and then dropped poisons its output', 10_760, 10_780, true],
  ['a copy by way of a full host stands in line once', 13_810, 13_820, true],
  ['who waits for host memory is told when none will come back', 13_290, 13_300, true],
  ['a copy on its way to the host is not written back again', 2740, 2760, true],
];

test.each(found)('%s', async (_, first, last, faults) => {
  for (let seed = first; seed <= last; seed++) {
    expect(
      (await play(randomCase(seed, { faults, ranks: 1, synchronous: true }))).problems,
    ).toEqual([]);
  }
});

/** The same on several ranks: seed, tasks, ranks (0: as the seed has it), faults. */
const foundOnRanks: readonly (readonly [string, number, number, number, boolean])[] = [
  ['a task in pieces between offered copies gets its room in one piece', 1578855874, 275, 0, false],
  ['a task that waits next to offers is told when only they are left', 1065502524, 116, 2, true],
  ['a send planned before its run failed is not offered after', 1372146299, 188, 4, true],
  ['a task planned before its run failed is not inserted after', 1537533428, 279, 4, true],
  ['an owner that sends what it received flushes for all to see', 632513674, 110, 3, true],
  ['a withdrawn offer is not a failed transfer', 1424371409, 27, 4, true],
  ['a copy of a failed run is not read while the network writes', 928366724, 141, 4, true],
];

test.each(foundOnRanks)('%s', async (_, seed, tasks, ranks, faults) => {
  const c = randomCase(seed, { tasks, faults, ...(ranks > 0 ? { ranks } : {}) });
  expect((await play(c)).problems).toEqual([]);
});

test('a failed copy wakes the engine, for which the lanes wait', async () => {
  const c = randomCase(3101001910, { shortHosts: true, faults: true });
  expect((await play(c)).problems).toEqual([]);
});

test.each([
  [
    'a receive on a lane has its turn while a rank waits to pull what was offered before',
    270,
    false,
  ],
  ['a receive that fails the run ends the others of its group', 5197, true],
])('%s', async (_, seed, faults) => {
  const more = faults ? { faults, shortHosts: true, mixed: true } : {};
  const c = randomCase(seed, { pulls: true, ranks: 3, ...more });
  expect((await play(c)).problems).toEqual([]);
});

test('a task without room because of an offer lets tasks pass for which the other rank waits', async () => {
  const { problems, outcome } = await play(directedCases.offerInTheWay);
  expect(problems).toEqual([]);
  expect(outcome).toBe('');
});

test('a datum that was to be sent is not offered after the loss of a rank', async () => {
  const { problems, injected } = await play(directedCases.lostBeforeOffer);
  expect(problems).toEqual([]);
  expect(injected).toBe(1);
});

test('a run that a rank begins before it learns of a failure fails with the failed run', async () => {
  const { problems, outcome } = await play(directedCases.lateNews);
  expect(problems).toEqual([]);
  expect(outcome).toBe('ERR_ABORTED');
});

test('a read that is announced after a failed run is settled ends with an error', async () => {
  const { problems, injected } = await play(directedCases.readLeftPending);
  expect(problems).toEqual([]);
  expect(injected).toBe(1);
});

test('a read that one rank makes before a failed run is settled and another one after it is rejected on both', async () => {
  const player = new Player(directedCases.readBetweenEras);
  const { problems, injected } = await player.play();
  expect(problems).toEqual([]);
  expect(injected).toBe(1);
  for (const rank of player.ranks) expect(rank.asked[0].error?.code).toBe('ERR_PEER_FAILED');
});

test('a datum that another rank still reads through its mapping is not set, though the run has failed', async () => {
  const { problems, outcome } = await play(directedCases.setBesideReader);
  expect(problems).toEqual([]);
  expect(outcome).toBe('ERR_PEER_FAILED');
});

test('the task of a run that begins before all ranks have settled a failed one uses the value of the owner', async () => {
  const { problems, injected } = await play(directedCases.settledAhead);
  expect(problems).toEqual([]);
  expect(injected).toBe(1);
});

test('a read of a failed run gives the same version on all ranks that give one', async () => {
  const player = new Player(directedCases.readOfFailedRun);
  expect((await player.play()).problems).toEqual([]);
  expect(player.ranks.map(({ asked }) => asked[0].error?.code)).toContain('ERR_PEER_FAILED');
});

test('after the loss of a rank no other rank gets a value that a third one does not have', async () => {
  const player = new Player(directedCases.readAfterLoss);
  const { problems, injected } = await player.play();
  expect(problems).toEqual([]);
  expect(injected).toBe(1);
  for (const { asked } of [player.ranks[0], player.ranks[2]]) {
    expect(asked[0].error).toBeUndefined();
    expect(asked[1].error?.code).toBe('ERR_PEER_LOST');
  }
});

test('two devices short of memory hand over their common data in one direction only', async () => {
  const { problems, outcome, spills } = await play(directedCases.bothShort);
  expect(problems).toEqual([]);
  expect(outcome).toBe('');
  expect(spills).toBeGreaterThan(0);
});

test('a receive that waits for memory leaves the last lane to one whose end returns memory', async () => {
  const { problems, outcome } = await play(directedCases.lastLaneTaken);
  expect(problems).toEqual([]);
  expect(outcome).toBe('');
});

test('a group of pulled inputs whose last row waits for room holds no memory', async () => {
  const { problems, outcome } = await play(directedCases.pulledInPart);
  expect(problems).toEqual([]);
  expect(outcome).toBe('');
});

test('a task asks for its pulled inputs after the tasks that it follows without data', async () => {
  const { problems, outcome } = await play(directedCases.pulledBeforeNamed);
  expect(problems).toEqual([]);
  expect(outcome).toBe('');
});

test('a task with more pulled inputs than the window has rows takes rows beyond it', async () => {
  const { problems, outcome } = await play(directedCases.pulledBeyondWindow);
  expect(problems).toEqual([]);
  expect(outcome).toBe('');
});

/** Host memory is short on all ranks: the same. */
const foundShort: readonly (readonly [string, number, number, number])[] = [
  ['a run whose last task fails does not end well elsewhere', 1858932069, 9, 2],
  ['a receiver without room declines, and the offer ends', 56157022, 228, 3],
  ['hosts full of what they offer each other are not waited for', 449, 40, 2],
  ['a failed run is told as such, not as a datum without a value', 1560529983, 248, 2],
];

test.each(foundShort)('%s', async (_, seed, tasks, ranks) => {
  const c = randomCase(seed, { tasks, ranks, faults: true, shortHosts: true });
  expect((await play(c)).problems).toEqual([]);
});

test('data that a run computed behind the failed task of another run are not readable', async () => {
  const machine = { ...presets['h200-2'], gpuMemory: 2 ** 20, hostMemory: 2 ** 20 };
  const faults = [{ kind: 'kernel', at: 0, code: 7 }] as const;
  const runtime = Runtime.over(new SimulatedBackend({ machine, faults }), {});
  const make = task({ name: 'make', flows: { to: write('f64') }, kernel: 'make' });
  const flows = { from: read('f64'), to: write('f64') };
  const use = task({ name: 'use', flows, kernel: 'use' });
  const [a, b, c] = ['a', 'b', 'c'].map((name) => runtime.data('f64', 8, { name }));
  const first = runtime.run((graph) => void graph.insert(make, { to: a }, { device: 0 }));
  const second = runtime.run((graph) => {
    graph.insert(use, { from: a, to: b }, { device: 0 });
    graph.insert(use, { from: b, to: c }, { device: 1 });
  });
  await expect(first.done).rejects.toMatchObject({ code: 'ERR_TASK_FAILED' });
  await expect(second.done).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
  await expect(b.read()).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
  await expect(c.read()).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
  await runtime.close();
});

/** Programs of several runs: seed, ranks, faults. */
const foundInPrograms: readonly (readonly [string, number, number, boolean])[] = [
  ['restore() takes the latest version to its owner from the rank that wrote it', 48, 3, false],
  ['runs that are open on several ranks when one fails end with it', 6, 2, false],
];

test.each(foundInPrograms)('%s', async (_, seed, ranks, faults) => {
  expect((await play(randomCase(seed, { ranks, mixed: true, faults }))).problems).toEqual([]);
});

test('a kernel of another run that was issued behind a receive whose flush fails may find no value', async () => {
  const c = randomCase(1_163_000_635, { mixed: true, faults: true });
  const { problems, outcome } = await play(c);
  expect(problems).toEqual([]);
  expect(outcome).toBe('ERR_FLUSH_FAILED');
});

test('a send whose own failure fails its run does not outlive the run', async () => {
  expect((await play(randomCase(438, { mixed: true, faults: true }))).problems).toEqual([]);
});

/** Cases that were shrunk, and how they end. */
const shrunk: readonly (readonly [string, string, string])[] = [
  [
    'what a body inserts while the window makes room does not count on a version that is only planned',
    'read-while-planned',
    '',
  ],
  [
    'a run that begins after a copy failed does not fail of the copies that were made of it',
    'copy-of-a-failed-copy',
    'ERR_DEVICE_LOST',
  ],
  [
    'a body whose task is refused fails, and closes what it has created',
    'body-is-refused',
    'ERR_TASK_FAILED',
  ],
  [
    'a rank that has no memory for what it passes on says so, and not that the datum has no value',
    'relay-without-memory',
    '',
  ],
  [
    'a rank without work of its own answers the offers of others',
    'idle-rank-answers',
    'ERR_PEER_FAILED',
  ],
  [
    'a restore does not bring back a value that a later writer elsewhere was to replace in a failed run',
    'restored-before-it-was-lost',
    'ERR_PEER_FAILED',
  ],
  [
    'a copy behind a cancelled kernel may find what a failed flush has left',
    'copy-behind-a-failed-flush',
    'ERR_FLUSH_FAILED',
  ],
  [
    'the player inserts nothing while a tree of bodies may fill the window and an asynchronous body has to end elsewhere',
    'tree-beside-asynchronous-body',
    '',
  ],
  [
    'a read of an era that one rank spoils ends, although that rank sends nothing for it',
    'reads-of-a-spoiled-era',
    'ERR_TASK_FAILED',
  ],
];

test.each(shrunk)('%s', async (_, name, end) => {
  const file = new URL(`./cases/${name}.json`, import.meta.url);
  const { problems, outcome } = await play(JSON.parse(readFileSync(file, 'utf8')));
  expect(problems).toEqual([]);
  expect(outcome).toBe(end);
});

/** The same where the owner has no memory to send from, and for restore(): seed, whether the program has several runs. */
test.each([
  [8000044, true],
  [8000766, false],
  [8001698, true],
])('a rank that cannot send gives the reason: seed %i', async (seed, mixed) => {
  const c = randomCase(seed, { mixed, faults: true, shortHosts: true });
  expect((await play(c)).problems).toEqual([]);
});

test('a body does not read data that only other ranks know', async () => {
  const c = randomCase(8201703, { mixed: true, shortHosts: true });
  expect((await play(c)).problems).toEqual([]);
});

test('each task of a program fits by itself, also the tasks that bodies insert', () => {
  let onOwn = 0;
  for (let seed = 1; seed <= 2000; seed++) {
    const c = randomCase(seed, { ranks: 1, mixed: true, faults: true });
    if (c.tasks.some((t) => t.makes !== undefined)) onOwn++;
    expect(c.hostUnits, `seed ${seed}`).toBeGreaterThanOrEqual(largestTask(c.data, c.tasks, true));
  }
  expect(onOwn).toBeGreaterThan(5);
});
