// The engine over the planning backend. It keeps the insertions, and its data are those of the real engine: a datum has
// the same row in both directories.
import type { Backend } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import {
  type Column,
  type DatumId,
  HOST,
  NO_TASK,
  type SpaceId,
  type TaskId,
} from '../../devices/handles.js';
import { CopyEvent, CopyState } from '../../devices/memory/coherency.js';
import { type DatumInfo, NO_BLOCK } from '../../devices/memory/directory.js';
import { dropClean, makeRoom } from '../../devices/memory/eviction.js';
import { PlanningBackend } from '../../devices/planning/backend.js';
import { isCommand, type TaskClassRow, TaskStage } from '../../stages/task-table.js';
import { AccessMode, TransferReason } from '../../trace/format.js';
import { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import type { TaskInsertion } from '../engine/task-insertion.js';
import { Insertions } from './insertions.js';
import type { RankShare } from './rank-share.js';
import { type DeviceOf, WholeFuture } from './whole-future.js';

/** Limit for tasks that bodies insert; a plan has no bodies. */
const NO_OVERFLOW = 0;
const NO_DATUM_INFO: DatumInfo = { name: '' };
const NONE: readonly number[] = [];

interface PlanningOptions {
  readonly window: number;
  readonly runAhead: number;
}

export class PlanningEngine extends Engine {
  readonly planning: PlanningBackend;
  readonly insertions: Insertions;
  readonly plannedRun: RunState;
  private readonly real: Engine;
  /** The task of insertion 0 in the present pass over the insertions. Those of the others have the ids after it. */
  private firstTask: TaskId = 1 as TaskId;
  /** The insertions are inserted again. */
  private repeats = false;
  /** Data that have a copy from the begin. */
  readonly mirrored: Set<DatumId> = new Set();

  /** Set if it plans the part of one of several ranks. */
  readonly share: RankShare | undefined;

  /** `like`: plans the insertions of another planning engine again; `share`: only those of this rank. */
  constructor(
    real: Engine,
    realBackend: Backend,
    options: PlanningOptions,
    like?: PlanningEngine,
    share?: RankShare,
  ) {
    const planning = new PlanningBackend(realBackend, options.window);
    super(planning, {
      window: options.window,
      runAhead: options.runAhead,
      overflow: NO_OVERFLOW,
      watchdog: 0,
      checked: false,
    });
    this.real = real;
    this.planning = planning;
    // One order decides which data move; the kernels are dealt to the streams in the end (planner.ts).
    this.pressure.streams = 1;
    planning.source = {
      insertionOf: (task) => (task - this.firstTask) | 0,
      datumOf: (transfer) => this.transfers.datum[transfer],
      flowDatum: (task, i) =>
        this.tasks.flowDatum[this.tasks.flowStart[task & this.tasks.mask] + i],
      message: (insertion) => this.share?.commands.get(insertion),
    };
    this.plannedRun = this.openRun();
    this.share = share ?? like?.share;
    this.insertions = this.share?.insertions ?? like?.insertions ?? new Insertions();
    if (like !== undefined) {
      planning.adoptKernels(like.planning);
      this.x.classes.push(...like.x.classes);
      if (this.share === undefined) for (const d of like.mirrored) this.mirror(d);
      else this.mirrorShare(like, this.share);
    }
    planning.begin();
  }

  /** Makes a datum of the real engine known: its size, its name, and whether it has a value, which then lies on the host. */
  mirror(d: DatumId): void {
    const from = this.real.directory;
    const to = this.directory;
    while (to.length <= d) this.addDatum(0, NO_DATUM_INFO);
    if (to.info[d] === from.info[d]) return;
    this.know(d);
    if (from.written[d] !== 1) return;
    // A part has no value when an iteration begins: the whole datum has it (planned-parts.ts).
    if ((from.info[d] as { readonly whole?: unknown }).whole !== undefined) to.written[d] = 1;
    else this.hasValue(d);
  }

  private know(d: DatumId): void {
    const from = this.real.directory;
    const to = this.directory;
    this.mirrored.add(d);
    to.info[d] = from.info[d];
    to.bytes[d] = from.bytes[d];
    to.largest = Math.max(to.largest, from.bytes[d]);
    to.home[d] = from.home[d];
  }

  /** The datum has a value, which lies on the host. */
  private hasValue(d: DatumId): void {
    const to = this.directory;
    to.written[d] = 1;
    this.blockOnHost(d);
    to.apply(d, HOST, CopyEvent.write);
    this.spaces[HOST].settle(d);
  }

  /** On several ranks a datum has a value here if this rank needs it at the begin: it is brought before the first iteration. */
  private mirrorShare(like: PlanningEngine, { insertions, needs }: RankShare): void {
    const used = new Set<DatumId>();
    for (let n = 0; n < insertions.count; n++)
      for (const i of insertions.classOf(n).modes.keys()) used.add(insertions.datum(n, i));
    const { directory } = this;
    for (const d of like.mirrored) {
      if (!used.has(d)) continue;
      while (directory.length <= d) this.addDatum(0, NO_DATUM_INFO);
      this.know(d);
      if (needs.has(d)) this.hasValue(d);
    }
  }

  /**
   * Keeps an insertion of a program on several ranks; `before`: the tasks before it, by number. Returns its number. Nothing is
   * planned before all are known (rank-share.ts).
   */
  keep(insertion: TaskInsertion, before: readonly number[]): number {
    refuseBody(insertion);
    refuseScript(insertion);
    const { cls, flows } = insertion;
    for (let i = 0; i < cls.modes.length; i++)
      if (cls.modes[i] !== AccessMode.read) this.directory.written[flows[i]] = 1;
    return this.insertions.add(insertion, before);
  }

  protected override get mayCommute(): boolean {
    return false;
  }

  /** Its kernels take as long as they took on the real machine, if that is known. */
  override addClass(cls: TaskClassRow): void {
    this.x.classes.push(cls);
    const { planning, real } = this;
    cls.kernels.forEach((kernel, s) => {
      if (kernel < 0) return;
      const seconds = real.kernelTimes.mean(cls, planning.realKernel(kernel), s as SpaceId);
      if (seconds !== undefined) planning.setSeconds(kernel, seconds);
    });
  }

  override insert(insertion: TaskInsertion): TaskId {
    refuseBody(insertion);
    if (!this.repeats) this.add(insertion);
    return super.insert(insertion);
  }

  private add(insertion: TaskInsertion): void {
    const { after } = insertion;
    const { firstTask, tasks } = this;
    const before = after === undefined ? NONE : after.map((id) => (id - firstTask) | 0);
    if (this.insertions.add(insertion, before) !== ((tasks.next - firstTask) | 0))
      throw new Error('an insertion of a plan has no task');
  }

  /** Inserts all tasks again and keeps the commands in a new list. */
  repeat(): void {
    this.repeats = true;
    this.planning.begin();
    const { insertions, plannedRun: run } = this;
    const firstTask = this.tasks.next;
    this.firstTask = firstTask;
    const record = {
      flows: new Int32Array(this.tasks.maxArguments) as Column<Int32Array, DatumId>,
      params: new Float64Array(this.tasks.maxArguments),
    } as { -readonly [K in keyof TaskInsertion]: TaskInsertion[K] };
    for (let n = 0; n < insertions.count; n++) {
      insertions.read(n, run, record);
      record.after = insertions.after.get(n)?.map((b) => ((firstTask + b) | 0) as TaskId);
      if (!this.tasks.hasRoom(record.cls.modes.length, record.cls.paramNames.length))
        this.reserveRow(record.cls);
      const id = this.insert(record);
      // On several ranks all commands are issued in program order (messages.ts).
      if (this.share !== undefined && guards.planRankOrder) this.untilIssued(id);
    }
    this.drain();
  }

  private untilIssued(id: TaskId): void {
    const { tasks, plannedRun } = this;
    const row = id & tasks.mask;
    while (tasks.contains(id) && !isCommand(tasks.execution[row])) {
      if (plannedRun.error !== undefined) throw plannedRun.error;
      this.step();
    }
  }

  /** In the next pass over the insertions eviction knows them all. `deviceOf`: device of each. */
  foresee(deviceOf: DeviceOf): void {
    const { directory, insertions, tasks, x } = this;
    const of = { data: directory.bytes.length, spaces: directory.spaces };
    x.ahead.know(
      new WholeFuture(insertions, deviceOf, of, (n) => {
        const id = ((this.firstTask + n) | 0) as TaskId;
        if (((id - tasks.next) | 0) >= 0) return false;
        if (!tasks.contains(id)) return true;
        const row = id & tasks.mask;
        return isCommand(tasks.execution[row]) || tasks.stage[row] > TaskStage.exec;
      }),
    );
  }

  /** Lets virtual time run until all tasks and copies are over. @throws the failure of the planned run */
  drain(): void {
    while (this.plannedRun.live > 0 || this.transfers.live > 0) {
      if (!this.pump()) this.idle.block();
      if (this.plannedRun.error !== undefined) throw this.plannedRun.error;
    }
  }

  /** Devices that have evicted so far are short of memory from now on. Returns them. */
  staysShort(): ReadonlySet<SpaceId> {
    return this.pressure.stay();
  }

  /** Writes all values back to the host and gives up the memory of the GPUs. */
  goHome(): void {
    const dir = this.directory;
    for (const d of this.mirrored) {
      const owner = dir.owner(d);
      if (owner <= HOST) continue;
      this.blockOnHost(d);
      while (!this.transfers.canIssue(HOST, owner)) this.step();
      this.transfers.issue(d, HOST, owner, TransferReason.readBack, NO_TASK, this.x.now);
    }
    while (this.transfers.live > 0) this.step();
    for (let s = (HOST + 1) as SpaceId; s < this.spaces.length; s++) {
      for (const d of this.mirrored)
        if (dir.state[d * dir.spaces + s] === CopyState.shared)
          dropClean(this.spaces[s], this.x.counters, d);
    }
  }

  private step(): void {
    this.backend.publish();
    if (!this.pump()) this.idle.block();
  }

  private blockOnHost(d: DatumId): void {
    const dir = this.directory;
    const c = d * dir.spaces;
    if (dir.block[c] !== NO_BLOCK) return;
    dir.block[c] = makeRoom(this.spaces[HOST], this.x.counters, dir.bytes[d]);
  }
}

/** Bodies on the engine's thread: a play does not wait for that thread. */
function refuseBody({ cls, device }: TaskInsertion): void {
  const isScript = cls.kernels.every((k) => k < 0) || cls.kernels[device] < 0;
  if (cls.body === undefined || !isScript) return;
  const { name } = cls;
  throw new HeadraceError(
    'ERR_PLAN_BODY',
    `a plan cannot contain task class '${name}': its body runs on the JavaScript thread, and plans are played without that thread`,
    {
      task: name,
      remedy:
        'give the class a kernel, or a `module` in a runtime with script workers, or run its tasks between plays',
    },
  );
}

/** On several ranks. */
function refuseScript({ cls }: TaskInsertion): void {
  if (cls.onScriptWorkers !== true) return;
  const { name } = cls;
  throw new HeadraceError(
    'ERR_PLAN_BODY',
    `a plan of several ranks cannot contain task class '${name}': its body runs on script workers`,
    { task: name, remedy: 'give the class a kernel, or run its tasks between plays' },
  );
}
