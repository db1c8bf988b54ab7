// Hazards of the network, with the production code between ranks over the simulated network: the number of flushes (H1),
// slow flushes (H16), and fresh reads through a known mapping (H17).

import { describe, expect, test } from 'vitest';
import type { NetworkFetches } from '../../devices/network/fetches.js';
import { directedCases, received } from '../../devices/simulated/cases/directed-cases.js';
import { type Played, Player } from '../../devices/simulated/cases/play.js';
import { partOf } from '../support/grids.js';

/** Runs with different delays. */
const SEEDS = partOf(30, 10);

interface Counted {
  readonly played: Played;
  /** What rank 1's network was asked to flush. */
  readonly flushes: number;
  /** Batches in which something written by the network to a device arrived. */
  readonly batches: number;
  /** Receives into devices. */
  readonly receives: number;
}

/** Plays a case and counts on rank 1, look by look at the network, what arrived in its devices. */
async function count(c: Parameters<typeof received>, seed: number): Promise<Counted> {
  const made = received(...c);
  const player = new Player({ ...made, adversary: { ...made.adversary, seed } });
  const ranks = player.ranks[1].runtime.peers;
  const fetches = ranks?.device.fetches as NetworkFetches;
  const over = fetches.over.bind(fetches);
  const flushBatches = fetches.flushBatches.bind(fetches);
  let receives = 0;
  let batches = 0;
  let now: Set<number> = new Set();
  fetches.over = (finished, outcome) => {
    if (finished.fetch.space > 0) {
      receives++;
      now.add(finished.fetch.space);
    }
    over(finished, outcome);
  };
  fetches.flushBatches = () => {
    batches += now.size;
    now = new Set();
    flushBatches();
  };
  const played = await player.play();
  return { played, flushes: ranks?.device.port.counters().flushes ?? -1, batches, receives };
}

describe('H1: flushes', () => {
  test('there is one for each batch of completions, not for each message', async () => {
    let flushes = 0;
    let receives = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const counted = await count([[]], seed);
      expect(counted.played.problems).toEqual([]);
      expect(counted.flushes).toBe(counted.batches);
      flushes += counted.flushes;
      receives += counted.receives;
    }
    expect(flushes).toBeGreaterThan(SEEDS);
    expect(flushes).toBeLessThan(receives);
  });

  test('there is none for data that no GPU reads', async () => {
    for (let seed = 1; seed <= SEEDS / 3; seed++) {
      const counted = await count([[], 'host'], seed);
      expect(counted.played).toMatchObject({ problems: [], outcome: '', transfers: 12 });
      expect(counted).toMatchObject({ flushes: 0, receives: 0 });
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
