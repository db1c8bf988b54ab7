// Bytes that the data of a task take: a datum that several flows name has one block.
import type { Column, DatumId, SpaceId } from '../handles.js';
import { type Directory, NO_BLOCK } from './directory.js';
import { roundedBytes } from './zone.js';

/** Whether a flow before index `at`, and not before `first`, names the same datum. */
function isAgain(flows: Column<Int32Array, DatumId>, first: number, at: number): boolean {
  for (let j = first; j < at; j++) if (flows[j] === flows[at]) return true;
  return false;
}

/** Bytes of the blocks of the data in `flows`, from index `first` to before `end`. Each datum counts once. */
export function distinctBytes(
  dir: Directory,
  flows: Column<Int32Array, DatumId>,
  first: number,
  end: number,
): number {
  let bytes = 0;
  for (let i = first; i < end; i++) {
    if (!isAgain(flows, first, i)) bytes += roundedBytes(dir.bytes[flows[i]]);
  }
  return bytes;
}

/** As `distinctBytes`, of the data that have no block in space `s`. */
export function missingBytes(
  dir: Directory,
  flows: Column<Int32Array, DatumId>,
  first: number,
  end: number,
  s: SpaceId,
): number {
  let bytes = 0;
  for (let i = first; i < end; i++) {
    const d = flows[i];
    if (dir.block[d * dir.spaces + s] !== NO_BLOCK) continue;
    if (!isAgain(flows, first, i)) bytes += roundedBytes(dir.bytes[d]);
  }
  return bytes;
}
