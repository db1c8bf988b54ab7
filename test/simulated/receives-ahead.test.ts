// Receives of long versions into memory of GPUs begin before their announcement: from then on they need no engine.
import '../support/removable-guards.js';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { CaseNetwork, SimulatedCase } from '../../devices/simulated/cases/case.js';
import { directedCases } from '../../devices/simulated/cases/directed-cases.js';
import { Player, play } from '../../devices/simulated/cases/play.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import type { Ranks } from '../../scheduler/ranks/ranks.js';

/** A machine of two ranks with a GPU each, without an adversary. */
const calm = directedCases.aheadInTheWay;

/** Rank 0 writes a datum, rank 1 reads it on its GPU. */
function received(comm: CaseNetwork['comm'], together: number): SimulatedCase {
  const [x, out] = [0, 1];
  return {
    ...calm,
    network: { ...(calm.network as CaseNetwork), comm, ranksPerHost: together },
    data: [0, 1].map((owner) => ({ units: 1, initial: false, owner })),
    tasks: [
      { flows: [[x, 2]], body: 'host', micros: 1000, rank: 0 },
      {
        flows: [
          [x, 1],
          [out, 2],
        ],
        body: 'kernel',
        micros: 1,
        rank: 1,
      },
    ],
    reads: [],
  };
}

describe('a long version', () => {
  test.each([
    ['direct', 'direct', 1],
    ['staged', 'staged', 1],
    ['ipc', 'auto', 2],
  ] as const)('comes by %s without news for the engine', async (way, comm, together) => {
    const player = new Player(received(comm, together));
    const { engine, peers } = player.ranks[1].runtime;
    const came = vi.spyOn((peers as Ranks).device, 'came');
    expect((await player.play()).problems).toEqual([]);
    expect(came).not.toHaveBeenCalled();
    // The message layer has chosen the way.
    expect(engine.transfers.bytes).toMatchObject({ direct: 0, staged: 0, ipc: 0, [way]: 512 });
  });
});

test('the receive behind a JavaScript body waits for the announcement: the body may insert what needs the memory', async () => {
  const made = received('direct', 1);
  const other = { units: 1, initial: false, owner: 1 };
  const body = { flows: [[2, 2]], body: 'script', micros: 1, rank: 1 } as const;
  const player = new Player({ ...made, data: [...made.data, other], tasks: [body, ...made.tasks] });
  const { peers } = player.ranks[1].runtime;
  const came = vi.spyOn((peers as Ranks).device, 'came');
  expect((await player.play()).problems).toEqual([]);
  expect(came).toHaveBeenCalledTimes(1);
});

describe('a task before such a receive', () => {
  afterEach(() => setGuard('aheadHeld', true));

  test('gets its memory in one piece', async () => {
    expect((await play(directedCases.aheadInTheWay)).problems).toEqual([]);
  });

  test('without aheadHeld: waits for the receive, which waits for it', async () => {
    setGuard('aheadHeld', false);
    const { problems } = await play(directedCases.aheadInTheWay);
    expect(problems.join('\n')).toContain('nothing moves any more');
  });
});
