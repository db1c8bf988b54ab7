// Data without a usable value: their recovery, and the errors of their readers. scheduler/failure/poison.ts has the rule,
// and marks the data.
import { HeadraceError } from '../devices/errors.js';
import { guards } from '../devices/guards.js';
import { type DatumId, NO_DATUM, type TaskId } from '../devices/handles.js';
import { type Directory, type Marked, Poison } from '../devices/memory/directory.js';
import type { StageContext } from './context.js';
import { Outcome } from './stage.js';
import { AccessMode } from './task-table.js';

/** The task whose place in program order a task has for datum `d`: its own, if it was not spawned. */
export function placeIn({ placeOf }: StageContext, task: TaskId, d: DatumId): TaskId {
  return placeOf === undefined ? task : placeOf(task, d);
}

/**
 * Task `task` writes all of datum `d` without reading it, and was issued: the datum is good from here on in program order. A
 * writer on another rank, which comes later in program order, may have left it without a value by now: that stands.
 */
export function cure(x: StageContext, d: DatumId, task: TaskId): void {
  const dir = x.directory;
  const id = placeIn(x, task, d);
  if (dir.poison[d] === Poison.none) {
    dir.poisonedBy[d] = id;
    return;
  }
  const marked = markBehind(x, d, id);
  const { poison, by } = valueAt(dir, d, marked);
  const isDecided = by === id || isLater(x, by, id);
  if (poison === Poison.none || !isDecided || !guards.laterWriterDecides)
    decide(dir, d, marked, { poison: Poison.none, by: id });
}

/** Whether a datum has a value, and the last task in program order that decided on this. */
interface Decision {
  readonly poison: number;
  readonly by: number;
}

/** The mark of datum `d` behind task `id`, which waits or is ending. */
export function markBehind(
  { directory, tasks }: StageContext,
  d: DatumId,
  id: TaskId,
): Marked | undefined {
  if (directory.marked.size === 0 || !guards.marksInOrder) return undefined;
  const marked = directory.marked.get(d);
  const isBehind = marked !== undefined && ((marked.by - id) | 0) >= 0 && tasks.contains(marked.by);
  return isBehind ? marked : undefined;
}

/** What was decided on datum `d`: before `marked`, or so far. */
export function valueAt(dir: Directory, d: DatumId, marked: Marked | undefined): Decision {
  return marked === undefined
    ? { poison: dir.poison[d], by: dir.poisonedBy[d] }
    : { poison: marked.before, by: marked.decidedBy };
}

/** A task decides on datum `d`, before `marked` if there is that mark behind it. */
export function decide(
  dir: Directory,
  d: DatumId,
  marked: Marked | undefined,
  { poison, by }: Decision,
): void {
  if (marked !== undefined) {
    dir.marked.set(d, { by: marked.by, before: poison, decidedBy: by });
    return;
  }
  dir.poisonedBy[d] = by;
  if (poison !== dir.poison[d]) dir.setPoison(d, poison);
}

/** Whether task `by` comes after task `id`, which is in the window. Then later ones are, too: other ids are of long ago. */
export function isLater({ tasks }: StageContext, by: number, id: TaskId): boolean {
  return ((by - id) | 0) > 0 && tasks.contains(by);
}

/** What was decided on datum `d` for a reader: that from before, if the datum was marked behind the reader. */
export function valueFor(x: StageContext, d: DatumId, task: TaskId): Decision {
  return valueAt(x.directory, d, markBehind(x, d, placeIn(x, task, d)));
}

/** The first datum without a usable value that the task in `row` reads, or -1. */
export function poisonedInput(x: StageContext, row: number): DatumId {
  const { tasks, directory: dir } = x;
  const { modes, restores } = x.classes[tasks.classOf[row]];
  const first = tasks.flowStart[row];
  for (let i = 0; i < modes.length; i++) {
    if (modes[i] === AccessMode.write) continue;
    const d = tasks.flowDatum[first + i];
    const poison =
      dir.poison[d] === Poison.none ? Poison.none : valueFor(x, d, tasks.idOf(row)).poison;
    if (poison !== Poison.none && poison !== restores) return d;
  }
  return NO_DATUM;
}

const WHY: readonly string[] = [
  '',
  'the task that wrote it failed',
  'the task that should have written it was cancelled',
  'a transfer of its only copy failed',
  'the task that should have written it did not run',
  'some of its elements have none',
];
/** Of data whose older value is still there. */
const REWRITE = 'write all of it again before reading it';
const RESTORE =
  'write all of it again before reading it, or take the value from before with restore()';

/** The error for a reader of a datum without a usable value; `where` says who reads it. */
export function poisonedDatum(
  dir: Directory,
  d: DatumId,
  where: { readonly task?: string; readonly stage?: string } = {},
  { poison, by }: Decision = valueAt(dir, d, undefined),
): HeadraceError {
  const datum = dir.info[d]?.name ?? `#${d}`;
  // `restore` is refused for parts, and for data that have parts.
  const restores = poison === Poison.outdated && dir.info[d]?.view === undefined;
  const remedy = restores ? RESTORE : REWRITE;
  const loss = dir.info[d]?.loss;
  const why = loss !== undefined && loss.by === by ? { cause: loss.cause } : {};
  return new HeadraceError(
    'ERR_DATUM_POISONED',
    `datum '${datum}' has no usable value: ${WHY[poison]}`,
    { datum, ...where, ...why, remedy },
  );
}

/** Fails a task that would read a datum without a usable value. */
export function failPoisoned(x: StageContext, row: number, d: DatumId, stage: string): number {
  const where = { task: x.describe(row), stage };
  const value = valueFor(x, d, x.tasks.idOf(row));
  x.hooks.fail(row, poisonedDatum(x.directory, d, where, value));
  return Outcome.fail;
}
