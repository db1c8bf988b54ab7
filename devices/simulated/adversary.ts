// What the simulated machine may do that a real one may do, only more often. Every choice is seeded.
// Invariant: an adversary changes when things happen and when they are seen, never what the port promises.
import { Random } from './random.js';

export interface AdversaryOptions {
  readonly seed: number;
  /** Durations are multiplied by up to 2^spread or divided by as much. */
  readonly spread: number;
  /** Probability that a finished command of a queue is not shown at a poll yet (late and batched completions). */
  readonly holdBack: number;
  /** Probability that the engine thread is held up before a poll (a slow host), by up to `stallNs`. */
  readonly stall: number;
  readonly stallNs: number;
  /** Probability of a wake-up without reason. */
  readonly spurious: number;
}

/** An adversary that leaves everything as it is. */
export const calm: AdversaryOptions = {
  seed: 1,
  spread: 0,
  holdBack: 0,
  stall: 0,
  stallNs: 0,
  spurious: 0,
};

export class Adversary {
  readonly options: AdversaryOptions;
  private readonly random: Random;
  readonly active: boolean;

  constructor(options: AdversaryOptions) {
    this.options = options;
    this.random = new Random(options.seed);
    this.active = options.spread > 0 || options.holdBack > 0 || options.stall > 0;
  }

  /** The duration a command really takes. */
  stretch(ns: number): number {
    const { spread } = this.options;
    return spread === 0 ? ns : ns * 2 ** ((this.random.real() * 2 - 1) * spread);
  }

  /** Of `finished` commands not shown yet, how many are shown now. */
  shown(finished: number): number {
    if (!this.random.chance(this.options.holdBack)) return finished;
    return this.random.below(finished + 1);
  }

  /** Nanoseconds the engine thread loses before it looks. */
  heldUp(): number {
    return this.random.chance(this.options.stall) ? this.random.real() * this.options.stallNs : 0;
  }

  wakesForNothing(): boolean {
    return this.random.chance(this.options.spurious);
  }
}
