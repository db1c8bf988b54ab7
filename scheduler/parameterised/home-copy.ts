// A value that comes home to another datum than its own is copied there, by a task.

import { HeadraceError } from '../../devices/errors.js';
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

/** Why a value cannot come home to a datum, in words; undefined if it can. @internal */
export function homeProblem(from: Datum, to: Datum): string | undefined {
  const text = ({ length, element }: Datum): string => `${length} elements of ${element}`;
  if (from.length === to.length && from.element === to.element) return undefined;
  return `goes home to datum '${to.name}' of ${text(to)}, and has ${text(from)}`;
}

/**
 * Inserts the copy; `output` names the flow.
 * @throws HeadraceError `ERR_GRAPH_EDGE`, and the errors of `Graph.insert`
 * @internal
 */
export function insertHomeCopy(graph: Graph, from: Datum, to: Datum, output: () => string): void {
  // The kernel would write beyond the end of a shorter datum.
  const problem = homeProblem(from, to);
  if (problem !== undefined)
    throw new HeadraceError('ERR_GRAPH_EDGE', `${output()} ${problem}`, {
      task: output(),
      datum: to.name,
    });
  if (graph.skips(from, to)) return;
  graph.insert(copyOf(from.element), { to, from, bytes: from.bytes });
}
