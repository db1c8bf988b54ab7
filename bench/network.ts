// Data between ranks beside plain MPI of the same library in the same run: the cost of a dependency and of a large tile, and
// the METG(50 %) of a stencil over ranks (metg.ts) beside the stencil by hand (peers/mpi_stencil.cpp).
import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { packageRoot } from '../native/installation.js';
import { type BenchEntry, log, median } from './harness.js';
import { metg } from './metg.js';
import type { PairResult } from './network-pair.js';
import { type Timed, withMpiProgram } from './peer-programs.js';
import { type MpiPrograms, mpiLibraries, noLauncher, printedByRanks } from './ranks.js';

const REPEATS = 3;
const COLUMNS = 4;
/**
 * Kernel iterations per task, up to several milliseconds, and steps. Short tasks have at least 1000, as in Task Bench: then the begin
 * and the end of a run, which plain MPI does not have, take little of the time.
 */
const POINTS: readonly StencilPoint[] = [
  [4, 2000],
  [16, 2000],
  [64, 2000],
  [256, 2000],
  [1024, 2000],
  [4096, 1000],
  [16_384, 400],
  [65_536, 100],
  [262_144, 40],
  [1_048_576, 10],
].map(([iterations, steps]) => ({ iterations, steps }));

/** A point of the sweep. */
interface StencilPoint {
  readonly iterations: number;
  readonly steps: number;
}

/** Something of each program: inserted with default options, inserted and never played, played as a plan, and by hand. */
interface OfPrograms<T> {
  readonly headrace: T;
  readonly unrecognised: T;
  readonly played: T;
  readonly byHand: T;
}

/** Seconds of the points, repeat by repeat. */
type StencilTimes = OfPrograms<readonly (readonly number[])[]>;

const root = packageRoot();
const program = (name: string): string => path.join(root, 'dist', 'bench', name);

/** Entries of the ratios to plain MPI: of the times of a dependency, and of the rates of a large tile. */
export function pairEntries(
  repeats: readonly PairResult[],
  byHand: readonly StagedByHand[],
): BenchEntry[] {
  const [{ library }] = repeats;
  const params = { library, ranks: 2, repeats: repeats.length };
  const ratioEntry = (name: string, ratios: readonly number[]): BenchEntry => ({
    name: `network/${name}/ratio`,
    value: median(ratios),
    unit: 'ratio',
    params,
  });
  const entry = (name: string, ratio: (result: PairResult) => number): BenchEntry =>
    ratioEntry(name, repeats.map(ratio));
  return [
    entry('dependency', ({ small }) => small.oneWay.ratio),
    entry('dependency-behind-body', ({ small }) => small.behindBody.ratio),
    entry('dependency-inserted', ({ small }) => small.withInsertion.ratio),
    entry('dependency-again', ({ small }) => small.again.ratio),
    entry('dependency-unrecognised', ({ small }) => small.unrecognised.ratio),
    entry('dependency-played', ({ small }) => small.played.ratio),
    entry('direct', ({ large }) => large.direct.ratio),
    entry('staged', ({ large }) => large.staged.ratio),
    ratioEntry(
      'staged-by-hand',
      byHand.map(({ whole, staged }) => staged / whole),
    ),
  ];
}

interface Rated {
  /** Seconds. */
  readonly granularity: number;
  readonly efficiency: number;
}

/**
 * Granularities and efficiencies of the programs: granularity = elapsed x cores / tasks, and efficiency = rate / best rate,
 * where the best rate is the best one of all. Elapsed times are medians of the repeats.
 */
export function rated(
  points: readonly StencilPoint[],
  times: StencilTimes,
  width: number,
  cores: number,
): OfPrograms<Rated[]> {
  const measured = (repeats: readonly (readonly number[])[]) =>
    points.map(({ iterations, steps }, i) => {
      const tasks = steps * width;
      const granularity = (median(repeats.map((seconds) => seconds[i])) * cores) / tasks;
      return { granularity, rate: iterations / granularity };
    });
  const all = ofEach(times, measured);
  const { headrace, unrecognised, played, byHand } = all;
  const best = Math.max(
    ...[headrace, unrecognised, played, byHand].flatMap((each) => each.map(({ rate }) => rate)),
  );
  return ofEach(all, (each) =>
    each.map(({ granularity, rate }) => ({ granularity, efficiency: rate / best })),
  );
}

function ofEach<T, R>(
  { headrace, unrecognised, played, byHand }: OfPrograms<T>,
  make: (of: T) => R,
): OfPrograms<R> {
  return {
    headrace: make(headrace),
    unrecognised: make(unrecognised),
    played: make(played),
    byHand: make(byHand),
  };
}

/** Seconds of each point, by each program in turn. */
function timeStencils(ranks: number, launcher: string, byHand: string): StencilTimes {
  const words = POINTS.map(({ iterations, steps }) => `${iterations}x${steps}`);
  const headrace = [process.execPath, program('network-stencil.js')] as const;
  const handWords = [byHand, String(ranks), String(ranks * COLUMNS), ...words] as const;
  const times = {
    headrace: [] as number[][],
    unrecognised: [] as number[][],
    played: [] as number[][],
    byHand: [] as number[][],
  };
  for (let i = 0; i < REPEATS; i++) {
    const options = ['--columns', String(COLUMNS), '--points', words.join(',')];
    const timesOf = (...more: string[]): number[] =>
      JSON.parse(printedByRanks(ranks, [...headrace, ...options, ...more], launcher));
    times.headrace.push(timesOf());
    times.unrecognised.push(timesOf('--unrecognised'));
    times.played.push(timesOf('--played'));
    const timed = JSON.parse(printedByRanks(ranks, [...handWords], launcher)) as Timed[];
    times.byHand.push(timed.map(({ seconds }) => seconds));
  }
  return times;
}

function stencilEntries(ranks: number, library: string, times: StencilTimes): BenchEntry[] {
  const cores = Math.min(ranks, availableParallelism());
  const all = rated(POINTS, times, ranks * COLUMNS, cores);
  const us = (seconds: number): string => (seconds * 1e6).toFixed(2);
  const least = ofEach(all, metg);
  log(
    `network/stencil, ${ranks} ranks of ${library}: METG(50 %) ${us(least.headrace)} us, unrecognised ${us(least.unrecognised)} us, played ${us(least.played)} us, MPI by hand ${us(least.byHand)} us`,
  );
  for (const [i, { iterations }] of POINTS.entries()) {
    const shown = ofEach(all, (each) => {
      const { granularity, efficiency } = each[i];
      return `${us(granularity).padStart(9)} us ${(efficiency * 100).toFixed(1).padStart(5)} %`;
    });
    const words = `${shown.headrace}   unrecognised ${shown.unrecognised}   played ${shown.played}   by hand ${shown.byHand}`;
    log(`    ${String(iterations).padStart(7)} iterations  ${words}`);
  }
  const params = {
    library,
    ranks,
    workers: 1,
    columns: COLUMNS,
    cores,
    efficiency: 0.5,
    repeats: REPEATS,
  };
  const entry = (name: string, seconds: number): BenchEntry => ({
    name: `network/stencil/${name}`,
    value: seconds * 1e6,
    unit: 'us',
    params,
  });
  return [
    entry('metg', least.headrace),
    entry('unrecognised', least.unrecognised),
    entry('played', least.played),
    entry('mpi-by-hand', least.byHand),
  ];
}

/** Median and mean, in nanoseconds. */
interface Hop {
  readonly hop: string;
  readonly ns: number;
  readonly mean: number;
}

function logHops(library: string, hops: readonly Hop[]): void {
  log(`network/dependency, hop by hop, ${library}:`);
  const us = (ns: number): string => (ns / 1e3).toFixed(2).padStart(9);
  for (const { hop, ns, mean } of hops) log(`    ${us(ns)} us, mean ${us(mean)} us  ${hop}`);
}

/** What a program prints that starts ranks itself. */
function printed(name: string, args: readonly string[]): string {
  const words = [program(name), ...args];
  return execFileSync(process.execPath, words, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

function runPair(name: string, launcher: string): string {
  return printedByRanks(2, [process.execPath, program(name)], launcher);
}

/** Rates of the staged way by hand (peers/mpi_staged.cpp), in bytes per second. */
interface StagedByHand {
  readonly whole: number;
  readonly staged: number;
}

/** Times of a dependency and of a large tile, with one MPI library. */
function measurePair({ launcher, compiler }: MpiPrograms): BenchEntry[] {
  const pairs: PairResult[] = [];
  const byHand: StagedByHand[] = [];
  withMpiProgram('mpi_staged.cpp', compiler, (staged) => {
    for (let i = 0; i < REPEATS; i++) {
      pairs.push(JSON.parse(printed('network-pair.js', ['--launcher', launcher])));
      byHand.push(JSON.parse(printedByRanks(2, [staged], launcher)));
    }
  });
  const entries = pairEntries(pairs, byHand);
  const [{ library }] = pairs;
  for (const { name, value } of entries) log(`${name}: ${value.toFixed(2)} (${library})`);
  logHops(library, JSON.parse(runPair('network-hops.js', launcher)));
  return entries;
}

/** The stencils, with one MPI library. */
function measureStencils({ launcher, compiler }: MpiPrograms): BenchEntry[] {
  return withMpiProgram('mpi_stencil.cpp', compiler, (byHand) => {
    const library = runPair('network-library.js', launcher);
    return [2, 4].flatMap((ranks) =>
      stencilEntries(ranks, library, timeStencils(ranks, launcher, byHand)),
    );
  });
}

/** The entries of each MPI library of this machine; none without a library. */
function withEachLibrary(measure: (programs: MpiPrograms) => BenchEntry[]): BenchEntry[] {
  const libraries = mpiLibraries();
  if (libraries.length === 0) log(`network: ${noLauncher('mpirun').trim()}`);
  return libraries.flatMap(measure);
}

export function networkPairBenchmarks(): BenchEntry[] {
  return withEachLibrary(measurePair);
}

export function networkStencilBenchmarks(): BenchEntry[] {
  return withEachLibrary(measureStencils);
}
