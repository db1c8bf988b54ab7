// The offsets between the clocks of the ranks, for traces. A rank asks rank 0 for its time (clock-offset.ts).
// A rank makes a few measurements where a run begins, and a few where its tasks are over. Readers of a trace take the
// best measurement of either end and interpolate the drift.
import { clockOffset } from '../../devices/network/clock-offset.js';
import { Wire, type WireRecord } from '../../devices/network/wire.js';
import type { RankHost } from './host.js';
import type { RankLinks } from './links.js';

/** Measurements at each end of a run. */
const SAMPLES = 8;

export class RankClocks {
  private readonly engine: RankHost;
  private readonly ranks: RankLinks;
  private left = 0;
  private underWay = false;

  constructor(engine: RankHost, ranks: RankLinks) {
    this.engine = engine;
    this.ranks = ranks;
  }

  /** Makes some measurements, one after the other, if the run is traced. */
  measure(): void {
    if (!this.engine.x.tracing || this.ranks.rank === 0) return;
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
    const measured = clockOffset(asked, words[at + 3], now);
    this.engine.observer?.clock(from, measured.at, measured.offset, measured.error);
    this.underWay = false;
    if (this.left > 0) this.ask();
  }
}
