// What ranks cost as their number grows: time of a processor per task, and memory, of simulated programs on 4 to 1024
// ranks with 8 GPUs each. The engines and the code between ranks are those of production; one process plays all.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { openRanks } from '../cli/simulation/open.js';
import { type Program, type ProgramSize, programs, torus } from '../cli/simulation/programs.js';
import { Together } from '../cli/simulation/together.js';
import { presets } from '../devices/simulated/machine/presets.js';
import { commandLine, positive } from './command-line.js';
import { type BenchEntry, log, median } from './harness.js';

const GPUS = 8;
const RANKS = [4, 16, 64, 256, 1024];
/** Each rank computes the same in a stencil on a torus, on any number of ranks from 4 on. */
const PROGRAMS: Readonly<Record<string, Program>> = { torus, ...programs };
/** Ranks times steps of a measurement: so many that a rank's code is compiled, on few ranks and on many. */
const RANK_STEPS = 10_240;
const REPEATS = 3;

/** One program, played in a process of its own. */
interface Play {
  readonly program: string;
  readonly size: ProgramSize;
}

interface Figures {
  /** Tasks of the program on all ranks. */
  readonly tasks: number;
  /** Tasks of all engines: those of the program, and its sends, receives and forwards. */
  readonly rows: number;
  /** Seconds of processors from the first insertion to the end of the run. */
  readonly seconds: number;
  /** The same of the whole process. */
  readonly total: number;
  /** Seconds on the clock of the whole process. */
  readonly elapsed: number;
  /** The largest resident memory, MB. */
  readonly memory: number;
}

function processorSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

async function played({ program: name, size }: Play): Promise<Figures> {
  const begin = performance.now();
  const program = PROGRAMS[name];
  const { runtimes } = openRanks({ ...presets['h200-8'], gpus: size.gpus }, size.ranks);
  const together = new Together(runtimes);
  const matrices = await together.make(program, program.layout(size));
  const before = processorSeconds();
  const rowsBefore = runtimes.map((runtime) => runtime.engine.tasks.next);
  const reports = await together.run((graph) => program.insert(graph, matrices, size.steps));
  const seconds = processorSeconds() - before;
  const sum = (of: (n: number) => number): number =>
    reports.reduce((total, _, rank) => total + of(rank), 0);
  const tasks = sum((rank) => reports[rank].tasks);
  const rows = sum((rank) => runtimes[rank].engine.tasks.next - rowsBefore[rank]);
  await Promise.all(runtimes.map((runtime) => runtime.close()));
  return {
    tasks,
    rows,
    seconds,
    total: processorSeconds(),
    elapsed: (performance.now() - begin) / 1000,
    memory: process.resourceUsage().maxRSS / 1024,
  };
}

function inProcess(play: Play): Figures {
  const file = fileURLToPath(import.meta.url);
  const child = spawnSync(process.execPath, [file, '--play', JSON.stringify(play)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (child.status !== 0) throw new Error(`${play.program} on ${play.size.ranks} ranks failed`);
  return JSON.parse(child.stdout) as Figures;
}

function sizeOf(ranks: number, steps: number, tiles?: number): ProgramSize {
  const tile = 2048;
  return { ranks, gpus: GPUS, n: tiles === undefined ? undefined : tiles * tile, tile, steps };
}

function report(what: string, { tasks, rows, seconds, total, memory, elapsed }: Figures): void {
  log(
    `${what}: ${tasks} tasks, ${((seconds / rows) * 1e6).toFixed(1)} us for each task and movement, ${total.toFixed(1)} s of processor time, ${elapsed.toFixed(1)} s, ${memory.toFixed(0)} MB`,
  );
}

/**
 * The time of a task among few ranks and among many, with the same work on every rank. Movements count as tasks: with more
 * than four ranks every receive has a forward beside it, because a tree might go through its rank.
 */
function flatness(ranks: readonly number[]): BenchEntry[] {
  const times: Map<number, number[]> = new Map(ranks.map((n) => [n, []]));
  const memory: Map<number, number> = new Map();
  // In turn, because the speed of a virtual machine changes.
  for (let i = 0; i < REPEATS; i++) {
    for (const n of ranks) {
      const figures = inProcess({ program: 'torus', size: sizeOf(n, RANK_STEPS / n) });
      report(`torus on ${n} ranks`, figures);
      times.get(n)?.push((figures.seconds / figures.rows) * 1e6);
      memory.set(n, Math.max(memory.get(n) ?? 0, figures.memory));
    }
  }
  const entries: BenchEntry[] = [];
  const medians = ranks.map((n) => median(times.get(n) ?? []));
  ranks.forEach((n, i) => {
    const params = { gpus: GPUS, steps: RANK_STEPS / n };
    entries.push(
      { name: `scale/torus/${n}/us-per-task`, value: medians[i], unit: 'us', params },
      { name: `scale/torus/${n}/memory`, value: memory.get(n) ?? 0, unit: 'MB', params },
    );
  });
  const params = { from: ranks[0], to: ranks[ranks.length - 1] };
  const value = medians[medians.length - 1] / medians[0];
  entries.push({ name: 'scale/torus/flatness', value, unit: 'ratio', params });
  return entries;
}

/** A whole program on the largest number of ranks. */
function whole(program: string, size: ProgramSize): BenchEntry[] {
  const figures = inProcess({ program, size });
  report(`${program} on ${size.ranks} ranks`, figures);
  const params = { ranks: size.ranks, gpus: GPUS, tasks: figures.tasks };
  const name = `scale/${program}/${size.ranks}`;
  return [
    {
      name: `${name}/us-per-task`,
      value: (figures.seconds / figures.rows) * 1e6,
      unit: 'us',
      params,
    },
    { name: `${name}/elapsed`, value: figures.elapsed, unit: 's', params },
    { name: `${name}/memory`, value: figures.memory, unit: 'MB', params },
  ];
}

/** What 4 to `most` ranks cost. */
export function scaleBenchmarks(most: number = RANKS[RANKS.length - 1]): BenchEntry[] {
  return [
    ...flatness(RANKS.filter((n) => n <= most)),
    ...whole('stencil', sizeOf(most, 100)),
    ...whole('cholesky', sizeOf(most, 1, 128)),
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const usage = `usage: node dist/bench/scale.js [options]

Simulated programs on 4 to 1024 ranks with 8 GPUs each; a JSON array of entries.

  --most N       the largest number of ranks (1024)
  --play JSON    one program: { "program": ..., "size": { "ranks", "gpus", "n", "tile", "steps" } }
  --help         this text
`;
  const values = commandLine(usage, {
    most: { type: 'string', default: '1024' },
    play: { type: 'string' },
  });
  const result =
    values.play === undefined
      ? scaleBenchmarks(positive(usage, 'most', values.most))
      : await played(JSON.parse(values.play) as Play);
  process.stdout.write(`${JSON.stringify(result, null, 1)}\n`);
}
