// The present state of a run: progress, rates, memory per device, and the reasons for which its live tasks wait. A
// sample scans the window and takes tens of microseconds. It is taken only if there is a listener.
import type { TaskId } from '../../devices/handles.js';
import type { MemoryUse } from '../../devices/memory/space.js';
import { type BytesByKind, noBytes } from '../../devices/memory/transfers.js';
import { WAIT_NAMES } from '../../stages/stage.js';
import { Execution, TaskStage } from '../../stages/task-table.js';
import type { RunState } from '../engine/run-state.js';
import type { EngineState } from '../engine/state.js';
import { type EngineTotals, totals } from './run-report.js';

/** Progress of a run. */
export interface RunProgress {
  /** Tasks inserted so far; final once `inserting` is false. */
  readonly inserted: number;
  readonly completed: number;
  /** The program function has not ended yet. */
  readonly inserting: boolean;
}

/** One device in a status: bytes in its memory, and its load. */
export interface DeviceStatus extends MemoryUse {
  readonly name: string;
  readonly kind: string;
  /** Executors (workers, streams, copy engines) busy lately, on average: 1.5 of two workers. */
  readonly busy: number;
}

/** The present state of a run. Rates are averages over the last half to whole second. */
export interface RunStatus extends RunProgress {
  /** Seconds since the run began. */
  readonly seconds: number;
  readonly tasksPerSecond: number;
  /** Bytes moved since the run began, by kind of transfer. */
  readonly bytes: BytesByKind;
  readonly bytesPerSecond: number;
  /** The host first, then the GPUs. */
  readonly devices: readonly DeviceStatus[];
  /**
   * Live tasks by the reason of their wait: `predecessors`, `turn` (ready, behind others), `queue` (commanded: queued or
   * running), `body` (JavaScript, running or next), or a reason: `memory`, `copy`, `receive`, `slot`, `credit`. Reasons
   * without tasks are absent.
   */
  readonly waiting: Readonly<Record<string, number>>;
}

/** A sample is compared with one that is at least this old; nanoseconds. */
const RATE_NS = 5e8;

interface Sample {
  readonly totals: EngineTotals;
  readonly completed: number;
}

/** Inserted tasks of a run, and the finished ones among them. @internal */
export function progressOf(state: RunState): RunProgress {
  return {
    inserted: state.inserted - state.movements + state.standing,
    completed: Math.max(0, state.retired - state.movements),
    inserting: !state.sealed,
  };
}

/** Samples the status of one run. @internal */
export class StatusSampler {
  private readonly engine: EngineState;
  private readonly state: RunState;
  private readonly begin: EngineTotals;
  /** Rates are averages since `base`; `next` replaces it when `next` is old enough. */
  private base: Sample;
  private next: Sample;

  constructor(engine: EngineState, state: RunState, begin: EngineTotals) {
    this.engine = engine;
    this.state = state;
    this.begin = begin;
    this.base = { totals: begin, completed: 0 };
    this.next = this.base;
  }

  /** `heldBack`: tasks that the program has inserted and the engine does not know yet (scheduler/recognition/). */
  sample(heldBack = 0): RunStatus {
    const { engine, state, begin } = this;
    const now = totals(engine);
    const known = progressOf(state);
    const progress = { ...known, inserted: known.inserted + heldBack };
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

function waitingOf(engine: EngineState, slot: number): Record<string, number> {
  const { tasks } = engine;
  const counts: Record<string, number> = {};
  for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
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
            : tasks.execution[row] === Execution.command
              ? 'queue'
              : 'body';
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}
