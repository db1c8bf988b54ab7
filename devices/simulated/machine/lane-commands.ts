// What the commands of lanes do: sends and announcements leave, receives take their letters or fetch what a letter announces,
// and deliveries wait for their receivers. The order of commands within a lane is that of all queues (executor.ts).
//
// Invariants: a command ends once; it ends as cancelled only if its run is, or if the engine has withdrawn it; a receive
// whose bytes are under way ends with them.
import { Status } from '../../backend.js';
import type { QueueId } from '../../handles.js';
import { NetOutcome, VisibleTo, WireMode } from '../../network/port.js';
import { tree } from '../../network/tree.js';
import { ARRIVAL_ARGUMENT, arrivalNumber, arrivalOf } from '../../network/ways.js';
import type { Carrier, LanePlace, Lanes, Letter, Offered } from './lanes.js';
import { Op, type Records } from './records.js';
import type { Watcher } from './watcher.js';

/** Arguments of an offer before its destinations. */
const OFFER_ARGS = 7;
/** Time in which a lane copies a letter's bytes. */
const LETTER_NS = 100;

type Arrival = Pick<LanePlace, 'space' | 'mode' | 'scope'>;

/** The queues, as the commands of lanes see them. */
export interface LaneQueues {
  readonly records: Records;
  readonly cancelled: Uint8Array;
  readonly isDead: boolean;
  readonly time: number;
  /** Bytes of host space, where memory is real. */
  readonly host: Uint8Array | undefined;
  /** The first record of the command that a lane is about to carry out. */
  head(queue: QueueId): number;
  /** That command ends about `ns` nanoseconds after `at`. */
  endsLater(queue: QueueId, at: number, ns: number): void;
}

export class LaneCommands {
  private readonly queues: LaneQueues;
  private readonly records: Records;
  private readonly lanes: Lanes;
  private readonly watcher: Watcher | undefined;
  /** Letters that lanes are writing, by queue; of announced versions with the outcome of their transfer. */
  private readonly letters: ({ letter: Letter; outcome?: number } | undefined)[] = [];
  /** Deliveries that wait for their receivers: their runs, and the numbers of their offers on the wire. */
  private readonly delivering: Map<QueueId, { run: number; offer: number | undefined }> = new Map();

  constructor(queues: LaneQueues, lanes: Lanes, watcher: Watcher | undefined) {
    this.queues = queues;
    this.records = queues.records;
    this.lanes = lanes;
    this.watcher = watcher;
  }

  /** A lane sends when all failures are known, or receives when its letter is there. A cancelled run's do nothing. */
  start(q: QueueId, slot: number, at: number): void {
    const { records, lanes } = this;
    const isSend = records.op[slot] !== Op.receive;
    const isWithdrawn = !isSend && lanes.isWithdrawn(q, this.lastOf(q, slot));
    const isCancelled = isWithdrawn || this.queues.cancelled[records.run[slot]] !== 0;
    if (isWithdrawn) {
      const [, , era, key] = records.argumentsOf(q, slot);
      lanes.refuse(era, key);
    }
    if (!isCancelled && isSend && lanes.unhandled) {
      lanes.hold(q);
      return;
    }
    if (!isCancelled && !isSend) {
      const [, , era, key] = records.argumentsOf(q, slot);
      const letter = lanes.take(era, key, q, records.run[slot]);
      if (letter === undefined) return;
      this.takeLetter(q, slot, at, letter);
      return;
    }
    if (!isCancelled && records.op[slot] === Op.deliver) this.deliver(q, slot);
    else this.end(q, slot, at, isCancelled);
  }

  /** A delivery announces its version. It ends when no rank needs the bytes any more. */
  private deliver(q: QueueId, slot: number): void {
    const { records, lanes, watcher } = this;
    const { offers, carrier } = lanes;
    const [offset, bytes, era, rank, key] = records.argumentsOf(q, slot);
    this.delivering.set(q, { run: records.run[slot], offer: undefined });
    // A later era or the loss of a rank: the end of the run ends it.
    if (era < lanes.era || offers.refusal !== undefined || carrier === undefined) return;
    const seq = this.queues.head(q);
    watcher?.started(q, seq);
    const knowledge = watcher?.offers(q, seq, 0, offset, bytes);
    const id = offers.open(-1 - q, { space: 0, offset, bytes }, 1);
    this.delivering.set(q, { run: records.run[slot], offer: id });
    const offered = { id, space: 0, offset, children: [] };
    const from = carrier.rank;
    carrier.carry(rank, { from, era, key, bytes, payload: undefined, knowledge, offered });
  }

  /** The offer of a delivery has departed. */
  delivered(q: QueueId, outcome: number): void {
    const delivery = this.delivering.get(q);
    if (delivery === undefined || this.queues.isDead) return;
    const isCancelled = this.queues.cancelled[delivery.run] !== 0;
    if (outcome !== NetOutcome.ok && !isCancelled) {
      this.delivering.set(q, { run: delivery.run, offer: undefined });
      return;
    }
    this.delivering.delete(q);
    this.end(q, this.headOf(q), this.queues.time, isCancelled);
  }

  /** The run is cancelled: its deliveries end, those whose bytes are under way a little later. */
  private endDeliveries(run: number, at: number): void {
    for (const [q, delivery] of [...this.delivering]) {
      if (delivery.run !== run) continue;
      if (delivery.offer !== undefined) {
        this.lanes.offers.withdraw(delivery.offer, NetOutcome.cancelled);
        continue;
      }
      this.delivering.delete(q);
      this.end(q, this.headOf(q), at, true);
    }
  }

  /** The letter of a receive has come. A version that it only announces is fetched. */
  private takeLetter(q: QueueId, slot: number, at: number, letter: Letter): void {
    const { records, lanes, watcher } = this;
    const { offered } = letter;
    const [offset, bytes] = records.argumentsOf(q, slot);
    const run = records.run[slot];
    if (offered === undefined || letter.bytes !== bytes) {
      lanes.decline(letter);
      this.letters[q] = { letter };
      this.end(q, slot, at, false);
      return;
    }
    const seq = this.queues.head(q);
    const { space, mode, scope } = this.chosen(records.argumentsOf(q, slot), letter.from, offered);
    watcher?.started(q, seq);
    watcher?.fetches(q, seq, space, offset, bytes);
    lanes.fetches(letter, offered.children, q, run);
    lanes.carrier?.fetch(
      letter,
      { space, offset, mode, scope },
      (outcome) => {
        if (this.queues.isDead) return;
        lanes.fetched(q);
        watcher?.fetched(space, offset, bytes);
        this.letters[q] = { letter, outcome };
        const isWithdrawn = lanes.isWithdrawn(q, this.lastOf(q, slot));
        this.end(q, slot, this.queues.time, isWithdrawn || this.queues.cancelled[run] !== 0);
      },
      () => this.refused(q),
    );
  }

  /** Where and how announced bytes come. A receive that leaves it open gets the number of its arrival now. */
  private chosen(args: Float64Array, from: number, { space: fromSpace }: Offered): Arrival {
    const place = placeOf(args);
    const { carrier } = this.lanes;
    if (place.mode !== WireMode.open || carrier === undefined) return place;
    const mode = carrier.wayOf(from, fromSpace, place.space);
    const scope = mode === WireMode.direct ? place.scope : VisibleTo.none;
    args[ARRIVAL_ARGUMENT] = arrivalNumber(place.space, mode, scope);
    return { space: place.space, mode, scope };
  }

  /** The bytes for which a lane has asked will not come. */
  private refused(q: QueueId): void {
    if (this.queues.isDead) return;
    const { records, lanes, watcher } = this;
    const slot = this.headOf(q);
    const args = records.argumentsOf(q, slot);
    watcher?.fetched(placeOf(args).space, args[0], args[1]);
    lanes.refused(q);
    const run = records.run[slot];
    if (this.queues.cancelled[run] !== 0) this.runIsCancelled(run, this.queues.time);
    else if (lanes.isWithdrawn(q, this.lastOf(q, slot)) && lanes.stopWaiting(q))
      this.end(q, slot, this.queues.time, true);
  }

  /** The receive that is command `seq` of a lane ends as cancelled, unless its bytes have come. */
  withdraw(q: QueueId, seq: number): void {
    if (this.lanes.withdraw(q, seq) && !this.queues.isDead)
      this.end(q, this.headOf(q), this.queues.time, true);
  }

  /** Another rank is lost: no bytes come any more, and none leave. */
  lost(): void {
    if (this.queues.isDead) return;
    for (const q of this.lanes.lost()) this.refused(q);
    this.lanes.offers.close(NetOutcome.lost);
  }

  private end(q: QueueId, slot: number, at: number, isCancelled: boolean): void {
    const { records } = this;
    records.outcome[slot] = isCancelled ? Status.cancelled : Status.ok;
    records.startAt[slot] = at;
    this.queues.endsLater(q, at, LETTER_NS);
  }

  /** The slot of the record that a lane is about to carry out. */
  private headOf(q: QueueId): number {
    return this.records.slotOf(q, this.queues.head(q));
  }

  /** The number of a command: that of its last record. */
  private lastOf(q: QueueId, slot: number): number {
    return (this.queues.head(q) + this.records.span[slot] - 1) | 0;
  }

  /** A letter has come to this rank. */
  letterArrives(letter: Letter): void {
    if (this.queues.isDead) return;
    const q = this.lanes.arrives(letter);
    if (q === undefined) return;
    this.takeLetter(q, this.headOf(q), this.queues.time, letter);
  }

  /** The run was cancelled at `at`: its messages end. */
  runIsCancelled(run: number, at: number): void {
    if (this.queues.isDead) return;
    const { receives, held } = this.lanes.cancel(run);
    for (const q of receives) this.end(q, this.headOf(q), at, true);
    for (const q of held) this.start(q, this.headOf(q), at);
    this.endDeliveries(run, at);
  }

  /** The engine has handled that many failures. */
  handles(count: number, at: number): void {
    if (this.queues.isDead) return;
    for (const q of this.lanes.handles(count)) this.start(q, this.headOf(q), at);
  }

  /** The effect of a message on memory. */
  carryOut(q: QueueId, slot: number, seq: number): void {
    const { records, watcher, lanes } = this;
    const { host } = this.queues;
    const args = records.argumentsOf(q, slot);
    const [offset, bytes, era] = args;
    const received = this.letters[q];
    this.letters[q] = undefined;
    if (records.op[slot] === Op.offer) {
      this.announce(q, seq, args, records.outcome[slot] === Status.ok);
      return;
    }
    if (received?.outcome !== undefined) {
      const { letter, outcome } = received;
      watcher?.receives(q, seq, placeOf(args).space, offset, bytes, letter.knowledge, true);
      if (outcome !== NetOutcome.ok && records.outcome[slot] === Status.ok)
        records.outcome[slot] = Status.transfer - outcome;
      return;
    }
    if (records.outcome[slot] !== Status.ok || records.op[slot] === Op.deliver) return;
    if (records.op[slot] === Op.send) {
      const knowledge = watcher?.sends(q, seq, offset, bytes);
      const payload = host?.slice(offset, offset + bytes);
      const { carrier } = lanes;
      for (let i = 3; carrier !== undefined && i < args.length; i += 2)
        carrier.carry(args[i], {
          from: carrier.rank,
          era,
          key: args[i + 1],
          bytes,
          payload,
          knowledge,
          offered: undefined,
        });
      return;
    }
    if (received === undefined) return;
    const { letter } = received;
    if (letter.bytes !== bytes) records.outcome[slot] = Status.truncated;
    else {
      watcher?.receives(q, seq, 0, offset, bytes, letter.knowledge, false);
      if (letter.payload !== undefined) host?.set(letter.payload, offset);
    }
  }

  /** Tells other ranks of a long version: those that the command names, or those to which it goes on. */
  private announce(q: QueueId, seq: number, args: Float64Array, isOk: boolean): void {
    const { lanes, watcher } = this;
    const { offers, carrier } = lanes;
    const [offset, bytes, era, number, key, space] = args;
    const refusal = isOk && era >= lanes.era ? offers.refusal : NetOutcome.cancelled;
    const given = Array.from(args.subarray(OFFER_ARGS));
    const pairs = given.length > 0 ? given : lanes.takeBranches(era, key);
    if (refusal !== undefined || pairs.length === 0 || carrier === undefined) {
      offers.ends(number, refusal ?? NetOutcome.ok);
      return;
    }
    const knowledge = watcher?.offers(q, seq, space, offset, bytes);
    const branches = tree(pairs, carrier.treeFrom);
    const id = offers.open(number, { space, offset, bytes }, branches.length);
    announceTo(carrier, branches, { id, space, offset, era, bytes, knowledge });
  }

  /** A rank needs no bytes of an offer: this one serves those to which that one should have passed them on. */
  declined({ era, bytes, knowledge, offered }: Letter): void {
    const { offers, carrier, era: present } = this.lanes;
    if (this.queues.isDead || carrier === undefined || offered === undefined) return;
    const { id, children, space, offset } = offered;
    const branches = era >= present ? tree(children, carrier.treeFrom) : [];
    if (branches.length > 0 && offers.extend(id, branches.length))
      announceTo(carrier, branches, { id, space, offset, era, bytes, knowledge });
    offers.declined(id);
  }
}

/** Tells the first rank of each branch of an offer. The others of the branch get the version from that rank. */
function announceTo(
  carrier: Carrier,
  branches: readonly number[][],
  offer: Pick<Letter, 'era' | 'bytes' | 'knowledge'> & Omit<Offered, 'children'>,
): void {
  const { id, space, offset, era, bytes, knowledge } = offer;
  const from = carrier.rank;
  for (const [rank, key, ...children] of branches) {
    const offered = { id, space, offset, children };
    carrier.carry(rank, { from, era, key, bytes, payload: undefined, knowledge, offered });
  }
}

/** Where and how the bytes of a receive come, by its arguments. */
function placeOf(args: Float64Array): Arrival {
  const isAnnounced = args.length > ARRIVAL_ARGUMENT;
  if (!isAnnounced) return { space: 0, mode: WireMode.direct, scope: VisibleTo.none };
  return arrivalOf(args[ARRIVAL_ARGUMENT]);
}
