// Movements: the sends, receives and forwards whose tasks are live, and the matching of receives with announcements,
// whichever comes first.
//
// Invariant: an announcement is handed to exactly one receive; until that exists it is kept.
import type { Announcement } from '../devices/network-announcement.js';
import type { PullGroup } from './rank-pulls.js';

/** One send, receive or forward: what its task row has no columns for. */
export interface Movement {
  readonly index: number;
  readonly role: number;
  readonly d: number;
  readonly gid: number;
  readonly run: number;
  /** Of a read by the program function of a run: the run's number; else 0. */
  readonly program: number;
  readonly origin: number;
  readonly key: number;
  /** Pairs (rank, sequence). */
  readonly destinations: number[];
  /** The same for those that ask in their own time: nobody else may wait for them along a tree. */
  readonly apart: number[];
  /** Space the consumer is expected to run on. */
  readonly wanted: number;
  /** The receive a forward belongs to. */
  readonly receive: Movement | undefined;
  /** The pulled inputs it belongs to; undefined for a receive that asks at once. */
  readonly pull: PullGroup | undefined;
  task: number;
  /** Space granted to a receive, -1 before. */
  space: number;
  announcement: Announcement | undefined;
  /** The row is released and waits for the announcement. */
  waits: boolean;
  started: boolean;
  /** What it asked for was withdrawn: the run has failed elsewhere, and why is on its way. */
  refused: boolean;
  /** When it was started; 0 unless traced. */
  startedAt: number;
}

/** What a movement is made of. */
export type NewMovement = Pick<
  Movement,
  'role' | 'd' | 'gid' | 'run' | 'origin' | 'key' | 'wanted' | 'receive' | 'pull'
>;

export class Movements {
  /** Movements whose tasks are live. */
  live = 0;
  /** Number of the run whose program function reads; 0 at other times. */
  program = 0;
  private readonly table: (Movement | undefined)[] = [undefined];
  private readonly free: number[] = [];
  private readonly byKey: Map<number, Movement> = new Map();
  private readonly early: Map<number, Announcement> = new Map();

  add(parts: NewMovement): Movement {
    const index = this.free.pop() ?? this.table.length;
    // Field by field: spreading is several times slower.
    const movement: Movement = {
      role: parts.role,
      d: parts.d,
      gid: parts.gid,
      run: parts.run,
      program: this.program,
      origin: parts.origin,
      key: parts.key,
      destinations: [],
      wanted: parts.wanted,
      receive: parts.receive,
      pull: parts.pull,
      index,
      apart: [],
      task: 0,
      space: -1,
      announcement: undefined,
      waits: false,
      started: false,
      refused: false,
      startedAt: 0,
    };
    this.table[index] = movement;
    this.live++;
    return movement;
  }

  /** A movement that is live; undefined when it is over. */
  at(index: number): Movement | undefined {
    return this.table[index];
  }

  remove(movement: Movement): void {
    if (this.byKey.get(movement.key) === movement) this.byKey.delete(movement.key);
    this.table[movement.index] = undefined;
    this.free.push(movement.index);
    this.live--;
  }

  /** A receive takes its announcement, or waits for it. */
  expect(receive: Movement): void {
    receive.announcement = this.early.get(receive.key);
    if (receive.announcement === undefined) this.byKey.set(receive.key, receive);
    else this.early.delete(receive.key);
  }

  /** The receive an announcement is for; undefined when the program has not come to it yet. */
  announced(announcement: Announcement): Movement | undefined {
    const receive = this.byKey.get(announcement.key);
    if (receive === undefined) {
      this.early.set(announcement.key, announcement);
      return undefined;
    }
    this.byKey.delete(announcement.key);
    receive.announcement = announcement;
    return receive;
  }

  /** Announcements nobody came to are of an era that is over. */
  forgetEarly(): void {
    this.early.clear();
  }

  /** All that are live. */
  *all(): Generator<Movement> {
    for (const movement of this.table) if (movement !== undefined) yield movement;
  }
}
