// Faults to inject, as plain data: the command that fails, and the way. The backend counts kernels and copies as it
// starts them, so a plan hits the same command in every replay.
// Invariant: the engine sees a fault only in ways of a real driver: a status, or a delay.

import { Status } from '../../backend.js';
import type { SpaceId } from '../../handles.js';

/** The rank that it strikes; default the first. */
interface Struck {
  readonly rank?: number;
}

export type Fault = Struck & MachineFault;

type MachineFault =
  /** The `at`-th kernel (from 0) returns `code`. */
  | { readonly kind: 'kernel'; readonly at: number; readonly code: number }
  /** The `at`-th copy fails in the driver. */
  | { readonly kind: 'transfer'; readonly at: number }
  /** From the `at`-th command on, all commands on GPU space `space` fail. */
  | { readonly kind: 'deviceLost'; readonly at: number; readonly space: SpaceId }
  /** The `at`-th command never ends. */
  | { readonly kind: 'hang'; readonly at: number }
  /** The engine thread stops for `ns` nanoseconds before the `at`-th poll. */
  | { readonly kind: 'slowHost'; readonly at: number; readonly ns: number };

/** Faults between ranks. */
export type NetworkFault =
  /** The process of a rank dies at `ns`. */
  | { readonly kind: 'peerLost'; readonly rank: number; readonly ns: number }
  /** The `at`-th flush of a rank fails; `waits`: it does not return before the rank has news from the network. */
  | { readonly kind: 'flush'; readonly rank: number; readonly at: number; readonly waits?: boolean }
  /** The `at`-th control message is late. */
  | { readonly kind: 'late'; readonly at: number; readonly ns: number };

/** Counts commands and decides the fate of each. */
export class FaultPlan {
  readonly faults: readonly Fault[];
  private commands = 0;
  private kernels = 0;
  private copies = 0;
  private polls = 0;
  private readonly lost: Set<number> = new Set();
  /** Faults that took effect so far. */
  injected = 0;

  constructor(faults: readonly Fault[]) {
    this.faults = faults;
  }

  /** Status of the kernel that starts now on `space`: ok or a failure; NaN: it never ends. */
  kernel(space: SpaceId): number {
    return this.command(space, 'kernel', this.kernels++);
  }

  /** Status of the copy that starts now on a queue of `space`. */
  copy(space: SpaceId): number {
    return this.command(space, 'transfer', this.copies++);
  }

  /** Nanoseconds by which the host is late at this poll. */
  poll(): number {
    const at = this.polls++;
    let late = 0;
    for (const fault of this.faults) {
      if (fault.kind === 'slowHost' && fault.at === at) {
        late += fault.ns;
        this.injected++;
      }
    }
    return late;
  }

  private command(space: SpaceId, kind: 'kernel' | 'transfer', nth: number): number {
    if (this.faults.length === 0) return Status.ok;
    const at = this.commands++;
    for (const fault of this.faults) {
      if (fault.kind === 'deviceLost' && fault.at === at && space === fault.space)
        this.lose(fault.space);
      else if (fault.kind === 'deviceLost' && at > fault.at && !this.lost.has(fault.space)) {
        this.lose(fault.space);
      } else if (fault.kind === 'hang' && fault.at === at) {
        this.injected++;
        return Number.NaN;
      } else if (fault.kind === kind && fault.at === nth) {
        this.injected++;
        return fault.kind === 'kernel' ? fault.code : Status.driver;
      }
    }
    return this.lost.has(space) ? Status.deviceLost : Status.ok;
  }

  private lose(space: SpaceId): void {
    if (this.lost.has(space)) return;
    this.lost.add(space);
    this.injected++;
  }
}
