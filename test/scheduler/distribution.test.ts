// Who owns a tile: block-cyclic grids, and grids that are dealt forth and back.
import { describe, expect, it } from 'vitest';
import { gridOfGpus } from '../../devices/memory/distribution.js';
import { type GpuGrid, ownerOf, Runtime, TiledMatrix } from '../../index.js';

const owners = (grid: GpuGrid, lines: number): number[] =>
  Array.from({ length: lines }, (_, i) => ownerOf(grid, i, 0));

/** Tasks of a Cholesky factorisation of nt x nt tiles on each GPU: those that write its tiles. */
function tasksPerGpu(grid: GpuGrid, gpus: number, nt: number): number[] {
  const tasks = new Array<number>(gpus).fill(0);
  for (let j = 0; j < nt; j++)
    for (let i = j; i < nt; i++)
      tasks[ownerOf(grid, i, j)] = (tasks[ownerOf(grid, i, j)] ?? 0) + j + 1;
  return tasks;
}

describe('a grid of GPUs', () => {
  it('is dealt in turn, or forth and back', () => {
    const rows = { rows: 3, columns: 1 };
    expect(owners(rows, 8)).toEqual([0, 1, 2, 0, 1, 2, 0, 1]);
    expect(owners({ ...rows, reflected: true }, 8)).toEqual([0, 1, 2, 2, 1, 0, 0, 1]);
    expect(owners({ ...rows, reflected: true, blockRows: 2 }, 8)).toEqual([0, 0, 1, 1, 2, 2, 2, 2]);
    expect(owners({ ...rows, reflected: true, originRow: 1 }, 6)).toEqual([1, 2, 2, 1, 0, 0]);
    const square = { rows: 2, columns: 2, reflected: true };
    const of = (i: number) => [0, 1, 2, 3].map((j) => ownerOf(square, i, j));
    expect([0, 1, 2, 3].map(of)).toEqual([
      [0, 1, 1, 0],
      [2, 3, 3, 2],
      [2, 3, 3, 2],
      [0, 1, 1, 0],
    ]);
  });

  it.each([2, 4, 8])('gives each of %i GPUs about the same share of a factorisation', (gpus) => {
    const share = (grid: GpuGrid) => {
      const tasks = tasksPerGpu(grid, gpus, 64);
      return (Math.max(...tasks) * gpus) / tasks.reduce((a, b) => a + b);
    };
    // Dealt in turn, the last GPU has more than its share.
    const excess = share({ rows: gpus, columns: 1 }) - 1;
    expect(excess).toBeGreaterThan(0.02);
    expect(share(gridOfGpus(gpus, true)) - 1).toBeLessThan(excess / 2);
  });

  it('of a triangle is reflected by default, and that of a full matrix is not', async () => {
    await using runtime = await Runtime.create({ workers: 1, gpus: 2, gpuMemory: '1MiB' });
    const sizes = { rows: 16, tile: 4 };
    const lower = new TiledMatrix(runtime, 'f64', { ...sizes, lower: true });
    expect(lower.grid).toEqual({ rows: 2, columns: 1, reflected: true });
    expect(new TiledMatrix(runtime, 'f64', sizes).grid).toMatchObject({
      rows: 1,
      columns: 2,
      reflected: false,
    });
    const grid = { rows: 2, columns: 1 };
    const plain = new TiledMatrix(runtime, 'f64', { ...sizes, lower: true, grid });
    expect(plain.grid).toMatchObject({ ...grid, reflected: false });
    const wrong = { ...grid, reflected: 'yes' as unknown as boolean };
    expect(() => new TiledMatrix(runtime, 'f64', { ...sizes, grid: wrong })).toThrow(/reflected/);
    // Ranks own ranges of rows, which a reflected grid does not give.
    expect(
      () =>
        new TiledMatrix(runtime, 'f64', {
          ...sizes,
          rankGrid: { ...grid, reflected: true } as GpuGrid,
        }),
    ).toThrow(/'reflected'/);
  });
});
