// Reducing flows: their tasks change partial results in place of the datum, and further tasks combine these. To everything
// behind the insertion (engine, ranks, plans, traces) they are tasks that change data of their own.
//
// A reduction into a datum is open from its first task to the next other access to the datum: by another flow, operator,
// run, a read, or the end of the program. On each rank it has up to `partials` partial results, which the tasks of that
// rank use in turn. The first one on the datum's own rank is the datum itself. The others are set to the identity
// when they are first used. At its end each rank combines its partial results in a binary tree, and a tree over the
// ranks combines theirs, the datum's rank first.
// Invariants:
// - the partial result of a task and the tree depend on the program order only, so the result does not depend on timing; with
//   `deterministic: false` there is no tree: the combinations into the first partial result commute;
// - while a reduction is open, no task or call uses its datum otherwise;
// - a reduction into a part, or into a datum that has parts, ends before any task or call that uses elements of it by way of another
//   part. So while it is open nothing is copied to or from its datum, and no newer version of any of its elements is written: the
//   record of the parts (parts/versions.ts) is that of a task that changes the part at the first reducing task, and the combinations at the
//   end change nothing of it;
// - when the program of a failed run ends before its reductions, their data are left without a value.
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { DatumId, SpaceId } from '../../devices/handles.js';
import { AccessMode } from '../../trace/format.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import type { ProgramInsertion } from '../engine/task-insertion.js';
import { isWindowFull } from '../engine/window.js';
import type { Ranks } from '../ranks/ranks.js';
import { type BoundClass, possibleSpaces } from './bound-class.js';
import type { Datum } from './datum.js';
import type { Operator, Reduction } from './operator.js';
import { type OperatorTasks, tasksOf } from './operator-classes.js';
import type { Partials } from './partials.js';
import { common } from './parts/region.js';
import type { ProgramData } from './program-data.js';
import type { TaskClass } from './task-class.js';

/** The graph of a run or of a plan, as its reductions use it. */
interface ReducingGraph {
  readonly state: RunState;
  insert(cls: TaskClass, args: object, options?: { device?: number | 'host' }): unknown;
}

/** What reductions use of the runtime. */
interface ReductionParts {
  readonly peers: Ranks | undefined;
  readonly classes: { bind(cls: TaskClass): BoundClass };
  readonly engine: Pick<Engine, 'inBody' | 'directory' | 'dependencies' | 'reserveRow'>;
  readonly programData: Pick<ProgramData, 'rankOf' | 'spoil'>;
  readonly partials: Partials;
}

/** The partial results of one rank for tasks that ask for one device, or for none. */
interface Pool {
  readonly rank: number;
  readonly device: SpaceId;
  /** In the order of their first use. */
  readonly slots: Datum[];
  /** The next one to be used; their number if that one is not made yet. */
  next: number;
}

interface OpenReduction {
  readonly datum: Datum;
  readonly graph: ReducingGraph;
  readonly operator: Operator;
  readonly partials: number;
  /** Whether the partial results are combined in a tree. */
  readonly deterministic: boolean;
  readonly tasks: OperatorTasks;
  /** In the order of their first use. */
  readonly pools: Pool[];
  /** The pool that was used last. */
  last: Pool;
  /** What must still be combined, once the reduction ends: the second datum of each pair into the first. */
  rest: (readonly [to: Datum, from: Datum])[] | undefined;
}

const NO_POOL: Pool = { rank: -1, device: -1 as SpaceId, slots: [], next: 0 };

/** A task that is about to be inserted. */
export interface PendingTask {
  readonly bound: BoundClass;
  readonly insertion: ProgramInsertion;
  readonly graph: ReducingGraph;
  /** The rank on which it runs. */
  readonly rank: number;
}

export class Reductions {
  private readonly parts: ReductionParts;
  private readonly open: Map<DatumId, OpenReduction> = new Map();
  /** The open reduction, if there is one only. */
  private only: OpenReduction | undefined;
  /** Set from the begin of the insertion of its combination to the place where bodies may run again. */
  private combining: OpenReduction | undefined;
  /** Reductions whose datum the task that is being inserted overwrites. */
  private overwritten: { readonly open: OpenReduction; readonly rest: OpenReduction['rest'] }[] =
    [];
  /** A copy between a datum and a part is inserted, which concerns no open reduction. */
  private isAside = false;

  constructor(parts: ReductionParts) {
    this.parts = parts;
  }

  /** The open reduction into a datum. As a rule there is one at most, and every task asks for all of its data. */
  private find(d: DatumId): OpenReduction | undefined {
    const { only } = this;
    if (only === undefined) return this.open.get(d);
    return only.datum.row === d ? only : undefined;
  }

  private add(open: OpenReduction): void {
    this.open.set(open.datum.row, open);
    this.only = this.open.size === 1 ? open : undefined;
  }

  private remove({ datum }: OpenReduction): void {
    this.open.delete(datum.row);
    const [first] = this.open.values();
    this.only = this.open.size === 1 ? first : undefined;
  }

  /** An open reduction into another datum that has elements of a datum. */
  private beside(d: DatumId): OpenReduction | undefined {
    if (!guards.partsReduced) return undefined;
    // A body may have closed the datum.
    const view = (this.parts.engine.directory.info[d] as Datum | undefined)?.view;
    if (view === undefined) return undefined;
    for (const open of this.open.values()) {
      const other = open.datum.view;
      if (other === undefined || other === view || other.family !== view.family) continue;
      if (common(other.region, view.region) !== undefined) return open;
    }
    return undefined;
  }

  private endBeside(d: DatumId): void {
    for (let open = this.beside(d); open !== undefined; open = this.beside(d)) this.end(open);
  }

  /** A reduction into that datum is open. */
  isInto(d: DatumId): boolean {
    return this.find(d) !== undefined;
  }

  /** Some reduction is open, and may concern the task that is inserted. */
  get isOpen(): boolean {
    return this.open.size > 0 && !this.isAside;
  }

  /**
   * Inserts a take-over (parts/parts.ts) as a task of a graph. What it copies belongs to no open reduction: the task that needs it has
   * ended those before.
   */
  aside(insert: () => void): void {
    this.isAside = true;
    try {
      insert();
    } finally {
      this.isAside = false;
    }
  }

  /** The rank of a task with reducing flows that names none: where its other data are. Partial results travel, operands do not. */
  rankOf({ row, cls }: BoundClass, flows: ProgramInsertion['flows']): number {
    const { peers } = this.parts;
    if (peers === undefined) return 0;
    const { reductions } = cls;
    let input = -1;
    for (let i = 0; i < row.modes.length; i++) {
      if (reductions?.[i] !== undefined) continue;
      if (row.modes[i] !== AccessMode.read) return peers.ownerOf(flows[i]);
      if (input < 0) input = i;
    }
    return peers.ownerOf(flows[Math.max(input, 0)]);
  }

  /** Whether a task can be inserted now. If not, `prepare` makes it so, unless other tasks come between. */
  isReady({ bound, insertion, graph, rank }: PendingTask): boolean {
    const { modes } = bound.row;
    const { reductions } = bound.cls;
    for (let i = 0; i < modes.length; i++) {
      if (this.beside(insertion.flows[i]) !== undefined) return false;
      const open = this.find(insertion.flows[i]);
      const reduction = reductions?.[i];
      if (open !== undefined && open === this.combining) continue;
      if (reduction === undefined) {
        if (open !== undefined && (modes[i] !== AccessMode.write || this.isAlone)) return false;
      } else if (this.isSerial(graph)) {
        if (open !== undefined && open.graph !== graph) return false;
      } else {
        if (open === undefined || !belongs(open, reduction, graph)) return false;
        const pool = poolOf(open, rank, insertion.device);
        if (pool === undefined || pool.next === pool.slots.length) return false;
      }
    }
    return true;
  }

  /**
   * Ends and opens reductions, and inserts the tasks for that. Bodies may run meanwhile and insert others. They may also close one of
   * the data of the task: its row may be that of another one then, and the caller refuses the task.
   */
  prepare(task: PendingTask, data: readonly Datum[]): void {
    const { bound, insertion, graph } = task;
    this.checkRanks(bound, graph);
    for (let i = 0; i < bound.row.modes.length; i++) {
      const d = insertion.flows[i];
      const reduction = bound.cls.reductions?.[i];
      this.endBeside(d);
      if (data.some(({ closed }) => closed)) return;
      const open = this.find(d);
      if (reduction === undefined) {
        if (open !== undefined && bound.row.modes[i] !== AccessMode.write) this.end(open);
      } else if (this.isSerial(graph)) {
        if (open !== undefined && open.graph !== graph) this.end(open);
      } else if (open !== undefined && !belongs(open, reduction, graph)) this.end(open);
      else this.addSlot(open ?? this.begin(d, reduction, graph), task);
    }
  }

  /** Replaces the data of the reducing flows of a task that is ready by partial results. `placed` or `failed` follows. */
  replace({ bound, insertion, graph, rank }: PendingTask): void {
    const { modes } = bound.row;
    const { flows, device } = insertion;
    const isSerial = this.isSerial(graph);
    for (let i = 0; i < modes.length; i++) {
      const open = this.find(flows[i]);
      if (open === undefined || open === this.combining) continue;
      if (bound.cls.reductions?.[i] === undefined) {
        this.remove(open);
        this.overwritten.push({ open, rest: open.rest });
        open.rest = [];
      } else if (!isSerial) {
        const pool = poolOf(open, rank, device) as Pool;
        flows[i] = pool.slots[pool.next].row;
        if (++pool.next === open.partials) pool.next = 0;
      }
    }
    this.combining = undefined;
  }

  /** The task was inserted. */
  placed(): void {
    if (this.overwritten.length === 0) return;
    for (const { open } of this.overwritten.splice(0)) this.giveBack(open);
  }

  /** The task was not inserted, because its run has failed. */
  failed(): void {
    for (const { open, rest } of this.overwritten.splice(0)) {
      open.rest = rest;
      this.add(open);
    }
  }

  /** The program uses the value of a datum. */
  use(datum: Datum): void {
    const { row } = datum;
    for (let open = this.find(row); open !== undefined; open = this.find(row)) this.end(open);
    this.endBeside(row);
  }

  /** A reduction is open into a datum, or into data that have elements of it. */
  concerns(d: DatumId): boolean {
    return this.open.size > 0 && (this.isInto(d) || this.beside(d) !== undefined);
  }

  /** The program overwrites a datum, or closes it. */
  forget(datum: Datum): void {
    this.endBeside(datum.row);
    const open = this.find(datum.row);
    if (open !== undefined) {
      this.remove(open);
      // A call that waits for room to end it inserts no more of it.
      open.rest = [];
      this.giveBack(open);
    }
  }

  /** The program of a graph has ended. */
  endAll(graph: ReducingGraph): void {
    for (const open of [...this.open.values()]) if (open.graph === graph) this.end(open);
  }

  /**
   * Tasks of bodies on several ranks, and tasks that come after the end of their program, change the datum itself, one
   * after the other: no other rank, or no later task, would end a reduction of theirs.
   */
  private isSerial({ state }: ReducingGraph): boolean {
    return state.sealed || this.isAlone;
  }

  /** The caller is a body on one of several ranks. */
  private get isAlone(): boolean {
    return this.parts.peers !== undefined && this.parts.engine.inBody;
  }

  private begin(d: DatumId, reduction: Reduction, graph: ReducingGraph): OpenReduction {
    const { classes, engine } = this.parts;
    const datum = engine.directory.info[d] as Datum;
    const { operator, partials, deterministic } = reduction;
    const tasks = tasksOf(operator, datum.element, datum.length, deterministic);
    // A mistake in an operator of the program shows before its first task.
    classes.bind(tasks.combine).row.combines = true;
    // The reducing tasks follow their partial results to a queue.
    classes.bind(tasks.identity).row.spreads = true;
    const same = { datum, graph, operator, partials, deterministic };
    const open = { ...same, tasks, pools: [], last: NO_POOL };
    const begun: OpenReduction = { ...open, rest: undefined };
    this.add(begun);
    return begun;
  }

  /** Makes the partial result that a task needs next, if it is missing. */
  private addSlot(open: OpenReduction, { bound, insertion, rank }: PendingTask): void {
    const { datum, graph, pools, tasks } = open;
    const { device } = insertion;
    const { classes, engine, partials, programData } = this.parts;
    const { identity, identityParams } = tasks;
    // From here to the insertion of the identity no body runs.
    engine.reserveRow(classes.bind(identity).row);
    const pool = poolOf(open, rank, device) ?? { rank, device, slots: [], next: 0 };
    if (open.rest !== undefined || pool.next < pool.slots.length) return;
    if (!pools.includes(pool)) pools.push(pool);
    const isFirst = pools.every((other) => other.rank !== rank || other.slots.length === 0);
    if (isFirst && rank === programData.rankOf(datum)) {
      pool.slots.push(datum);
      return;
    }
    const partial = partials.take(datum, rank);
    const on = this.deviceOf(bound, identity, pool);
    pool.slots.push(partial);
    try {
      graph.insert(identity, { [identity.flowNames[0]]: partial, ...identityParams }, on);
    } catch (error) {
      pool.slots.splice(pool.slots.indexOf(partial), 1);
      partials.giveBack(datum, partial);
      throw error;
    }
  }

  /** Where a partial result begins: on a device that can run the reducing tasks. */
  private deviceOf(
    { row }: BoundClass,
    identity: TaskClass,
    { rank, device, slots }: Pool,
  ): { device: number | 'host' } | undefined {
    const { peers, classes } = this.parts;
    if (peers !== undefined && peers.rank !== rank) return undefined;
    const spaces = possibleSpaces(row);
    const s = device >= 0 ? device : spaces[slots.length % spaces.length];
    const { kernels, body } = classes.bind(identity).row;
    if (s === 0) return kernels[0] >= 0 || body !== undefined ? { device: 'host' } : undefined;
    return kernels[s] >= 0 ? { device: s - 1 } : undefined;
  }

  /** Inserts the tasks that combine all partial results into the datum. */
  private end(open: OpenReduction): void {
    const { graph, tasks } = open;
    const { classes, engine } = this.parts;
    const { combine, combineParams } = tasks;
    const [toFlow, fromFlow] = combine.flowNames;
    open.rest ??= this.pairsOf(open);
    let pair: readonly [Datum, Datum] | undefined;
    try {
      while (open.rest.length > 0 && graph.state.error === undefined) {
        // A body that runs meanwhile and uses the datum inserts the rest itself.
        engine.reserveRow(classes.bind(combine).row);
        pair = open.rest.shift();
        if (pair === undefined || graph.state.error !== undefined) break;
        this.combining = open;
        graph.insert(combine, { [toFlow]: pair[0], [fromFlow]: pair[1], ...combineParams });
        pair = undefined;
      }
    } catch (error) {
      this.combining = undefined;
      if (isWindowFull(error) && graph.state.error === undefined) {
        // It stays open: the call that needs its value fails, and may come again.
        if (pair !== undefined) open.rest.unshift(pair);
        throw error;
      }
      this.leave(open, error);
      if (graph.state.error === undefined) throw error;
    }
    this.leave(open, graph.state.error);
  }

  /** No task of the reduction follows. `error`: why the datum has a part of the result only. */
  private leave(open: OpenReduction, error: unknown): void {
    const { datum } = open;
    if (this.find(datum.row) !== open) return;
    this.remove(open);
    // Combinations commute among themselves, and with no task of the program.
    this.parts.engine.dependencies.closeGroup(datum.row);
    if (error !== undefined) this.spoil(open, error);
    this.giveBack(open);
  }

  /** The combinations, in their order: on each rank into its first partial result, then over the ranks. */
  private pairsOf({ datum, pools, deterministic }: OpenReduction): [Datum, Datum][] {
    const pairs: [Datum, Datum][] = [];
    const tree = (nodes: readonly Datum[]): void => {
      if (!deterministic) {
        // Each into the first one, as it becomes ready: these tasks commute.
        for (const node of nodes.slice(1)) pairs.push([nodes[0], node]);
        return;
      }
      for (let step = 1; step < nodes.length; step *= 2)
        for (let i = 0; i + step < nodes.length; i += 2 * step)
          pairs.push([nodes[i], nodes[i + step]]);
    };
    const byRank = new Map<number, Datum[]>();
    for (const { rank, slots } of pools) byRank.set(rank, [...(byRank.get(rank) ?? []), ...slots]);
    const home = this.parts.programData.rankOf(datum);
    const others = [...byRank.keys()].filter((rank) => rank !== home).sort((a, b) => a - b);
    for (const slots of byRank.values()) tree(slots);
    tree([datum, ...others.map((rank) => (byRank.get(rank) as Datum[])[0])]);
    return pairs;
  }

  /** The datum has a part of the result only. */
  private spoil({ datum }: OpenReduction, cause: unknown): void {
    const { peers, programData } = this.parts;
    if (peers !== undefined && peers.rank !== programData.rankOf(datum)) return;
    programData.spoil(
      datum,
      () =>
        new HeadraceError(
          'ERR_REDUCTION',
          `the reduction into datum '${datum.name}' was not completed, because its run had failed`,
          { datum: datum.name, cause },
        ),
    );
  }

  private giveBack({ datum, pools }: OpenReduction): void {
    for (const { slots } of pools)
      for (const slot of slots) if (slot !== datum) this.parts.partials.giveBack(datum, slot);
  }

  /** @throws HeadraceError `ERR_PRUNED_REDUCTION`, `ERR_INSERT_ALONE` */
  private checkRanks({ row }: BoundClass, { state }: ReducingGraph): void {
    const { peers, engine } = this.parts;
    if (peers === undefined) return;
    const of = `a task of class '${row.name}' belongs to a reduction or ends one`;
    if (peers.runs.isPruned(state))
      throw new HeadraceError(
        'ERR_PRUNED_REDUCTION',
        `${of}, in a pruned run: ranks that leave tasks out do not know on which ranks partial results are`,
        { task: row.name, remedy: 'do not prune the run, or reduce with algorithms/reduce' },
      );
    if (engine.inBody)
      throw new HeadraceError(
        'ERR_INSERT_ALONE',
        `${of}, and a body on rank ${peers.rank} alone inserts it`,
        { task: row.name, rank: peers.rank, remedy: 'insert it in the program, on all ranks' },
      );
  }
}

function belongs(
  open: OpenReduction,
  { operator, deterministic }: Reduction,
  graph: ReducingGraph,
): boolean {
  const isSame = open.operator === operator && open.deterministic === deterministic;
  return isSame && open.graph === graph && open.rest === undefined;
}

function poolOf(open: OpenReduction, rank: number, device: SpaceId): Pool | undefined {
  const { last } = open;
  if (last.rank === rank && last.device === device) return last;
  const found = open.pools.find((pool) => pool.rank === rank && pool.device === device);
  if (found !== undefined) open.last = found;
  return found;
}
