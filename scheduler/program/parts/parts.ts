// Parts of data. A part is a datum of its own to the engine, with copies and memory of its own. What it shares with its whole
// datum and with other parts is kept up to date by tasks that copy the newest version of a region from one view to another
// (take-overs). They are inserted before the task or call that needs them, so dependencies, placement, eviction and failures
// know them as tasks like all others.
//
// A region that lies in both views without being all of one of them is copied by way of a view of just that region. So no
// more than the region travels between devices.
// Invariants:
// - a take-over is inserted after the last task that writes its source and before the task that needs it, and the record of
//   the versions (versions.ts) changes with each insertion, because bodies may run between two of them;
// - take-overs belong to the runtime's own run: a part that a cancelled run only reads keeps its value.
import type { HeadraceError } from '../../../devices/errors.js';
import { guards } from '../../../devices/guards.js';
import type { Column, DatumId, SpaceId } from '../../../devices/handles.js';
import { NO_HOME, Poison } from '../../../devices/memory/directory.js';
import { ANY_DEVICE, type TaskClassRow } from '../../../stages/task-table.js';
import { AccessMode } from '../../../trace/format.js';
import type { Engine } from '../../engine/engine.js';
import { INTERNAL_RUN, type RunState } from '../../engine/run-state.js';
import type { ProgramInsertion } from '../../engine/task-insertion.js';
import type { BoundClass } from '../bound-class.js';
import type { Datum } from '../datum.js';
import type { TaskClass } from '../task-class.js';
import { hasParts, hasUsedParts, isOpen, seal } from './ended-parts.js';
import { type Loss, Takings } from './losses.js';
import { overlapInTask, type PartRefusal, refusedPart, tooLarge } from './mistakes.js';
import type { Extent, PartsOnRanks } from './on-ranks.js';
import type { PlanParts } from './plan-parts.js';
import { common, isSame, type Region } from './region.js';
import { RegionIndex } from './region-index.js';
import { takeOverClasses, takeOverParams } from './take-over-classes.js';
import { type TakeOver, Versions } from './versions.js';
import type * as views from './view.js';

type DatumView = views.View<Datum>;
type Family = views.Family<Datum>;

interface Mend {
  readonly cls: TaskClassRow;
  readonly insert: (datum: Datum, fail: () => void) => void;
}

/** What parts use of the runtime. */
export interface PartsRuntime {
  readonly engine: Engine;
  readonly bind: (cls: TaskClass) => BoundClass;
  /** A datum without memory for a part. */
  readonly makeDatum: (whole: Datum, region: Region) => Datum;
  readonly closeDatum: (datum: Datum) => void;
  /** Ends a part as a call of the program does. */
  readonly endPart: (datum: Datum) => void;
  /** Inserts a task after which the elements that a datum has are good again. */
  readonly mend: Mend;
  /** Of several ranks. */
  readonly ranks: PartsOnRanks | undefined;
}

function keyOf({ row, column, rows, columns }: Region): string {
  return `${row} ${column} ${rows} ${columns}`;
}

type Insertion = Pick<ProgramInsertion, 'flows' | 'priority' | 'run'>;

/** Who has a view. */
const HELD = { isHeld: true, plans: 0, isCalled: true };
const FREE = { isHeld: false, plans: 0, isCalled: false };

/** Flows and parameters of a take-over. */
const FLOWS = 2;
const PARAMS = 7;
/** Where a take-over runs: beside the first of these of its data that is anywhere. */
const BESIDE_SOURCE: readonly number[] = [1, 0];
const BESIDE_VIEW: readonly number[] = [0, 1];

/** A flow that reduces changes its datum on the rank of the datum, where partial results are combined into it, whatever the rank of the task. */
function reduces({ reductions }: TaskClass, flow: number): boolean {
  return reductions?.[flow] !== undefined;
}

/** What a take-over of a class is to its view. */
export function extentOf({ datum }: DatumView, cls: TaskClass): Extent {
  const { all, more } = takeOverClasses(datum.element);
  return { isAll: cls === all, isFirst: cls !== more };
}

export class Parts {
  /** Some datum has had parts. */
  isUsed = false;
  protected readonly runtime: PartsRuntime;
  protected readonly flows: Column<Int32Array, DatumId> = new Int32Array(FLOWS) as never;
  protected readonly params: Float64Array = new Float64Array(PARAMS);

  private readonly takings: Takings<DatumView>;
  /** The plan whose parts are made. */
  private making: PlanParts | undefined;

  constructor(runtime: PartsRuntime) {
    this.runtime = runtime;
    this.takings = new Takings(runtime.engine.tasks);
  }

  // --- Views --------------------------------------------------------------------------------------------------

  /** The part of an open datum, or of a part, with that region of it. @throws HeadraceError `ERR_TASK_TOO_LARGE` */
  part(of: Datum, region: Region): Datum {
    const { family, region: at } = this.viewAt(of.row) ?? this.begin(of).whole;
    const [row, column] = [at.row + region.row, at.column + region.column];
    const view = this.viewOf(family, { ...region, row, column });
    family.isEnded = false;
    const isOfPlan = this.making?.hold(view) === true;
    if (!isOfPlan) view.isHeld = true;
    // On several ranks others need not have made the call: the first task or call that uses the part decides.
    if (this.runtime.ranks !== undefined && guards.partUses) return view.datum;
    if (isOfPlan) this.beginUse(view);
    else this.noteUse(view);
    return view.datum;
  }

  /** The parts that `make` makes before it returns are those of a plan. */
  madeFor<T>(plan: PlanParts, make: () => T): T {
    const before = this.making;
    this.making = plan;
    try {
      return make();
    } finally {
      this.making = before;
    }
  }

  /**
   * A plan gives up a part. It ends with the last plan, unless the program has it. `endsUse`: all ranks do this at the same place, so the
   * record forgets the uses of plans.
   */
  letGo(view: DatumView, endsUse: boolean): void {
    const { family, region } = view;
    if (family.parts.get(keyOf(region)) !== view || --view.plans > 0) return;
    if (view.isCalled && guards.partHolds) return;
    if (!view.isOwn) {
      if (!endsUse) view.isHeld = true;
      if (!endsUse || (view.isHeld && !guards.planPartUses)) return;
      this.leave(view, true);
      view.isOwn = true;
    }
    if (!view.isHeld || !guards.partHolds) {
      this.runtime.endPart(view.datum);
      return;
    }
    if (!hasUsedParts(family)) this.complete(family.whole);
    // Bodies may have run, and closed the whole datum.
    if (this.isGone(family.whole.datum)) return;
    for (const datum of this.partsEnd(family)) this.runtime.closeDatum(datum);
  }

  protected begin(datum: Datum): Family {
    const { rows, columns } = datum;
    const region = { row: 0, column: 0, rows, columns };
    const { engine, ranks } = this.runtime;
    const whole = { ...{ datum, region, isOwn: false }, ...HELD } as {
      -readonly [K in keyof DatumView]: DatumView[K];
    };
    const views = new RegionIndex<DatumView>(region);
    const versions = undefined as never;
    const family = { whole, parts: new Map(), views, versions, isEnded: false, broken: new Map() };
    whole.family = family;
    views.add(whole);
    const hasValue = ranks?.begins(family, datum) ?? engine.directory.written[datum.row] !== 0;
    whole.family.versions = new Versions<DatumView>(whole, hasValue);
    this.attach(whole);
    this.isUsed = true;
    return whole.family;
  }

  /** @internal */
  viewOf(family: Family, region: Region): DatumView {
    const { whole, parts, versions } = family;
    const known = parts.get(keyOf(region));
    if (known !== undefined) return known;
    const { engine, makeDatum } = this.runtime;
    this.checkSize(whole.datum, region);
    const datum = makeDatum(whole.datum, region);
    this.runtime.ranks?.add(datum.row, whole.datum, region);
    const view = { ...{ datum, region, family, isOwn: true }, ...FREE };
    this.attach(view);
    parts.set(keyOf(region), view);
    family.views.add(view);
    const { directory } = engine;
    directory.home[datum.row] = directory.home[whole.datum.row] ?? NO_HOME;
    if (versions.hasValue(region)) directory.written[datum.row] = 1;
    return view;
  }

  /** A device that can hold the datum must be able to hold the part beside it. */
  private checkSize(whole: Datum, { rows, columns }: Region): void {
    const { engine } = this.runtime;
    const part = (whole.bytes / whole.length) * rows * columns;
    for (const [s, { zone }] of engine.spaces.entries())
      if (whole.bytes <= zone.capacity && whole.bytes + part + FLOWS * 512 > zone.capacity)
        throw tooLarge(whole, part, engine.spaceName(s as SpaceId), zone.capacity);
  }

  /** The record of a datum's versions. */
  protected versionsOf({ versions }: Family): Versions<DatumView> {
    return versions;
  }

  /** A task or call of the program uses a view. */
  protected noteUse(view: DatumView): void {
    view.isHeld = true;
    view.isCalled = true;
    this.beginUse(view);
  }

  /** A task or call of the program, or a plan, uses a view. */
  protected beginUse(view: DatumView): void {
    if (!view.isOwn) return;
    const { family } = view;
    if (!hasUsedParts(family)) this.runtime.ranks?.partsBegin(family);
    family.isEnded = false;
    view.isOwn = false;
  }

  // --- Tasks --------------------------------------------------------------------------------------------------

  /** Whether a task uses data that have parts, or parts. */
  concerns({ modes }: TaskClassRow, flows: ProgramInsertion['flows']): boolean {
    const { info } = this.runtime.engine.directory;
    for (let i = 0; i < modes.length; i++) {
      const datum = info[flows[i]] as Datum | undefined;
      if (datum?.ofBody !== undefined) return true;
      if (datum?.view !== undefined && !this.forgets(datum.view.family)) return true;
    }
    return false;
  }

  /** Whether a datum has parts, or may lack what they had: a play that begins with it must begin with the whole. */
  mayLack({ view }: Datum): boolean {
    return this.isUsed && view !== undefined && !this.forgets(view.family);
  }

  /** @throws HeadraceError `ERR_DUPLICATE_DATUM`, `ERR_PART` */
  check({ row }: BoundClass, { flows, run }: Pick<ProgramInsertion, 'flows' | 'run'>): void {
    const refusal = this.runtime.ranks?.refusal(run);
    if (refusal !== undefined) this.refuse(row, flows, refusal);
    this.checkOverlaps(row, flows);
  }

  /** @throws HeadraceError `ERR_DUPLICATE_DATUM` */
  checkOverlaps({ name, modes, flowNames }: TaskClassRow, flows: ProgramInsertion['flows']): void {
    for (let i = 0; i < modes.length; i++) {
      const view = this.viewAt(flows[i]);
      if (view === undefined) continue;
      for (let j = 0; j < i; j++) {
        const other = this.viewAt(flows[j]);
        if (other?.family !== view.family) continue;
        if (modes[i] === AccessMode.read && modes[j] === AccessMode.read) continue;
        if (common(other.region, view.region) === undefined) continue;
        throw overlapInTask(
          name,
          [flowNames[j], flowNames[i]],
          [other.datum.name, view.datum.name],
        );
      }
    }
  }

  /** Refuses a task that uses parts. @throws HeadraceError `ERR_PART` */
  refuse(
    { modes, name }: TaskClassRow,
    flows: ProgramInsertion['flows'],
    { why, remedy }: PartRefusal,
  ): void {
    for (let i = 0; i < modes.length; i++) {
      const view = this.viewAt(flows[i]);
      if (view !== undefined) throw refusedPart(`task class '${name}'`, view.datum, why, remedy);
    }
  }

  /** Refuses a task of a parameterised graph that uses parts. @throws HeadraceError `ERR_PART` */
  refuseAll(name: string, data: readonly (Datum | undefined)[]): void {
    for (const datum of data)
      if (datum !== undefined && (hasParts(datum.view) || datum.ofBody !== undefined))
        throw refusedPart(
          `task class '${name}'`,
          datum,
          'it is a task of a parameterised graph',
          'copy the elements to a datum without parts in a task before the graph',
        );
  }

  /** Whether a task can be inserted now. If not, `prepare` makes it so, unless other tasks come between. */
  isReady({ row }: BoundClass, flows: ProgramInsertion['flows']): boolean {
    const { modes } = row;
    for (let i = 0; i < modes.length; i++) {
      const view = modes[i] === AccessMode.write ? undefined : this.viewAt(flows[i]);
      if (view === undefined) continue;
      if (this.versionsOf(view.family).isBehind(view)) return false;
    }
    return true;
  }

  /**
   * Whether views that a task reads can be mended. That is done once per task, before its take-overs: a take-over that fails
   * after that leaves the view without a value, and so the task fails, too.
   */
  isBroken({ row }: BoundClass, flows: ProgramInsertion['flows']): boolean {
    return row.modes.some((mode, i) => {
      const view = mode === AccessMode.write ? undefined : this.viewAt(flows[i]);
      return view !== undefined && this.mendable(view.family).length > 0;
    });
  }

  /** Mends the views that a task reads. */
  settle({ row }: BoundClass, flows: ProgramInsertion['flows']): void {
    for (const [i, mode] of row.modes.entries()) {
      const view = mode === AccessMode.write ? undefined : this.viewAt(flows[i]);
      if (view !== undefined) this.mend(view.family);
    }
  }

  /** Inserts the take-overs that a task needs. Bodies may run meanwhile and insert other tasks. */
  prepare({ row, cls }: BoundClass, { flows, priority, run }: Insertion, wanted: number): void {
    const { modes } = row;
    const { ranks } = this.runtime;
    const rank = ranks === undefined || wanted >= 0 ? wanted : ranks.rankOf(row, flows);
    // A body may close one of the data, and its row may be that of another one then.
    const views = modes.map((_, i) => this.viewAt(flows[i]));
    try {
      for (const [i, view] of views.entries()) {
        if (view === undefined) continue;
        ranks?.prepares(run, reduces(cls, i) ? ranks.homeOf(view) : rank);
        this.noteUse(view);
        if (modes[i] !== AccessMode.write) this.complete(view, priority);
      }
    } finally {
      ranks?.prepared();
    }
  }

  /** The task is ready, and inserted next. */
  comes({ row, cls }: BoundClass, flows: ProgramInsertion['flows'], wanted: number): void {
    const { modes } = row;
    const { ranks } = this.runtime;
    const rank = ranks === undefined || wanted >= 0 ? wanted : ranks.rankOf(row, flows);
    for (let i = 0; i < modes.length; i++) {
      const view = this.viewAt(flows[i]);
      if (view === undefined) continue;
      this.noteUse(view);
      const writes = modes[i] !== AccessMode.read;
      ranks?.comes(view, reduces(cls, i) ? ranks.homeOf(view) : rank, writes);
      if (writes) this.write(view);
    }
  }

  protected viewAt(d: DatumId): DatumView | undefined {
    const datum = this.runtime.engine.directory.info[d] as Datum | undefined;
    return datum && this.viewIn(datum);
  }

  /** The place of a datum in this record. */
  protected viewIn({ view }: Datum): DatumView | undefined {
    return view;
  }

  /** Whether a datum was closed, and no task can use it any more. */
  protected isGone(datum: Datum): boolean {
    return datum.closed;
  }

  /** A datum is a view from now on. */
  protected attach(view: DatumView): void {
    view.datum.view = view;
  }

  // --- Calls on a datum ---------------------------------------------------------------------------------------

  /** The program reads a datum. */
  use({ view }: Datum): void {
    if (view === undefined || !this.versionsOf(view.family).hasValue(view.region)) return;
    const { ranks } = this.runtime;
    if (ranks?.isApart === true) {
      const { whole } = view.family;
      if (view !== whole && ranks.owns(whole)) this.copyAlone(view, whole, view.region);
      return;
    }
    this.noteUse(view);
    this.mend(view.family);
    this.complete(view);
  }

  /** Another view has newer elements of a datum. */
  isBehind({ view }: Datum): boolean {
    if (view === undefined) return false;
    const versions = this.versionsOf(view.family);
    return versions.hasValue(view.region) && versions.isBehind(view);
  }

  /** The task that sets a datum on this rank is inserted. */
  wasSet({ view }: Datum): void {
    if (view === undefined || this.runtime.ranks?.isApart !== true) return;
    const { whole } = view.family;
    if (view !== whole) this.copyAlone(whole, view, view.region);
  }

  /** Copies a region on the rank that has both data, and leaves no trace of it: the whole datum has all before and after. */
  private copyAlone(to: DatumView, from: DatumView, region: Region): void {
    const { engine, bind } = this.runtime;
    const { all, more } = takeOverClasses(to.datum.element);
    const { row } = bind(isSame(region, to.region) ? all : more);
    engine.reserveRow(row);
    this.fill(to, from, region, row, row.modes[0] === AccessMode.write);
    this.insertAlone(row, 0);
  }

  /**
   * Brings data that have parts up to date: a play begins with the whole data. Bodies that run meanwhile may write parts.
   */
  gather(data: readonly Datum[]): void {
    const families = new Set<Family>();
    for (const { view } of data) if (view !== undefined) families.add(view.family);
    const written = (): number => {
      return [...families].reduce((sum, { versions }) => sum + versions.writes, 0);
    };
    for (let before = -1; before !== written(); ) {
      before = written();
      for (const family of families) {
        this.mend(family);
        this.complete(family.whole);
      }
    }
  }

  /**
   * A plan that uses a datum is played next, and ends with the whole datum. It overwrites the memory of its parts, also of those that
   * it only reads. Only if it writes the whole datum has that a new version: what was not taken over stays lost otherwise.
   */
  play({ view }: Datum, writes: (datum: Datum) => boolean): void {
    if (view === undefined) return;
    const { whole } = view.family;
    this.beginUse(view);
    this.runtime.ranks?.played(view);
    if (writes(whole.datum)) this.write(whole);
    else if (view !== whole) view.family.versions.leave(view, whole);
  }

  /** The program overwrites a datum. */
  overwrite({ view }: Datum): void {
    if (view === undefined) return;
    if (this.runtime.ranks?.isApart === true && view !== view.family.whole) return;
    this.noteUse(view);
    this.write(view);
  }

  /** What only a part has goes back to the whole datum before the part is closed. Bodies may run meanwhile. */
  giveBack(datum: Datum): void {
    const view = this.viewIn(datum);
    if (view === undefined || view === view.family.whole) return;
    this.mend(view.family);
    this.takeAll(view.family.whole, 0, () => this.missingWithout(view));
  }

  /** Whether the whole datum lacks what ends with a part. */
  mustGiveBack(datum: Datum): boolean {
    const view = this.viewIn(datum);
    return view !== undefined && this.missingWithout(view).length > 0;
  }

  /** What the whole datum must take over before a part ends. If that is the last one in use, take-overs by way of others end, too. */
  private missingWithout(view: DatumView): readonly TakeOver<DatumView>[] {
    const { whole, versions } = view.family;
    if (view === whole) return [];
    return hasUsedParts(view.family, view) ? this.onlyIn(view) : versions.missing(whole);
  }

  private onlyIn(view: DatumView): readonly TakeOver<DatumView>[] {
    const { versions, whole } = view.family;
    const regions = versions.onlyIn(view);
    const isFirst = regions.length > 0 && !versions.hasAny(whole);
    return regions.map((region, i) => {
      return { source: view, region, isFirst: isFirst && i === 0, piece: undefined };
    });
  }

  /** The program closes a datum: a whole one, or a part that has given back. No body runs meanwhile. Returns the parts that end with it. */
  end(datum: Datum): Datum[] {
    const view = this.viewIn(datum);
    if (view === undefined) return [];
    const { family } = view;
    if (view !== family.whole) {
      this.drop(view);
      return this.partsEnd(family);
    }
    const data = Array.from(family.parts.values(), ({ datum }) => datum);
    this.runtime.ranks?.ends(family);
    family.parts.clear();
    return data;
  }

  /** The version of a part ends; the part, too, unless `stays`. */
  private leave(view: DatumView, stays = false, priority = 0): void {
    this.takeAll(view.family.whole, priority, () => this.onlyIn(view));
    if (stays) view.family.versions.drop(view);
    else this.drop(view);
  }

  /** A part ends, and what only it has is gone. */
  private drop(view: DatumView): void {
    const { versions, parts, views } = view.family;
    versions.drop(view);
    parts.delete(keyOf(view.region));
    views.delete(view);
  }

  /**
   * If no part is in use any more, the datum is to be like one that never had parts (ended-parts.ts). It has all that they had. Returns the
   * parts of the runtime's own, which end.
   */
  protected partsEnd(family: Family): Datum[] {
    const { directory, tasks } = this.runtime.engine;
    const { whole, parts } = family;
    if (hasUsedParts(family)) return [];
    const ways = [...parts.values()].filter((part) => !isOpen(part));
    for (const way of ways) this.drop(way);
    family.isEnded = true;
    seal(directory, whole.datum, tasks.next);
    this.runtime.ranks?.partsEnd(family);
    this.forgets(family);
    return ways.map(({ datum }) => datum);
  }

  /** Whether the record of a datum is of no use any more. Then it ends here. */
  protected forgets(family: Family): boolean {
    if (!family.isEnded) return false;
    const { whole, versions, broken, parts } = family;
    const isWhole = parts.size === 0 && versions.isComplete && !versions.isBehind(whole);
    if (!isWhole || this.takings.has(whole)) return false;
    if (this.mendable(family).length > 0 || broken.size > 0) return false;
    this.runtime.ranks?.ends(family);
    whole.datum.view = undefined;
    return true;
  }

  // --- Take-overs that fail -----------------------------------------------------------------------------------

  /** The task in `row`, of the runtime's own, has not written its outputs. */
  lost(row: number, error?: HeadraceError): void {
    const { tasks } = this.runtime.engine;
    const by = tasks.idOf(row);
    const taking = this.takings.end(by);
    if (taking === undefined) return;
    // A source without a value may itself have lost it in this way.
    const cause = error?.code === 'ERR_DATUM_POISONED' ? error.cause : error;
    taking.view.datum.loss = cause === undefined ? undefined : { by, cause };
    if (guards.partMends) this.lose(taking.view, taking.loss);
  }

  private lose(view: DatumView, loss: Loss): void {
    const { broken } = view.family;
    broken.set(view, [...(broken.get(view) ?? []), loss]);
  }

  /** The views that are good again after a task of the runtime. Settles what needs no task. */
  protected mendable({ broken, versions }: Family): readonly DatumView[] {
    if (broken.size === 0) return [];
    const { poison } = this.runtime.engine.directory;
    const mendable: DatumView[] = [];
    for (const [view, losses] of broken) {
      let left = losses.filter(({ region, since }) => !versions.forgo(view, region, since));
      if (left.length === 0 && !this.takings.has(view) && versions.hasAny(view)) {
        const why = poison[view.datum.row];
        if (why === Poison.none || why === Poison.notTaken) {
          mendable.push(view);
          continue;
        }
        // Nothing in its memory is of use.
        const all = { region: view.region, since: versions.writes };
        if (!versions.forgo(view, all.region, all.since)) left = [all];
      }
      if (left.length > 0 || this.takings.has(view)) broken.set(view, left);
      else broken.delete(view);
    }
    return mendable;
  }

  private mend(family: Family): void {
    const { engine, mend } = this.runtime;
    while (this.mendable(family).length > 0) {
      // Bodies may run here, and change what is to be done.
      engine.reserveRow(mend.cls);
      const [view] = this.mendable(family);
      if (view === undefined) return;
      family.broken.delete(view);
      const loss = { region: view.region, since: family.versions.writes };
      mend.insert(view.datum, () => this.lose(view, loss));
    }
  }

  // --- Take-overs ---------------------------------------------------------------------------------------------

  private write(view: DatumView): void {
    const versions = this.versionsOf(view.family);
    const wasComplete = versions.isComplete;
    versions.write(view);
    if (wasComplete) return;
    const { written } = this.runtime.engine.directory;
    for (const { datum, region } of view.family.views.within(view.region))
      if (versions.hasValue(region)) written[datum.row] = 1;
  }

  /** Gives a view the newest version of all of its region. The take-overs have the priority of the task that needs them. */
  protected complete(view: DatumView, priority = 0): void {
    const versions = this.versionsOf(view.family);
    this.takeAll(view, priority, () => versions.missing(view));
  }

  /** Inserts take-overs until there is nothing left to take. */
  private takeAll(
    to: DatumView,
    priority: number,
    wishes: () => readonly TakeOver<DatumView>[],
  ): void {
    const { engine, bind } = this.runtime;
    const versions = this.versionsOf(to.family);
    const { more } = takeOverClasses(to.datum.element);
    for (let left = wishes(); left.length > 0; left = wishes()) {
      let { changes } = versions;
      const { writes } = versions;
      for (const wish of left) {
        // Bodies may run here and in the insertion before, and change what is left to take. All classes need the same room.
        engine.reserveRow(bind(more).row);
        // All other views end with the whole datum, and the record of versions with its era (on-ranks.ts).
        if (this.isGone(to.datum) || this.versionsOf(to.family) !== versions) return;
        const isOld = versions.changes !== changes || versions.writes !== writes;
        if (isOld || !this.take(to, wish, priority)) break;
        // That of the take-over itself.
        changes++;
      }
    }
  }

  /** Inserts one task on the way to what a view shall take over; true if it has taken it over then. */
  private take(to: DatumView, wish: TakeOver<DatumView>, priority: number): boolean {
    const { source, region, isFirst } = wish;
    const { all, first, more } = takeOverClasses(to.datum.element);
    const isAll = isSame(region, to.region);
    if (!isAll && !isSame(region, source.region)) {
      this.insert(this.viewOf(to.family, region), wish, all, priority);
      return false;
    }
    this.insert(to, wish, isAll ? all : isFirst ? first : more, priority);
    if (!source.isOwn) return true;
    this.leave(source, isOpen(source), priority);
    if (!isOpen(source)) this.runtime.closeDatum(source.datum);
    return false;
  }

  private insert(
    to: DatumView,
    { source: from, region, piece }: TakeOver<DatumView>,
    cls: TaskClass,
    priority: number,
  ): void {
    const { engine, bind } = this.runtime;
    const { row } = bind(cls);
    this.fill(to, from, region, row, cls === takeOverClasses(to.datum.element).all);
    const versions = this.versionsOf(to.family);
    versions.take(to, region, piece);
    this.put(cls, row, priority, [to, from], region);
    if (!versions.hasValue(to.region)) engine.directory.written[to.datum.row] = 0;
  }

  /** Puts a take-over into the record. */
  private fill(
    to: DatumView,
    from: DatumView,
    region: Region,
    row: TaskClassRow,
    isAll: boolean,
  ): void {
    row.takesOver = true;
    row.beside = isAll ? BESIDE_SOURCE : BESIDE_VIEW;
    this.flows[0] = to.datum.row;
    this.flows[1] = from.datum.row;
    this.params.set(takeOverParams(to.datum.element, region, to.region, from.region));
  }

  /** Inserts the take-over that is in the record. */
  protected put(
    cls: TaskClass,
    row: TaskClassRow,
    priority: number,
    [to, from]: readonly [DatumView, DatumView],
    region: Region,
  ): void {
    const { engine, ranks } = this.runtime;
    if (ranks !== undefined) {
      const { flows, params } = this;
      ranks.insert({ cls: row, flows, params, priority }, [to, from], extentOf(to, cls));
      return;
    }
    const { writes } = this.versionsOf(to.family);
    this.takings.begin(engine.tasks.next, { view: to, loss: { region, since: writes } });
    this.insertAlone(row, priority);
  }

  private insertAlone(cls: TaskClassRow, priority: number): void {
    const { engine } = this.runtime;
    const { flows, params } = this;
    const run = engine.runs[INTERNAL_RUN] as RunState;
    engine.insert({
      ...{ cls, run, flows, params, priority },
      device: ANY_DEVICE,
      after: undefined,
    });
    engine.wake();
  }
}
