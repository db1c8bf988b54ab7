// Parts on several ranks. All ranks insert the same tasks in the same order, so all infer the same take-overs. A take-over is a
// task of the program, with a rank: the planned transfers bring it what it needs and take its result on, as for all tasks.
//
// A failed run ends an era (ranks/eras.ts), and the ranks have inserted different numbers of its tasks. So all ranks forget then
// which part has what: the whole data have all elements. Where that is not so on the rank of a whole datum, the datum has no value.
// Invariants:
// - the record of the versions is a function of the tasks and calls of the era, which all ranks make alike. Calls before the first
//   run of an era leave no trace in it: some ranks may have made them in the era before;
// - the name of a part follows from that of its datum and its place in it. So ranks may make parts at any time, and in any order.
import { guards } from '../../../devices/guards.js';
import type { Column, DatumId, TaskId } from '../../../devices/handles.js';
import { ANY_DEVICE, type TaskClassRow } from '../../../stages/task-table.js';
import type { Engine } from '../../engine/engine.js';
import { INTERNAL_RUN, type RunState } from '../../engine/run-state.js';
import type { ProgramInsertion } from '../../engine/task-insertion.js';
import { markUnwritten } from '../../failure/poison.js';
import { insertOnRanks } from '../../ranks/insertion.js';
import type { Ranks } from '../../ranks/ranks.js';
import type { Datum } from '../datum.js';
import type { PartRefusal } from './mistakes.js';
import type { Region } from './region.js';
import { Versions } from './versions.js';
import type { View } from './view.js';

type DatumView = View<Datum>;
type Family = DatumView['family'];

type Taking = Pick<ProgramInsertion, 'cls' | 'flows' | 'params' | 'priority'>;
/** The views to and from which a region is copied. */
type Ends = readonly [DatumView, DatumView];

/** What a take-over is to its view. */
export interface Extent {
  /** The region is all of it. */
  readonly isAll: boolean;
  /** It has nothing that must be kept. */
  readonly isFirst: boolean;
}

/** No task needs what is taken over. */
const NO_RANK = -1;

export class PartsOnRanks {
  /** The rank that needs what is taken over. */
  private needing = NO_RANK;
  /** The run to which take-overs belong. */
  private run: RunState;
  private readonly engine: Engine;
  private readonly peers: Ranks;
  private readonly families: Set<Family> = new Set();
  /** The ranks that have, or will have, what a view has. */
  private places: WeakMap<DatumView, Set<number>> = new WeakMap();

  constructor(engine: Engine, peers: Ranks) {
    this.engine = engine;
    this.peers = peers;
    this.run = engine.runs[INTERNAL_RUN] as RunState;
  }

  /** No run has begun in this era: other ranks may make the same call in another one. */
  get isApart(): boolean {
    return !this.peers.runs.isUnderWay && guards.partsApart;
  }

  /** A datum gets parts. True: as far as all ranks know, it has a value. */
  begins(family: Family, { row }: Datum): boolean {
    this.families.add(family);
    const { directory, tasks } = this.engine;
    const { runs, rank } = this.peers;
    if (!runs.missesWrites) return directory.written[row] !== 0;
    // This rank may not know the task that has written it, or others may not know that no task has.
    if (directory.written[row] === 0 && this.peers.ownerOf(row) === rank)
      markUnwritten(directory, row, ((tasks.next - 1) | 0) as TaskId);
    directory.written[row] = 1;
    return true;
  }

  ends(family: Family): void {
    this.families.delete(family);
  }

  /** The first part comes into use. Before that a rank may not have had a record, because it has made its parts later. */
  partsBegin({ whole }: Family): void {
    if (guards.partsBegin) this.places.delete(whole);
  }

  /** No part is in use. Ranks that have made parts which no task has used go on as those without a record do. */
  partsEnd(family: Family): void {
    const { whole, versions } = family;
    this.places.delete(whole);
    if (versions.isComplete) family.versions = new Versions<DatumView>(whole, true);
  }

  /** Row `d` is that part of `whole`, or what two views of it have in common. */
  add(d: DatumId, whole: Datum, { row, column, rows, columns }: Region): void {
    this.peers.datumCalls.addPart(d, whole.row, [row, column, rows, columns]);
  }

  /** The rank on which a task will run. */
  rankOf(cls: TaskClassRow, flows: Column<Int32Array, DatumId>): number {
    return this.peers.plan.rankOf(cls, flows);
  }

  /** The rank of a view's datum. */
  homeOf({ datum }: DatumView): number {
    return this.peers.ownerOf(datum.row);
  }

  /** The reason why a run cannot have tasks that use parts now. */
  refusal(run: RunState): PartRefusal | undefined {
    const { engine, peers } = this;
    if (engine.inBody || run.sealed)
      return {
        why: `a body on rank ${peers.rank} alone inserts the task`,
        remedy: 'give the datum to the task of the body, and spawn the task on a part of it',
      };
    if (!peers.runs.isPruned(run)) return undefined;
    return {
      why: 'the run is pruned, and ranks that leave tasks out do not know which part is newest',
      remedy: 'run the program without `pruned`',
    };
  }

  /** A task of a run needs the take-overs that follow, on rank `needing`. */
  prepares(run: RunState, needing: number): void {
    this.run = run;
    this.needing = needing;
  }

  prepared(): void {
    this.run = this.engine.runs[INTERNAL_RUN] as RunState;
    this.needing = NO_RANK;
  }

  /** Views in an order that is the same on all ranks. Each has its own, because it may have made parts that others have not made. */
  inOrder(views: readonly DatumView[]): readonly DatumView[] {
    const { gid } = this.peers.plan.data;
    if (!guards.partsInOrder) return views;
    return views.toSorted((a, b) => gid[a.datum.row] - gid[b.datum.row]);
  }

  /** The rank that has written the newest version of a view's datum. */
  protected producerOf({ datum }: DatumView): number {
    return this.peers.plan.data.producer[datum.row];
  }

  /** A take-over comes next; returns the rank on which it moves least. */
  takes(ends: Ends, extent: Extent): number {
    const rank = this.placeOf(ends, extent);
    for (const [i, view] of ends.entries()) this.comes(view, rank, i === 0);
    return rank;
  }

  private placeOf([to, from]: Ends, { isAll, isFirst }: Extent): number {
    const source = this.producerOf(from);
    if (isAll) return source;
    const { needing } = this;
    if (needing === NO_RANK) return this.producerOf(to);
    const isThere = isFirst || source === needing || this.places.get(to)?.has(needing) === true;
    return isThere ? needing : this.producerOf(to);
  }

  /** A task on `rank` reads a view, or writes it. */
  comes(view: DatumView, rank: number, writes: boolean): void {
    const known = this.places.get(view);
    if (known === undefined || writes) this.places.set(view, new Set([rank]));
    else known.add(rank);
  }

  /** Inserts a take-over on the rank on which it moves least. */
  insert(insertion: Taking, ends: Ends, extent: Extent): void {
    const { engine, peers, run } = this;
    const rank = this.takes(ends, extent);
    const whole = { ...insertion, run, device: ANY_DEVICE, after: undefined, parent: undefined };
    peers.datumCalls.within(run, () => void insertOnRanks(engine, peers, whole, rank));
    engine.wake();
  }

  /** Whether this rank has the whole datum in an era without a run. */
  owns(view: DatumView): boolean {
    return this.homeOf(view) === this.peers.rank;
  }

  /** A play leaves a view somewhere. */
  played(view: DatumView): void {
    this.places.delete(view);
  }

  /** A failed run is settled. */
  beginEra(): void {
    if (!guards.partEras) return;
    this.places = new WeakMap();
    for (const family of this.families) this.reset(family);
  }

  private reset(family: Family): void {
    const { whole, parts, versions } = family;
    const { directory, tasks } = this.engine;
    const hasAll = versions.isComplete && !versions.isBehind(whole);
    if (!hasAll && this.owns(whole))
      markUnwritten(directory, whole.datum.row, ((tasks.next - 1) | 0) as TaskId);
    family.versions = new Versions<DatumView>(whole, true);
    for (const { datum } of [whole, ...parts.values()]) directory.written[datum.row] = 1;
    if (!guards.partUses) return;
    for (const view of parts.values()) {
      view.isOwn = true;
      view.isCalled = false;
    }
  }
}
