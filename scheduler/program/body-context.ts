// The second argument of a JavaScript body (body-types.ts).
import { HeadraceError } from '../../devices/errors.js';
import type { TaskHandle, TaskId } from '../../devices/handles.js';
import { shown } from '../checks.js';
import type { Body } from '../engine/script-bodies.js';
import type { TaskGraph, TaskOptions } from './body-types.js';
import type { Datum } from './datum.js';
import { ELEMENT_TYPES, type ElementType, isElementType } from './element-type.js';
import { spawnTooLate } from './spawning.js';
import type { TaskClass } from './task-class.js';

/** The graph of a run, as the context of a body uses it. */
export interface SpawningGraph extends TaskGraph {
  spawn(parent: TaskId, cls: TaskClass, args: never, options?: TaskOptions): TaskHandle;
  temporaryOf(parent: TaskId, element: ElementType, length: number): Datum;
}

/** The context of a body on a script worker: it has no graph. */
export function workerContext(cls: string): object {
  const refuse = (): never => {
    throw new HeadraceError(
      'ERR_TASK_CLASS',
      `task class '${cls}': its body runs on a script worker, where there is no graph and nothing can be spawned`,
      { task: cls, remedy: 'leave out `module`: the body then runs on the thread of the program' },
    );
  };
  return Object.defineProperties(
    {},
    {
      graph: { get: refuse },
      data: { get: refuse },
      spawn: { get: refuse },
      temporary: { get: refuse },
    },
  );
}

/** Data by the names of flows. */
export type DataByFlow = Record<string, unknown>;

/** The context of one body. */
export class TaskContext {
  private readonly body: Body;
  private readonly className: string;
  private readonly graphOf: () => SpawningGraph;
  private readonly dataOf: () => DataByFlow;

  constructor(
    body: Body,
    className: string,
    graphOf: () => SpawningGraph,
    dataOf: () => DataByFlow,
  ) {
    this.body = body;
    this.className = className;
    this.graphOf = graphOf;
    this.dataOf = dataOf;
  }

  get graph(): TaskGraph {
    this.check();
    return this.graphOf();
  }

  get data(): DataByFlow {
    this.check();
    return this.dataOf();
  }

  // A property, because bodies take it out of its object.
  readonly spawn = (cls: TaskClass, args: object, options?: TaskOptions): TaskHandle => {
    this.check();
    const { task }: { readonly task: TaskId } = this.body;
    return this.graphOf().spawn(task, cls, args as never, options);
  };

  readonly temporary = (element: ElementType, length: number): Datum => {
    this.check();
    if (!isElementType(element))
      throw new HeadraceError(
        'ERR_OPTION',
        `task class '${this.className}': a temporary has no element type ${shown(element)}`,
        { task: this.className, remedy: `the element types are ${ELEMENT_TYPES.join(', ')}` },
      );
    return this.graphOf().temporaryOf(this.body.task, element, length);
  };

  /** The same for a body whose flows are grouped into lists. */
  grouped(group: (data: DataByFlow) => DataByFlow): TaskContext {
    return new TaskContext(this.body, this.className, this.graphOf, () => group(this.dataOf()));
  }

  private check(): void {
    if (this.body.isOver) throw spawnTooLate(this.className);
  }
}
