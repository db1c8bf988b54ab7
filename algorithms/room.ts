// How much of the memory of the GPUs an algorithm may plan with.
import type { TiledMatrix } from '../scheduler/index.js';

/** Share of a GPU's memory that is for what is on its way in or out, and least number of tiles. */
const SHARE = 0.15;
const LEAST = 4;

/** Full tiles of a GPU's memory that may be kept while others pass through. */
export function roomPerGpu(A: TiledMatrix): number {
  return Math.min(A.tilesPerGpu - LEAST, A.tilesPerGpu * (1 - SHARE));
}
