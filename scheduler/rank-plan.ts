// Planning, in program order: which rank a task runs on, and what has to move for it.
//
// A task belongs to the rank that owns the first datum it writes. Inserting a task of another rank costs a send for
// each input whose latest version is here and not there yet; inserting a task of this rank costs a receive for each
// input whose latest version is elsewhere. Both are tasks on the data they move, so that the graph's own order keeps
// versions apart: a later writer waits for the send, a reader for the receive.
//
// Invariants:
// - the n-th send of a datum from rank a to rank b matches the n-th receive of it on b from a: both count in program
//   order, so no version numbers travel;
// - a send that has not started takes further destinations of the same version;
// - one receive per version and rank, whoever wants it.
import { guards } from '../devices/guards.js';
import { keyOf, MAX_RANKS } from '../devices/network-announcement.js';
import { markUnwritten } from '../stages/poison.js';
import { AccessMode, ANY_DEVICE, NetworkRole, type TaskClassRow } from '../stages/task-table.js';
import type { Engine } from './engine.js';
import { NO_GID, NOT_SENT, RankData } from './rank-data.js';
import type { Movement, Movements } from './rank-movements.js';
import type { PullGroup, RankPulls } from './rank-pulls.js';
import type { RankRuns } from './rank-runs.js';
import type { RunState } from './run-state.js';

/** Tasks of other ranks between two passes of the engine; a power of two. */
const PASS_EVERY = 64;
/** Bytes that a block may take besides its datum's own. */
const BLOCK_SLACK = 512;

export class RankPlan {
  readonly data: RankData;
  /** Movements planned so far. */
  readonly figures = { sends: 0, receives: 0 };
  private readonly engine: Engine;
  private readonly movements: Movements;
  private readonly pulls: RankPulls;
  private readonly runs: RankRuns;
  private readonly rank: number;
  private readonly size: number;
  private readonly treeFrom: number;
  private readonly isInline: (bytes: number) => boolean;
  /** Per space, the bytes of the largest task so far. */
  private readonly largest: Float64Array;
  private readonly sendClass: TaskClassRow;
  private readonly receiveClass: TaskClassRow;
  private readonly forwardClass: TaskClassRow;
  private readonly sendCounts: Map<number, number> = new Map();
  private readonly receiveCounts: Map<number, number> = new Map();
  private readonly oneFlow: Int32Array = new Int32Array(1);
  private readonly oneParam: Float64Array = new Float64Array(1);
  private elsewhere = 0;
  /** Pulled inputs of the task that is about to be inserted. */
  private opened: PullGroup | undefined;

  constructor(
    engine: Engine,
    movements: Movements,
    pulls: RankPulls,
    runs: RankRuns,
    rank: number,
    size: number,
    treeFrom: number,
    isInline: (bytes: number) => boolean,
    largest: Float64Array,
  ) {
    this.engine = engine;
    this.movements = movements;
    this.pulls = pulls;
    this.runs = runs;
    this.rank = rank;
    this.size = size;
    this.treeFrom = treeFrom;
    this.isInline = isInline;
    this.largest = largest;
    this.data = new RankData(rank, size);
    this.sendClass = this.networkClass('send', AccessMode.read, NetworkRole.send);
    this.receiveClass = this.networkClass('receive', AccessMode.write, NetworkRole.receive);
    this.forwardClass = this.networkClass('forward', AccessMode.read, NetworkRole.forward);
  }

  private networkClass(name: string, mode: number, network: number): TaskClassRow {
    const { engine } = this;
    const row: TaskClassRow = {
      id: engine.x.classes.length,
      name,
      flowNames: ['datum'],
      paramNames: ['movement'],
      modes: [mode],
      kernels: new Int32Array(engine.backend.spaces.length).fill(-1),
      body: () => {},
      explain: undefined,
      failureCode: undefined,
      network,
    };
    engine.x.classes.push(row);
    return row;
  }

  /** Now and then true, for a program that inserts nothing here. */
  skipsTurn(): boolean {
    this.elsewhere = (this.elsewhere + 1) & (PASS_EVERY - 1);
    return this.elsewhere === 0;
  }

  /** Rank a task belongs to. */
  rankOf(cls: TaskClassRow, flows: Int32Array): number {
    const { modes } = cls;
    const { owner } = this.data;
    for (let i = 0; i < modes.length; i++) if (modes[i] !== AccessMode.read) return owner[flows[i]];
    return modes.length > 0 ? owner[flows[0]] : 0;
  }

  /**
   * Plans the movements of a task of rank `target` that is about to be inserted on all ranks. Returns true when it is this rank's and
   * has to be inserted here; `inserted` follows then.
   */
  plan(
    cls: TaskClassRow,
    run: RunState,
    flows: Int32Array,
    params: Float64Array,
    priority: number,
    device: number,
    target: number,
  ): boolean {
    const { data } = this;
    this.runs.count(run, cls, flows, params, data.gid, target);
    const { modes } = cls;
    const local = target === this.rank;
    this.opened = undefined;
    let pulled = false;
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.write) continue;
      const d = flows[i];
      if (local) {
        if (data.have[d] === 1 && (guards.receiveOnce || data.producer[d] === this.rank)) continue;
        if (this.isPulled(cls, i, d)) pulled = true;
        else this.receive(d, run, priority, this.wantedSpace(cls, flows, device), undefined);
      } else if (data.producer[d] === this.rank)
        this.sendTo(d, target, run, priority, this.isPulled(cls, i, d));
    }
    if (local) {
      const bytes = this.noteSize(cls, flows);
      if (pulled) this.pull(cls, run, flows, priority, device, bytes);
    }
    if (!local) this.writes(cls, flows, target);
    return local;
  }

  /**
   * The task planned last is inserted now. Not before: a body that runs meanwhile, when the window has no room, may insert
   * readers of the version before, of which this rank may have none.
   */
  writes({ modes }: TaskClassRow, flows: Int32Array, target: number): void {
    for (let i = 0; i < modes.length; i++)
      if (modes[i] !== AccessMode.read) this.written(flows[i], target);
  }

  /** What travels in its announcement need not be asked for. */
  private isPulled({ pulls }: TaskClassRow, flow: number, d: number): boolean {
    return pulls?.[flow] === 1 && !this.isInline(this.engine.directory.bytes[d]);
  }

  /** The pulled inputs of a task: received behind a gate that opens when its other inputs are there. */
  private pull(
    cls: TaskClassRow,
    run: RunState,
    flows: Int32Array,
    priority: number,
    device: number,
    bytes: number,
  ): void {
    const { dependencies } = this.engine;
    const { have } = this.data;
    const after: number[] = [];
    for (let i = 0; i < cls.modes.length; i++) {
      const d = flows[i];
      if (cls.modes[i] !== AccessMode.read) after.push(...dependencies.users(d));
      else if (have[d] === 1) after.push(...dependencies.writers(d));
    }
    const space = this.wantedSpace(cls, flows, device);
    const { group, gate } = this.pulls.open(run, space, bytes, priority, after);
    for (let i = 0; i < cls.modes.length; i++) {
      const d = flows[i];
      if (cls.modes[i] === AccessMode.write || have[d] === 1) continue;
      this.receive(d, run, priority, space, { group, gate });
    }
    this.opened = group;
  }

  /** The task planned last was inserted. */
  inserted(run: RunState, priority: number, task: number): void {
    const group = this.opened;
    if (group === undefined) return;
    this.opened = undefined;
    this.pulls.close(group, run, priority, task);
  }

  /** Offers granted from now on leave room for the task. Returns the bytes of its data. */
  noteSize(cls: TaskClassRow, flows: Int32Array): number {
    const { largest, engine } = this;
    let bytes = 0;
    for (let i = 0; i < cls.modes.length; i++)
      bytes += engine.directory.bytes[flows[i]] + BLOCK_SLACK;
    for (let s = 1; s < largest.length; s++)
      if (cls.kernels[s] >= 0 && bytes > largest[s]) largest[s] = bytes;
    return bytes;
  }

  /** The latest version of `d` in program order is written by `rank`. */
  written(d: number, rank: number): void {
    this.data.written(d, rank);
    this.engine.directory.written[d] = 1;
  }

  /** The latest version of `d` is here, or will be without another rank's help. */
  isHere(d: number): boolean {
    return this.data.producer[d] === this.rank || this.data.have[d] === 1;
  }

  /** All ranks want the latest version of `d`. */
  planRead(d: number, run: RunState): void {
    if (this.data.gid[d] === NO_GID) return;
    if (this.data.producer[d] === this.rank) {
      for (let i = 1; i < this.size; i++)
        this.sendTo(d, (this.rank + i) % this.size, run, 0, false);
    } else if (this.data.have[d] === 0) this.receive(d, run, 0, 0, undefined);
  }

  /** The owner of `d` takes the latest version for its value again, wherever that is. */
  planRestore(d: number, run: RunState): void {
    const { data } = this;
    const owner = data.owner[d];
    if (data.gid[d] !== NO_GID) {
      if (this.rank !== owner) {
        if (data.producer[d] === this.rank) this.sendTo(d, owner, run, 0, false);
      } else if (data.have[d] === 0) this.receive(d, run, 0, 0, undefined);
    }
    this.written(d, owner);
  }

  /** All ranks want `d`, which is this rank's and has no value: those that cannot know it are told. */
  refuseRead(d: number, poison: (gid: number, destinations: readonly number[]) => void): void {
    const gid = this.data.gid[d];
    for (let to = 0; to < this.size; to++) {
      if (to !== this.rank) poison(gid, [to, next(this.sendCounts, gid * MAX_RANKS + to)]);
    }
  }

  /** Space the consumer will most likely run on: where its first written datum belongs. */
  private wantedSpace(cls: TaskClassRow, flows: Int32Array, device: number): number {
    if (device >= 0) return device;
    const { modes, kernels } = cls;
    const dir = this.engine.directory;
    let gpu = 0;
    for (let s = 1; s < kernels.length && gpu === 0; s++) if (kernels[s] >= 0) gpu = s;
    if (gpu === 0) return 0;
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.read) continue;
      const d = flows[i];
      const home = dir.home[d] >= 0 ? dir.home[d] : dir.owner(d);
      if (home > 0 && kernels[home] >= 0) return home;
      break;
    }
    return gpu;
  }

  /** The latest version of `d`, which is here, goes to rank `to`. */
  sendTo(d: number, to: number, run: RunState, priority: number, apart: boolean): void {
    const { data, movements } = this;
    if (!data.markSent(d, to)) return;
    const sequence = next(this.sendCounts, data.gid[d] * MAX_RANKS + to);
    this.runs.sent(run, to);
    this.figures.sends++;
    const open = data.openSend[d] === NOT_SENT ? undefined : movements.at(data.openSend[d]);
    if (open !== undefined && !open.started && open.run === run.slot && open.d === d) {
      (apart ? open.apart : open.destinations).push(to, sequence);
      return;
    }
    const send = movements.add({
      role: NetworkRole.send,
      d,
      gid: data.gid[d],
      run: run.slot,
      origin: this.rank,
      key: 0,
      wanted: 0,
      receive: undefined,
      pull: undefined,
    });
    (apart ? send.apart : send.destinations).push(to, sequence);
    data.openSend[d] = send.index;
    this.insert(this.sendClass, send, run, priority, undefined);
  }

  /** The latest version of `d` comes from elsewhere; returns the task that receives it. */
  receive(
    d: number,
    run: RunState,
    priority: number,
    wanted: number,
    pull: { readonly group: PullGroup; readonly gate: number } | undefined,
  ): number {
    const { data, movements } = this;
    const origin = data.producer[d];
    const gid = data.gid[d];
    data.have[d] = 1;
    const sequence = next(this.receiveCounts, gid * MAX_RANKS + origin);
    this.runs.expected(run, origin);
    this.figures.receives++;
    const receive = movements.add({
      role: NetworkRole.receive,
      d,
      gid,
      run: run.slot,
      origin,
      key: keyOf(gid, origin, sequence),
      wanted,
      receive: undefined,
      pull: pull?.group,
    });
    movements.expect(receive);
    if (pull !== undefined) {
      pull.group.members.push(receive);
      pull.group.missing++;
    }
    const after = pull === undefined ? undefined : [pull.gate];
    const task = this.insert(this.receiveClass, receive, run, priority, after);
    // A tree may make this rank pass the datum on; whether it does is in the announcement.
    if (pull === undefined && this.size - 1 >= this.treeFrom) {
      const forward = movements.add({
        role: NetworkRole.forward,
        d,
        gid,
        run: run.slot,
        origin,
        key: 0,
        wanted: 0,
        receive,
        pull: undefined,
      });
      this.insert(this.forwardClass, forward, run, priority, undefined);
    }
    return task;
  }

  private insert(
    cls: TaskClassRow,
    movement: Movement,
    run: RunState,
    priority: number,
    after: readonly number[] | undefined,
  ): number {
    const { oneFlow, oneParam, engine } = this;
    engine.reserveRow(cls);
    oneFlow[0] = movement.d;
    oneParam[0] = movement.index;
    // The consumer's class says what is written; a receive is not the program's write.
    run.movements++;
    return engine.insert(cls, run, oneFlow, oneParam, priority, ANY_DEVICE, after);
  }

  /**
   * Every datum is again what its owner has; transfers are counted from the beginning. What the owner has is no value where
   * the latest version was to come from another rank: nobody can tell whether it was written, and that is not asked for.
   */
  beginEra(): void {
    const { directory: dir, tasks } = this.engine;
    for (let d = 0; d < dir.length; d++) {
      if (dir.live[d] === 0 || !this.data.isBehind(d)) continue;
      markUnwritten(dir, d, (tasks.next - 1) | 0);
    }
    this.sendCounts.clear();
    this.receiveCounts.clear();
    this.data.reset();
  }
}

/** The next number of a counter, from 0. */
function next(counters: Map<number, number>, key: number): number {
  const value = counters.get(key) ?? 0;
  counters.set(key, value + 1);
  return value;
}
