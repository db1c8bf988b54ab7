// Fills the columns of a trace: every table is counted first and gets its exact size, then it is filled rank by rank.
// While a rank is read, its task ids are stored as they are; afterwards they become rows. Datum ids become rows at
// once: a runtime may give the id of a closed datum to a new one, and a record means the latest datum of that id.

import { group, IdIndex, type Lists, ReusableIds } from './columns.js';
import { type Counts, Pairs, store } from './counts.js';
import { NO_INDEX, NONE, TaskFlag, TaskTime, type TraceHeader } from './format.js';
import { type InferredEdges, inferDependencies } from './infer.js';
import { alignRanks, matchMessages } from './merge.js';
import { orderInTime, programOrder, ranksOutOfOrder } from './program-order.js';
import type { TraceReader } from './reader.js';
import type { ClockRecord, TraceVisitor } from './records.js';
import {
  type CounterColumns,
  type DatumColumns,
  type EventColumns,
  type Lane,
  NO_ROW,
  type PlayColumns,
  type Space,
  type StolenColumns,
  type TaskClass,
  type TaskColumns,
  type Trace,
  type TraceRank,
  type TransferColumns,
} from './trace.js';

/** Builds one trace from its ranks: `addRank` for each, then `finish`. */
export class Builder {
  readonly #lanes: Lane[] = [];
  readonly #spaces: Space[] = [];
  readonly #classes: TaskClass[] = [];
  readonly #classByName: Map<string, number> = new Map();
  readonly #names: Map<string, number> = new Map();
  readonly #edges: Pairs;
  readonly #accesses: Pairs;
  readonly #parameters: Pairs;
  readonly #text: string[] = [];
  readonly #plans: string[] = [];
  // Rows filled so far.
  #task = 0;
  #transfer = 0;
  #datum = 0;
  #counter = 0;
  #event = 0;
  #stolenSpan = 0;
  #play = 0;

  readonly #tasks: Omit<TaskColumns, 'predecessors' | 'accesses' | 'accessModes' | 'parameters'>;
  readonly #transfers: TransferColumns;
  readonly #data: Omit<DatumColumns, 'names'>;
  readonly #counters: CounterColumns;
  readonly #events: Omit<EventColumns, 'text'>;
  readonly #stolen: StolenColumns;
  readonly #plays: Omit<PlayColumns, 'plan'>;

  constructor(counts: Counts) {
    this.#edges = new Pairs(counts.edges);
    this.#accesses = new Pairs(counts.accesses);
    this.#parameters = new Pairs(counts.parameters);
    this.#tasks = {
      count: counts.tasks,
      id: new Uint32Array(counts.tasks),
      rank: new Uint16Array(counts.tasks),
      taskClass: new Uint16Array(counts.tasks),
      space: new Uint16Array(counts.tasks),
      lane: new Uint16Array(counts.tasks),
      flags: new Uint16Array(counts.tasks),
      releasedBy: new Int32Array(counts.tasks),
      play: new Int32Array(counts.tasks).fill(-1),
      times: Array.from({ length: TaskTime.count }, () => new Float64Array(counts.tasks)),
    };
    this.#transfers = {
      count: counts.transfers,
      rank: new Uint16Array(counts.transfers),
      kind: new Uint8Array(counts.transfers),
      reason: new Uint8Array(counts.transfers),
      lane: new Uint16Array(counts.transfers),
      source: new Uint16Array(counts.transfers),
      destination: new Uint16Array(counts.transfers),
      task: new Int32Array(counts.transfers),
      datum: new Int32Array(counts.transfers),
      version: new Uint32Array(counts.transfers),
      peer: new Int32Array(counts.transfers),
      message: new Uint32Array(counts.transfers),
      bytes: new Float64Array(counts.transfers),
      issued: new Float64Array(counts.transfers),
      start: new Float64Array(counts.transfers),
      end: new Float64Array(counts.transfers),
      partner: new Int32Array(counts.transfers).fill(-1),
    };
    this.#data = {
      count: counts.data,
      rank: new Uint16Array(counts.data),
      id: new Uint32Array(counts.data),
      home: new Uint16Array(counts.data),
      bytes: new Float64Array(counts.data),
      name: new Int32Array(counts.data),
      coordinates: new Int32Array(3 * counts.data),
    };
    this.#counters = {
      count: counts.counters,
      rank: new Uint16Array(counts.counters),
      kind: new Uint8Array(counts.counters),
      space: new Uint16Array(counts.counters),
      time: new Float64Array(counts.counters),
      values: new Float64Array(6 * counts.counters),
    };
    this.#events = {
      count: counts.events,
      rank: new Uint16Array(counts.events),
      kind: new Uint8Array(counts.events),
      space: new Uint16Array(counts.events),
      task: new Int32Array(counts.events),
      datum: new Int32Array(counts.events),
      time: new Float64Array(counts.events),
      bytes: new Float64Array(counts.events),
    };
    this.#stolen = {
      count: counts.stolen,
      rank: new Uint16Array(counts.stolen),
      lane: new Uint16Array(counts.stolen),
      from: new Float64Array(counts.stolen),
      to: new Float64Array(counts.stolen),
    };
    this.#plays = {
      count: counts.plays,
      rank: new Uint16Array(counts.plays),
      first: new Uint32Array(counts.plays),
      iterations: new Uint32Array(counts.plays),
      tasks: new Uint32Array(counts.plays),
      iteration: new Float64Array(counts.plays),
      before: new Uint32Array(counts.plays),
    };
  }

  addRank(reader: TraceReader, onBytes?: (bytes: number) => void): TraceRank {
    const { header } = reader;
    const first = {
      task: this.#task,
      transfer: this.#transfer,
      event: this.#event,
      edge: this.#edges.count,
      access: this.#accesses.count,
      parameter: this.#parameters.count,
    };
    const clocks: ClockRecord[] = [];
    const outcome = reader.read(this.#visitor(header, clocks), onBytes);

    const taskIndex = new IdIndex(this.#tasks.id, first.task, this.#task);
    const taskRow = (id: number): number => (id === NONE ? -1 : taskIndex.row(id));
    resolve(this.#tasks.releasedBy, first.task, this.#task, taskRow);
    resolve(this.#transfers.task, first.transfer, this.#transfer, taskRow);
    resolve(this.#events.task, first.event, this.#event, taskRow);
    this.#edges.resolve(first.edge, taskRow, taskRow);
    this.#accesses.resolve(first.access, taskRow);
    this.#parameters.resolve(first.parameter, taskRow);
    return { rank: header.rank, name: reader.name, header, outcome, clocks };
  }

  finish(ranks: readonly TraceRank[], problems: string[]): Trace {
    const lists = (pairs: Pairs): Lists & { readonly origin: Int32Array } =>
      group(
        this.#tasks.count,
        pairs.task.subarray(0, pairs.count),
        pairs.value.subarray(0, pairs.count),
      );
    const accesses = lists(this.#accesses);
    const accessModes = new Uint8Array(accesses.items.length);
    for (let i = 0; i < accessModes.length; i++) {
      accessModes[i] = this.#accesses.mode[accesses.origin[i]];
    }
    for (const rank of ranks) problems.push(...rankProblems(rank, ranks.length));
    const inferring = new Set(
      ranks.filter(({ header }) => header.dependencies === 'accesses').map(({ rank }) => rank),
    );
    const plays: PlayColumns = { ...this.#plays, plan: this.#plans };
    const order = programOrder(this.#tasks, plays);
    const infer = (from: Int32Array): InferredEdges =>
      inferDependencies({ ...this.#tasks, accesses, accessModes }, from, this.#data.count, (rank) =>
        inferring.has(rank),
      );
    let inferred = infer(order);
    const others = ranksOutOfOrder(this.#tasks, inferred);
    if (others.size > 0) inferred = infer(orderInTime(this.#tasks, order, others));
    const trace = {
      ranks,
      lanes: this.#lanes,
      spaces: this.#spaces,
      classes: this.#classes,
      tasks: {
        ...this.#tasks,
        predecessors:
          inferred.successor.length === 0
            ? lists(this.#edges)
            : group(
                this.#tasks.count,
                concatenated(this.#edges.task.subarray(0, this.#edges.count), inferred.successor),
                concatenated(
                  this.#edges.value.subarray(0, this.#edges.count),
                  inferred.predecessor,
                ),
              ),
        accesses,
        accessModes,
        parameters: lists(this.#parameters),
      },
      transfers: this.#transfers,
      data: { ...this.#data, names: [...this.#names.keys()] },
      counters: this.#counters,
      events: { ...this.#events, text: this.#text },
      stolen: this.#stolen,
      plays,
      start: 0,
      end: 0,
      problems,
    };
    matchMessages(trace);
    if (ranks.length > 1) alignRanks(trace, problems);
    const { start, end } = extent(trace);
    return { ...trace, start, end };
  }

  // Stores the records of one rank. Task ids stay ids for now: `addRank` turns them into rows.
  // biome-ignore lint/complexity/noExcessiveLinesPerFunction: one method per kind of record, over the same columns.
  #visitor(header: TraceHeader, clocks: ClockRecord[]): TraceVisitor {
    const { rank } = header;
    const laneBase = this.#lanes.length;
    const spaceBase = this.#spaces.length;
    this.#addTables(header, spaceBase);
    const laneRow = (index: number): number =>
      index < header.lanes.length ? laneBase + index : NO_ROW;
    const spaceRow = (index: number): number =>
      index < header.spaces.length && index !== NO_INDEX ? spaceBase + index : NO_ROW;
    const classRows: number[] = [];
    const data = new ReusableIds();
    const firstPlay = this.#play;
    const columns = this.#tasks;
    return {
      taskClass: (id, name, parameterNames, namedByParameters) => {
        classRows[id] = this.#class(name, parameterNames, namedByParameters);
      },
      datum: (datum) => {
        const row = this.#datum++;
        data.set(datum.id, row);
        this.#data.rank[row] = rank;
        this.#data.id[row] = datum.id;
        this.#data.home[row] = datum.home;
        this.#data.bytes[row] = datum.bytes;
        this.#data.name[row] = this.#name(datum.name);
        this.#data.coordinates.set([datum.i, datum.j, datum.k], 3 * row);
      },
      task: (task) => {
        const row = this.#task++;
        columns.id[row] = task.id;
        columns.rank[row] = rank;
        classRows[task.taskClass] ??= this.#class(`class ${task.taskClass}`, [], true);
        columns.taskClass[row] = classRows[task.taskClass];
        columns.space[row] = spaceRow(task.device);
        columns.lane[row] = laneRow(task.lane);
        columns.flags[row] = task.flags;
        columns.releasedBy[row] = task.releasedBy;
        // Its play's record came last, unless that was lost.
        if (task.flags & TaskFlag.played && this.#play > firstPlay)
          columns.play[row] = this.#play - 1;
        const { times } = task;
        // An end is never before its begin, even if the bytes are damaged.
        times[TaskTime.execEnd] = Math.max(times[TaskTime.execStart], times[TaskTime.execEnd]);
        for (let i = 0; i < TaskTime.count; i++) columns.times[i][row] = times[i];
      },
      dependencies: (list) => store(this.#edges, list),
      accesses: (list) => {
        for (let i = 0; i < list.count; i++) {
          const datum = data.row(list.values[i]);
          if (datum < 0) continue;
          const at = this.#accesses.count++;
          this.#accesses.task[at] = list.task;
          this.#accesses.value[at] = datum;
          this.#accesses.mode[at] = (list.modes >>> (2 * i)) & 3;
        }
      },
      parameters: (list) => store(this.#parameters, list),
      transfer: (transfer) => {
        const row = this.#transfer++;
        const into = this.#transfers;
        into.rank[row] = rank;
        into.kind[row] = transfer.kind;
        into.reason[row] = transfer.reason;
        into.lane[row] = laneRow(transfer.lane);
        into.source[row] = spaceRow(transfer.source);
        into.destination[row] = spaceRow(transfer.destination);
        into.task[row] = transfer.task;
        into.datum[row] = data.row(transfer.datum);
        into.version[row] = transfer.version;
        into.peer[row] = transfer.peer;
        into.message[row] = transfer.message;
        into.bytes[row] = transfer.bytes;
        into.issued[row] = transfer.issued;
        into.start[row] = transfer.start;
        into.end[row] = Math.max(transfer.start, transfer.end);
      },
      counter: (counter) => {
        const row = this.#counter++;
        this.#counters.rank[row] = rank;
        this.#counters.kind[row] = counter.kind;
        this.#counters.space[row] = spaceRow(counter.space);
        this.#counters.time[row] = counter.time;
        this.#counters.values.set(counter.values, 6 * row);
      },
      event: (event) => {
        const row = this.#event++;
        this.#events.rank[row] = rank;
        this.#events.kind[row] = event.kind;
        this.#events.space[row] = spaceRow(event.space);
        this.#events.task[row] = event.task;
        this.#events.datum[row] = data.row(event.datum);
        this.#events.time[row] = event.time;
        this.#events.bytes[row] = event.bytes;
        this.#text.push(event.text);
      },
      stolen: ({ lane, from, to }) => {
        const row = this.#stolenSpan++;
        this.#stolen.rank[row] = rank;
        this.#stolen.lane[row] = laneRow(lane);
        this.#stolen.from[row] = from;
        this.#stolen.to[row] = Math.max(from, to);
      },
      play: (play) => {
        const row = this.#play++;
        this.#plays.rank[row] = rank;
        this.#plans[row] = play.plan;
        this.#plays.first[row] = play.first;
        this.#plays.iterations[row] = play.iterations;
        this.#plays.tasks[row] = play.tasks;
        this.#plays.iteration[row] = play.iteration;
        this.#plays.before[row] = play.before;
      },
      clock: (clock) => {
        clocks.push({ ...clock });
      },
    };
  }

  #addTables(header: TraceHeader, spaceBase: number): void {
    header.spaces.forEach((space, index) => {
      this.#spaces.push({ rank: header.rank, index, ...space });
    });
    for (const lane of header.lanes) {
      this.#lanes.push({
        rank: header.rank,
        kind: lane.kind,
        name: lane.name,
        space: spaceBase + lane.space,
        peer: lane.peer < 0 ? -1 : spaceBase + lane.peer,
      });
    }
  }

  #class(name: string, parameterNames: readonly string[], namedByParameters: boolean): number {
    const known = this.#classByName.get(name);
    if (known !== undefined) return known;
    this.#classes.push({ name, parameterNames, namedByParameters });
    this.#classByName.set(name, this.#classes.length - 1);
    return this.#classes.length - 1;
  }

  #name(name: string): number {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    this.#names.set(name, this.#names.size);
    return this.#names.size - 1;
  }
}

function resolve(
  column: Int32Array,
  from: number,
  to: number,
  rowOf: (id: number) => number,
): void {
  for (let row = from; row < to; row++) column[row] = rowOf(column[row] >>> 0);
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

function concatenated(a: Int32Array, b: Int32Array): Int32Array {
  const both = new Int32Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
