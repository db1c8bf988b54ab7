// What a task of a parameterised graph costs a rank among many, beside the same tasks inserted: processor time from the start to the
// last insertion, with about the same work for the rank among any number of ranks. Only one rank is played, on a simulated machine whose
// neighbours never answer (lone-port.ts). So tasks that wait for them do not run: what a task costs behind its insertion does not
// depend on the number of ranks, which `--only scale` measures.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { cholesky, choleskyGraph } from '../algorithms/index.js';
import { torus } from '../cli/simulation/programs.js';
import { SimulatedBackend } from '../devices/simulated/machine/backend.js';
import { presets } from '../devices/simulated/machine/presets.js';
import { World } from '../devices/simulated/machine/world.js';
import {
  type Flow,
  type Graph,
  type ParameterisedGraph,
  parameterised,
  Runtime,
  range,
  read,
  type TaskClass,
  TiledMatrix,
  task,
  write,
} from '../scheduler/index.js';
import { commandLine, usageError } from './command-line.js';
import { type BenchEntry, log, median } from './harness.js';
import { LonePort } from './lone-port.js';

const GPUS = 8;
const TILE = 2048;
const FEW = 4;
const MOST = 1024;
const REPEATS = 3;
/** All rows of the rank. */
const WINDOW = 2 ** 17;

/**
 * V8 takes some eight insertions of a rank's own tasks until all of their code is compiled, in threads whose time counts too. After one
 * insertion the figure was 1.4 to 2 times as large among 1024 ranks as among 4. An unpruned run has many more tasks.
 */
const WARM = { parameterised: 8, pruned: 8, unpruned: 1 } as const;

type Way = 'parameterised' | 'pruned' | 'unpruned';
type Matrices = readonly TiledMatrix<'f64'>[];
type Read = Flow<'f64', 'read'>;

const init = task({ name: 'init', flows: { a: write('f64') }, kernel: 'init', gpuKernel: false });
const step: TaskClass<
  {
    readonly to: Flow<'f64', 'write'>;
    readonly middle: Read;
    readonly north: Read;
    readonly south: Read;
    readonly west: Read;
    readonly east: Read;
  },
  { readonly rows: 'i32'; readonly columns: 'i32' }
> = task({
  name: 'stencil',
  flows: {
    ...{ to: write('f64'), middle: read('f64'), north: read('f64') },
    ...{ south: read('f64'), west: read('f64'), east: read('f64') },
  },
  params: { rows: 'i32', columns: 'i32' },
  kernel: 'stencil_2d_f64',
  gpuKernel: 'stencil_2d_f64',
});

/** The five-point stencil on a torus of tiles: every rank has as many tasks and messages as every other one. */
const torusGraph: ParameterisedGraph<{
  readonly matrices: Matrices;
  readonly steps: number;
}> = parameterised('torus', (graph, { matrices: [U, V], steps }) => {
  const { cell } = graph.declare({ cell: { runs: step, indices: ['t', 'i', 'j'] } });
  const [m, n] = [U.tileRows, U.tileColumns];
  const rows = () => range(0, m);
  const columns = () => range(0, n);
  const written = (t: number) => (t % 2 === 0 ? V : U);
  const old = (t: number, i: number, j: number) => {
    const [r, c] = [(i + m) % m, (j + n) % n];
    return t === 0 ? U.at(r, c) : cell.to({ t: t - 1, i: r, j: c });
  };
  const readers = (t: number, i: number, j: number) =>
    t < steps && [
      cell.middle({ t, i, j }),
      cell.north({ t, i: (i + 1) % m, j }),
      cell.south({ t, i: (i + m - 1) % m, j }),
      cell.west({ t, i, j: (j + 1) % n }),
      cell.east({ t, i, j: (j + n - 1) % n }),
    ];
  const own = {
    i: (_: object, rank: number) => U.ownRows(rank, rows()),
    j: (_: object, rank: number) => U.ownColumns(rank, columns()),
  };
  graph.inputs({
    ...{ indices: ['i', 'j'], ranges: { i: rows, j: columns }, own },
    on: ({ i, j }) => U.rankOf(i, j),
    datum: ({ i, j }) => U.at(i, j),
    to: ({ i, j }) => readers(0, i, j),
  });
  graph.define(cell, {
    ranges: { t: () => range(0, steps), i: rows, j: columns },
    starts: { t: () => range(0, 1) },
    order: ({ t, i, j }) => (t * m + i) * n + j,
    own,
    on: ({ i, j }) => U.rankOf(i, j),
    flows: {
      to: {
        datum: ({ t, i, j }) => written(t).at(i, j),
        from: ({ t, i, j }) => (t < 2 ? written(t).at(i, j) : cell.to({ t: t - 2, i, j })),
        to: ({ t, i, j }) => [
          readers(t + 1, i, j),
          t + 2 < steps ? cell.to({ t: t + 2, i, j }) : written(t).at(i, j),
        ],
      },
      middle: { from: ({ t, i, j }) => old(t, i, j) },
      north: { from: ({ t, i, j }) => old(t, i - 1, j) },
      south: { from: ({ t, i, j }) => old(t, i + 1, j) },
      west: { from: ({ t, i, j }) => old(t, i, j - 1) },
      east: { from: ({ t, i, j }) => old(t, i, j + 1) },
    },
    params: () => ({ rows: TILE, columns: TILE }),
  });
});

/** The same by insertion. */
function insertTorus(graph: Graph, [U, V]: Matrices, steps: number): void {
  const [m, n] = [U.tileRows, U.tileColumns];
  const isPruned = graph.skips();
  for (let t = 0; t < steps; t++) {
    const [from, to] = t % 2 === 0 ? [U, V] : [V, U];
    for (let i = 0; i < m; i++) {
      const [up, down] = [(i + m - 1) % m, (i + 1) % m];
      for (let j = 0; j < n; j++) {
        const [left, right] = [(j + n - 1) % n, (j + 1) % n];
        const at = (r: number, c: number): number => U.rankOf(r, c);
        if (isPruned && graph.skips(at(i, j), at(up, j), at(down, j), at(i, left), at(i, right)))
          continue;
        graph.insert(step, {
          ...{ to: to.at(i, j), middle: from.at(i, j), north: from.at(up, j) },
          ...{ south: from.at(down, j), west: from.at(i, left), east: from.at(i, right) },
          ...{ rows: TILE, columns: TILE },
        });
      }
    }
  }
}

/** Steps, and tiles of a side of the matrix on the most ranks. Every rank inserts all tasks of an unpruned run, so it has fewer. */
const SIZES = { parameterised: [1000, 400], pruned: [1000, 400], unpruned: [100, 128] } as const;

/** A program on one of its ranks, in a process of its own. */
interface Play {
  readonly program: 'stencil' | 'cholesky';
  readonly way: Way;
  readonly ranks: number;
  /** Tiles of a side of a matrix to factorise, and steps of a stencil, whose tiles follow from the number of ranks. */
  readonly tiles: number;
  readonly steps: number;
  readonly repeats: number;
  readonly window: number;
  /** Insertions before those that count: V8 compiles the code in them. */
  readonly warm: number;
}

interface Figures {
  /** Tasks of the rank, and those with its sends, receives and forwards. */
  readonly tasks: number;
  readonly rows: number;
  /** Median of the repetitions, seconds of processor time. */
  readonly seconds: number;
  /** The largest resident memory, MB. */
  readonly memory: number;
}

function matricesOf(runtime: Runtime, { program, ranks, tiles, steps }: Play): Matrices {
  if (program === 'stencil') {
    const size = { ranks, gpus: GPUS, n: undefined, tile: TILE, steps };
    const layout = torus.layout(size);
    return ['U', 'V'].map((name) => new TiledMatrix(runtime, 'f64', { ...layout, name }));
  }
  const rows = tiles * TILE;
  return [new TiledMatrix(runtime, 'f64', { rows, tile: TILE, lower: true, name: 'A' })];
}

/** The tiles get values; in a pruned run those of the rank. */
function insertValues(graph: Graph, matrices: Matrices): void {
  for (const m of matrices)
    for (let j = 0; j < m.tileColumns; j++)
      for (let i = m.lower ? j : 0; i < m.tileRows; i++)
        if (!graph.skips(m.rankOf(i, j))) graph.insert(init, { a: m.at(i, j) });
}

function insertAll(graph: Graph, { program, way, steps }: Play, m: Matrices): void {
  if (way !== 'parameterised') {
    if (program === 'stencil') insertTorus(graph, m, steps);
    else cholesky(graph, m[0]);
  } else if (program === 'stencil') torusGraph.insertInto(graph, { matrices: m, steps });
  else choleskyGraph.insertInto(graph, { A: m[0] });
}

/** One insertion of the program: tasks, rows, and processor time. */
function inserted(play: Play): readonly [number, number, number] {
  const { ranks, way, window } = play;
  // A rank in the middle of the grid.
  const side = Math.sqrt(ranks) >> 1;
  const port = new LonePort(side * Math.round(Math.sqrt(ranks)) + side, ranks);
  const machine = { ...presets['h200-8'], gpus: GPUS, workers: 1, lanes: 32 };
  const backend = new SimulatedBackend({ machine, world: new World(), story: false });
  const runtime = Runtime.over(backend, { workers: 1, window }, port);
  const matrices = matricesOf(runtime, play);
  let figures: readonly [number, number, number] = [0, 0, 0];
  const run = runtime.run(
    (graph) => {
      insertValues(graph, matrices);
      const { inserted: tasks, movements } = graph.state;
      const { next } = runtime.engine.tasks;
      const before = process.cpuUsage();
      insertAll(graph, play, matrices);
      const { user, system } = process.cpuUsage(before);
      const rows = runtime.engine.tasks.next - next;
      const moved = graph.state.movements - movements;
      figures = [graph.state.inserted - tasks - moved, rows, (user + system) / 1e6];
    },
    { pruned: way !== 'unpruned' },
  );
  // It never ends: nobody answers.
  run.done.catch((error: unknown) => {
    throw error;
  });
  return figures;
}

function played(play: Play): Figures {
  for (let n = 0; n < play.warm; n++) inserted(play);
  const all = Array.from({ length: play.repeats }, () => inserted(play));
  const [tasks, rows] = all[0];
  const memory = process.resourceUsage().maxRSS / 1024;
  return { tasks, rows, seconds: median(all.map(([, , seconds]) => seconds)), memory };
}

function inProcess(play: Play): Figures {
  const child = spawnSync(
    process.execPath,
    [fileURLToPath(import.meta.url), '--play', JSON.stringify(play)],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
  );
  if (child.status !== 0) throw new Error(`${JSON.stringify(play)} failed`);
  const figures = JSON.parse(child.stdout) as Figures;
  const { tasks, rows, seconds, memory } = figures;
  log(
    `${play.program}, ${play.way}, a rank of ${play.ranks}: ${tasks} tasks and ${rows - tasks} movements; for each ` +
      `${((seconds * 1e6) / rows).toFixed(2)} us, for a task with its movements ${((seconds * 1e6) / tasks).toFixed(2)} us; ${memory.toFixed(0)} MB`,
  );
  return figures;
}

/** The time of a task or movement among many ranks, and its ratio to that among few. */
function scaled(program: Play['program'], way: Way): BenchEntry[] {
  const [steps, most] = SIZES[way];
  const repeats = way === 'unpruned' ? 1 : REPEATS;
  const play = (ranks: number): Play => {
    // A rank has as many tasks among any number of ranks.
    const tiles = Math.round(most * (ranks / MOST) ** (1 / 3));
    return { program, way, ranks, tiles, steps, repeats, window: WINDOW, warm: WARM[way] };
  };
  const [few, many] = [inProcess(play(FEW)), inProcess(play(MOST))];
  const params = { from: FEW, to: MOST, gpus: GPUS, repeats, tasks: many.tasks };
  const name = `ptg/scale/${program}${way === 'parameterised' ? '' : `/${way}`}`;
  const [before, now] = [few.seconds / few.rows, many.seconds / many.rows];
  return [
    { name, value: now / before, unit: 'ratio', params },
    { name: `${name}/us`, value: now * 1e6, unit: 'us', params },
    {
      name: `${name}/us-with-movements`,
      value: (many.seconds / many.tasks) * 1e6,
      unit: 'us',
      params,
    },
  ];
}

/** A rank of a Cholesky factorisation of 22 million tasks, all of its tasks inserted at once. */
function large(): BenchEntry[] {
  const given = { ranks: 256, tiles: 512, steps: 0, repeats: 1, window: 2 ** 18, warm: 0 };
  const figures = inProcess({ program: 'cholesky', way: 'parameterised', ...given });
  const params = { ...given, gpus: GPUS, tasks: figures.tasks, rows: figures.rows };
  return [{ name: 'ptg/scale/cholesky/memory', value: figures.memory, unit: 'MB', params }];
}

/** What many ranks cost. */
export function parameterisedScale(): BenchEntry[] {
  const ways = ['parameterised', 'pruned', 'unpruned'] as const;
  return [
    ...(['stencil', 'cholesky'] as const).flatMap((program) =>
      ways.flatMap((way) => scaled(program, way)),
    ),
    ...large(),
  ];
}

const usage = `usage: node dist/bench/ptg-scale.js --play PLAY

Plays one rank among many, and prints what its tasks cost as JSON. \`npm run bench -- --only ptg\` runs it with all programs.

  --play PLAY    JSON: program (stencil or cholesky), way (parameterised, pruned or unpruned), ranks, tiles, steps, repeats,
                 window, warm
  --help         this text
`;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { play } = commandLine(usage, { play: { type: 'string' } });
  if (play === undefined) usageError(usage, '--play is missing');
  process.stdout.write(JSON.stringify(played(JSON.parse(play) as Play)));
  process.exit(0);
}
