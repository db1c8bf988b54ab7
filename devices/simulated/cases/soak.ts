// Plays random cases, one after the other, for a time or a number of seeds, and adds up the results.
import { setImmediate } from 'node:timers/promises';
import { type CaseOptions, randomCase, type SimulatedCase } from './case.js';
import { oracleCase } from './oracle-cases.js';
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
  readonly violations: number;
  /** The first few cases with a violation. */
  readonly failures: readonly { readonly case: SimulatedCase; readonly played: Played }[];
}

const KEPT = 5;
/** One of so many cases on several ranks has no lanes. */
const LANES_OFF = 4;
/** Milliseconds between turns of the event loop, which serves signals. */
const TURN = 100;

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
    violations: 0,
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
    const oracle = options.oracles === true ? oracleCase(seed) : undefined;
    const mixed = options.mixed === true && i % 3 > 0;
    const lanes = i % LANES_OFF > 0;
    const c = oracle?.case ?? randomCase(seed, { lanes, ...options.cases, mixed, faults });
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
  return { ...sum, seconds: elapsed, seedsPerSecond: sum.seeds / elapsed, outcomes, failures };
}
