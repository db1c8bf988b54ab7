// Writes the lists of a plan: records in the layout of the rings, with waits that count from the begin of an iteration
// (native/contract.ts, NativePlanQueue).
//
// A record has room for one wait; further ones take a record each before it.
import { execRecords, Opcode, PlanOpen, RecordLayout as Record } from '../../devices/backend.js';
import { FIRST_QUEUE, type QueueId } from '../../devices/handles.js';
import { type CommandColumns, NO_INSERTION } from '../../devices/planning/commands.js';
import type { OpenParameter } from './insertions.js';
import type { PlannedAddresses, PlannedQueue } from './planned-program.js';
import type { Accesses, Ranges } from './ranges.js';
import type { Waits } from './waits.js';

/** The lists, and where each command has its record in the list of its queue. */
export interface Lists {
  readonly queues: PlannedQueue[];
  /** List of each queue, or -1. */
  readonly listOf: Int32Array;
  /** Index of the record of each command. */
  readonly recordOf: Int32Array;
}

class ListWriter {
  private readonly commands: CommandColumns;
  private readonly waits: Waits;
  private readonly lengths: Int32Array;
  private readonly recordOf: Int32Array;
  /** Record of a command by its place in its queue. */
  private readonly records: Int32Array[];

  constructor(commands: CommandColumns, waits: Waits) {
    this.commands = commands;
    this.waits = waits;
    this.lengths = new Int32Array(waits.counts.length);
    this.recordOf = new Int32Array(commands.count);
    this.records = Array.from(waits.counts, (n) => new Int32Array(n + 1));
    for (let c = 0; c < commands.count; c++) {
      const q = commands.queue[c];
      const waitsOf = waits.first[c + 1] - waits.first[c];
      const at = this.lengths[q] + Math.max(0, waitsOf - 1);
      this.recordOf[c] = at;
      this.records[q][waits.place[c]] = at;
      this.lengths[q] = at + (commands.isCopy[c] ? 1 : execRecords(commands.arguments[c]));
    }
  }

  write(open: readonly OpenParameter[], slots: readonly string[]): Lists {
    const { lengths, commands } = this;
    const listOf = new Int32Array(lengths.length).fill(-1);
    const queues: PlannedQueue[] = [];
    const words: Int32Array[] = [];
    const insertions: Int32Array[] = [];
    for (let q = FIRST_QUEUE; q < lengths.length; q++) {
      if (lengths[q] === 0) continue;
      listOf[q] = queues.length;
      const records = new Int32Array(lengths[q] * Record.words);
      const insertion = new Int32Array(lengths[q]).fill(NO_INSERTION);
      words[q] = records;
      insertions[q] = insertion;
      queues.push({ queue: q as QueueId, records, open: new Int32Array(0), insertion });
    }
    const doubles = words.map((w) => new Float64Array(w.buffer));
    for (let c = 0; c < commands.count; c++) {
      const q = commands.queue[c];
      this.command(c, words[q], doubles[q]);
      insertions[q][this.recordOf[c]] = commands.insertion[c];
    }
    const opened = this.openOf(open, slots, listOf, queues.length);
    return {
      queues: queues.map((list, i) => ({ ...list, open: opened[i] })),
      listOf,
      recordOf: this.recordOf,
    };
  }

  private command(c: number, words: Int32Array, doubles: Float64Array): void {
    const { commands, waits } = this;
    const record = this.recordOf[c];
    const first = waits.first[c];
    const last = waits.first[c + 1];
    for (let w = first + 1; w < last; w++) {
      const at = (record - (last - w)) * Record.words;
      words[at + Record.head] = Opcode.wait;
      this.wait(words, at, w);
    }
    const at = record * Record.words;
    const n = commands.arguments[c];
    words[at + Record.head] = headOf(commands, c);
    words[at + Record.kernel] = commands.what[c];
    words[at + Record.task] = commands.insertion[c];
    if (last > first) this.wait(words, at, first);
    for (let i = 0; i < n; i++)
      doubles[placeOf(record, i)] = commands.values[commands.first[c] + i];
  }

  private wait(words: Int32Array, at: number, w: number): void {
    const { waits } = this;
    const queue = waits.queue[w];
    const place = waits.at[w];
    const isBefore = place <= 0;
    const record = this.records[queue][isBefore ? place + waits.counts[queue] : place];
    words[at + Record.kernel] |= (queue + 1) << 16;
    words[at + Record.waitSeq] = record + 1 - (isBefore ? this.lengths[queue] : 0);
  }

  /** Entries of PlanOpen per list, in the order of the records. */
  private openOf(
    open: readonly OpenParameter[],
    slots: readonly string[],
    listOf: Int32Array,
    lists: number,
  ): Int32Array[] {
    const entries: number[][][] = Array.from({ length: lists }, () => []);
    if (open.length > 0) {
      const { commands } = this;
      const commandOf = new Map<number, number>();
      for (let c = 0; c < commands.count; c++) commandOf.set(commands.insertion[c], c);
      for (const { insertion, parameter, slot } of open) {
        const c = commandOf.get(insertion) as number;
        const place = placeOf(this.recordOf[c], commands.flows[c] + parameter);
        const entry = new Array<number>(PlanOpen.words);
        entry[PlanOpen.record] = Math.floor(place / Record.doubles);
        entry[PlanOpen.argument] = place % Record.doubles;
        entry[PlanOpen.slot] = slots.indexOf(slot);
        entries[listOf[commands.queue[c]]].push(entry);
      }
    }
    return entries.map((list) => {
      list.sort((a, b) => a[PlanOpen.record] - b[PlanOpen.record]);
      return Int32Array.from(list.flat());
    });
  }
}

function headOf(commands: CommandColumns, c: number): number {
  const n = commands.arguments[c] << 20;
  if (commands.isCopy[c]) return Opcode.copy | n;
  if (commands.message[c]) return commands.message[c] | n;
  return Opcode.exec | (commands.flows[c] << 8) | n;
}

/** The float64 of argument `i` of the command at `record`, counted from the begin of the list. */
export function placeOf(record: number, i: number): number {
  return i < Record.inlineArguments
    ? record * Record.doubles + Record.argument + i
    : (record + 1) * Record.doubles + (i - Record.inlineArguments);
}

/** Writes the lists of the commands. */
export function writeLists(
  commands: CommandColumns,
  waits: Waits,
  open: readonly OpenParameter[],
  slots: readonly string[],
): Lists {
  return new ListWriter(commands, waits).write(open, slots);
}

/** Fills in the open parameters; `values`: the float64 of each list, `given`: a value per slot. */
export function writeOpen(
  values: readonly Float64Array[],
  queues: readonly PlannedQueue[],
  given: readonly number[],
): void {
  queues.forEach(({ open }, list) => {
    for (let i = 0; i < open.length; i += PlanOpen.words)
      values[list][open[i + PlanOpen.record] * Record.doubles + open[i + PlanOpen.argument]] =
        given[open[i + PlanOpen.slot]];
  });
}

/** The places of addresses in the lists. */
export function addressesOf(
  commands: CommandColumns,
  accesses: Accesses,
  ranges: Ranges,
  lists: Lists,
): PlannedAddresses {
  const { region } = ranges;
  const used = accesses.first[commands.count];
  const first = new Int32Array(ranges.regions + 1);
  for (let i = 0; i < used; i++) first[region[accesses.of[i] >> 1] + 1]++;
  for (let g = 0; g < ranges.regions; g++) first[g + 1] += first[g];
  const next = first.slice();
  const list = new Int16Array(used);
  const place = new Int32Array(used);
  const isShifted = ranges.offset.some((offset, r) => offset !== ranges.regionOffset[region[r]]);
  const offset = isShifted ? new Float64Array(used) : undefined;
  for (let c = 0; c < commands.count; c++) {
    const begin = accesses.first[c];
    for (let i = begin; i < accesses.first[c + 1]; i++) {
      const range = accesses.of[i] >> 1;
      const g = region[range];
      // A copy names its destination first, and reads before it writes.
      const argument = commands.isCopy[c] ? 1 - (i - begin) : i - begin;
      const at = next[g]++;
      list[at] = lists.listOf[commands.queue[c]];
      place[at] = placeOf(lists.recordOf[c], argument);
      if (offset !== undefined) offset[at] = ranges.offset[range] - ranges.regionOffset[g];
    }
  }
  return { first, list, place, offset };
}

/** Fills in the addresses of region `g`, which lies at `base`; `values`: the float64 of each list. */
export function writeAddresses(
  values: readonly Float64Array[],
  { first, list, place, offset }: PlannedAddresses,
  g: number,
  base: number,
): void {
  for (let i = first[g]; i < first[g + 1]; i++)
    values[list[i]][place[i]] = offset === undefined ? base : base + offset[i];
}
