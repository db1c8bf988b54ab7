// The invariants of the engine's tables from the outside, checked after every event of a simulated run.
//
//   - each copy has exactly the pins of live tasks past alloc and of live transfers: reservation is
//     all-or-nothing, no pinned copy is given up, no pin leaks;
//   - bytes handed out are those of blocks that belong to copies (or are being poisoned);
//   - versions only grow.
// The engine checks the invariants of its tasks itself (scheduler/engine/validate.ts).

import type { Runtime } from '../../../scheduler/index.js';
import { TaskStage } from '../../../stages/task-table.js';
import { FIRST_DATUM, HOST, type TaskId } from '../../handles.js';
import { NO_BLOCK } from '../../memory/directory.js';
import { roundedBytes } from '../../memory/zone.js';

type Engine = Runtime['engine'];

export class Invariants {
  private readonly engine: Engine;
  private readonly versions: number[] = [];
  private expected: Int32Array = new Int32Array(0);
  /** Checks made. */
  checks = 0;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  /** Throws when an invariant does not hold. */
  check(): void {
    this.checks++;
    this.engine.validateState();
    this.checkPins();
    this.checkBytes();
    this.checkVersions();
  }

  /** The row of a datum is used for another one. */
  forget(d: number): void {
    this.versions[d] = 0;
  }

  private checkPins(): void {
    const { tasks, directory: dir, transfers, x } = this.engine;
    const copies = dir.length * dir.spaces;
    if (this.expected.length < copies) this.expected = new Int32Array(copies * 2);
    const { expected } = this;
    expected.fill(0, 0, copies);
    for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
      const row = id & tasks.mask;
      const stage = tasks.stage[row];
      if (stage < TaskStage.stageIn || stage > TaskStage.finalize) continue;
      const first = tasks.flowStart[row];
      const end = first + x.classes[tasks.classOf[row]].modes.length;
      for (let i = first; i < end; i++)
        expected[tasks.flowDatum[i] * dir.spaces + tasks.device[row]]++;
    }
    transfers.forEachLive((t) => {
      expected[transfers.datum[t] * dir.spaces + transfers.source[t]]++;
      expected[transfers.datum[t] * dir.spaces + transfers.destination[t]]++;
    });
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
    const { directory: dir, spaces, transfers } = this.engine;
    for (let s = HOST; s < dir.spaces; s++) {
      let used = transfers.poisoningBytes(s);
      for (let d = FIRST_DATUM; d < dir.length; d++) {
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
    for (let d = FIRST_DATUM; d < dir.length; d++) {
      if (dir.live[d] === 0) continue;
      if (dir.version[d] < (this.versions[d] ?? 0))
        throw new Error(`datum ${d}: version went back`);
      this.versions[d] = dir.version[d];
    }
  }
}
