// The shares of the time of simulated ranks, from hand-made profiles.
import type { Profiler } from 'node:inspector';
import { expect, test } from 'vitest';
import { profiled, sharesOf } from '../../bench/time-shares.js';

type Node = Profiler.Profile['nodes'][number];

function node(id: number, functionName: string, url: string, ...children: number[]): Node {
  const callFrame = { functionName, url, scriptId: '0', lineNumber: 0, columnNumber: 0 };
  return { id, callFrame, children };
}

function profile(nodes: Node[], samples: number[]): Profiler.Profile {
  return { nodes, samples, startTime: 0, endTime: 1 };
}

const at = (file: string): string => `file:///headrace/dist/${file}.js`;
const nodes = [
  node(1, '(root)', '', 2, 3, 8),
  node(2, '(garbage collector)', ''),
  node(3, 'step', at('devices/simulated/machine/world'), 4, 7),
  node(4, 'pump', at('scheduler/engine/engine'), 5),
  node(5, 'offer', at('devices/network/offers'), 6),
  node(6, 'slice', ''),
  node(7, 'set', ''),
  node(8, '(idle)', ''),
];

test('a sample counts for the part whose code runs', () => {
  expect(sharesOf(profile(nodes, [2, 3, 4, 5]))).toEqual({
    engine: 0.5,
    simulation: 0.25,
    garbage: 0.25,
  });
});

test('functions of the language count as their callers, and time without code does not count', () => {
  expect(sharesOf(profile(nodes, [6, 6, 6, 7, 8, 8, 1]))).toEqual({
    engine: 0.75,
    simulation: 0.25,
    garbage: 0,
  });
});

test('without samples all shares are 0', () => {
  expect(sharesOf(profile(nodes, []))).toEqual({ engine: 0, simulation: 0, garbage: 0 });
});

test('the result of the work is handed on', async () => {
  const { result, shares } = await profiled(async () => 17);
  expect(result).toBe(17);
  expect(shares.engine + shares.simulation + shares.garbage).toBeLessThanOrEqual(1.000_001);
});
