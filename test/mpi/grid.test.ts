// The oracles on 1 to 4 ranks with 1 and 2 GPUs each, by the ways of data. One launch per number of ranks and GPUs runs
// them all; the tests check the reports of its ranks.
import { beforeAll, describe, expect, test } from 'vitest';
import { partOf } from '../support/grids.js';
import {
  first,
  LIBRARIES,
  type Library,
  layers,
  needing,
  over,
  ranks as rankNeed,
} from '../support/needs.js';
import { mpirun } from './mpirun.js';

interface Entry {
  readonly rank: number;
  readonly name: string;
  readonly way: string;
  readonly problems: readonly string[];
  readonly pinned: number;
  readonly hash?: string;
  readonly steps?: number;
  readonly inserted?: number;
  readonly tasks?: number;
  readonly bytes?: Readonly<Record<string, number>>;
  readonly network?: Readonly<Record<string, number>>;
}

const WAYS = ['direct', 'staged', 'ipc', 'inline'];
const ORACLES = [
  'pingPong',
  'permutationChain',
  'reduce',
  'writeAfterRead',
  'allToAll',
  'randomSums',
  'control',
  'choice',
  'unfolding',
  'taskBench',
  'stencil',
  'newTile',
  'oneReceive',
  'broadcast',
  'storm',
  'copyCover',
  'reductions',
  'reducedInTurn',
  'cholesky',
  'gemm',
  'redistribute',
  'pruned',
  'choleskySolve',
  'triangularSolve',
  'lu',
  'qr',
  'conjugateGradient',
  'norms',
];
const SHORT = [3, 5].flatMap((tiles) =>
  ['cholesky', 'gemm', 'choleskySolve'].map((name) => `${name}, memory of ${tiles} tiles`),
);
/** Oracles whose data are on GPUs when they travel: these must take the way asked for, and no other device way. */
const FROM_GPUS = ['writeAfterRead', 'allToAll', 'taskBench', 'broadcast', 'storm', 'copyCover'];

/** Factors and products by oracle: the same bits wherever and however they were computed. */
const hashes = new Map<string, Set<string>>();

function suite(library: Library, ranks: number, gpus: number, ways: readonly string[]): void {
  let entries: readonly Entry[] = [];
  let output = '';
  beforeAll(async () => {
    const args = [JSON.stringify({ gpus, ways })];
    const run = await mpirun(ranks, 'grid.mjs', { library, args, seconds: 230 });
    entries = run.reports as unknown as Entry[];
    output = run.output;
    expect(run.code, run.output).toBe(0);
  }, 240_000);

  describe.each(ways)('%s', (way) => {
    test.each([...ORACLES, ...SHORT])('%s', (name) => {
      const mine = entries.filter((entry) => entry.way === way && entry.name === name);
      expect(mine, output).toHaveLength(ranks);
      const total = (kind: string): number =>
        mine.reduce((sum, { bytes }) => sum + (bytes?.[kind] ?? 0), 0);
      for (const { problems, pinned, hash } of mine) {
        expect(problems, output).toEqual([]);
        // No reader, send or receive was forgotten.
        expect(pinned).toBe(0);
        const oracle = name.split(',')[0] as string;
        if (hash !== undefined) hashes.set(oracle, (hashes.get(oracle) ?? new Set()).add(hash));
        if (hash !== undefined) expect([...(hashes.get(oracle) ?? [])]).toHaveLength(1);
      }
      if (ranks === 1) for (const kind of WAYS) expect(total(kind)).toBe(0);
      // The last and largest pieces of copy-cover are never part of an announcement.
      else if (FROM_GPUS.includes(name) && !(name === 'copyCover' && way === 'inline')) {
        expect(total(way)).toBeGreaterThan(0);
        for (const other of ['staged', 'ipc'] as const)
          if (other !== way) expect(total(other)).toBe(0);
      }
      const inserted = mine[0]?.inserted;
      if (inserted !== undefined)
        expect(mine.reduce((sum, { tasks }) => sum + (tasks ?? 0), 0)).toBe(inserted);
    });
  });

  test('copy-cover made all its steps', () => {
    const buffers = ranks * (1 + gpus);
    for (const { name, steps } of entries)
      if (name === 'copyCover') expect(steps).toBe(7 * buffers * (buffers - 1));
  });
}

/**
 * The ways for each number of ranks and GPUs of a rank. One rank sends nothing by any way. Several ranks have every way, with one GPU
 * or with two; the inline way of four ranks is that of three.
 */
const GRID = [
  { ranks: 1, gpus: 1, ways: partOf(WAYS, ['ipc']) },
  { ranks: 1, gpus: 2, ways: partOf(WAYS, ['direct']) },
  { ranks: 2, gpus: 1, ways: partOf(WAYS, ['direct', 'inline']) },
  { ranks: 2, gpus: 2, ways: partOf(WAYS, ['staged', 'ipc']) },
  { ranks: 3, gpus: 1, ways: partOf(WAYS, ['staged', 'ipc']) },
  { ranks: 3, gpus: 2, ways: partOf(WAYS, ['direct', 'inline']) },
  { ranks: 4, gpus: 1, ways: partOf(WAYS, ['direct', 'ipc']) },
  { ranks: 4, gpus: 2, ways: partOf(WAYS, ['staged']) },
];

describe.each(GRID)('$ranks ranks, $gpus GPUs each', needing(rankNeed), ({ ranks, gpus, ways }) => {
  suite(first ?? 'openmpi', ranks, gpus, ways);
});

describe('MPICH: 3 ranks, 2 GPUs each', needing(layers.mpich), () => {
  suite('mpich', 3, 2, ['direct', 'ipc']);
});

/** Its data alone need more than the least memory of the other oracles. */
const SMALL = ORACLES.filter((name) => name !== 'copyCover');

// Without GPUs no receive waits for the news of its version: along trees, with little memory, and with the fewest lanes.
describe.each(LIBRARIES)('without GPUs over %s', (library) => {
  const variants = [
    { treeFrom: 2 },
    { treeFrom: 2, hostMemory: '2MiB', only: SMALL },
    { lanes: 2, only: SMALL },
  ];
  // Little memory and few lanes are matters of the engine.
  describe.each(over(library, variants, variants.slice(0, 1)))(
    '%j',
    needing(layers[library]),
    ({ only = ORACLES, ...options }) => {
      test('every oracle on 3 ranks', async () => {
        const given = { gpus: 0, ways: ['direct'], only, ...options };
        const args = [JSON.stringify(given)];
        const run = await mpirun(3, 'grid.mjs', { library, args, seconds: 230 });
        expect(run.code, run.output).toBe(0);
        const entries = run.reports as unknown as readonly Entry[];
        expect(entries, run.output).toHaveLength(only.length * 3);
        for (const { name, problems, pinned } of entries) {
          expect(problems, `${name}: ${run.output}`).toEqual([]);
          expect(pinned).toBe(0);
        }
      }, 240_000);
    },
  );
});

describe.each(LIBRARIES)('pulled inputs give what pushed ones give over %s', (library) => {
  const only = [
    'pingPong',
    'reduce',
    'writeAfterRead',
    'allToAll',
    'randomSums',
    'broadcast',
    'storm',
  ];
  const onLanes = { gpus: 0, ways: ['direct'], treeFrom: 2 };
  const variants = [
    { gpus: 1, ways: ['direct', 'ipc'] },
    // Hardly any device memory, and trees for those that do not pull.
    { gpus: 2, ways: ['staged'], treeFrom: 2, gpuMemory: '16KiB' },
    { ...onLanes, hostMemory: '2MiB', lanes: 4 },
    onLanes,
  ];
  test.each(over(library, variants, [onLanes]))('%j', needing(layers[library]), async (options) => {
    const args = [JSON.stringify({ ...options, only, fetch: 'pull' })];
    const run = await mpirun(4, 'grid.mjs', { library, args });
    expect(run.code, run.output).toBe(0);
    const entries = run.reports as unknown as readonly Entry[];
    expect(entries, run.output).toHaveLength(only.length * 4 * options.ways.length);
    for (const { name, problems, pinned } of entries) {
      expect(problems, `${name}: ${run.output}`).toEqual([]);
      expect(pinned).toBe(0);
    }
  });
});
