// What the records of a play have in common in all iterations: the place of each command in the lists of the plan, and
// the facts of its task or copy. Made once per plan and trace, as columns.
import {
  type Backend,
  execRecords,
  Opcode,
  RecordLayout as Record,
} from '../../devices/backend.js';
import { type DatumId, HOST, type SpaceId } from '../../devices/handles.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import { AccessMode, TransferKind, TransferReason } from '../../trace/format.js';
import { MOST_PARAMETERS } from '../../trace/group-recorder.js';
import type { PlannedProgram } from '../plans/planned-program.js';
import { lanesOfQueues } from './trace-header.js';

/** A copy of an iteration. */
interface PlannedTransfer {
  readonly list: number;
  readonly record: number;
  readonly kind: number;
  readonly reason: number;
  readonly lane: number;
  readonly source: SpaceId;
  readonly destination: SpaceId;
  readonly datum: DatumId;
  readonly bytes: number;
}

export class PlayTemplate {
  /** Tasks of an iteration. The columns have a row for each, in program order. */
  readonly tasks: number;
  readonly list: Int32Array;
  readonly record: Int32Array;
  readonly device: Uint8Array;
  readonly lane: Uint8Array;
  /** Id in the trace of each task's class, and how it uses its data. */
  readonly classIds: Uint16Array;
  readonly modes: readonly (readonly number[])[];
  /** First of the data of each task in `data`, `local`. */
  readonly firstFlow: Int32Array;
  readonly data: Int32Array;
  /** Index of each of `data` in `distinct`. */
  readonly local: Int32Array;
  readonly distinct: readonly DatumId[];
  /** First of the parameters of each task, which are recorded as far as a record has room. */
  readonly firstParameter: Int32Array;
  readonly parameters: Float64Array;
  /** Slot of each parameter, or -1. */
  readonly slots: Int32Array;
  readonly copies: readonly PlannedTransfer[];
  /** Records of an iteration, per list. */
  readonly lengths: readonly number[];

  /** `classId`: the id of a class in the trace. */
  constructor(
    program: PlannedProgram,
    { queues }: Pick<Backend, 'queues'>,
    classId: (cls: TaskClassRow) => number,
  ) {
    const { insertions: tasks } = program;
    const laneOf = lanesOfQueues(queues);
    this.tasks = tasks;
    this.list = new Int32Array(tasks);
    this.record = new Int32Array(tasks);
    this.device = new Uint8Array(tasks);
    this.lane = new Uint8Array(tasks);
    this.firstFlow = new Int32Array(tasks + 1);
    this.firstParameter = new Int32Array(tasks + 1);
    this.lengths = program.queues.map(({ insertion }) => insertion.length);
    program.queues.forEach(({ queue, insertion }, list) => {
      insertion.forEach((n, record) => {
        if (n < 0) return;
        this.list[n] = list;
        this.record[n] = record;
        this.device[n] = queues[queue].space;
        this.lane[n] = laneOf[queue];
      });
    });
    this.classIds = new Uint16Array(tasks);
    const modes: (readonly number[])[] = [];
    const data: number[] = [];
    const parameters: number[] = [];
    const slots: number[] = [];
    for (let n = 0; n < tasks; n++) {
      const task = program.task(n);
      this.classIds[n] = classId(task.cls);
      modes.push(task.cls.modes);
      data.push(...task.data);
      parameters.push(...task.params.slice(0, MOST_PARAMETERS));
      slots.push(...task.slots.slice(0, MOST_PARAMETERS));
      this.firstFlow[n + 1] = data.length;
      this.firstParameter[n + 1] = parameters.length;
    }
    this.modes = modes;
    this.data = Int32Array.from(data);
    this.parameters = Float64Array.from(parameters);
    this.slots = Int32Array.from(slots);
    this.copies = this.transfers(program, laneOf);
    const distinct = [...new Set([...data, ...this.copies.map(({ datum }) => datum)])];
    const places = new Map(distinct.map((d, i) => [d, i]));
    this.distinct = distinct as DatumId[];
    this.local = this.data.map((d) => places.get(d) as number);
  }

  private transfers(program: PlannedProgram, laneOf: Uint8Array): PlannedTransfer[] {
    const readOnHost = this.readOnHost();
    return program.queues.flatMap(({ queue, records }, list) => {
      const doubles = new Float64Array(records.buffer, records.byteOffset, records.length / 2);
      const found: PlannedTransfer[] = [];
      let span: number;
      for (let record = 0; record < this.lengths[list]; record += span) {
        const head = records[record * Record.words + Record.head];
        span = (head & 0xff) === Opcode.exec ? execRecords(head >>> 20) : 1;
        if ((head & 0xff) !== Opcode.copy) continue;
        const spaces = records[record * Record.words + Record.kernel];
        const destination = (spaces & 0xff) as SpaceId;
        const source = ((spaces >> 8) & 0xff) as SpaceId;
        const [, , bytes, datum] = doubles.subarray(record * Record.doubles + Record.argument);
        const feeds = destination !== HOST || readOnHost.has(datum);
        found.push({
          list,
          record,
          kind:
            source === HOST
              ? TransferKind.h2d
              : destination === HOST
                ? TransferKind.d2h
                : TransferKind.d2d,
          reason: feeds ? TransferReason.stageIn : TransferReason.writeThrough,
          lane: laneOf[queue],
          source,
          destination,
          datum: datum as DatumId,
          bytes,
        });
      }
      return found;
    });
  }

  /** Data that tasks on the host read. */
  private readOnHost(): ReadonlySet<number> {
    const found = new Set<number>();
    for (let n = 0; n < this.tasks; n++) {
      if (this.device[n] !== HOST) continue;
      this.modes[n].forEach((mode, i) => {
        if (mode !== AccessMode.write) found.add(this.data[this.firstFlow[n] + i]);
      });
    }
    return found;
  }
}
