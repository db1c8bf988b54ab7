// The memory of a task: that of the device for which its program asks, and whether its data fit there or anywhere.

import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { Column, DatumId, SpaceId } from '../../devices/handles.js';
import { distinctBytes } from '../../devices/memory/distinct-bytes.js';
import type { EngineState } from '../engine/state.js';
import { type BoundClass, possibleSpaces } from './bound-class.js';
import { spaceOf } from './named-device.js';

/** The memory space of the device that the program asks for. */
export function deviceHint(
  engine: EngineState,
  bound: BoundClass,
  device: number | 'host',
): SpaceId {
  const s = spaceOf(engine.backend, device);
  const row = bound.row;
  if (row.kernels[s] < 0 && !(s === 0 && row.body !== undefined)) {
    throw new HeadraceError(
      'ERR_NO_DEVICE',
      `task class '${row.name}' has no body for ${engine.spaceName(s)}`,
      { device: engine.spaceName(s) },
    );
  }
  return s;
}

/** Throws if no possible device of the task could ever hold its data. */
export function checkSize(
  engine: EngineState,
  bound: BoundClass,
  flows: Column<Int32Array, DatumId>,
  device: SpaceId,
): void {
  if (!guards.feasibility) return;
  const { row } = bound;
  const n = row.flowNames.length;
  const bytes = distinctBytes(engine.directory, flows, 0, n);
  let limit = 0;
  let largest = '';
  const candidates = device >= 0 ? [device] : possibleSpaces(row);
  for (const s of candidates) {
    const { capacity } = engine.spaces[s].zone;
    if (capacity >= bytes) return;
    if (capacity > limit) {
      limit = capacity;
      largest = engine.spaceName(s);
    }
  }
  throw new HeadraceError(
    'ERR_TASK_TOO_LARGE',
    `a task of class '${row.name}' needs ${bytes} bytes at once, but ${largest} has ${limit}`,
    {
      task: row.name,
      stage: 'alloc',
      bytes,
      limit,
      device: largest,
      remedy: "use smaller tiles, more device memory, or { device: 'host' }",
    },
  );
}
