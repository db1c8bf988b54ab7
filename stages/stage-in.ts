// Stage 2, stage-in: every datum the task reads gets its bytes into the block that alloc granted.
//
// A copy that is here is used as it is; one that is on its way here already is attached to (its write event will
// be waited for by the queue, not by the task); otherwise a transfer is commanded from the cheapest valid copy.
// No wait happens here except for room in a transfer queue: the exec command follows the transfers by event.
import { CopyState } from '../devices/coherency.js';
import { NO_BLOCK } from '../devices/directory.js';
import { HeadraceError } from '../devices/errors.js';
import { makeRoom } from '../devices/eviction.js';
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
  const poisoned = dir.poisonedData > 0 ? poisonedInput(x, row) : -1;
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

/** Commands the transfers that bring datum `d` to space `s`, over the host where two devices have no link. */
function fetch(x: StageContext, row: number, d: number, s: number): number {
  const { directory: dir, transfers } = x;
  let source = transfers.chooseSource(d, s);
  if (source < 0) {
    if (dir.validMask[d] === 0) return lost(x, row, d);
    const relay = transfers.chooseSource(d, 0);
    const outcome = fetchToHost(x, row, d, relay);
    if (outcome !== Outcome.advance) return outcome;
    source = 0;
  }
  if (!transfers.canIssue(s, source)) {
    x.waitForSlot(row, transfers.queue(s, source));
    return Outcome.wait;
  }
  transfers.issue(d, s, source, TransferReason.stageIn, x.tasks.idOf(row), x.now);
  return Outcome.advance;
}

function fetchToHost(x: StageContext, row: number, d: number, source: number): number {
  const { directory: dir, transfers } = x;
  if (source < 0) return lost(x, row, d);
  if (!transfers.canIssue(0, source)) {
    x.waitForSlot(row, transfers.queue(0, source));
    return Outcome.wait;
  }
  const home = d * dir.spaces;
  if (dir.block[home] === NO_BLOCK) {
    // The line of the host holds for those who come by on the way between two devices, too.
    const line = x.spaces[0].waiters;
    const id = x.tasks.idOf(row);
    const isFirst = line.length > 0 && line.peek() === id;
    const mayTake = line.length === 0 || isFirst;
    const offset = mayTake ? makeRoom(x.spaces[0], x.counters, dir.bytes[d]) : -1;
    if (offset < 0) {
      if (mayTake && nothingComesBack(x)) return outOfHostMemory(x, row, dir.bytes[d], 'stage-in');
      if (isFirst) x.waitAtHead(row);
      else x.waitForMemory(row, 0);
      return Outcome.wait;
    }
    dir.block[home] = offset;
  }
  transfers.issue(d, 0, source, TransferReason.stageIn, x.tasks.idOf(row), x.now);
  return Outcome.advance;
}

function lost(x: StageContext, row: number, d: number): number {
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
