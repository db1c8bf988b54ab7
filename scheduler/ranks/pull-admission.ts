// Pulled inputs: a rank asks for them only when all other inputs of their task are there and all memory of the task can
// be reserved (after PaRSEC's issue 661; the default, push, asks as soon as a version is announced). So inputs of tasks
// that cannot run yet never fill a device.
//
// A task with pulled inputs is preceded by a gate, a task without data that follows all its other predecessors, also those
// without data (`after`); the receives follow the gate. When the gate is open and all announcements are there, the group waits in the line of its
// device until the bytes of its task fit the device's share, and then asks. A second task without data follows the task
// and gives the bytes back.
//
// Invariants:
// - per device, the reserved bytes exceed the share only when a single group holds them;
// - an admitted group can always finish: its data are offered, and its task lacks nothing else but commands that were issued before
//   its gate was inserted. These end whatever this rank does (scheduler/engine/arrivals.ts). A group is admitted after its
//   announcements, never before;
// - a group is admitted once, when all of its tasks were inserted. Insertion waits for room in the window, and so perhaps for an
//   earlier group in line, which would wait for the bytes that a task not yet inserted gives back;
// - the failure of a run admits no group. All runs fail that are open then (agreement.ts), so all groups leave the lines.

import { guards } from '../../devices/guards.js';
import type { Column, DatumId, TaskId } from '../../devices/handles.js';
import type { StageContext } from '../../stages/context.js';
import { ANY_DEVICE, type TaskClassRow } from '../../stages/task-table.js';
import type { RunState } from '../engine/run-state.js';
import type { RankHost } from './host.js';
import type { Movement } from './movements.js';

/** Share of a device's memory that tasks with pulled inputs may have reserved. */
const PULL_SHARE = 0.5;

/** The pulled inputs of one task. */
export interface PullGroup {
  readonly index: number;
  readonly run: number;
  readonly space: number;
  /** Bytes of all data of the task. */
  readonly bytes: number;
  readonly members: Movement[];
  /** Members without an announcement or with a closed gate; one more until all of its tasks were inserted. */
  missing: number;
  state: 'waiting' | 'in line' | 'admitted';
}

export class RankPulls {
  /** Bytes reserved per space. */
  readonly reserved: Float64Array;
  private readonly engine: RankHost;
  private readonly begin: (receive: Movement) => void;
  private readonly limit: Float64Array;
  private readonly lines: PullGroup[][];
  private readonly groups: Map<number, PullGroup> = new Map();
  private readonly gateClass: TaskClassRow;
  private readonly returnClass: TaskClassRow;
  private readonly noFlows: Column<Int32Array, DatumId> = new Int32Array(0) as Column<
    Int32Array,
    DatumId
  >;
  private readonly oneParam: Float64Array = new Float64Array(1);
  private nextGroup = 1;

  /** `begin` starts an admitted receive. */
  constructor(engine: RankHost, x: StageContext, begin: (receive: Movement) => void) {
    this.engine = engine;
    this.begin = begin;
    this.reserved = new Float64Array(x.spaces.length);
    this.limit = Float64Array.from(x.spaces, ({ zone }) => zone.capacity * PULL_SHARE);
    this.lines = x.spaces.map(() => []);
    this.gateClass = this.controlClass('gate', () => {});
    this.returnClass = this.controlClass('return', (row) => {
      const { tasks } = engine;
      const group = this.groups.get(tasks.params[tasks.paramStart[row]]);
      if (group !== undefined) this.over(group);
    });
  }

  private controlClass(name: string, run: (row: number) => void): TaskClassRow {
    const { engine } = this;
    const row: TaskClassRow = {
      id: engine.x.classes.length,
      name,
      flowNames: [],
      paramNames: ['group'],
      modes: [],
      kernels: new Int32Array(engine.backend.spaces.length).fill(-1),
      body: (_id, at) => run(at),
      explain: undefined,
      failureCode: undefined,
    };
    engine.x.classes.push(row);
    return row;
  }

  /** Opens a group for a task that touches `bytes` in `space`; `after` are its other predecessors. Returns it and its gate. */
  open(
    run: RunState,
    space: number,
    bytes: number,
    priority: number,
    after: readonly TaskId[],
  ): { readonly group: PullGroup; readonly gate: TaskId } {
    const index = this.nextGroup++;
    const group: PullGroup = {
      index,
      run: run.slot,
      space,
      bytes,
      members: [],
      missing: guards.pullWhole ? 1 : 0,
      state: 'waiting',
    };
    this.groups.set(index, group);
    const gate = this.insert(this.gateClass, group, run, priority, after);
    this.engine.room.groupBegins(gate);
    return { group, gate };
  }

  /** The task of the group was inserted. When it is over, its bytes go back to the next group. */
  close(group: PullGroup, run: RunState, priority: number, task: TaskId): void {
    this.insert(this.returnClass, group, run, priority, [task]);
    const isKnown = this.groups.get(group.index) === group;
    if (isKnown && guards.pullWhole) this.ready(group);
  }

  /** The insertion that may have opened a group is over, also without its task. */
  inserted(): void {
    this.engine.room.groupEnds();
  }

  private insert(
    cls: TaskClassRow,
    group: PullGroup,
    run: RunState,
    priority: number,
    after: readonly TaskId[],
  ): TaskId {
    const { engine } = this;
    engine.reserveRow(cls);
    this.oneParam[0] = group.index;
    run.movements++;
    return engine.insert({
      cls,
      run,
      flows: this.noFlows,
      params: this.oneParam,
      priority,
      device: ANY_DEVICE,
      after,
    });
  }

  /** One more member has its announcement, and its gate is open; or the group was inserted. */
  ready(group: PullGroup): void {
    if (--group.missing > 0) return;
    group.state = 'in line';
    this.lines[group.space].push(group);
    this.serve(group.space);
  }

  /** On how many lists of groups a receive stands whose version is announced, and which has not begun. */
  waitLists({ pull: group, from }: Movement): number {
    if (group === undefined || from === undefined || group.state === 'admitted') return 0;
    const isKnown = this.groups.get(group.index) === group;
    if (group.state === 'waiting') return isKnown ? 1 : 0;
    return this.lines[group.space].filter((each) => each === group).length;
  }

  private serve(s: number): void {
    const line = this.lines[s];
    while (line.length > 0) {
      const [group] = line;
      const isTooMuch = this.reserved[s] > 0 && this.reserved[s] + group.bytes > this.limit[s];
      if (isTooMuch && guards.pullShare) return;
      line.shift();
      this.reserved[s] += group.bytes;
      group.state = 'admitted';
      for (const member of group.members) this.begin(member);
    }
  }

  /** The task of the group is over: the next group gets its bytes. */
  private over(group: PullGroup): void {
    this.remove(group);
    this.serve(group.space);
  }

  private remove(group: PullGroup): void {
    this.groups.delete(group.index);
    if (group.state === 'admitted') this.reserved[group.space] -= group.bytes;
    else if (group.state === 'in line') {
      const line = this.lines[group.space];
      line.splice(line.indexOf(group), 1);
    }
  }

  /** A run failed: its groups give back their bytes and wait no more. No group in line gets them, because its run fails, too. */
  forget(run: RunState): void {
    for (const group of [...this.groups.values()]) if (group.run === run.slot) this.remove(group);
  }
}
