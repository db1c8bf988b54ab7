// The lanes of a simulated rank: sends that leave when their bytes may leave, and receives that end when their version has
// come. The network carries letters between ranks; a letter is one version for one receive.
//
// Invariants: a letter is handed to exactly one receive, of its era and key; a letter without a receive is kept as long
// as its era lasts; no send leaves while a record has failed that the engine has not handled.
import type { QueueId } from '../../handles.js';

/** One version on its way to one receive. */
export interface Letter {
  readonly era: number;
  readonly key: number;
  readonly bytes: number;
  /** Its contents, where memory is real. */
  readonly payload: Uint8Array | undefined;
  /** What the sender knew. */
  readonly knowledge: Int32Array | undefined;
}

/** Takes a letter to a rank. */
export type Carrier = (to: number, letter: Letter) => void;

/** A receive that waits for its letter. */
interface Waiting {
  readonly queue: QueueId;
  readonly run: number;
}

export class Lanes {
  /** Set when the rank joins a network. */
  carry: Carrier = () => {};
  /** Failed records of all queues, and how many of them the engine has handled. */
  failed = 0;
  private handled = 0;
  private era = 0;
  private readonly early: Map<string, Letter> = new Map();
  private readonly waiting: Map<string, Waiting> = new Map();
  private readonly held: QueueId[] = [];

  /** Whether a record has failed that the engine does not know yet. */
  get unhandled(): boolean {
    return this.failed !== this.handled;
  }

  /** The engine has handled `count` failures. Returns the lanes that were held and may go on. */
  handles(count: number): QueueId[] {
    this.handled = count;
    return this.unhandled ? [] : this.held.splice(0);
  }

  /** A lane is held until the engine has handled all failures, or until its run is cancelled. */
  hold(queue: QueueId): void {
    this.held.push(queue);
  }

  /** Takes the letter for a receive; undefined: the lane waits for it. */
  take(era: number, key: number, queue: QueueId, run: number): Letter | undefined {
    const name = `${era} ${key}`;
    const letter = this.early.get(name);
    if (letter === undefined) this.waiting.set(name, { queue, run });
    else this.early.delete(name);
    return letter;
  }

  /** A letter has come. Returns the lane that waits for it, or keeps it. */
  arrives(letter: Letter): QueueId | undefined {
    if (letter.era < this.era) return undefined;
    const name = `${letter.era} ${letter.key}`;
    const receive = this.waiting.get(name);
    if (receive === undefined) {
      this.early.set(name, letter);
      return undefined;
    }
    this.waiting.delete(name);
    return receive.queue;
  }

  /** A run is cancelled: returns the lanes whose receives no longer wait, and those that were held. */
  cancel(run: number): { readonly receives: QueueId[]; readonly held: QueueId[] } {
    const receives: QueueId[] = [];
    for (const [name, each] of this.waiting) {
      if (each.run !== run) continue;
      this.waiting.delete(name);
      receives.push(each.queue);
    }
    return { receives, held: this.held.splice(0) };
  }

  /** Letters of earlier eras have no receive any more. */
  beginEra(era: number): void {
    this.era = era;
    for (const [name, letter] of this.early) if (letter.era < era) this.early.delete(name);
  }
}
