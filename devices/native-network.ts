// The network port over MPI: records written straight into the rings of the comm thread (native/mpi).
// Invariant: the engine never waits for the comm thread except for room in the command ring, which the comm thread
// empties whatever else it does.
import {
  launchOf,
  loadMpi,
  MpiError,
  NetCommand,
  NetEvent,
  NetLimit,
  NetRecord,
  type NetSession,
  type NetSpace,
  NetWord,
  openMpi,
  startMpi,
} from '../native/mpi.js';
import { HeadraceError } from './errors.js';
import type { NetworkPort, NetworkSink } from './network-port.js';

/** Options of `openNativeNetwork`. */
export interface NativeNetworkOptions {
  readonly spaces: readonly NetSpace[];
  readonly doorbell: bigint;
  readonly chunkBytes: number;
  readonly failFlush: number;
  /** Cores of this host. */
  readonly cores: number;
  /** Threads per rank besides the comm thread. */
  readonly threads: number;
}

const CHUNKS_IN_FLIGHT = 4;
/** Between SIGTERM and the end of this process. */
const GRACE_MS = 900;
const CALM_SPIN_NS = 1_000;
const EAGER_SPIN_NS = 100_000;

const CODES: Readonly<Record<string, string>> = {
  MPI_NOT_BUILT: 'ERR_MPI_MISSING',
  MPI_NOT_LOADABLE: 'ERR_MPI_MISSING',
  MPI_MISMATCH: 'ERR_MPI_MISMATCH',
  MPI_START: 'ERR_MPI_START',
};

/** Ranks of this launch as the environment tells: 1 when not started by mpirun. */
export function launchedRanks(
  env: Readonly<Record<string, string | undefined>> = process.env,
): number {
  return launchOf(env).size;
}

function typed(error: unknown): unknown {
  if (!(error instanceof MpiError)) return error;
  return new HeadraceError(CODES[error.code] ?? 'ERR_MPI_START', error.message, {
    cause: error,
    remedy: error.remedy,
  });
}

/** Throws a typed error when there is no message layer. Starts nothing. */
export function checkMpi(): void {
  try {
    loadMpi(launchOf(process.env).launcher);
  } catch (error) {
    throw typed(error);
  }
}

/** Starts MPI and opens a session; collective over all ranks. Errors are typed. */
export async function openNativeNetwork(options: NativeNetworkOptions): Promise<NativeNetwork> {
  try {
    const addon = loadMpi(launchOf(process.env).launcher);
    const facts = await startMpi(addon);
    const crowded = facts.size * (options.threads + 1) > options.cores;
    const session = await openMpi(addon, facts, {
      spaces: options.spaces,
      doorbell: options.doorbell,
      chunkBytes: options.chunkBytes,
      chunksInFlight: CHUNKS_IN_FLIGHT,
      spinNanoseconds: crowded ? CALM_SPIN_NS : EAGER_SPIN_NS,
      failFlush: options.failFlush,
    });
    return new NativeNetwork(session, crowded);
  } catch (error) {
    throw typed(error);
  }
}

/** MPICH's launcher sends SIGUSR1 when a rank dies; in Node that would open the debugger's port. */
function ignore(): void {}

export class NativeNetwork implements NetworkPort {
  readonly rank: number;
  readonly size: number;
  readonly longestMessage: number = NetLimit.message;
  readonly stagedReceives: number = NetLimit.buffers / CHUNKS_IN_FLIGHT;
  readonly library: string;
  /** Thread level that MPI granted. */
  readonly threadLevel: string;
  readonly gpuAware: boolean;
  readonly crowded: boolean;

  private readonly session: NetSession;
  private readonly words: Int32Array;
  private readonly commands: Int32Array;
  private readonly commandNumbers: Float64Array;
  private readonly events: Int32Array;
  private readonly eventNumbers: Float64Array;
  private published = 0;
  private taken = 0;
  private dirty = false;
  /** Position behind the last message in the outbox. */
  private outboxPosition = 0;
  private isLost = false;
  private over: (() => void) | undefined;
  /**
   * A launcher that sees a rank die ends the others with SIGTERM, and with SIGKILL a second later. In between the
   * program can still be told whose fault it was.
   */
  private readonly onTerminate = (): void => {
    setTimeout(() => process.exit(128 + 15), GRACE_MS).unref();
  };
  private closing: Promise<void> | undefined;

  constructor(session: NetSession, crowded: boolean) {
    this.session = session;
    this.crowded = crowded;
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
    process.on('SIGTERM', this.onTerminate);
    process.on('SIGUSR1', ignore);
    this.events = session.events;
    this.eventNumbers = new Float64Array(
      session.events.buffer,
      session.events.byteOffset,
      session.events.length / 2,
    );
  }

  mappable(rank: number, space: number): boolean {
    return rank !== this.rank && this.session.peers[rank]?.mappable[space] === 1;
  }

  post(rank: number, bytes: Uint8Array): boolean {
    const { length } = bytes;
    const padded = (length + 7) & ~7;
    const at = this.outboxPosition & (NetLimit.ring - 1);
    const skip = at + padded > NetLimit.ring ? NetLimit.ring - at : 0;
    const used = (this.outboxPosition - Atomics.load(this.words, NetWord.outboxFreed)) | 0;
    if (used + skip + padded > NetLimit.ring) return false;
    const offset = skip > 0 ? 0 : at;
    this.session.outbox.set(bytes, offset);
    this.outboxPosition = (this.outboxPosition + skip + padded) | 0;
    const c = this.next(NetCommand.message, rank, 0);
    this.commands[c + NetRecord.position] = this.outboxPosition;
    this.commandNumbers[(c >> 1) + NetRecord.offset] = offset;
    this.commandNumbers[(c >> 1) + NetRecord.size] = length;
    return true;
  }

  send(
    rank: number,
    tag: number,
    space: number,
    offset: number,
    bytes: number,
    mode: number,
    request: number,
  ): void {
    this.transfer(NetCommand.send, rank, tag, space, offset, bytes, mode, request);
  }

  receive(
    rank: number,
    tag: number,
    space: number,
    offset: number,
    bytes: number,
    mode: number,
    request: number,
  ): void {
    this.transfer(NetCommand.receive, rank, tag, space, offset, bytes, mode, request);
  }

  ipcRead(
    rank: number,
    remoteSpace: number,
    remoteOffset: number,
    space: number,
    offset: number,
    bytes: number,
    request: number,
  ): void {
    const c = this.transfer(NetCommand.ipcRead, rank, 0, space, offset, bytes, 0, request);
    this.commands[c + NetRecord.remoteSpace] = remoteSpace;
    this.commandNumbers[(c >> 1) + NetRecord.remoteOffset] = remoteOffset;
  }

  cancel(request: number): void {
    this.next(NetCommand.cancel, 0, request);
  }

  flush(space: number, request: number): void {
    const c = this.next(NetCommand.flush, 0, request);
    this.commands[c + NetRecord.space] = space;
  }

  publish(): void {
    if (!this.dirty) return;
    this.dirty = false;
    Atomics.store(this.words, NetWord.commandsPublished, this.published);
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
        case NetEvent.done:
          sink.done(
            events[e + NetRecord.request],
            events[e + NetRecord.status],
            eventNumbers[n + NetRecord.start],
            eventNumbers[n + NetRecord.end],
          );
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
    const sink: NetworkSink = { message: () => {}, done: () => {}, lost: () => {} };
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
    process.off('SIGTERM', this.onTerminate);
    process.off('SIGUSR1', ignore);
    this.session.end();
  }

  private transfer(
    kind: number,
    rank: number,
    tag: number,
    space: number,
    offset: number,
    bytes: number,
    mode: number,
    request: number,
  ): number {
    const c = this.next(kind, rank, request);
    this.commands[c + NetRecord.tag] = tag;
    this.commands[c + NetRecord.status] = mode;
    this.commands[c + NetRecord.space] = space;
    this.commandNumbers[(c >> 1) + NetRecord.offset] = offset;
    this.commandNumbers[(c >> 1) + NetRecord.size] = bytes;
    return c;
  }

  /** Takes the next command slot, waiting for room if need be; returns its first word. */
  private next(kind: number, rank: number, request: number): number {
    while (
      ((this.published - Atomics.load(this.words, NetWord.commandsTaken)) | 0) >=
      NetLimit.records
    ) {
      this.publish();
      this.session.wake();
    }
    const c = (this.published & (NetLimit.records - 1)) * NetRecord.words;
    this.published = (this.published + 1) | 0;
    this.dirty = true;
    this.commands[c + NetRecord.kind] = kind;
    this.commands[c + NetRecord.rank] = rank;
    this.commands[c + NetRecord.request] = request;
    return c;
  }
}
