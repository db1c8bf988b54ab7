// The doorbells of a native core, as the engine's thread uses them: it arms events, and then blocks, executes commands, spins
// or sleeps until one of them is over.
//
// Invariant (no lost wake-up): the engine arms an event, tells that it sleeps, and *then* looks whether the event is over
// (`due`); a queue completes a record and *then* reads both (native/queues/doorbell.h). Afterwards nothing is armed.
import { Control, type NativeCore, Shared } from '../../native/contract.js';
import { FIRST_QUEUE, type QueueId } from '../handles.js';
import type { QueueProgress } from './progress.js';

/** Looks between two readings of the clock. */
const LOOKS = 64;

export class Doorbells {
  private readonly core: NativeCore;
  private readonly control: Int32Array;
  private readonly shared: Int32Array;
  private readonly count: number;
  private readonly firstLane: number;
  private readonly progress: Pick<QueueProgress, 'arrivals'>;
  private readonly alsoDue: () => boolean;
  /** Lanes have armed doorbells. */
  private lanesArmed = false;

  /** `firstLane`: the number of the first lane, or of queues; `alsoDue`: whether other news wait for the engine. */
  constructor(
    core: NativeCore,
    firstLane: number,
    progress: Pick<QueueProgress, 'arrivals'>,
    alsoDue: () => boolean,
  ) {
    this.core = core;
    this.control = core.control;
    this.shared = core.shared;
    this.count = core.queues.length;
    this.firstLane = firstLane;
    this.progress = progress;
    this.alsoDue = alsoDue;
  }

  arm(queue: QueueId, seq: number): void {
    const base = queue * Control.words;
    Atomics.store(this.control, base + Control.doorbellAt, seq);
    Atomics.store(this.control, base + Control.doorbellArmed, 1);
    if (queue >= this.firstLane) this.lanesArmed = true;
  }

  block(microseconds: number): void {
    Atomics.store(this.shared, Shared.engineAsleep, 1);
    if (!this.due()) this.core.waitForDoorbell(microseconds);
    Atomics.store(this.shared, Shared.engineAsleep, 0);
    this.disarm();
  }

  serve(microseconds: number): boolean {
    Atomics.store(this.shared, Shared.engineAsleep, 1);
    const served = this.due() || this.core.serveUntilDoorbell(microseconds);
    Atomics.store(this.shared, Shared.engineAsleep, 0);
    this.disarm();
    return served;
  }

  sleep(): boolean {
    Atomics.store(this.shared, Shared.engineAsleep, 2);
    if (!this.due()) {
      // A worker that made room for the engine reads this word before it sleeps.
      if (Atomics.load(this.shared, Shared.aside) !== 0) this.core.recall();
      return true;
    }
    Atomics.store(this.shared, Shared.engineAsleep, 0);
    this.disarm();
    return false;
  }

  spin(until: number): boolean {
    let isDue = false;
    do {
      for (let i = 0; i < LOOKS && !isDue; i++) isDue = this.due();
    } while (!isDue && this.core.now() < until);
    this.disarm();
    return isDue;
  }

  onWake(callback: () => void): void {
    this.core.onDoorbell(() => {
      Atomics.store(this.shared, Shared.engineAsleep, 0);
      this.disarm();
      callback();
    });
  }

  /** An armed event is over already: the doorbell may have rung before the engine slept. */
  private due(): boolean {
    if (this.alsoDue()) return true;
    const { control, shared } = this;
    // A failure rings unarmed (native/queues/queue.h).
    if (Atomics.load(shared, Shared.failed) !== shared[Shared.failuresHandled]) return true;
    const arrived = Atomics.load(shared, Shared.arrivals) !== this.progress.arrivals;
    const end = arrived && this.lanesArmed ? this.count : this.firstLane;
    for (let q = FIRST_QUEUE; q < end; q++) {
      const base = q * Control.words;
      if (Atomics.load(control, base + Control.doorbellArmed) === 0) continue;
      const completed = Atomics.load(control, base + Control.completed);
      if (((completed - control[base + Control.doorbellAt]) | 0) >= 0) return true;
    }
    return false;
  }

  private disarm(): void {
    const end = this.lanesArmed ? this.count : this.firstLane;
    this.lanesArmed = false;
    for (let q = FIRST_QUEUE; q < end; q++) {
      Atomics.store(this.control, q * Control.words + Control.doorbellArmed, 0);
    }
  }
}
