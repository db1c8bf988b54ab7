// The reservation of memory, step by step: all or nothing, the ticket, eviction of the least recently used copy first,
// write-back of exactly the missing bytes, and memory that is free but not contiguous.

import { beforeEach, describe, expect, it } from 'vitest';
import { HOST } from '../../devices/handles.js';
import { CopyEvent, CopyState } from '../../devices/memory/coherency.js';
import { alloc } from '../../stages/alloc.js';
import { Outcome, WaitReason } from '../../stages/stage.js';
import { taskId } from '../support/handles.js';
import { Bench, GPU, UNIT } from '../support/stage-bench.js';

let bench: Bench;

describe('alloc with ten units', () => {
  beforeEach(() => {
    bench = new Bench(10);
  });

  it('takes free memory at once and pins every datum', () => {
    const [a, b] = [bench.datum(3), bench.datum(4)];
    const row = bench.task(a, b);
    expect(alloc(bench.x, row)).toBe(Outcome.advance);
    expect(bench.gpu.zone.used).toBe(7 * UNIT);
    expect([bench.dir.pins[a * 2 + GPU], bench.dir.pins[b * 2 + GPU]]).toEqual([1, 1]);
    expect(bench.backend.commands).toEqual([]);
    bench.end(row);
    // Nothing was written to them: they hold no value and so no memory.
    expect(bench.gpu.zone.used).toBe(0);
  });

  it('a datum named twice takes memory once, and is pinned twice', () => {
    const a = bench.datum(6);
    const row = bench.task(a, a);
    expect(alloc(bench.x, row)).toBe(Outcome.advance);
    expect(bench.gpu.zone.used).toBe(6 * UNIT);
    expect(bench.dir.pins[a * 2 + GPU]).toBe(2);
    bench.end(row);
    expect(bench.gpu.zone.used).toBe(0);
  });

  it('drops clean copies, least recently used first, and no more than needed', () => {
    const [a, b, c] = [bench.clean(3), bench.clean(3), bench.clean(3)];
    bench.gpu.pin(a);
    bench.gpu.unpin(a); // used again: now b is the oldest
    const row = bench.task(bench.datum(3));
    expect(alloc(bench.x, row)).toBe(Outcome.advance);
    expect([a, b, c].map((d) => bench.isHere(d))).toEqual([true, false, true]);
    expect(bench.x.counters.evictions).toBe(1);
    bench.check();
  });

  it('never drops its own inputs to make room for its outputs', () => {
    const [own, other] = [bench.clean(4), bench.clean(4)];
    bench.gpu.pin(other);
    bench.gpu.unpin(other);
    // `own` is the least recently used; the task needs it and six more units.
    const row = bench.task(own, bench.datum(6));
    expect(alloc(bench.x, row)).toBe(Outcome.advance);
    expect([bench.isHere(own), bench.isHere(other)]).toEqual([true, false]);
    bench.check();
  });

  it('holds nothing while it waits: its blocks go back', () => {
    const pinned = bench.dirty(3);
    bench.gpu.pin(pinned);
    const [resident, missing] = [bench.clean(2), bench.datum(6)];
    const row = bench.task(resident, missing);
    const used = bench.gpu.zone.used;
    expect(alloc(bench.x, row)).toBe(Outcome.wait);
    expect(bench.tasks.waiting[row]).toBe(WaitReason.memory);
    expect(bench.gpu.zone.used).toBe(used);
    expect(bench.dir.pins[resident * 2 + GPU]).toBe(0);
    expect(bench.isHere(missing)).toBe(false);
    expect(bench.gpu.waiters.length).toBe(1);
    bench.check();
    // The pin returns: the dirty copy is written back, then the task gets everything at once.
    bench.gpu.unpin(pinned);
    expect(bench.serve()).toEqual([]);
    expect(bench.backend.commands.filter((c) => c.kind === 'copy')).toHaveLength(1);
    bench.finishTransfers();
    expect(bench.serve()).toEqual([row]);
    expect(bench.dir.pins[resident * 2 + GPU]).toBe(1);
    expect(bench.dir.pins[missing * 2 + GPU]).toBe(1);
  });

  it('writes back exactly as many dirty copies as are missing, oldest first', () => {
    const dirty = [bench.dirty(3), bench.dirty(3), bench.dirty(3)];
    const row = bench.task(bench.datum(3));
    expect(alloc(bench.x, row)).toBe(Outcome.wait);
    // One unit is free, three come with the first write-back.
    expect(bench.transfers.spills).toBe(1);
    expect(bench.transfers.datum[0]).toBe(dirty[0]);
    // Looking again starts nothing new.
    expect(bench.serve()).toEqual([]);
    expect(bench.transfers.spills).toBe(1);
    bench.finishTransfers();
    expect(bench.dir.state[dirty[0] * 2]).toBe(CopyState.owned);
    expect(bench.serve()).toEqual([row]);
    expect(dirty.map((d) => bench.isHere(d))).toEqual([false, true, true]);
    expect(bench.transfers.bytes.d2h).toBe(3 * UNIT);
  });

  it('a dirty copy that another space has as well is handed over, not copied', () => {
    const both = bench.clean(8);
    // The GPU keeps the value, the host has it, too.
    bench.transfers.handOver(both, GPU);
    expect(bench.dir.owner(both)).toBe(GPU);
    const row = bench.task(bench.datum(5));
    expect(alloc(bench.x, row)).toBe(Outcome.advance);
    expect(bench.transfers.spills).toBe(0);
    expect(bench.dir.owner(both)).toBe(0);
    expect(bench.isHere(both)).toBe(false);
    bench.check();
  });

  it('no task takes bytes before the first in line; a task that needs none passes', () => {
    const pinned = bench.dirty(8);
    bench.gpu.pin(pinned);
    const large = bench.task(bench.datum(5));
    const small = bench.task(bench.datum(1));
    const resident = bench.task(pinned);
    expect(alloc(bench.x, large)).toBe(Outcome.wait);
    expect(alloc(bench.x, small)).toBe(Outcome.wait);
    expect(alloc(bench.x, resident)).toBe(Outcome.advance);
    expect(bench.gpu.waiters.length).toBe(2);
    // Two units are free all the time: enough for the small one, but it is not its turn.
    expect(bench.serve()).toEqual([]);
    bench.gpu.unpin(pinned);
    bench.end(resident);
    expect(bench.serve()).toEqual([]);
    bench.finishTransfers();
    expect(bench.serve()).toEqual([large, small]);
    expect(bench.gpu.waiters.length).toBe(0);
  });

  it.each([1, 0, -1, 2 ** 31 - 1])(
    'empties the device when the bytes are there but in pieces, for task %i',
    (id) => {
      bench.tasks.head = taskId(id);
      bench.tasks.next = taskId(id);
      // Free units 2-3, 6-7: four units in two pieces; the task wants three in one piece and its resident copy.
      const blocks = [
        bench.clean(2),
        bench.dirty(2),
        bench.dirty(2),
        bench.dirty(2),
        bench.dirty(2),
      ];
      const own = blocks[2];
      bench.dir.apply(blocks[1], GPU, CopyEvent.remoteWrite);
      bench.gpu.settle(blocks[1]);
      bench.dir.apply(blocks[3], GPU, CopyEvent.remoteWrite);
      bench.gpu.settle(blocks[3]);
      bench.gpu.pin(blocks[0]);
      bench.gpu.pin(blocks[4]);
      expect(bench.gpu.zone.available).toBe(4 * UNIT);
      expect(bench.gpu.zone.largestFree()).toBe(2 * UNIT);
      const row = bench.task(own, bench.datum(3));
      expect(alloc(bench.x, row)).toBe(Outcome.wait);
      // Others hold pins: their return may join the pieces, so nothing is moved yet.
      expect(bench.transfers.spills).toBe(0);
      bench.gpu.unpin(blocks[0]);
      bench.gpu.unpin(blocks[4]);
      for (let i = 0; i < 5 && bench.gpu.waiters.length > 0; i++) {
        if (bench.serve().length > 0) break;
        bench.finishTransfers();
      }
      expect(bench.gpu.waiters.length).toBe(0);
      expect(bench.dir.pins[own * 2 + GPU]).toBe(1);
      expect(bench.gpu.isCompactingFor(taskId(id))).toBe(false);
      bench.check();
    },
  );

  it.each([1, 0, -1])('moves its own copy out of the way, for task %i', (id) => {
    bench.tasks.head = taskId(id);
    bench.tasks.next = taskId(id);
    // Four free units, its own two, four free units; it wants five in one piece.
    const left = bench.dirty(4);
    const own = bench.clean(2);
    bench.dir.apply(left, GPU, CopyEvent.remoteWrite);
    bench.gpu.settle(left);
    const row = bench.task(own, bench.datum(5));
    expect(alloc(bench.x, row)).toBe(Outcome.advance);
    expect(bench.gpu.zone.used).toBe(7 * UNIT);
    expect(bench.dir.pins[own * 2 + GPU]).toBe(1);
    bench.check();
  });
});

describe('alloc on the host', () => {
  it('fails a task that can never have its memory, naming bytes and limit', () => {
    const small = new Bench(10, 4);
    const full = small.datum(3);
    small.dir.block[full * 2] = small.spaces[0].zone.allocate(3 * UNIT);
    small.dir.apply(full, HOST, CopyEvent.write);
    small.spaces[0].settle(full);
    const row = small.task(small.datum(2));
    small.tasks.device[row] = HOST;
    expect(alloc(small.x, row)).toBe(Outcome.fail);
    expect(small.failures[0]).toMatchObject({
      code: 'ERR_OUT_OF_HOST_MEMORY',
      details: { bytes: 2 * UNIT, limit: 4 * UNIT, stage: 'alloc' },
    });
    expect(small.failures[0].message).toContain(`needs ${2 * UNIT} bytes for 'datum of 2'`);
    small.check();
  });

  it('waits while something is pinned that will come back', () => {
    const small = new Bench(10, 4);
    const busy = small.datum(3);
    small.dir.block[busy * 2] = small.spaces[0].zone.allocate(3 * UNIT);
    small.dir.apply(busy, HOST, CopyEvent.write);
    small.spaces[0].pin(busy);
    const row = small.task(small.datum(2));
    small.tasks.device[row] = HOST;
    expect(alloc(small.x, row)).toBe(Outcome.wait);
    expect(small.failures).toEqual([]);
  });
});
