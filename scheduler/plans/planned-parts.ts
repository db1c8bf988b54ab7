// Parts of data in a plan. Every iteration must find what the one before has left: it begins with the whole datum and nothing
// in its parts, and ends with it. So a plan has a record of versions of its own, and its last tasks bring the whole data up to
// date. `Plan.run` does the same for the tasks before it.
// Invariant: at the begin of an iteration no part has a value that the plan may use (planning-engine.ts).
import { HeadraceError } from '../../devices/errors.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import type { Datum } from '../program/datum.js';
import { PartsOnRanks } from '../program/parts/on-ranks.js';
import { extentOf, Parts, type PartsRuntime } from '../program/parts/parts.js';
import { PlanParts } from '../program/parts/plan-parts.js';
import type { Region } from '../program/parts/region.js';
import { Versions } from '../program/parts/versions.js';
import type { View } from '../program/parts/view.js';
import type { Reductions } from '../program/reductions.js';
import type { TaskClass } from '../program/task-class.js';
import type { Ranks } from '../ranks/ranks.js';

type DatumView = View<Datum>;
type Family = DatumView['family'];

/** The graph of the plan, as its parts use it. */
interface TakingGraph {
  insert(
    cls: TaskClass,
    args: object,
    options: { readonly priority: number; readonly rank?: number },
  ): unknown;
}

/** Parts in a plan on several ranks: what a task of the plan has written is where that task runs. */
class PlannedOnRanks extends PartsOnRanks {
  private readonly writers: Map<DatumView, number> = new Map();

  protected override producerOf(view: DatumView): number {
    return this.writers.get(view) ?? super.producerOf(view);
  }

  override comes(view: DatumView, rank: number, writes: boolean): void {
    super.comes(view, rank, writes);
    if (writes) this.writers.set(view, rank);
  }
}

export class PlannedParts extends Parts {
  /** Set once the graph is made. */
  graph: TakingGraph | undefined;
  /** Those of the graph. */
  reductions: Pick<Reductions, 'aside'> | undefined;
  /** The parts that the plan has open. */
  readonly held: PlanParts;
  private readonly real: Parts;
  private readonly records: Map<Family, Versions<DatumView>> = new Map();
  private isTaking = false;

  constructor(
    real: Parts,
    runtime: Pick<PartsRuntime, 'engine' | 'bind'>,
    peers: Ranks | undefined,
  ) {
    const none = (): never => {
      throw new Error('a plan makes and closes no parts');
    };
    const mend = { cls: undefined as never, insert: none };
    const ranks = peers === undefined ? undefined : new PlannedOnRanks(runtime.engine, peers);
    super({ ...runtime, makeDatum: none, closeDatum: none, endPart: none, mend, ranks });
    this.real = real;
    this.held = new PlanParts(real);
    this.isUsed = true;
  }

  /** Calls a program. The parts that it makes before it returns are those of the plan. */
  madeIn<T>(program: () => T): T {
    return this.real.madeFor(this.held, program);
  }

  /** A take-over uses data that have parts, and needs nothing else before it. */
  override concerns(row: TaskClassRow, flows: Int32Array): boolean {
    return !this.isTaking && super.concerns(row, flows as never);
  }

  /** Only the program's own record tells whether it is of no use any more. */
  protected override forgets(): boolean {
    return false;
  }

  /** @internal The view stays: every iteration uses it. */
  override viewOf(family: Family, region: Region): DatumView {
    const view = this.real.viewOf(family, region);
    this.noteUse(view);
    return view;
  }

  protected override noteUse(view: DatumView): void {
    this.held.hold(view);
    this.beginUse(view);
  }

  /** @throws HeadraceError `ERR_PART` if the datum has no value before the plan is made */
  protected override versionsOf(family: Family): Versions<DatumView> {
    const known = this.records.get(family);
    if (known !== undefined) return known;
    const { whole } = family;
    if (!family.versions.isComplete)
      throw new HeadraceError(
        'ERR_PART',
        `a plan uses parts of datum '${whole.datum.name}', which has no value before the plan is made`,
        { datum: whole.datum.name, remedy: 'make the datum from an array, or set it first' },
      );
    const made = new Versions<DatumView>(whole, true);
    this.records.set(family, made);
    return made;
  }

  /** Its take-overs are played: if one fails, the play does. */
  protected override mendable(): readonly DatumView[] {
    return [];
  }

  /** The program of the plan has ended: the whole data get what their parts have. */
  endAll(): void {
    const wholes = Array.from(this.records.keys(), ({ whole }) => whole);
    for (const whole of this.runtime.ranks?.inOrder(wholes) ?? wholes) this.complete(whole);
  }

  protected override put(
    cls: TaskClass,
    _: TaskClassRow,
    priority: number,
    ends: readonly [DatumView, DatumView],
  ): void {
    const data = { to: ends[0].datum, from: ends[1].datum };
    const { ranks } = this.runtime;
    const rank = ranks === undefined ? {} : { rank: ranks.takes(ends, extentOf(ends[0], cls)) };
    const params = Object.fromEntries(cls.paramNames.map((name, i) => [name, this.params[i]]));
    this.isTaking = true;
    try {
      const options = { priority, ...rank };
      this.reductions?.aside(() => this.graph?.insert(cls, { ...data, ...params }, options));
    } finally {
      this.isTaking = false;
    }
  }
}
