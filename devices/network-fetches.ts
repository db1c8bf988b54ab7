// The receiving side: announced versions are fetched, by the way the ends have in common, and flushed where needed
// before anybody sees them.
//
// Invariants:
// - a receive is posted before it is asked for, so that a payload never arrives unexpected;
// - what the network wrote to device memory counts as arrived after the flush that covers it.
import type { Announcement } from './network-announcement.js';
import type { Finished, NetworkContext } from './network-context.js';
import { NetOutcome, WireMode } from './network-port.js';
import { Wire } from './network-wire.js';

interface WaitingFetch {
  readonly announcement: Announcement;
  readonly cookie: number;
  readonly space: number;
  readonly offset: number;
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

  /** Fetches an announced version into `space` at `offset`; `received` follows. Not for inline ones. */
  fetch(announcement: Announcement, cookie: number, space: number, offset: number): void {
    const { n } = this;
    const { from, bytes, offer: remoteOffer } = announcement;
    const toDevice = n.spaces[space].kind !== 'host';
    const { comm } = n.options;
    if ((comm === 'auto' || comm === 'ipc') && n.port.mappable(from, announcement.space)) {
      const way = 'ipc';
      const id = n.add({ kind: way, cookie, from, remoteOffer, space, bytes, way, tag: 0 });
      n.port.ipcRead(from, announcement.space, announcement.offset, space, offset, bytes, id);
      return;
    }
    const isStaged = comm === 'staged' && (toDevice || announcement.fromDevice);
    if (isStaged && this.staged >= n.port.stagedReceives) {
      let i = this.waiting.length;
      while (i > 0 && this.waiting[i - 1].announcement.priority < announcement.priority) i--;
      this.waiting.splice(i, 0, { announcement, cookie, space, offset });
      return;
    }
    if (isStaged) this.staged++;
    const mode = isStaged ? WireMode.staged : WireMode.direct;
    const way = isStaged ? 'staged' : 'direct';
    const tag = this.takeTag();
    const id = n.add({ kind: 'receive', cookie, from, remoteOffer, space, bytes, way, tag });
    n.port.receive(from, tag, space, offset, bytes, mode, id);
    n.wire.write(from, Wire.get, [n.era, remoteOffer, tag, mode, id]);
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
    const needsFlush =
      outcome === NetOutcome.ok &&
      fetch.way === 'direct' &&
      this.n.options.flush !== 'off' &&
      this.n.spaces[fetch.space].kind !== 'host';
    if (needsFlush) {
      const list = this.unflushed[fetch.space];
      if (list === undefined) this.unflushed[fetch.space] = [finished];
      else list.push(finished);
    } else this.deliver(finished, outcome);
    if (fetch.way === 'staged') this.nextStaged();
  }

  private nextStaged(): void {
    this.staged--;
    const next = this.waiting.shift();
    if (next !== undefined) this.fetch(next.announcement, next.cookie, next.space, next.offset);
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
      this.n.port.flush(space, this.n.add({ kind: 'flush', covered }));
    }
  }

  /** A flush is over. */
  flushed(covered: readonly Finished[], outcome: number): void {
    for (const finished of covered) this.deliver(finished, outcome);
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
