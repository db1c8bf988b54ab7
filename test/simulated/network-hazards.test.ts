// Hazards of the network, with the production code between ranks over the simulated network: the number of flushes (H1),
// slow flushes (H16), and fresh reads through a known mapping (H17).

import { describe, expect, test } from 'vitest';
import { directedCases, received } from '../../devices/simulated/cases/directed-cases.js';
import { type Played, Player } from '../../devices/simulated/cases/play.js';
import { partOf } from '../support/grids.js';

/** Runs with different delays. */
const SEEDS = partOf(30, 10);

interface Counted {
  readonly played: Played;
  /** Flushes on rank 1. */
  readonly flushes: number;
}

/** Plays a case and counts the flushes of rank 1. */
async function count(c: Parameters<typeof received>, seed: number): Promise<Counted> {
  const made = received(...c);
  const player = new Player({ ...made, adversary: { ...made.adversary, seed } });
  const { peers } = player.ranks[1].runtime;
  const played = await player.play();
  return { played, flushes: peers?.device.port.counters().flushes ?? -1 };
}

/** Receives into the device of rank 1. */
const RECEIVES = 12;

describe('H1: flushes', () => {
  test('there is one for all that comes between two looks, not for each message', async () => {
    let flushes = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const counted = await count([[]], seed);
      expect(counted.played).toMatchObject({ problems: [], transfers: RECEIVES });
      flushes += counted.flushes;
    }
    expect(flushes).toBeGreaterThan(SEEDS);
    expect(flushes).toBeLessThan(RECEIVES * SEEDS);
  });

  test('there is none for data that no GPU reads', async () => {
    for (let seed = 1; seed <= SEEDS / 3; seed++) {
      const counted = await count([[], 'host'], seed);
      expect(counted.played).toMatchObject({ problems: [], outcome: '', transfers: RECEIVES });
      expect(counted.flushes).toBe(0);
    }
  });

  test('one that fails ends the run on all ranks, and the error of its rank names it', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { played } = await count([[{ kind: 'flush', rank: 1, at: 0 }]], seed);
      expect(played).toMatchObject({ problems: [], injected: 1, outcome: 'ERR_PEER_FAILED' });
    }
  });
});

describe('H16: a flush', () => {
  test('that returns only with news of the network does not keep the news away', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { played } = await count([[{ kind: 'flush', rank: 1, at: 0, waits: true }]], seed);
      expect(played).toMatchObject({ problems: [], outcome: '', injected: 1 });
    }
  });

  test('that never returns ends the run at its deadline', async () => {
    const calm = await count([[]], 1);
    const last = calm.flushes - 1;
    const { played } = await count([[{ kind: 'flush', rank: 1, at: last, waits: true }]], 1);
    expect(played.problems).toEqual([]);
    expect(['ERR_FLUSH_TIMEOUT', 'ERR_PEER_FAILED']).toContain(played.outcome);
    expect(played.nanoseconds).toBeGreaterThan(5e9);
  });
});

test('H17: every version read through a mapping that is known already is the new one', async () => {
  const player = new Player(directedCases.mappedAgain);
  const played = await player.play();
  expect(played).toMatchObject({ problems: [], outcome: '', transfers: 50 });
  expect(player.ranks[1].engine.transfers.bytes.ipc).toBe(50 * 512);
});
