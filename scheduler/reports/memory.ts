// The holders of the memory: every copy with its state, its pins, and its task or transfer. Read-only. No table is kept
// for it, so a report scans the window and the data. It takes milliseconds; do not call it for every task.
import { type DatumId, FIRST_DATUM, type SpaceId, type TaskId } from '../../devices/handles.js';
import { CopyState } from '../../devices/memory/coherency.js';
import { NO_BLOCK } from '../../devices/memory/directory.js';
import type { MemoryUse } from '../../devices/memory/space.js';
import { STAGE_NAMES, TaskStage } from '../../stages/task-table.js';
import { formatBytes, formatTime, table } from '../../trace/analysis/text.js';
import { transferReasonNames } from '../../trace/format.js';
import type { ExclusiveSections } from '../engine/exclusive.js';
import type { EngineState } from '../engine/state.js';

/** The copy of one datum in the memory of one device. */
export interface HeldCopy {
  /** Name of the datum. */
  readonly datum: string;
  readonly bytes: number;
  /**
   * `owned`: holds the value and must not be dropped; `shared`: another copy has the same value; `arriving`: a transfer
   * into it is under way; `invalid`: out of date, kept as backing store (host only).
   */
  readonly state: 'invalid' | 'arriving' | 'shared' | 'owned';
  /** Started tasks and transfers that need the copy to stay; 0: an eviction may remove it. */
  readonly pins: number;
  /** The oldest holder, such as `gemm #17 (exec)` or `copy to gpu 1 (stageIn)`; undefined without pins. */
  readonly holder: string | undefined;
  /** Seconds since the oldest holder pinned it; undefined without pins. */
  readonly seconds: number | undefined;
}

/** Memory of one device, as `Runtime.memory` reports it. */
export interface DeviceMemory extends MemoryUse {
  readonly name: string;
  /** Tasks that wait for bytes here, in their order; the first one is served next. */
  readonly waiting: readonly string[];
  /** Its copies: pinned copies first, then the largest. */
  readonly copies: readonly HeldCopy[];
}

const STATES = ['invalid', 'arriving', 'shared', 'owned'] as const;
/** Copies per device in the text. */
const SHOWN = 12;

/** The state, and the section that may hold memory. */
type Holding = EngineState & { readonly sections: Pick<ExclusiveSections, 'current'> };

interface Holder {
  readonly name: string;
  readonly since: number;
}

/** The memory of every device: the host first, then the GPUs. */
export function memoryReport(engine: Holding): DeviceMemory[] {
  const { directory: dir, spaces, backend, x, tasks } = engine;
  const holders = holdersOf(engine);
  const { current } = engine.sections;
  const now = backend.now();
  return spaces.map((space) => {
    const copies: HeldCopy[] = [];
    for (let d = FIRST_DATUM; d < dir.length; d++) {
      const c = d * dir.spaces + space.index;
      if (dir.live[d] === 0 || dir.block[c] === NO_BLOCK) continue;
      const holder = dir.pins[c] > 0 ? holders.get(c) : undefined;
      copies.push({
        datum: dir.info[d]?.name ?? `#${d}`,
        bytes: dir.bytes[d],
        state: STATES[dir.state[c]],
        pins: dir.pins[c],
        // Pins without a task or a transfer belong to a play or to messages.
        holder: dir.pins[c] > 0 ? (holder?.name ?? current?.name ?? 'a message') : undefined,
        seconds: holder === undefined ? undefined : Math.max(0, now - holder.since) / 1e9,
      });
    }
    copies.sort((a, b) => b.pins - a.pins || b.bytes - a.bytes);
    return {
      name: engine.spaceName(space.index),
      ...space.use(),
      waiting: Array.from({ length: space.waiters.length }, (_, i) => space.waiters.at(i))
        .filter((id) => tasks.contains(id))
        .map((id) => x.describe(id & tasks.mask)),
      copies,
    };
  });
}

/** The oldest holder of every pinned copy, by copy. */
function holdersOf(engine: EngineState): Map<number, Holder> {
  const { tasks, directory: dir, transfers, x } = engine;
  const holders = new Map<number, Holder>();
  const hold = (c: number, holder: () => Holder): void => {
    if (!holders.has(c)) holders.set(c, holder());
  };
  for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
    const row = id & tasks.mask;
    const stage = tasks.stage[row];
    if (stage <= TaskStage.alloc || stage >= TaskStage.finalize) continue;
    const first = tasks.flowStart[row];
    const end = first + x.classes[tasks.classOf[row]].modes.length;
    for (let i = first; i < end; i++) {
      hold(tasks.flowDatum[i] * dir.spaces + tasks.device[row], () => ({
        name: `${x.describe(row)} (${STAGE_NAMES[stage]})`,
        since: tasks.since[row],
      }));
    }
  }
  transfers.forEachLive((t) => {
    const { source, destination, reason, issuedAt } = transfers;
    const base = transfers.datum[t] * dir.spaces;
    const why = transferReasonNames[reason[t]];
    const since = issuedAt[t];
    hold(base + source[t], () => ({
      name: `copy to ${engine.spaceName(destination[t])} (${why})`,
      since,
    }));
    hold(base + destination[t], () => ({
      name: `copy from ${engine.spaceName(source[t])} (${why})`,
      since,
    }));
  });
  return holders;
}

/** The report as text: a line per device, and a table of the most important copies. */
export function memoryText(engine: Holding): string {
  return memoryReport(engine)
    .map((device) => {
      const bytes = (n: number): string => formatBytes(n);
      const line =
        `${device.name}: ${bytes(device.used)} of ${bytes(device.capacity)} used; ${bytes(device.pinned)} pinned, ` +
        `${bytes(device.clean)} clean, ${bytes(device.dirty)} dirty`;
      const waiting =
        device.waiting.length === 0
          ? ''
          : `\n  ${device.waiting.length} waiting for room, first ${device.waiting[0]}`;
      if (device.copies.length === 0) return line + waiting;
      const rows = device.copies
        .slice(0, SHOWN)
        .map((copy) => [
          `  ${copy.datum}`,
          bytes(copy.bytes),
          copy.state,
          String(copy.pins),
          copy.seconds === undefined ? '-' : formatTime(copy.seconds * 1e9),
          copy.holder ?? '-',
        ]);
      const more = device.copies.length - rows.length;
      const text = table(['  datum', 'bytes', 'state', 'pins', 'for', 'held by'], rows);
      return `${line}${waiting}\n${text}${more > 0 ? `\n  and ${more} more` : ''}`;
    })
    .join('\n');
}

/** State of the copy of datum `d` in space `s` in words. */
export function copyState(
  engine: EngineState,
  d: DatumId,
  s: SpaceId,
): HeldCopy['state'] | 'absent' {
  const dir = engine.directory;
  const c = d * dir.spaces + s;
  if (dir.block[c] === NO_BLOCK && dir.state[c] === CopyState.invalid) return 'absent';
  return STATES[dir.state[c]];
}
