// The tasks that copy a region between two views of a datum (parts.ts): native kernels on all devices (native/kernels/block.h).
// The driver of a GPU copies a strided block as 2D.
import type { ElementType } from '../element-type.js';
import { elementBytes } from '../element-type.js';
import { read, readWrite, type TaskClass, task, write } from '../task-class.js';
import type { Region } from './region.js';

/** The classes for one element type. */
interface TakeOverClasses {
  /** The region is all of the view: the task runs where the source is. */
  readonly all: TaskClass;
  /** The view has nothing that must be kept: the task runs where the view is, if it is anywhere. */
  readonly first: TaskClass;
  /** The view keeps the rest: the task runs where the view is. */
  readonly more: TaskClass;
}

const classes: Map<ElementType, TakeOverClasses> = new Map();

export function takeOverClasses(element: ElementType): TakeOverClasses {
  const known = classes.get(element);
  if (known !== undefined) return known;
  const made: TakeOverClasses = {
    all: classOf(element, false),
    first: classOf(element, false),
    more: classOf(element, true),
  };
  classes.set(element, made);
  return made;
}

function classOf(element: ElementType, keeps: boolean): TaskClass {
  return task({
    name: 'copy of a part',
    flows: { to: keeps ? readWrite(element) : write(element), from: read(element) },
    params: {
      bytes: 'f64',
      rows: 'f64',
      columns: 'f64',
      toLead: 'f64',
      toFirst: 'f64',
      fromLead: 'f64',
      fromFirst: 'f64',
    },
    kernel: 'copy_block',
  }) as unknown as TaskClass;
}

/** The parameters of such a task, in their order. `to` and `from` are the regions of the views. */
export function takeOverParams(
  element: ElementType,
  region: Region,
  to: Region,
  from: Region,
): number[] {
  const { rows, columns } = region;
  return [
    elementBytes(element),
    rows,
    columns,
    to.rows,
    firstIn(to, region),
    from.rows,
    firstIn(from, region),
  ];
}

/** The first element of a region in the memory of a view. */
function firstIn(view: Region, { row, column }: Region): number {
  return (column - view.column) * view.rows + (row - view.row);
}
