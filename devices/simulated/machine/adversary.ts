// The freedom of the simulated machine: it does nothing that a real one may not do, only more often. Every choice is
// seeded. Invariant: an adversary changes the times of events and of their visibility, never the port's promises.
import { Random } from './random.js';

export interface AdversaryOptions {
  readonly seed: number;
  /** Durations are multiplied by up to 2^spread or divided by as much. */
  readonly spread: number;
  /** Probability that a poll does not show a finished command of a queue yet (late and batched completions). */
  readonly holdBack: number;
  /** Probability that the engine thread is delayed before a poll (a slow host), by up to `stallNs`. */
  readonly stall: number;
  readonly stallNs: number;
  /** Probability of a wake-up without reason. */
  readonly spurious: number;
}

/** An adversary that changes nothing. */
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

  /** The real duration of a command. */
  stretch(ns: number): number {
    const { spread } = this.options;
    return spread === 0 ? ns : ns * 2 ** ((this.random.real() * 2 - 1) * spread);
  }

  /** The number of the `finished` hidden commands that become visible now. */
  shown(finished: number): number {
    if (!this.random.chance(this.options.holdBack)) return finished;
    return this.random.below(finished + 1);
  }

  /** Nanoseconds that the engine thread loses before a poll. */
  heldUp(): number {
    return this.random.chance(this.options.stall) ? this.random.real() * this.options.stallNs : 0;
  }

  wakesForNothing(): boolean {
    return this.random.chance(this.options.spurious);
  }
}
