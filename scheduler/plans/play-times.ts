// Memory for the times of a play while a trace is recorded. The play is cut into parts, and the times of a part are recorded
// while the next part is under way.
//
// Invariant: two sets of lists, used by turns; a set is filled anew only when its part is recorded.
import { RecordTimes } from '../../devices/backend.js';
import { type PlannedProgram, recordsIn } from './planned-program.js';

/**
 * Limit for the records of a part, over all queues, unless an iteration has more. All queues wait for each other between two
 * parts, and a play ends when its last part is recorded: both take some hundredths of the time of a part, or less.
 */
const PART_RECORDS = 2 ** 15;

export class PlayTimes {
  /** Iterations of a part at most. */
  readonly iterations: number;
  private readonly lengths: readonly number[];
  private readonly sets: Float64Array[][] = [];
  private turn = 0;

  constructor({ queues }: PlannedProgram) {
    this.lengths = queues.map(recordsIn);
    const all = this.lengths.reduce((sum, length) => sum + length, 0);
    this.iterations = Math.max(1, Math.floor(PART_RECORDS / Math.max(1, all)));
  }

  /** Lists for that many iterations, filled with NaN. */
  take(iterations: number): readonly Float64Array[] {
    const { lengths, sets, turn } = this;
    this.turn = 1 - turn;
    const sizes = lengths.map((length) => iterations * length * RecordTimes.doubles);
    const set = sets[turn];
    if (set === undefined || set.some((list, i) => list.length < sizes[i]))
      sets[turn] = sizes.map((size) => new Float64Array(size).fill(Number.NaN));
    else set.forEach((list, i) => void list.fill(Number.NaN, 0, sizes[i]));
    return sets[turn].map((list, i) => list.subarray(0, sizes[i]));
  }
}
