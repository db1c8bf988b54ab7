// Insertion: turns a task in the user's words (class, data and parameters by name) into a row of the engine, after
// checking everything a user can get wrong. Errors are thrown from `insert` and leave the graph as it was.
import { HeadraceError } from '../devices/errors.js';
import { guards } from '../devices/guards.js';
import { roundedBytes } from '../devices/zone.js';
import { ANY_DEVICE, type TaskClassRow } from '../stages/task-table.js';
import { AccessMode } from '../trace/format.js';
import type { Datum } from './datum.js';
import type { Engine } from './engine.js';
import { insertOnRanks } from './rank-insert.js';
import type { RunState } from './run-state.js';
import type { Runtime } from './runtime.js';
import {
  badArguments,
  badDatum,
  badParameter,
  checkAfter,
  checkPriority,
  checkRank,
  checkTaskOptions,
  duplicateDatum,
  neverWritten,
  reentered,
} from './task-arguments.js';
import { type Flows, ParameterKind, type Parameters, type TaskClass } from './task-class.js';

/** Names a task in later insertions (`after`). Only meaningful within the runtime that gave it. */
export type TaskHandle = number & { readonly __task: unique symbol };

/** Data and parameters of a task, by name. */
export type TaskArguments<F extends Flows, P extends Parameters> = {
  readonly [K in keyof F]: Datum<F[K]['element']>;
} & { readonly [K in keyof P]: P[K] extends 'bool' ? boolean : number };

/** Wishes for one task. */
export interface TaskOptions {
  /** Larger runs earlier among tasks that are ready on the same device; an integer, 0 by default. */
  readonly priority?: number;
  /** Device to run on: a GPU number from 0, or 'host'. Default: placement decides. */
  readonly device?: number | 'host';
  /** Rank to run on where there are several; default: the owner of the first datum that the task writes. */
  readonly rank?: number;
  /** Tasks that must be over (or ahead in queue order) first, besides those the data imply. */
  readonly after?: readonly TaskHandle[];
}

/** A task class as one runtime knows it. @internal */
export interface BoundClass {
  readonly row: TaskClassRow;
  readonly cls: TaskClass;
  /** What the datum of each flow must carry (`Datum.token`). */
  readonly tokens: readonly object[];
  /** Flows that write, where there are others that must not be the same datum. */
  readonly written: Uint8Array;
  readonly kinds: Uint8Array;
  /** Insertions with options whose names are still to be looked at. */
  unchecked: number;
  /** Largest task that surely fits wherever the class can run. */
  readonly safeBytes: number;
}

/** Inserts tasks into a run, in program order. */
export class Graph {
  private readonly runtime: Runtime;
  private readonly engine: Engine;
  private readonly run: RunState;
  private readonly flows: Int32Array;
  private readonly params: Float64Array;
  /** Changes with every insertion. */
  private turn = 0;
  private lastClass: unknown;
  private lastBound: BoundClass | undefined;

  /** @internal */
  constructor(runtime: Runtime, engine: Engine, run: RunState) {
    this.runtime = runtime;
    this.engine = engine;
    this.run = run;
    this.flows = new Int32Array(engine.tasks.maxArguments);
    this.params = new Float64Array(engine.tasks.maxArguments);
  }

  /**
   * Inserts a task after all tasks inserted before it: it sees what they write, they do not see what it writes.
   * Returns at once unless the task window is full; then it waits until earlier tasks have run.
   *
   * @throws HeadraceError `ERR_MISSING_ARGUMENT`, `ERR_ARGUMENT_TYPE`, `ERR_FOREIGN_DATUM`, `ERR_DATUM_CLOSED`,
   *   `ERR_NEVER_WRITTEN`, `ERR_DUPLICATE_DATUM`, `ERR_TASK_TOO_LARGE`, `ERR_UNKNOWN_KERNEL`, `ERR_KERNEL_SOURCE`,
   *   `ERR_NO_DEVICE`, `ERR_RUN_OVER`; or the run's own error once the run has failed or was aborted.
   */
  insert<F extends Flows, P extends Parameters>(
    cls: TaskClass<F, P>,
    args: TaskArguments<F, P>,
    options?: TaskOptions,
  ): TaskHandle {
    const { engine, run } = this;
    if (run.error !== undefined) throw run.error;
    if (run.over) this.throwOver();
    if (this.lastClass !== cls) {
      this.lastBound = this.runtime.bind(cls as unknown as TaskClass);
      this.lastClass = cls;
    }
    const bound = this.lastBound as BoundClass;
    const { row } = bound;
    const { flowNames, paramNames } = row;
    if (args === null || typeof args !== 'object') throw badArguments(bound, args);
    const { flows, params } = this;
    const { directory, tasks } = engine;
    if (!tasks.hasRoom(flowNames.length, paramNames.length)) {
      engine.reserveRow(bound.row);
      if (run.error !== undefined) throw run.error;
    }
    // Arguments and options may have getters, and these may do anything.
    const turn = ++this.turn;
    const { next } = tasks;
    this.readArguments(bound, args as unknown as Record<string, unknown>);
    let priority = 0;
    let device = ANY_DEVICE;
    let rank = -1;
    let after: readonly number[] | undefined;
    if (options !== undefined) {
      if (options === null) checkTaskOptions(bound, options);
      const wish = options;
      const priorityWish = wish.priority;
      const deviceWish = wish.device;
      const rankWish = wish.rank;
      const afterWish = wish.after;
      if (priorityWish !== undefined) priority = checkPriority(bound, priorityWish);
      if (deviceWish !== undefined) device = this.deviceHint(bound, deviceWish);
      if (rankWish !== undefined) rank = checkRank(bound, rankWish, this.ranks);
      if (afterWish !== undefined) after = checkAfter(bound, afterWish, tasks, this.ranks);
      const isEmpty = (priorityWish ?? deviceWish ?? rankWish ?? afterWish) === undefined;
      if (isEmpty || bound.unchecked > 0) {
        checkTaskOptions(bound, options);
        bound.unchecked--;
      }
    }
    if (turn !== this.turn || next !== tasks.next) throw reentered(bound);
    if (run.error !== undefined) throw run.error;
    const mayBeLarge = directory.largest * flowNames.length > bound.safeBytes;
    if (device >= 0 || (mayBeLarge && this.sumOfBytes(flowNames.length) > bound.safeBytes))
      this.checkSize(bound, device);
    const { ranks } = engine;
    return (
      ranks === undefined
        ? engine.insert(row, run, flows, params, priority, device, after)
        : insertOnRanks(engine, ranks, row, run, flows, params, priority, device, rank, after)
    ) as TaskHandle;
  }

  /** Checks data and parameters and resolves them to numbers in scratch memory. */
  private readArguments(bound: BoundClass, named: Record<string, unknown>): void {
    const { flows, params } = this;
    const { directory } = this.engine;
    const { tokens, kinds } = bound;
    const { flowNames, paramNames, modes } = bound.row;
    for (let i = 0; i < flowNames.length; i++) {
      const datum = named[flowNames[i]] as Datum | null | undefined;
      // Only open data of this runtime and of the flow's type have it: anything else a program may pass fails here.
      if (datum === undefined || datum === null || datum.token !== tokens[i])
        throw badDatum(bound, i, datum, named, this.runtime);
      const d = datum.row;
      if (directory.info[d] !== datum) throw badDatum(bound, i, datum, named, this.runtime);
      flows[i] = d;
      if (modes[i] !== AccessMode.write && directory.written[d] === 0 && !this.isHidden(d))
        throw neverWritten(bound, i, datum);
    }
    if (bound.written.length > 0) this.checkDuplicates(bound);
    for (let i = 0; i < paramNames.length; i++) {
      const value = named[paramNames[i]];
      const kind = kinds[i];
      if (typeof value === 'number' && kind !== ParameterKind.bool) {
        if (kind === ParameterKind.i32 && (value | 0) !== value)
          throw badParameter(bound, i, value, named);
        params[i] = value;
      } else if (typeof value === 'boolean' && kind === ParameterKind.bool) {
        params[i] = value ? 1 : 0;
      } else throw badParameter(bound, i, value, named);
    }
  }

  /** This process's number among `ranks`. */
  get rank(): number {
    return this.engine.ranks?.rank ?? 0;
  }

  /** Processes that run this program together. */
  get ranks(): number {
    return this.engine.ranks?.size ?? 1;
  }

  /**
   * Whether a datum belongs to this rank. A run with `pruned: true` may skip the tasks that neither write nor read a
   * datum of its own, so that inserting costs a rank no more than its share (docs/network.md has the rule).
   */
  owns(datum: Datum): boolean {
    return datum.rank === this.rank;
  }

  /**
   * Whether this rank may leave out a task on these data: the run is pruned and the rank owns none of them. Always false
   * in a run that is not pruned, so that an algorithm can ask in any case.
   */
  skips(...data: readonly Datum[]): boolean {
    const { ranks } = this.engine;
    if (ranks === undefined || !ranks.runs.isPruned(this.run)) return false;
    return data.every((datum) => ranks.ownerOf(datum.row) !== ranks.rank);
  }

  /**
   * Resolves when no more than half a window of tasks waits to be run, asynchronous bodies that have begun not counted,
   * and the event loop was served. Await it now and then where programs or asynchronous bodies insert many tasks: it
   * bounds memory, and keeps timers and sockets going. Rejects with the run's error when the run fails.
   */
  space(): Promise<void> {
    return this.engine.room.space(this.run);
  }

  /** Whether a datum may have been written by tasks that this rank left out. */
  private isHidden(d: number): boolean {
    const { ranks } = this.engine;
    return ranks?.runs.isPruned(this.run) === true && ranks.ownerOf(d) !== ranks.rank;
  }

  private checkDuplicates(bound: BoundClass): void {
    const { modes, flowNames } = bound.row;
    const { flows } = this;
    const n = flowNames.length;
    if (n > 32) {
      const seen = new Map<number, number>();
      for (let i = 0; i < n; i++) {
        const j = seen.get(flows[i]);
        if (j === undefined) seen.set(flows[i], i);
        else if (modes[i] !== AccessMode.read || modes[j] !== AccessMode.read)
          throw this.duplicate(bound, j, i);
      }
      return;
    }
    const { written } = bound;
    for (let w = 0; w < written.length; w++) {
      const i = written[w];
      const d = flows[i];
      for (let j = 0; j < n; j++) {
        if (flows[j] === d && j !== i) throw this.duplicate(bound, Math.min(i, j), Math.max(i, j));
      }
    }
  }

  private duplicate(bound: BoundClass, j: number, i: number): HeadraceError {
    const datum = this.engine.directory.info[this.flows[i]]?.name ?? '';
    return duplicateDatum(bound, j, i, datum);
  }

  private deviceHint(bound: BoundClass, device: number | 'host'): number {
    const s = this.runtime.spaceOf(device);
    const row = bound.row;
    if (row.kernels[s] < 0 && !(s === 0 && row.body !== undefined)) {
      throw new HeadraceError(
        'ERR_NO_DEVICE',
        `task class '${row.name}' has no body for ${this.engine.spaceName(s)}`,
        { device: this.engine.spaceName(s) },
      );
    }
    return s;
  }

  private sumOfBytes(n: number): number {
    let bytes = 0;
    for (let i = 0; i < n; i++) bytes += this.engine.directory.bytes[this.flows[i]];
    return bytes;
  }

  /** Throws when no device the task may run on could ever hold its data. */
  private checkSize(bound: BoundClass, device: number): void {
    if (!guards.feasibility) return;
    const { engine, flows } = this;
    const { row } = bound;
    const n = row.flowNames.length;
    let bytes = 0;
    for (let i = 0; i < n; i++) {
      if (flows.indexOf(flows[i]) >= i) bytes += roundedBytes(engine.directory.bytes[flows[i]]);
    }
    let limit = 0;
    let largest = '';
    const candidates =
      device >= 0
        ? [device]
        : this.runtime.gpuSpaces(row).length > 0
          ? this.runtime.gpuSpaces(row)
          : [0];
    for (const s of candidates) {
      const { capacity } = engine.spaces[s].zone;
      if (capacity >= bytes) return;
      if (capacity > limit) {
        limit = capacity;
        largest = engine.spaceName(s);
      }
    }
    throw new HeadraceError(
      'ERR_TASK_TOO_LARGE',
      `a task of class '${row.name}' needs ${bytes} bytes at once, but ${largest} has ${limit}`,
      {
        task: row.name,
        stage: 'alloc',
        bytes,
        limit,
        device: largest,
        remedy: "use smaller tiles, more device memory, or { device: 'host' }",
      },
    );
  }

  private throwOver(): never {
    throw new HeadraceError('ERR_RUN_OVER', 'the run is over; no task can be inserted into it', {
      remedy: 'insert while the program function runs, or from the body of one of its tasks',
    });
  }
}
