// Movements: the sends, receives and forwards whose tasks are live. This file matches receives with announcements, in
// whichever order they come.
//
// Invariant: an announcement is handed to exactly one receive, of the era in which the receive was planned. Until that
// receive exists the announcement is kept, as long as the era lasts.
import {
  type DatumId,
  NO_SPACE,
  NO_TASK,
  type SpaceId,
  type TaskId,
} from '../../devices/handles.js';
import type { Announcement } from '../../devices/network/announcement.js';
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
  /** The era in which the movement was planned. Only announcements of the same era match it. */
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
  /** A command of a lane carries it (small-messages.ts). */
  readonly onLane: boolean;
  /** Its way, once it is commanded or about to be. */
  parcel: Parcel | undefined;
  task: TaskId;
  /** Space granted to a receive, -1 before. */
  space: SpaceId;
  announcement: Announcement | undefined;
  /** The row is released and waits for the announcement. */
  waits: boolean;
  /** A receive has a lane. */
  hasLane: boolean;
  /** The number of the news that its version has come, of a receive on a lane that waits for them; 0: none are to come. */
  expected: number;
  /** Where the version is, once these news have come. */
  from: AnnouncedPlace | undefined;
  started: boolean;
  /** A send goes on after its run has failed. */
  outlived: boolean;
  /** The command of the receive was withdrawn: it ends soon, without its version. */
  withdrawn: boolean;
  /** The offer was withdrawn: the run has failed on another rank, and the message with the reason is under way. */
  refused: boolean;
  /** Time at which it was started; 0 unless traced. */
  startedAt: number;
}

/** The values of a new movement. */
type NewMovement = Pick<
  Movement,
  | 'role'
  | 'd'
  | 'gid'
  | 'run'
  | 'origin'
  | 'key'
  | 'call'
  | 'wanted'
  | 'receive'
  | 'pull'
  | 'onLane'
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
  /** Receives without an announcement, and announcements without a receive. */
  private readonly byName: ByTransfer<Movement> = new ByTransfer();
  private readonly early: ByTransfer<Announcement> = new ByTransfer();

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
      onLane: parts.onLane,
      index,
      apart: [],
      task: NO_TASK,
      space: NO_SPACE,
      announcement: undefined,
      waits: false,
      hasLane: false,
      expected: 0,
      from: undefined,
      started: false,
      outlived: false,
      withdrawn: false,
      refused: false,
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
    const { role, announcement, origin, key } = movement;
    const mayBeExpected = role === NetworkRole.receive && announcement === undefined;
    if (mayBeExpected && this.byName.get(origin, key) === movement) this.byName.delete(origin, key);
    this.table[movement.index] = undefined;
    this.free.push(movement.index);
    this.live--;
  }

  /** A receive takes its announcement, or waits for it. */
  expect(receive: Movement): void {
    const { origin, key } = receive;
    receive.announcement = this.early.get(origin, key);
    if (receive.announcement === undefined) this.byName.set(origin, key, receive);
    else this.early.delete(origin, key);
  }

  /** The receive for an announcement; undefined when the program has not planned it yet. */
  announced(announcement: Announcement): Movement | undefined {
    const { origin, key } = announcement;
    const receive = this.byName.get(origin, key);
    if (receive === undefined) {
      this.early.set(origin, key, announcement);
      return undefined;
    }
    this.byName.delete(origin, key);
    receive.announcement = announcement;
    return receive;
  }

  /**
   * Ends an era: its announcements and receives no longer match, and transfers are counted from 0 again. Returns the
   * announcements that no receive took.
   */
  beginEra(era: number): Announcement[] {
    this.era = era;
    this.byName.clear();
    return this.takeEarly();
  }

  /** Removes announcements that no receive took, and returns them: those for calls before `first`, or all. */
  takeEarly(first?: number): Announcement[] {
    const taken = [...this.early.values()].filter(
      ({ call }) => first === undefined || (call >= 0 && call < first),
    );
    for (const { origin, key } of taken) this.early.delete(origin, key);
    return taken;
  }

  /** A receive waits for the announcement, or will when its task is released. */
  isExpected({ origin, key }: Announcement): boolean {
    return this.byName.get(origin, key) !== undefined;
  }

  /** Whether it is a receive of an earlier era, for which no announcement will come. */
  isLeftBehind({ role, era, announcement }: Movement): boolean {
    return role === NetworkRole.receive && era !== this.era && announcement === undefined;
  }

  /** All live movements. */
  *all(): Generator<Movement> {
    for (const movement of this.table) if (movement !== undefined) yield movement;
  }
}
