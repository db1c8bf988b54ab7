// What a program asks of the run into which it inserts: checks and values of data, ranks, temporary data, and room for more
// tasks. Nothing here inserts a task; insertion is in graph.ts.

import { HeadraceError } from '../../devices/errors.js';
import type { DatumId, TaskHandle, TaskId } from '../../devices/handles.js';
import { isInstance } from '../checks.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import type { ProgramInsertion, TaskInsertion } from '../engine/task-insertion.js';
import { LocalRank } from '../ranks/local-rank.js';
import type { Ranks } from '../ranks/ranks.js';
import type { TaskOptions } from './body-types.js';
import type { ClassBinder } from './bound-class.js';
import { Datum, type DatumOwner } from './datum.js';
import type { DatumOptions } from './datum-options.js';
import type { ElementType } from './element-type.js';
import type { BodyParts } from './parts/body-parts.js';
import type { Parts } from './parts/parts.js';
import type { Reductions } from './reductions.js';
import { noDatum, unusable } from './task-arguments.js';
import type { TaskClass } from './task-class.js';

/** A graph's interface to its runtime. @internal */
export interface GraphRuntime {
  /** The other ranks, if there are several. */
  readonly peers: Ranks | undefined;
  /** The owner of the data that tasks may use. */
  readonly programData: DatumOwner;
  readonly classes: ClassBinder;
  readonly reductions: Reductions;
  readonly parts: Parts;
  /** The parts that bodies make; a plan has no bodies. */
  readonly bodyParts?: BodyParts;
}

/** Insertions of a run that come again. @internal */
export interface Repetition {
  /** The last ones: they come again. */
  readonly count: number;
  /** Insertions until now that have repeated them, and those themselves. */
  readonly before: number;
  /** Those that are to come. */
  readonly ahead: number;
}

/** A task that the program inserts, in its own words. */
export interface GivenTask {
  readonly cls: unknown;
  /** With `inOrder` only those of parameters count. */
  readonly args: unknown;
  readonly options: TaskOptions | undefined;
  /** Its data by flow, if they are not in `args`; the array may be longer. */
  readonly inOrder: readonly Datum[] | undefined;
}

/** Sees the insertions of a run, and may hold them back (scheduler/recognition/). @internal */
export interface InsertionWatch {
  /** No insertion is held back, and `takes` need not be asked. */
  readonly isQuiet: boolean;
  /** Insertions that it passes need not be noted. */
  readonly glance:
    | { passes(flows: TaskInsertion['flows'], last: number, place: number): boolean }
    | undefined;
  /**
   * Whether an insertion is the one that is expected next. Then it is held back, and has the handle `handle`. With `inOrder`, which has
   * the data by flow and may be longer, `args` has only the parameters and may be anything if the class has none.
   */
  accepts(
    cls: unknown,
    args: unknown,
    options: TaskOptions | undefined,
    inOrder?: readonly Datum[],
  ): boolean;
  /** The same for an insertion that was not accepted: others may be expected from here on. What was held back may be inserted now. */
  takes(given: GivenTask): boolean;
  readonly handle: TaskHandle;
  /** Insertions are compared with a stretch that comes again. */
  readonly isInStretches: boolean;
  /** As those of `Graph`. */
  readonly untilStretch: number | undefined;
  again(of: Repetition): number;
  /** The number of the insertion in its run. */
  readonly place: number;
  /** A checked task of class `cls` is about to be inserted, on rank `rank` or, if that is negative, where its data belong. */
  notes(insertion: ProgramInsertion, cls: TaskClass, rank: number): void;
  /** The program asks for something that needs its tasks to run before it ends. */
  asks(what: string): void;
  /** It awaits room for more tasks. True if insertions stay held back; then `hasSpace` follows. */
  asksForSpace(): boolean;
  hasSpace(): void;
}

/** A run, as its program sees it. */
export class RunView {
  /** @internal */
  protected readonly runtime: GraphRuntime;
  /** @internal */
  protected readonly engine: Engine;
  /** @internal */
  protected readonly run: RunState;
  /** @internal Undefined if nothing needs to see the insertions. */
  watch: InsertionWatch | undefined;

  /** @internal */
  constructor(runtime: GraphRuntime, engine: Engine, run: RunState) {
    this.runtime = runtime;
    this.engine = engine;
    this.run = run;
  }

  /**
   * Checks that tasks of this run can use a datum and, if `reads` is true, that it has or will have a value. `insert`
   * makes the same checks. Algorithms call this before they insert, so that they insert all of their tasks or none; `of`
   * names the datum in the message.
   *
   * @throws HeadraceError `ERR_FOREIGN_DATUM`, `ERR_DATUM_CLOSED`, `ERR_NEVER_WRITTEN`, `ERR_RUN_OVER`, or the run's own
   *   error
   */
  check(datum: Datum, reads: boolean, called?: string): void {
    const { run, engine, runtime } = this;
    if (!isInstance(datum, Datum)) throw noDatum('graph.check', datum);
    const of = called ?? `datum '${datum.name}'`;
    if (run.error !== undefined) throw run.error;
    if (run.over) this.throwOver();
    const error = unusable(of, datum, runtime.programData);
    if (error !== undefined) throw error;
    if (!reads || engine.directory.written[datum.row] !== 0 || this.isHidden(datum.row)) return;
    throw new HeadraceError('ERR_NEVER_WRITTEN', `${of} is read, and nothing has written it`, {
      datum: datum.name,
      remedy: 'insert a task that writes it first, or create it from an array',
    });
  }

  /**
   * The first element of a datum after all tasks inserted so far that write it. The run goes on: the call waits for these tasks
   * and those that they follow, and for no others. A program uses it to decide what to insert next.
   *
   * The datum is copied to the host as a whole if it is not there, as for `datum.read()`, so a scalar should have a datum of its
   * own. On several ranks every rank must call it at the same place of the program, and every rank gets the value.
   *
   * Rejects with `ERR_ARGUMENT_TYPE`, `ERR_FOREIGN_DATUM` and `ERR_RUN_OVER`; for the reasons of `datum.read()`; and, when the
   * datum has no value because the run has failed or was aborted, with the error of the run.
   */
  value(datum: Datum): Promise<number> {
    return this.engine.callbacks.refusal('graph.value()') ?? this.valueOf(datum);
  }

  private async valueOf(datum: Datum): Promise<number> {
    const { run } = this;
    if (run.over) this.throwOver();
    this.watch?.asks('its program asks for values');
    try {
      return await this.runtime.programData.firstOf(datum);
    } catch (error) {
      const isPoisoned = error instanceof HeadraceError && error.code === 'ERR_DATUM_POISONED';
      throw (isPoisoned ? run.error : undefined) ?? error;
    }
  }

  /** @internal */
  get state(): RunState {
    return this.run;
  }

  /** This process's number among `ranks`. */
  get rank(): number {
    return this.runtime.peers?.rank ?? 0;
  }

  /** Number of processes that run this program together. */
  get ranks(): number {
    return this.runtime.peers?.size ?? 1;
  }

  /**
   * Whether a datum belongs to this rank. A run with `pruned: true` may skip the tasks that neither write nor read a
   * datum of this rank. Then insertion costs a rank only its share (docs/network.md has the rule).
   */
  owns(datum: Datum): boolean {
    if (!isInstance(datum, Datum)) throw noDatum('graph.owns', datum);
    return datum.rank === this.rank;
  }

  /**
   * Whether this rank may leave out a task on these data, or on data of these ranks: the run is pruned and the rank owns
   * none of them. Always false in a run that is not pruned, so an algorithm can always ask. `graph.skips(matrix.rankOf(i, j))`
   * asks about a tile without making it.
   */
  skips(...data: readonly (Datum | number)[]): boolean {
    const ranks = this.runtime.peers;
    if (ranks === undefined || !ranks.runs.isPruned(this.run)) return false;
    return data.every((of) => (typeof of === 'number' ? of : ranks.ownerOf(of.row)) !== ranks.rank);
  }

  /** @internal This rank, for a part of the program in which ranks insert their own tasks only; undefined unless the run is pruned. */
  local(): LocalRank | undefined {
    const { engine, run } = this;
    const ranks = this.runtime.peers;
    const isPruned = ranks?.runs.isPruned(run) === true && !engine.inBody && !run.sealed;
    return isPruned ? new LocalRank(ranks, run, engine.tasks.mask + 1) : undefined;
  }

  /** @internal Whether the engine looks for mistakes. */
  get isChecked(): boolean {
    return this.engine.checked;
  }

  /** @internal The rank that has written the latest version of a datum, as far as this rank knows. */
  producerOf(datum: Datum): number {
    return this.runtime.peers?.plan.data.producer[datum.row] ?? 0;
  }

  /** @internal Whether this rank has the latest version of a datum, or gets it, as far as it knows. */
  hasLatest(datum: Datum): boolean {
    return this.runtime.peers?.plan.data.have[datum.row] !== 0;
  }

  /** @internal A datum for the tasks of this graph only. */
  makeTemporary(element: ElementType, length: number, options: DatumOptions): Datum {
    return this.runtime.programData.empty(element, length, options);
  }

  /** @internal A datum for the tasks that task `parent` spawns. */
  temporaryOf(parent: TaskId, element: ElementType, length: number): Datum {
    const name = `temporary of ${this.engine.x.describe(parent & this.engine.tasks.mask)}`;
    const datum = this.runtime.programData.temporary(element, length, name);
    this.runtime.programData.closeWith(parent, datum);
    return datum;
  }

  /** @internal No more tasks use it. */
  freeTemporary(datum: Datum): void {
    datum.close();
  }

  /**
   * Resolves when no more than half a window of tasks waits to be run and the event loop was served. Asynchronous bodies
   * that have begun do not count. Await it at intervals in programs or asynchronous bodies that insert many tasks: it
   * limits memory and serves timers and sockets. Rejects with the run's error when the run fails.
   */
  space(): Promise<void> {
    const { engine, run, watch } = this;
    const refusal = engine.callbacks.refusal('graph.space()');
    if (refusal !== undefined) return refusal;
    const goesOn = watch?.asksForSpace() === true;
    if (!goesOn) engine.held?.settle();
    const space = engine.room.space(run);
    if (!goesOn) return space;
    const over = (): void => watch?.hasSpace();
    space.then(over, over);
    return space;
  }

  /** @internal Whether tasks that this rank left out may have written a datum. */
  protected isHidden(d: DatumId): boolean {
    const ranks = this.runtime.peers;
    return ranks?.runs.isPruned(this.run) === true && ranks.ownerOf(d) !== ranks.rank;
  }

  /** @internal */
  protected throwOver(): never {
    throw new HeadraceError('ERR_RUN_OVER', 'the run is over; no task can be inserted into it', {
      remedy: 'insert while the program function runs, or from the body of one of its tasks',
    });
  }
}
