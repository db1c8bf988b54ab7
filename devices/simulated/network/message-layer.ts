// The effects of messages on memory (hazards H5, H12, H18): a send reads its source as late as it can, a receive
// is cancelled or completes but never both, and the same datum is received once per version.
import { Random } from '../machine/random.js';

/** A block of memory with a version in it. */
export interface Block {
  version: number;
}

interface Send {
  readonly source: Block;
  readonly destination: Block;
}

export class MessageLayer {
  private readonly random: Random;
  private readonly sends: Map<number, Send> = new Map();
  private next = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  /** Starts a send; the source is read at the last moment before completion. */
  send(source: Block, destination: Block): number {
    const id = this.next++;
    this.sends.set(id, { source, destination });
    return id;
  }

  get open(): number {
    return this.sends.size;
  }

  /** Completes some open send (any order) and returns its request, or -1. */
  progress(): number {
    const ids = [...this.sends.keys()];
    if (ids.length === 0) return -1;
    const id = this.random.pick(ids);
    const { source, destination } = this.sends.get(id) as Send;
    destination.version = source.version;
    this.sends.delete(id);
    return id;
  }

  /** Asks to cancel; false: it was matched already and will complete, so the buffer stays in use until then. */
  cancel(id: number): boolean {
    if (!this.sends.has(id) || this.random.chance(0.5)) return false;
    this.sends.delete(id);
    return true;
  }
}

/** One receive per (datum, version); later consumers attach. The rule of the runtime (H18). */
export class Receives {
  /** Receives posted. */
  posted = 0;
  private readonly inFlight: Set<string> = new Set();

  want(datum: number, version: number): 'posted' | 'attached' {
    const key = `${datum}@${version}`;
    if (this.inFlight.has(key)) return 'attached';
    this.inFlight.add(key);
    this.posted++;
    return 'posted';
  }
}

/** Calls that wait for running kernels (H8): while a kernel spins for data, the caller of one is stuck. */
export class SpinningDevice {
  spinning = false;
  readonly deadlocks: string[] = [];

  /** A call of the driver; the names that synchronise implicitly are refused while a kernel spins. */
  call(name: string): void {
    const synchronises = /alloc|free|pin|moduleLoad|nullStream|syncCopy/i.test(name);
    if (this.spinning && synchronises) this.deadlocks.push(name);
  }
}
