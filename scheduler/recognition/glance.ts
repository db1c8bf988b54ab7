// A look at a run that nothing is known of. It costs some nanoseconds per task, because it looks at few insertions: the first ones,
// then one in STRIDE, and those on the same data as one that it has marked. The first two kinds make a number that stands for the
// run (signatures.ts). The marked ones show that the run may repeat a stretch: they come at the same distances again.
//
// What it finds may be wrong, and is only a reason to record (stretch-finder.ts).
import type { Column, DatumId } from '../../devices/handles.js';
import type { TaskInsertion } from '../engine/task-insertion.js';
import { numberOf } from './periods.js';

/** Insertions at the begin of a run that are all looked at. */
const BEGIN = 16;
const STRIDE = 32;
/** Insertions after which the mark moves for the first time, unless it has come again; then twice as many, and so on. */
const FIRST_MOVE = 64;
/** Most marks between two that are compared: so often one may come within a stretch. */
const MOST_LAGS = 8;
const KEPT = 2 * MOST_LAGS;
/** Insertions of equal stretches that are reason enough. */
const LEAST_SEEN = 512;
const FOLD = 0x01000193;
const NONE: readonly number[] = [];
const NO_DATUM = -1;

export class Glance {
  /** The number of the first insertion, and one that stands for those that were looked at. */
  first = 0;
  run = 0;
  /** The insertions may repeat a stretch: so many of them. */
  repeated = 0;
  /** Those with that datum first, and that datum last, are marked. */
  private firstDatum: number = NO_DATUM;
  private lastDatum: number = NO_DATUM;
  /** The place of the insertion in the run that is looked at next, whatever its data. */
  private lookAt = 0;
  private stride = STRIDE;
  private least = LEAST_SEEN;
  private moveAt = FIRST_MOVE;
  /** Marks since the mark was to move last. */
  private since = 0;
  /** Marks so far, the place of the last one, and the last distances joined with the numbers of the insertions. */
  private marks = 0;
  private lastMark = 0;
  private readonly keys: Int32Array = new Int32Array(KEPT);
  /** By lag: equal keys in a row, and the place where they begin. */
  private readonly equal: Int32Array = new Int32Array(MOST_LAGS + 1);
  private readonly begin: Int32Array = new Int32Array(MOST_LAGS + 1);

  /** A run begins. `isClose`: all of its insertions are looked at. */
  start(isClose: boolean): void {
    this.stride = isClose ? 1 : STRIDE;
    this.run = 0;
    this.lookAt = 0;
    this.least = LEAST_SEEN;
    this.again(0);
  }

  /** Looks for a stretch from a place in the run on. After looking in vain, a longer one is needed. */
  again(place: number, wasInVain = false): void {
    if (wasInVain) this.least *= 2;
    this.repeated = 0;
    this.firstDatum = NO_DATUM;
    this.lastDatum = NO_DATUM;
    this.moveAt = place + FIRST_MOVE;
  }

  /** Whether the insertion at a place in the run is not looked at. `last`: the place of its last datum. */
  passes(flows: Column<Int32Array, DatumId>, last: number, place: number): boolean {
    return place < this.lookAt && (flows[0] !== this.firstDatum || flows[last] !== this.lastDatum);
  }

  /** Looks at an insertion that it does not pass. */
  see(insertion: TaskInsertion, place: number): void {
    const { flows, cls } = insertion;
    const number = numberOf(insertion, NONE, 0);
    const last = cls.modes.length - 1;
    const isMarked = flows[0] === this.firstDatum && flows[last] === this.lastDatum;
    if (isMarked) this.mark(place, number);
    if (place < this.lookAt) return;
    if (this.lookAt === 0) this.first = number;
    this.run = (Math.imul(this.run, FOLD) + number) | 0;
    this.lookAt = place + (place < BEGIN ? 1 : this.stride);
    if (this.firstDatum === NO_DATUM || place >= this.moveAt) {
      if (this.since === 0 || this.firstDatum === NO_DATUM)
        this.moveMark(flows[0] ?? NO_DATUM, flows[last] ?? NO_DATUM, place);
      this.since = 0;
      if (place >= this.moveAt) this.moveAt = 2 * place;
    }
  }

  private moveMark(firstDatum: number, lastDatum: number, place: number): void {
    this.firstDatum = firstDatum;
    this.lastDatum = lastDatum;
    this.lastMark = place;
    this.marks = 0;
    this.equal.fill(0);
  }

  private mark(place: number, number: number): void {
    const { keys, equal, begin, marks, lastMark } = this;
    const key = Math.imul(place - lastMark, FOLD) ^ number;
    keys[marks % KEPT] = key;
    for (let lag = 1; lag <= MOST_LAGS && lag <= marks; lag++) {
      if (keys[(marks - lag) % KEPT] !== key) equal[lag] = 0;
      else {
        if (equal[lag]++ === 0) begin[lag] = lastMark;
        const isEnough = equal[lag] >= lag && place - begin[lag] >= this.least;
        if (isEnough) this.repeated = Math.max(this.repeated, place - begin[lag]);
      }
    }
    this.marks = marks + 1;
    this.lastMark = place;
    this.since++;
  }
}
