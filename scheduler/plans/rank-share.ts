// The part of a plan that one of several ranks plays: its own tasks, and its ends of the messages, in program order.
//
// The ends of messages are inserted into the planner like tasks: a send reads the copy on the host, a receive writes it. So the
// planner brings the data, finds the waits and keeps the memory. In the lists they are commands of lanes.
import { findQueues, Opcode, type QueueInfo } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { type Column, type DatumId, HOST, type QueueId } from '../../devices/handles.js';
import type { LaneMessage } from '../../devices/planning/backend.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';
import { INTERNAL_RUN, RunState } from '../engine/run-state.js';
import { Insertions } from './insertions.js';
import type { MessageFacts, PlannedMessage, PlannedMessages } from './messages.js';

/** The slot that brings the era of an iteration into the commands of messages. Programs cannot name it. */
export const ERA_SLOT = 'era of the iteration';
/** Position of the era among the parameters of a message. */
const ERA = 1;

/** The classes of the ends of messages, in the planning engine. */
interface MessageRows {
  readonly send: TaskClassRow;
  readonly receive: TaskClassRow;
  /** The receiving end of a turn: nothing is written. */
  readonly turn: TaskClassRow;
}

export interface RankShare {
  readonly insertions: Insertions;
  readonly messages: ReadonlyMap<number, PlannedMessage>;
  readonly commands: ReadonlyMap<number, LaneMessage>;
  /** Insertions that must be over in the iteration before. */
  readonly afterLast: ReadonlyMap<number, readonly number[]>;
  /** Data that this rank reads before any task of an iteration writes them. */
  readonly needs: ReadonlySet<DatumId>;
  /** The classes of `messages`. */
  readonly rows: MessageRows;
}

/** The parameters of `send` and `receive`, behind the datum. */
export const SEND_PARAMETERS: readonly string[] = ['bytes', 'era', 'rank', 'key'];
const RECEIVE_PARAMETERS: readonly string[] = ['bytes', 'era', 'key'];

/** Makes the classes of messages. `kernel`: of the host, which does nothing. */
export function messageRows(classes: TaskClassRow[], kernel: number, spaces: number): MessageRows {
  const row = (name: string, mode: number, paramNames: readonly string[]): TaskClassRow => {
    const made: TaskClassRow = {
      id: classes.length,
      name,
      flowNames: ['datum'],
      paramNames: [...paramNames],
      modes: [mode],
      kernels: Int32Array.from({ length: spaces }, (_, s) => (s === HOST ? kernel : -1)),
      body: undefined,
      explain: undefined,
      failureCode: undefined,
    };
    classes.push(made);
    return made;
  };
  return {
    send: row('send', AccessMode.read, SEND_PARAMETERS),
    receive: row('receive', AccessMode.write, RECEIVE_PARAMETERS),
    turn: row('receive', AccessMode.read, RECEIVE_PARAMETERS),
  };
}

/** The lanes of a rank. Short versions have one per rank and direction; long ones take those that are left in turn. */
class LaneChoice {
  private readonly short: readonly QueueId[];
  private readonly long: readonly QueueId[];
  private turn = 0;

  constructor(queues: readonly QueueInfo[]) {
    const lanes = findQueues(queues, ({ kind }) => kind === 'lane');
    const half = Math.ceil(lanes.length / 2);
    this.short = lanes.slice(0, half);
    this.long = lanes.length > half ? lanes.slice(half) : this.short;
  }

  /** Sends and receives have lanes of their own: a receive that waits must not hold back a send. */
  lane(isSend: boolean, { isShort, from, to }: PlannedMessage): QueueId {
    const lanes = isShort ? this.short : this.long;
    const half = Math.ceil(lanes.length / 2);
    const own = isSend ? lanes.slice(0, half) : lanes.slice(half);
    const list = own.length > 0 ? own : lanes;
    return list[(isShort ? (isSend ? to : from) : this.turn++) % list.length];
  }
}

/** Puts the part of a rank together: its tasks and its ends of messages, in program order. */
export class ShareBuilder {
  readonly insertions: Insertions;
  readonly messages: Map<number, PlannedMessage>;
  readonly commands: Map<number, LaneMessage>;
  readonly afterLast: Map<number, readonly number[]> = new Map();
  /** Own number of each insertion of all ranks. */
  private readonly own: Map<number, number> = new Map();
  private readonly rank: number;
  private readonly rows: MessageRows;
  private readonly lanes: LaneChoice;
  private readonly bytesOf: (datum: DatumId) => number;
  /** Short receives by the rank that sends, and the sends to each rank. */
  private readonly received: Map<number, number[]> = new Map();
  private readonly sent: Map<number, number[]> = new Map();

  constructor(
    rank: number,
    rows: MessageRows,
    queues: readonly QueueInfo[],
    bytesOf: (datum: DatumId) => number,
    before?: Pick<RankShare, 'insertions' | 'messages' | 'commands'>,
  ) {
    this.rank = rank;
    this.rows = rows;
    this.lanes = new LaneChoice(queues);
    this.bytesOf = bytesOf;
    this.insertions = before?.insertions.copy() ?? new Insertions();
    this.messages = new Map(before?.messages);
    this.commands = new Map(before?.commands);
    for (const [n, message] of this.messages) this.noteShort(n, message);
  }

  task(all: Insertions, n: number, rankOf: readonly number[], read: ReadInsertion): void {
    const before = (all.after.get(n) ?? []).map((b) => {
      const here = this.own.get(b);
      if (here !== undefined) return here;
      throw followsElsewhere(all.classOf(n).name, rankOf[b]);
    });
    all.read(n, read.run, read);
    const here = this.insertions.add(read, before);
    this.own.set(n, here);
    read.cls.paramNames.forEach((_, parameter) => {
      const slot = all.slot(n, parameter);
      if (slot !== '') this.insertions.leaveOpen({ insertion: here, parameter, slot });
    });
  }

  /** An end of a message; nothing if this rank has none. `read` is overwritten. */
  message(message: PlannedMessage, read: InsertionRecord): void {
    const { datum, from, to, key, isShort, isTurn } = message;
    const isSend = from === this.rank;
    if (!isSend && to !== this.rank) return;
    const bytes = isTurn ? 0 : this.bytesOf(datum);
    const params = isSend ? [bytes, 0, to, key] : [bytes, 0, key];
    read.cls = isSend ? this.rows.send : isTurn ? this.rows.turn : this.rows.receive;
    read.flows[0] = datum;
    read.params.set(params);
    read.priority = 0;
    read.device = HOST;
    const peer = isSend ? to : from;
    // A turn follows all that it acknowledges.
    const before = isTurn && isSend ? (this.received.get(peer) ?? []) : [];
    const here = this.insertions.add(read, before);
    this.insertions.leaveOpen({ insertion: here, parameter: ERA, slot: ERA_SLOT });
    this.messages.set(here, message);
    const opcode = isSend ? (isShort ? Opcode.send : Opcode.deliver) : Opcode.receive;
    this.commands.set(here, { queue: this.lanes.lane(isSend, message), opcode });
    this.noteShort(here, message);
  }

  private noteShort(n: number, { from, to, isShort }: PlannedMessage): void {
    if (!isShort) return;
    const isSend = from === this.rank;
    const ends = isSend ? this.sent : this.received;
    const peer = isSend ? to : from;
    const list = ends.get(peer);
    if (list === undefined) ends.set(peer, [n]);
    else list.push(n);
  }

  /** All is there. */
  share(needs: ReadonlySet<DatumId>): RankShare {
    this.limitRunAhead();
    const { insertions, messages, commands, afterLast, rows } = this;
    return { insertions, messages, commands, afterLast, needs, rows };
  }

  /** A short version waits for the last message from its receiver in the iteration before. */
  private limitRunAhead(): void {
    if (!guards.planRunAhead) return;
    for (const [peer, sends] of this.sent) {
      const last = this.received.get(peer)?.at(-1);
      if (last === undefined) continue;
      for (const n of sends)
        if (this.messages.get(n)?.isTurn === false) this.afterLast.set(n, [last]);
    }
  }
}

/** An insertion that is overwritten again and again. It has room for the parameters of a message. */
interface InsertionRecord {
  cls: TaskClassRow;
  flows: Column<Int32Array, DatumId>;
  params: Float64Array;
  priority: number;
  device: Parameters<Insertions['add']>[0]['device'];
}

type ReadInsertion = InsertionRecord & { run: RunState; after: undefined };

/** The part of rank `rank`. `rankOf`: rank of each insertion; `mostArguments`: of an insertion. */
export function rankShare(
  all: Insertions,
  rankOf: readonly number[],
  planned: PlannedMessages,
  of: {
    readonly rank: number;
    readonly rows: MessageRows;
    readonly queues: readonly QueueInfo[];
    readonly bytesOf: (datum: DatumId) => number;
    readonly mostArguments: number;
  },
): RankShare {
  const builder = new ShareBuilder(of.rank, of.rows, of.queues, of.bytesOf);
  const read = emptyRecord(of.rows, of.mostArguments);
  for (let n = 0; n < all.count; n++) {
    if (rankOf[n] === of.rank) builder.task(all, n, rankOf, read);
    for (const message of planned.after.get(n) ?? []) builder.message(message, read);
  }
  for (const message of planned.turns) builder.message(message, read);
  return builder.share(neededBy(of.rank, planned));
}

/** The data that a rank reads before any task of an iteration writes them. */
export function neededBy(rank: number, { readers }: Pick<MessageFacts, 'readers'>): Set<DatumId> {
  const needs = new Set<DatumId>();
  for (const [datum, ranks] of readers) if (ranks.includes(rank)) needs.add(datum);
  return needs;
}

/** The part with more messages at the end, all of that many bytes. Their insertions are those behind `before`'s. */
export function withMessages(
  before: RankShare,
  more: readonly PlannedMessage[],
  of: { readonly rank: number; readonly queues: readonly QueueInfo[]; readonly bytes: number },
): RankShare {
  const { rows, needs } = before;
  const builder = new ShareBuilder(of.rank, rows, of.queues, () => of.bytes, before);
  const read = emptyRecord(rows, SEND_PARAMETERS.length);
  for (const message of more) builder.message(message, read);
  return builder.share(needs);
}

function emptyRecord({ send }: MessageRows, mostArguments: number): ReadInsertion {
  return {
    cls: send,
    run: new RunState(INTERNAL_RUN),
    flows: new Int32Array(mostArguments) as Column<Int32Array, DatumId>,
    params: new Float64Array(mostArguments),
    priority: 0,
    device: HOST,
    after: undefined,
  };
}

function followsElsewhere(name: string, rank: number): HeadraceError {
  return new HeadraceError(
    'ERR_AFTER_ELSEWHERE',
    `a task of class '${name}' follows a task of rank ${rank} without data, in a plan`,
    {
      task: name,
      rank,
      remedy: 'let the first task write a small datum that the second one reads',
    },
  );
}
