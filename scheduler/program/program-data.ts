// The data of a program: creation, first values, reads and restores, and the end. A call on a datum becomes one of the
// runtime's own tasks, so it takes effect in program order.

import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { type DatumId, HOST, type TaskId } from '../../devices/handles.js';
import { CopyEvent } from '../../devices/memory/coherency.js';
import { makeRoom } from '../../devices/memory/eviction.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';
import { isInstance, shown } from '../checks.js';
import type { Engine } from '../engine/engine.js';
import { isWindowFull } from '../engine/window.js';
import type { SharedObject } from '../ranks/call-log.js';
import { NO_GID } from '../ranks/data.js';
import type { Ranks } from '../ranks/ranks.js';
import { Datum, type DatumOwner } from './datum.js';
import {
  checkLength,
  checkShape,
  type DatumOptions,
  type DatumWish,
  datumWish,
  defaultName,
  homeOf,
} from './datum-options.js';
import {
  type AnyElementArray,
  type ElementArray,
  type ElementType,
  elementBytes,
  elementTypeOf,
  lengthOf,
  newArray,
  viewAs,
} from './element-type.js';
import type { Lifetime } from './lifetime.js';
import type { Job, OwnTasks } from './own-tasks.js';
import { hasParts } from './parts/ended-parts.js';
import { callOnBodyPart, partName, refusedPart } from './parts/mistakes.js';
import type { Region } from './parts/region.js';

/** Names, equal on all ranks, for data of which each rank makes those that it uses. */
export interface SharedNames {
  /** The others follow. */
  readonly first: number;
  readonly of: SharedObject;
}

/** The reductions that are open, as calls on their data end them. */
interface DatumReductions {
  use(datum: Datum): void;
  forget(datum: Datum): void;
  concerns(d: DatumId): boolean;
}

/** A record of parts, as closes use it. */
interface PartsRecord {
  giveBack(datum: Datum): void;
  mustGiveBack(datum: Datum): boolean;
  end(datum: Datum): Datum[];
}

/** The parts of data, as calls on these use them. */
interface DatumParts extends PartsRecord {
  isUsed: boolean;
  part(whole: Datum, region: Region): Datum;
  use(datum: Datum): void;
  isBehind(datum: Datum): boolean;
  gather(data: readonly Datum[]): void;
  play(datum: Datum, writes: (datum: Datum) => boolean): void;
  overwrite(datum: Datum): void;
  wasSet(datum: Datum): void;
}

/** The parts that bodies take of the data of their tasks. */
interface PartsOfBodies {
  callerFor(datum: Datum): TaskId | undefined;
  part(task: TaskId, of: Datum, region: Region): Datum;
  recordOf(datum: Datum): PartsRecord | undefined;
}

export class ProgramData implements DatumOwner {
  readonly tokens: Readonly<Record<ElementType, object>> = {
    f64: {},
    f32: {},
    i32: {},
    u32: {},
    u8: {},
  };
  private readonly engine: Engine;
  private readonly peers: Ranks | undefined;
  private readonly own: OwnTasks;
  private readonly lifetime: Lifetime;
  private nextName = 1;
  /** Of the runs of the runtime. */
  reductions: DatumReductions = {
    use: () => {},
    forget: () => {},
    concerns: () => false,
  };
  /** Set by the runtime. */
  parts!: DatumParts;
  /** Set by the runtime. */
  bodyParts!: PartsOfBodies;

  constructor(engine: Engine, peers: Ranks | undefined, own: OwnTasks, lifetime: Lifetime) {
    this.engine = engine;
    this.peers = peers;
    this.own = own;
    this.lifetime = lifetime;
  }

  /** This process's number among `ranks`. */
  get rank(): number {
    return this.peers?.rank ?? 0;
  }

  /** Number of processes that run the program together. */
  get ranks(): number {
    return this.peers?.size ?? 1;
  }

  // --- Creation -----------------------------------------------------------------------------------------------

  /**
   * Names for `count` data that the program makes on several ranks, one after the other, each rank when it first uses it.
   * Undefined in a single process, and in a body: there all data are made at once.
   */
  share(count: number, of: SharedObject): SharedNames | undefined {
    this.engine.callbacks.check('runtime.data()');
    this.lifetime.check();
    const { peers } = this;
    return peers === undefined || this.engine.inBody
      ? undefined
      : { first: peers.datumCalls.share(count, of), of };
  }

  /** A datum with the values of an array, which is copied. `shared`: its name of `share`. */
  from(values: unknown, options: DatumOptions | undefined, shared?: number): Datum {
    this.engine.callbacks.check('runtime.data()');
    const element = elementTypeOf(values);
    if (element === undefined) {
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `data are made from a typed array or an element type, not from ${shown(values)}`,
        { remedy: 'Float64Array, Float32Array, Int32Array, Uint32Array or Uint8Array' },
      );
    }
    const wish = this.wish(options);
    const array = values as AnyElementArray;
    const length = lengthOf(array);
    if (length === 0) {
      throw new HeadraceError('ERR_OPTION', `datum '${wish.name}' needs at least one element`, {
        datum: wish.name,
      });
    }
    const datum = this.add(element, length, wish, shared);
    if (datum.rank !== this.rank) {
      this.valueIsElsewhere(datum);
      return datum;
    }
    try {
      this.fillAtHome(datum, array);
    } catch (error) {
      datum.token = undefined;
      this.engine.removeDatum(datum.row);
      throw error;
    }
    return datum;
  }

  /** A datum that has no copy until a task writes it. `shared`: its name of `share`. */
  empty(
    element: ElementType,
    length: number,
    options: DatumOptions | undefined,
    shared?: number,
  ): Datum {
    this.engine.callbacks.check('runtime.data()');
    const wish = this.wish(options, shared !== undefined);
    checkLength(wish.name, length);
    return this.add(element, length, wish, shared);
  }

  /** A datum without a copy for what the body of a task of this rank spawns. No other rank knows it, whoever calls. */
  temporary(element: ElementType, length: number, name: string): Datum {
    const wish = this.wish({ name }, false, true);
    checkLength(name, length);
    return this.add(element, length, wish, NO_GID);
  }

  private wish(
    options: DatumOptions = {},
    isShared = false,
    inBody: boolean = this.engine.inBody && !isShared,
  ): DatumWish {
    const { engine, rank, ranks } = this;
    return datumWish(options, () => defaultName(this.nextName++), { engine, inBody, rank, ranks });
  }

  private add(element: ElementType, length: number, wish: DatumWish, shared?: number): Datum {
    const { name, owner, home, rows = length } = wish;
    checkShape(name, element, length, rows);
    const datum = new Datum(this, name, element, length, rows, (d) =>
      this.engine.addDatum(d.bytes, d),
    );
    if (shared === undefined) this.peers?.datumCalls.add(datum.row, owner);
    else this.peers?.datumCalls.addShared(datum.row, owner, shared);
    this.engine.directory.home[datum.row] = home;
    return datum;
  }

  partOf(datum: Datum, region: Region): Datum {
    this.engine.callbacks.check('a part', 'datum', datum);
    this.lifetime.check();
    // A datum that was closed behind a task is of use to its body: its memory goes after its last task.
    const isHere = !datum.closed || this.engine.directory.info[datum.row] === datum;
    const body = isHere ? this.bodyParts.callerFor(datum) : undefined;
    if (body !== undefined) {
      this.parts.isUsed = true;
      return this.bodyParts.part(body, datum, region);
    }
    this.checkDatum(datum);
    // Plans of recognised runs know the datum without parts.
    if (!hasParts(datum.view)) this.engine.held?.changed(datum.row);
    return this.parts.part(datum, region);
  }

  /** A datum for a part. @internal */
  makePart(whole: Datum, region: Region): Datum {
    const { rows, columns } = region;
    const name = partName(whole, region);
    return new Datum(this, name, whole.element, rows * columns, rows, (d) =>
      this.engine.addDatum(d.bytes, d),
    );
  }

  /** A datum for a part that the body of `task` makes. It is closed with the task, and no other rank knows it. @internal */
  makeBodyPart(task: TaskId, whole: Datum, region: Region): Datum {
    const datum = this.makePart(whole, region);
    this.peers?.datumCalls.addShared(datum.row, this.rank, NO_GID);
    this.closeWith(task, datum);
    return datum;
  }

  /** The body of `task` has made a datum for what it spawns. */
  closeWith(task: TaskId, datum: Datum): void {
    datum.madeBy = task;
    this.engine.joins.whenOver(task, () => this.closeInTime(datum));
  }

  /** Closes the datum, outside passes and bodies. */
  private closeInTime(datum: Datum): void {
    try {
      this.engine.room.withoutWaiting(() => this.closeQuietly(datum));
    } catch (error) {
      if (!isWindowFull(error)) throw error;
      // Not even the extension has a row. The datum keeps its memory a while longer.
      this.engine.deferred.defer(() => this.closeInTime(datum));
    }
  }

  /** The program closes the datum here; what is returned gives it up, at a later time of the engine's choice. */
  closingLater(datum: Datum): () => void {
    if (datum.closed || this.lifetime.isOver) return () => {};
    this.peers?.calls.made('close', datum);
    return () => this.engine.deferred.defer(() => this.closeInTime(datum));
  }

  rankOf(datum: Datum): number {
    return this.peers?.ownerOf(datum.row) ?? 0;
  }

  /** Another rank has the first value of a datum. */
  valueIsElsewhere(datum: Datum): void {
    this.engine.directory.written[datum.row] = 1;
  }

  /** Gives a new datum its first value in host memory, without a task. */
  private fillAtHome(datum: Datum, values: AnyElementArray): void {
    const { engine } = this;
    const host = engine.spaces[0];
    const dir = engine.directory;
    const d = datum.row;
    let offset = makeRoom(host, engine.x.counters, datum.bytes);
    const since = offset < 0 ? engine.backend.now() : 0;
    while (offset < 0 && engine.waitForHostMemory(since))
      offset = makeRoom(host, engine.x.counters, datum.bytes);
    if (offset < 0) {
      throw new HeadraceError(
        'ERR_OUT_OF_HOST_MEMORY',
        `datum '${datum.name}' needs ${datum.bytes} bytes, but host memory is full (${host.zone.used} of ${host.zone.capacity} bytes in use)`,
        {
          datum: datum.name,
          bytes: datum.bytes,
          limit: host.zone.capacity,
          remedy: 'raise hostMemory or close data that are no longer needed',
          report: engine.memoryText(),
        },
      );
    }
    dir.block[d * dir.spaces] = offset;
    dir.apply(d, HOST, CopyEvent.write);
    dir.written[d] = 1;
    this.hostArray(datum).set(values as never);
  }

  /** Array over the host copy of a datum. Only while the copy is in use or nothing runs. */
  hostArray<E extends ElementType>(datum: Datum<E>): ElementArray<E> {
    const dir = this.engine.directory;
    const offset = dir.block[datum.row * dir.spaces];
    if (datum.hostOffset !== offset || datum.hostArray === undefined) {
      datum.hostArray = viewAs(datum.element, this.engine.backend.hostView(offset, datum.bytes));
      datum.hostOffset = offset;
    }
    return datum.hostArray;
  }

  // --- Calls on a datum ---------------------------------------------------------------------------------------

  readDatum<E extends ElementType>(datum: Datum<E>): Promise<ElementArray<E>> {
    const refusal = this.engine.callbacks.refusal('read()', 'datum', datum);
    if (refusal !== undefined) return refusal;
    return this.whenWritten('read()', datum, () => {
      // Data may be larger than any array: this is refused before a view is made.
      const copy = newArray(datum.element, datum.length);
      copy.set(this.hostArray(datum) as never);
      return copy;
    });
  }

  firstOf(datum: unknown): Promise<number> {
    if (!isInstance(datum, Datum))
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `graph.value needs a datum, not ${shown(datum)}`,
      );
    if (datum.owner !== this)
      throw new HeadraceError(
        'ERR_FOREIGN_DATUM',
        `datum '${datum.name}' belongs to another runtime`,
        { datum: datum.name },
      );
    const { element, row }: Datum = datum;
    return this.whenWritten('graph.value()', datum, () => {
      const { backend, directory: dir } = this.engine;
      const [first] = viewAs(
        element,
        backend.hostView(dir.block[row * dir.spaces], elementBytes(element)),
      );
      return first;
    });
  }

  /**
   * Resolves with what `take` returns, called when the host has the value after all tasks inserted so far that write a datum.
   * Errors name the call `called`.
   */
  private whenWritten<E extends ElementType, T>(
    called: string,
    datum: Datum<E>,
    take: () => T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      this.checkDatum(datum);
      if (datum.ofBody !== undefined) throw callOnBodyPart(called, datum);
      this.engine.held?.settle();
      const ranks = this.peers;
      ranks?.calls.made('read', datum);
      this.useBefore(this.own.read, datum, called);
      this.checkCaller('read', datum, AccessMode.read, reject, called);
      const doubt = ranks?.datumCalls.uses(datum.row);
      ranks?.datumCalls.beforeRead(datum.row, () => this.parts.use(datum));
      if (
        this.engine.directory.written[datum.row] === 0 &&
        ranks?.datumCalls.mustKnow(datum.row) !== false
      ) {
        ranks?.datumCalls.refuseRead(datum.row);
        throw neverWritten(datum);
      }
      ranks?.datumCalls.read(datum.row);
      this.insertOwn(this.own.read, datum, called, {
        run: () => {
          const taken = take();
          if (doubt === undefined) resolve(taken);
          else doubt.settle(() => resolve(taken), reject);
        },
        fail: (error, task) => reject(ranks?.datumCalls.failureOf(datum.row, task) ?? error),
      });
    });
  }

  /**
   * What comes before the task of a call that uses a datum. In one process nothing is left of it then, and the task has room: bodies
   * that run meanwhile may reduce into the datum, or write parts of it. On several ranks they cannot, and the parts come later.
   */
  private useBefore(cls: TaskClassRow, datum: Datum, called: string): void {
    const { engine, reductions, parts } = this;
    if (this.peers !== undefined) {
      reductions.use(datum);
      return;
    }
    do {
      reductions.use(datum);
      parts.use(datum);
      engine.reserveRow(cls, callOn(datum, called));
      this.checkDatum(datum);
    } while (reductions.concerns(datum.row) || parts.isBehind(datum));
  }

  /** @throws HeadraceError `ERR_DATUM_CLOSED` when a body has closed the datum while the task waited for room */
  private insertOwn(cls: TaskClassRow, datum: Datum, called: string, job: Job): void {
    if (!this.own.insert(cls, datum, undefined, job, callOn(datum, called)))
      throw closedDatum(datum);
  }

  setDatum<E extends ElementType>(datum: Datum<E>, values: ElementArray<E>): Promise<void> {
    const refusal = this.engine.callbacks.refusal('set()', 'datum', datum);
    if (refusal !== undefined) return refusal;
    return new Promise((resolve, reject) => {
      this.checkDatum(datum);
      if (datum.ofBody !== undefined) throw callOnBodyPart('set()', datum);
      this.engine.held?.settle();
      if (elementTypeOf(values) !== datum.element || lengthOf(values) !== datum.length) {
        throw new HeadraceError(
          'ERR_ARGUMENT_TYPE',
          `datum '${datum.name}' takes ${datum.length} elements of ${datum.element}, not ${shownValues(values)}`,
          { datum: datum.name },
        );
      }
      const ranks = this.peers;
      ranks?.calls.made('set', datum);
      const isHere = datum.rank === this.rank;
      do {
        // Without room nothing has changed.
        if (isHere) this.engine.reserveRow(this.own.set, callOn(datum, 'set()'));
        this.checkDatum(datum);
        this.checkCaller('set', datum, AccessMode.write, reject);
        this.reductions.forget(datum);
        // Closes of partial results may have taken the row. The reduction is gone, so the call must not fail any more.
        if (isHere) this.engine.room.always(() => this.engine.reserveRow(this.own.set));
        this.checkDatum(datum);
      } while (ranks === undefined && this.reductions.concerns(datum.row));
      this.parts.overwrite(datum);
      ranks?.datumCalls.set(datum.row);
      if (!isHere) {
        resolve();
        return;
      }
      const copy = newArray(datum.element, datum.length);
      copy.set(values as never);
      this.insertOwn(this.own.set, datum, 'set()', {
        run: () => {
          this.hostArray(datum).set(copy as never);
          resolve();
        },
        fail: reject,
      });
      this.parts.wasSet(datum);
    });
  }

  restoreDatum(datum: Datum): Promise<void> {
    const refusal = this.engine.callbacks.refusal('restore()', 'datum', datum);
    if (refusal !== undefined) return refusal;
    return new Promise((resolve, reject) => {
      this.checkDatum(datum);
      if (datum.ofBody !== undefined) throw callOnBodyPart('restore()', datum);
      this.engine.held?.settle();
      const ranks = this.peers;
      const withParts = hasParts(datum.view);
      const refused = (): HeadraceError =>
        refusedPart(
          'restore()',
          datum,
          'the value from before a cancelled run is not known',
          'write all of it again, with set() or by tasks',
        );
      if (withParts && (ranks === undefined || !guards.refusedRestores)) throw refused();
      ranks?.calls.made('restore', datum);
      this.useBefore(this.own.restore, datum, 'restore()');
      this.checkCaller('restore', datum, AccessMode.readWrite, reject);
      const doubt = ranks?.datumCalls.uses(datum.row);
      if (
        this.engine.directory.written[datum.row] === 0 &&
        ranks?.datumCalls.mustKnow(datum.row) !== false
      )
        throw neverWritten(datum);
      ranks?.datumCalls.restore(datum.row);
      // Other ranks need not have made parts of it: this rank does its part of their call.
      if (withParts) throw refused();
      if (datum.rank === this.rank)
        this.insertOwn(this.own.restore, datum, 'restore()', {
          run: () => (doubt === undefined ? resolve() : doubt.settle(resolve, reject)),
          fail: (error, task) => reject(ranks?.datumCalls.failureOf(datum.row, task) ?? error),
        });
      else resolve();
    });
  }

  /**
   * An asynchronous body must not await a call on a datum that waits for the end of this body. A body of which it is not
   * known yet whether it is asynchronous gets the error as soon as it has returned a promise.
   * @throws HeadraceError `ERR_AWAITS_ITSELF`
   */
  private checkCaller(
    kind: 'read' | 'set' | 'restore',
    datum: Datum,
    mode: number,
    reject: (error: HeadraceError) => void,
    called = `${kind}()`,
  ): void {
    const { bodies, dependencies, tasks, x } = this.engine;
    const { caller } = bodies;
    if (caller === undefined || !dependencies.wouldFollow(caller.task, datum.row, mode, true))
      return;
    const error = new HeadraceError(
      'ERR_AWAITS_ITSELF',
      `the body of task ${x.describe(caller.task & tasks.mask)} calls ${called} of datum '${datum.name}', which waits for the end of that task`,
      {
        datum: datum.name,
        remedy: `use the arrays that the body gets, or call ${kind}() after the run`,
      },
    );
    if (caller.isAsync) throw error;
    const before = caller.whenAsync;
    caller.whenAsync = () => {
      before?.();
      reject(error);
    };
  }

  /** Leaves a datum without a value, in program order; `reason` is made when it is time. */
  spoil(datum: Datum, reason: () => HeadraceError): void {
    if (datum.closed || this.lifetime.isOver) return;
    const run = (): never => {
      throw reason();
    };
    // A value that is wrong must not be read: the task gets a row in any case.
    this.engine.room.always(() =>
      this.own.insert(this.own.spoil, datum, undefined, { run, fail: () => {} }),
    );
  }

  adviseDatum(datum: Datum, device: number | 'host'): void {
    this.engine.callbacks.check('advise()', 'datum', datum);
    this.checkDatum(datum);
    this.engine.held?.changed(datum.row);
    this.engine.directory.home[datum.row] = homeOf(this.engine, device);
  }

  locationsOf(datum: Datum): string[] {
    this.engine.callbacks.check('locations()', 'datum', datum);
    this.checkDatum(datum);
    this.engine.held?.settle();
    const dir = this.engine.directory;
    const owner = dir.owner(datum.row);
    const list: string[] = [];
    for (let s = HOST; s < dir.spaces; s++) {
      if ((dir.validMask[datum.row] >> s) & 1) {
        if (s === owner) list.unshift(this.engine.spaceName(s));
        else list.push(this.engine.spaceName(s));
      }
    }
    return list;
  }

  closeDatum(datum: Datum): void {
    this.engine.callbacks.check('close()', 'datum', datum);
    if (datum.closed || this.lifetime.isOver) return;
    this.peers?.calls.made('close', datum);
    this.closeQuietly(datum);
  }

  /** The data with these names are closed, those included that this rank has not made. `closeQuietly` follows for the others. */
  closeShared({ first, of }: SharedNames): void {
    this.engine.callbacks.check('close()');
    if (!this.lifetime.isOver) this.peers?.calls.closedShared(first, of);
  }

  /** Closes a datum as part of a call that closes several. */
  closeQuietly(datum: Datum): void {
    if (datum.closed || this.lifetime.isOver) return;
    // Other ranks may not have a part that no task uses.
    const isUnused = (): boolean => datum.view?.isOwn === true && guards.unusedParts;
    do {
      this.engine.held?.changed(datum.row);
      // Without room it stays open.
      this.engine.reserveRow(this.own.close, callOn(datum, 'close()'));
      if (datum.closed) return;
      // What only a part has goes back to the whole datum.
      if (datum.whole === undefined) this.reductions.forget(datum);
      else if (!isUnused()) this.reductions.use(datum);
      this.recordOf(datum).giveBack(datum);
      if (datum.closed) return;
    } while (
      (!isUnused() && this.reductions.concerns(datum.row)) ||
      this.recordOf(datum).mustGiveBack(datum)
    );
    this.end(...this.recordOf(datum).end(datum), datum);
  }

  private recordOf(datum: Datum): PartsRecord {
    return this.bodyParts.recordOf(datum) ?? this.parts;
  }

  /** Data are closed, unless a body has closed them meanwhile: the memory of each goes after its last task. @internal */
  end(...data: Datum[]): void {
    const open = data.filter(({ closed }) => !closed);
    // Bodies may run from here on, and find all of them closed.
    for (const datum of open) {
      datum.token = undefined;
      datum.hostArray = undefined;
    }
    for (const datum of open) {
      for (const partial of datum.partials ?? []) {
        this.engine.held?.changed(partial.row);
        this.end(partial);
      }
      this.giveUp(datum);
    }
  }

  /** The memory of a closed datum goes after its last task. */
  private giveUp(datum: Datum): void {
    const { engine } = this;
    try {
      engine.reserveRow(this.own.close);
    } catch (error) {
      if (!isWindowFull(error)) throw error;
      // The datum keeps its memory a while longer.
      engine.deferred.defer(() => {
        if (this.lifetime.isOver) return;
        // The places of held insertions are behind those of all tasks before them.
        engine.held?.settle();
        engine.room.withoutWaiting(() => this.giveUp(datum));
      });
      return;
    }
    const users = engine.dependencies.users(datum.row);
    this.own.insert(this.own.close, undefined, users, {
      run: () => this.engine.forgetDatum(datum.row),
      fail: () => this.engine.forgetDatum(datum.row),
    });
  }

  private checkDatum(datum: Datum): void {
    this.lifetime.check();
    if (datum.closed) throw closedDatum(datum);
  }
}

/** A call in words. */
function callOn({ name }: Datum, called: string): string {
  return `${called} of datum '${name}'`;
}

function closedDatum({ name }: Datum): HeadraceError {
  return new HeadraceError('ERR_DATUM_CLOSED', `datum '${name}' is closed`, { datum: name });
}

function neverWritten(datum: Datum): HeadraceError {
  return new HeadraceError('ERR_NEVER_WRITTEN', `datum '${datum.name}' was never written`, {
    datum: datum.name,
  });
}

/** Values that do not fit a datum, in words. */
function shownValues(values: unknown): string {
  const element = elementTypeOf(values);
  return element === undefined ? shown(values) : `${lengthOf(values)} elements of ${element}`;
}
