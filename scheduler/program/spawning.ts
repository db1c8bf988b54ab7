// What a body may spawn (scheduler/engine/joins.ts): the possible mistakes, and the errors for them.
import { HeadraceError } from '../../devices/errors.js';
import type { DatumId, TaskId } from '../../devices/handles.js';
import type { Engine } from '../engine/engine.js';
import type { ProgramInsertion } from '../engine/task-insertion.js';

type Spawning = Pick<Engine, 'joins' | 'directory' | 'tasks' | 'x'>;

/**
 * A task that a body spawns must be able to end before the task of the body does.
 * @throws HeadraceError `ERR_SPAWN_ORDER`
 */
export function checkSpawn(
  engine: Spawning,
  parent: TaskId,
  { cls, flows, after }: ProgramInsertion,
  {
    isReducedInto,
    wholeOf,
  }: {
    readonly isReducedInto: (d: DatumId) => boolean;
    /** The datum in place of a part that the body has made. */
    readonly wholeOf: (d: DatumId) => DatumId;
  },
): void {
  const { joins, directory } = engine;
  for (let i = 0; i < cls.modes.length; i++) {
    const d = flows[i];
    const name = directory.info[d]?.name ?? '';
    const problem = joins.problem(parent, wholeOf(d), cls.modes[i]);
    if (problem === 'writes')
      throw refusal(
        engine,
        parent,
        cls.name,
        `writes datum '${name}', which its parent only reads`,
        {
          datum: name,
          remedy: `declare the flow of the parent as readWrite`,
        },
      );
    if (problem === 'waits' || (isReducedInto(d) && !joins.uses(parent, d)))
      throw refusal(
        engine,
        parent,
        cls.name,
        `uses datum '${name}', which is not among the data of its parent, and would wait for the end of its parent`,
        { datum: name, remedy: `give datum '${name}' to the parent as well` },
      );
  }
  for (const handle of after ?? [])
    if (!joins.mayFollow(parent, handle as TaskId))
      throw refusal(engine, parent, cls.name, `follows task #${handle}, which is another's`, {
        remedy: 'name tasks in `after` that the same body has spawned',
      });
}

function refusal(
  { tasks, x }: Spawning,
  parent: TaskId,
  cls: string,
  what: string,
  details: { readonly datum?: string; readonly remedy: string },
): HeadraceError {
  const name = x.describe(parent & tasks.mask);
  return new HeadraceError(
    'ERR_SPAWN_ORDER',
    `a task of class '${cls}' that the body of task ${name} spawns ${what}`,
    { task: name, ...details },
  );
}

/** A body spawns after its end. */
export function spawnTooLate(cls: string): HeadraceError {
  return new HeadraceError(
    'ERR_RUN_OVER',
    `a body of class '${cls}' uses its context after its end; what it spawns must be known when its task ends`,
    { task: cls, remedy: 'spawn before the body returns, or before its promise settles' },
  );
}
