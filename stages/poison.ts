// Data without a usable value: their recovery, and the errors of their readers. scheduler/failure/poison.ts has the rule,
// and marks the data.
import { HeadraceError } from '../devices/errors.js';
import { guards } from '../devices/guards.js';
import { type DatumId, NO_DATUM, type TaskId } from '../devices/handles.js';
import { type Directory, Poison } from '../devices/memory/directory.js';
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
  if (dir.poison[d] !== Poison.none) {
    if (laterWriterDecided(x, d, id)) {
      const marked = dir.marked.get(d);
      if (marked !== undefined) dir.marked.set(d, { by: marked.by, before: Poison.none });
      return;
    }
    dir.setPoison(d, Poison.none);
  }
  dir.poisonedBy[d] = id;
}

/** Whether task `id`, or one after it in program order, poisoned datum `d`. */
function laterWriterDecided({ directory, tasks }: StageContext, d: DatumId, id: TaskId): boolean {
  const by = directory.poisonedBy[d];
  const isLater = by === id || (((by - id) | 0) > 0 && tasks.contains(by));
  return isLater && guards.laterWriterDecides;
}

/** The poison of datum `d` for a reader: that from before, if the datum was marked behind the reader. */
function poisonFor(x: StageContext, d: DatumId, task: TaskId): number {
  const { directory, tasks } = x;
  const marked = directory.marked.get(d);
  const id = placeIn(x, task, d);
  const isBefore = marked !== undefined && ((marked.by - id) | 0) >= 0 && tasks.contains(marked.by);
  return isBefore && guards.marksInOrder ? marked.before : directory.poison[d];
}

/** The first datum without a usable value that the task in `row` reads, or -1. */
export function poisonedInput(x: StageContext, row: number): DatumId {
  const { tasks, directory: dir } = x;
  const { modes, restores } = x.classes[tasks.classOf[row]];
  const first = tasks.flowStart[row];
  for (let i = 0; i < modes.length; i++) {
    if (modes[i] === AccessMode.write) continue;
    const d = tasks.flowDatum[first + i];
    const poison = dir.poison[d] === Poison.none ? Poison.none : poisonFor(x, d, tasks.idOf(row));
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
): HeadraceError {
  const datum = dir.info[d]?.name ?? `#${d}`;
  const poison = dir.poison[d];
  // `restore` is refused for parts, and for data that have parts.
  const restores = poison === Poison.outdated && dir.info[d]?.view === undefined;
  const remedy = restores ? RESTORE : REWRITE;
  const loss = dir.info[d]?.loss;
  const why = loss !== undefined && loss.by === dir.poisonedBy[d] ? { cause: loss.cause } : {};
  return new HeadraceError(
    'ERR_DATUM_POISONED',
    `datum '${datum}' has no usable value: ${WHY[poison]}`,
    { datum, ...where, ...why, remedy },
  );
}

/** Fails a task that would read a datum without a usable value. */
export function failPoisoned(x: StageContext, row: number, d: DatumId, stage: string): number {
  x.hooks.fail(row, poisonedDatum(x.directory, d, { task: x.describe(row), stage }));
  return Outcome.fail;
}
