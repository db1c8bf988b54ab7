// Bytes moved when device memory holds a quarter of the data. They depend on the order of the tasks and on the choice of
// evicted copies. On emulated GPUs the bounds are the needs of the order of blocks and panels, plus half of them for
// races between copies and tasks. A machine may keep the threads from their work for so long that more is lost: then the next
// run counts. On simulated GPUs nothing races.
import { describe, expect, it } from 'vitest';
import { cholesky, gemm } from '../../algorithms/index.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { type Graph, Runtime, read, TiledMatrix, task } from '../../index.js';
import { MACHINES, onMachine, soon } from '../support/machines.js';
import { fillIntegers, fillSpd } from '../support/matrices.js';

const TILE = 32;
const BYTES = TILE * TILE * 8;
const RUNS = 5;
const look = task({ name: 'look', flows: { x: read('f64') }, kernel: 'empty' });

/** Tiles that go to and from a GPU. */
interface Moved {
  readonly h2d: number;
  readonly d2h: number;
}

/** Of the first run that moves no more than `most`, or of the last one. */
async function moved(
  memory: number,
  most: Moved,
  make: (runtime: Runtime) => (graph: Graph) => void,
): Promise<Moved> {
  const options = { workers: 1, gpus: 1, computeStreams: 4, hostMemory: '64MiB' };
  let seen: Moved = { h2d: Number.POSITIVE_INFINITY, d2h: Number.POSITIVE_INFINITY };
  for (let i = 0; i < RUNS && (seen.h2d > most.h2d || seen.d2h > most.d2h); i++)
    seen = await onMachine({ ...options, gpuMemory: memory * BYTES }, async (runtime) => {
      const report = await soon(runtime, runtime.run(make(runtime)));
      return { h2d: report.bytes.h2d / BYTES, d2h: report.bytes.d2h / BYTES };
    });
  return seen;
}

/**
 * Tiles that come in on simulated GPUs of which each has memory for `memory` of them: links and products take as long as
 * tiles of 1024 x 1024 on an H200 node.
 */
async function readOn(
  gpus: number,
  memory: number,
  make: (runtime: Runtime) => (graph: Graph) => void,
): Promise<number> {
  const link = { bandwidth: BYTES / 153e-6, latency: 8e-6 };
  const machine = {
    ...presets['h200-1'],
    gpus,
    gpuMemory: memory * BYTES,
    computeStreams: 4,
    h2d: link,
    d2h: link,
    d2d: { ...link, bandwidth: BYTES / 22e-6 },
    kernels: { '*': 42e-6 },
  };
  const runtime = Runtime.over(new SimulatedBackend({ machine }), {});
  const report = await runtime.run(make(runtime));
  await runtime.close();
  return report.bytes.h2d / BYTES;
}

describe('out of core', () => {
  it('a product of 8 x 8 tiles reads three tiles of A or B for eight products, and writes each tile of C once', async () => {
    const rows = 8 * TILE;
    // Two blocks of 4 x 8 tiles.
    const most = { h2d: 192 * 1.5, d2h: 64 * 1.5 };
    const { h2d, d2h } = await moved(48, most, (runtime) => {
      const [a, b] = ['A', 'B'].map(
        (name, i) => new TiledMatrix(runtime, 'f64', { rows, tile: TILE, name }, fillIntegers(i)),
      );
      const c = new TiledMatrix(runtime, 'f64', { rows, tile: TILE, name: 'C' });
      return (graph) => gemm(graph, a, b, c);
    });
    expect(h2d).toBeLessThanOrEqual(most.h2d);
    expect(d2h).toBeLessThanOrEqual(most.d2h);
  });

  it('a Cholesky factorisation of 16 x 16 tiles reads the matrix once per panel, not once per column', async () => {
    const rows = 16 * TILE;
    // 136 tiles, and for panels from columns 5, 8 and 13 on what lies left of them: 55 + 64 + 39.
    const most = { h2d: 294 * 1.5, d2h: 136 * 2 };
    const { h2d, d2h } = await moved(36, most, (runtime) => {
      const a = new TiledMatrix(
        runtime,
        'f64',
        { rows, tile: TILE, lower: true, name: 'A' },
        fillSpd(rows),
      );
      return (graph) => cholesky(graph, a);
    });
    expect(h2d).toBeLessThanOrEqual(most.h2d);
    expect(d2h).toBeLessThanOrEqual(most.d2h);
  });

  it('panels in bands and whole give the same bits as one panel', async () => {
    await onMachine(MACHINES[0].options, async (runtime) => {
      const rows = 12 * TILE;
      const factor = async (tilesPerGpu: number): Promise<Float64Array[]> => {
        const options = { rows, tile: TILE, lower: true, name: 'A' };
        const a = new TiledMatrix(runtime, 'f64', options, fillSpd(rows));
        await runtime.run((graph) => cholesky(graph, a, { tilesPerGpu }));
        const tiles: Float64Array[] = [];
        for (let j = 0; j < 12; j++)
          for (let i = j; i < 12; i++) tiles.push((await a.at(i, j).read()).slice());
        a.close();
        return tiles;
      };
      const whole = await factor(1e6);
      for (const tilesPerGpu of [5, 9, 16, 25, 40, 60]) {
        expect(await factor(tilesPerGpu), `${tilesPerGpu} tiles`).toEqual(whole);
      }
    });
  });

  it('two and four GPUs share the tiles of a block of C rather than reading them apart', async () => {
    const rows = 16 * TILE;
    for (const [gpus, memory] of [
      [2, 112],
      [4, 56],
    ] as const) {
      const h2d = await readOn(gpus, memory, (runtime) => {
        const [a, b] = ['A', 'B'].map(
          (name, i) => new TiledMatrix(runtime, 'f64', { rows, tile: TILE, name }, fillIntegers(i)),
        );
        const c = new TiledMatrix(runtime, 'f64', { rows, tile: TILE, name: 'C' });
        return (graph) => gemm(graph, a, b, c);
      });
      // Two blocks of 8 x 16 tiles. Were nothing shared it would be 1024 and 1536.
      expect(h2d, `${gpus} GPUs`).toBeLessThanOrEqual(768 * 1.1);
    }
  });

  it('the copy needed last leaves first: a sweep that does not fit reads the missing data, not everything again', async () => {
    const [data, sweeps, memory] = [24, 10, 16];
    const reads = await readOn(1, memory, (runtime) => {
      const tiles = Array.from({ length: data }, () => runtime.data(new Float64Array(TILE * TILE)));
      return (graph) => {
        for (let i = 0; i < sweeps; i++) for (const x of tiles) graph.insert(look, { x });
      };
    });
    // By least recent use every sweep reads all of it.
    expect(reads).toBeLessThanOrEqual(0.75 * data * sweeps);
  });
});
