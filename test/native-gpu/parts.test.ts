// Parts of data on CUDA: the driver copies strided blocks as 2D. On the stub driver, or on the GPUs of this machine.
import { describe, expect, it } from 'vitest';
import { Runtime } from '../../index.js';
import { cudaGpus, isReal } from '../support/cuda.js';
import { nothingLeft, soon } from '../support/machines.js';
import { cuda, needing } from '../support/needs.js';
import { playParts } from '../support/part-programs.js';
import { add } from '../support/tasks.js';

const gpus = Math.min(2, cudaGpus);

async function opened(): Promise<Runtime> {
  return Runtime.create({
    driver: 'cuda',
    gpus,
    gpuMemory: isReal ? '64MiB' : '8MiB',
    hostMemory: '64MiB',
    workers: 1,
    checked: !isReal,
  });
}

describe('parts on CUDA', needing(cuda), () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'random program %i has the results of plain arrays',
    async (seed) => {
      const runtime = await opened();
      await nothingLeft(runtime, await playParts(runtime, 100 + seed, 40));
      await soon(runtime, runtime.close());
    },
  );

  it('a strided row of a large tile travels alone', async () => {
    const runtime = await opened();
    const side = 777;
    const tile = runtime.data(
      new Float64Array(side * side).map((_, i) => i),
      { rows: side, device: 0 },
    );
    const to = runtime.data(new Float64Array(side), { device: gpus - 1 });
    const { bytes } = await runtime.run((graph) => {
      graph.insert(add, { to: tile, from: to, count: 0 }, { device: 0 });
      const row = tile.block({ row: 5, rows: 1 });
      graph.insert(add, { to, from: row, count: side }, { device: gpus - 1 });
    });
    expect([...(await to.read())]).toEqual(Array.from({ length: side }, (_, j) => j * side + 5));
    expect(bytes.d2d).toBeLessThanOrEqual(2 * side * 8);
    await nothingLeft(runtime, [tile, to]);
    await soon(runtime, runtime.close());
  });
});
