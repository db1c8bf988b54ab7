// How much is moved when device memory holds a quarter of the data. Least recently used eviction throws out exactly what
// a cyclic sweep needs next, so the order of the tasks decides; the bounds are what the order of blocks and chains needs,
// with half of that again for what a race between copies and tasks may cost.
import { describe, expect, it } from 'vitest';
import { cholesky, gemm } from '../../algorithms/index.js';
import { type Graph, type Runtime, TiledMatrix } from '../../index.js';
import { onMachine, soon } from '../support/machines.js';
import { fillIntegers, fillSpd } from '../support/matrices.js';

const TILE = 32;
const BYTES = TILE * TILE * 8;

async function moved(
  memory: number,
  make: (runtime: Runtime) => (graph: Graph) => void,
): Promise<{ h2d: number; d2h: number }> {
  const options = { workers: 1, gpus: 1, computeStreams: 4, hostMemory: '64MiB' };
  return await onMachine({ ...options, gpuMemory: memory * BYTES }, async (runtime) => {
    const report = await soon(runtime, runtime.run(make(runtime)));
    return { h2d: report.bytes.h2d / BYTES, d2h: report.bytes.d2h / BYTES };
  });
}

describe('out of core', () => {
  it('a product of 8 x 8 tiles reads a tile of A or B for two products, and writes each tile of C once', async () => {
    const rows = 8 * TILE;
    const { h2d, d2h } = await moved(48, (runtime) => {
      const [a, b] = ['A', 'B'].map(
        (name, i) => new TiledMatrix(runtime, 'f64', { rows, tile: TILE, name }, fillIntegers(i)),
      );
      const c = new TiledMatrix(runtime, 'f64', { rows, tile: TILE, name: 'C' });
      return (graph) => gemm(graph, a, b, c);
    });
    expect(h2d).toBeLessThanOrEqual(256 * 1.5);
    expect(d2h).toBeLessThanOrEqual(64 * 1.5);
  });

  it('a Cholesky factorisation of 16 x 16 tiles writes no tile back for every update', async () => {
    const rows = 16 * TILE;
    const { h2d, d2h } = await moved(36, (runtime) => {
      const a = new TiledMatrix(
        runtime,
        'f64',
        { rows, tile: TILE, lower: true, name: 'A' },
        fillSpd(rows),
      );
      return (graph) => cholesky(graph, a);
    });
    // 816 tasks; a sweep of the trailing matrix for each of 16 panels.
    expect(h2d).toBeLessThanOrEqual(816 * 1.25);
    expect(d2h).toBeLessThanOrEqual(136 * 2.5);
  });
});
