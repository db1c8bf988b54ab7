// Handles of things that a test counts itself.
import type { Column, DatumId, QueueId, SpaceId, TaskId } from '../../devices/handles.js';

export function queueId(n: number): QueueId {
  return n as QueueId;
}

export function spaceId(n: number): SpaceId {
  return n as SpaceId;
}

export function datumId(n: number): DatumId {
  return n as DatumId;
}

/** The data of flows. */
export function dataColumn(data: readonly number[]): Column<Int32Array, DatumId> {
  return Int32Array.from(data) as Column<Int32Array, DatumId>;
}

export function taskId(n: number): TaskId {
  return n as TaskId;
}
