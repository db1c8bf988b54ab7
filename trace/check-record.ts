// Checks a record before any visitor sees it: its length, the range of its times and amounts, and that it
// names only lanes, spaces and ranks of the header.
import {
  CounterKind,
  EventKind,
  NO_INDEX,
  NO_PEER,
  RecordKind,
  TaskFlag,
  type TraceHeader,
  TransferKind,
  TransferReason,
} from './format.js';

/** Largest distance of a time from the trace's start, in nanoseconds (52 days), so that sums of many times are exact. */
const MOST_TIME = 2 ** 52;

interface Layout {
  /** Least number of units of the record. */
  readonly units: number;
  /** Offsets of float64 values: times, amounts that are not negative, and differences. */
  readonly times: readonly number[];
  readonly amounts: readonly number[];
  readonly differences: readonly number[];
}

const layout = (
  units: number,
  times: readonly number[] = [],
  amounts: readonly number[] = [],
  differences: readonly number[] = [],
): Layout => ({ units, times, amounts, differences });
const every8 = (from: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => from + 8 * i);

const layouts: (Layout | undefined)[] = [];
layouts[RecordKind.end] = layout(1, [], [8, 16, 24]);
layouts[RecordKind.string] = layout(1);
layouts[RecordKind.taskClass] = layout(1);
layouts[RecordKind.datum] = layout(1, [], [8]);
layouts[RecordKind.task] = layout(2, [16]);
layouts[RecordKind.longTask] = layout(3, every8(16, 10));
layouts[RecordKind.transfer] = layout(2, [40, 48, 56], [32]);
layouts[RecordKind.dependencies] = layout(1);
layouts[RecordKind.accesses] = layout(1);
layouts[RecordKind.parameters] = layout(1);
layouts[RecordKind.counter] = layout(2, [8], every8(16, 6));
layouts[RecordKind.event] = layout(1, [8], [16]);
layouts[RecordKind.clock] = layout(1, [8], [], [16, 24]);
layouts[RecordKind.residentTask] = layout(2, [16]);
layouts[RecordKind.taskGroup] = layout(1, [16]);
layouts[RecordKind.stolen] = layout(1, [8, 16]);
layouts[RecordKind.play] = layout(1, [], [16]);

/** A record is valid, of a kind that only a newer version knows, or damaged. */
type Soundness = 'good' | 'unknown' | 'damaged';

/** Checks the records of one trace. */
export class RecordCheck {
  readonly #origin: number;
  readonly #lanes: number;
  readonly #spaces: number;
  readonly #ranks: number;

  constructor(header: TraceHeader) {
    this.#origin = Math.floor(header.clockOrigin);
    this.#lanes = header.lanes.length;
    this.#spaces = header.spaces.length;
    this.#ranks = header.ranks;
  }

  /** The record at `at`, all of whose units are in `view`. */
  look(view: DataView, at: number): Soundness {
    const kind = view.getUint8(at);
    const form = layouts[kind];
    if (form === undefined) return 'unknown';
    if (view.getUint8(at + 1) < form.units) return 'damaged';
    for (const offset of form.times) {
      if (!(Math.abs(view.getFloat64(at + offset, true) - this.#origin) <= MOST_TIME))
        return 'damaged';
    }
    for (const offset of form.amounts) {
      const value = view.getFloat64(at + offset, true);
      if (!(value >= 0 && value <= MOST_TIME)) return 'damaged';
    }
    for (const offset of form.differences) {
      if (!(Math.abs(view.getFloat64(at + offset, true)) <= Number.MAX_SAFE_INTEGER))
        return 'damaged';
    }
    return this.#names(view, at, kind);
  }

  #names(view: DataView, at: number, kind: number): Soundness {
    switch (kind) {
      case RecordKind.task:
      case RecordKind.longTask:
      case RecordKind.residentTask:
      case RecordKind.taskGroup: {
        const stages = view.getUint8(at + 6) & TaskFlag.stagesMask;
        const places = this.#isSpace(view.getUint8(at + 4)) && this.#isLane(view.getUint8(at + 5));
        return places && stages < TaskFlag.stagesMask ? 'good' : 'damaged';
      }
      case RecordKind.transfer: {
        const places =
          this.#isLane(view.getUint8(at + 4)) &&
          this.#isSpace(view.getUint8(at + 5)) &&
          this.#isSpace(view.getUint8(at + 6));
        const peer = view.getInt32(at + 20, true);
        if (!places || peer < NO_PEER || peer >= this.#ranks) return 'damaged';
        const isKnown =
          view.getUint8(at + 2) < TransferKind.count &&
          view.getUint8(at + 3) < TransferReason.count;
        return isKnown ? 'good' : 'unknown';
      }
      case RecordKind.stolen:
        return this.#isLane(view.getUint8(at + 2)) ? 'good' : 'damaged';
      case RecordKind.counter:
        if (!this.#isSpace(view.getUint8(at + 3))) return 'damaged';
        return view.getUint8(at + 2) <= CounterKind.progress ? 'good' : 'unknown';
      case RecordKind.event:
        if (!this.#isSpace(view.getUint8(at + 3))) return 'damaged';
        return view.getUint8(at + 2) < EventKind.count ? 'good' : 'unknown';
      case RecordKind.clock:
        return view.getUint16(at + 2, true) < this.#ranks ? 'good' : 'damaged';
      default:
        return 'good';
    }
  }

  #isLane(index: number): boolean {
    return index < this.#lanes || index === NO_INDEX;
  }

  #isSpace(index: number): boolean {
    return index < this.#spaces || index === NO_INDEX;
  }
}
