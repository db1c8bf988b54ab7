// What ranks cost as their number grows: time of a processor per task, and memory, of simulated programs on 4 to 1024
// ranks with 8 GPUs each. The engines and the code between ranks are those of production; one process plays all.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { openRanks } from '../cli/simulation/open.js';
import { type Program, type ProgramSize, programs, torus } from '../cli/simulation/programs.js';
import { Together } from '../cli/simulation/together.js';
import { presets } from '../devices/simulated/machine/presets.js';
import type { RunReport, TiledMatrix } from '../scheduler/index.js';
import { commandLine, positive } from './command-line.js';
import { type BenchEntry, log, median } from './harness.js';
import { profiled, type TimeShares } from './time-shares.js';

const GPUS = 8;
const RANKS = [4, 16, 64, 256, 1024];
/** Each rank computes the same in a stencil on a torus, on any number of ranks from 4 on. */
const PROGRAMS: Readonly<Record<string, Program>> = { torus, ...programs };
/** Ranks times steps of a measurement. */
const RANK_STEPS = 10_240;
const REPEATS = 3;

/** One program, or several at the same time that know nothing of each other, played in a process of their own. */
interface Play {
  readonly program: string;
  readonly size: ProgramSize;
  /** Number of programs, each with the ranks of `size`; default 1. */
  readonly programs?: number;
  /** A run like the one that is measured comes before it: all code is compiled, and every rank has the data that it uses. */
  readonly warm?: boolean;
}

interface Figures {
  /** Tasks of the programs on all ranks. */
  readonly tasks: number;
  /** Tasks of all engines: those of the program, and its sends, receives and forwards. */
  readonly rows: number;
  /** Seconds of processors from the first insertion to the end of the run. */
  readonly seconds: number;
  /** The parts of them in the engines, in the simulated machines, and in the collection of garbage. */
  readonly shares: TimeShares;
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

async function played(play: Play): Promise<Figures> {
  const { program: name, size, programs: count = 1, warm = false } = play;
  const begin = performance.now();
  const program = PROGRAMS[name];
  const machine = { ...presets['h200-8'], gpus: size.gpus };
  const plays = Array.from({ length: count }, () => {
    const { runtimes } = openRanks(machine, size.ranks, undefined, count * size.ranks);
    return { runtimes, together: new Together(runtimes) };
  });
  const matrices: TiledMatrix<'f64'>[][] = [];
  for (const { together } of plays)
    matrices.push(await together.make(program, program.layout(size)));
  const runtimes = plays.flatMap((play) => play.runtimes);
  const run = (): Promise<RunReport[][]> =>
    Promise.all(
      plays.map(({ together }, i) =>
        together.run((graph) => program.insert(graph, matrices[i], size.steps)),
      ),
    );
  if (warm) await run();
  const before = processorSeconds();
  const rowsBefore = runtimes.map((runtime) => runtime.engine.tasks.next);
  const { result, shares } = await profiled(run);
  const seconds = processorSeconds() - before;
  const reports = result.flat();
  const sum = (of: (n: number) => number): number =>
    reports.reduce((total, _, rank) => total + of(rank), 0);
  const tasks = sum((rank) => reports[rank].tasks);
  const rows = sum((rank) => runtimes[rank].engine.tasks.next - rowsBefore[rank]);
  await Promise.all(runtimes.map((runtime) => runtime.close()));
  return {
    tasks,
    rows,
    seconds,
    shares,
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

function report(what: string, figures: Figures): void {
  const { tasks, rows, seconds, shares, total, memory, elapsed } = figures;
  const us = (part: number, of: number): string => `${((seconds * part * 1e6) / of).toFixed(1)} us`;
  log(
    `${what}: ${tasks} tasks and ${rows - tasks} movements; for each ${us(1, rows)} (engine ${us(shares.engine, rows)}, simulation ` +
      `${us(shares.simulation, rows)}, garbage ${us(shares.garbage, rows)}), for a task with its movements ${us(1, tasks)}; ` +
      `${total.toFixed(1)} s of processor time, ${elapsed.toFixed(1)} s, ${memory.toFixed(0)} MB`,
  );
}

/** Repeated measurements of one play. */
class Repeated {
  readonly name: string;
  private readonly play: Play;
  private readonly all: Figures[] = [];

  constructor(name: string, play: Play) {
    this.name = name;
    this.play = play;
  }

  measure(): void {
    const { name, play, all } = this;
    const figures = inProcess(play);
    report(name, figures);
    all.push(figures);
  }

  private entry(what: string, unit: string, of: (figures: Figures) => number): BenchEntry {
    const { size, programs: count = 1 } = this.play;
    const params = { gpus: GPUS, steps: size.steps, programs: count };
    return { name: `scale/${this.name}/${what}`, value: median(this.all.map(of)), unit, params };
  }

  entries(): BenchEntry[] {
    return [
      this.entry('us-per-task', 'us', ({ seconds, rows }) => (seconds / rows) * 1e6),
      this.engine,
      this.entry('memory', 'MB', ({ memory }) => memory),
    ];
  }

  /** Time of the engine for a task or movement. */
  get engine(): BenchEntry {
    return this.entry(
      'engine-us-per-task',
      'us',
      ({ seconds, shares, rows }) => ((seconds * shares.engine) / rows) * 1e6,
    );
  }
}

/**
 * The time of a task among few ranks and among many, with the same work on every rank. Movements count as tasks: with more
 * than four ranks a receive without a lane has a forward beside it, because a tree might go through its rank.
 *
 * The ranks of a simulation share the caches of a processor, which the ranks of a machine do not. So the many ranks of
 * one program are compared with as many ranks of many programs on few ranks, in one process, too.
 */
function flatness(ranks: readonly number[]): BenchEntry[] {
  const [few, most] = [ranks[0], ranks[ranks.length - 1]];
  const play = (n: number, steps: number, count: number): Play => {
    return { program: 'torus', size: sizeOf(n, steps), programs: count, warm: true };
  };
  const alone = ranks.map((n) => new Repeated(`torus/${n}`, play(n, RANK_STEPS / n, 1)));
  const count = most / few;
  const name = `torus/${few}x${count}`;
  const together = new Repeated(name, play(few, RANK_STEPS / most, count));
  const all = [...alone, together];
  // In turn, because the speed of a virtual machine changes.
  for (let i = 0; i < REPEATS; i++) for (const each of all) each.measure();
  const value = alone[alone.length - 1].engine.value / together.engine.value;
  const params = { from: few, to: most };
  return [
    ...all.flatMap((each) => each.entries()),
    { name: 'scale/torus/flatness', value, unit: 'ratio', params },
  ];
}

/** A whole program on the largest number of ranks. */
function whole(program: string, size: ProgramSize): BenchEntry[] {
  const figures = inProcess({ program, size });
  report(`${program} on ${size.ranks} ranks`, figures);
  const params = { ranks: size.ranks, gpus: GPUS, tasks: figures.tasks };
  const perTask = (figures.seconds / figures.rows) * 1e6;
  const name = `scale/${program}/${size.ranks}`;
  return [
    { name: `${name}/us-per-task`, value: perTask, unit: 'us', params },
    {
      name: `${name}/engine-us-per-task`,
      value: perTask * figures.shares.engine,
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
  --play JSON    { "program", "size": { "ranks", "gpus", "n", "tile", "steps" }, "programs": how many at once, "warm": true }
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
