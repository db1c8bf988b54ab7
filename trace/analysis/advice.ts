// Advice about idle time. The words of a reason hold if their cause is really there: tasks are too short, copies
// take long. If a run's own figures contradict it, the advice names the observed cause instead.

import type { Trace } from '../trace.js';
import type { LaneUse, TransferLaneUse } from './lanes.js';
import { formatTime } from './text.js';
import { type IdleReason, idleAdvice, idleReasons } from './waits.js';

/** The threads of one rank. */
export interface RankThreads {
  readonly rank: number;
  readonly workers: number;
  /** One per GPU. */
  readonly gpus: number;
  /** Workers, GPUs, the engine, and with several ranks the network. */
  readonly threads: number;
  /** Cores of the rank; 0: not recorded. */
  readonly cores: number;
}

/** Idle time of one reason, over the execution lanes in use. */
export interface Advice {
  readonly reason: IdleReason;
  readonly nanoseconds: number;
  /** Share of lanes in use x makespan. */
  readonly share: number;
  /** The remedy. */
  readonly text: string;
}

/** The facts on which advice depends. */
export interface AdviceFacts {
  readonly makespan: number;
  readonly lanes: readonly LaneUse[];
  readonly transferLanes: readonly TransferLaneUse[];
  readonly threads: readonly RankThreads[];
  /** Kernel nanoseconds of a task on average, without the time in which its thread had no core. */
  readonly kernel: number;
}

/** Tasks that run for this long (nanoseconds) are not too short: scheduling one takes a few microseconds. */
const LONG_TASK = 100_000;

/** The threads of each rank, and the cores for them. */
export function rankThreads(trace: Trace): RankThreads[] {
  return trace.ranks.map(({ rank, header: { lanes, cores = 0 } }) => {
    const workers = lanes.filter(({ kind }) => kind === 'worker').length;
    const gpus = new Set(lanes.filter(({ kind }) => kind === 'compute').map(({ space }) => space));
    const network = lanes.some(({ kind }) => kind === 'network') ? 1 : 0;
    const threads = workers + gpus.size + 1 + network;
    return { rank, workers, gpus: gpus.size, threads, cores };
  });
}

/** Advice for every reason, in the order of reasons; reasons without idle time have 0. */
export function advise(facts: AdviceFacts): Advice[] {
  const inUse = facts.lanes.filter(({ used }) => used);
  const total = inUse.length * facts.makespan;
  return idleReasons.map((reason) => {
    const nanoseconds = inUse.reduce((sum, lane) => sum + lane.idle[reason], 0);
    return {
      reason,
      nanoseconds,
      share: total > 0 ? nanoseconds / total : 0,
      text: adviceText(reason, nanoseconds, inUse.length, facts),
    };
  });
}

function adviceText(
  reason: IdleReason,
  nanoseconds: number,
  lanes: number,
  facts: AdviceFacts,
): string {
  const { advice } = idleAdvice[reason];
  if (reason === 'stolen') {
    const stretched = facts.lanes.some((lane) => lane.stretched > 0);
    return nanoseconds > 0 || stretched ? stolenAdvice(facts) : advice;
  }
  if (nanoseconds === 0) return advice;
  switch (reason) {
    case 'scheduler':
      if (facts.kernel < LONG_TASK) return advice;
      return `tasks are long enough (${formatTime(facts.kernel)} on average), but the engine came late: shorter JavaScript bodies and callbacks, a core for the engine`;
    case 'h2d':
    case 'd2h':
    case 'd2d': {
      const copying = copyTime(reason, facts.transferLanes);
      if (copying >= nanoseconds / lanes / 2) return advice;
      return `the copies themselves took ${formatTime(copying)} only, they began late: a core for every thread that issues them, fewer tasks at once`;
    }
    default:
      return advice;
  }
}

/** Time that the lanes of one direction spent on copies. */
function copyTime(reason: IdleReason, lanes: readonly TransferLaneUse[]): number {
  const kind = reason === 'd2d' ? 'peer' : reason;
  return lanes.reduce((sum, lane) => sum + (lane.kind === kind ? lane.busy : 0), 0);
}

/** Names the rank that lacks most cores. */
function stolenAdvice({ threads }: AdviceFacts): string {
  const { advice } = idleAdvice.stolen;
  const [worst] = [...threads].sort((a, b) => b.threads - b.cores - (a.threads - a.cores));
  if (worst === undefined || worst.cores === 0) return advice;
  const { workers, gpus, cores } = worst;
  const who = [
    ...(workers > 0 ? [`${workers} ${workers === 1 ? 'worker' : 'workers'}`] : []),
    ...(gpus > 0 ? [`${gpus} ${gpus === 1 ? 'GPU' : 'GPUs'}`] : []),
    'the engine',
    ...(workers + gpus + 1 < worst.threads ? ['the network'] : []),
  ].join(', ');
  const where = threads.length > 1 ? `on rank ${worst.rank} ` : '';
  const share = `${where}${worst.threads} threads (${who}) share ${cores} ${cores === 1 ? 'core' : 'cores'}`;
  if (worst.threads <= cores)
    return `${share}, and other programs took some: run fewer of them, or use fewer workers`;
  const fewer = Math.max(1, cores - (worst.threads - workers));
  if (workers > fewer) return `${share}: use fewer workers (workers: ${fewer})`;
  return gpus > 1 ? `${share}: use fewer GPUs, or more cores` : `${share}: use more cores`;
}
