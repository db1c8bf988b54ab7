// One rank of a simulated case: its engine, its data, and everything about it that can be checked: the tables after
// every pass (invariants), how its run ended, the contents of its copies at the end, and that no byte and no pin is
// left.
import { CopyState } from '../../devices/coherency.js';
import { NO_BLOCK } from '../../devices/directory.js';
import { SimulatedBackend } from '../../devices/simulated/backend.js';
import { type MachineDescription, queuesOf } from '../../devices/simulated/machine.js';
import type { SerialOracle } from '../../devices/simulated/oracle.js';
import type { SimulatedPort } from '../../devices/simulated/port.js';
import type { WeakMemory } from '../../devices/simulated/weak-memory.js';
import type { World } from '../../devices/simulated/world.js';
import { ALIGNMENT } from '../../devices/zone.js';
import {
  type Datum,
  type Graph,
  HeadraceError,
  type Run,
  Runtime,
  type TaskHandle,
} from '../../scheduler/index.js';
import type { CaseTask, SimulatedCase } from './case.js';
import type { CaseClasses } from './case-classes.js';
import { Invariants } from './invariants.js';
import { attachOracle } from './oracle-hooks.js';

type Engine = Runtime['engine'];

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
    network: link,
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

/** The backend of a rank of the case. */
export function backendOf(
  c: SimulatedCase,
  rank: number,
  world: World,
  memory: WeakMemory,
): SimulatedBackend {
  return new SimulatedBackend({
    machine: machineOf(c),
    world,
    ringRecords: ringsOf(c),
    adversary: { ...c.adversary, seed: c.adversary.seed + rank },
    faults: c.faults.filter((fault) => (fault.rank ?? 0) === rank),
    watcher: memory.watcher(rank),
    hostBytes: memory.hostBytes(rank),
  });
}

export class RankPlayer {
  readonly rank: number;
  readonly runtime: Runtime;
  readonly engine: Engine;
  readonly backend: SimulatedBackend;
  readonly invariants: Invariants;
  readonly problems: string[] = [];
  data: Datum<'u8'>[] = [];
  /** Code of the error the run ended with, '' when it ended well, undefined while it has not ended. */
  outcome: string | undefined;
  run: Run | undefined;
  graph: Graph | undefined;
  /** Why the program stopped inserting. */
  thrown: unknown;
  /** Called after every pass of the engine, for stepping through a replay. */
  onPass: (() => void) | undefined;
  private readonly c: SimulatedCase;
  private readonly memory: WeakMemory;
  private readonly oracle: SerialOracle;
  private readonly classes: CaseClasses;
  private readonly handles: (TaskHandle | undefined)[] = [];
  private launchedAtFailure: number | undefined;

  constructor(
    c: SimulatedCase,
    rank: number,
    backend: SimulatedBackend,
    port: SimulatedPort | undefined,
    memory: WeakMemory,
    oracle: SerialOracle,
    classes: CaseClasses,
  ) {
    this.c = c;
    this.rank = rank;
    this.backend = backend;
    this.memory = memory;
    this.oracle = oracle;
    this.classes = classes;
    const { network } = c;
    this.runtime = Runtime.over(
      backend,
      {
        workers: c.workers,
        window: c.window,
        runAhead: c.runAhead,
        checked: c.checked,
        ...(network === undefined
          ? {}
          : {
              comm: network.comm,
              flush: network.flush,
              inlineBytes: network.inlineBytes,
              treeFrom: network.treeFrom,
            }),
      },
      port,
    );
    this.engine = this.runtime.engine;
    this.invariants = new Invariants(this.engine);
    attachOracle(rank, this.engine, oracle, memory, (d) => this.invariants.forget(d));
    this.checkEveryPass();
    const failRun = this.engine.failRun.bind(this.engine);
    this.engine.failRun = (run, error) => {
      this.memory.tolerant = true;
      failRun(run, error);
      this.launchedAtFailure ??= backend.executor.launched;
    };
  }

  /** The rank's process is gone. */
  get isDead(): boolean {
    return this.backend.executor.isDead;
  }

  // --- The program ------------------------------------------------------------------------------------------------

  makeData(): void {
    this.data = this.c.data.map(({ units, initial, home, owner = 0 }, i) => {
      const bytes = units * ALIGNMENT;
      const options = {
        name: `d${i}`,
        rank: owner,
        ...(home === undefined ? {} : { device: home }),
      };
      if (!initial) return this.runtime.data('u8', bytes, options);
      const datum = this.runtime.data(new Uint8Array(bytes), options) as Datum<'u8'>;
      const { block, spaces } = this.engine.directory;
      if (owner === this.rank) {
        const stamp = this.oracle.initial(this.rank, datum.row);
        this.memory.hostWrite(this.rank, block[datum.row * spaces], bytes, stamp);
      }
      return datum;
    });
  }

  /** Begins the run; tasks are inserted until `inserted` resolves. */
  begin(inserted: Promise<void>): void {
    const run = this.runtime.run((graph) => {
      this.graph = graph;
      return inserted.then(() => {
        if (this.thrown !== undefined) throw this.thrown;
      });
    });
    this.run = run;
    run.done.then(
      () => {
        this.outcome = '';
      },
      (error: unknown) => {
        this.outcome = (error as HeadraceError).code ?? String(error);
        if (this.outcome === 'ERR_PROGRAM' || this.outcome === 'ERR_STALLED')
          this.problems.push(String(error));
      },
    );
  }

  /** Inserts task `i` of the program; false when it was refused. */
  insert(i: number, t: CaseTask): boolean {
    const args: Record<string, unknown> = { us: t.micros };
    t.flows.forEach(([d], f) => {
      args[`f${f}`] = this.data[d];
    });
    try {
      this.handles[i] = this.graph?.insert(this.classes.of(t), args as never, {
        ...(t.priority === undefined ? {} : { priority: t.priority }),
        ...(t.device === undefined ? {} : { device: t.device }),
        ...(t.rank === undefined ? {} : { rank: t.rank }),
        ...(t.after === undefined
          ? {}
          : { after: t.after.map((p) => this.handles[p] as TaskHandle) }),
      });
      return true;
    } catch (error) {
      if (this.isDead) return false;
      if (!(error instanceof HeadraceError) || error.code === 'ERR_STALLED') throw error;
      this.thrown = error;
      return false;
    }
  }

  private checkEveryPass(): void {
    const { engine, backend } = this;
    const pump = engine.pump.bind(engine);
    let depth = 0;
    let moves = 0;
    let idle = 0;
    engine.pump = () => {
      idle = moves === backend.world.moves ? idle + 1 : 0;
      moves = backend.world.moves;
      if (idle > MOST_IDLE_PASSES)
        throw new Error(`the engine spins without progress\n${engine.explain()}`);
      depth++;
      const moved = pump();
      depth--;
      if (depth === 0 && !this.isDead) {
        this.invariants.check();
        this.onPass?.();
      }
      return moved;
    };
  }

  // --- The end ----------------------------------------------------------------------------------------------------

  get isBusy(): boolean {
    return this.engine.submission.outstanding.some((n) => n > 0);
  }

  /** No kernel of a run starts after the run has failed. */
  checkLaunches(): void {
    const { launched } = this.backend.executor;
    if (this.launchedAtFailure !== undefined && launched > this.launchedAtFailure)
      this.problems.push('kernels of a failed run were started after its failure');
  }

  /** Every copy that counts as valid holds what the last writer that ran wrote; a datum without that is poisoned. */
  checkContents(isGood: boolean): void {
    const { engine, oracle, memory, rank } = this;
    const dir = engine.directory;
    for (const datum of this.data) {
      const d = datum.row;
      if (dir.poison[d] !== 0) {
        if (isGood) this.problems.push(`${datum.name} is poisoned after a good run`);
        continue;
      }
      const wanted = oracle.final(rank, d);
      for (let s = 0; s < dir.spaces; s++) {
        const c = d * dir.spaces + s;
        if (dir.state[c] !== CopyState.shared && dir.state[c] !== CopyState.owned) continue;
        if (dir.block[c] === NO_BLOCK) continue;
        const found = memory.contents(rank, s, dir.block[c], dir.bytes[d]);
        // When a run fails on several ranks, receives are dropped and each datum is again what its owner has.
        const isRight = found === wanted || (!isGood && memory.ranks > 1 && oracle.isOf(d, found));
        if (!isRight || !oracle.isGood(found)) {
          this.problems.push(
            `${datum.name} counts as valid in space ${s} and should hold ${oracle.describe(wanted)}, but holds ${oracle.describe(found)}`,
          );
        }
      }
    }
  }

  closeData(): void {
    for (const datum of this.data) datum.close();
    this.engine.wake();
  }

  checkLeft(): void {
    for (const space of this.engine.spaces) {
      if (space.zone.used !== 0)
        this.problems.push(`space ${space.index}: ${space.zone.used} bytes were not given back`);
      if (space.pinnedCopies !== 0)
        this.problems.push(`space ${space.index}: ${space.pinnedCopies} copies stay pinned`);
      if (space.waiters.length !== 0)
        this.problems.push(`space ${space.index}: someone still stands in line`);
    }
    const { ranks } = this.engine;
    ranks?.credits.inFlight.forEach((bytes, s) => {
      const left = bytes + this.engine.spaces[s].offered.bytes;
      if (left !== 0)
        this.problems.push(`space ${s}: ${left} bytes of credits were not given back`);
    });
  }
}
