// Oracles as parameterised graphs, on every machine. On several ranks: test/simulated/graph-oracles.test.ts, test/mpi/graph-oracles.test.ts.
import { describe, expect, it } from 'vitest';
import { graphOracles } from '../support/graph-oracles/all.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';

describe.each(MACHINES)('on $name', ({ options }) => {
  it.each(Object.entries(graphOracles))('%s', async (_, oracle) => {
    await onMachine(options, async (runtime) => {
      expect(await soon(runtime, oracle(runtime, {}))).toEqual([]);
      await nothingLeft(runtime, []);
    });
  });
});
