// A read that a program makes before a run that fails, and awaits in it: the run ends only behind the read, so the read must end
// before the failure is settled.
import '../support/removable-guards.js';
import { afterEach, describe, expect, test } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { type Runtime, readWrite, task } from '../../scheduler/index.js';
import { onRanks } from '../support/simulated-ranks.js';

const RANKS = 3;
const SEEDS = 20;
const failing = task({
  name: 'failing',
  flows: { to: readWrite('f64') },
  body: () => {
    throw new Error('as the program says');
  },
});

/** What a rank gets: the value of the read, and how the run has ended. */
async function program(runtime: Runtime): Promise<readonly [number, string]> {
  const long = runtime.data(new Float64Array(20_000).fill(7), { name: 'long', rank: 0 });
  const own = runtime.data(new Float64Array(1), { name: 'own', rank: 2 });
  const values = long.read();
  let first = 0;
  const run = runtime.run(async (graph) => {
    graph.insert(failing, { to: own });
    [first] = await values;
  });
  const end = await run.done.then(
    () => 'well',
    (error: { readonly code: string }) => error.code,
  );
  return [first, end];
}

/** What the first seed shows that goes wrong; empty if none does. */
async function failures(): Promise<string[]> {
  const wrong: string[] = [];
  for (let seed = 1; seed <= SEEDS && wrong.length === 0; seed++) {
    try {
      // Ranks with GPUs take memory for a long version when it is announced.
      const seen = await onRanks({ ranks: RANKS, seed, machine: { gpus: 1 } }, program);
      for (const [rank, [first, end]] of seen.entries()) {
        const wanted = rank === 2 ? 'ERR_TASK_FAILED' : 'ERR_PEER_FAILED';
        if (first !== 7 || end !== wanted) wrong.push(`seed ${seed}: ${first} ${end}`);
      }
    } catch (error) {
      wrong.push(`seed ${seed}: ${String(error)}`);
    }
  }
  return wrong;
}

describe('a read made before a run that fails', () => {
  afterEach(() => setGuard('readsWanted', true));

  test('gives its value to the program of that run, which awaits it', async () => {
    expect(await failures()).toEqual([]);
  });

  test('without readsWanted: it never ends', async () => {
    setGuard('readsWanted', false);
    expect((await failures()).join('\n')).toContain('still waiting');
  });
});
