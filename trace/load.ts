// Loads trace files into columns: one file, or one per rank of a run. Ids become rows, ranks get one time axis
// (merge.ts), dependencies become lists. About 200 bytes per task.
import { type Column, f64, group, IdIndex, i32, type Lists, u8, u16, u32 } from './columns.js';
import { TraceError } from './errors.js';
import { NO_INDEX, NONE, TaskTime, type TraceHeader } from './format.js';
import { alignRanks, matchMessages } from './merge.js';
import { TraceReader } from './reader.js';
import type { ClockRecord, TraceOutcome } from './records.js';
import {
  type Lane,
  NO_ROW,
  type Space,
  type TaskClass,
  type Trace,
  type TraceRank,
} from './trace.js';

/**
 * Loads one trace, or the traces of several ranks of one run (in any order), from paths or from memory.
 * Cut or damaged tails and missing ranks give a partial trace whose `problems` say what is missing.
 *
 * Throws `TraceError`: those of `TraceReader.open`, and ERR_TRACE_MERGE for files that are not of one run.
 */
export function loadTrace(sources: string | Uint8Array | readonly (string | Uint8Array)[]): Trace {
  const list = Array.isArray(sources) ? sources : [sources as string | Uint8Array];
  const readers: TraceReader[] = [];
  try {
    for (const source of list) {
      readers.push(
        typeof source === 'string' ? TraceReader.open(source) : TraceReader.from(source),
      );
    }
    readers.sort((a, b) => a.header.rank - b.header.rank);
    const problems = checkRun(readers);
    const builder = new Builder();
    const ranks = readers.map((reader) => builder.addRank(reader));
    return builder.finish(ranks, problems);
  } finally {
    for (const reader of readers) reader.close();
  }
}

function checkRun(readers: readonly TraceReader[]): string[] {
  const first = readers[0];
  if (!first) throw new TraceError('ERR_TRACE_USAGE', 'no trace file was given.');
  const seen = new Map<number, TraceReader>();
  for (const reader of readers) {
    const { rank, ranks, run } = reader.header;
    const other = seen.get(rank);
    if (other) {
      throw new TraceError(
        'ERR_TRACE_MERGE',
        `${other.name} and ${reader.name} are both of rank ${rank}; give one file per rank of one run.`,
        reader.name,
      );
    }
    if (ranks !== first.header.ranks || (run ?? '') !== (first.header.run ?? '')) {
      throw new TraceError(
        'ERR_TRACE_MERGE',
        `${reader.name} (rank ${rank} of ${ranks}) is not of the same run as ${first.name} ` +
          `(rank ${first.header.rank} of ${first.header.ranks}).`,
        reader.name,
      );
    }
    seen.set(rank, reader);
  }
  const missing: number[] = [];
  for (let rank = 0; rank < first.header.ranks; rank++) if (!seen.has(rank)) missing.push(rank);
  if (missing.length === 0) return [];
  return [
    `${missing.length === 1 ? 'rank' : 'ranks'} ${missing.join(', ')} of ${first.header.ranks} missing: ` +
      'work, messages and releases there are not shown',
  ];
}

// Pairs (task, value) in file order, to be grouped by task row once all rows are known.
class PairColumns {
  readonly task: Column<Int32Array> = i32();
  readonly value: Column<Int32Array> = i32();
  readonly mode: Column<Uint8Array> = u8();
}

class Builder {
  readonly lanes: Lane[] = [];
  readonly spaces: Space[] = [];
  readonly classes: { name: string; parameterNames: readonly string[] }[] = [];
  readonly #classByName: Map<string, number> = new Map();
  readonly #names: Map<string, number> = new Map();

  readonly id: Column<Uint32Array> = u32();
  readonly rank: Column<Uint16Array> = u16();
  readonly taskClass: Column<Uint16Array> = u16();
  readonly space: Column<Uint16Array> = u16();
  readonly lane: Column<Uint16Array> = u16();
  readonly flags: Column<Uint16Array> = u16();
  readonly releasedBy: Column<Uint32Array> = u32();
  readonly times: Column<Float64Array>[] = Array.from({ length: TaskTime.count }, f64);
  readonly predecessors: PairColumns = new PairColumns();
  readonly accesses: PairColumns = new PairColumns();
  readonly parameters: PairColumns = new PairColumns();
  readonly #releasedRows: Column<Int32Array> = i32();

  readonly transfer = {
    rank: u16(),
    kind: u8(),
    reason: u8(),
    lane: u16(),
    source: u16(),
    destination: u16(),
    task: i32(),
    datum: i32(),
    version: u32(),
    peer: i32(),
    message: u32(),
    bytes: f64(),
    issued: f64(),
    start: f64(),
    end: f64(),
  };
  readonly datum = {
    rank: u16(),
    id: u32(),
    home: u16(),
    bytes: f64(),
    name: i32(),
    coordinates: i32(),
  };
  readonly counter = { rank: u16(), kind: u8(), space: u16(), time: f64(), values: f64() };
  readonly event = {
    rank: u16(),
    kind: u8(),
    space: u16(),
    task: i32(),
    datum: i32(),
    time: f64(),
    bytes: f64(),
  };
  readonly eventText: string[] = [];

  addRank(reader: TraceReader): TraceRank {
    const { header } = reader;
    const { rank } = header;
    const laneBase = this.lanes.length;
    const spaceBase = this.spaces.length;
    this.#addTables(header, spaceBase);
    const laneRow = (index: number): number =>
      index < header.lanes.length ? laneBase + index : NO_ROW;
    const spaceRow = (index: number): number =>
      index < header.spaces.length && index !== NO_INDEX ? spaceBase + index : NO_ROW;

    const firstTask = this.id.length;
    const firstDatum = this.datum.id.length;
    const classRows: number[] = [];
    const clocks: ClockRecord[] = [];
    // Raw ids of this rank, turned into rows at the end of the pass.
    const edges = { successor: u32(), predecessor: u32() };
    const accesses = { task: u32(), datum: u32(), mode: u8() };
    const parameters = { task: u32(), value: i32() };
    const transferIds = { task: u32(), datum: u32() };
    const eventIds = { task: u32(), datum: u32() };

    const outcome = reader.read({
      taskClass: (id, name, parameterNames) => {
        classRows[id] = this.#class(name, parameterNames);
      },
      datum: (datum) => {
        const columns = this.datum;
        columns.rank.push(rank);
        columns.id.push(datum.id);
        columns.home.push(datum.home);
        columns.bytes.push(datum.bytes);
        columns.name.push(this.#name(datum.name));
        columns.coordinates.push(datum.i);
        columns.coordinates.push(datum.j);
        columns.coordinates.push(datum.k);
      },
      task: (task) => {
        this.id.push(task.id);
        this.rank.push(rank);
        classRows[task.taskClass] ??= this.#class(`class ${task.taskClass}`, []);
        this.taskClass.push(classRows[task.taskClass]);
        this.space.push(spaceRow(task.device));
        this.lane.push(laneRow(task.lane));
        this.flags.push(task.flags);
        this.releasedBy.push(task.releasedBy);
        for (let i = 0; i < TaskTime.count; i++) this.times[i].push(task.times[i]);
      },
      dependencies: (list) => {
        for (let i = 0; i < list.count; i++) {
          edges.successor.push(list.task);
          edges.predecessor.push(list.values[i]);
        }
      },
      accesses: (list) => {
        for (let i = 0; i < list.count; i++) {
          accesses.task.push(list.task);
          accesses.datum.push(list.values[i]);
          accesses.mode.push((list.modes >>> (2 * i)) & 3);
        }
      },
      parameters: (list) => {
        for (let i = 0; i < list.count; i++) {
          parameters.task.push(list.task);
          parameters.value.push(list.values[i]);
        }
      },
      transfer: (transfer) => {
        const columns = this.transfer;
        columns.rank.push(rank);
        columns.kind.push(transfer.kind);
        columns.reason.push(transfer.reason);
        columns.lane.push(laneRow(transfer.lane));
        columns.source.push(spaceRow(transfer.source));
        columns.destination.push(spaceRow(transfer.destination));
        transferIds.task.push(transfer.task);
        transferIds.datum.push(transfer.datum);
        columns.version.push(transfer.version);
        columns.peer.push(transfer.peer);
        columns.message.push(transfer.message);
        columns.bytes.push(transfer.bytes);
        columns.issued.push(transfer.issued);
        columns.start.push(transfer.start);
        columns.end.push(transfer.end);
      },
      counter: (counter) => {
        const columns = this.counter;
        columns.rank.push(rank);
        columns.kind.push(counter.kind);
        columns.space.push(spaceRow(counter.space));
        columns.time.push(counter.time);
        for (let i = 0; i < 6; i++) columns.values.push(counter.values[i]);
      },
      event: (event) => {
        const columns = this.event;
        columns.rank.push(rank);
        columns.kind.push(event.kind);
        columns.space.push(spaceRow(event.space));
        eventIds.task.push(event.task);
        eventIds.datum.push(event.datum);
        columns.time.push(event.time);
        columns.bytes.push(event.bytes);
        this.eventText.push(event.text);
      },
      clock: (clock) => clocks.push({ ...clock }),
    });

    const taskIndex = new IdIndex(this.id.done(), firstTask, this.id.length);
    const datumIndex = new IdIndex(this.datum.id.done(), firstDatum, this.datum.id.length);
    const taskRow = (id: number): number => (id === NONE ? -1 : taskIndex.row(id));
    const datumRow = (id: number): number => (id === NONE ? -1 : datumIndex.row(id));
    for (let row = firstTask; row < this.id.length; row++) {
      this.#releasedRows.push(taskRow(this.releasedBy.at(row)));
    }
    for (let i = 0; i < edges.successor.length; i++) {
      const predecessor = taskRow(edges.predecessor.at(i));
      if (predecessor < 0) continue;
      this.predecessors.task.push(taskRow(edges.successor.at(i)));
      this.predecessors.value.push(predecessor);
    }
    for (let i = 0; i < accesses.task.length; i++) {
      const datum = datumRow(accesses.datum.at(i));
      if (datum < 0) continue;
      this.accesses.task.push(taskRow(accesses.task.at(i)));
      this.accesses.value.push(datum);
      this.accesses.mode.push(accesses.mode.at(i));
    }
    for (let i = 0; i < parameters.task.length; i++) {
      this.parameters.task.push(taskRow(parameters.task.at(i)));
      this.parameters.value.push(parameters.value.at(i));
    }
    for (let i = 0; i < transferIds.task.length; i++) {
      this.transfer.task.push(taskRow(transferIds.task.at(i)));
      this.transfer.datum.push(datumRow(transferIds.datum.at(i)));
    }
    for (let i = 0; i < eventIds.task.length; i++) {
      this.event.task.push(taskRow(eventIds.task.at(i)));
      this.event.datum.push(datumRow(eventIds.datum.at(i)));
    }
    return { rank, name: reader.name, header, outcome, clocks };
  }

  finish(ranks: readonly TraceRank[], problems: string[]): Trace {
    const count = this.id.length;
    const lists = (pairs: PairColumns): Lists & { readonly origin: Int32Array } =>
      group(count, pairs.task.done(), pairs.value.done());
    const accesses = lists(this.accesses);
    const modes = this.accesses.mode.done();
    const accessModes = new Uint8Array(accesses.items.length);
    for (let i = 0; i < accessModes.length; i++) accessModes[i] = modes[accesses.origin[i]];

    for (const rank of ranks) problems.push(...rankProblems(rank, ranks.length));
    const t = this.transfer;
    const transfers = {
      count: t.rank.length,
      rank: t.rank.done(),
      kind: t.kind.done(),
      reason: t.reason.done(),
      lane: t.lane.done(),
      source: t.source.done(),
      destination: t.destination.done(),
      task: t.task.done(),
      datum: t.datum.done(),
      version: t.version.done(),
      peer: t.peer.done(),
      message: t.message.done(),
      bytes: t.bytes.done(),
      issued: t.issued.done(),
      start: t.start.done(),
      end: t.end.done(),
      partner: new Int32Array(t.rank.length).fill(-1),
    };
    const trace = {
      ranks,
      lanes: this.lanes,
      spaces: this.spaces,
      classes: this.classes as readonly TaskClass[],
      tasks: {
        count,
        id: this.id.done(),
        rank: this.rank.done(),
        taskClass: this.taskClass.done(),
        space: this.space.done(),
        lane: this.lane.done(),
        flags: this.flags.done(),
        releasedBy: this.#releasedRows.done(),
        times: this.times.map((column) => column.done()),
        predecessors: lists(this.predecessors),
        accesses,
        accessModes,
        parameters: lists(this.parameters),
      },
      transfers,
      data: {
        count: this.datum.id.length,
        rank: this.datum.rank.done(),
        id: this.datum.id.done(),
        home: this.datum.home.done(),
        bytes: this.datum.bytes.done(),
        name: this.datum.name.done(),
        names: [...this.#names.keys()],
        coordinates: this.datum.coordinates.done(),
      },
      counters: {
        count: this.counter.rank.length,
        rank: this.counter.rank.done(),
        kind: this.counter.kind.done(),
        space: this.counter.space.done(),
        time: this.counter.time.done(),
        values: this.counter.values.done(),
      },
      events: {
        count: this.event.rank.length,
        rank: this.event.rank.done(),
        kind: this.event.kind.done(),
        space: this.event.space.done(),
        task: this.event.task.done(),
        datum: this.event.datum.done(),
        time: this.event.time.done(),
        bytes: this.event.bytes.done(),
        text: this.eventText,
      },
      start: 0,
      end: 0,
      problems,
    };
    matchMessages(trace);
    if (ranks.length > 1) alignRanks(trace, problems);
    const { start, end } = extent(trace);
    return { ...trace, start, end };
  }

  #addTables(header: TraceHeader, spaceBase: number): void {
    header.spaces.forEach((space, index) => {
      this.spaces.push({ rank: header.rank, index, ...space });
    });
    for (const lane of header.lanes) {
      this.lanes.push({
        rank: header.rank,
        kind: lane.kind,
        name: lane.name,
        space: spaceBase + lane.space,
        peer: lane.peer < 0 ? -1 : spaceBase + lane.peer,
      });
    }
  }

  #class(name: string, parameterNames: readonly string[]): number {
    const known = this.#classByName.get(name);
    if (known !== undefined) return known;
    this.classes.push({ name, parameterNames });
    this.#classByName.set(name, this.classes.length - 1);
    return this.classes.length - 1;
  }

  #name(name: string): number {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    this.#names.set(name, this.#names.size);
    return this.#names.size - 1;
  }
}

function rankProblems(rank: TraceRank, ranks: number): string[] {
  const where = ranks > 1 ? `rank ${rank.rank} (${rank.name})` : rank.name;
  const problems = rank.outcome.problems.map((problem) => `${where}: ${problem}`);
  if (rank.outcome.skipped > 0) {
    problems.push(
      `${where}: ${rank.outcome.skipped} records of a newer format version were skipped`,
    );
  }
  return problems;
}

// First and last moment of anything; start and end of an empty trace are 0.
function extent(trace: Pick<Trace, 'tasks' | 'transfers' | 'events'>): {
  start: number;
  end: number;
} {
  let start = Number.POSITIVE_INFINITY;
  let end = Number.NEGATIVE_INFINITY;
  const { tasks, transfers, events } = trace;
  const inserted = tasks.times[TaskTime.inserted];
  const finalized = tasks.times[TaskTime.finalized];
  for (let row = 0; row < tasks.count; row++) {
    if (inserted[row] < start) start = inserted[row];
    if (finalized[row] > end) end = finalized[row];
  }
  for (let row = 0; row < transfers.count; row++) {
    if (transfers.issued[row] < start) start = transfers.issued[row];
    if (transfers.end[row] > end) end = transfers.end[row];
  }
  for (let row = 0; row < events.count; row++) {
    if (events.time[row] < start) start = events.time[row];
    if (events.time[row] > end) end = events.time[row];
  }
  return end < start ? { start: 0, end: 0 } : { start, end };
}

export type { TraceOutcome };
