// Movements: the sends, receives and forwards whose tasks are live. This file matches receives with the news that their versions
// will not come, in whichever order they come.
//
// Invariant: such news are handed to exactly one receive, of the era in which the receive was planned. Until that receive
// exists they are kept, as long as the era lasts.
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

/** One send, receive or forward: the values for which its task row has no columns. */
export interface Movement {
  readonly index: number;
  readonly role: number;
  readonly d: DatumId;
  readonly gid: number;
  /** Its slot; that of the runtime's own run once a send has outlived its run. */
  run: number;
  /** The era in which the movement was planned. Only news of the same era match it. */
  readonly era: number;
  /** Number of the run whose program function reads; otherwise 0. */
  readonly program: number;
  readonly origin: number;
  readonly key: number;
  /** Position of the read or restore to which a receive belongs; -1: it belongs to a task. */
  readonly call: number;
  /** Pairs (rank, sequence). */
  readonly destinations: number[];
  /** The same for ranks that pull at their own time: no other rank may wait for them along a tree. */
  readonly apart: number[];
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
}

/** The values of a new movement. */
type NewMovement = Pick<
  Movement,
  'role' | 'd' | 'gid' | 'run' | 'origin' | 'key' | 'call' | 'wanted' | 'receive' | 'pull'
>;

export class Movements {
  /** Movements whose tasks are live. */
  live = 0;
  /** Number of the run whose program function reads; otherwise 0. */
  program = 0;
  /** The present era; see `beginEra`. */
  era = 0;
  private readonly table: (Movement | undefined)[] = [undefined];
  private readonly free: number[] = [];
  /** Receives without such news, and news without a receive. */
  private readonly byName: ByTransfer<Movement> = new ByTransfer();
  private readonly early: ByTransfer<NoVersion> = new ByTransfer();

  add(parts: NewMovement): Movement {
    const index = this.free.pop() ?? this.table.length;
    // Copies each field: spreading is several times slower.
    const movement: Movement = {
      role: parts.role,
      d: parts.d,
      gid: parts.gid,
      run: parts.run,
      era: this.era,
      program: this.program,
      origin: parts.origin,
      key: parts.key,
      call: parts.call,
      destinations: [],
      wanted: parts.wanted,
      receive: parts.receive,
      pull: parts.pull,
      index,
      apart: [],
      task: NO_TASK,
      space: NO_SPACE,
      noVersion: undefined,
      waits: false,
      expected: 0,
      from: undefined,
      withdrawn: false,
      startedAt: 0,
      parcel: undefined,
    };
    this.table[index] = movement;
    this.live++;
    return movement;
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
    const { role, noVersion, origin, key } = movement;
    const mayBeExpected = role === NetworkRole.receive && noVersion === undefined;
    if (mayBeExpected && this.byName.get(origin, key) === movement) this.byName.delete(origin, key);
    this.table[movement.index] = undefined;
    this.free.push(movement.index);
    this.live--;
  }

  /** A receive is planned: its version may be known not to come. */
  expect(receive: Movement): void {
    const { origin, key } = receive;
    receive.noVersion = this.early.get(origin, key);
    if (receive.noVersion === undefined) this.byName.set(origin, key, receive);
    else this.early.delete(origin, key);
  }

  /** The receive of a version that will not come; undefined when the program has not planned it yet. */
  refused(news: NoVersion): Movement | undefined {
    const { origin, key } = news;
    const receive = this.byName.get(origin, key);
    if (receive === undefined) {
      this.early.set(origin, key, news);
      return undefined;
    }
    this.byName.delete(origin, key);
    receive.noVersion = news;
    return receive;
  }

  /** Ends an era: its news and receives no longer match, and transfers are counted from 0 again. */
  beginEra(era: number): void {
    this.era = era;
    this.byName.clear();
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
    return this.byName.get(origin, key) !== undefined;
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
