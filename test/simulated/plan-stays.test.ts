// The bytes that a plan moves when it is played again. Data that it only reads come to the devices that read them once, and stay there.
import '../support/removable-guards.js';
import { afterEach, describe, expect, test } from 'vitest';
import { gemm } from '../../algorithms/index.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { Runtime, TiledMatrix } from '../../index.js';

const TILES = 6;
const TILE = 8;
const BYTES = TILES * TILES * TILE * TILE * 8;

/** Counts the bytes of copies that the engine commands. */
class CountingBackend extends SimulatedBackend {
  moved = 0;

  override copy(...of: Parameters<SimulatedBackend['copy']>): number {
    this.moved += of[6];
    return super.copy(...of);
  }
}

/** Bytes that an iteration of a product moves, and those that are brought before each of four plays. */
async function movedBy(gpus: number, gpuMemory: number, beta: number) {
  const backend = new CountingBackend({
    machine: { ...presets['h200-1'], gpus, gpuMemory, workers: 1 },
    story: false,
  });
  const runtime = Runtime.over(backend, { plans: 'off' });
  const size = TILES * TILE;
  const [A, B, C] = ['A', 'B', 'C'].map(
    (name) => new TiledMatrix(runtime, 'f64', { rows: size, tile: TILE, name }),
  );
  for (const matrix of [A, B, C])
    for (let i = 0; i < TILES; i++)
      for (let j = 0; j < TILES; j++) matrix.at(i, j).set(new Float64Array(TILE * TILE).fill(1));
  const plan = await runtime.plan((graph) => gemm(graph, A, B, C, { beta }));
  const { h2d, d2h, d2d } = plan.report.bytes;
  const entries: number[] = [];
  for (let play = 0; play < 4; play++) {
    const before = backend.moved;
    await plan.run({ times: 2 });
    entries.push(backend.moved - before);
    // A look at a result brings it to the host, and takes it from no GPU.
    if (play === 1) await C.at(0, 0).read();
  }
  await runtime.close();
  const [first, ...later] = entries;
  return { iteration: h2d + d2h + d2d, first, later };
}

test.each([
  [1, 0],
  [1, 1],
  [2, 0],
  [2, 1],
])(
  'a product on %i GPUs whose data fit, beta %i, moves no bytes when it is played again',
  async (gpus, beta) => {
    const { iteration, first, later } = await movedBy(gpus, 2 ** 22, beta);
    expect(iteration).toBe(0);
    expect(first).toBeGreaterThanOrEqual((2 + beta) * BYTES);
    expect(later).toEqual([0, 0, 0]);
  },
);

test('a product whose data do not fit moves the same bytes in each play, and none before it', async () => {
  const { iteration, later } = await movedBy(2, BYTES / 4, 0);
  expect(iteration).toBeGreaterThanOrEqual(3 * BYTES);
  expect(later).toEqual([0, 0, 0]);
});

describe('guards', () => {
  afterEach(() => setGuard('planStays', true));

  test('without planStays: data that are only read come from the host in each iteration', async () => {
    setGuard('planStays', false);
    const { iteration } = await movedBy(2, 2 ** 22, 0);
    expect(iteration).toBeGreaterThanOrEqual(2 * BYTES);
  });
});
