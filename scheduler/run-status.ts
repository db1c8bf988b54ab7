// How a run is doing right now: progress, rates, memory per device, and what its live tasks wait for. A sample scans the
// window, tens of microseconds; it is taken only when somebody listens.
import type { MemoryUse } from '../devices/memory-space.js';
import { type BytesByKind, noBytes } from '../devices/transfers.js';
import { WAIT_NAMES } from '../stages/stage.js';
import { TaskStage } from '../stages/task-table.js';
import type { Engine } from './engine.js';
import { type EngineTotals, totals } from './report.js';
import type { RunState } from './run-state.js';

/** How far a run is. */
export interface RunProgress {
  /** Tasks inserted so far; final once `inserting` is false. */
  readonly inserted: number;
  readonly completed: number;
  /** The program function has not ended yet. */
  readonly inserting: boolean;
}

/** One device in a status: bytes in its memory, and how busy it is. */
export interface DeviceStatus extends MemoryUse {
  readonly name: string;
  readonly kind: string;
  /** Executors (workers, streams, copy engines) busy lately, on average: 1.5 of two workers. */
  readonly busy: number;
}

/** How a run is doing. Rates are of the last half to whole second. */
export interface RunStatus extends RunProgress {
  /** Seconds since the run began. */
  readonly seconds: number;
  readonly tasksPerSecond: number;
  /** Bytes moved since the run began, by the way they took. */
  readonly bytes: BytesByKind;
  readonly bytesPerSecond: number;
  /** The host first, then the GPUs. */
  readonly devices: readonly DeviceStatus[];
  /**
   * Live tasks by what they wait for: `predecessors`, `turn` (ready, behind others), `queue` (commanded: queued or
   * running), `body` (JavaScript, running or next), or a reason: `memory`, `copy`, `receive`, `slot`, `send`, `credit`.
   * Only those that there are.
   */
  readonly waiting: Readonly<Record<string, number>>;
}

/** Samples are compared with one at least this old; nanoseconds. */
const RATE_NS = 5e8;

interface Sample {
  readonly totals: EngineTotals;
  readonly completed: number;
}

/** Tasks of a run that the program inserted, and of those the ones that are over. @internal */
export function progressOf(state: RunState): RunProgress {
  return {
    inserted: state.inserted - state.movements,
    completed: Math.max(0, state.retired - state.movements),
    inserting: !state.sealed,
  };
}

/** Samples the status of one run. @internal */
export class StatusSampler {
  private readonly engine: Engine;
  private readonly state: RunState;
  private readonly begin: EngineTotals;
  /** Rates are of the time since `base`; `next` takes its place when it is old enough. */
  private base: Sample;
  private next: Sample;

  constructor(engine: Engine, state: RunState, begin: EngineTotals) {
    this.engine = engine;
    this.state = state;
    this.begin = begin;
    this.base = { totals: begin, completed: 0 };
    this.next = this.base;
  }

  sample(): RunStatus {
    const { engine, state, begin } = this;
    const now = totals(engine);
    const progress = progressOf(state);
    if (now.at - this.next.totals.at >= RATE_NS) {
      this.base = this.next;
      this.next = { totals: now, completed: progress.completed };
    }
    const { base } = this;
    const seconds = (now.at - base.totals.at) / 1e9;
    const rate = (amount: number): number => (seconds > 0 ? amount / seconds : 0);
    const bytes = noBytes();
    let moved = 0;
    for (const kind of Object.keys(bytes) as (keyof BytesByKind)[]) {
      bytes[kind] = now.bytes[kind] - begin.bytes[kind];
      moved += now.bytes[kind] - base.totals.bytes[kind];
    }
    const devices = engine.spaces.map((space, s): DeviceStatus => {
      let busy = 0;
      engine.backend.queues.forEach((queue, q) => {
        if (queue.space === s) busy += now.busy[q] - base.totals.busy[q];
      });
      const { name, kind } = engine.backend.spaces[s];
      return { name, kind, ...space.use(), busy: rate(busy / 1e9) };
    });
    return {
      ...progress,
      seconds: (now.at - begin.at) / 1e9,
      tasksPerSecond: rate(progress.completed - base.completed),
      bytes,
      bytesPerSecond: rate(moved),
      devices,
      waiting: waitingOf(engine, state.slot),
    };
  }
}

function waitingOf(engine: Engine, slot: number): Record<string, number> {
  const { tasks } = engine;
  const counts: Record<string, number> = {};
  for (let id = tasks.head; id !== tasks.next; id = (id + 1) | 0) {
    const row = id & tasks.mask;
    const stage = tasks.stage[row];
    if (tasks.run[row] !== slot || stage === TaskStage.done || stage === TaskStage.free) continue;
    const reason = tasks.waiting[row];
    const key =
      stage === TaskStage.pending
        ? 'predecessors'
        : reason !== 0
          ? WAIT_NAMES[reason]
          : stage === TaskStage.ready
            ? 'turn'
            : tasks.queue[row] >= 0
              ? 'queue'
              : 'body';
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}
