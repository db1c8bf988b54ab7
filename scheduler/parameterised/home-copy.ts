// A value that comes home to another datum than its own is copied there, by a task.

import type { Datum } from '../program/datum.js';
import type { ElementType } from '../program/element-type.js';
import type { Graph } from '../program/graph.js';
import { type Flow, read, type TaskClass, task, write } from '../program/task-class.js';

type Copy = TaskClass<
  { readonly to: Flow<ElementType, 'write'>; readonly from: Flow<ElementType, 'read'> },
  { readonly bytes: 'f64' }
>;

const classes: Map<ElementType, Copy> = new Map();

function copyOf(element: ElementType): Copy {
  const known = classes.get(element);
  if (known !== undefined) return known;
  const made: Copy = task({
    name: 'home',
    flows: { to: write(element), from: read(element) },
    params: { bytes: 'f64' },
    kernel: 'copy_bytes',
  });
  classes.set(element, made);
  return made;
}

/** Inserts the copy. @internal */
export function insertHomeCopy(graph: Graph, from: Datum, to: Datum): void {
  if (graph.skips(from, to)) return;
  graph.insert(copyOf(from.element), { to, from, bytes: from.bytes });
}
