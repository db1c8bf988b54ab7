// All oracles that are parameterised graphs.
import type { Oracle } from './oracle.js';
import { choice, gather, permutationChain, pingPong, writeAfterRead } from './order.js';
import { taskBench } from './task-bench.js';
import { branching, haarTree, mergeSort } from './trees.js';

/** By name. */
export const graphOracles: Readonly<Record<string, Oracle>> = {
  'write-after-read': writeAfterRead,
  branching,
  choice,
  gather,
  'permutation chain': permutationChain,
  'ping-pong': pingPong,
  'haar tree': haarTree,
  'merge sort': mergeSort,
  'task bench': taskBench,
};
