// Decodes records from a chunk of bytes and calls a visitor: the inner loop of every reader.
// It stops at the end record, or at a record that contradicts the format: all records before it are good.
import { RecordCheck } from './check-record.js';
import {
  NO_COORDINATE,
  NONE,
  RESIDENT_DATA,
  RecordKind,
  TaskTime,
  type TraceHeader,
  UNIT,
} from './format.js';
import { groupCount, readGroup } from './read-group.js';
import type {
  ClockRecord,
  CounterRecord,
  DatumRecord,
  EventRecord,
  ListRecord,
  PlayRecord,
  StolenRecord,
  TaskRecord,
  TraceOutcome,
  TraceVisitor,
  TransferRecord,
} from './records.js';

const decoder = new TextDecoder();

/** One reading of one trace. */
export class Pass {
  /** The end record was seen or the rest is unreadable. */
  done = false;

  readonly #origin: number;
  readonly #visitor: TraceVisitor;
  readonly #check: RecordCheck;
  readonly #strings: string[] = [];
  readonly #problems: string[] = [];
  #ended = false;
  #tasks = 0;
  #transfers = 0;
  #units = 0;
  #skipped = 0;

  // The reused records.
  readonly #task: TaskRecord = {
    id: 0,
    taskClass: 0,
    device: 0,
    lane: 0,
    flags: 0,
    releasedBy: NONE,
    times: new Float64Array(TaskTime.count),
  };
  readonly #transfer: TransferRecord = {
    kind: 0,
    reason: 0,
    lane: 0,
    source: 0,
    destination: 0,
    task: NONE,
    datum: NONE,
    version: 0,
    peer: -1,
    message: NONE,
    bytes: 0,
    issued: 0,
    start: 0,
    end: 0,
  };
  readonly #list: ListRecord = { task: 0, count: 0, values: new Uint32Array(6), modes: 0 };
  readonly #parameters: ListRecord = { task: 0, count: 0, values: new Int32Array(6), modes: 0 };
  readonly #datum: DatumRecord = {
    id: 0,
    home: 0,
    bytes: 0,
    name: '',
    i: NO_COORDINATE,
    j: NO_COORDINATE,
    k: NO_COORDINATE,
  };
  readonly #counter: CounterRecord = { kind: 0, space: 0, time: 0, values: new Float64Array(6) };
  readonly #event: EventRecord = {
    kind: 0,
    space: 0,
    task: NONE,
    datum: NONE,
    time: 0,
    bytes: 0,
    text: '',
  };
  readonly #play: PlayRecord = {
    plan: '',
    first: 0,
    iterations: 0,
    tasks: 0,
    iteration: 0,
    before: 0,
  };
  readonly #stolen: StolenRecord = { lane: 0, from: 0, to: 0 };
  readonly #clock: ClockRecord = { peer: 0, time: 0, offset: 0, error: 0 };

  constructor(header: TraceHeader, visitor: TraceVisitor) {
    this.#origin = Math.floor(header.clockOrigin);
    this.#visitor = visitor;
    this.#check = new RecordCheck(header);
  }

  /** Decodes all whole records in `bytes[0 .. length)`; returns their length in bytes. */
  take(bytes: Uint8Array, length: number): number {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    while (at + UNIT <= length) {
      const units = bytes[at + 1];
      if (units === 0) {
        this.#stop(`damaged from unit ${this.#units} on; everything before it was read`);
        return at;
      }
      if (at + units * UNIT > length) return at;
      const sound = this.#check.look(view, at);
      if (sound === 'damaged') {
        this.#stop(`damaged from unit ${this.#units} on; everything before it was read`);
        return at;
      }
      this.#units += units;
      if (sound === 'unknown') this.#skip(bytes[at]);
      else this.#record(bytes, view, at);
      at += units * UNIT;
      if (this.done) return at;
    }
    return at;
  }

  /** The input ended, with `left` bytes of an unfinished record, before an end record came. */
  cut(left: number): void {
    this.#stop(
      `cut off: no end record (the run crashed, is still going, or the disk was full)` +
        (left > 0 ? `; ${left} bytes of an unfinished record are ignored` : ''),
    );
  }

  outcome(): TraceOutcome {
    return {
      complete: this.#ended && this.#problems.length === 0,
      tasks: this.#tasks,
      transfers: this.#transfers,
      units: this.#units,
      skipped: this.#skipped,
      problems: this.#problems,
    };
  }

  #stop(problem: string): void {
    this.done = true;
    this.#problems.push(problem);
  }

  /** A record of a newer version, or of a kind that only a newer one has. It counts like the end record's count. */
  #skip(kind: number): void {
    this.#skipped++;
    if (kind === RecordKind.transfer) this.#transfers++;
  }

  // biome-ignore lint/complexity/noExcessiveLinesPerFunction: one case per kind of record.
  #record(bytes: Uint8Array, view: DataView, at: number): void {
    const visitor = this.#visitor;
    switch (bytes[at]) {
      case RecordKind.task:
      case RecordKind.longTask:
        this.#tasks++;
        if (visitor.task) this.#readTask(bytes, view, at);
        return;
      case RecordKind.residentTask:
        this.#tasks++;
        if (visitor.task) this.#readResidentTask(bytes, view, at);
        if (visitor.accesses) this.#readResidentData(view, at);
        return;
      case RecordKind.taskGroup:
        this.#readGroup(bytes, view, at);
        return;
      case RecordKind.dependencies: {
        if (!visitor.dependencies) return;
        const list = this.#list;
        this.#readList(view, at, list, bytes[at + 2]);
        visitor.dependencies(list);
        return;
      }
      case RecordKind.accesses: {
        if (!visitor.accesses) return;
        const list = this.#list;
        const head = view.getUint16(at + 2, true);
        this.#readList(view, at, list, head >>> 12);
        list.modes = head & 0xfff;
        visitor.accesses(list);
        return;
      }
      case RecordKind.parameters: {
        if (!visitor.parameters) return;
        const list = this.#parameters;
        this.#readList(view, at, list, bytes[at + 2]);
        visitor.parameters(list);
        return;
      }
      case RecordKind.transfer:
        this.#transfers++;
        if (visitor.transfer) this.#readTransfer(bytes, view, at);
        return;
      case RecordKind.counter: {
        if (!visitor.counter) return;
        const counter = this.#counter;
        counter.kind = bytes[at + 2];
        counter.space = bytes[at + 3];
        counter.time = this.#time(view, at + 8);
        for (let i = 0; i < 6; i++) counter.values[i] = view.getFloat64(at + 16 + 8 * i, true);
        visitor.counter(counter);
        return;
      }
      case RecordKind.event: {
        if (!visitor.event) return;
        const event = this.#event;
        event.kind = bytes[at + 2];
        event.space = bytes[at + 3];
        event.task = view.getUint32(at + 4, true);
        event.time = this.#time(view, at + 8);
        event.bytes = view.getFloat64(at + 16, true);
        event.datum = view.getUint32(at + 24, true);
        event.text = this.#string(view.getUint32(at + 28, true));
        visitor.event(event);
        return;
      }
      case RecordKind.string: {
        const length = Math.min(view.getUint16(at + 2, true), bytes[at + 1] * UNIT - 8);
        this.#strings[view.getUint32(at + 4, true)] = decoder.decode(
          bytes.subarray(at + 8, at + 8 + length),
        );
        return;
      }
      case RecordKind.taskClass: {
        if (!visitor.taskClass) return;
        const parameters = this.#string(view.getUint32(at + 8, true));
        visitor.taskClass(
          view.getUint16(at + 2, true),
          this.#string(view.getUint32(at + 4, true)),
          parameters === '' ? [] : parameters.split(','),
          view.getUint32(at + 12, true) === 0,
        );
        return;
      }
      case RecordKind.datum: {
        if (!visitor.datum) return;
        const datum = this.#datum;
        datum.home = view.getUint16(at + 2, true);
        datum.id = view.getUint32(at + 4, true);
        datum.bytes = view.getFloat64(at + 8, true);
        datum.name = this.#string(view.getUint32(at + 16, true));
        datum.i = view.getInt32(at + 20, true);
        datum.j = view.getInt32(at + 24, true);
        datum.k = view.getInt32(at + 28, true);
        visitor.datum(datum);
        return;
      }
      case RecordKind.play: {
        if (!visitor.play) return;
        const play = this.#play;
        play.first = view.getUint32(at + 4, true);
        play.iterations = view.getUint32(at + 8, true);
        play.tasks = view.getUint32(at + 12, true);
        play.iteration = view.getFloat64(at + 16, true);
        play.before = view.getUint32(at + 24, true);
        play.plan = this.#string(view.getUint32(at + 28, true));
        visitor.play(play);
        return;
      }
      case RecordKind.stolen: {
        if (!visitor.stolen) return;
        const stolen = this.#stolen;
        stolen.lane = bytes[at + 2];
        stolen.from = this.#time(view, at + 8);
        stolen.to = this.#time(view, at + 16);
        visitor.stolen(stolen);
        return;
      }
      case RecordKind.clock: {
        if (!visitor.clock) return;
        const clock = this.#clock;
        clock.peer = view.getUint16(at + 2, true);
        clock.time = this.#time(view, at + 8);
        clock.offset = view.getFloat64(at + 16, true);
        clock.error = view.getFloat64(at + 24, true);
        visitor.clock(clock);
        return;
      }
      case RecordKind.end:
        this.#readEnd(view, at);
        return;
    }
  }

  #readTask(bytes: Uint8Array, view: DataView, at: number): void {
    const task = this.#readTaskHead(bytes, view, at);
    const times = task.times;
    if (bytes[at] === RecordKind.task) {
      const inserted = this.#time(view, at + 16);
      times[0] = inserted;
      for (let i = 0; i < 9; i++) times[i + 1] = inserted + view.getUint32(at + 24 + 4 * i, true);
    } else {
      for (let i = 0; i < 10; i++) times[i] = this.#time(view, at + 16 + 8 * i);
    }
    this.#visitor.task!(task);
  }

  #readTaskHead(bytes: Uint8Array, view: DataView, at: number): TaskRecord {
    const task = this.#task;
    task.taskClass = view.getUint16(at + 2, true);
    task.device = bytes[at + 4];
    task.lane = bytes[at + 5];
    task.flags = view.getUint16(at + 6, true);
    task.id = view.getUint32(at + 8, true);
    task.releasedBy = view.getUint32(at + 12, true);
    return task;
  }

  #readResidentTask(bytes: Uint8Array, view: DataView, at: number): void {
    const task = this.#readTaskHead(bytes, view, at);
    const times = task.times;
    const inserted = this.#time(view, at + 16);
    const ready = inserted + view.getUint32(at + 24, true);
    const issued = inserted + view.getUint32(at + 28, true);
    const finalized = inserted + view.getUint32(at + 40, true);
    times[TaskTime.inserted] = inserted;
    times[TaskTime.ready] = ready;
    times[TaskTime.alloc] = ready;
    times[TaskTime.stageIn] = ready;
    times[TaskTime.commIn] = ready;
    times[TaskTime.issued] = issued;
    times[TaskTime.execStart] = inserted + view.getUint32(at + 32, true);
    times[TaskTime.execEnd] = inserted + view.getUint32(at + 36, true);
    times[TaskTime.stageOut] = finalized;
    times[TaskTime.finalized] = finalized;
    this.#visitor.task!(task);
  }

  #readResidentData(view: DataView, at: number): void {
    const list = this.#list;
    const head = view.getUint16(at + 44, true);
    list.task = view.getUint32(at + 8, true);
    list.count = Math.min(head >>> 12, RESIDENT_DATA);
    list.modes = head & 0xfff;
    if (list.count === 0) return;
    for (let i = 0; i < list.count; i++) list.values[i] = view.getUint32(at + 48 + 4 * i, true);
    this.#visitor.accesses!(list);
  }

  #readGroup(bytes: Uint8Array, view: DataView, at: number): void {
    const visitor = this.#visitor;
    const count = groupCount(view, at);
    if (count === 0) {
      this.#units -= bytes[at + 1];
      this.#stop(`damaged from unit ${this.#units} on; everything before it was read`);
      return;
    }
    this.#tasks += count;
    if (!visitor.task && !visitor.accesses && !visitor.parameters) return;
    const records = {
      task: this.#readTaskHead(bytes, view, at),
      data: this.#list,
      parameters: this.#parameters,
    };
    readGroup(view, at, this.#time(view, at + 16), records, visitor);
  }

  #readTransfer(bytes: Uint8Array, view: DataView, at: number): void {
    const transfer = this.#transfer;
    transfer.kind = bytes[at + 2];
    transfer.reason = bytes[at + 3];
    transfer.lane = bytes[at + 4];
    transfer.source = bytes[at + 5];
    transfer.destination = bytes[at + 6];
    transfer.task = view.getUint32(at + 8, true);
    transfer.datum = view.getUint32(at + 12, true);
    transfer.version = view.getUint32(at + 16, true);
    transfer.peer = view.getInt32(at + 20, true);
    transfer.message = view.getUint32(at + 24, true);
    transfer.bytes = view.getFloat64(at + 32, true);
    transfer.issued = this.#time(view, at + 40);
    transfer.start = this.#time(view, at + 48);
    transfer.end = this.#time(view, at + 56);
    this.#visitor.transfer!(transfer);
  }

  #readList(view: DataView, at: number, list: ListRecord, count: number): void {
    list.task = view.getUint32(at + 4, true);
    list.count = Math.min(count, 6);
    // An Int32Array takes the bits of parameters as signed, a Uint32Array ids as unsigned.
    for (let i = 0; i < list.count; i++) list.values[i] = view.getInt32(at + 8 + 4 * i, true);
  }

  #readEnd(view: DataView, at: number): void {
    this.done = true;
    this.#ended = true;
    const units = view.getFloat64(at + 24, true);
    if (
      view.getFloat64(at + 8, true) !== this.#tasks ||
      view.getFloat64(at + 16, true) !== this.#transfers ||
      units !== this.#units
    ) {
      this.#problems.push(
        `the end record counts ${units} units, ${this.#units} were read: the file was changed after it was written`,
      );
    }
  }

  // Whole nanoseconds, so that sums of many times stay exact in float64. Always rounded down (as the recorder
  // does), so that an end before another begin stays before it.
  #time(view: DataView, at: number): number {
    return Math.floor(view.getFloat64(at, true) - this.#origin);
  }

  #string(id: number): string {
    if (id === NONE) return '';
    return this.#strings[id] ?? `string ${id}`;
  }
}
