// What the engine does when it has nothing to do: it decides which completion it wants to hear of, and sleeps.
//
// Hysteresis: with more work ready for a queue, the engine wants to be woken when a quarter of the queue's depth is
// left, not at every completion; without, when the queue is empty; when tasks wait for memory, at the next
// completion; for a body that waits for an event, at that event.
// The watchdog reports when no task has moved for a while: from a timer while the engine sleeps on the event loop, and
// right where it blocks while the program waits in an insertion, because no timer fires then.
// Invariant: whenever the engine sleeps and a task is live, a doorbell is armed on some queue with commands under
// way, or a JavaScript body is running: otherwise the graph is stuck, and that is an error, not a sleep.
import { writeSync } from 'node:fs';
import { HeadraceError } from '../devices/errors.js';
import { formatTime } from '../trace/analysis/text.js';
import type { Engine } from './engine.js';
import { INTERNAL_RUN } from './engine.js';

/** Timers may fire a little early by the runtime's clock. */
const ALMOST = 0.99;
/** Longest block of the engine's thread at a time; microseconds. */
const BLOCK_US = 2000;
/** Passes on the event loop are given up after this long, so that timers and sockets are served; nanoseconds. */
const TURN_NS = 3e6;
/** Where ranks have a core for every thread, the engine sleeps when it has waited that long; nanoseconds. */
const SPIN_NS = 10e6;
/** While it waits like that, others on the event loop have their turn so often; nanoseconds. */
const SLICE_NS = 100_000;
/** Looks for news between two looks at the clock. */
const LOOKS = 64;
/** Commands of this average length, in nanoseconds, may be executed by the engine's thread: a longer one holds it up. */
const SERVED_NS = 100_000;

export class IdleControl {
  private readonly engine: Engine;
  private scheduled = false;
  private holding = false;
  /** When a pass moved something last. */
  private movedAt = 0;
  private readonly whenQuiet: (() => void)[] = [];
  private watchdog: NodeJS.Timeout | undefined;
  /** Nanoseconds without progress after which the watchdog reports; 0: never. */
  private readonly patience: number;
  /** When the engine began to hold the process, and when the watchdog reported from a blocked thread last. */
  private heldSince = 0;
  private reportedAt = 0;
  private readonly tick = (): void => {
    this.turn();
  };

  constructor(engine: Engine, patience: number) {
    this.engine = engine;
    this.patience = patience;
    engine.backend.onWake(this.tick);
  }

  /** Runs a pass on the event loop soon. */
  schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    this.engine.backend.soon(this.tick);
  }

  /** Resolves when no task is live and no command is under way. */
  quiet(): Promise<void> {
    this.engine.pump();
    if (this.isQuiet()) return Promise.resolve();
    return new Promise((resolve) => {
      this.whenQuiet.push(resolve);
      this.schedule();
    });
  }

  /** Blocks the calling thread until a queue has run low. */
  block(): void {
    this.engine.ranks?.calls.blocks();
    if (this.serve(true, BLOCK_US)) return;
    this.arm(true);
    this.engine.backend.block(BLOCK_US);
  }

  /**
   * Where workers take all cores, the engine's thread executes short commands itself instead of sleeping. False when
   * there is nothing of the kind to do.
   */
  private serve(windowIsFull: boolean, microseconds: number): boolean {
    const { backend, submission, depthControl } = this.engine;
    if (!backend.full) return false;
    let work = false;
    for (let q = 0; q < backend.queues.length; q++) {
      if (submission.outstanding[q] === 0 || backend.queues[q].kind !== 'worker') continue;
      if (!depthControl.isShort(q, SERVED_NS)) return false;
      work = true;
    }
    if (!work) return false;
    this.arm(windowIsFull);
    return backend.serve(microseconds);
  }

  private isQuiet(): boolean {
    return this.engine.tasks.live === 0 && !this.somethingIsUnderWay();
  }

  /** Whether any command is between issue and observed completion, or another rank has to do something. */
  somethingIsUnderWay(): boolean {
    return this.commandsAreUnderWay() || this.engine.ranks?.expecting === true;
  }

  /** Whether any command is between issue and observed completion. */
  commandsAreUnderWay(): boolean {
    const { outstanding } = this.engine.submission;
    for (let q = 0; q < outstanding.length; q++) if (outstanding[q] > 0) return true;
    return false;
  }

  /** Passes until there is nothing to do but wait, or others on the event loop want their turn. */
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
    const { engine } = this;
    const { backend } = engine;
    const until = backend.now() + TURN_NS;
    for (;;) {
      if (engine.pump()) this.movedAt = engine.x.now;
      if (this.isQuiet()) return 'done';
      this.hold(true);
      if (engine.queuedBodies > 0) {
        if (backend.now() > until) return 'again';
        continue;
      }
      if (!this.somethingIsUnderWay() && engine.liveScripts === 0) return 'stuck';
      if (engine.ranks?.mustRetry === true) return 'again';
      if (engine.ranks?.maySpin === true && engine.x.now - this.movedAt < SPIN_NS) {
        if (!this.lookOut() || engine.x.now > until) return 'again';
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

  /**
   * Where cores are free, the answer of another rank comes sooner than a sleeping thread wakes. Only looks: a pass that
   * finds nothing would hold up the next one that does. True when there is news.
   */
  private lookOut(): boolean {
    const { backend, x } = this.engine;
    const until = x.now + SLICE_NS;
    do {
      for (let i = 0; i < LOOKS; i++) if (backend.hasNews()) return true;
    } while (backend.now() < until);
    return false;
  }

  private hold(on: boolean): void {
    if (!on && this.watchdog !== undefined) {
      clearTimeout(this.watchdog);
      this.watchdog = undefined;
    }
    if (this.holding === on) return;
    this.holding = on;
    if (on) this.heldSince = this.engine.backend.now();
    this.engine.backend.hold(on);
  }

  private arm(windowIsFull: boolean): void {
    const { engine } = this;
    const { backend, submission, spaces, x } = engine;
    let memoryWanted = false;
    for (const space of spaces) if (space.waiters.length > 0) memoryWanted = true;
    for (let q = 0; q < backend.queues.length; q++) {
      if (submission.outstanding[q] === 0) continue;
      const issued = backend.issued[q];
      const pending = (issued - backend.completed[q]) | 0;
      let wanted = issued;
      const lane = backend.queues[q].space;
      if (memoryWanted) wanted = (backend.completed[q] + 1) | 0;
      else if (
        windowIsFull ||
        engine.starter.ready[lane].length > 0 ||
        engine.placement.lines[q].length > 0 ||
        x.slotWaiters[q].length > 0
      ) {
        const low = Math.min(pending - 1, Math.max(1, engine.placement.depth[q] >> 2));
        wanted = (issued - low) | 0;
      }
      for (let n = x.eventWaiters[q]; n >= 0; n = x.eventNodes.next[n]) {
        const seq = x.eventNodes.extra[n];
        if (((seq - wanted) | 0) < 0) wanted = seq;
      }
      backend.arm(q, wanted);
    }
  }

  stalled(): HeadraceError {
    return new HeadraceError('ERR_STALLED', 'no task can make progress', {
      remedy: 'this is a defect of Headrace; please report it with this table',
      report: this.engine.explain(),
    });
  }

  /** Live tasks, nothing under way, nobody to wake us: a defect of the engine, reported instead of slept over. */
  private stuck(): void {
    const { engine } = this;
    // A pass may have freed what the last one waited for.
    if (engine.pump()) {
      this.schedule();
      return;
    }
    const error = this.stalled();
    let failed = false;
    for (const run of engine.runs) {
      if (
        run !== undefined &&
        run.slot !== INTERNAL_RUN &&
        run.live > 0 &&
        run.error === undefined
      ) {
        engine.failRun(run, error);
        failed = true;
      }
    }
    // A dropped task may be behind one that was stuck, and does not come to its end by itself.
    if (!failed && !engine.dropped.giveUp()) throw error;
    engine.wake();
  }

  /** Looks after that long without progress, and then again and again. */
  private watch(nanoseconds: number = this.patience): void {
    // Virtual time does not pass while this process is slow; its world says what stands still.
    if (this.engine.backend.kind === 'simulated' || this.patience === 0) return;
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

  /**
   * To be called between blocks of the engine's thread, in a wait that began at `since`. Writes to stderr itself: warnings
   * are printed by the event loop, which stands still.
   */
  reportBlocked(since: number, what: string): void {
    if (this.engine.backend.kind === 'simulated' || this.patience === 0) return;
    const quiet = this.quietFor(Math.max(since, this.reportedAt));
    if (quiet < this.patience) return;
    this.reportedAt = this.engine.backend.now();
    writeSync(
      2,
      `HeadraceWatchdog: ${this.report(this.quietFor(since))}\n  the thread is blocked in ${what}\n`,
    );
  }

  /** Nanoseconds since the last progress after `since`. */
  private quietFor(since: number): number {
    return this.engine.backend.now() - Math.max(this.engine.movedAt, since);
  }

  private report(quiet: number): string {
    const { engine } = this;
    engine.tracer?.watchdog();
    return `nothing has completed for ${formatTime(quiet)}:\n${engine.explain()}`;
  }
}
