// Clocks of the ranks against each other, for traces: a rank asks rank 0 for its time and takes the answer as given in
// the middle of the way there and back, so that the offset is right within half the round trip.
// A few measurements follow each other where a run begins, and a few where its tasks are over: readers take the best of
// either end, and what lies between them is drift.
import { Wire, type WireRecord } from '../devices/network-wire.js';
import type { Engine } from './engine.js';
import type { Ranks } from './ranks.js';

/** Measurements at either end of a run. */
const SAMPLES = 8;

export class RankClocks {
  private readonly engine: Engine;
  private readonly ranks: Ranks;
  private left = 0;
  private underWay = false;

  constructor(engine: Engine, ranks: Ranks) {
    this.engine = engine;
    this.ranks = ranks;
  }

  /** Measures some times, one after the other, if the run is traced. */
  measure(): void {
    if (this.engine.tracer === undefined || this.ranks.rank === 0) return;
    this.left = SAMPLES;
    if (!this.underWay) this.ask();
  }

  private ask(): void {
    this.left--;
    this.underWay = true;
    this.ranks.device.wire.write(0, Wire.clock, [this.engine.backend.now()]);
    this.engine.wake();
  }

  /** A question or an answer. */
  take(from: number, { kind, words, at }: WireRecord): void {
    const now = this.engine.backend.now();
    const asked = words[at + 2];
    if (kind === Wire.clock) {
      this.ranks.device.wire.write(from, Wire.time, [asked, now]);
      return;
    }
    const there = words[at + 3];
    const half = (now - asked) / 2;
    this.engine.tracer?.clock(from, asked + half, there - asked - half, half);
    this.underWay = false;
    if (this.left > 0) this.ask();
  }
}
