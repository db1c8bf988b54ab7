// Oracles as parameterised graphs on simulated ranks with disturbed clocks, with and without GPUs, pruned and not.
import { describe, expect, test } from 'vitest';
import type { KernelCall } from '../../devices/simulated/machine/backend.js';
import { graphOracles } from '../support/graph-oracles/all.js';
import { partOf } from '../support/grids.js';
import { onRanks } from '../support/simulated-ranks.js';

const arraysOf = ({ memory, flows }: KernelCall, length: number): Float64Array[] =>
  flows.map((at) => new Float64Array(memory.buffer, memory.byteOffset + at, length));

const kernels = {
  fill_f64: (call: KernelCall) => {
    arraysOf(call, call.params[0])[0].fill(call.params[1]);
    return 0;
  },
  add_f64: (call: KernelCall) => {
    const [to, from] = arraysOf(call, call.params[0]);
    for (const i of to.keys()) to[i] += from[i];
    return 0;
  },
};

describe.each([1, 2, 3, 4])('%i ranks', (ranks) => {
  test.each(Object.entries(graphOracles))('%s', async (_, oracle) => {
    for (const gpus of [0, 2])
      for (const pruned of [false, true])
        for (let seed = 1; seed <= partOf(4, 1); seed++) {
          const given = { ranks, seed, kernels, machine: { gpus } };
          const seen = await onRanks(given, (runtime) => oracle(runtime, { pruned }));
          const where = `${gpus} GPUs, pruned ${pruned}, seed ${seed}`;
          for (const problems of seen) expect(problems, where).toEqual([]);
        }
  });
});
