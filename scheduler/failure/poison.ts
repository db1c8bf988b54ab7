// Data that lose their value: a writer fails, is cancelled, or is dropped.
//
// The rule (docs/guide.md, "Abort and failure"): in program order, a writer that fails, is cancelled or is dropped leaves
// its datum without a value, whatever the datum had before. The next task that writes all of it, or `set`, gives it a
// value again (stages/poison.ts). `restore` brings the value from before back if that is still there.
//
// The moment keeps program order. A dropped writer poisons its outputs when all users of them that were inserted before it
// were issued or are over (dropped-tasks.ts). An issued writer cures its outputs at its issue, in the order of issue. It
// poisons them when the engine sees it fail, unless a later writer has decided by then. The engine may see completions
// in another order than they happened.
// Spawned tasks run before the tasks behind their parent, whatever their numbers: what they do to its data has its place.
// What never became a task (held tasks, tasks of other ranks) marks its outputs at once. Tasks that were inserted before
// the mark and wait still see what was there before it (`Directory.marked`). Writers among them decide on that: by the mark, a
// receive of the failed run's data may not have ended yet.
// Invariant: `poisonedBy[d]` is the last writer of `d` that decided on it: one that overwrites all of it and was issued, or
// one that failed. effects.ts also marks the results that issued tasks computed from a failed writer.
import { Status } from '../../devices/backend.js';
import { guards } from '../../devices/guards.js';
import type { DatumId, TaskId } from '../../devices/handles.js';
import { type Directory, Poison } from '../../devices/memory/directory.js';
import type { StageContext } from '../../stages/context.js';
import { decide, isLater, markBehind, placeIn, valueAt } from '../../stages/poison.js';
import { Execution } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';

/** Marks the outputs of the task in `row`, which did not write them, or not all of them. */
export function poisonOutputs(x: StageContext, row: number, status: number): void {
  if (!guards.poisonOutputs) return;
  const { tasks, directory: dir } = x;
  const task = tasks.idOf(row);
  const { modes, takesOver, network, combines } = x.classes[tasks.classOf[row]];
  // What a receive should have brought is on another rank. The copy here may be older than the run.
  const isCopy = network !== undefined && guards.restoresLatest;
  const first = tasks.flowStart[row];
  for (let i = 0; i < modes.length; i++) {
    if (modes[i] === AccessMode.read) continue;
    const d = tasks.flowDatum[first + i];
    const id = placeIn(x, task, d);
    const marked = guards.endsBeforeMark ? markBehind(x, d, id) : undefined;
    const now = valueAt(dir, d, marked);
    const isDecided = isLater(x, now.by, id) && guards.laterWriterDecides;
    const keepsRest =
      takesOver === true && status === Status.cancelled && modes[i] === AccessMode.readWrite;
    const poison = keepsRest
      ? Poison.notTaken
      : poisonOf(dir, d, modes[i], {
          ...{ id, status, lacksPartials: combines === true && guards.partialSums },
          isIssued: isCopy || tasks.execution[row] !== Execution.none,
        });
    // A later, cancelled task, or what the mark stands for, would have changed the older value. That is the value that this task
    // did not write.
    const isWeak = dir.poison[d] === Poison.outdated || dir.poison[d] === Poison.notTaken;
    const spoilsOlder = isWeak && poison !== Poison.notTaken;
    if (isDecided) {
      if (marked === undefined && spoilsOlder) dir.setPoison(d, poison);
      continue;
    }
    // Whatever left the datum without a value before has done more than that.
    if (poison === Poison.notTaken && now.poison !== Poison.none) continue;
    const isWorse =
      status !== Status.cancelled || now.poison === Poison.none || poison < now.poison;
    decide(dir, d, marked, { poison: isWorse ? poison : now.poison, by: id });
    // The mark stays: `setPoison` would end it.
    if (marked !== undefined && spoilsOlder) dir.poison[d] = poison;
  }
}

/**
 * Marks the data that the task in `row` writes. What it has spawned is over, and has not done its part: its own last word on
 * these data comes after those of all spawned tasks.
 */
export function poisonFamily(x: StageContext, row: number): void {
  const { tasks, directory } = x;
  const { modes } = x.classes[tasks.classOf[row]];
  const first = tasks.flowStart[row];
  for (let i = 0; i < modes.length; i++) {
    if (modes[i] === AccessMode.read) continue;
    const d = tasks.flowDatum[first + i];
    directory.poisonedBy[d] = tasks.idOf(row);
    directory.setPoison(d, Poison.writerFailed);
  }
}

/** How a task ended. */
interface End {
  readonly id: TaskId;
  readonly status: number;
  /** It was issued, or was dropped before. */
  readonly isIssued: boolean;
  /** It should have combined partial results: what is there may be one of them, the value at no place of the program. */
  readonly lacksPartials: boolean;
}

/** The poison of datum `d` after a task that should have written it. */
function poisonOf(dir: Directory, d: DatumId, mode: number, end: End): number {
  const { id, status, isIssued, lacksPartials } = end;
  if (status !== Status.cancelled) return Poison.writerFailed;
  // If the task only overwrites it, the older copies were given up when the task was issued.
  const isGone = isIssued ? mode === AccessMode.write : dir.validMask[d] === 0;
  if (lacksPartials || lacksElements(dir, d, id)) return Poison.writerCancelled;
  return isGone ? Poison.writerCancelled : Poison.outdated;
}

/** Whether parts of a datum had newer elements than its memory, in which no task before `id` has written all of it. */
function lacksElements({ poison, info }: Directory, d: DatumId, id: TaskId): boolean {
  if (!guards.partsSealed) return false;
  const until = info[d]?.partsUntil;
  return poison[d] === Poison.notTaken || (until !== undefined && ((id - until) | 0) < 0);
}

/** Marks datum `d`: its latest version is on another rank, if anywhere. The copy here may be older than the failed run. */
export function markElsewhere(dir: Directory, d: DatumId, id: TaskId): void {
  if (!guards.restoresLatest) {
    markUnwritten(dir, d, id);
    return;
  }
  const isUsable = [Poison.none, Poison.outdated, Poison.notTaken].some((p) => p === dir.poison[d]);
  mark(dir, d, id, isUsable ? Poison.writerCancelled : dir.poison[d]);
}

/** Marks datum `d`: its latest version was not written. `id` is the last task that was inserted. */
export function markUnwritten(dir: Directory, d: DatumId, id: TaskId): void {
  const isUsable = dir.poison[d] === Poison.none || dir.poison[d] === Poison.notTaken;
  const isGone = dir.validMask[d] === 0 || lacksElements(dir, d, id);
  const poison = isGone ? Poison.writerCancelled : Poison.outdated;
  mark(dir, d, id, isUsable ? poison : dir.poison[d]);
}

/** Datum `d` has this poison behind task `id`. Tasks up to that one may wait still, and read what was there before. */
function mark(dir: Directory, d: DatumId, id: TaskId, poison: number): void {
  const { poison: before, by: decidedBy } = valueAt(dir, d, undefined);
  dir.poisonedBy[d] = id;
  if (poison === before) return;
  dir.setPoison(d, poison);
  dir.marked.set(d, { by: id, before, decidedBy });
}
