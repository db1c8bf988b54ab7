// The invariants of the engine's tables as seen from outside, checked after every event of a simulated run.
//
//   - each copy has exactly the pins that live tasks past alloc and live transfers account for: reservation is
//     all-or-nothing, nothing pinned is given up, nothing leaks;
//   - bytes handed out are those of blocks that belong to copies (or are being poisoned);
//   - versions only grow;
//   - a waiting task stands on exactly one wake list, and its reason is still true.

import { NO_BLOCK } from '../../devices/directory.js';
import { roundedBytes } from '../../devices/zone.js';
import type { Runtime } from '../../scheduler/index.js';

type Engine = Runtime['engine'];

const Stage = { alloc: 3, stageIn: 4, finalize: 8 } as const;
const Wait = { memory: 1, copy: 2, slot: 4, credit: 6 } as const;
const POISON = 255;

export class Invariants {
  private readonly engine: Engine;
  private readonly transferPins: Map<number, number> = new Map();
  private readonly poisoning: Map<string, number> = new Map();
  private readonly poisonBytes: Float64Array;
  private readonly versions: number[] = [];
  private expected: Int32Array = new Int32Array(0);
  /** Checks made. */
  checks = 0;

  constructor(engine: Engine) {
    this.engine = engine;
    this.poisonBytes = new Float64Array(engine.spaces.length);
    this.watchTransfers();
  }

  /** Throws when an invariant does not hold. */
  check(): void {
    this.checks++;
    this.engine.validateState();
    this.checkPins();
    this.checkBytes();
    this.checkVersions();
    this.checkWaits();
  }

  /** The row of a datum is used for another one. */
  forget(d: number): void {
    this.versions[d] = 0;
  }

  private watchTransfers(): void {
    const { transfers } = this.engine;
    const issue = transfers.issue.bind(transfers);
    const finish = transfers.finish.bind(transfers);
    const poison = transfers.poison.bind(transfers);
    const { spaces } = this.engine.directory;
    const count = (c: number, by: number): void => {
      const n = (this.transferPins.get(c) ?? 0) + by;
      if (n === 0) this.transferPins.delete(c);
      else this.transferPins.set(c, n);
    };
    transfers.issue = (d, destination, source, reason, task, now) => {
      issue(d, destination, source, reason, task, now);
      count(d * spaces + destination, 1);
      count(d * spaces + source, 1);
    };
    transfers.poison = (space, queue, offset, bytes) => {
      poison(space, queue, offset, bytes);
      this.poisoning.set(`${space}:${offset}`, roundedBytes(bytes));
      this.poisonBytes[space] += roundedBytes(bytes);
    };
    transfers.finish = (t, queue, seq, status) => {
      const destination = transfers.destination[t];
      if (transfers.reason[t] === POISON) {
        const key = `${destination}:${transfers.offset[t]}`;
        this.poisonBytes[destination] -= this.poisoning.get(key) ?? 0;
        this.poisoning.delete(key);
      } else {
        const d = transfers.datum[t];
        count(d * spaces + destination, -1);
        count(d * spaces + transfers.source[t], -1);
      }
      finish(t, queue, seq, status);
    };
  }

  private checkPins(): void {
    const { tasks, directory: dir, x } = this.engine;
    const copies = dir.length * dir.spaces;
    if (this.expected.length < copies) this.expected = new Int32Array(copies * 2);
    const { expected } = this;
    expected.fill(0, 0, copies);
    for (let id = tasks.head; id !== tasks.next; id = (id + 1) | 0) {
      const row = id & tasks.mask;
      const stage = tasks.stage[row];
      if (stage < Stage.stageIn || stage > Stage.finalize) continue;
      const first = tasks.flowStart[row];
      const end = first + x.classes[tasks.classOf[row]].modes.length;
      for (let i = first; i < end; i++)
        expected[tasks.flowDatum[i] * dir.spaces + tasks.device[row]]++;
    }
    for (const [c, n] of this.transferPins) expected[c] += n;
    for (let c = 0; c < copies; c++) {
      if (dir.live[Math.floor(c / dir.spaces)] === 0) continue;
      if (dir.pins[c] !== expected[c]) {
        const d = Math.floor(c / dir.spaces);
        throw new Error(
          `datum ${d} in space ${c % dir.spaces} has ${dir.pins[c]} pins, but tasks and transfers account for ${expected[c]}`,
        );
      }
    }
  }

  private checkBytes(): void {
    const { directory: dir, spaces } = this.engine;
    for (let s = 0; s < dir.spaces; s++) {
      let used = this.poisonBytes[s];
      for (let d = 0; d < dir.length; d++) {
        if (dir.live[d] === 1 && dir.block[d * dir.spaces + s] !== NO_BLOCK)
          used += roundedBytes(dir.bytes[d]);
      }
      if (used !== spaces[s].zone.used) {
        throw new Error(
          `space ${s}: ${spaces[s].zone.used} bytes are handed out, but copies hold ${used}`,
        );
      }
    }
  }

  private checkVersions(): void {
    const { directory: dir } = this.engine;
    for (let d = 0; d < dir.length; d++) {
      if (dir.live[d] === 0) continue;
      if (dir.version[d] < (this.versions[d] ?? 0))
        throw new Error(`datum ${d}: version went back`);
      this.versions[d] = dir.version[d];
    }
  }

  private checkWaits(): void {
    const { tasks, x, spaces, submission } = this.engine;
    for (let id = tasks.head; id !== tasks.next; id = (id + 1) | 0) {
      const row = id & tasks.mask;
      const reason = tasks.waiting[row];
      const stage = tasks.stage[row];
      if (reason === 0 || stage < Stage.alloc || stage > Stage.finalize) continue;
      let found = 0;
      if (reason === Wait.memory) {
        for (const space of spaces)
          for (let i = 0; i < space.waiters.length; i++) if (space.waiters.at(i) === id) found++;
      } else if (reason === Wait.credit) {
        for (const { aside, offered } of spaces)
          for (let i = 0; i < aside.length; i++)
            if (aside.at(i) === id && offered.bytes > 0) found++;
      } else if (reason === Wait.slot) {
        for (const line of x.slotWaiters)
          for (let i = 0; i < line.length; i++) if (line.at(i) === id) found++;
      } else if (reason === Wait.copy) {
        for (let q = 0; q < x.eventWaiters.length; q++) {
          for (let n = x.eventWaiters[q]; n >= 0; n = x.eventNodes.next[n]) {
            if (x.eventNodes.value[n] !== id) continue;
            found++;
            if (submission.seen[q] - x.eventNodes.extra[n] >= 0) {
              throw new Error(`${x.describe(row)} waits for an event that has happened`);
            }
          }
        }
      } else found = 1;
      if (found !== 1)
        throw new Error(`${x.describe(row)} waits (reason ${reason}) on ${found} wake lists`);
    }
  }
}
