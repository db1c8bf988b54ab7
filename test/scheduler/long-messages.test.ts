// Records between ranks hold 64 KiB. Errors and names of any length reach the other ranks; longer texts are cut.
import { describe, expect, it } from 'vitest';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { World } from '../../devices/simulated/machine/world.js';
import { type HeadraceError, type Runtime, task, write } from '../../scheduler/index.js';
import { joined, rankMachine } from '../support/simulated-ranks.js';

function ranks(): Runtime[] {
  const world = new World();
  const backends = [0, 1].map(() => new SimulatedBackend({ machine: rankMachine, world }));
  return joined(world, backends, { workers: 1 });
}

/** The error that each rank's run ends with. */
async function failures(
  body: (rank: number) => void,
  nameOf: (rank: number) => string,
): Promise<HeadraceError[]> {
  return Promise.all(
    ranks().map(async (runtime, rank) => {
      const cls = task({ name: nameOf(rank), flows: { to: write('f64') }, body: () => body(rank) });
      const d = runtime.data('f64', 4, { name: 'd', rank: 1 });
      try {
        await runtime.run((graph) => void graph.insert(cls, { to: d }));
      } catch (error) {
        return error as HeadraceError;
      }
      throw new Error('the run did not fail');
    }),
  );
}

describe('other ranks receive', () => {
  it.each([
    ['that needs no escapes', 'x'],
    ['of which every character is escaped', '\u0001'],
    ['in characters of three bytes', '\u20ac'],
    ['in characters of two units', '\ud83d\ude00'],
  ])('a failure with a long message %s', async (_, character) => {
    const long = character.repeat(60_000);
    const [heard, own] = await failures(
      () => {
        throw new Error(long);
      },
      () => 'bad',
    );
    expect(own).toMatchObject({ code: 'ERR_TASK_FAILED', message: `task bad #1 failed: ${long}` });
    expect(heard.code).toBe('ERR_PEER_FAILED');
    expect(heard.message).toContain(`rank 1 failed: task bad #1 failed: ${character.repeat(1000)}`);
  });

  it('graphs that differ, whatever the classes are called', async () => {
    const found = await failures(
      () => {},
      (rank) => `${rank}${'"'.repeat(60_000)}`,
    );
    for (const error of found) {
      expect(error.code).toBe('ERR_GRAPH_MISMATCH');
      expect(error.message).toMatch(/'0"{20}/);
      expect(error.message).toMatch(/'1"{20}/);
    }
  });
});
