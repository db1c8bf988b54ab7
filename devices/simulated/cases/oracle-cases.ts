// Programs with a known outcome as simulated cases, on machines that are short of memory in every way of the oracles:
// tiled Cholesky and GEMM with device memory of 3, 4, 5, 8 and 21 tiles, and a device full of dirty copies.
// Invariant: equal seeds give equal cases; each ends well, and evicts if memory is short.
import { Random } from '../machine/random.js';
import { randomCase, type SimulatedCase } from './case.js';
import type { CaseFlow, CaseTask } from './program.js';

const MEMORIES = [3, 4, 5, 8, 21] as const;

/** A case and its further conditions. */
interface OracleCase {
  readonly name: string;
  readonly case: SimulatedCase;
  /** Copies must leave the devices. */
  readonly mustEvict: boolean;
}

interface Tiles {
  readonly count: number;
  readonly tasks: readonly (readonly CaseFlow[])[];
}

function choleskyTiles(nt: number): Tiles {
  const at = (i: number, j: number): number => (i * (i + 1)) / 2 + j;
  const tasks: CaseFlow[][] = [];
  for (let k = 0; k < nt; k++) {
    tasks.push([[at(k, k), 3]]);
    for (let i = k + 1; i < nt; i++)
      tasks.push([
        [at(k, k), 1],
        [at(i, k), 3],
      ]);
    for (let j = k + 1; j < nt; j++) {
      tasks.push([
        [at(j, k), 1],
        [at(j, j), 3],
      ]);
      for (let i = j + 1; i < nt; i++)
        tasks.push([
          [at(i, k), 1],
          [at(j, k), 1],
          [at(i, j), 3],
        ]);
    }
  }
  return { count: (nt * (nt + 1)) / 2, tasks };
}

function gemmTiles(nt: number): Tiles {
  const a = (i: number, j: number): number => i * nt + j;
  const square = nt * nt;
  const tasks: CaseFlow[][] = [];
  for (let i = 0; i < nt; i++) {
    for (let j = 0; j < nt; j++) {
      for (let k = 0; k < nt; k++)
        tasks.push([
          [a(i, k), 1],
          [square + a(k, j), 1],
          [2 * square + a(i, j), 3],
        ]);
    }
  }
  return { count: 3 * square, tasks };
}

/** The device writes every tile, more than it holds; then each is used again. */
function dirtyTiles(memory: number): Tiles {
  const count = memory * 3;
  const tasks: CaseFlow[][] = [];
  for (let round = 0; round < 3; round++)
    for (let d = 0; d < count; d++) tasks.push([[d, round === 0 ? 2 : 3]]);
  return { count, tasks };
}

/** The oracle case of a seed: under the adversary of the random case of that seed. */
export function oracleCase(seed: number): OracleCase {
  const r = new Random(seed);
  const memory = r.pick(MEMORIES);
  const gpus = r.between(1, 4);
  const kind = r.pick(['cholesky', 'gemm', 'all dirty'] as const);
  const nt = kind === 'gemm' ? r.between(2, 5) : r.between(2, 9);
  const tiles =
    kind === 'cholesky' ? choleskyTiles(nt) : kind === 'gemm' ? gemmTiles(nt) : dirtyTiles(memory);
  const units = r.between(1, 2);
  const base = randomCase(seed, { gpus, ranks: 1, tasks: 1, synchronous: true });
  const tasks: CaseTask[] = tiles.tasks.map((flows) => ({
    flows,
    body: 'kernel',
    micros: r.between(1, 20),
    ...(kind === 'all dirty' ? { device: 0 } : {}),
  }));
  const data = Array.from({ length: tiles.count }, () => ({
    units,
    initial: kind !== 'all dirty',
  }));
  return {
    name: `${kind}, ${tiles.count} tiles, memory for ${memory}, ${gpus} devices`,
    mustEvict: tiles.count > memory * gpus || kind === 'all dirty',
    case: {
      ...base,
      gpuUnits: memory * units,
      hostUnits: tiles.count * units * 2 + 16,
      window: Math.max(base.window, 16),
      data,
      tasks,
      reads: [],
    },
  };
}
