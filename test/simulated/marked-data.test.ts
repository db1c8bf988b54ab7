// A datum whose latest version another rank was to write is marked when a failed run is settled. Reads from before may wait.
import '../support/removable-guards.js';
import { afterEach, expect, it, test } from 'vitest';
import { directedCases } from '../../devices/simulated/cases/directed-cases.js';
import { Player } from '../../devices/simulated/cases/play.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';

afterEach(() => setGuard('marksInOrder', true));

/** The error that the read has on rank 1, which has the value. */
async function readOnOwner(): Promise<string | undefined> {
  const player = new Player(directedCases.readBeforeMark);
  const { problems, outcome } = await player.play();
  expect(problems).toEqual([]);
  expect(outcome).toBe('ERR_ABORTED');
  return player.ranks[1]?.asked[0]?.error?.code;
}

it('gives a read that waits the value from before', async () => {
  expect(await readOnOwner()).toBeUndefined();
});

test('without marksInOrder: a read is refused because of a run that came after it', async () => {
  setGuard('marksInOrder', false);
  expect(await readOnOwner()).toBe('ERR_DATUM_POISONED');
});
