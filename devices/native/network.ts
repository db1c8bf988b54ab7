// The network port over MPI: it writes records straight into the rings of the comm thread (native/mpi).
// Invariant: the engine never waits for the comm thread except for room in the command ring. The comm thread always
// empties that ring.

import {
  NetCommand,
  NetEvent,
  NetLimit,
  NetRecord,
  type NetSession,
  NetWord,
} from '../../native/mpi.js';
import { HeadraceError } from '../errors.js';
import { type NetworkPort, type NetworkSink, VisibleTo } from '../network/port.js';
import type { ExportedSpace } from './description.js';
import { EndInTime } from './end-in-time.js';

/** Chunks of one staged transfer that are under way at a time. */
export const CHUNKS_IN_FLIGHT = 4;
/** Bytes of a short message. */
const SHORT = 512;
/** The comm thread takes commands within microseconds unless it is stuck in the MPI library. */
const PATIENCE_MS = 30_000;

/** MPICH's launcher sends SIGUSR1 when a rank dies; in Node that would open the debugger's port. */
function ignore(): void {}

export class NativeNetwork implements NetworkPort {
  readonly rank: number;
  readonly size: number;
  readonly longestMessage: number = NetLimit.message;
  readonly library: string;
  /** Thread level that MPI granted. */
  readonly threadLevel: string;
  readonly gpuAware: boolean;
  readonly crowded: boolean;
  readonly hostOnly: boolean;
  /** Why the MPI library does not get memory of real GPUs, and why a peer's cannot be opened; '' if there is no reason. */
  readonly directProblem: string;
  readonly mappingProblem: string;

  private readonly spaces: readonly ExportedSpace[];
  private readonly session: NetSession;
  private readonly words: Int32Array;
  private readonly commands: Int32Array;
  private readonly commandNumbers: Float64Array;
  private readonly events: Int32Array;
  private readonly eventNumbers: Float64Array;
  private readonly outboxWords: Int32Array;
  private published = 0;
  private taken = 0;
  private dirty = false;
  private lanesDirty = false;
  /** Position behind the last message in the outbox. */
  private outboxPosition = 0;
  private isLost = false;
  private over: (() => void) | undefined;
  private readonly ending: EndInTime;
  /** Longest wait for room in the ring of commands, in milliseconds. */
  private readonly patience: number;
  private closing: Promise<void> | undefined;

  constructor(
    session: NetSession,
    spaces: readonly ExportedSpace[],
    crowded: boolean,
    directProblem: string,
    patience: number = PATIENCE_MS,
  ) {
    this.session = session;
    this.patience = patience;
    this.spaces = spaces;
    this.directProblem = directProblem;
    this.mappingProblem = session.opened.mappingProblem;
    this.crowded = crowded;
    this.hostOnly = session.opened.peers.every(({ reachable }) => reachable.length === 1);
    this.rank = session.facts.rank;
    this.size = session.facts.size;
    this.library = session.facts.library;
    this.threadLevel = session.facts.threadLevel;
    this.gpuAware = session.facts.gpuAware;
    this.words = session.words;
    this.commands = session.commands;
    this.commandNumbers = new Float64Array(
      session.commands.buffer,
      session.commands.byteOffset,
      session.commands.length / 2,
    );
    const { outbox } = session;
    this.outboxWords = new Int32Array(outbox.buffer, outbox.byteOffset, outbox.length >> 2);
    this.ending = new EndInTime(session.deadline);
    process.on('SIGUSR1', ignore);
    this.events = session.events;
    this.eventNumbers = new Float64Array(
      session.events.buffer,
      session.events.byteOffset,
      session.events.length / 2,
    );
  }

  mappable(rank: number, space: number): boolean {
    return this.session.opened.peers[rank]?.mappable[space] === true;
  }

  reachable(rank: number, space: number): boolean {
    return this.session.opened.peers[rank]?.reachable[space] === true;
  }

  /** Whether this rank writes its short letters into memory of `rank`. */
  writesTo(rank: number): boolean {
    return this.session.opened.peers[rank]?.mailbox === true;
  }

  /** Ranks of this host, this one included. */
  neighbours(): number[] {
    return this.session.opened.peers.flatMap(({ sameHost }, rank) => (sameHost ? [rank] : []));
  }

  ordering(space: number): number {
    return this.spaces[space]?.writeOrdering ?? VisibleTo.none;
  }

  setWays(way: (rank: number, fromSpace: number, space: number) => number): void {
    const { ways } = this.session;
    const own = this.spaces.length;
    for (let rank = 0; rank < this.size; rank++)
      for (let from = 0; from < NetLimit.spaces; from++)
        for (let space = 0; space < own; space++)
          ways[(rank * NetLimit.spaces + from) * own + space] = way(rank, from, space);
  }

  post(rank: number, bytes: Uint8Array): boolean {
    const { length } = bytes;
    const padded = (length + 7) & ~7;
    const at = this.outboxPosition & (NetLimit.ring - 1);
    const skip = at + padded > NetLimit.ring ? NetLimit.ring - at : 0;
    const used = (this.outboxPosition - Atomics.load(this.words, NetWord.outboxFreed)) | 0;
    if (used + skip + padded > NetLimit.ring) return false;
    const offset = skip > 0 ? 0 : at;
    this.write(bytes, offset);
    this.outboxPosition = (this.outboxPosition + skip + padded) | 0;
    const c = this.next(NetCommand.message, rank, 0);
    this.commands[c + NetRecord.position] = this.outboxPosition;
    this.commandNumbers[(c >> 1) + NetRecord.offset] = offset;
    this.commandNumbers[(c >> 1) + NetRecord.size] = length;
    return true;
  }

  /** Call it before `publish`, and the backend's `publish` before that: the comm thread then looks through all lanes. */
  commanded(): void {
    this.lanesDirty = true;
    this.dirty = true;
  }

  beginEra(era: number): void {
    const c = this.next(NetCommand.era, 0, 0);
    this.commands[c + NetRecord.tag] = era;
  }

  want(era: number, key: number): void {
    const c = this.next(NetCommand.want, 0, 0);
    this.commands[c + NetRecord.tag] = era;
    this.commandNumbers[(c >> 1) + NetRecord.offset] = key;
  }

  declineBefore(era: number): void {
    const c = this.next(NetCommand.decline, 0, 0);
    this.commands[c + NetRecord.tag] = era;
  }

  withdraw(lane: number, sequence: number): void {
    const c = this.next(NetCommand.withdraw, 0, lane);
    this.commands[c + NetRecord.tag] = sequence;
  }

  refuse(era: number, key: number): void {
    const c = this.next(NetCommand.refuse, 0, 0);
    this.commands[c + NetRecord.tag] = era;
    this.commandNumbers[(c >> 1) + NetRecord.offset] = key;
  }

  refuseCalls(from: number, until: number, above: number): void {
    const c = this.next(NetCommand.refuseCalls, 0, 0);
    this.commands[c + NetRecord.tag] = from;
    this.commandNumbers[(c >> 1) + NetRecord.size] = until;
    this.commandNumbers[(c >> 1) + NetRecord.offset] = above;
  }

  expect(era: number, key: number, number: number): void {
    const c = this.next(NetCommand.expect, 0, number);
    this.commands[c + NetRecord.tag] = era;
    this.commandNumbers[(c >> 1) + NetRecord.offset] = key;
  }

  abandon(): void {
    this.next(NetCommand.abandon, 0, 0);
  }

  publish(): void {
    if (!this.dirty) return;
    this.dirty = false;
    Atomics.store(this.words, NetWord.commandsPublished, this.published);
    if (this.lanesDirty) {
      this.lanesDirty = false;
      Atomics.add(this.words, NetWord.lanesPublished, 1);
    }
    if (Atomics.load(this.words, NetWord.sleeping) !== 0) this.session.wake();
  }

  due(): boolean {
    return Atomics.load(this.words, NetWord.eventsPublished) !== this.taken;
  }

  poll(sink: NetworkSink): boolean {
    const published = Atomics.load(this.words, NetWord.eventsPublished);
    if (published === this.taken) return false;
    const { events, eventNumbers } = this;
    let inboxPosition = 0;
    let messages = 0;
    while (this.taken !== published) {
      const e = (this.taken & (NetLimit.records - 1)) * NetRecord.words;
      const n = e >> 1;
      switch (events[e + NetRecord.kind]) {
        case NetEvent.message: {
          const offset = eventNumbers[n + NetRecord.offset];
          const bytes = eventNumbers[n + NetRecord.size];
          inboxPosition = events[e + NetRecord.position];
          messages++;
          sink.message(
            events[e + NetRecord.rank],
            this.session.inbox.subarray(offset, offset + bytes),
          );
          break;
        }
        case NetEvent.departed:
          sink.departed(
            events[e + NetRecord.request],
            events[e + NetRecord.status],
            eventNumbers[n + NetRecord.start],
            eventNumbers[n + NetRecord.end],
            events[e + NetRecord.tag],
          );
          break;
        case NetEvent.came:
          sink.came(events[e + NetRecord.request], {
            rank: events[e + NetRecord.rank],
            space: events[e + NetRecord.space],
            forwards: events[e + NetRecord.tag] !== 0,
          });
          break;
        case NetEvent.lost:
          this.isLost = true;
          sink.lost(events[e + NetRecord.rank]);
          this.over?.();
          break;
        case NetEvent.closed:
          this.over?.();
          break;
      }
      this.taken = (this.taken + 1) | 0;
    }
    Atomics.store(this.words, NetWord.eventsTaken, this.taken);
    if (messages > 0) Atomics.store(this.words, NetWord.inboxFreed, inboxPosition);
    return true;
  }

  setQuiet(quiet: boolean): void {
    Atomics.store(this.words, NetWord.quiet, quiet ? 1 : 0);
  }

  counters(): { messagesSent: number; messagesReceived: number; flushes: number } {
    return {
      messagesSent: Atomics.load(this.words, NetWord.messagesSent),
      messagesReceived: Atomics.load(this.words, NetWord.messagesReceived),
      flushes: Atomics.load(this.words, NetWord.flushes),
    };
  }

  close(): Promise<void> {
    this.closing ??= this.closeInOrder();
    return this.closing;
  }

  private async closeInOrder(): Promise<void> {
    const sink: NetworkSink = {
      message: () => {},
      departed: () => {},
      came: () => {},
      lost: () => {},
    };
    if (!this.isLost) {
      let isOver = false;
      this.over = () => {
        isOver = true;
      };
      this.next(NetCommand.close, 0, 0);
      this.publish();
      while (!isOver) {
        this.poll(sink);
        if (!isOver) await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
    this.ending.leave();
    process.off('SIGUSR1', ignore);
    this.session.end();
  }

  /** Puts a message into the outbox. Short ones word by word, because `set` into shared memory has a fixed cost. */
  private write(bytes: Uint8Array, offset: number): void {
    const { length, byteOffset } = bytes;
    if (length > SHORT || ((length | byteOffset) & 3) !== 0) {
      this.session.outbox.set(bytes, offset);
      return;
    }
    const words = new Int32Array(bytes.buffer, byteOffset, length >> 2);
    const { outboxWords } = this;
    const first = offset >> 2;
    for (let i = 0; i < words.length; i++) outboxWords[first + i] = words[i];
  }

  /**
   * Takes the next command slot, waiting for room if need be; returns its first word.
   * @throws HeadraceError `ERR_INTERNAL` when the comm thread takes no command for a long time
   */
  private next(kind: number, rank: number, request: number): number {
    if (this.isFull) this.waitForRoom();
    const c = (this.published & (NetLimit.records - 1)) * NetRecord.words;
    this.published = (this.published + 1) | 0;
    this.dirty = true;
    this.commands[c + NetRecord.kind] = kind;
    this.commands[c + NetRecord.rank] = rank;
    this.commands[c + NetRecord.request] = request;
    return c;
  }

  private get isFull(): boolean {
    const taken = Atomics.load(this.words, NetWord.commandsTaken);
    return ((this.published - taken) | 0) >= NetLimit.records;
  }

  private waitForRoom(): void {
    const until = performance.now() + this.patience;
    // Not `publish`: the records of lanes may not be visible yet, and the comm thread looks for them once.
    Atomics.store(this.words, NetWord.commandsPublished, this.published);
    while (this.isFull) {
      this.session.wake();
      // The comm thread notifies nobody: this only leaves it the core.
      Atomics.wait(this.words, NetWord.commandsTaken, this.published - NetLimit.records, 1);
      if (performance.now() < until || !this.isFull) continue;
      throw new HeadraceError(
        'ERR_INTERNAL',
        `the network's thread on rank ${this.rank} has taken no command for ${this.patience / 1000} s`,
        {
          rank: this.rank,
          remedy:
            'look for a process of this job that was stopped; otherwise this is a defect of Headrace',
        },
      );
    }
  }
}
