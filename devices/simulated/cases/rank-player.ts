// One rank of a simulated case: its engine, its data and its runs. It carries out the program, and checks the engine's
// tables after every pass (invariants.ts). rank-checks.ts makes the checks at the end.

import type { RunState } from '../../../scheduler/engine/run-state.js';
import { type Datum, HeadraceError, Runtime, type TaskHandle } from '../../../scheduler/index.js';
import { TaskStage } from '../../../stages/task-table.js';
import type { TaskId } from '../../handles.js';
import { ALIGNMENT } from '../../memory/zone.js';
import { Invariants } from '../checkers/invariants.js';
import { OracleObserver } from '../checkers/oracle-hooks.js';

import { expectedSetErrors } from '../checkers/outcomes.js';
import type { SimulatedBackend } from '../machine/backend.js';
import type { SerialOracle } from '../memory/oracle.js';
import type { WeakMemory } from '../memory/weak-memory.js';
import type { SimulatedPort } from '../network/port.js';
import { rankOf, type SimulatedCase } from './case.js';
import { behaves, CaseClasses, dataOf } from './classes.js';
import { PlayerObserver } from './player-observer.js';
import { type CaseTask, OWN } from './program.js';
import { isOfBody, RankBodies } from './rank-bodies.js';
import { RunPlayer } from './run-player.js';

type Engine = Runtime['engine'];

/** Passes of the engine without work of the machine, one after the other. */
const MOST_IDLE_PASSES = 5_000;

/** A value that the program requested. */
export interface Asked {
  readonly datum: number;
  /** The version that it must get. */
  readonly expected: number;
  /** The version that it got ... */
  got?: number;
  /** ... or the reason why it got none. */
  error?: HeadraceError;
  /** It ended next to a failing run, which may have taken the value. */
  isTolerated?: boolean;
}

/** Runs have numbers from 0; tasks without a run are the runtime's own. */
export class RankPlayer {
  readonly rank: number;
  readonly runtime: Runtime;
  readonly engine: Engine;
  readonly backend: SimulatedBackend;
  readonly invariants: Invariants;
  readonly problems: string[] = [];
  readonly memory: WeakMemory;
  readonly oracle: SerialOracle;
  /** Data of the case by number, once they were created. */
  readonly data: (Datum<'u8'> | undefined)[] = [];
  readonly runs: RunPlayer[] = [];
  readonly asked: Asked[] = [];
  /** The last version of each datum that the program on this rank knows; 0: one that no rank writes. */
  readonly known: Map<number, number> = new Map();
  /** Promises of this rank that the program waits for: reads and writes. */
  open = 0;
  /** Called after every pass of the engine, for stepping through a replay. */
  onPass: (() => void) | undefined;
  private readonly c: SimulatedCase;
  private readonly classes: CaseClasses;
  private readonly bodies: RankBodies;
  private readonly handles: (TaskHandle | undefined)[] = [];
  private readonly runOf: Map<RunState, RunPlayer> = new Map();
  private beginning: RunPlayer | undefined;
  /** Kernels of a failed run that were launched when it failed. */
  private readonly launched: Map<RunState, number> = new Map();
  /** The progress of the machine at the last pass, and the passes since without any. */
  private moves = 0;
  private idle = 0;
  /** The task that reads or restores for the program, as the oracle names it. */
  private lastAsked = -1;

  constructor(
    c: SimulatedCase,
    rank: number,
    backend: SimulatedBackend,
    port: SimulatedPort | undefined,
    memory: WeakMemory,
    oracle: SerialOracle,
  ) {
    this.c = c;
    this.rank = rank;
    this.backend = backend;
    this.memory = memory;
    this.oracle = oracle;
    this.bodies = new RankBodies(this, backend.world);
    this.classes = new CaseClasses((n) => this.bodies.behave(n));
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
    const told = {
      inserted: (run: RunState, key: number, own: string): void => {
        this.runOf.get(run)?.tasks.push(key);
        if (own === 'read' || own === 'restore') this.lastAsked = key;
      },
      fresh: (row: number): void => this.invariants.forget(row),
      removed: (row: number): void => this.checkUnused(row),
    };
    this.engine.observe(new OracleObserver(rank, this.engine, oracle, memory, told));
    this.engine.observe(new PlayerObserver(this));
  }

  /** A run was opened: the one that begins now, if one does. */
  runOpened(state: RunState): void {
    if (this.beginning !== undefined) this.runOf.set(state, this.beginning);
  }

  runFailed(state: RunState): void {
    if (this.memory.ranks > 1) this.memory.tolerant = true;
    const player = this.runOf.get(state);
    if (player !== undefined) player.hasFailed = true;
    if (!this.launched.has(state))
      this.launched.set(state, this.backend.executor.launched[state.slot]);
  }

  /** No kernel of a run starts after the run has failed. */
  runClosed(state: RunState): void {
    const atFailure = this.launched.get(state) ?? Number.POSITIVE_INFINITY;
    if (atFailure < this.backend.executor.launched[state.slot])
      this.problems.push('kernels of a failed run were started after its failure');
  }

  /** A row of the directory is returned: no task may use it any more. */
  private checkUnused(d: number): void {
    const { tasks, x } = this.engine;
    for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
      const row = id & tasks.mask;
      const stage = tasks.stage[row];
      if (stage === TaskStage.free || stage === TaskStage.done || stage === TaskStage.outlived)
        continue;
      const first = tasks.flowStart[row];
      const end = first + x.classes[tasks.classOf[row]].modes.length;
      for (let i = first; i < end; i++) {
        if (tasks.flowDatum[i] === d)
          this.problems.push(
            `the row of datum ${d} is given back while ${x.describe(row)} uses it`,
          );
      }
    }
  }

  /** All runs are over, and all requested values are there. */
  get isThrough(): boolean {
    return this.open === 0 && this.runs.every((run) => run.isOver);
  }

  /** The rank's process is gone. */
  get isDead(): boolean {
    return this.backend.executor.isDead;
  }

  // --- The program ------------------------------------------------------------------------------------------------

  /** Creates a datum of the case. */
  make(i: number): void {
    const { units, initial, home, owner = 0 } = this.c.data[i];
    const { oracle } = this;
    const bytes = units * ALIGNMENT;
    const options = {
      name: `d${i}`,
      rank: owner,
      ...(home === undefined ? {} : { device: home }),
    };
    oracle.naming = i;
    try {
      const datum = initial
        ? (this.runtime.data(new Uint8Array(bytes), options) as Datum<'u8'>)
        : this.runtime.data('u8', bytes, options);
      this.data[i] = datum;
      this.known.delete(i);
      if (!initial || owner !== this.rank) return;
      const { block, spaces } = this.engine.directory;
      const stamp = oracle.initial(this.rank, datum.row);
      this.known.set(i, stamp);
      this.memory.hostWrite(this.rank, block[datum.row * spaces], bytes, stamp);
    } finally {
      oracle.naming = undefined;
    }
  }

  /** Begins a run; its program goes on until `ended` resolves. */
  begin(run: number, ended: Promise<void>): void {
    const player = new RunPlayer();
    this.runs[run] = player;
    this.beginning = player;
    player.begin(this.runtime, ended);
    this.beginning = undefined;
  }

  /** Inserts task `i` of the program into a run; false when it was refused. */
  insert(run: number, i: number, t: CaseTask): boolean {
    const player = this.runs[run];
    if (player === undefined) return false;
    try {
      this.handles[i] = this.insertInto(player, t, i);
      return true;
    } catch (error) {
      if (this.isDead) return false;
      if (!(error instanceof HeadraceError) || error.code === 'ERR_STALLED') throw error;
      player.thrown = error;
      return false;
    }
  }

  /** Inserts a task; `n` names it for its body, `own` is the datum that the inserting body has created. */
  insertInto(run: RunPlayer, t: CaseTask, n: number, own?: Datum<'u8'>): TaskHandle | undefined {
    const args = dataOf(t, (d) => (d === OWN ? own : this.data[d]));
    args['us'] = t.micros;
    if (behaves(t)) {
      args['n'] = n;
      const isHere = isOfBody(n) || rankOf(this.c, t) === this.rank;
      this.bodies.add(n, t, run, own, isHere);
    }
    const after = t.after?.flatMap((p) => this.handles[p] ?? []);
    return run.graph?.insert(this.classes.of(t), args as never, {
      ...(t.priority === undefined ? {} : { priority: t.priority }),
      ...(t.device === undefined ? {} : { device: t.device }),
      ...(t.rank === undefined ? {} : { rank: t.rank }),
      ...(after === undefined ? {} : { after }),
    });
  }

  /** Tasks that bodies of this rank may insert that have not begun. */
  get owed(): number {
    return this.bodies.owedAmong(this.engine.tasks.live);
  }

  /** Whether a writer of the datum was inserted here: other ranks may have inserted more tasks of a failed run. */
  knows(i: number): boolean {
    const { engine, memory } = this;
    const row = this.data[i]?.row;
    return row === undefined || memory.ranks === 1 || engine.directory.written[row] !== 0;
  }

  /** The program wants the value of a datum, which must be the latest version inserted so far. */
  read(i: number): void {
    const datum = this.data[i];
    if (datum === undefined) return;
    const value = datum.read();
    const asked = this.ask(i);
    this.follow(
      value.then((bytes) => this.checkValue(asked, bytes)),
      asked,
    );
  }

  /** The program wants the value from before the cancelled tasks. */
  restore(i: number): void {
    const datum = this.data[i];
    if (datum === undefined) return;
    const done = datum.restore();
    this.follow(done, this.ask(i));
  }

  /** The version that the last task inserted for the program must see: making room for it may have run bodies before. */
  private ask(datum: number): Asked {
    const [flow] = this.oracle.flowsOf(this.lastAsked);
    const isThat = flow !== undefined && flow.datum === datum;
    const asked: Asked = { datum, expected: isThat ? flow.expected : this.oracle.latest(datum) };
    this.asked.push(asked);
    return asked;
  }

  private follow(promise: Promise<void>, asked: Asked): void {
    this.open++;
    promise.then(
      () => {
        this.open--;
      },
      (error: HeadraceError) => {
        this.open--;
        asked.error = error;
        asked.isTolerated = this.memory.tolerant;
      },
    );
  }

  private checkValue(asked: Asked, bytes: Uint8Array): void {
    const { datum, expected } = asked;
    const { oracle, memory } = this;
    const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    asked.got = words[0];
    for (let u = 0; u < bytes.length / ALIGNMENT; u++) {
      const [stamp, part] = words.subarray((u * ALIGNMENT) / 4);
      // If ranks fail it is some version, but a whole one.
      const isVersion = memory.tolerant ? stamp === words[0] : stamp === expected;
      if (isVersion && part === u && oracle.isGood(stamp) && oracle.isOf(datum, stamp)) continue;
      const state = oracle.isGood(expected) ? '' : ', which has no value';
      this.problems.push(
        `read() of d${datum} must give ${oracle.describe(expected)}${state}, but gives ${oracle.describe(stamp)} (unit ${u})`,
      );
      return;
    }
  }

  /** The program sets a datum to the version `stamp`. */
  set(i: number, stamp: number): void {
    const datum = this.data[i];
    if (datum === undefined) return;
    const bytes = new Uint8Array(datum.bytes);
    const words = new Int32Array(bytes.buffer);
    for (let u = 0; u < bytes.length / ALIGNMENT; u++) words.set([stamp, u], (u * ALIGNMENT) / 4);
    const { oracle } = this;
    this.known.set(i, stamp);
    oracle.reserved = datum.rank === this.rank ? stamp : undefined;
    this.open++;
    datum.set(bytes).then(
      () => {
        this.open--;
        if (datum.rank === this.rank && !oracle.isGood(stamp))
          this.problems.push(`set() of d${i} resolved, but did not write`);
      },
      (error: HeadraceError) => {
        this.open--;
        if (!expectedSetErrors(this.c).includes(error.code))
          this.problems.push(`set() of d${i}: ${error.message}`);
      },
    );
    oracle.reserved = undefined;
  }

  close(i: number): void {
    this.data[i]?.close();
    this.data[i] = undefined;
  }

  /** A pass begins: the machine must do something now and then. */
  passBegins(): void {
    const { moves } = this.backend.world;
    this.idle = this.moves === moves ? this.idle + 1 : 0;
    this.moves = moves;
    if (this.idle > MOST_IDLE_PASSES)
      throw new Error(`the engine spins without progress\n${this.engine.explain()}`);
  }

  /** A pass is over that was not within another one. */
  passEnds(): void {
    if (this.isDead) return;
    this.invariants.check();
    this.onPass?.();
  }

  get isBusy(): boolean {
    return this.engine.submission.outstanding.some((n) => n > 0);
  }

  closeData(): void {
    for (const datum of this.data) datum?.close();
    this.engine.wake();
  }
}
