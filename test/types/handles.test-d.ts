// Handles of different kinds cannot take each other's place, and a plain number is no handle.
import { describe, expectTypeOf, it } from 'vitest';
import type { Backend } from '../../devices/backend.js';
import {
  type Column,
  type DatumId,
  FIRST_QUEUE,
  HOST,
  NO_QUEUE,
  type QueueId,
  type SpaceId,
  type TaskElsewhere,
  type TaskHandle,
  type TaskId,
} from '../../devices/handles.js';
import { CopyEvent } from '../../devices/memory/coherency.js';
import type { Directory } from '../../devices/memory/directory.js';
import type { Transfers } from '../../devices/memory/transfers.js';
import type { Launch, Submission } from '../../devices/submission.js';
import type { TaskInsertion } from '../../scheduler/engine/task-insertion.js';
import type { TaskTable } from '../../stages/task-table.js';

declare const launch: Launch;
declare const backend: Backend;
declare const directory: Directory;
declare const submission: Submission;
declare const tasks: TaskTable;
declare const transfers: Transfers;
declare const datum: DatumId;
declare const queue: QueueId;
declare const space: SpaceId;
declare const task: TaskId;
declare const elsewhere: TaskElsewhere;
declare const handle: TaskHandle;
declare const n: number;

describe('a queue', () => {
  it('is no plain number', () => {
    expectTypeOf(queue).toExtend<number>();
    submission.begin(queue);
    // @ts-expect-error a number is no queue
    submission.begin(n);
    // @ts-expect-error a sequence number is no queue
    backend.wait(queue, n, 0);
  });

  it('comes out of the columns that hold queues, and only queues go in', () => {
    expectTypeOf(tasks.queue[0]).toEqualTypeOf<QueueId>();
    expectTypeOf(directory.writeQueue[0]).toEqualTypeOf<QueueId>();
    expectTypeOf(directory.readers.value[0]).toEqualTypeOf<QueueId>();
    tasks.target[0] = queue;
    // @ts-expect-error a number is no queue
    tasks.target[0] = n;
    // @ts-expect-error a sequence number is no queue
    tasks.target[0] = tasks.seq[0];
  });

  it('is counted from the first', () => {
    for (let q = FIRST_QUEUE; q < 3; q++) expectTypeOf(q).toEqualTypeOf<QueueId>();
    expectTypeOf(NO_QUEUE).toEqualTypeOf<QueueId>();
    expectTypeOf<Column<Int32Array, QueueId>>().toExtend<Int32Array>();
  });
});

describe('a space', () => {
  it('is no queue and no plain number', () => {
    expectTypeOf(space).toExtend<number>();
    transfers.queue(HOST, space);
    // @ts-expect-error a queue is no space
    transfers.queue(HOST, queue);
    // @ts-expect-error a number is no space
    transfers.chooseSource(datum, n);
    // @ts-expect-error a space is no queue
    submission.begin(space);
    // @ts-expect-error queues and spaces cannot be compared
    expectTypeOf(queue === space).toEqualTypeOf<boolean>();
  });

  it('comes out of the columns that hold spaces, and only spaces go in', () => {
    expectTypeOf(tasks.device[0]).toEqualTypeOf<SpaceId>();
    expectTypeOf(directory.home[0]).toEqualTypeOf<SpaceId>();
    expectTypeOf(directory.owner(datum)).toEqualTypeOf<SpaceId>();
    expectTypeOf(backend.queues[0].space).toEqualTypeOf<SpaceId>();
    // @ts-expect-error a queue is no space
    tasks.device[0] = queue;
  });
});

describe('a datum', () => {
  it('is no space, no queue and no plain number', () => {
    directory.apply(datum, space, CopyEvent.read);
    // @ts-expect-error a space is no datum
    directory.apply(space, space, CopyEvent.read);
    // @ts-expect-error a datum is no space
    directory.apply(datum, datum, CopyEvent.read);
    // @ts-expect-error a number is no datum
    directory.remove(n);
    // @ts-expect-error data and queues cannot be compared
    expectTypeOf(datum === queue).toEqualTypeOf<boolean>();
  });

  it('is made by the directory and comes out of the flows of tasks', () => {
    expectTypeOf(directory.add(8, { name: 'x' })).toEqualTypeOf<DatumId>();
    expectTypeOf(tasks.flowDatum[0]).toEqualTypeOf<DatumId>();
    // @ts-expect-error a place among the flows is no datum
    directory.owner(tasks.flowStart[0]);
  });
});

describe('a task', () => {
  it('is no row of the table, no datum and no plain number', () => {
    submission.exec({ ...launch, task });
    // @ts-expect-error a row is no task
    submission.exec({ ...launch, task: task & tasks.mask });
    // @ts-expect-error a datum is no task
    submission.exec({ ...launch, task: datum });
    expectTypeOf(tasks.take(0, 0)).toEqualTypeOf<TaskId>();
    expectTypeOf(tasks.idOf(0)).toEqualTypeOf<TaskId>();
    expectTypeOf(transfers.task[0]).toEqualTypeOf<TaskId>();
  });

  it('of this rank or of another has a handle for the program', () => {
    expectTypeOf(task).toExtend<TaskHandle>();
    expectTypeOf(elsewhere).toExtend<TaskHandle>();
    const insertion = {} as TaskInsertion;
    insertion.after = [task];
    // @ts-expect-error the engine knows no tasks of other ranks
    insertion.after = [elsewhere];
    // @ts-expect-error a handle may name a task of another rank
    insertion.after = [handle];
    // @ts-expect-error a number is no handle
    expectTypeOf(n).toExtend<TaskHandle>();
  });
});
