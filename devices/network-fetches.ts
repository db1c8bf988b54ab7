// The receiving side: announced versions are fetched, by the way the ends have in common, and flushed where needed
// before anybody sees them.
//
// Invariants:
// - a receive is posted before it is asked for, so that a payload never arrives unexpected;
// - what the network wrote to device memory counts as arrived after the flush that covers it.
import { guards } from './guards.js';
import type { Announcement } from './network-announcement.js';
import type { Fetch, Finished, NetworkContext } from './network-context.js';
import { NetOutcome, VisibleTo, WireMode } from './network-port.js';
import { Wire } from './network-wire.js';

interface WaitingFetch {
  readonly announcement: Announcement;
  readonly cookie: number;
  readonly space: number;
  readonly offset: number;
  readonly keeps: boolean;
}

/** Tags for data: 1 to this. MPI promises tags up to 32767. */
const MAX_TAG = 32_000;

export class NetworkFetches {
  /** Flushes asked for. */
  flushes = 0;
  private readonly n: NetworkContext;
  private readonly tags: Set<number> = new Set();
  /** Receives into device memory that ended in this poll and need a flush, by space. */
  private readonly unflushed: (Finished[] | undefined)[] = [];
  private readonly waiting: WaitingFetch[] = [];
  private staged = 0;
  private nextTag = 1;

  constructor(n: NetworkContext) {
    this.n = n;
  }

  /**
   * Fetches an announced version into `space` at `offset`; `received` follows. Not for inline ones. `keeps`: should the
   * run fail, what arrives here is what this rank sends to others from then on.
   */
  fetch(
    announcement: Announcement,
    cookie: number,
    space: number,
    offset: number,
    keeps: boolean,
  ): void {
    const { n } = this;
    const { from, bytes, offer: remoteOffer } = announcement;
    const way = this.wayOf(announcement, space);
    const forwards = keeps || announcement.children.length > 0;
    if (way === 'ipc') {
      const id = n.add({
        kind: way,
        cookie,
        from,
        remoteOffer,
        space,
        bytes,
        way,
        tag: 0,
        forwards,
      });
      n.port.ipcRead(from, announcement.space, announcement.offset, space, offset, bytes, id);
      return;
    }
    const isStaged = way === 'staged';
    if (isStaged && this.staged >= n.port.stagedReceives) {
      let i = this.waiting.length;
      while (i > 0 && this.waiting[i - 1].announcement.priority < announcement.priority) i--;
      this.waiting.splice(i, 0, { announcement, cookie, space, offset, keeps });
      return;
    }
    if (isStaged) this.staged++;
    const mode = isStaged ? WireMode.staged : WireMode.direct;
    const tag = this.takeTag();
    const id = n.add({
      kind: 'receive',
      cookie,
      from,
      remoteOffer,
      space,
      bytes,
      way,
      tag,
      forwards,
    });
    n.port.receive(from, tag, space, offset, bytes, mode, id);
    n.wire.write(from, Wire.get, [n.era, remoteOffer, tag, mode, id]);
  }

  /**
   * The way asked for, as far as both ends have it; what remains goes the way that is left. Reading the peer's memory
   * spares it the work, so it comes first where nothing else was asked for.
   */
  private wayOf(announcement: Announcement, space: number): 'ipc' | 'direct' | 'staged' {
    const { port, options, spaces } = this.n;
    const { from, fromDevice } = announcement;
    if (options.comm === 'staged') {
      return fromDevice || spaces[space].kind !== 'host' ? 'staged' : 'direct';
    }
    const isReachable =
      port.reachable(from, announcement.space) && port.reachable(port.rank, space);
    if (options.comm === 'direct' && isReachable) return 'direct';
    if (port.mappable(from, announcement.space)) return 'ipc';
    return isReachable ? 'direct' : 'staged';
  }

  private takeTag(): number {
    do {
      this.nextTag = this.nextTag === MAX_TAG ? 1 : this.nextTag + 1;
    } while (this.tags.has(this.nextTag));
    this.tags.add(this.nextTag);
    return this.nextTag;
  }

  /** The port is done with a fetch. */
  over(finished: Finished, outcome: number): void {
    const { fetch } = finished;
    if (fetch.kind === 'receive') this.tags.delete(fetch.tag);
    else this.n.wire.write(fetch.from, Wire.done, [this.n.era, fetch.remoteOffer]);
    const needsFlush = guards.networkFlush && this.neededFlush(fetch) > VisibleTo.none;
    if (outcome === NetOutcome.ok && needsFlush) {
      const list = this.unflushed[fetch.space];
      if (list === undefined) this.unflushed[fetch.space] = [finished];
      else list.push(finished);
    } else this.deliver(finished, outcome);
    if (fetch.way === 'staged') this.nextStaged();
  }

  /**
   * How far a fetch must be flushed before anybody may see its bytes (hazard: a completed receive says that the network
   * card has handed over its last write, not that a GPU sees it). Only direct receives are written by the network;
   * who reads there is the owner, and others where this rank has more GPUs or passes the datum on.
   */
  private neededFlush(fetch: Fetch): number {
    const { port, options, spaces } = this.n;
    const { space } = fetch;
    if (fetch.way !== 'direct' || spaces[space].kind === 'host' || options.flush === 'off') {
      return VisibleTo.none;
    }
    const scope = fetch.forwards || spaces.length > 2 ? VisibleTo.all : VisibleTo.owner;
    return options.flush === 'force' || port.ordering(space) < scope ? scope : VisibleTo.none;
  }

  private nextStaged(): void {
    this.staged--;
    const next = this.waiting.shift();
    if (next !== undefined)
      this.fetch(next.announcement, next.cookie, next.space, next.offset, next.keeps);
  }

  private deliver({ fetch, start, end }: Finished, outcome: number): void {
    this.n.listener.received(fetch.cookie, outcome, fetch.way, fetch.bytes, start, end);
  }

  /** One flush per device and batch of completions, before any of them counts as arrived. */
  flushBatches(): void {
    for (let space = 1; space < this.unflushed.length; space++) {
      const covered = this.unflushed[space];
      if (covered === undefined) continue;
      this.unflushed[space] = undefined;
      this.flushes++;
      const scope = Math.max(...covered.map(({ fetch }) => this.neededFlush(fetch)));
      this.n.port.flush(space, scope, this.n.add({ kind: 'flush', covered }));
    }
  }

  /** A flush is over. */
  flushed(covered: readonly Finished[], outcome: number): void {
    for (const finished of covered) this.deliver(finished, outcome);
  }

  /** An announced version will not be fetched: its sender need not keep it. */
  decline({ from, offer, payload, isPoisoned }: Announcement): void {
    if (payload === undefined && !isPoisoned)
      this.n.wire.write(from, Wire.declined, [this.n.era, offer]);
  }

  /** The sender has withdrawn what `request` asks for. */
  refused(request: number): void {
    if (this.n.has(request)) this.n.port.cancel(request);
  }

  /** A rank is gone: what was not asked for yet will not be. */
  lost(): void {
    for (const { announcement, cookie } of this.waiting.splice(0)) {
      this.n.listener.received(cookie, NetOutcome.lost, 'staged', announcement.bytes, 0, 0);
    }
  }
}
