// The engine without work: it decides which completion wakes it, and sleeps.
//
// Hysteresis: if more tasks are ready for a queue, the queue wakes the engine when a quarter of its depth is left,
// not at every completion. Otherwise the queue wakes it when it is empty. A queue with many commands wakes it when half of them are
// over, so that few tasks are to be retired when the last one is. If tasks wait for memory, the next
// completion wakes the engine. If a body waits for an event, that event wakes it.
// Lanes to other ranks complete without the engine. A lane wakes it for a closed receive (arrivals.ts), for held receives
// (ranks/rank-lanes.ts), for a window that is full, and if no other queue has commands under way. Otherwise the queue
// whose commands wait for the lane wakes the engine after it.
// The watchdog reports when no task has moved for a while. It uses a timer while the engine sleeps on the event loop.
// While the program waits in an insertion no timer fires, so the blocked thread checks the time itself.
// Invariant: when the engine sleeps and a task is live, a doorbell is armed on some queue with commands under way, or
// a JavaScript body runs, or news of other ranks are expected. Otherwise the graph is stuck, and the engine reports an error instead of sleeping.

import { writeSync } from 'node:fs';
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { FIRST_QUEUE } from '../../devices/handles.js';
import { formatTime } from '../../trace/analysis/text.js';
import type { DroppedTasks } from '../failure/dropped-tasks.js';
import type { FailureEffects } from '../failure/effects.js';
import type { Arrivals } from './arrivals.js';
import type { DeferredCalls } from './deferred-calls.js';
import type { DepthControl } from './depth.js';
import type { Dispatcher } from './dispatcher.js';
import type { ExclusiveSections } from './exclusive.js';
import type { Joins } from './joins.js';
import type { Pass } from './pass.js';
import type { QueueChoice } from './queue-choice.js';
import { INTERNAL_RUN } from './run-state.js';
import type { ScriptBodies } from './script-bodies.js';
import type { EngineState } from './state.js';

/** The parts that know whether the engine has to wait. */
interface IdleParts {
  readonly pass: Pass;
  readonly queueChoice: Pick<QueueChoice, 'depth' | 'lines' | 'waiting' | 'scripts'>;
  readonly dispatcher: Pick<Dispatcher, 'ready'>;
  readonly depth: Pick<DepthControl, 'isShort'>;
  readonly bodies: Pick<ScriptBodies, 'queued' | 'waiting' | 'outside'>;
  readonly dropped: Pick<DroppedTasks, 'giveUp'>;
  readonly failures: Pick<FailureEffects, 'failRun'>;
  readonly arrivals: Pick<Arrivals, 'markLanes'>;
  readonly sections: Pick<ExclusiveSections, 'isClosed' | 'current'>;
  readonly joins: Pick<Joins, 'isWaiting'>;
  readonly deferred: Pick<DeferredCalls, 'waiting' | 'make'>;
  /** The reason why each live task waits, as text. */
  readonly explain: () => string;
}

/** Timers may fire a little early by the runtime's clock. */
const ALMOST = 0.99;
/** Limit for one block of the engine's thread; microseconds. */
const BLOCK_US = 2000;
/** Limit for passes on the event loop in a row, so that timers and sockets are served; nanoseconds. */
const TURN_NS = 3e6;
/** If ranks have a core for every thread, the engine sleeps after it has spun that long; nanoseconds. */
const SPIN_NS = 10e6;
/** While the engine spins, it yields to the event loop at this interval; microseconds. */
const SLICE_US = 100;
/** Records of a queue of which the engine may handle the ends together, after the last one. */
const FEW = 128;
/** The engine's thread executes commands only up to this average length, in nanoseconds: a longer one holds it up. */
const SERVED_NS = 100_000;

export class IdleControl {
  private readonly state: EngineState;
  private readonly parts: IdleParts;
  private scheduled = false;
  private holding = false;
  /** Time at which a pass last moved a task. */
  private movedAt = 0;
  private readonly whenQuiet: (() => void)[] = [];
  /** 1: the lane wakes the engine. By queue. */
  private readonly wakes: Uint8Array;
  private watchdog: NodeJS.Timeout | undefined;
  /** Nanoseconds without progress after which the watchdog reports; 0: never. */
  private readonly patience: number;
  /**
   * Time at which the engine began to hold the process, and time of the watchdog's last report from a blocked thread.
   */
  private heldSince = 0;
  private reportedAt = 0;
  private readonly tick = (): void => this.parts.bodies.outside(this.turnNow);
  private readonly turnNow = (): void => this.turn();

  constructor(state: EngineState, parts: IdleParts, patience: number) {
    this.state = state;
    this.parts = parts;
    this.patience = patience;
    this.wakes = new Uint8Array(state.backend.queues.length);
    state.backend.onWake(this.tick);
    state.wake = () => this.schedule();
  }

  /** Runs a pass on the event loop soon. */
  schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    this.state.backend.soon(this.tick);
  }

  /** Resolves when no task is live, no command is under way, and no close of a datum waits for a row. */
  quiet(): Promise<void> {
    this.parts.pass.pump();
    if (this.isQuiet()) {
      // No turn may follow: the backend may be closed next.
      this.unwatch();
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      this.whenQuiet.push(resolve);
      this.schedule();
    });
  }

  /** Blocks the calling thread until a queue has run low. */
  block(): void {
    this.state.remote?.blocks();
    if (this.serve(true, BLOCK_US)) return;
    this.arm(true);
    this.state.backend.block(BLOCK_US);
  }

  /**
   * If workers take all cores, the engine's thread executes short commands itself instead of sleeping. Returns false
   * when there is no such command.
   */
  private serve(windowIsFull: boolean, microseconds: number): boolean {
    const { backend, submission } = this.state;
    if (!backend.full) return false;
    let work = false;
    for (let q = FIRST_QUEUE; q < backend.queues.length; q++) {
      if (submission.outstanding[q] === 0 || backend.queues[q].kind !== 'worker') continue;
      if (!this.parts.depth.isShort(q, SERVED_NS)) return false;
      work = true;
    }
    if (!work) return false;
    this.arm(windowIsFull);
    return backend.serve(microseconds);
  }

  private isQuiet(): boolean {
    const { live } = this.state.tasks;
    const { sections, deferred } = this.parts;
    return (
      live === 0 && deferred.waiting === 0 && !sections.isClosed && !this.somethingIsUnderWay()
    );
  }

  /** Whether a command is between issue and observed completion, or another rank has work to do. */
  somethingIsUnderWay(): boolean {
    return this.commandsAreUnderWay() || this.state.remote?.expecting === true;
  }

  /** Whether a command is between issue and observed completion. */
  commandsAreUnderWay(): boolean {
    const { outstanding } = this.state.submission;
    if (this.parts.sections.current?.isPlaying === true) return true;
    for (let q = FIRST_QUEUE; q < outstanding.length; q++) if (outstanding[q] > 0) return true;
    return false;
  }

  /** Makes passes until only waiting is left, or until the event loop must be served. */
  private turn(): void {
    this.scheduled = false;
    const next = this.passes();
    if (next === 'again') {
      this.schedule();
      this.watch();
    } else if (next === 'asleep') this.watch();
    else if (next === 'stuck') this.stuck();
    else {
      this.hold(false);
      for (const tell of this.whenQuiet.splice(0)) tell();
    }
  }

  private passes(): 'done' | 'again' | 'asleep' | 'stuck' {
    const { state } = this;
    const { pass, bodies, deferred } = this.parts;
    const { backend, x } = state;
    const until = backend.now() + TURN_NS;
    for (;;) {
      if (pass.pump()) this.movedAt = x.now;
      if (deferred.make()) continue;
      if (this.isQuiet()) {
        // Other ranks may wait for an answer, such as that nobody here wants an offer of a failed run.
        if (state.remote === undefined || !guards.idleAnswers || backend.sleep()) return 'done';
        if (backend.now() > until) return 'again';
        continue;
      }
      this.hold(true);
      if (bodies.queued.length > 0) {
        if (backend.now() > until) return 'again';
        continue;
      }
      if (!this.somethingIsUnderWay() && bodies.waiting === 0) return 'stuck';
      if (state.remote?.mustRetry === true) return 'again';
      if (state.remote?.maySpin === true && x.now - this.movedAt < SPIN_NS) {
        // If cores are free, another rank answers sooner than a sleeping thread wakes.
        this.arm(false);
        if (!backend.spin(SLICE_US) || backend.now() > until) return 'again';
        continue;
      }
      if (this.serve(false, Math.max(0, until - backend.now()) / 1e3)) {
        if (backend.now() > until) return 'again';
        continue;
      }
      this.arm(false);
      if (backend.sleep()) return 'asleep';
      if (backend.now() > until) return 'again';
    }
  }

  private hold(on: boolean): void {
    if (!on) this.unwatch();
    if (this.holding === on) return;
    this.holding = on;
    if (on) this.heldSince = this.state.backend.now();
    this.state.backend.hold(on);
  }

  private arm(windowIsFull: boolean): void {
    const { queueChoice, dispatcher } = this.parts;
    const { backend, submission, allSpaces, x } = this.state;
    // The end of each task may be the end of what another one has spawned.
    const memoryWanted =
      allSpaces.waiting.count > 0 || this.parts.joins.isWaiting || this.isAnyAside();
    const isAnyReady = queueChoice.waiting.count > 0;
    const isSlotWanted = x.slotWaiting.count > 0;
    if (x.hasLanes) this.markLanes(memoryWanted || windowIsFull);
    if (this.state.playing) this.parts.sections.current?.arm();
    for (let q = FIRST_QUEUE; q < backend.queues.length; q++) {
      if (submission.outstanding[q] === 0) continue;
      const issued = backend.issued[q];
      const pending = (issued - backend.completed[q]) | 0;
      let wanted = issued;
      const { space, kind } = backend.queues[q];
      const place = kind === 'script' ? queueChoice.scripts : space;
      const awaitsSlot = isSlotWanted && x.slotWaiters[q].length > 0;
      const isAsked = x.eventWaiters[q] >= 0 || awaitsSlot;
      if (kind === 'lane' && this.wakes[q] === 0 && !isAsked) continue;
      if (memoryWanted) wanted = (backend.completed[q] + 1) | 0;
      else if (
        windowIsFull ||
        awaitsSlot ||
        (isAnyReady && (dispatcher.ready[place].length > 0 || queueChoice.lines[q].length > 0))
      ) {
        const low = Math.min(pending - 1, Math.max(1, queueChoice.depth[q] >> 2));
        wanted = (issued - low) | 0;
      }
      // What is over is to be retired while the rest goes on.
      const half = (issued - (pending >> 1)) | 0;
      if (pending > FEW && kind !== 'lane' && ((half - wanted) | 0) < 0) wanted = half;
      for (let n = x.eventWaiters[q]; n >= 0; n = x.waiterNodes.next[n]) {
        const seq = x.waiterNodes.extra[n];
        if (((seq - wanted) | 0) < 0) wanted = seq;
      }
      backend.arm(q, wanted);
    }
  }

  /** Whether a task stepped aside for what other ranks hold: the end of a receive on a lane may be what it waits for. */
  private isAnyAside(): boolean {
    return this.state.x.hasLanes && this.state.spaces.some(({ aside }) => aside.length > 0);
  }

  private markLanes(all: boolean): void {
    const { backend, submission, remote } = this.state;
    let others = false;
    for (let q = FIRST_QUEUE; q < backend.queues.length && !others; q++)
      others = backend.queues[q].kind !== 'lane' && submission.outstanding[q] > 0;
    this.wakes.fill(all || !others ? 1 : 0);
    if (all || !others) return;
    this.parts.arrivals.markLanes(this.wakes);
    remote?.tasks.markLanes(this.wakes);
  }

  stalled(): HeadraceError {
    return new HeadraceError('ERR_STALLED', 'no task can make progress', {
      remedy: 'this is a defect of Headrace; please report it with this table',
      report: this.parts.explain(),
    });
  }

  /**
   * Tasks are live, no command is under way and no event will wake the engine. This is a defect of the engine; it is
   * reported instead of an endless sleep.
   */
  private stuck(): void {
    const { state, parts } = this;
    // A pass may have freed a resource for which the last pass waited.
    if (parts.pass.pump()) {
      this.schedule();
      return;
    }
    const error = this.stalled();
    let failed = false;
    for (const run of state.runs) {
      if (
        run !== undefined &&
        run.slot !== INTERNAL_RUN &&
        run.live > 0 &&
        run.error === undefined
      ) {
        parts.failures.failRun(run, error);
        failed = true;
      }
    }
    // A dropped task may follow a stuck task. Then it does not end by itself.
    if (!failed && !parts.dropped.giveUp()) throw error;
    state.wake();
  }

  /** Checks after that long without progress, and then again at the same interval. */
  private watch(nanoseconds: number = this.patience): void {
    // Virtual time does not pass while this process is slow. The simulated machine reports a standstill.
    if (this.state.backend.kind === 'simulated' || this.patience === 0) return;
    if (this.watchdog !== undefined) return;
    this.watchdog = setTimeout(() => {
      this.watchdog = undefined;
      const quiet = this.quietFor(this.heldSince);
      if (quiet < this.patience * ALMOST) {
        this.watch(this.patience - quiet);
        return;
      }
      process.emitWarning(this.report(quiet), 'HeadraceWatchdog');
      this.watch();
    }, nanoseconds / 1e6);
    this.watchdog.unref();
  }

  private unwatch(): void {
    if (this.watchdog !== undefined) clearTimeout(this.watchdog);
    this.watchdog = undefined;
  }

  /**
   * The engine's thread calls this between blocks, in a wait that began at `since`. It writes to stderr directly,
   * because the event loop prints warnings and the event loop is blocked.
   */
  reportBlocked(since: number, what: string): void {
    if (this.state.backend.kind === 'simulated' || this.patience === 0) return;
    const quiet = this.quietFor(Math.max(since, this.reportedAt));
    if (quiet < this.patience) return;
    this.reportedAt = this.state.backend.now();
    writeSync(
      2,
      `HeadraceWatchdog: ${this.report(this.quietFor(since))}\n  the thread is blocked in ${what}\n`,
    );
  }

  /** Nanoseconds since the last progress after `since`. */
  private quietFor(since: number): number {
    const { state } = this;
    const now = state.backend.now();
    // A play goes on without passes.
    if (state.playing && this.parts.sections.current?.hasMoved() === true) state.movedAt = now;
    return now - Math.max(state.movedAt, since);
  }

  private report(quiet: number): string {
    this.state.observer?.watchdog();
    return `nothing has completed for ${formatTime(quiet)}:\n${this.parts.explain()}`;
  }
}
