// What the engine does when it has nothing to do: it decides which completion it wants to hear of, and sleeps.
//
// Hysteresis: with more work ready for a queue, the engine wants to be woken when a quarter of the queue's depth is
// left, not at every completion; without, when the queue is empty; when tasks wait for memory, at the next
// completion; for a body that waits for an event, at that event.
// Invariant: whenever the engine sleeps and a task is live, a doorbell is armed on some queue with commands under
// way, or a JavaScript body is running: otherwise the graph is stuck, and that is an error, not a sleep.
import { HeadraceError } from '../devices/errors.js';
import type { Engine } from './engine.js';
import { INTERNAL_RUN } from './engine.js';

/** Longest block of the engine's thread at a time; microseconds. */
const BLOCK_US = 2000;
/** Passes on the event loop are given up after this long, so that timers and sockets are served; nanoseconds. */
const TURN_NS = 3e6;
/** Nothing moved for this long: say who waits for what; milliseconds. */
const WATCHDOG_MS = 30_000;
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
  private readonly tick = (): void => {
    this.turn();
  };

  constructor(engine: Engine) {
    this.engine = engine;
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

  /** Whether any command is between issue and observed completion. */
  somethingIsUnderWay(): boolean {
    const { outstanding } = this.engine.submission;
    for (let q = 0; q < outstanding.length; q++) if (outstanding[q] > 0) return true;
    return this.engine.ranks?.expecting === true;
  }

  /** Passes until there is nothing to do but wait, or others on the event loop want their turn. */
  private turn(): void {
    this.scheduled = false;
    const next = this.passes();
    if (next === 'again') this.schedule();
    else if (next === 'asleep') this.watch();
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

  /** Live tasks, nothing under way, nobody to wake us: a defect of the engine, reported instead of slept over. */
  private stuck(): void {
    const { engine } = this;
    // A pass may have freed what the last one waited for.
    if (engine.pump()) {
      this.schedule();
      return;
    }
    const error = new HeadraceError('ERR_STALLED', 'no task can make progress', {
      remedy: 'this is a defect of Headrace; please report it with this table',
      report: engine.explain(),
    });
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
    if (!failed) throw error;
  }

  private watch(): void {
    // Virtual time does not pass while this process is slow; its world says what stands still.
    if (this.engine.backend.kind === 'simulated') return;
    if (this.watchdog !== undefined) clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => {
      this.engine.tracer?.watchdog();
      const leaves = this.engine.ranks?.calls.leaving
        ? '  this rank has closed its runtime and waits for the others to close theirs\n'
        : '';
      process.emitWarning(
        `nothing has completed for ${WATCHDOG_MS / 1000} s:\n${leaves}${this.engine.explain()}`,
        'HeadraceWatchdog',
      );
      this.watch();
    }, WATCHDOG_MS);
    this.watchdog.unref();
  }
}
