// Plays one simulated case: opens the machine, inserts the tasks, lets virtual time run, and checks everything that
// can be checked: every read (weak memory), the tables after every event (invariants), the outcome of the run, the
// contents of all data at the end, and that no byte and no pin is left.
//
// Invariant: the event loop is driven from here, so a failing engine throws into `play` instead of ending the
// process, and a run without progress is seen at once.

import { CopyState } from '../../devices/coherency.js';
import { NO_BLOCK } from '../../devices/directory.js';
import { SimulatedBackend } from '../../devices/simulated/backend.js';
import { type MachineDescription, queuesOf } from '../../devices/simulated/machine.js';
import { SerialOracle } from '../../devices/simulated/oracle.js';
import { WeakMemory } from '../../devices/simulated/weak-memory.js';
import { ALIGNMENT } from '../../devices/zone.js';
import {
  type Datum,
  type Graph,
  type HeadraceError,
  Runtime,
  type TaskHandle,
} from '../../scheduler/index.js';
import type { SimulatedCase } from './case.js';
import { caseClass } from './case-classes.js';
import { Invariants } from './invariants.js';
import { attachOracle } from './oracle-hooks.js';

type Engine = Runtime['engine'];

/** What came of a case. */
export interface Played {
  /** Empty when everything is as promised. */
  readonly problems: readonly string[];
  /** Code of the error the run ended with, '' when it ended well, 'stalled' when it did not end. */
  readonly outcome: string;
  readonly tasks: number;
  readonly events: number;
  readonly checks: number;
  readonly evictions: number;
  readonly spills: number;
  readonly injected: number;
  readonly nanoseconds: number;
}

/** Parts of the idle control that the driver stands in for. */
interface Idle {
  schedule: () => void;
  turn: () => void;
  somethingIsUnderWay: () => boolean;
}

/** Turns of the event loop after which a case counts as one that does not end. */
const MOST_TURNS = 200_000;
/** Passes of the engine in which the machine did nothing, one after the other. */
const MOST_IDLE_PASSES = 5_000;

export function machineOf(c: SimulatedCase): MachineDescription {
  const link = { bandwidth: 1e9, latency: 1e-6 };
  return {
    name: 'case',
    gpus: c.gpus,
    gpuMemory: c.gpuUnits * ALIGNMENT,
    hostMemory: c.hostUnits * ALIGNMENT,
    workers: c.workers,
    computeStreams: c.streams,
    h2d: link,
    d2h: link,
    d2d: c.peers ? link : null,
    engine: { command: 2e-7, wake: 2e-6, launch: 1e-6 },
    kernels: { '*': { product: [0], factor: 1e-6, rate: 1 } },
  };
}

/** Records per queue: 128, or the least power of two that holds one task with all its waits. */
function ringsOf(c: SimulatedCase): number {
  if (!c.smallRings) return 128;
  const least = queuesOf(machineOf(c)).length + 4;
  return 2 ** Math.ceil(Math.log2(least));
}

export class Player {
  readonly runtime: Runtime;
  readonly engine: Engine;
  readonly backend: SimulatedBackend;
  readonly memory: WeakMemory;
  readonly oracle: SerialOracle = new SerialOracle();
  readonly invariants: Invariants;
  readonly problems: string[] = [];
  stalled = false;
  private readonly idle: Idle;
  private readonly c: SimulatedCase;
  private data: Datum<'u8'>[] = [];
  private scheduled = false;
  private launchedAtFailure: number | undefined;
  /** Called after every pass of the engine, for stepping through a replay. */
  onPass: (() => void) | undefined;

  constructor(c: SimulatedCase) {
    this.c = c;
    this.memory = new WeakMemory(this.oracle, (d) => this.engine.directory.bytes[d]);
    this.backend = new SimulatedBackend({
      machine: machineOf(c),
      ringRecords: ringsOf(c),
      adversary: c.adversary,
      faults: c.faults,
      watcher: this.memory,
    });
    this.backend.onStall = () => {
      this.stalled = true;
    };
    this.runtime = Runtime.over(this.backend, {
      workers: c.workers,
      window: c.window,
      runAhead: c.runAhead,
      checked: c.checked,
    });
    this.engine = this.runtime.engine;
    this.idle = (this.engine as unknown as { idle: Idle }).idle;
    this.idle.schedule = () => {
      this.scheduled = true;
    };
    this.invariants = new Invariants(this.engine);
    attachOracle(this.engine, this.oracle, this.memory, (d) => this.invariants.forget(d));
    this.checkEveryPass();
    const failRun = this.engine.failRun.bind(this.engine);
    this.engine.failRun = (run, error) => {
      this.memory.tolerant = true;
      failRun(run, error);
      this.launchedAtFailure ??= this.backend.launched;
    };
  }

  async play(): Promise<Played> {
    const { c, engine, runtime } = this;
    let outcome = 'stalled';
    let over = false;
    try {
      this.data = c.data.map((d, i) => this.makeDatum(i, d.units, d.initial, d.home));
      const run = runtime.run((graph) => this.insert(graph, () => run?.cancel('as the case says')));
      run.done.then(
        () => {
          outcome = '';
          over = true;
        },
        (error: unknown) => {
          outcome = (error as HeadraceError).code ?? String(error);
          if (outcome === 'ERR_PROGRAM' || outcome === 'ERR_STALLED')
            this.problems.push(String(error));
          over = true;
        },
      );
      await this.drive(() => over);
      if (over) {
        this.checkOutcome(outcome);
        await this.readBack(outcome);
        this.drain();
        this.checkContents(outcome);
        await this.closeAll();
      } else this.checkStall();
    } catch (error) {
      this.problems.push(error instanceof Error ? error.message : String(error));
    }
    this.problems.unshift(...this.memory.violations.map((v) => v.message));
    return {
      problems: this.problems,
      outcome: this.stalled ? 'stalled' : outcome,
      tasks: c.tasks.length,
      events: this.backend.events,
      checks: this.memory.checks + this.invariants.checks,
      evictions: engine.x.counters.evictions,
      spills: engine.transfers.spills,
      injected: this.backend.faults.injected,
      nanoseconds: this.backend.now(),
    };
  }

  private makeDatum(
    i: number,
    units: number,
    initial: boolean,
    home: number | undefined,
  ): Datum<'u8'> {
    const bytes = units * ALIGNMENT;
    const options = { name: `d${i}`, ...(home === undefined ? {} : { device: home }) };
    if (!initial) return this.runtime.data('u8', bytes, options);
    const datum = this.runtime.data(new Uint8Array(bytes), options) as Datum<'u8'>;
    const dir = this.engine.directory;
    this.memory.hostWrite(dir.block[datum.row * dir.spaces], bytes, this.oracle.initial(datum.row));
    return datum;
  }

  private insert(graph: Graph, cancel: () => void): void {
    const { c } = this;
    const handles: TaskHandle[] = [];
    for (let i = 0; i < c.tasks.length; i++) {
      if (i === c.cancelAt) {
        // The handle does not exist yet while a synchronous program runs; the next turn cancels.
        queueMicrotask(cancel);
      }
      const task = c.tasks[i];
      const args: Record<string, unknown> = { us: task.micros };
      task.flows.forEach(([d], f) => {
        args[`f${f}`] = this.data[d];
      });
      const cls = caseClass(task);
      handles.push(
        graph.insert(cls, args as never, {
          ...(task.priority === undefined ? {} : { priority: task.priority }),
          ...(task.device === undefined ? {} : { device: task.device }),
          ...(task.after === undefined ? {} : { after: task.after.map((p) => handles[p]) }),
        }),
      );
    }
  }

  /** Runs turns of the event loop until something is true; gives up when nothing is scheduled any more. */
  private async drive(isOver: () => boolean): Promise<void> {
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      await undefined;
      if (isOver() || this.stalled) return;
      if (!this.scheduled) {
        for (let i = 0; i < 8 && !isOver() && !this.scheduled; i++) await undefined;
        if (isOver()) return;
        if (!this.scheduled) {
          this.stalled = true;
          return;
        }
      }
      this.scheduled = false;
      this.idle.turn();
    }
    this.problems.push(`the run did not end within ${MOST_TURNS} turns`);
    this.stalled = true;
  }

  private checkEveryPass(): void {
    const { engine } = this;
    const pump = engine.pump.bind(engine);
    let depth = 0;
    let events = 0;
    let idle = 0;
    engine.pump = () => {
      idle = events === this.backend.events ? idle + 1 : 0;
      events = this.backend.events;
      if (idle > MOST_IDLE_PASSES)
        throw new Error(`the engine spins without progress\n${engine.explain()}`);
      depth++;
      const moved = pump();
      depth--;
      if (depth === 0) {
        this.invariants.check();
        this.onPass?.();
      }
      return moved;
    };
  }

  private has(kind: string): boolean {
    return this.c.faults.some((f) => f.kind === kind);
  }

  /** A run ends well, or with the typed error of the fault that was injected. */
  private checkOutcome(outcome: string): void {
    const allowed = [this.c.tooLarge ? 'ERR_TASK_TOO_LARGE' : ''];
    if (this.c.cancelAt !== undefined) allowed.push('ERR_ABORTED');
    if (this.c.shortOfHost) allowed.push('ERR_OUT_OF_HOST_MEMORY');
    if (this.has('kernel')) allowed.push('ERR_TASK_FAILED');
    if (this.has('transfer')) allowed.push('ERR_TRANSFER_FAILED');
    if (this.has('deviceLost')) allowed.push('ERR_DEVICE_LOST');
    if (!allowed.includes(outcome))
      this.problems.push(`the run ended with ${outcome || 'success'}`);
    if (this.launchedAtFailure !== undefined && this.backend.launched > this.launchedAtFailure) {
      this.problems.push('kernels of a failed run were started after its failure');
    }
    const { executed } = this.oracle;
    if (outcome === '') {
      if (this.has('kernel') && this.backend.faults.injected > 0)
        this.problems.push('a kernel failed, but the run succeeded');
      let ran = 0;
      for (const n of executed) if (n !== undefined) ran++;
      if (ran < this.c.tasks.length)
        this.problems.push(`${ran} of ${this.c.tasks.length} tasks ran`);
    }
  }

  private async readBack(outcome: string): Promise<void> {
    let open = 0;
    const errors: HeadraceError[] = [];
    for (const d of this.c.reads) {
      if (this.engine.directory.written[this.data[d].row] === 0) continue;
      open++;
      this.data[d].read().then(
        () => open--,
        (error: HeadraceError) => {
          open--;
          errors.push(error);
        },
      );
    }
    await this.drive(() => open === 0);
    if (this.stalled) this.checkStall();
    const fine = [
      'ERR_OUT_OF_HOST_MEMORY',
      'ERR_DATUM_POISONED',
      'ERR_DATUM_LOST',
      'ERR_TRANSFER_FAILED',
    ];
    for (const error of errors) {
      const isExpected =
        (outcome !== '' || this.c.faults.length > 0 || this.c.shortOfHost) &&
        fine.includes(error.code);
      if (!isExpected) this.problems.push(`reading back: ${error.message}`);
    }
  }

  private checkStall(): void {
    if (!this.has('hang')) {
      this.problems.push(
        `nothing moves any more:\n${this.engine.explain()}\n${this.backend.describeQueues()}`,
      );
    }
  }

  /** Lets everything under way end. */
  private drain(): void {
    for (let i = 0; i < 10_000 && this.idle.somethingIsUnderWay(); i++) {
      this.backend.settle();
      this.engine.pump();
    }
  }

  /** Every copy that counts as valid holds what the last writer that ran wrote; a datum without that is poisoned. */
  private checkContents(outcome: string): void {
    const dir = this.engine.directory;
    for (const datum of this.data) {
      const d = datum.row;
      if (dir.poison[d] !== 0) {
        if (outcome === '' && this.c.faults.length === 0)
          this.problems.push(`${datum.name} is poisoned after a good run`);
        continue;
      }
      const wanted = this.oracle.final(d);
      for (let s = 0; s < dir.spaces; s++) {
        const c = d * dir.spaces + s;
        if (dir.state[c] !== CopyState.shared && dir.state[c] !== CopyState.owned) continue;
        if (dir.block[c] === NO_BLOCK) continue;
        const found = this.memory.contents(s, dir.block[c], dir.bytes[d]);
        if (found !== wanted || !this.oracle.isGood(found)) {
          this.problems.push(
            `${datum.name} counts as valid in space ${s} and should hold ${this.oracle.describe(wanted)}, but holds ${this.oracle.describe(found)}`,
          );
        }
      }
    }
  }

  private async closeAll(): Promise<void> {
    for (const datum of this.data) datum.close();
    this.engine.wake();
    await this.drive(() => this.engine.tasks.live === 0);
    this.drain();
    this.engine.pump();
    this.drain();
    for (const space of this.engine.spaces) {
      if (space.zone.used !== 0)
        this.problems.push(`space ${space.index}: ${space.zone.used} bytes were not given back`);
      if (space.pinnedCopies !== 0)
        this.problems.push(`space ${space.index}: ${space.pinnedCopies} copies stay pinned`);
      if (space.waiters.length !== 0)
        this.problems.push(`space ${space.index}: someone still stands in line`);
    }
    await this.runtime.close();
  }
}

/** Plays a case. Never rejects: what goes wrong is in `problems`. */
export async function play(c: SimulatedCase): Promise<Played> {
  try {
    return await new Player(c).play();
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return {
      problems: [text],
      outcome: 'threw',
      tasks: 0,
      events: 0,
      checks: 0,
      evictions: 0,
      spills: 0,
      injected: 0,
      nanoseconds: 0,
    };
  }
}
