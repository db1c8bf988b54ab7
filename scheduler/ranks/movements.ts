// Movements: the sends, receives and forwards whose tasks are live. This file matches receives with the news that their versions
// will not come, in whichever order they come.
//
// Invariants:
// - such news are handed to exactly one receive, of the era in which the receive was planned. Until that receive exists they
//   are kept, as long as the era lasts;
// - the record of a movement that is over is used again, unless a part refers to it that compares it with the live one: a
//   forward, or a group of pulled inputs.
import {
  type DatumId,
  NO_SPACE,
  NO_TASK,
  type SpaceId,
  type TaskId,
} from '../../devices/handles.js';
import type { NoVersion } from '../../devices/network/keys.js';
import type { AnnouncedPlace } from '../../devices/network/port.js';
import type { Parcel } from '../../stages/parcel.js';
import { NetworkRole, type TaskTable } from '../../stages/task-table.js';
import { ByTransfer } from './by-transfer.js';
import type { PullGroup } from './pull-admission.js';

/** Pairs (rank, sequence) of a movement that has none. */
const NO_PAIRS: readonly number[] = [];

/** One send, receive or forward: the values for which its task row has no columns. */
export interface Movement {
  readonly index: number;
  readonly role: number;
  readonly d: DatumId;
  readonly gid: number;
  /** Its slot; that of the runtime's own run once a send has outlived its run. */
  run: number;
  /** The era in which the movement was planned; of a forward, that of its receive. Only news of the same era match it. */
  readonly era: number;
  /** Number of the run whose program function reads; otherwise 0. */
  readonly program: number;
  readonly origin: number;
  readonly key: number;
  /** Position of the read or restore to which a receive belongs; -1: it belongs to a task. */
  readonly call: number;
  /** Pairs (rank, sequence). */
  readonly destinations: readonly number[];
  /** The same for ranks that pull at their own time: no other rank may wait for them along a tree. */
  readonly apart: readonly number[];
  /** Space on which the consumer will probably run. */
  readonly wanted: SpaceId;
  /** The receive to which a forward belongs. */
  readonly receive: Movement | undefined;
  /** The group of pulled inputs to which it belongs; undefined for a receive that asks at once. */
  readonly pull: PullGroup | undefined;
  /** Its way, once the stages have it. */
  parcel: Parcel | undefined;
  task: TaskId;
  /** Space granted to a receive, -1 before. */
  space: SpaceId;
  /** A receive that was granted memory on a device before its announcement. */
  isAhead: boolean;
  /** The news that its version will not come. */
  noVersion: NoVersion | undefined;
  /** The row is released and waits for news of the version, or for a lane. */
  waits: boolean;
  /** The number of the news that its version has come, of a receive that waits for them; 0: none are to come. */
  expected: number;
  /** Where the version is, once these news have come. */
  from: AnnouncedPlace | undefined;
  /** The command of the receive was withdrawn: it ends soon, without its version. */
  withdrawn: boolean;
  /** Time at which it was started; 0 unless traced. */
  startedAt: number;
  /** A part refers to it that compares it with the live one: a forward, or the group of pulled inputs. */
  isNamed: boolean;
}

/** The values of a new movement. */
type NewMovement = Pick<
  Movement,
  'role' | 'd' | 'gid' | 'run' | 'origin' | 'key' | 'call' | 'wanted' | 'receive' | 'pull'
>;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export class Movements {
  /** Movements whose tasks are live. */
  live = 0;
  /** Number of the run whose program function reads; otherwise 0. */
  program = 0;
  /** The present era; see `beginEra`. */
  era = 0;
  private readonly table: (Movement | undefined)[] = [undefined];
  /** Records that may be used again. Their memory is old, so no collection of garbage moves it. */
  private readonly spare: Writable<Movement>[] = [];
  /** Numbers of movements that are over, without records. */
  private readonly free: number[] = [];
  /** Receives without such news, once some have come in this era: in most eras none come. */
  private byName: ByTransfer<Movement> | undefined;
  /** News without a receive. */
  private readonly early: ByTransfer<NoVersion> = new ByTransfer();

  add(parts: NewMovement): Movement {
    const movement = this.spare.pop() ?? this.blank(parts);
    movement.role = parts.role;
    movement.d = parts.d;
    movement.gid = parts.gid;
    movement.run = parts.run;
    // The era may change in the pass of the receive's insertion.
    movement.era = parts.receive?.era ?? this.era;
    movement.program = this.program;
    movement.origin = parts.origin;
    movement.key = parts.key;
    movement.call = parts.call;
    movement.destinations = NO_PAIRS;
    movement.apart = NO_PAIRS;
    movement.wanted = parts.wanted;
    movement.receive = parts.receive;
    movement.pull = parts.pull;
    movement.parcel = undefined;
    movement.task = NO_TASK;
    movement.space = NO_SPACE;
    movement.isAhead = false;
    movement.noVersion = undefined;
    movement.waits = false;
    movement.expected = 0;
    movement.from = undefined;
    movement.withdrawn = false;
    movement.startedAt = 0;
    this.table[movement.index] = movement;
    this.live++;
    return movement;
  }

  /** A new record; `add` sets its values. All have their fields in the same order, for V8. */
  private blank(parts: NewMovement): Writable<Movement> {
    return {
      index: this.free.pop() ?? this.table.length,
      role: parts.role,
      d: parts.d,
      gid: parts.gid,
      run: parts.run,
      era: this.era,
      program: this.program,
      origin: parts.origin,
      key: parts.key,
      call: parts.call,
      destinations: NO_PAIRS,
      apart: NO_PAIRS,
      wanted: parts.wanted,
      receive: parts.receive,
      pull: parts.pull,
      parcel: undefined,
      task: NO_TASK,
      space: NO_SPACE,
      isAhead: false,
      noVersion: undefined,
      waits: false,
      expected: 0,
      from: undefined,
      withdrawn: false,
      startedAt: 0,
      isNamed: false,
    };
  }

  /** Another pair of a send; `apart`: no other rank may wait for that rank along a tree. */
  addDestination(send: Movement, rank: number, sequence: number, apart: boolean): void {
    const pairs = apart ? send.apart : send.destinations;
    if (pairs !== NO_PAIRS) {
      (pairs as number[]).push(rank, sequence);
      return;
    }
    const written: Writable<Movement> = send;
    // Most sends have one.
    if (apart) written.apart = [rank, sequence];
    else written.destinations = [rank, sequence];
  }

  /** A live movement; undefined when it is over. */
  at(index: number): Movement | undefined {
    return this.table[index];
  }

  /** The movement of the live task in `row`. */
  ofTask(tasks: TaskTable, row: number): Movement {
    return this.table[tasks.params[tasks.paramStart[row]]] as Movement;
  }

  remove(movement: Movement): void {
    if (this.byName !== undefined) this.forget(this.byName, movement);
    this.table[movement.index] = undefined;
    if (movement.isNamed) this.free.push(movement.index);
    else this.spare.push(movement);
    this.live--;
  }

  private forget(byName: ByTransfer<Movement>, movement: Movement): void {
    const { origin, key } = movement;
    if (mayGetNews(movement) && byName.get(origin, key) === movement) byName.delete(origin, key);
  }

  /** A receive is planned: its version may be known not to come. */
  expect(receive: Movement): void {
    const { origin, key } = receive;
    if (this.early.size > 0) {
      receive.noVersion = this.early.get(origin, key);
      if (receive.noVersion !== undefined) {
        this.early.delete(origin, key);
        return;
      }
    }
    this.byName?.set(origin, key, receive);
  }

  /** The receive of a version that will not come; undefined when the program has not planned it yet. */
  refused(news: NoVersion): Movement | undefined {
    const { origin, key } = news;
    const byName = this.names();
    const receive = byName.get(origin, key);
    if (receive === undefined) {
      this.early.set(origin, key, news);
      return undefined;
    }
    byName.delete(origin, key);
    receive.noVersion = news;
    return receive;
  }

  /** The receives of this era without such news. */
  private names(): ByTransfer<Movement> {
    if (this.byName !== undefined) return this.byName;
    const byName = new ByTransfer<Movement>();
    for (const movement of this.all()) {
      const { era, origin, key } = movement;
      if (era === this.era && mayGetNews(movement)) byName.set(origin, key, movement);
    }
    this.byName = byName;
    return byName;
  }

  /** Ends an era: its news and receives no longer match, and transfers are counted from 0 again. */
  beginEra(era: number): void {
    this.era = era;
    this.byName = undefined;
    this.early.clear();
  }

  /** Forgets news that no receive took: those for calls before `first`, or all. */
  forgetEarly(first?: number): void {
    const isMeant = ({ call }: NoVersion): boolean =>
      first === undefined || (call >= 0 && call < first);
    for (const news of [...this.early.values()])
      if (isMeant(news)) this.early.delete(news.origin, news.key);
  }

  /** A receive waits for the version, or will when its task is released. */
  isExpected({ origin, key }: NoVersion): boolean {
    return this.names().get(origin, key) !== undefined;
  }

  /** Whether it is a receive of an earlier era, for which no version will come. */
  isLeftBehind({ role, era, noVersion }: Movement): boolean {
    return role === NetworkRole.receive && era !== this.era && noVersion === undefined;
  }

  /** All live movements. */
  *all(): Generator<Movement> {
    for (const movement of this.table) if (movement !== undefined) yield movement;
  }
}

function mayGetNews({ role, noVersion }: Movement): boolean {
  return role === NetworkRole.receive && noVersion === undefined;
}
