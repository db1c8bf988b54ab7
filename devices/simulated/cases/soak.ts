// Plays random cases, one after the other, for a time or a number of seeds, and adds up the results.
import { setImmediate } from 'node:timers/promises';
import { type CaseOptions, randomCase, type SimulatedCase } from './case.js';
import { playFrontEnd } from './front-end-cases.js';
import { oracleCase } from './oracle-cases.js';
import { planProblem } from './plan-cases.js';
import { PlanProgram } from './plan-programs.js';
import { type Played, play } from './play.js';

interface SoakOptions {
  readonly firstSeed: number;
  /** Stop after that many seeds ... */
  readonly seeds?: number;
  /** ... or that many seconds. */
  readonly seconds?: number;
  readonly cases?: CaseOptions;
  /** The programs of the oracles instead of random ones. */
  readonly oracles?: boolean;
  /** Programs that are planned and played (plan-cases.ts): one besides every fourth case, or nothing else. */
  readonly plans?: 'also' | 'only';
  /** Programs of the public interface (front-end-cases.ts): one besides every second case, or nothing else. */
  readonly frontEnd?: 'also' | 'only';
  /** Two of three cases are programs of several runs (mixed-programs.ts). */
  readonly mixed?: boolean;
  /** Every n-th case gets faults; 0: none does. */
  readonly faultsEvery?: number;
  /** Stop at the first violation. */
  readonly stopAtFirst?: boolean;
  /** Stop before the next case. The event loop turns several times a second. */
  readonly signal?: AbortSignal;
  /** Called after every case. */
  readonly played?: (cases: number, seconds: number) => void;
}

interface SoakResult {
  readonly seeds: number;
  readonly seconds: number;
  readonly seedsPerSecond: number;
  readonly tasks: number;
  readonly events: number;
  readonly checks: number;
  readonly evictions: number;
  readonly spills: number;
  readonly messages: number;
  readonly transfers: number;
  readonly faultsInjected: number;
  /** Runs by outcome: 'ok' or the code of the error. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Programs that were planned and played, with and without delays. */
  readonly plans: number;
  /** The tasks of their iterations. */
  readonly plannedTasks: number;
  /** Programs of the public interface, and how often each kind of step occurred in them. */
  readonly frontEnd: number;
  readonly frontEndKinds: Readonly<Record<string, number>>;
  readonly violations: number;
  /** The first few programs that gave something else played, and by seed what. */
  readonly planFailures: readonly { readonly seed: number; readonly problem: string }[];
  /** The same of programs of the public interface that went wrong. */
  readonly frontEndFailures: readonly { readonly seed: number; readonly problem: string }[];
  /** The first few cases with a violation. */
  readonly failures: readonly { readonly case: SimulatedCase; readonly played: Played }[];
}

const KEPT = 5;
/** One of so many cases on several ranks may announce small versions, too. */
const ANNOUNCED_EVERY = 4;
/** The tasks of one of so many cases pull. */
const PULLS_EVERY = 5;
/** A program is planned and played besides one of so many cases. */
const PLANS_EVERY = 4;
/** A program of the public interface is played besides one of so many cases. */
const FRONT_END_EVERY = 2;
/** And one that repeats its runs on several ranks, besides one of so many. */
const REPEATS_ON_RANKS_EVERY = 8;
/** Milliseconds between turns of the event loop, which serves signals. */
const TURN = 100;

/** Plans and plays the program of a seed, without delays and with them; returns what is wrong, '' if nothing is. */
async function playPlan(
  seed: number,
  sum: { plans: number; plannedTasks: number; violations: number },
): Promise<string> {
  const program = new PlanProgram(seed);
  const problem = (await planProblem(program)) || (await planProblem(program, seed));
  sum.plans++;
  sum.plannedTasks += program.tasks;
  if (problem !== '') sum.violations++;
  return problem;
}

interface Problem {
  readonly seed: number;
  readonly problem: string;
}

interface BesideSums {
  plans: number;
  plannedTasks: number;
  frontEnd: number;
  violations: number;
  readonly frontEndKinds: Record<string, number>;
  readonly planFailures: Problem[];
  readonly frontEndFailures: Problem[];
}

/** Plays a program of the public interface of a seed, or one that repeats on several ranks; returns what is wrong, '' if nothing is. */
async function playFront(seed: number, sum: BesideSums, onRanks = false): Promise<string> {
  const { problem, kinds } = await playFrontEnd(seed, onRanks);
  sum.frontEnd++;
  for (const [kind, n] of Object.entries(kinds))
    sum.frontEndKinds[kind] = (sum.frontEndKinds[kind] ?? 0) + n;
  if (problem === '') return '';
  sum.violations++;
  return onRanks ? `repeated on several ranks: ${problem}` : problem;
}

/** Plays the programs besides case number `i`, as the options have it. True if one of them was wrong. */
async function playBeside(options: SoakOptions, i: number, sum: BesideSums): Promise<boolean> {
  const seed = options.firstSeed + i;
  const { plans, frontEnd } = options;
  let isWrong = false;
  const note = (problem: string, failures: Problem[]): void => {
    if (problem === '') return;
    isWrong = true;
    if (failures.length < KEPT) failures.push({ seed, problem });
  };
  if (plans === 'only' || (plans === 'also' && i % PLANS_EVERY === 0))
    note(await playPlan(seed, sum), sum.planFailures);
  if (frontEnd === 'only' || (frontEnd === 'also' && i % FRONT_END_EVERY === 0))
    note(await playFront(seed, sum), sum.frontEndFailures);
  // By seed, so that `--front-end --first SEED --cases 1` plays it, too.
  if (frontEnd !== undefined && seed % REPEATS_ON_RANKS_EVERY === 0)
    note(await playFront(seed, sum, true), sum.frontEndFailures);
  return isWrong;
}

export async function soak(options: SoakOptions): Promise<SoakResult> {
  const begin = performance.now();
  const {
    firstSeed,
    seeds = Number.POSITIVE_INFINITY,
    seconds = Number.POSITIVE_INFINITY,
  } = options;
  const sum = {
    seeds: 0,
    tasks: 0,
    events: 0,
    checks: 0,
    evictions: 0,
    spills: 0,
    messages: 0,
    transfers: 0,
    faultsInjected: 0,
    plans: 0,
    plannedTasks: 0,
    frontEnd: 0,
    violations: 0,
    frontEndKinds: {} as Record<string, number>,
    planFailures: [] as Problem[],
    frontEndFailures: [] as Problem[],
  };
  const outcomes: Record<string, number> = {};
  const failures: { case: SimulatedCase; played: Played }[] = [];
  const every = options.faultsEvery ?? 0;
  const isOver = (): boolean =>
    (performance.now() - begin) / 1000 >= seconds || options.signal?.aborted === true;
  let turned = begin;
  for (let i = 0; i < seeds && !isOver(); i++) {
    if (performance.now() - turned > TURN) {
      await setImmediate();
      turned = performance.now();
      if (isOver()) break;
    }
    const faults = every > 0 && i % every === every - 1;
    const seed = firstSeed + i;
    const isWrong = await playBeside(options, i, sum);
    if (isWrong && options.stopAtFirst === true) break;
    if (options.plans === 'only' || options.frontEnd === 'only') {
      options.played?.(++sum.seeds, (performance.now() - begin) / 1000);
      continue;
    }
    const oracle = options.oracles === true ? oracleCase(seed) : undefined;
    const mixed = options.mixed === true && i % 3 > 0;
    const announced = i % ANNOUNCED_EVERY === 0;
    const pulls = seed % PULLS_EVERY === 0;
    const c =
      oracle?.case ?? randomCase(seed, { announced, pulls, ...options.cases, mixed, faults });
    const result = await play(c);
    const played =
      oracle?.mustEvict === true && result.evictions === 0
        ? { ...result, problems: [`${oracle.name}: nothing was evicted`, ...result.problems] }
        : result;
    sum.seeds++;
    sum.tasks += played.tasks;
    sum.events += played.events;
    sum.checks += played.checks;
    sum.evictions += played.evictions;
    sum.spills += played.spills;
    sum.messages += played.messages;
    sum.transfers += played.transfers;
    sum.faultsInjected += played.injected;
    const outcome = played.outcome === '' ? 'ok' : played.outcome;
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    if (played.problems.length > 0) {
      sum.violations++;
      if (failures.length < KEPT) failures.push({ case: c, played });
      if (options.stopAtFirst === true) break;
    }
    options.played?.(sum.seeds, (performance.now() - begin) / 1000);
  }
  const elapsed = (performance.now() - begin) / 1000;
  const seedsPerSecond = sum.seeds / elapsed;
  return { ...sum, seconds: elapsed, seedsPerSecond, outcomes, failures };
}
