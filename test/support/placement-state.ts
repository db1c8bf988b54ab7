// A recorded state for the choice of devices and queues: the places of data, their last writers, and the backlog of
// every queue. Nothing runs.

import type { DatumId } from '../../devices/handles.js';
import { CopyEvent, CopyState } from '../../devices/memory/coherency.js';
import { Directory } from '../../devices/memory/directory.js';
import { Submission } from '../../devices/submission.js';
import { DeviceChoice } from '../../scheduler/engine/device-choice.js';
import { QueueChoice } from '../../scheduler/engine/queue-choice.js';
import { ANY_DEVICE, type TaskClassRow, TaskTable } from '../../stages/task-table.js';
import { queueId, spaceId, taskId } from './handles.js';
import { ManualBackend } from './manual-backend.js';

/** One flow of a task. */
export interface PlacedFlow {
  readonly datum: DatumId;
  /** An AccessMode. */
  readonly mode: number;
}

export interface Machine {
  readonly workers?: number;
  readonly gpus: number;
  /** Compute queues per GPU. */
  readonly streams?: number;
  /** Largest number of commands queued ahead. */
  readonly depth?: number;
  /** Bytes the largest task may touch, per space; no limit where absent. */
  readonly capacity?: readonly number[];
}

/** A task class that has a kernel for the given spaces, 0 being the host. */
export function placedClass(
  modes: readonly number[],
  kernels: readonly boolean[],
  body = false,
): TaskClassRow {
  return {
    id: 0,
    name: 'placed',
    flowNames: modes.map((_, i) => `f${i}`),
    modes,
    paramNames: [],
    kernels: Int32Array.from(kernels, (has) => (has ? 0 : -1)),
    body: body ? () => undefined : undefined,
    explain: undefined,
    failureCode: undefined,
  };
}

export class PlacementState {
  readonly directory: Directory;
  readonly submission: Submission;
  readonly deviceChoice: DeviceChoice;
  readonly queueChoice: QueueChoice;
  /** 1 where memory is short, per space. */
  readonly short: Uint8Array;
  private readonly tasks = new TaskTable(64);
  private readonly spaces: number;

  constructor({ workers = 1, gpus, streams = 1, depth = 256, capacity }: Machine) {
    const backend = new ManualBackend(workers, gpus, { streams });
    this.spaces = gpus + 1;
    this.directory = new Directory(this.spaces);
    this.submission = new Submission(backend.port);
    this.short = new Uint8Array(this.spaces);
    const { tasks, directory, submission, short } = this;
    const pressure = { short, streams: 2 };
    this.deviceChoice = new DeviceChoice(
      tasks,
      directory,
      Float64Array.from(backend.spaces, (_, s) => capacity?.[s] ?? Number.POSITIVE_INFINITY),
    );
    this.queueChoice = new QueueChoice(tasks, directory, submission, depth, pressure);
  }

  /** A datum whose value is in the given spaces. The first of them keeps it. */
  datum(bytes: number, ...spaces: readonly number[]): DatumId {
    const d = this.directory.add(bytes, { name: 'datum' });
    spaces.forEach((s, i) => {
      const c = d * this.spaces + s;
      this.directory.block[c] = 0;
      this.directory.apply(d, spaceId(s), i === 0 ? CopyEvent.write : CopyEvent.fetch);
      if (i > 0) this.directory.apply(d, spaceId(s), CopyEvent.arrived);
      if (this.directory.state[c] === CopyState.invalid) throw new Error('test: no copy');
    });
    return d;
  }

  /** Queue `q` wrote the copy of `d` in the queue's own space. */
  wroteLast(d: DatumId, q: number): void {
    const { space } = this.submission.backend.queues[q];
    this.directory.setWriter(d * this.spaces + space, queueId(q), 1);
  }

  /** Queue `q` has `commands` under way, and `waiting` tasks stand in its line. */
  load(q: number, commands: number, waiting = 0): void {
    this.submission.outstanding[q] = commands;
    for (let i = 0; i < waiting; i++) this.queueChoice.lines[q].push(taskId(q * 128 + i), 0);
  }

  /** Row of a task with these flows. `device` is a space. */
  task(flows: readonly PlacedFlow[], device: number = ANY_DEVICE): number {
    const row = this.tasks.take(flows.length, 0) & this.tasks.mask;
    this.tasks.device[row] = spaceId(device);
    flows.forEach(({ datum }, i) => {
      this.tasks.flowDatum[this.tasks.flowStart[row] + i] = datum;
    });
    return row;
  }

  /** The queue chosen for a task with these flows on space `s`. */
  queue(flows: readonly PlacedFlow[], s: number): number {
    const modes = flows.map(({ mode }) => mode);
    return this.queueChoice.queue(this.task(flows, s), { modes }, s);
  }
}
