// The space where a task's data belong: the one rule that the choice of a device, the plan of transfers between ranks and
// the forecast of next uses share.
import { type Column, type DatumId, NO_SPACE, type SpaceId } from '../devices/handles.js';
import { type Directory, NO_HOME } from '../devices/memory/directory.js';
import { AccessMode } from './task-table.js';

/**
 * The space where the first datum that a task writes belongs: the space that the program advised, else the space of the
 * owner now. Returns -1 when the task writes nothing, or when no space owns a value of the datum.
 *
 * @param modes AccessMode per flow
 * @param flows data of the flows, from index `first` on
 */
export function homeOfWritten(
  dir: Directory,
  modes: readonly number[],
  flows: Column<Int32Array, DatumId>,
  first: number,
): SpaceId {
  for (let i = 0; i < modes.length; i++) {
    if (modes[i] === AccessMode.read) continue;
    const d = flows[first + i];
    return dir.home[d] !== NO_HOME ? dir.home[d] : dir.owner(d);
  }
  return NO_SPACE;
}
