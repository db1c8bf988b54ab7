// Stage 2, stage-in: every datum that the task reads gets its bytes into the block that alloc granted.
//
// The task uses a copy that is here as it is. If a copy is under way to here, the task joins it: its queue will wait for
// the write event. Otherwise this stage commands a transfer from the cheapest valid copy.
// The stage waits only for room in a transfer queue, because the exec command follows the transfers by event.

import { HeadraceError } from '../devices/errors.js';
import { type DatumId, HOST, NO_DATUM, type SpaceId } from '../devices/handles.js';
import { CopyState } from '../devices/memory/coherency.js';
import { NO_BLOCK } from '../devices/memory/directory.js';
import { makeRoom } from '../devices/memory/eviction.js';
import { TransferReason } from '../trace/format.js';
import { nothingComesBack, outOfHostMemory } from './alloc.js';
import type { StageContext } from './context.js';
import { failPoisoned, poisonedInput } from './poison.js';
import { Outcome } from './stage.js';
import { AccessMode } from './task-table.js';

export function stageIn(x: StageContext, row: number): number {
  const { tasks, directory: dir } = x;
  const s = tasks.device[row];
  const first = tasks.flowStart[row];
  const modes = x.classes[tasks.classOf[row]].modes;
  const poisoned = dir.poisonedData > 0 ? poisonedInput(x, row) : NO_DATUM;
  if (poisoned >= 0) return failPoisoned(x, row, poisoned, 'stage-in');
  for (let i = 0; i < modes.length; i++) {
    if (modes[i] === AccessMode.write) continue;
    const d = tasks.flowDatum[first + i];
    if (dir.state[d * dir.spaces + s] !== CopyState.invalid) continue;
    const outcome = fetch(x, row, d, s);
    if (outcome !== Outcome.advance) return outcome;
  }
  return Outcome.advance;
}

/** Commands the transfers that bring datum `d` to space `s`, over the host if two devices have no link. */
function fetch(x: StageContext, row: number, d: DatumId, s: SpaceId): number {
  const { directory: dir, transfers } = x;
  let source = transfers.chooseSource(d, s);
  if (source < 0) {
    if (dir.validMask[d] === 0) return lost(x, row, d);
    const relay = transfers.chooseSource(d, HOST);
    const outcome = fetchToHost(x, row, d, relay);
    if (outcome !== Outcome.advance) return outcome;
    source = HOST;
  }
  if (!transfers.canIssue(s, source)) {
    x.waitForSlot(row, transfers.queue(s, source));
    return Outcome.wait;
  }
  transfers.issue(d, s, source, TransferReason.stageIn, x.tasks.idOf(row), x.now);
  return Outcome.advance;
}

function fetchToHost(x: StageContext, row: number, d: DatumId, source: SpaceId): number {
  const { directory: dir, transfers } = x;
  if (source < 0) return lost(x, row, d);
  if (!transfers.canIssue(HOST, source)) {
    x.waitForSlot(row, transfers.queue(HOST, source));
    return Outcome.wait;
  }
  const home = d * dir.spaces;
  if (dir.block[home] === NO_BLOCK) {
    // The line of the host also holds for copies on the way between two devices.
    const line = x.spaces[0].waiters;
    const id = x.tasks.idOf(row);
    const isFirst = line.length > 0 && line.peek() === id;
    const mayTake = line.length === 0 || isFirst;
    const offset = mayTake ? makeRoom(x.spaces[0], x.counters, dir.bytes[d]) : -1;
    if (offset < 0) {
      if (mayTake && nothingComesBack(x, id))
        return outOfHostMemory(x, row, [d], dir.bytes[d], 'stage-in');
      if (isFirst) x.waitAtHead(row);
      else x.waitForMemory(row, HOST);
      return Outcome.wait;
    }
    dir.block[home] = offset;
  }
  transfers.issue(d, HOST, source, TransferReason.stageIn, x.tasks.idOf(row), x.now);
  return Outcome.advance;
}

function lost(x: StageContext, row: number, d: DatumId): number {
  const datum = x.directory.info[d]?.name ?? `#${d}`;
  x.hooks.fail(
    row,
    new HeadraceError(
      'ERR_DATUM_LOST',
      `task ${x.describe(row)} reads datum '${datum}', which has no valid copy left`,
      { task: x.describe(row), stage: 'stage-in', datum },
    ),
  );
  return Outcome.fail;
}
