// A graph that repeats, such as the steps of a stencil, walks in rounds: after a number of insertions the state of the walk is the
// same again, but for indices that have moved. Such a round is recorded, and the next ones are compared with it (round.ts) as long as the
// functions of the graph return what they returned in it, moved. Where they do not, the walk goes on from the state behind the last whole
// round, and passes over the tasks of the next one that were inserted.
// Invariant: the insertions are those of a walk without rounds, in the same order; with promises of the classes (promise.ts), if they are kept.

import type { Datum } from '../program/datum.js';
import type { ClassShift } from './class-shift.js';
import type { GraphClass } from './graph-class.js';
import type { GraphTask } from './graph-task.js';
import type { Portion } from './portion.js';
import type { ReadyQueue } from './ready-tasks.js';
import { Round } from './round.js';
import { RoundRecorder, type Walked } from './round-recorder.js';
import { Value } from './values.js';
import { WalkState } from './walk-state.js';

/** Insertions before the first look at the state. Each look that finds nothing doubles the number. @internal */
export const LEAST_GAP = 64;
/** Tasks of the longest round. */
const LONGEST = 8192;
/** States that are compared with one. Each comparison takes as long as some hundred insertions. */
const MOST_TRIES = 8;
/** Rounds that pay for finding them. */
const WORTH = 8;

/** A state that may come again. */
interface Mark {
  readonly state: WalkState;
  /** The next task, and its first datum. */
  readonly cls: GraphClass;
  readonly datum: Datum | undefined;
  readonly ready: number;
  /** Known tasks so far. */
  readonly turn: number;
  length: number;
  tries: number;
}

/** @internal */
export class Rounds {
  private readonly walk: Walked;
  private readonly ready: ReadyQueue;
  private readonly portion: Portion;
  private mark: Mark | undefined;
  private gap = LEAST_GAP;

  constructor(walk: Walked, ready: ReadyQueue, portion: Portion) {
    this.walk = walk;
    this.ready = ready;
    this.portion = portion;
  }

  /** Called behind insertions. Returns how many come before the next call. */
  look(): number {
    const { mark, walk } = this;
    // Tasks that become known without an input come next.
    if (this.ready.size === 0) return this.pause();
    if (mark === undefined) return this.begin();
    mark.length++;
    if (!this.isLike(mark)) return mark.length === LONGEST ? this.pause() : 1;
    const state = this.state();
    const shifts = state === undefined ? undefined : mark.state.shiftsTo(state, walk.classes);
    if (state !== undefined && shifts !== undefined) return this.record(mark, state, shifts);
    return ++mark.tries === MOST_TRIES ? this.pause() : 1;
  }

  private state(): WalkState | undefined {
    return WalkState.of(this.walk.waiting, this.ready);
  }

  private begin(): number {
    const state = this.state();
    if (state === undefined) return this.pause();
    const { first, size } = this.ready;
    const turn = this.walk.waiting.count;
    const datum = firstDatum(first);
    this.mark = { state, cls: first.cls, datum, ready: size, turn, length: 0, tries: 0 };
    return 1;
  }

  /** Whether the state may be that of the mark: a quick look. */
  private isLike({ cls, datum, ready, turn, length }: Mark): boolean {
    const { first, size } = this.ready;
    const isSameSize = size === ready && this.walk.waiting.count - turn === length;
    return isSameSize && first.cls === cls && firstDatum(first) === datum;
  }

  private pause(): number {
    this.mark = undefined;
    this.gap *= 2;
    return this.gap;
  }

  /** Walks one more round of that length, and all that follow it. `before`: the state before it. */
  private record({ length }: Mark, before: WalkState, shifts: ClassShift[]): number {
    const { walk, ready, portion } = this;
    const recorder = new RoundRecorder(walk, shifts);
    for (let n = 0; n < length; n++) {
      if (ready.size === 0) return this.pause();
      recorder.insert(ready.take());
    }
    const state = ready.size === 0 || !recorder.isUsable ? undefined : this.state();
    if (state === undefined || !before.isMovedTo(state, shifts)) return this.pause();
    const { waiting } = walk;
    const round = new Round(recorder.steps, shifts, waiting.count - before.oldest);
    for (const task of waiting.all()) round.keep(task);
    const { rounds, inserted } = round.goOn(portion, walk.isChecked);
    portion.pass(inserted);
    if (rounds > 0) waiting.move(rounds, length, shifts, recorder.moveData(rounds));
    for (const { cls } of recorder.steps) walk.counts[cls.number] += rounds;
    this.pause();
    if (rounds >= WORTH) this.gap = LEAST_GAP;
    return inserted + this.gap;
  }
}

function firstDatum({ inputs }: GraphTask): Datum | undefined {
  const input = inputs[0];
  return input instanceof Value ? input.of.datum : (input as Datum | undefined);
}
