// Parts in the tasks that bodies spawn. A family has the data of its parent to itself (scheduler/engine/joins.ts), in an order of its
// own, and tasks behind the parent may have been inserted already. So it has a record of versions of its own, too: it begins and ends with
// the parent's whole data, as an iteration of a plan does, and a part that a body makes is a datum of this family alone.
//
// Invariants:
// - when the body ends, take-overs bring the data that its task writes up to date, before the task can be over;
// - no take-over of a family uses data that the program sees, but those of the parent.
import { HeadraceError } from '../../../devices/errors.js';
import { guards } from '../../../devices/guards.js';
import type { DatumId, TaskId } from '../../../devices/handles.js';
import { ANY_DEVICE, type TaskClassRow } from '../../../stages/task-table.js';
import type { Engine } from '../../engine/engine.js';
import type { RunState } from '../../engine/run-state.js';
import type { ProgramInsertion } from '../../engine/task-insertion.js';
import type { BoundClass } from '../bound-class.js';
import type { Datum } from '../datum.js';
import type { TaskClass } from '../task-class.js';
import { refusedPart } from './mistakes.js';
import { Parts } from './parts.js';
import { contains, type Region } from './region.js';
import type { View } from './view.js';

type DatumView = View<Datum>;
type Flows = ProgramInsertion['flows'];

/** What the parts of bodies use of the runtime. */
interface BodyPartsRuntime {
  readonly engine: Engine;
  readonly bind: (cls: TaskClass) => BoundClass;
  /** A datum for a part that is closed with task `parent`. */
  readonly makeDatum: (parent: TaskId, whole: Datum, region: Region) => Datum;
  readonly closeDatum: (datum: Datum) => void;
  /** On several ranks: a task on these data needs room for transfers. */
  readonly noteSize: (cls: TaskClassRow, flows: Flows) => void;
}

/** The parts that one body makes. */
class PartsOfBody extends Parts {
  private readonly task: TaskId;
  private readonly run: RunState;
  private readonly noteSize: BodyPartsRuntime['noteSize'];
  private readonly views: Map<DatumId, DatumView> = new Map();

  constructor({ engine, bind, makeDatum, closeDatum, noteSize }: BodyPartsRuntime, task: TaskId) {
    super({
      ...{ engine, bind, closeDatum },
      makeDatum: (whole, region) => makeDatum(task, whole, region),
      endPart: closeDatum,
      mend: { cls: undefined as never, insert: () => {} },
      ranks: undefined,
    });
    this.task = task;
    this.run = engine.runOf(task & engine.tasks.mask);
    this.noteSize = noteSize;
  }

  protected override viewIn(datum: Datum): DatumView | undefined {
    const view = this.views.get(datum.row);
    // The body may have closed a datum, and another one may have its row.
    return view?.datum === datum ? view : undefined;
  }

  /** The data of the parent stay until it is over. */
  protected override isGone(datum: Datum): boolean {
    return datum.closed && !this.runtime.engine.joins.uses(this.task, datum.row);
  }

  protected override attach(view: DatumView): void {
    this.views.set(view.datum.row, view);
    const { datum: whole } = view.family.whole;
    const { task } = this;
    if (view.datum !== whole) view.datum.ofBody = { task, whole, region: view.region };
  }

  /** The record ends with the task, and so do the parts of the runtime's own. */
  protected override partsEnd(): Datum[] {
    return [];
  }

  /** A family that loses a take-over has failed, and so have the data of its parent. */
  protected override mendable(): readonly DatumView[] {
    return [];
  }

  /** Whether a task uses data of this record. */
  override concerns({ modes }: TaskClassRow, flows: Flows): boolean {
    return modes.some((_, i) => this.viewAt(flows[i]) !== undefined);
  }

  /** The datum of the parent, or temporary, in place of a part of it. */
  wholeOf(d: DatumId): DatumId {
    return this.viewAt(d)?.family.whole.datum.row ?? d;
  }

  /** The body has ended. */
  endBody(): void {
    if (!guards.bodyPartsReturn) return;
    const families = new Set(Array.from(this.views.values(), ({ family }) => family));
    const { joins } = this.runtime.engine;
    for (const { whole } of families)
      if (joins.uses(this.task, whole.datum.row)) this.complete(whole);
  }

  protected override put(_: TaskClass, row: TaskClassRow, priority: number): void {
    const { run, task, flows, params } = this;
    const { engine } = this.runtime;
    if (run.error !== undefined) return;
    const insertion = { cls: row, run, flows, params, priority, device: ANY_DEVICE };
    this.noteSize(row, flows);
    engine.insert({ ...insertion, after: undefined, parent: task });
    engine.wake();
  }
}

/** The parts of all bodies. */
export class BodyParts {
  private readonly runtime: BodyPartsRuntime;
  private readonly byTask: Map<TaskId, PartsOfBody> = new Map();

  constructor(runtime: BodyPartsRuntime) {
    this.runtime = runtime;
  }

  /**
   * The task of the body that calls, if the body has the datum to itself: its task uses it, or the body has made it.
   * @throws HeadraceError `ERR_PART` if the datum is of use to the tasks of one body only, and another one calls, or none does
   */
  callerFor(datum: Datum): TaskId | undefined {
    const { bodies, joins } = this.runtime.engine;
    const { madeBy, name, closed } = datum;
    // A function that has returned no promise so far may be asynchronous after all. Then the caller is not known.
    const caller = bodies.caller?.task;
    if (caller !== undefined && joins.uses(caller, datum.row)) return caller;
    if (madeBy === undefined || closed) return undefined;
    if ((caller ?? madeBy) === madeBy && joins.isOpen(madeBy)) return madeBy;
    throw new HeadraceError(
      'ERR_PART',
      `a part of datum '${name}', which a body has made, is taken outside of this body and of the bodies that get the datum`,
      {
        datum: name,
        remedy: 'take it in one of these bodies, and declare those that await as async functions',
      },
    );
  }

  /** The record of a datum that a body has made; undefined if others have it, or the body has ended and needs no record any more. */
  recordOf({ madeBy }: Datum): Parts | undefined {
    if (madeBy === undefined || !this.runtime.engine.joins.isOpen(madeBy)) return undefined;
    return this.byTask.get(madeBy);
  }

  /** A part of a datum that the body of `task` has to itself. @throws HeadraceError `ERR_TASK_TOO_LARGE` */
  part(task: TaskId, of: Datum, region: Region): Datum {
    return this.openOf(task).part(of, region);
  }

  private openOf(task: TaskId): PartsOfBody {
    const known = this.byTask.get(task);
    if (known !== undefined) return known;
    const { bodies, joins } = this.runtime.engine;
    bodies.beforeEnd ??= (id) => this.byTask.get(id)?.endBody();
    joins.whenOver(task, () => this.byTask.delete(task));
    const made = new PartsOfBody(this.runtime, task);
    this.byTask.set(task, made);
    return made;
  }

  /**
   * The record of the parts that a task which `parent` spawns uses; undefined if it uses none. Parts of the program in data of the
   * parent become parts of the body.
   * @throws HeadraceError `ERR_PART` for a part that the body cannot give to others
   */
  usedBy(parent: TaskId, { row }: BoundClass, flows: Flows): PartsOfBody | undefined {
    const { directory, joins } = this.runtime.engine;
    for (let i = 0; i < row.modes.length; i++) {
      const datum = directory.info[flows[i]] as Datum;
      if (datum.view === undefined && datum.ofBody === undefined) continue;
      if (datum.ofBody?.task === parent || joins.uses(parent, datum.row)) continue;
      const own = datum.view && this.inParent(parent, datum.view);
      if (own !== undefined) {
        flows[i] = own.row;
        continue;
      }
      throw refusedPart(
        `task class '${row.name}'`,
        datum,
        'a body spawns the task, and what is newest in a datum that its own task does not use is not known to it',
        'give the datum to the task of the body, and take the part there: data.name.part(...)',
      );
    }
    const own = this.byTask.get(parent);
    return own?.concerns(row, flows) === true ? own : undefined;
  }

  /** The part of a datum of the parent that has the elements of a part of the program. */
  private inParent(parent: TaskId, { family, region }: DatumView): Datum | undefined {
    const { tasks, directory, x } = this.runtime.engine;
    const row = parent & tasks.mask;
    const first = tasks.flowStart[row];
    const { modes } = x.classes[tasks.classOf[row]];
    for (let i = 0; i < modes.length; i++) {
      const datum = directory.info[tasks.flowDatum[first + i]] as Datum;
      const { view } = datum;
      if (view?.family !== family || !contains(view.region, region)) continue;
      const [row, column] = [region.row - view.region.row, region.column - view.region.column];
      return this.part(parent, datum, { ...region, row, column });
    }
    return undefined;
  }

  /** The parts in a task that the caller inserts in program order are those of the program. @throws HeadraceError `ERR_PART` */
  toProgram(
    { modes, name }: TaskClassRow,
    flows: Flows,
    part: (of: Datum, region: Region) => Datum,
  ): void {
    const { directory } = this.runtime.engine;
    for (let i = 0; i < modes.length; i++) {
      const datum = directory.info[flows[i]] as Datum;
      if (datum.ofBody === undefined) continue;
      const { whole, region } = datum.ofBody;
      if (whole.madeBy !== undefined)
        throw refusedPart(
          `task class '${name}'`,
          datum,
          'only tasks that bodies spawn use temporary data, and parts that bodies have made',
          'spawn the task',
        );
      flows[i] = part(whole, region).row;
    }
  }
}
