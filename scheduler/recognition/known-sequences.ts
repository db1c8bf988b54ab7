// The sequences that recognition keeps, planned or not: a few, of not too many tasks together. The one that was not used for the longest
// time goes first.
import type { TaskInsertion } from '../engine/task-insertion.js';
import { RecognitionRecord } from './record.js';
import type { Sequence } from './sequence.js';

/** Limits for the sequences that are kept: their number, and their tasks together. */
const MOST_SEQUENCES = 16;
const MOST_TASKS_IN_ALL = 2 ** 17;

export class KnownSequences {
  readonly record: RecognitionRecord = new RecognitionRecord();
  /** The last used first. */
  private list: readonly Sequence[] = [];
  private stretches = 0;
  /** Called before a sequence goes, and after that. */
  private readonly leaves: (sequence: Sequence) => void;
  private readonly left: (sequence: Sequence) => void;

  constructor(leaves: (sequence: Sequence) => void, left: (sequence: Sequence) => void) {
    this.leaves = leaves;
    this.left = left;
  }

  /** The last used first. */
  get all(): readonly Sequence[] {
    return this.list;
  }

  get hasPlans(): boolean {
    return this.list.some(({ planned }) => planned !== undefined);
  }

  get hasStretches(): boolean {
    return this.stretches > 0;
  }

  /** A sequence that begins with that insertion. `isStray`: one without a plan, if possible. */
  like(insertion: TaskInsertion, rank: number | undefined, isStray: boolean): Sequence | undefined {
    const alike = this.list.filter(
      (known) =>
        !known.isStretch && known.isAt(0, insertion, [], rank) && !(isStray && known.planned),
    );
    return alike.find(({ refused }) => refused === '') ?? alike[0];
  }

  keep(sequence: Sequence): void {
    if (sequence.isStretch) this.stretches++;
    this.list = [sequence, ...this.list];
    let tasks = 0;
    for (const [i, known] of this.list.entries()) {
      tasks += known.count;
      if (i > 0 && (i >= MOST_SEQUENCES || tasks > MOST_TASKS_IN_ALL))
        this.forget(known, 'too many others came');
    }
  }

  used(sequence: Sequence): void {
    this.list = [sequence, ...this.list.filter((other) => other !== sequence)];
  }

  forget(sequence: Sequence, why: string): void {
    if (!this.list.includes(sequence)) return;
    this.leaves(sequence);
    this.list = this.list.filter((other) => other !== sequence);
    if (sequence.isStretch) this.stretches--;
    if (sequence.planned !== undefined) this.record.givesUp(sequence, why);
    sequence.planned?.plan.close();
    sequence.planned = undefined;
    this.left(sequence);
  }
}
