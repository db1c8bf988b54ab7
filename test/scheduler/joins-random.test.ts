// Random families of spawned tasks against plain recursion: on one rank with small windows and memories, and on several simulated ranks.

import { describe, expect, it } from 'vitest';
import { Random } from '../../devices/simulated/machine/random.js';
import type { RuntimeOptions } from '../../index.js';
import { partOf } from '../support/grids.js';
import { onMachine } from '../support/machines.js';
import { compareFamilies } from '../support/random-families.js';
import { onRanks } from '../support/simulated-ranks.js';

function optionsOf(r: Random): RuntimeOptions {
  const gpus = r.below(3);
  return {
    workers: 1 + r.below(2),
    window: [16, 64, 1024][r.below(3)],
    checked: r.below(2) === 0,
    hostMemory: '32MiB',
    ...(gpus > 0 ? { gpus, driver: 'emulated', gpuMemory: ['16KiB', '1MiB'][r.below(2)] } : {}),
  };
}

/** Returns the number of runs that failed. */
function compare(seed: number, failing: boolean): Promise<number> {
  const r = new Random(seed);
  return onMachine(optionsOf(r), (runtime) => compareFamilies(runtime, r, seed, failing));
}

/** The same on simulated ranks: the runs that failed on each. */
function compareOnRanks(ranks: number, seed: number, failing: boolean): Promise<number[]> {
  const r = new Random(seed);
  const gpus = r.below(3);
  const machine = {
    gpus,
    gpuMemory: [2 ** 13, 2 ** 20][r.below(2)],
    lanes: [2, 8, 32][r.below(3)],
    workers: 1 + r.below(2),
  };
  const options = {
    window: [16, 64, 1024][r.below(3)],
    inlineBytes: [0, 4096][r.below(2)],
    treeFrom: 2 + r.below(3),
  };
  return onRanks({ ranks, seed, machine, options }, (runtime) =>
    compareFamilies(runtime, new Random(seed + 1), seed, failing),
  );
}

describe('random families', () => {
  it('give what recursion gives', async () => {
    for (let seed = 1; seed <= partOf(40, 15); seed++) await compare(seed, false);
  }, 60_000);

  it('leave no value of a part of a family when a task of it fails', async () => {
    const runs = partOf(70, 28);
    let failures = 0;
    for (let seed = 1001; seed <= 1000 + runs; seed++) failures += await compare(seed, true);
    expect(failures).toBeGreaterThan((30 / 70) * runs);
  }, 60_000);
});

describe.each([2, 3, 4])('random families on %i ranks', (ranks) => {
  it('give what recursion gives', async () => {
    for (let seed = 1; seed <= partOf(40, 8); seed++) await compareOnRanks(ranks, seed, false);
  }, 60_000);

  it('leave no value of a part of a family when a task of it fails', async () => {
    const runs = partOf(70, 14);
    let failures = 0;
    for (let seed = 1001; seed <= 1000 + runs; seed++) {
      const [first, ...others] = await compareOnRanks(ranks, seed, true);
      expect(others).toEqual(others.map(() => first));
      failures += first;
    }
    expect(failures).toBeGreaterThan(runs / 5);
  }, 60_000);
});
