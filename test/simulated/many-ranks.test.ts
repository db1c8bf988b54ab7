// Programs on many simulated ranks: what a rank keeps depends on its neighbours, not on the number of ranks.
import { expect, test } from 'vitest';
import { choleskyGraph } from '../../algorithms/index.js';
import { type ProgramSize, programs } from '../../cli/simulation/programs.js';
import { Together } from '../../cli/simulation/together.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { World } from '../../devices/simulated/machine/world.js';
import { SimulatedNetwork } from '../../devices/simulated/network/network.js';
import { type Datum, type Graph, Runtime, range, TiledMatrix, task, write } from '../../index.js';

/** Rows of the window of a rank. */
const WINDOW = 256;

function openRanks(ranks: number): Runtime[] {
  const machine = { ...presets['h200-2'], workers: 1, lanes: 8 };
  const world = new World();
  const backends = Array.from(
    { length: ranks },
    () => new SimulatedBackend({ machine, world, ringRecords: 64 }),
  );
  const { adversary } = backends[0];
  const link = { bandwidth: 1e11, latency: 5e-6 };
  const network = new SimulatedNetwork(world, backends, { link, adversary });
  return backends.map((backend, rank) =>
    Runtime.over(backend, { workers: 1, window: WINDOW }, network.ports[rank]),
  );
}

/** Runs a program on simulated ranks; returns the runtimes and matrices of each rank before anything is closed. */
async function played(name: string, size: ProgramSize) {
  const program = programs[name];
  const runtimes = openRanks(size.ranks);
  const together = new Together(runtimes);
  const matrices = await together.make(program, program.layout(size));
  const reports = await together.run((graph) => program.insert(graph, matrices, size.steps));
  return { runtimes, reports };
}

/** Entries of everything that can be reached from a runtime and is its own, by the way to it. */
function entriesOf(runtime: Runtime, backend: unknown): Map<string, number> {
  const entries: Map<string, number> = new Map();
  const seen: Set<unknown> = new Set([backend]);
  const line: [unknown, string][] = [[runtime, '']];
  for (let next = line.pop(); next !== undefined; next = line.pop()) {
    const [value, way] = next;
    if (typeof value !== 'object' || value === null || seen.has(value)) continue;
    seen.add(value);
    // What all ranks share is not theirs.
    if (value instanceof World || value instanceof SimulatedNetwork) continue;
    const add = (n: number): unknown => entries.set(way, (entries.get(way) ?? 0) + n);
    if (ArrayBuffer.isView(value)) add((value as Float64Array).length);
    else if (value instanceof Map || value instanceof Set) {
      add(value.size);
      for (const each of value.values()) line.push([each, `${way}[]`]);
    } else if (Array.isArray(value)) {
      add(value.length);
      for (const each of value) line.push([each, `${way}[]`]);
    } else for (const [key, each] of Object.entries(value)) line.push([each, `${way}.${key}`]);
  }
  return entries;
}

/** The rank in the middle of a square grid of ranks: it has four neighbours. */
function middle(ranks: number): number {
  const side = Math.sqrt(ranks);
  return (side >> 1) * side + (side >> 1);
}

async function stencil(ranks: number) {
  const size = { ranks, gpus: 2, n: undefined, tile: 256, steps: 4 };
  const { runtimes, reports } = await played('stencil', size);
  const rank = middle(ranks);
  const runtime = runtimes[rank];
  const entries = entriesOf(runtime, (runtime.engine as { backend: unknown }).backend);
  const held = runtime.engine.directory.info.map((datum) => (datum as Datum).rank);
  return { entries, held, report: reports[rank], tasks: reports.reduce((n, r) => n + r.tasks, 0) };
}

/** A table with an entry for each rank would have 119 more; free nodes of a pool depend on the timing. */
const SLACK = 32;

test('state of a rank in a stencil with four neighbours is the same among 25 and 144 ranks', async () => {
  const few = await stencil(25);
  const many = await stencil(144);
  expect(many.tasks).toBe(144 * 2 * 4);
  // Those of its neighbours' tasks that read its tiles read tiles of the neighbours' neighbours, too.
  expect(new Set(many.held).size).toBeLessThanOrEqual(13);
  expect(many.held.length).toBe(few.held.length);
  expect(many.report.network?.sends).toBe(few.report.network?.sends);
  // The walk finds what it must find.
  const found = (name: string) => [...many.entries].find(([way]) => way.endsWith(name))?.[1];
  expect(found('.wire.outgoing')).toBeGreaterThanOrEqual(1);
  expect(found('.data.gid')).toBeGreaterThan(0);
  const grown: string[] = [];
  for (const [way, n] of many.entries) {
    const before = few.entries.get(way) ?? 0;
    if (n > before + SLACK) grown.push(`${way}: ${before} -> ${n}`);
  }
  expect(grown).toEqual([]);
});

const init = task({ name: 'init', flows: { a: write('f64') }, kernel: 'init', gpuKernel: false });

test('ranks of one process insert a parameterised graph in turn, although their windows are smaller than their shares', async () => {
  const tiles = 24;
  const counts: number[] = [];
  const program = async (graph: Graph, A: TiledMatrix<'f64'>): Promise<void> => {
    const lines = range(0, tiles);
    for (const j of A.ownColumns(graph.rank, lines))
      for (const i of A.ownRows(graph.rank, lines))
        if (i >= j) graph.insert(init, { a: A.at(i, j) });
    counts.push(await choleskyGraph.insertInTurns(graph, { A }));
  };
  const runs = openRanks(4).map((runtime) => {
    const A = new TiledMatrix(runtime, 'f64', { rows: 16 * tiles, tile: 16, lower: true });
    return runtime.run((graph) => program(graph, A), { pruned: true }).done;
  });
  await Promise.all(runs);
  expect(counts.every((count) => count > 2 * WINDOW)).toBe(true);
  const all = counts.reduce((sum, count) => sum + count, 0);
  expect(all).toBe((tiles * (tiles + 1) * (tiles + 2)) / 6);
});
