// Next use: the distance to the next use of each copy on a device, read from the tasks that were inserted and not
// issued. With it, eviction has as few misses as any rule can have.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DatumId, HOST, type SpaceId } from '../../devices/handles.js';
import { LookAhead, roomFor } from '../../stages/next-use.js';
import { AccessMode, ANY_DEVICE, Execution, TaskStage } from '../../stages/task-table.js';
import { spaceId, taskId } from '../support/handles.js';
import { fewestMisses } from '../support/paging.js';
import { Bench, GPU, UNIT } from '../support/stage-bench.js';

const { read, write, readWrite } = AccessMode;
const NEVER = Number.POSITIVE_INFINITY;
const OTHER = spaceId(2);

const reading = (...data: readonly DatumId[]): { datum: DatumId; mode: number }[] =>
  data.map((datum) => ({ datum, mode: read }));

/** Looks ahead before each question, as the stages do. */
function looking({ x }: Bench): { nextUse(d: DatumId, s: SpaceId): number } {
  const ahead = new LookAhead(x);
  return {
    nextUse: (d, s) => {
      ahead.look();
      return ahead.uses.nextUse(d, s);
    },
  };
}

/** A further pass of the engine begins. */
function nextPass(bench: Bench): void {
  bench.x.now++;
}

function issue(bench: Bench, row: number): void {
  bench.tasks.execution[row] = Execution.command;
  bench.tasks.stage[row] = TaskStage.exec;
}

describe('the next use of a copy', () => {
  it('is the place of the first task that uses it among the tasks that were not issued', () => {
    const bench = new Bench(10);
    const [a, b, c, unused] = [1, 2, 3, 4].map(() => bench.clean(1));
    const rows = [reading(a), reading(b, a), reading(c), reading(a)].map((flows) =>
      bench.insert(GPU, flows),
    );
    const uses = looking(bench);
    const ask = (): number[] => [a, b, c, unused].map((d) => uses.nextUse(d, GPU));
    expect(ask()).toEqual([0, 1, 2, NEVER]);
    issue(bench, rows[0]);
    nextPass(bench);
    expect(ask()).toEqual([0, 0, 1, NEVER]);
    issue(bench, rows[1]);
    nextPass(bench);
    expect(ask()).toEqual([1, NEVER, 0, NEVER]);
    bench.tasks.stage[rows[2]] = TaskStage.done;
    nextPass(bench);
    expect(ask()).toEqual([0, NEVER, NEVER, NEVER]);
  });

  it('counts per device, and tasks of other devices do not count', () => {
    const bench = new Bench(10, 100, { gpus: 2 });
    const [a, b] = [bench.clean(1), bench.clean(1)];
    bench.share(b, OTHER);
    bench.insert(HOST, reading(a));
    bench.insert(OTHER, reading(b));
    bench.insert(GPU, reading(a));
    bench.insert(GPU, reading(b));
    const uses = looking(bench);
    expect([uses.nextUse(a, GPU), uses.nextUse(a, OTHER)]).toEqual([1, NEVER]);
    expect([uses.nextUse(b, GPU), uses.nextUse(b, OTHER)]).toEqual([2, 0]);
  });

  it('counts a task without a device for the home or the owner of its first output', () => {
    const bench = new Bench(10, 100, { gpus: 2 });
    const [atHome, owned, loose] = [bench.onHost(1), bench.dirty(1, OTHER), bench.datum(1)];
    const inputs = [1, 2, 3, 4].map(() => bench.onHost(1));
    bench.dir.home[atHome] = GPU;
    const insert = (input: DatumId, to?: DatumId): number =>
      bench.insert(ANY_DEVICE, [
        ...reading(input),
        ...(to === undefined ? [] : [{ datum: to, mode: readWrite }]),
      ]);
    insert(inputs[0], atHome);
    insert(inputs[1], owned);
    // Nobody knows yet where these will run.
    insert(inputs[2], loose);
    insert(inputs[3]);
    const uses = looking(bench);
    expect(inputs.map((d) => uses.nextUse(d, GPU))).toEqual([0, NEVER, NEVER, NEVER]);
    expect(inputs.map((d) => uses.nextUse(d, OTHER))).toEqual([NEVER, 1, NEVER, NEVER]);
    expect(uses.nextUse(owned, OTHER)).toBe(1);
  });

  it('is computed once a pass', () => {
    const bench = new Bench(10);
    const [a, b] = [bench.clean(1), bench.clean(1)];
    bench.insert(GPU, reading(a));
    const uses = looking(bench);
    expect(uses.nextUse(b, GPU)).toBe(NEVER);
    bench.insert(GPU, reading(b));
    expect(uses.nextUse(b, GPU)).toBe(NEVER);
    nextPass(bench);
    expect(uses.nextUse(b, GPU)).toBe(1);
  });

  it('is known for the next 1024 tasks of GPUs and no further', () => {
    const bench = new Bench(10, 10, { window: 2048 });
    const data = Array.from({ length: 1030 }, () => bench.datum(1));
    for (const datum of data) bench.insert(GPU, [{ datum, mode: write }]);
    const uses = looking(bench);
    const known = data.map((d) => uses.nextUse(d, GPU));
    expect(known.slice(0, 1024)).toEqual(data.slice(0, 1024).map((_, i) => i));
    expect(known.slice(1024)).toEqual(new Array(6).fill(NEVER));
  });

  it('is not an earlier result for data that are no longer used', () => {
    const bench = new Bench(10, 10, { window: 256 });
    const [old, used] = [bench.clean(1), bench.clean(1)];
    const row = bench.insert(GPU, reading(old));
    const uses = looking(bench);
    expect(uses.nextUse(old, GPU)).toBe(0);
    // The task is dropped, the directory grows, and ids wrap.
    bench.tasks.stage[row] = TaskStage.done;
    bench.tasks.retireHead();
    bench.tasks.head = taskId(2 ** 31 - 2);
    bench.tasks.next = bench.tasks.head;
    const more = Array.from({ length: 400 }, () => bench.datum(1));
    for (const d of [used, more[399], more[0]]) bench.insert(GPU, reading(d));
    nextPass(bench);
    expect([old, used, more[399], more[0]].map((d) => uses.nextUse(d, GPU))).toEqual([
      NEVER,
      0,
      1,
      2,
    ]);
  });
});

describe('a program that is known', () => {
  it('runs with the fewest possible misses', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.nat({ max: 6 }), { maxLength: 30, size: 'max' }),
        (frames, sequence) => {
          const bench = new Bench(frames);
          const data = Array.from({ length: 7 }, () => bench.onHost(1));
          const rows = sequence.map((i) => bench.insert(GPU, reading(data[i])));
          let misses = 0;
          sequence.forEach((i, at) => {
            const d = data[i];
            nextPass(bench);
            if (bench.isHere(d)) {
              bench.gpu.pin(d);
              bench.gpu.unpin(d);
            } else {
              misses++;
              bench.gpu.zone.release(roomFor(bench.x, bench.gpu, UNIT));
              bench.share(d, GPU);
            }
            issue(bench, rows[at]);
          });
          expect(misses).toBe(fewestMisses(sequence, frames));
        },
      ),
      { numRuns: 150 },
    );
  });
});
