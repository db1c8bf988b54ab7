// Idle control over the backend that tests drive by hand. Tests set the answers of its parts.
import type { HeadraceError } from '../../devices/errors.js';
import { Fifo } from '../../devices/fifo.js';
import { Tally } from '../../devices/tally.js';
import { DeferredCalls } from '../../scheduler/engine/deferred-calls.js';
import { IdleControl } from '../../scheduler/engine/idle.js';
import { ReadyQueue } from '../../scheduler/engine/ready-queue.js';
import type { RunState } from '../../scheduler/engine/run-state.js';
import { PartsState } from './parts-state.js';

/** Commands that may be queued ahead. */
const DEPTH = 40;
/** Most passes in one turn of a test: with more the engine spins. */
const MOST_PASSES = 50;

/** The parts that idle control asks, with what they were asked. */
export class Asked {
  readonly state: PartsState;
  readonly idle: IdleControl;
  readonly deferred: DeferredCalls;
  passes = 0;
  /** Results of the next passes; none moves anything after that. */
  moves: (() => boolean)[] = [];
  readonly depth: Int32Array;
  readonly lines: ReadyQueue[];
  readonly ready: ReadyQueue[];
  readonly bodies: { queued: Fifo; waiting: number; outside: (call: () => void) => void } = {
    queued: new Fifo(),
    waiting: 0,
    outside: (call) => call(),
  };
  isShort: (q: number) => boolean = () => true;
  readonly failed: [RunState, HeadraceError][] = [];
  givenUp = 0;
  hasDropped = false;
  /** Lanes with a closed receive. */
  closed: readonly number[] = [];

  constructor(lanes = 0) {
    const state = new PartsState({ workers: 2, gpus: 1, lanes });
    this.state = state;
    this.depth = new Int32Array(state.manual.queues.length).fill(DEPTH);
    const waiting = new Tally();
    this.lines = state.manual.queues.map(() => new ReadyQueue(64, waiting));
    this.ready = [...state.spaces, null].map(() => new ReadyQueue(64, waiting));
    const pump = (): boolean => {
      if (++this.passes > MOST_PASSES) throw new Error('test: it does not come to rest');
      return this.moves.shift()?.() ?? false;
    };
    this.deferred = new DeferredCalls(state, state.tasks.window);
    this.idle = new IdleControl(
      state,
      {
        pass: { pump, isUnderWay: false },
        queueChoice: {
          depth: this.depth,
          lines: this.lines,
          waiting,
          scripts: state.spaces.length,
        },
        dispatcher: { ready: this.ready },
        depth: { isShort: (q) => this.isShort(q) },
        sections: { isClosed: false, current: undefined },
        joins: { isWaiting: false },
        deferred: this.deferred,
        bodies: this.bodies as never,
        dropped: {
          giveUp: () => {
            this.givenUp++;
            return this.hasDropped;
          },
        },
        failures: {
          failRun: (run, error) => {
            run.error = error;
            this.failed.push([run, error]);
          },
        },
        arrivals: {
          markLanes: (wakes) => {
            for (const q of this.closed) wakes[q] = 1;
          },
        },
        explain: () => 'the table of waits',
      },
      0,
    );
  }

  /** A turn of the engine on the event loop. */
  turn(): void {
    this.passes = 0;
    this.idle.schedule();
    this.state.manual.turn();
  }
}
