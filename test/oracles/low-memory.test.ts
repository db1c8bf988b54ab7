// Oracle "low memory": tiled Cholesky and GEMM with device memory of 3, 4, 5, 8 and 21 tiles, tile counts 2 to 9 (in the full
// grid to 12), one to four devices. They end, give the results of ample memory bit for bit, and evict if memory is short.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cholesky, gemm } from '../../algorithms/index.js';
import { gridOfGpus } from '../../devices/memory/distribution.js';
import { ownerOf, type RunReport, type Runtime, TiledMatrix } from '../../index.js';
import { partOf } from '../support/grids.js';
import { nothingLeft, onMachine, soon } from '../support/machines.js';
import { fillIntegers, fillSpd, product, residual } from '../support/matrices.js';

const TILE = 16;
const TILE_BYTES = TILE * TILE * 8;
/** 7 and 9: the factor and the product that exceed 21 tiles on one device and on two. */
const COUNTS = partOf([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], [2, 3, 4, 5, 7, 9]);
const MEMORIES = [3, 4, 5, 8, 21];
/** Memories for each number of devices: all of them on one, the ends and the middle on more. */
const CELLS = [1, 2, 3, 4].map((gpus) => ({
  gpus,
  memories: partOf(MEMORIES, [[], MEMORIES, [3, 5, 21], [4, 8], [3, 5, 8]][gpus] as number[]),
}));

/** Order whose last tile is smaller than the others. */
const order = (tiles: number): number => tiles * TILE - 5;
/** Tiles of the inner dimension of a product; enough of them to keep C in use. */
const inner = (tiles: number): number => Math.min(tiles, 3);

interface Outcome {
  readonly values: Float64Array;
  readonly report: RunReport;
}

async function factor(runtime: Runtime, tiles: number): Promise<Outcome> {
  const n = order(tiles);
  const a = new TiledMatrix(runtime, 'f64', { rows: n, tile: TILE, lower: true }, fillSpd(n));
  const report = await soon(
    runtime,
    runtime.run((graph) => cholesky(graph, a)),
  );
  const values = await valuesOf(runtime, a);
  await nothingLeft(runtime, tilesOf(a));
  return { values, report };
}

async function multiply(runtime: Runtime, tiles: number): Promise<Outcome> {
  const n = order(tiles);
  const k = order(inner(tiles));
  const a = new TiledMatrix(runtime, 'f64', { rows: n, columns: k, tile: TILE }, fillIntegers(1));
  const b = new TiledMatrix(runtime, 'f64', { rows: k, columns: n, tile: TILE }, fillIntegers(2));
  const c = new TiledMatrix(runtime, 'f64', { rows: n, tile: TILE });
  const report = await soon(
    runtime,
    runtime.run((graph) => gemm(graph, a, b, c)),
  );
  const values = await valuesOf(runtime, c);
  await nothingLeft(runtime, [...tilesOf(a), ...tilesOf(b), ...tilesOf(c)]);
  return { values, report };
}

function tilesOf(matrix: TiledMatrix<'f64'>) {
  const list = [];
  for (let j = 0; j < matrix.tileColumns; j++) {
    for (let i = matrix.lower ? j : 0; i < matrix.tileRows; i++) list.push(matrix.at(i, j));
  }
  return list;
}

/** All tiles one after the other. */
async function valuesOf(runtime: Runtime, matrix: TiledMatrix<'f64'>): Promise<Float64Array> {
  const tiles = await soon(runtime, Promise.all(tilesOf(matrix).map((tile) => tile.read())));
  const all = new Float64Array(tiles.reduce((sum, tile) => sum + tile.length, 0));
  let at = 0;
  for (const tile of tiles) {
    all.set(tile, at);
    at += tile.length;
  }
  return all;
}

/** Bytes written on the busiest device: more than its memory holds must lead to evictions. */
function mostWritten(tiles: number, gpus: number, lower: boolean): number {
  const bytes = new Array<number>(gpus).fill(0);
  const side = (i: number): number => (i < tiles - 1 ? TILE : TILE - 5);
  for (let j = 0; j < tiles; j++) {
    for (let i = lower ? j : 0; i < tiles; i++) {
      bytes[ownerOf(gridOfGpus(gpus, lower), i, j)] += side(i) * side(j) * 8;
    }
  }
  return Math.max(...bytes);
}

const reference = {
  cholesky: new Map<number, Float64Array>(),
  gemm: new Map<number, Float64Array>(),
};

beforeAll(async () => {
  await onMachine({ workers: 1, hostMemory: '64MiB' }, async (runtime) => {
    for (const tiles of COUNTS) {
      reference.cholesky.set(tiles, (await factor(runtime, tiles)).values);
      reference.gemm.set(tiles, (await multiply(runtime, tiles)).values);
    }
  });
});

describe('with ample memory', () => {
  it.each(COUNTS)(
    '%i tiles: the factor reproduces the matrix, the product is exact',
    async (tiles) => {
      const n = order(tiles);
      const k = order(inner(tiles));
      const a = new Float64Array(n * k);
      const b = new Float64Array(k * n);
      fillIntegers(1)(a, 0, 0, n, k);
      fillIntegers(2)(b, 0, 0, k, n);
      expect(residual(assemble(reference.cholesky.get(tiles), n, true), n)).toBeLessThan(1e-15);
      expect(assemble(reference.gemm.get(tiles), n, false)).toEqual(product(a, b, n, n, k));
    },
  );
});

/** A column-major matrix from its tiles. */
function assemble(values: Float64Array | undefined, n: number, lower: boolean): Float64Array {
  const all = new Float64Array(n * n);
  let at = 0;
  for (let j = 0; j < n; j += TILE) {
    for (let i = lower ? j : 0; i < n; i += TILE) {
      const rows = Math.min(TILE, n - i);
      for (let c = j; c < Math.min(j + TILE, n); c++) {
        all.set((values as Float64Array).subarray(at, at + rows), c * n + i);
        at += rows;
      }
    }
  }
  return all;
}

describe.each(['cholesky', 'gemm'] as const)('%s', (algorithm) => {
  describe.each(CELLS)('on $gpus devices', ({ gpus, memories }) => {
    it.each(memories)('with memory for %i tiles gives the same bits', async (memory) => {
      const options = {
        gpus,
        workers: 1,
        gpuMemory: memory * TILE_BYTES,
        hostMemory: '64MiB',
        checked: true,
      };
      await onMachine(options, async (runtime) => {
        for (const tiles of COUNTS) {
          const { values, report } = await (algorithm === 'cholesky' ? factor : multiply)(
            runtime,
            tiles,
          );
          expect(
            Buffer.compare(
              bytesOf(values),
              bytesOf(reference[algorithm].get(tiles) as Float64Array),
            ),
          ).toBe(0);
          if (mostWritten(tiles, gpus, algorithm === 'cholesky') > options.gpuMemory) {
            expect(report.evictions, `${tiles} tiles`).toBeGreaterThan(0);
          }
          for (const device of report.devices.slice(1)) {
            expect(device.highWaterBytes).toBeLessThanOrEqual(memory * TILE_BYTES);
          }
        }
      });
    });
  });
});

function bytesOf(values: Float64Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

afterAll(() => {
  reference.cholesky.clear();
  reference.gemm.clear();
});
