// Bytes that moved against bytes that had to move.
//
// Required: the run is replayed in the order the tasks executed, with memory spaces of endless size. A task that
// reads a datum without a valid copy in its space needs one transfer: from the host if it has a valid copy, else from
// another device. A write makes all other copies invalid. Transfers that the program asked for (read-back,
// redistribution) and the first arrival of each version at a rank are required too. Spills, write-through and second
// transfers are not.
import { AccessMode, EventKind, TaskTime, TransferReason, transferKindNames } from '../format.js';
import { NO_ROW, type Trace } from '../trace.js';
import { isNetworkKind } from './waits.js';

/** Bytes by direction. */
export interface Directions {
  readonly h2d: number;
  readonly d2h: number;
  readonly d2d: number;
  readonly network: number;
}

/** The bytes that moved and the bytes that had to. */
export interface Traffic {
  /** By kind, as in the report of a run. Messages count once, on the receiving side. */
  readonly bytes: { readonly [kind: string]: number };
  readonly transfers: { readonly [kind: string]: number };
  readonly moved: Directions;
  readonly required: Directions;
  readonly evictions: { readonly count: number; readonly bytes: number };
  readonly spills: { readonly count: number; readonly bytes: number };
}

/** Traffic of a whole trace. */
export function traffic(trace: Trace): Traffic {
  const bytes: { [kind: string]: number } = {};
  const counts: { [kind: string]: number } = {};
  for (const kind of transferKindNames) {
    bytes[kind] = 0;
    counts[kind] = 0;
  }
  const { transfers, events } = trace;
  for (let row = 0; row < transfers.count; row++) {
    // The other side of the message has it.
    if (transfers.reason[row] === TransferReason.send && transfers.partner[row] >= 0) continue;
    const kind = transferKindNames[transfers.kind[row]] ?? `kind ${transfers.kind[row]}`;
    bytes[kind] = (bytes[kind] ?? 0) + transfers.bytes[row];
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  const tally = (kind: number): { count: number; bytes: number } => {
    let count = 0;
    let sum = 0;
    for (let row = 0; row < events.count; row++) {
      if (events.kind[row] !== kind) continue;
      count++;
      sum += events.bytes[row];
    }
    return { count, bytes: sum };
  };
  return {
    bytes,
    transfers: counts,
    moved: {
      h2d: bytes.h2d,
      d2h: bytes.d2h,
      d2d: bytes.d2d,
      network: bytes.ipc + bytes.direct + bytes.staged + bytes.inline,
    },
    required: requiredBytes(trace),
    evictions: tally(EventKind.evict),
    spills: spills(trace, tally(EventKind.spill)),
  };
}

// Spills are transfers; a trace may also, or only, have events of them.
function spills(
  trace: Trace,
  events: { count: number; bytes: number },
): { count: number; bytes: number } {
  const { transfers } = trace;
  let count = 0;
  let bytes = 0;
  for (let row = 0; row < transfers.count; row++) {
    if (transfers.reason[row] !== TransferReason.spill) continue;
    count++;
    bytes += transfers.bytes[row];
  }
  return count > 0 ? { count, bytes } : events;
}

// Replays the run. Steps are tasks (row) and, for transfers that are required by themselves, -1 - row.
function requiredBytes(trace: Trace): Directions {
  const { tasks, transfers, data } = trace;
  const steps: number[] = [];
  const starts = tasks.times[TaskTime.execStart];
  for (let row = 0; row < tasks.count; row++) {
    if (tasks.accesses.start[row + 1] > tasks.accesses.start[row]) steps.push(row);
  }
  for (let row = 0; row < transfers.count; row++) {
    if (transfers.datum[row] >= 0 && isRequired(transfers.reason[row])) steps.push(-1 - row);
  }
  const timeOf = (step: number): number => (step >= 0 ? starts[step] : transfers.end[-1 - step]);
  const keys = Float64Array.from(steps, timeOf);
  const order = Uint32Array.from(steps, (_, i) => i).sort((a, b) => keys[a] - keys[b] || a - b);

  // valid[d]: bit s is set while memory space s of the datum's rank has the newest version; 0: nowhere yet.
  const valid = new Uint32Array(data.count);
  const received = new Set<string>();
  const required = { h2d: 0, d2h: 0, d2d: 0, network: 0 };
  const read = (datum: number, space: number): void => {
    if (valid[datum] === 0) valid[datum] = 1;
    const bit = 1 << space;
    if ((valid[datum] & bit) !== 0) return;
    if (space === 0) required.d2h += data.bytes[datum];
    else if ((valid[datum] & 1) !== 0) required.h2d += data.bytes[datum];
    else required.d2d += data.bytes[datum];
    valid[datum] |= bit;
  };
  for (const index of order) {
    const step = steps[index];
    if (step >= 0) {
      const space = tasks.space[step] === NO_ROW ? 0 : trace.spaces[tasks.space[step]].index;
      const { start, items } = tasks.accesses;
      for (let a = start[step]; a < start[step + 1]; a++) {
        if (tasks.accessModes[a] !== AccessMode.write) read(items[a], space);
      }
      for (let a = start[step]; a < start[step + 1]; a++) {
        if (tasks.accessModes[a] !== AccessMode.read) valid[items[a]] = 1 << space;
      }
      continue;
    }
    const row = -1 - step;
    const datum = transfers.datum[row];
    const to = transfers.destination[row];
    const space = to === NO_ROW ? 0 : trace.spaces[to].index;
    if (isNetworkKind(transfers.kind[row])) {
      const key = `${datum}:${transfers.version[row]}`;
      if (!received.has(key)) required.network += transfers.bytes[row];
      received.add(key);
      valid[datum] = 1 << space;
    } else {
      read(datum, space);
    }
  }
  return required;
}

function isRequired(reason: number): boolean {
  return (
    reason === TransferReason.receive ||
    reason === TransferReason.readBack ||
    reason === TransferReason.redistribution
  );
}
