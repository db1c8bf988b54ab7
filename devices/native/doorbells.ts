// The doorbells of a native core, as the engine's thread uses them: it arms events, and then blocks, executes commands, spins
// or sleeps until one of them is over.
//
// Invariant (no lost wake-up): the engine arms an event, tells that it sleeps, and *then* looks whether the event is over
// (`due`); a queue completes a record and *then* reads both (native/queues/doorbell.h). Afterwards nothing is armed.
import { Control, type NativeCore, Shared } from '../../native/contract.js';
import type { QueueId } from '../handles.js';
import type { QueueProgress } from './progress.js';

export class Doorbells {
  private readonly core: NativeCore;
  private readonly control: Int32Array;
  private readonly shared: Int32Array;
  private readonly firstLane: number;
  private readonly progress: Pick<QueueProgress, 'arrivals'>;
  private readonly alsoDue: () => boolean;
  /**
   * The queues that are armed. The words of the others are left alone: the threads that complete records read them
   * at each record.
   */
  private readonly armed: QueueId[] = [];
  /** 1: it is among them. By queue. */
  private readonly isArmed: Uint8Array;

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
    this.isArmed = new Uint8Array(core.queues.length);
    this.firstLane = firstLane;
    this.progress = progress;
    this.alsoDue = alsoDue;
  }

  arm(queue: QueueId, seq: number): void {
    const base = queue * Control.words;
    Atomics.store(this.control, base + Control.doorbellAt, seq);
    Atomics.store(this.control, base + Control.doorbellArmed, 1);
    if (this.isArmed[queue] === 1) return;
    this.isArmed[queue] = 1;
    this.armed.push(queue);
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

  spin(microseconds: number): boolean {
    Atomics.store(this.shared, Shared.engineAsleep, 1);
    const isDue = this.due() || this.core.spinForDoorbell(microseconds);
    Atomics.store(this.shared, Shared.engineAsleep, 0);
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
    for (const q of this.armed) {
      if (q >= this.firstLane && !arrived) continue;
      const base = q * Control.words;
      if (Atomics.load(control, base + Control.doorbellArmed) === 0) continue;
      const completed = Atomics.load(control, base + Control.completed);
      if (((completed - control[base + Control.doorbellAt]) | 0) >= 0) return true;
    }
    return false;
  }

  private disarm(): void {
    for (const q of this.armed) {
      this.isArmed[q] = 0;
      Atomics.store(this.control, q * Control.words + Control.doorbellArmed, 0);
    }
    this.armed.length = 0;
  }
}
