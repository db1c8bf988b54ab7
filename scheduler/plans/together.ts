// Plays on several ranks. All ranks play their parts of a plan in one run: it begins, fails and ends on all of them. A failure
// on one rank cancels the parts of the others between two commands.
//
// Before a play, the run brings each datum to the ranks that read it at the begin of an iteration, unless they have it. The play waits for
// these movements, as for all tasks before it. Afterwards all ranks know where it leaves the data.
import { guards } from '../../devices/guards.js';
import { HOST } from '../../devices/handles.js';
import { laneEra, MAX_RANKS } from '../../devices/network/keys.js';
import type { RunState } from '../engine/run-state.js';
import type { Graph, GraphRuntime } from '../program/graph.js';
import type { Ranks } from '../ranks/ranks.js';
import type { MessageFacts } from './messages.js';
import type { OpenSlot } from './open-slots.js';
import type { PlayCondition } from './play.js';
import type { WholePlan } from './whole-plan.js';

/** The runtime that plays. */
export interface PlayingRuntime extends GraphRuntime {
  run(
    program: (graph: Graph) => PromiseLike<void>,
    options: { readonly name: string; readonly signal?: AbortSignal },
  ): PromiseLike<unknown>;
}

/** What a plan of several ranks knows besides the part of its own. */
export interface Together {
  readonly runtime: PlayingRuntime;
  readonly peers: Ranks;
  readonly messages: MessageFacts;
  readonly whole: WholePlan;
  /** Readers from which on a version goes along a tree. */
  readonly treeFrom: number;
  /** The open parameters of all ranks. */
  readonly slots: ReadonlyMap<string, OpenSlot>;
}

/** Plays, and iterations of a play, whose messages have eras of their own: far more than can be under way. */
const PLAYS = 2 ** 8;
const ITERATIONS = 2 ** 16;

/** Name of the run of a play, and what the play is. */
interface PlayedRun {
  readonly name: string;
  readonly signal: AbortSignal | undefined;
  readonly times: number;
  readonly condition: PlayCondition | undefined;
}

/**
 * Runs `play` as part of a run of all ranks. `eraOf`: the era of the messages of an iteration. Resolves with the iterations that
 * `play` has played. Rejects with the error of the play, or with that of another rank.
 */
export async function runTogether(
  { runtime, peers, messages }: Together,
  { name, signal, times, condition }: PlayedRun,
  play: (run: RunState, eraOf: (iteration: number) => number) => Promise<number>,
): Promise<number> {
  let iterations = 0;
  const program = async (graph: Graph): Promise<void> => {
    const run = graph.state;
    // Ranks that play differently would wait for each other for ever.
    if (guards.planSameLook)
      peers.runs.graphs.does(run, textOf(name, times, condition), wordsOf(peers, times, condition));
    // Without an iteration all data stay where they are.
    if (times === 0) return;
    iterations = await play(run, beginTogether({ peers, messages }, run));
  };
  await runtime.run(program, signal === undefined ? { name } : { name, signal });
  return iterations;
}

/**
 * All ranks play in run `run`: brings the data to the ranks that read them first. Returns the era of the messages of an iteration.
 * If that fails the run, its play fails before its first command, and so leaves what it should have written without a value.
 */
export function beginTogether(
  { peers, messages }: Pick<Together, 'peers' | 'messages'>,
  run: RunState,
): (iteration: number) => number {
  bringData(peers, messages, run);
  leaveData(peers, messages);
  // Between the eras of the tasks of this era and of the next one (devices/network/keys.ts).
  const before = laneEra(peers.runs.era, MAX_RANKS - 1);
  const first = (peers.plays++ % PLAYS) * ITERATIONS;
  const eras = 2 * PLAYS * ITERATIONS;
  return (i) => before + (first + (i % ITERATIONS) + 1) / eras;
}

/** Such as `playing plan 'step' 3 times`. */
function textOf(name: string, times: number, condition: PlayCondition | undefined): string {
  const often = times === Number.MAX_SAFE_INTEGER ? 'without a limit' : `${times} times`;
  if (condition === undefined) return `${name} ${often}`;
  const { limit, below, every } = condition;
  return `${name} ${often} while ${below ? 'below' : 'above'} ${limit}, every ${every}`;
}

/** What must be the same on all ranks. */
function wordsOf(
  { plan }: Ranks,
  times: number,
  condition: PlayCondition | undefined,
): readonly number[] {
  if (condition === undefined) return [times];
  const { datum, element, limit, below, every } = condition;
  return [times, plan.data.gid[datum], element, limit, Number(below), every];
}

function bringData(
  { plan: { data, transfers }, rank: here }: Ranks,
  { readers }: MessageFacts,
  run: RunState,
): void {
  for (const [datum, ranks] of readers) {
    const at = data.producer[datum];
    for (const rank of ranks) {
      if (run.error !== undefined) {
        if (guards.failedPlayEnters) return;
        throw run.error;
      }
      if (rank === at) continue;
      if (at === here) transfers.sendTo(datum, rank, run, 0, false);
      else if (rank === here && data.have[datum] === 0)
        transfers.receive(datum, run, 0, HOST, undefined);
    }
  }
}

/** What is inserted from now on finds the data where the play leaves them. */
function leaveData({ plan, rank: here }: Ranks, { last }: MessageFacts): void {
  for (const [datum, { rank, others }] of last) {
    plan.transfers.written(datum, rank);
    if (rank === here) for (const other of others) plan.data.markSent(datum, other);
    else if (others.includes(here)) plan.data.have[datum] = 1;
  }
}
