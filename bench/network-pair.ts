// The cost of a dependency between two ranks, against a plain MPI ping-pong of the same library in the same run, and
// the time of a large tile between emulated GPUs by every way. Each figure has processes of its own: what a program before has left behind
// (code that V8 compiled for other shapes, a heap, threads) changes the next one's figure by half.
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Datum, Runtime, readWrite, type TaskGraph, task } from '../index.js';
import { launchOf } from '../native/launch.js';
import { loadMpi, startMpi } from '../native/mpi.js';
import { commandLine, usageError } from './command-line.js';
import { median, WARM_RUNS } from './harness.js';
import { type Holder, Relay } from './network-relay.js';
import { printedByRanks, shortName } from './ranks.js';

const SMALL = 8;
const LARGE = 16 * 2 ** 20;
/** Too large for an announcement, so it goes the way of a large tile. */
const WARM = 32_768;
const SMALL_STEPS = 2000;
const WARM_STEPS = 400;
/** Each turn measures plain MPI before and after every figure: the speed of two cores and of what lies between them changes. */
const TURNS = 3;
/** Measured runs of a turn, of short messages and of large tiles. */
const SMALL_REPEATS = 9;
const LARGE_REPEATS = 3;
/** Iterations of a play. */
const PLAYED = 10;
/** The processor of a virtual machine takes some 60 ms to come to its full speed. */
const LARGE_STEPS = 200;
/** Round trips of plain MPI. */
const RAW_SMALL = 20_000;
const RAW_LARGE = 100;

/** A figure, and its ratio to plain MPI of the same library: medians of the turns. */
export interface Compared {
  /** Seconds of a step, or bytes per second. */
  readonly value: number;
  readonly ratio: number;
}

/** Seconds of a step, and how many times that of plain MPI it is. */
type SmallFigure =
  | 'oneWay'
  /** The same, but none of its tasks can be issued on one rank before the clock starts. */
  | 'behindBody'
  /** With its insertion, by default options: a run that has come so often is played. */
  | 'withInsertion'
  /** The same, from the end of its insertion. */
  | 'again'
  /** With its insertion, and never played. */
  | 'unrecognised'
  /** Of a plan that is played. */
  | 'played';
/** Rates, and their shares of that of plain MPI. */
type LargeFigure = 'direct' | 'ipc' | 'staged';

/** What the program prints. */
export interface PairResult {
  readonly library: string;
  readonly small: Readonly<Record<SmallFigure, Compared>>;
  readonly large: Readonly<Record<LargeFigure, Compared>>;
}

/** How a figure is measured, after WARM_RUNS runs. */
const SMALL_FIGURES: Readonly<Record<SmallFigure, () => Promise<number>>> = {
  oneWay: () => oneWay('kernel'),
  behindBody: () => oneWay('body'),
  withInsertion: () => chain('auto', 'whole'),
  again: () => chain('auto', 'inserted'),
  unrecognised: () => chain('off', 'whole'),
  played,
};
const LARGE_FIGURES: Readonly<Record<LargeFigure, () => Promise<number>>> = {
  direct: () => rateOf('direct'),
  ipc: () => rateOf('ipc'),
  staged: () => rateOf('staged'),
};

const FIGURES = { ...SMALL_FIGURES, ...LARGE_FIGURES };

/** What the processes of one figure print. */
interface FigureResult extends Compared {
  readonly library: string;
  /** Plain MPI: seconds of one way, or bytes per second. */
  readonly raw: number;
}

const { rank, size } = launchOf();

/** Measures a figure, and plain MPI before and after it, turn by turn. */
async function measure(figure: string): Promise<void> {
  const addon = loadMpi();
  const { library } = await startMpi(addon);
  const isSmall = Object.hasOwn(SMALL_FIGURES, figure);
  const take = FIGURES[figure as SmallFigure | LargeFigure];
  const plain = async (): Promise<number> =>
    isSmall
      ? await addon.measure(SMALL, RAW_SMALL, 'host')
      : LARGE / (await addon.measure(LARGE, RAW_LARGE, 'emulated'));
  const raw: number[] = [];
  const values: number[] = [];
  const ratios: number[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    const before = await plain();
    const value = await take();
    const after = await plain();
    raw.push(before, after);
    values.push(value);
    ratios.push(value / ((before + after) / 2));
  }
  const result: FigureResult = {
    library: shortName(library),
    raw: median(raw),
    value: median(values),
    ratio: median(ratios),
  };
  if (rank === 0) process.stdout.write(`${JSON.stringify(result)}\n`);
}

/** What the two ranks of a figure run. */
function commandFor(figure: string): [string, ...string[]] {
  return [process.execPath, fileURLToPath(import.meta.url), '--figure', figure];
}

/** Starts the processes of each figure in turn. */
function measureAll(launcher: string): PairResult & Record<string, unknown> {
  const results: FigureResult[] = [];
  const of = <F extends string>(figures: Readonly<Record<F, unknown>>): Record<F, Compared> => {
    const entries = Object.keys(figures).map((figure) => {
      const text = printedByRanks(2, commandFor(figure), launcher);
      const result: FigureResult = JSON.parse(text);
      results.push(result);
      return [figure, { value: result.value, ratio: result.ratio }];
    });
    return Object.fromEntries(entries);
  };
  const small = of(SMALL_FIGURES);
  const ofSmall = results.length;
  const large = of(LARGE_FIGURES);
  const raws = results.map(({ raw }) => raw);
  return {
    library: results[0].library,
    cores: availableParallelism(),
    turns: TURNS,
    rawSeconds: median(raws.slice(0, ofSmall)),
    rawBytesPerSecond: median(raws.slice(ofSmall)),
    small,
    large,
  };
}

const pass = task({ name: 'pass', flows: { x: readWrite('f64') }, kernel: 'empty' });

/** The steps, taken in turn on the two ranks. */
function steps(x: Datum<'f64'>): (graph: TaskGraph) => void {
  return (graph) => {
    for (let i = 0; i < SMALL_STEPS; i++) graph.insert(pass, { x }, { rank: i & 1 });
  };
}

/** A token goes back and forth between two ranks: each step is one dependency on the other rank. Seconds of a step. */
async function oneWay(holder: Holder): Promise<number> {
  const runtime = await Runtime.create({ workers: 1, gpus: 0 });
  const relay = new Relay(runtime, SMALL, holder);
  await relay.run(SMALL_STEPS, WARM_RUNS);
  const seconds = await relay.run(SMALL_STEPS, SMALL_REPEATS);
  await runtime.close();
  return seconds;
}

/** Seconds of a step of a whole run, or from the end of its insertion. With 'auto' the runs are played in the end. */
async function chain(plans: 'auto' | 'off', from: 'whole' | 'inserted'): Promise<number> {
  const runtime = await Runtime.create({ workers: 1, gpus: 0, plans });
  const x = runtime.data(new Float64Array(SMALL / 8), { rank: 0 });
  const seconds: number[] = [];
  for (let repeat = -WARM_RUNS; repeat < SMALL_REPEATS; repeat++) {
    let inserted = 0;
    const report = await runtime.run((graph) => {
      steps(x)(graph);
      inserted = performance.now();
    });
    const after = (performance.now() - inserted) / 1e3;
    if (repeat >= 0) seconds.push(from === 'whole' ? report.seconds : after);
  }
  await runtime.close();
  return median(seconds) / SMALL_STEPS;
}

/** Seconds of a step of a plan that is played. */
async function played(): Promise<number> {
  const runtime = await Runtime.create({ workers: 1, gpus: 0 });
  const x = runtime.data(new Float64Array(SMALL / 8), { rank: 0 });
  const plan = await runtime.plan(steps(x));
  await plan.run({ times: WARM_RUNS });
  const { seconds } = await plan.run({ times: PLAYED });
  await runtime.close();
  return seconds / (PLAYED * SMALL_STEPS);
}

/** A tile of 16 MiB goes back and forth between emulated GPUs; each step is a task without work. Bytes per second. */
async function rateOf(comm: 'direct' | 'ipc' | 'staged'): Promise<number> {
  const runtime = await Runtime.create({
    workers: 1,
    gpus: 1,
    gpuMemory: '256MiB',
    hostMemory: '512MiB',
    comm,
  });
  // Compiles all code on the way.
  await new Relay(runtime, WARM).run(WARM_STEPS, WARM_RUNS);
  const seconds = await new Relay(runtime, LARGE).run(LARGE_STEPS, LARGE_REPEATS);
  await runtime.close();
  return LARGE / seconds;
}

function printedHere(figure: string | undefined, launcher: string): string {
  return figure === undefined
    ? `${JSON.stringify(measureAll(launcher))}\n`
    : printedByRanks(2, commandFor(figure), launcher);
}

const usage = `usage: node dist/bench/network-pair.js [options]

What a dependency and a large tile cost between two ranks; one JSON object. It starts two processes under mpirun for each figure.

  --figure NAME         what the two ranks measure: ${Object.keys(FIGURES).join(', ')} (all, one after the other)
  --launcher PROGRAM    what starts the ranks (mpirun)
  --help                this text
`;
const { figure, launcher } = commandLine(usage, {
  figure: { type: 'string' },
  launcher: { type: 'string', default: 'mpirun' },
});
if (figure !== undefined && !Object.hasOwn(FIGURES, figure))
  usageError(usage, `--figure: ${figure}`);
if (size > 1 && (size !== 2 || figure === undefined))
  usageError(usage, `${size} ranks: it starts its ranks itself, or two measure one figure`);
if (size === 2 && figure !== undefined) await measure(figure);
else {
  try {
    process.stdout.write(printedHere(figure, launcher));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
