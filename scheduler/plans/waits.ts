// The waits of a plan. A command waits for every earlier command that uses the same bytes, if one of the two writes them.
//
// The order of the commands is that of issue, so every result is the one of the program. The end of an iteration is followed
// by its beginning, so the commands are looked at twice: the second time their predecessors of the iteration before count,
// too. What a queue has waited for once need not be waited for again, because queues work in order.
//
// A command can wait for one event itself. It is the one of the command that was issued last, which probably ends last: then no
// record for another wait stands between that end and the command.
//
// Why the waits of the second look serve every iteration: a command has the same predecessors in each of them, counted from
// the iteration's begin, and in the first only fewer. So at each command the latest event of another queue that has been
// waited for is the same, counted that way, in every iteration but the first, where the awaited events of "the iteration
// before" lie before the play and are over.

import { guards } from '../../devices/guards.js';
import type { QueueId } from '../../devices/handles.js';
import { NodePool } from '../../devices/node-pool.js';
import type { CommandColumns } from '../../devices/planning/commands.js';
import type { Accesses, Ranges } from './ranges.js';

/** The waits of all commands. A command is named by its place in its queue, from 1. */
export interface Waits {
  /** Number of commands per queue. */
  readonly counts: Int32Array;
  /** Place of each command in its queue, from 1. */
  readonly place: Int32Array;
  /** Those of command c: `first[c]` to `first[c + 1]`. The first of them is for the command that was issued last. */
  readonly first: Int32Array;
  readonly queue: Int16Array;
  /** Place of the awaited command in its queue; 0 and below: that of the iteration before, less the queue's count. */
  readonly at: Int32Array;
}

/** Tasks that must follow others although they share no data, per insertion. */
export type ControlEdges = ReadonlyMap<number, readonly number[]>;

const NO_EDGES: ControlEdges = new Map();

class WaitFinder {
  private readonly commands: CommandColumns;
  private readonly accesses: Accesses;
  private readonly ranges: Ranges;
  private readonly control: ControlEdges;
  private readonly afterLast: ControlEdges;
  private readonly counts: Int32Array;
  private readonly place: Int32Array;
  private readonly known: Int32Array;
  private readonly need: Int32Array;
  private readonly needed: number[] = [];
  private readonly writer: Int16Array;
  private readonly written: Int32Array;
  private readonly readers: Int32Array;
  private readonly pool: NodePool<QueueId> = new NodePool<QueueId>();
  /** Command of each insertion. */
  private readonly commandOf: Int32Array;
  /** Command by queue and place. */
  private readonly atPlace: readonly number[][];
  private readonly queues: number;

  constructor(
    commands: CommandColumns,
    accesses: Accesses,
    ranges: Ranges,
    queues: number,
    control: ControlEdges,
    afterLast: ControlEdges,
  ) {
    this.commands = commands;
    this.accesses = accesses;
    this.ranges = ranges;
    this.control = control;
    this.afterLast = afterLast;
    this.queues = queues;
    this.counts = new Int32Array(queues);
    this.place = new Int32Array(commands.count);
    this.atPlace = Array.from({ length: queues }, () => []);
    let insertions = 0;
    for (let c = 0; c < commands.count; c++) {
      this.place[c] = ++this.counts[commands.queue[c]];
      this.atPlace[commands.queue[c]].push(c);
      insertions = Math.max(insertions, commands.insertion[c] + 1);
    }
    this.commandOf = new Int32Array(insertions).fill(-1);
    for (let c = 0; c < commands.count; c++)
      if (commands.insertion[c] >= 0) this.commandOf[commands.insertion[c]] = c;
    this.known = new Int32Array(queues * queues).fill(-(2 ** 31));
    this.need = new Int32Array(queues);
    this.writer = new Int16Array(ranges.segments).fill(-1);
    this.written = new Int32Array(ranges.segments);
    this.readers = new Int32Array(ranges.segments).fill(-1);
  }

  find(): Waits {
    const { commands, counts, place } = this;
    const first = new Int32Array(commands.count + 1);
    const queue: number[] = [];
    const at: number[] = [];
    const looks = guards.planLoop ? 2 : 1;
    for (let look = 2 - looks; look < 2; look++) {
      for (let c = 0; c < commands.count; c++) {
        const q = commands.queue[c];
        this.look(c, q, (look - 1) * counts[q] + place[c], look);
        if (look === 1) {
          first[c] = queue.length;
          this.lastIssuedFirst();
        }
        for (const other of this.needed) {
          const wanted = this.need[other];
          this.known[q * this.queues + other] = wanted;
          if (look === 1) {
            queue.push(other);
            at.push(wanted);
          }
        }
        this.needed.length = 0;
      }
    }
    first[commands.count] = queue.length;
    return { counts, place, first, queue: Int16Array.from(queue), at: Int32Array.from(at) };
  }

  /** Collects what command c must wait for, and registers its accesses. `at`: its place, counted from the second look. */
  private look(c: number, q: number, at: number, look: number): void {
    const { accesses, ranges, commands } = this;
    const end = accesses.first[c + 1];
    for (let i = accesses.first[c]; i < end; i++) {
      const r = accesses.of[i] >> 1;
      const writes = (accesses.of[i] & 1) === 1;
      for (let s = ranges.firstSegment[r]; s <= ranges.lastSegment[r]; s++) {
        if (this.writer[s] >= 0) this.after(q, this.writer[s], this.written[s]);
        if (writes) this.afterReaders(q, s);
      }
    }
    const insertion = commands.insertion[c];
    if (insertion >= 0) {
      this.afterTasks(q, this.control.get(insertion), look - 1);
      this.afterTasks(q, this.afterLast.get(insertion), look - 2);
    }
    for (let i = accesses.first[c]; i < end; i++) this.register(accesses.of[i], q as QueueId, at);
  }

  /** Follows insertions of the iteration `iteration`: 0 is the one that is looked at second. */
  private afterTasks(
    q: number,
    insertions: readonly number[] | undefined,
    iteration: number,
  ): void {
    if (insertions === undefined) return;
    for (const before of insertions) {
      const p = this.commandOf[before];
      const other = this.commands.queue[p];
      this.after(q, other, iteration * this.counts[other] + this.place[p]);
    }
  }

  private afterReaders(q: number, s: number): void {
    const { pool } = this;
    for (let n = this.readers[s]; n >= 0; n = pool.next[n])
      this.after(q, pool.value[n], pool.extra[n]);
  }

  private after(q: number, other: number, at: number): void {
    if (other === q || this.known[q * this.queues + other] >= at) return;
    const listed = this.needed.includes(other);
    if (!listed) this.needed.push(other);
    if (!listed || this.need[other] < at) this.need[other] = at;
  }

  private lastIssuedFirst(): void {
    const { needed } = this;
    let last = 0;
    for (let i = 1; i < needed.length; i++)
      if (this.issued(needed[i]) > this.issued(needed[last])) last = i;
    if (last > 0) [needed[0], needed[last]] = [needed[last], needed[0]];
  }

  /** When the awaited command of a queue is issued, counted from the begin of the iteration. */
  private issued(q: number): number {
    const at = this.need[q];
    return at > 0
      ? this.atPlace[q][at - 1]
      : this.atPlace[q][at + this.counts[q] - 1] - this.commands.count;
  }

  private register(access: number, q: QueueId, at: number): void {
    const { ranges, pool, readers } = this;
    const r = access >> 1;
    for (let s = ranges.firstSegment[r]; s <= ranges.lastSegment[r]; s++) {
      if (access & 1) {
        this.writer[s] = q;
        this.written[s] = at;
        if (readers[s] >= 0) readers[s] = pool.freeList(readers[s]);
        continue;
      }
      let n = readers[s];
      while (n >= 0 && pool.value[n] !== q) n = pool.next[n];
      if (n >= 0) pool.extra[n] = at;
      else readers[s] = pool.push(readers[s], q, at);
    }
  }
}

/** Finds the waits of `commands` on a machine with that many queues. `afterLast`: edges from the iteration before. */
export function findWaits(
  commands: CommandColumns,
  accesses: Accesses,
  ranges: Ranges,
  queues: number,
  control: ControlEdges,
  afterLast: ControlEdges = NO_EDGES,
): Waits {
  return new WaitFinder(commands, accesses, ranges, queues, control, afterLast).find();
}
