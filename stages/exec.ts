// Stage 4, exec: the task's command goes to a queue of its device, behind every event that its data ask for.
//
// The events: for a datum that the task reads, the event that wrote the copy here; for a datum that it writes, that event
// and the events of every reader of the copy here since. The task does not wait for readers of older versions in other
// spaces, because they read other memory. From here on the directory describes the state after the task, and successors
// in queues may follow.
// Invariant: the step that issues the command also updates the events of the data.

import { HeadraceError } from '../devices/errors.js';
import { guards } from '../devices/guards.js';
import { type DatumId, NO_DATUM, type SpaceId } from '../devices/handles.js';
import { CopyEvent, CopyState } from '../devices/memory/coherency.js';
import { afterReaders } from '../devices/memory/readers.js';
import type { StageContext } from './context.js';
import { cure, failPoisoned, poisonedInput } from './poison.js';
import { Outcome } from './stage.js';
import { AccessMode, deviceKind, Execution, NetworkRole, type TaskClassRow } from './task-table.js';

export function exec(x: StageContext, row: number): number {
  const cls = x.classes[x.tasks.classOf[row]];
  const kernel = cls.kernels[x.tasks.device[row]];
  if (kernel < 0 && cls.body !== undefined) return execBody(x, row, cls);
  return execKernel(x, row, cls, kernel);
}

function execKernel(x: StageContext, row: number, cls: TaskClassRow, kernel: number): number {
  const { tasks, directory: dir, submission: sub } = x;
  const s = tasks.device[row];
  const modes = cls.modes;
  const nFlows = modes.length;
  const lengths = cls.lengths !== undefined && cls.lengths.on[s] === 1 ? cls.lengths : undefined;
  const list =
    lengths === undefined ? 0 : lengths.numberOf(dir.bytes, tasks.flowDatum, tasks.flowStart[row]);
  const elementBytes = list === 0 ? lengths?.elementBytes : undefined;
  const nParams = cls.paramNames.length;
  const nArgs = nFlows + nParams + (elementBytes === undefined ? 0 : nFlows);
  const queue = tasks.target[row];
  if (sub.room(queue) < sub.worstCase(nArgs)) {
    x.waitForSlot(row, queue);
    return Outcome.wait;
  }
  // A writer may have failed since stage-in, while this task waited for room.
  const poisoned = dir.poisonedData > 0 ? poisonedInput(x, row) : NO_DATUM;
  if (poisoned >= 0) return failPoisoned(x, row, poisoned, 'exec');

  const spaces = dir.spaces;
  const flows = tasks.flowDatum;
  const first = tasks.flowStart[row];
  const { launch } = x;
  const { args } = launch;
  const { block, writeQueue, writeSeq, readerQueue } = dir;
  const { execReadAfterWrite, execWriteAfterWrite, execWriteAfterRead } = guards;
  sub.begin(queue);
  for (let i = 0; i < nFlows; i++) {
    const c = flows[first + i] * spaces + s;
    args[i] = block[c];
    if (modes[i] === AccessMode.write ? execWriteAfterWrite : execReadAfterWrite) {
      sub.after(writeQueue[c], writeSeq[c]);
    }
    if (modes[i] !== AccessMode.read && readerQueue[c] >= 0 && execWriteAfterRead) {
      afterReaders(sub, dir, c);
    }
  }
  if (tasks.controlEvents[row] >= 0) followControl(x, row);
  const params = tasks.paramStart[row];
  for (let i = 0; i < nParams; i++) args[nFlows + i] = tasks.params[params + i];
  if (elementBytes !== undefined) {
    const at = nFlows + nParams;
    for (let i = 0; i < nFlows; i++) args[at + i] = dir.bytes[flows[first + i]] / elementBytes[i];
  }

  const id = tasks.idOf(row);
  launch.kernel = kernel;
  launch.row = row;
  launch.task = id;
  launch.run = tasks.run[row] | (list << 8);
  launch.nFlows = nFlows;
  launch.nArgs = nArgs;
  const seq = sub.exec(launch);
  if (((cls.timed ?? 0) & deviceKind(s)) !== 0) sub.backend.keepTimes(queue, seq);
  tasks.execution[row] = Execution.command;
  tasks.queue[row] = queue;
  tasks.seq[row] = seq;
  const { execRegistersRead, execRegistersWrite } = guards;
  for (let i = 0; i < nFlows; i++) {
    const d = flows[first + i];
    if (modes[i] === AccessMode.read) {
      if (execRegistersRead) dir.addReader(d * spaces + s, queue, seq);
    } else {
      writeHere(x, d, s);
      if (modes[i] === AccessMode.write) cure(x, d, id);
      if (execRegistersWrite) dir.setWriter(d * spaces + s, queue, seq);
    }
  }
  return Outcome.issued;
}

/** The command follows the control predecessors that were issued. */
export function followControl(x: StageContext, row: number): void {
  const nodes = x.eventNodes;
  for (let n = x.tasks.controlEvents[row]; n >= 0; n = nodes.free(n)) {
    if (guards.execControl) x.submission.after(nodes.value[n], nodes.extra[n]);
  }
  x.tasks.controlEvents[row] = -1;
}

/** JavaScript bodies run on the engine's own thread, so their data must be present now. An event is not enough. */
function execBody(x: StageContext, row: number, cls: TaskClassRow): number {
  const { tasks, directory: dir, submission: sub } = x;
  const { modes, network, restores } = cls;
  const s = tasks.device[row];
  const first = tasks.flowStart[row];
  // Movements take this path as well: other ranks read an offered copy without any event of this rank.
  const isOffered = network === NetworkRole.send || network === NetworkRole.forward;
  const awaitsWriter = isOffered ? guards.announceWritten : guards.bodyReadAfterWrite;
  for (let i = 0; i < modes.length; i++) {
    const d = tasks.flowDatum[first + i];
    const c = d * dir.spaces + s;
    if (awaitsWriter && !sub.happened(dir.writeQueue[c], dir.writeSeq[c])) {
      x.waitForEvent(row, dir.writeQueue[c], dir.writeSeq[c]);
      return Outcome.wait;
    }
    if (modes[i] === AccessMode.read || !guards.bodyWriteAfterRead) continue;
    if (!sub.happened(dir.readerQueue[c], dir.readerSeq[c])) {
      x.waitForEvent(row, dir.readerQueue[c], dir.readerSeq[c]);
      return Outcome.wait;
    }
    for (let n = dir.readersHead[c]; n >= 0; n = dir.readers.next[n]) {
      if (!sub.happened(dir.readers.value[n], dir.readers.extra[n])) {
        x.waitForEvent(row, dir.readers.value[n], dir.readers.extra[n]);
        return Outcome.wait;
      }
    }
  }
  for (let n = tasks.controlEvents[row]; n >= 0; n = x.eventNodes.next[n]) {
    if (guards.bodyControl && !sub.happened(x.eventNodes.value[n], x.eventNodes.extra[n])) {
      x.waitForEvent(row, x.eventNodes.value[n], x.eventNodes.extra[n]);
      return Outcome.wait;
    }
  }
  tasks.controlEvents[row] = x.eventNodes.freeList(tasks.controlEvents[row]);
  const poisoned = dir.poisonedData > 0 ? poisonedInput(x, row) : NO_DATUM;
  if (poisoned >= 0) return failPoisoned(x, row, poisoned, 'exec');
  for (let i = 0; i < modes.length; i++) {
    const d = tasks.flowDatum[first + i];
    if (modes[i] === AccessMode.write) continue;
    // It was under way when the task passed stage-in, and did not arrive.
    if (dir.state[d * dir.spaces + s] === CopyState.invalid) return failNotArrived(x, row, d);
  }
  for (let i = 0; i < modes.length; i++) {
    if (modes[i] === AccessMode.read) continue;
    const d = tasks.flowDatum[first + i];
    writeHere(x, d, s);
    if (modes[i] === AccessMode.write || restores !== undefined) cure(x, d, tasks.idOf(row));
  }
  return x.hooks.startBody(row);
}

function failNotArrived(x: StageContext, row: number, d: DatumId): number {
  const datum = x.directory.info[d]?.name ?? `#${d}`;
  const task = x.describe(row);
  x.hooks.fail(
    row,
    new HeadraceError(
      'ERR_TRANSFER_FAILED',
      `datum '${datum}' could not be copied for task ${task}`,
      {
        datum,
        task,
        stage: 'exec',
      },
    ),
  );
  return Outcome.fail;
}

/** A new version of `d` exists, in space `s` only. */
export function writeHere(x: StageContext, d: DatumId, s: SpaceId): void {
  const dir = x.directory;
  dir.version[d] = (dir.version[d] + 1) | 0;
  const others = dir.validMask[d] & ~(1 << s);
  dir.apply(d, s, CopyEvent.write);
  if (others !== 0 && guards.writeInvalidates) invalidate(x, d, others);
}

/** The copies of `d` in the spaces of `mask` hold an older version. */
function invalidate(x: StageContext, d: DatumId, mask: number): void {
  while (mask !== 0) {
    const s = (31 - Math.clz32(mask)) as SpaceId;
    mask &= ~(1 << s);
    x.directory.apply(d, s, CopyEvent.remoteWrite);
    x.spaces[s].settle(d);
  }
}
