// The values that tasks read, without an engine: alloc, stage-in and exec issue commands, and queues execute them in any
// order that the events allow. Every task sees the version that is current at its place in the program, although data
// are moved, evicted and overwritten meanwhile.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DatumId, NO_QUEUE, NO_TASK } from '../../devices/handles.js';
import { CopyState } from '../../devices/memory/coherency.js';
import { NO_BLOCK } from '../../devices/memory/directory.js';
import { alloc } from '../../stages/alloc.js';
import { exec } from '../../stages/exec.js';
import { Outcome } from '../../stages/stage.js';
import { stageIn } from '../../stages/stage-in.js';
import { AccessMode, TaskStage } from '../../stages/task-table.js';
import { TransferReason } from '../../trace/format.js';
import { queueId, spaceId } from '../support/handles.js';
import type { IssuedCommand } from '../support/manual-backend.js';
import { Bench, releasePins, UNIT } from '../support/stage-bench.js';

const { read, write, readWrite } = AccessMode;
const SPACES = 3;
const DATA = 4;

/** A bench whose queues execute what they are given, one command at a time. */
class Machine {
  readonly bench: Bench;
  readonly data: DatumId[];
  /** Versions read that were not the current ones. */
  readonly wrong: string[] = [];
  /** What the blocks hold, by space and offset. */
  private readonly content: Map<string, string> = new Map();
  private readonly effects: Map<string, () => void> = new Map();
  private readonly lines: IssuedCommand[][];
  private readonly done: Int32Array;
  private taken = 0;

  constructor(units: number) {
    this.bench = new Bench(units, 100, { gpus: SPACES - 1 });
    this.data = Array.from({ length: DATA }, () => this.bench.datum(1));
    this.lines = this.bench.backend.queues.map(() => []);
    this.done = Int32Array.from(this.bench.backend.completed);
  }

  /** Takes a task as far as its command, and lets the queues work where it has to wait. */
  issue(s: number, flows: readonly { datum: DatumId; mode: number }[]): void {
    const { bench } = this;
    const { x, tasks, backend } = bench;
    const row = bench.insert(s, flows);
    tasks.target[row] = queueId(
      backend.queues.findIndex(
        ({ kind, space }) => space === s && (kind === 'worker' || kind === 'compute'),
      ),
    );
    for (const stage of [alloc, stageIn, exec]) {
      const waiters = bench.spaces[s].waiters;
      for (let turns = 0; ; turns++) {
        const outcome = stage(x, row);
        if (outcome === Outcome.advance || outcome === Outcome.issued) break;
        if (turns > 20) throw new Error('the task waits for nothing');
        this.run();
        this.poll();
      }
      if (waiters.length > 0) waiters.shift();
    }
    const offsets = flows.map(({ datum }) => bench.dir.block[datum * SPACES + s]);
    const after = flows.map(({ datum }) => `${datum}@${bench.dir.version[datum]}`);
    const before = flows.map(({ datum, mode }, i) =>
      mode === read ? after[i] : `${datum}@${bench.dir.version[datum] - 1}`,
    );
    this.effects.set(`${tasks.queue[row]}/${tasks.seq[row]}`, () => {
      flows.forEach(({ mode }, i) => {
        const at = `${s}/${offsets[i]}`;
        const found = this.content.get(at);
        if (mode !== write && found !== before[i])
          this.wrong.push(`${found} instead of ${before[i]}`);
        if (mode !== read) this.content.set(at, after[i]);
      });
    });
  }

  /** Moves a datum to a space where nobody needs it yet, if that has room. */
  prefetch(d: DatumId, s: number): void {
    const { dir, spaces, transfers } = this.bench;
    const c = d * SPACES + s;
    const source = transfers.chooseSource(d, spaceId(s));
    if (dir.state[c] !== CopyState.invalid || source < 0 || !transfers.canIssue(spaceId(s), source))
      return;
    if (dir.block[c] === NO_BLOCK) dir.block[c] = spaces[s].zone.allocate(UNIT);
    if (dir.block[c] !== NO_BLOCK)
      transfers.issue(d, spaceId(s), source, TransferReason.prefetch, NO_TASK, 0);
  }

  /** Executes up to `steps` commands, each of a queue that `pick` chooses among those that may go on. */
  run(steps = Number.POSITIVE_INFINITY, pick: (n: number) => number = () => 0): void {
    const { commands } = this.bench.backend;
    for (; this.taken < commands.length; this.taken++)
      this.lines[commands[this.taken].queue].push(commands[this.taken]);
    for (let i = 0; i < steps; i++) {
      const free = this.lines.filter((line) => line.length > 0 && this.mayGo(line[0]));
      if (free.length === 0) {
        if (this.lines.some((line) => line.length > 0))
          throw new Error('queues wait for each other');
        return;
      }
      this.execute(free[pick(free.length)].shift() as IssuedCommand);
    }
  }

  /** What was executed is seen. */
  poll(): void {
    const { backend, sub, transfers, tasks, x } = this.bench;
    backend.completed.set(this.done);
    for (let q = 0; q < this.done.length; q++) {
      for (
        let token = sub.takeFinished(queueId(q));
        token !== 0;
        token = sub.takeFinished(queueId(q))
      ) {
        if (token < 0) transfers.finish(-token - 1, queueId(q), sub.seen[q], 0);
        else {
          releasePins(x, token - 1);
          tasks.stage[token - 1] = TaskStage.done;
        }
      }
    }
    tasks.retireHead();
    this.bench.check();
  }

  /** Copies that are valid and do not hold the current version. */
  stale(): string[] {
    const { dir } = this.bench;
    return this.data.flatMap((d) =>
      [...Array(SPACES).keys()]
        .filter((s) => (dir.validMask[d] >> s) & 1)
        .map((s) => this.content.get(`${s}/${dir.block[d * SPACES + s]}`) ?? 'nothing')
        .filter((found) => found !== `${d}@${dir.version[d]}`),
    );
  }

  private mayGo({ onQueue, onSeq }: IssuedCommand): boolean {
    return onQueue === NO_QUEUE || this.done[onQueue] >= onSeq;
  }

  private execute({ queue, seq, move }: IssuedCommand): void {
    if (move !== undefined) {
      const { to, toOffset, from, fromOffset } = move;
      this.content.set(`${to}/${toOffset}`, this.content.get(`${from}/${fromOffset}`) ?? 'nothing');
    }
    this.effects.get(`${queue}/${seq}`)?.();
    this.done[queue] = seq;
  }
}

const flow = fc.record({
  datum: fc.nat({ max: DATA - 1 }),
  mode: fc.constantFrom(read, read, read, write, readWrite),
});
const step = fc.oneof(
  {
    arbitrary: fc.record({
      space: fc.nat({ max: SPACES - 1 }),
      flows: fc.uniqueArray(flow, { minLength: 1, maxLength: 2, selector: (f) => f.datum }),
    }),
    weight: 4,
  },
  {
    arbitrary: fc.record({
      prefetch: fc.nat({ max: DATA - 1 }),
      to: fc.nat({ max: SPACES - 1 }),
    }),
    weight: 2,
  },
  {
    arbitrary: fc.record({
      picks: fc.array(fc.nat({ max: 99 }), { maxLength: 6 }),
      isSeen: fc.boolean(),
    }),
    weight: 3,
  },
);

describe('tasks read the current version', () => {
  it.each([
    ['with room for all data', DATA],
    ['on devices that hold three of four data', DATA - 1],
    ['on devices that hold two of four data', 2],
  ])('%s', (_, units) => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }), (steps) => {
        const machine = new Machine(units);
        const { bench, data } = machine;
        for (const d of data) machine.issue(0, [{ datum: d, mode: write }]);
        for (const next of steps) {
          if ('space' in next) {
            machine.issue(
              next.space,
              next.flows.map(({ datum, mode }) => ({ datum: data[datum], mode })),
            );
          } else if ('prefetch' in next) machine.prefetch(data[next.prefetch], next.to);
          else {
            for (const pick of next.picks) machine.run(1, (n) => pick % n);
            if (next.isSeen) machine.poll();
          }
          expect(machine.wrong).toEqual([]);
        }
        machine.run();
        machine.poll();
        expect(machine.wrong).toEqual([]);
        expect(machine.stale()).toEqual([]);
        expect(bench.transfers.live).toBe(0);
        expect(bench.dir.pins.every((pins) => pins === 0)).toBe(true);
        expect(bench.spaces.map(({ arrivingOut }) => arrivingOut)).toEqual([0, 0, 0]);
        expect(bench.gpu.zone.used).toBeLessThanOrEqual(units * UNIT);
      }),
      { numRuns: 100 },
    );
  });
});
