// The reservation of memory, step by step: all or nothing, the ticket, least recently used first, exactly as much
// written back as is missing, and what happens when the bytes are there but not in one piece.
import { beforeEach, describe, expect, it } from 'vitest';
import { CopyEvent, CopyState } from '../../devices/coherency.js';
import { Directory, NO_BLOCK } from '../../devices/directory.js';
import type { HeadraceError } from '../../devices/errors.js';
import { MemorySpace, NO_TASK } from '../../devices/memory-space.js';
import { Submission } from '../../devices/submission.js';
import { Transfers } from '../../devices/transfers.js';
import { alloc } from '../../stages/alloc.js';
import { StageContext, type StageHooks } from '../../stages/context.js';
import { releasePins } from '../../stages/finalize.js';
import { Outcome, WaitReason } from '../../stages/stage.js';
import { AccessMode, TaskStage, TaskTable } from '../../stages/task-table.js';
import { ManualBackend } from '../support/manual-backend.js';

const UNIT = 512;
const GPU = 1;

/** A host and one GPU of `units` units, without an engine: tests play the engine. */
class Bench {
  readonly backend: ManualBackend;
  readonly tasks = new TaskTable(64);
  readonly dir = new Directory(2);
  readonly spaces: MemorySpace[];
  readonly transfers: Transfers;
  readonly sub: Submission;
  readonly x: StageContext;
  readonly failures: HeadraceError[] = [];
  private readonly classes = new Map<number, number>();

  constructor(units: number, hostUnits = 1000) {
    this.backend = new ManualBackend(1, 1);
    this.spaces = [
      new MemorySpace(0, hostUnits * UNIT, this.dir),
      new MemorySpace(GPU, units * UNIT, this.dir),
    ];
    this.sub = new Submission(this.backend.port);
    this.transfers = new Transfers(this.dir, this.spaces, this.sub);
    const hooks = {
      startBody: () => Outcome.running,
      issued: () => {},
      fail: (_row: number, error: HeadraceError) => void this.failures.push(error),
      retired: () => {},
      memoryText: () => 'the table',
    } as unknown as StageHooks;
    this.x = new StageContext(this.tasks, this.dir, this.spaces, this.sub, this.transfers, hooks);
  }

  get gpu(): MemorySpace {
    return this.spaces[GPU];
  }

  datum(units: number): number {
    return this.dir.add(units * UNIT, { name: `datum of ${units}` });
  }

  /** A datum whose only value is on the GPU. */
  dirty(units: number): number {
    const d = this.datum(units);
    this.place(d);
    this.dir.apply(d, GPU, CopyEvent.write);
    this.gpu.settle(d);
    return d;
  }

  /** A datum with a value on the host and a copy on the GPU. */
  clean(units: number): number {
    const d = this.datum(units);
    this.dir.block[d * 2] = this.spaces[0].zone.allocate(units * UNIT);
    this.dir.apply(d, 0, CopyEvent.write);
    this.place(d);
    this.dir.apply(d, GPU, CopyEvent.fetch);
    this.dir.apply(d, GPU, CopyEvent.arrived);
    this.gpu.settle(d);
    return d;
  }

  /** A task on the GPU over some data. */
  task(...data: number[]): number {
    let cls = this.classes.get(data.length);
    if (cls === undefined) {
      cls = this.x.classes.length;
      this.classes.set(data.length, cls);
      this.x.classes.push({
        id: cls,
        name: `task of ${data.length}`,
        flowNames: data.map((_, i) => `f${i}`),
        modes: data.map(() => AccessMode.readWrite),
        paramNames: [],
        kernels: Int32Array.of(0, 0),
        body: undefined,
        explain: undefined,
        failureCode: undefined,
      });
    }
    const id = this.tasks.take(data.length, 0);
    const row = id & this.tasks.mask;
    this.tasks.stage[row] = TaskStage.alloc;
    this.tasks.classOf[row] = cls;
    this.tasks.device[row] = GPU;
    data.forEach((d, i) => {
      this.tasks.flowDatum[this.tasks.flowStart[row] + i] = d;
    });
    return row;
  }

  /** All transfers under way end well. */
  finishTransfers(): void {
    for (let q = 0; q < this.backend.queues.length; q++) {
      this.backend.completeAll(q);
      for (let token = this.sub.takeFinished(q); token !== 0; token = this.sub.takeFinished(q)) {
        if (token < 0) this.transfers.finish(-token - 1, q, this.sub.seen[q], 0);
      }
    }
    this.check();
  }

  /** What the engine does when memory became free: looks at the first in line, and at the next when it goes. */
  serve(): number[] {
    const served: number[] = [];
    while (this.gpu.waiters.length > 0) {
      const row = this.gpu.waiters.peek() & this.tasks.mask;
      this.tasks.waiting[row] = WaitReason.none;
      if (alloc(this.x, row) !== Outcome.advance) break;
      this.gpu.waiters.shift();
      served.push(row);
    }
    this.check();
    return served;
  }

  end(row: number): void {
    releasePins(this.x, row);
    this.check();
  }

  check(): void {
    this.dir.validate();
    for (const space of this.spaces) space.validate();
  }

  isHere(d: number): boolean {
    return this.dir.block[d * 2 + GPU] !== NO_BLOCK;
  }

  private place(d: number): void {
    const offset = this.gpu.zone.allocate(this.dir.bytes[d]);
    if (offset < 0) throw new Error('test: no room');
    this.dir.block[d * 2 + GPU] = offset;
  }
}

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

  it('holds nothing while it waits: what it took goes back', () => {
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

  it('nobody overtakes the first in line on bytes; who needs none passes', () => {
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
      bench.tasks.head = id;
      bench.tasks.next = id;
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
      expect(bench.gpu.compactingFor).toBe(NO_TASK);
      bench.check();
    },
  );

  it.each([1, 0, -1])('moves its own copy out of the way, for task %i', (id) => {
    bench.tasks.head = id;
    bench.tasks.next = id;
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
    small.dir.apply(full, 0, CopyEvent.write);
    small.spaces[0].settle(full);
    const row = small.task(small.datum(2));
    small.tasks.device[row] = 0;
    expect(alloc(small.x, row)).toBe(Outcome.fail);
    expect(small.failures[0]).toMatchObject({
      code: 'ERR_OUT_OF_HOST_MEMORY',
      details: { bytes: 2 * UNIT, limit: 4 * UNIT, stage: 'alloc' },
    });
    small.check();
  });

  it('waits while something is pinned that will come back', () => {
    const small = new Bench(10, 4);
    const busy = small.datum(3);
    small.dir.block[busy * 2] = small.spaces[0].zone.allocate(3 * UNIT);
    small.dir.apply(busy, 0, CopyEvent.write);
    small.spaces[0].pin(busy);
    const row = small.task(small.datum(2));
    small.tasks.device[row] = 0;
    expect(alloc(small.x, row)).toBe(Outcome.wait);
    expect(small.failures).toEqual([]);
  });
});
