// Stage 4, exec, of a version between ranks on lanes: its send or receive goes to a lane, behind every event that the copy
// asks for. From here on it is a command like a kernel: a send reads the copy, a receive writes it.
//
// The offer of a long version is a command, too, but other ranks fetch the bytes after its end. So it is a movement, which
// ends when no rank needs them any more (scheduler/ranks/lane-movements.ts); later writers of the copy wait for that.
//
// The parcel has the era, the key and the destinations (parcel.ts). A receive whose version is announced takes its lane here,
// because it has its memory now; so does a receive for which the last lane was left.
// Invariants: no command that announces a version to a rank that pulls it has another destination; the step that issues the last command also updates the events of the copy; once an announcement may leave,
// its task is not dropped.

import { guards } from '../devices/guards.js';
import { HOST, NO_DATUM, NO_QUEUE } from '../devices/handles.js';
import { afterReaders } from '../devices/memory/readers.js';
import { ARRIVAL_ARGUMENT, arrivalNumber } from '../devices/network/ways.js';
import { holdOffer } from './comm-in.js';
import type { StageContext } from './context.js';
import { followControl, writeHere } from './exec.js';
import type { Parcel } from './parcel.js';
import { cure, failPoisoned, poisonedInput } from './poison.js';
import { Outcome } from './stage.js';
import { Execution } from './task-table.js';

/** Arguments of a command: offset, bytes and era, then those that the parcel names; of an offer also four of its own. */
const FIXED_ARGS = 3;
const OFFER_ARGS = 7;

/**
 * The place behind the last pair of the next command, which has `most` values for pairs. A command is one tree of ranks, and no rank
 * waits in a tree for one that pulls.
 */
function endOf({ next, apart, destinations }: Parcel, most: number): number {
  if (next < apart || !guards.pullApart)
    return Math.min(guards.pullApart ? apart : destinations.length, next + most);
  return Math.min(destinations.length, next + 2);
}

/** A receive that has its memory takes a lane; false: it is in line for one. */
function takesLane(x: StageContext, row: number, parcel: Parcel): boolean {
  const { tasks } = x;
  const lane = x.receiveLanes?.takeAny(tasks.idOf(row)) ?? NO_QUEUE;
  parcel.hasLane = lane !== NO_QUEUE;
  if (parcel.hasLane) tasks.target[row] = lane;
  else x.waitForReceive(row);
  return parcel.hasLane;
}

export function execMessage(x: StageContext, row: number): number {
  const { tasks, directory: dir, submission: sub, launch } = x;
  const parcel = x.parcels[tasks.params[tasks.paramStart[row]]] as Parcel;
  const { kind, destinations, arrival } = parcel;
  const isSend = kind !== 'receive';
  const isOffer = kind === 'offer';
  // Its run has failed after some of its commands: it ends with them.
  if (parcel.next > 0 && parcel.next === destinations.length) return Outcome.running;
  if (!isSend && !parcel.hasLane && !takesLane(x, row, parcel)) return Outcome.running;
  const poisoned = isSend && dir.poisonedData > 0 ? poisonedInput(x, row) : NO_DATUM;
  if (poisoned >= 0) return failPoisoned(x, row, poisoned, 'exec');
  const lane = tasks.target[row];
  const d = tasks.flowDatum[tasks.flowStart[row]];
  const s = tasks.device[row];
  const c = d * dir.spaces + s;
  if (isOffer && s === HOST && !parcel.isHeld) {
    parcel.isHeld = true;
    holdOffer(x, d);
  }
  const { args } = launch;
  const fixed = isOffer ? OFFER_ARGS : FIXED_ARGS;
  for (;;) {
    // A command has room for a limited number of destinations.
    const most = (Math.min(sub.mostArguments, args.length) - fixed) & ~1;
    const end = endOf(parcel, most);
    const received = arrival === undefined ? ARRIVAL_ARGUMENT : ARRIVAL_ARGUMENT + 1;
    const nArgs = isSend ? fixed + end - parcel.next : received;
    if (sub.room(lane) < sub.worstCase(nArgs)) {
      x.waitForSlot(row, lane);
      return Outcome.wait;
    }
    sub.begin(lane);
    if (isSend ? guards.sendAfterWrite : guards.receiveAfterWrite)
      sub.after(dir.writeQueue[c], dir.writeSeq[c]);
    if (!isSend && guards.receiveAfterRead) afterReaders(sub, dir, c);
    if (tasks.controlEvents[row] >= 0) followControl(x, row);
    args[0] = dir.block[c];
    args[1] = dir.bytes[d];
    args[2] = parcel.era;
    if (!isSend) args[FIXED_ARGS] = parcel.key;
    if (arrival !== undefined)
      args[ARRIVAL_ARGUMENT] = arrivalNumber(s, arrival.mode, arrival.scope);
    if (isOffer) {
      args[FIXED_ARGS] = parcel.number;
      args[FIXED_ARGS + 1] = parcel.key;
      args[FIXED_ARGS + 2] = s;
      args[FIXED_ARGS + 3] = tasks.priority[row];
      parcel.open++;
    }
    for (let i = parcel.next; i < end; i++) args[fixed + i - parcel.next] = destinations[i];
    launch.row = row;
    launch.task = tasks.idOf(row);
    launch.run = tasks.run[row];
    launch.nArgs = nArgs;
    parcel.next = end;
    const isLast = !isSend || end === destinations.length;
    const seq = sub.message(launch, kind, isOffer || !isLast);
    if (isOffer) tasks.execution[row] = Execution.movement;
    if (!isLast) continue;
    tasks.queue[row] = lane;
    tasks.seq[row] = seq;
    if (isOffer) return Outcome.issued;
    if (isSend) {
      tasks.execution[row] = Execution.command;
      if (guards.sendRegistersRead) dir.addReader(c, lane, seq);
    } else {
      tasks.execution[row] = Execution.arrival;
      writeHere(x, d, s);
      cure(x, d, tasks.idOf(row));
      if (guards.receiveRegistersWrite) dir.setWriter(c, lane, seq);
    }
    return Outcome.issued;
  }
}
