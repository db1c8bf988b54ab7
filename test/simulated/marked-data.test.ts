// A datum whose latest version another rank was to write is marked when a failed run is settled. Reads from before may wait.
import '../support/removable-guards.js';
import { afterEach, expect, it, test } from 'vitest';
import { directedCases } from '../../devices/simulated/cases/directed-cases.js';
import { Player } from '../../devices/simulated/cases/play.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';

afterEach(() => {
  setGuard('marksInOrder', true);
  setGuard('endsBeforeMark', true);
});

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

/** What rank 0 reads of a datum that rank 1 has failed to write, and the problems of the case. */
async function readOfUnwritten(): Promise<{ code: string | undefined; problems: string[] }> {
  const player = new Player(directedCases.receiveBeforeMark);
  const { problems } = await player.play();
  return { code: player.ranks[0]?.asked[0]?.error?.code, problems: [...problems] };
}

it('refuses a read whose receive ends without a version behind the settlement', async () => {
  expect(await readOfUnwritten()).toEqual({ code: 'ERR_PEER_FAILED', problems: [] });
});

test('without endsBeforeMark: a read gives what no task has written', async () => {
  setGuard('endsBeforeMark', false);
  const { code, problems } = await readOfUnwritten();
  expect(code).toBeUndefined();
  expect(problems[0]).toContain('which has no value, but gives');
});
