// Sequence numbers are wrapping int32: an old event must not look like a future one (an endless wait), and the vector
// clock must not take a future event for an old one (a missing edge).

import { describe, expect, test } from 'vitest';
import type { Backend } from '../../devices/backend.js';
import { Directory } from '../../devices/memory/directory.js';
import { Submission } from '../../devices/submission.js';
import { queueId, taskId } from '../support/handles.js';

/** Two queues that complete what the test says. */
function backend(): Backend & { waits: number[][] } {
  const waits: number[][] = [];
  const issued = new Int32Array(2);
  return {
    waits,
    queues: [
      { kind: 'worker', space: 0, peer: -1 },
      { kind: 'worker', space: 0, peer: -1 },
    ],
    ringRecords: 64,
    completed: new Int32Array(2),
    issued,
    failures: new Int32Array(2),
    wait: () => {},
    // biome-ignore lint/complexity/useMaxParams: stands for Backend.exec.
    exec: (
      queue: number,
      _k: number,
      _t: number,
      _r: number,
      _f: number,
      _n: number,
      _a: unknown,
      on: number,
      seq: number,
    ) => {
      waits.push([queue, on, seq]);
      issued[queue] = (issued[queue] + 1) | 0;
      return issued[queue];
    },
  } as unknown as Backend & { waits: number[][] };
}

const args = new Float64Array(1);
const exec = (s: Submission): number =>
  s.exec({ kernel: 0, row: 0, task: taskId(1), run: 0, nFlows: 0, nArgs: 0, args });

describe('sequence numbers that wrap', () => {
  test('a wait is dropped once known, and needed again for an event 2^31 records later', () => {
    const b = backend();
    const s = new Submission(b);
    s.begin(queueId(0));
    s.after(queueId(1), 5);
    exec(s);
    expect(b.waits).toEqual([[0, 1, 5]]);
    // Queue 1 goes on for 2^31 records; the engine sweeps on the way, as it does every 2^28.
    for (let step = 1; step <= 8; step++) {
      const at = (5 + step * 2 ** 28) | 0;
      b.completed[1] = at;
      b.issued[1] = at;
      s.seen[1] = at;
      if (s.isSweepDue(queueId(1))) s.refresh();
    }
    const later = (5 + 8 * 2 ** 28 + 7) | 0;
    s.begin(queueId(0));
    s.after(queueId(1), later);
    exec(s);
    expect(b.waits.at(-1)).toEqual([0, 1, later]);
  });

  test('the sweep is due before half of the range has passed', () => {
    const b = backend();
    const s = new Submission(b);
    b.completed[1] = 2 ** 28;
    s.seen[1] = 2 ** 28;
    expect(s.isSweepDue(queueId(1))).toBe(false);
    s.seen[1] = 2 ** 28 + 1;
    expect(s.isSweepDue(queueId(1))).toBe(true);
    s.refresh();
    expect(s.isSweepDue(queueId(1))).toBe(false);
  });

  test('the directory forgets events that have happened and keeps the others', () => {
    const directory = new Directory(1);
    const d = directory.add(8, { name: 'd' });
    directory.setWriter(d, queueId(0), 10);
    directory.addReader(d, queueId(0), 11);
    directory.addReader(d, queueId(1), 20);
    directory.addReader(d, queueId(2), 30);
    directory.forgetHappened((queue) => queue === 0 || queue === 1);
    expect(directory.writeQueue[d]).toBe(-1);
    // A list without a first reader would not be looked at.
    expect([directory.readerQueue[d], directory.readerSeq[d]]).toEqual([2, 30]);
    expect(directory.readersHead[d]).toBe(-1);
  });
});
