// The state that the stages share, without an engine: tests play the engine. Memory is counted in units of the zone's
// alignment, so that sizes in tests are exact.

import { Status } from '../../devices/backend.js';
import type { HeadraceError } from '../../devices/errors.js';
import { type DatumId, FIRST_GPU, HOST, type SpaceId } from '../../devices/handles.js';
import { AllSpaces } from '../../devices/memory/all-spaces.js';
import { CopyEvent } from '../../devices/memory/coherency.js';
import { Directory, NO_BLOCK } from '../../devices/memory/directory.js';
import { MemorySpace } from '../../devices/memory/space.js';
import { Transfers } from '../../devices/memory/transfers.js';
import { ALIGNMENT } from '../../devices/memory/zone.js';
import { Submission } from '../../devices/submission.js';
import { alloc } from '../../stages/alloc.js';
import { StageContext, type StageHooks } from '../../stages/context.js';
import { Outcome, WaitReason } from '../../stages/stage.js';
import { AccessMode, Execution, TaskStage, TaskTable } from '../../stages/task-table.js';
import { queueId, spaceId } from './handles.js';
import { ManualBackend } from './manual-backend.js';

/** Bytes of a unit. */
export const UNIT: number = ALIGNMENT;
/** Space of the first GPU. */
export const GPU: SpaceId = FIRST_GPU;

/** The task in `row` is over: its pins return. */
export function releasePins({ tasks, spaces, classes }: StageContext, row: number): void {
  const first = tasks.flowStart[row];
  const end = first + classes[tasks.classOf[row]].modes.length;
  for (let i = first; i < end; i++) spaces[tasks.device[row]].unpin(tasks.flowDatum[i]);
}

/** A host of `hostUnits` units and `gpus` GPUs of `units` units each. */
export class Bench {
  readonly backend: ManualBackend;
  readonly tasks: TaskTable;
  readonly dir: Directory;
  readonly spaces: MemorySpace[];
  readonly transfers: Transfers;
  readonly sub: Submission;
  readonly allSpaces: AllSpaces = new AllSpaces();
  readonly x: StageContext;
  readonly failures: HeadraceError[] = [];
  private readonly count: number;
  private readonly classes: Map<string, number> = new Map();

  constructor(
    units: number,
    hostUnits = 1000,
    options: { readonly gpus?: number; readonly window?: number } = {},
  ) {
    const { gpus = 1, window = 64 } = options;
    this.count = gpus + 1;
    this.tasks = new TaskTable(window);
    this.dir = new Directory(this.count);
    this.backend = new ManualBackend(1, gpus);
    this.spaces = Array.from(
      { length: this.count },
      (_, s) =>
        new MemorySpace(spaceId(s), (s === 0 ? hostUnits : units) * UNIT, this.dir, this.allSpaces),
    );
    this.sub = new Submission(this.backend.port);
    this.transfers = new Transfers(this.dir, this.spaces, this.sub);
    const hooks = {
      closesAreReleased: () => false,
      startBody: () => Outcome.running,
      issued: () => {},
      fail: (_row: number, error: HeadraceError) => void this.failures.push(error),
      memoryText: () => 'the table',
    } as unknown as StageHooks;
    this.x = new StageContext(this.tasks, this.dir, this.spaces, this.sub, this.transfers);
    this.x.hooks = hooks;
  }

  get gpu(): MemorySpace {
    return this.spaces[GPU];
  }

  datum(units: number): DatumId {
    return this.dir.add(units * UNIT, { name: `datum of ${units}` });
  }

  /** A datum whose only value is on a GPU. */
  dirty(units: number, s: number = GPU): DatumId {
    const d = this.datum(units);
    this.place(d, s);
    this.dir.apply(d, spaceId(s), CopyEvent.write);
    this.spaces[s].settle(d);
    return d;
  }

  /** A datum with a value on the host and nowhere else. */
  onHost(units: number): DatumId {
    const d = this.datum(units);
    this.place(d, 0);
    this.dir.apply(d, HOST, CopyEvent.write);
    this.spaces[0].settle(d);
    return d;
  }

  /** A datum with a value on the host and a copy on the GPU. */
  clean(units: number): DatumId {
    const d = this.onHost(units);
    this.share(d, GPU);
    return d;
  }

  /** A further copy of a datum, in space `s`. */
  share(d: DatumId, s: number): void {
    this.place(d, s);
    this.dir.apply(d, spaceId(s), CopyEvent.fetch);
    this.dir.apply(d, spaceId(s), CopyEvent.arrived);
    this.spaces[s].settle(d);
  }

  /** Whether the copy of `d` in space `s` has memory. */
  isHere(d: DatumId, s: number = GPU): boolean {
    return this.dir.block[this.copy(d, s)] !== NO_BLOCK;
  }

  /** State of the copy of `d` in space `s`. */
  state(d: DatumId, s: number = GPU): number {
    return this.dir.state[this.copy(d, s)];
  }

  /** Row of a task on the GPU that changes some data. */
  task(...data: DatumId[]): number {
    return this.insert(
      GPU,
      data.map((datum) => ({ datum, mode: AccessMode.readWrite })),
    );
  }

  /** Row of a task on space `s`, or ANY_DEVICE. */
  insert(s: number, flows: readonly { datum: DatumId; mode: number }[]): number {
    const modes = flows.map(({ mode }) => mode);
    let cls = this.classes.get(modes.join());
    if (cls === undefined) {
      cls = this.x.classes.length;
      this.classes.set(modes.join(), cls);
      this.x.classes.push({
        id: cls,
        name: `task of ${modes.length}`,
        flowNames: modes.map((_, i) => `f${i}`),
        modes,
        paramNames: [],
        kernels: new Int32Array(this.count),
        body: undefined,
        explain: undefined,
        failureCode: undefined,
      });
    }
    const row = this.tasks.take(flows.length, 0) & this.tasks.mask;
    this.tasks.stage[row] = TaskStage.alloc;
    this.tasks.classOf[row] = cls;
    this.tasks.device[row] = spaceId(s);
    this.tasks.execution[row] = Execution.none;
    flows.forEach(({ datum }, i) => {
      this.tasks.flowDatum[this.tasks.flowStart[row] + i] = datum;
    });
    return row;
  }

  /** All transfers under way end, well unless told otherwise. */
  finishTransfers(status: number = Status.ok): void {
    for (let q = 0; q < this.backend.queues.length; q++) {
      this.backend.completeAll(q);
      for (
        let token = this.sub.takeFinished(queueId(q));
        token !== 0;
        token = this.sub.takeFinished(queueId(q))
      ) {
        if (token < 0) this.transfers.finish(-token - 1, queueId(q), this.sub.seen[q], status);
      }
    }
    this.check();
  }

  /** What the engine does when memory became free: looks at the first in line, and at the next when it goes. */
  serve(): number[] {
    const served: number[] = [];
    while (this.gpu.waiters.length > 0) {
      const row = this.gpu.waiters.peek() & this.tasks.mask;
      this.tasks.waiting[row] = WaitReason.none;
      if (alloc(this.x, row) !== Outcome.advance) break;
      this.gpu.waiters.shift();
      served.push(row);
    }
    this.check();
    return served;
  }

  end(row: number): void {
    releasePins(this.x, row);
    this.check();
  }

  check(): void {
    this.dir.validate();
    for (const space of this.spaces) space.validate();
  }

  private copy(d: DatumId, s: number): number {
    return d * this.count + s;
  }

  private place(d: DatumId, s: number): void {
    const offset = this.spaces[s].zone.allocate(this.dir.bytes[d]);
    if (offset < 0) throw new Error('test: no room');
    this.dir.block[this.copy(d, s)] = offset;
  }
}
