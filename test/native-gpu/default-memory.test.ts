// The memory that a runtime takes from a real GPU by default: what is free there, or a rank's share of it.
import { describe, expect, it } from 'vitest';
import { Runtime } from '../../index.js';
import { loadNative } from '../../native/index.js';
import { isReal } from '../support/cuda.js';
import { soon } from '../support/machines.js';
import { cuda, needing } from '../support/needs.js';

/** Memory of a GPU of the stub driver. */
const WHOLE = 2 ** 30;
const UNIT = 2 ** 21;
const tenths = (share: number): number => Math.floor((0.9 * share) / UNIT) * UNIT;

/** Opens GPUs without a size; the bytes of each. */
function taken(gpus: number, gpuRanks: number, firstGpu = 0): number[] {
  const core = loadNative().open({
    ...{ driver: 'cuda', gpus, gpuRanks, firstGpu, workers: 0, computeStreams: 1 },
    ...{ hostBytes: 2 ** 20, pinnedBytes: 2 ** 20, ringRecords: 64, checked: false },
  });
  const bytes = core.spaces.slice(1).map((space) => space.bytes);
  core.close();
  return bytes;
}

const stubbed = isReal ? { skip: true } : needing(cuda);

describe('memory of a GPU by default', stubbed, () => {
  it('is nine tenths of what is free, and the GPU is one without a number', async () => {
    const first = await Runtime.create({ driver: 'cuda', workers: 1, hostMemory: '16MiB' });
    const sizes = (runtime: Runtime) =>
      runtime
        .memory()
        .slice(1)
        .map((gpu) => gpu.capacity);
    expect(sizes(first)).toEqual([tenths(WHOLE)]);
    const second = await Runtime.create({ driver: 'cuda', workers: 1, hostMemory: '16MiB' });
    expect(sizes(second)).toEqual([tenths(WHOLE - tenths(WHOLE))]);
    await soon(second, second.close());
    await soon(first, first.close());
  });

  it('is the share of a rank where ranks divide the GPUs of a host', () => {
    expect(taken(1, 2)).toEqual([tenths(WHOLE)]);
    expect(taken(1, 4)).toEqual([tenths(WHOLE / 2)]);
    expect(taken(2, 2)).toEqual([tenths(WHOLE / 2), tenths(WHOLE / 2)]);
    expect(taken(1, 3)).toEqual([tenths(WHOLE / 2)]);
  });

  it('leaves the share of the last rank free', () => {
    const size = tenths(WHOLE / 8);
    const cores = Array.from({ length: 8 }, () =>
      loadNative().open({
        ...{ driver: 'cuda', gpus: 1, gpuRanks: 16, workers: 0, computeStreams: 1 },
        ...{ hostBytes: 2 ** 20, pinnedBytes: 2 ** 20, ringRecords: 64, checked: false },
      }),
    );
    expect(cores.map((core) => core.spaces[1]?.bytes)).toEqual(cores.map(() => size));
    for (const core of cores) core.close();
  });

  it('is named in the error when there is less', async () => {
    const options = { driver: 'cuda', gpuMemory: 2 * WHOLE, workers: 1 } as const;
    const error = await Runtime.create(options).then(
      () => undefined,
      (e: unknown) => e,
    );
    expect(error).toMatchObject({
      code: 'ERR_OUT_OF_MEMORY',
      message: expect.stringContaining('Ask for less gpuMemory'),
    });
  });
});
