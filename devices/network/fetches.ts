// The receiving side: it fetches announced versions by a way that both ends have, and flushes them if needed before any
// task sees them.
//
// Invariants:
// - a receive is posted before the request for it, so a payload never arrives unexpected;
// - writes of the network to device memory count as arrived after the flush that covers them.
import type { Announcement } from './announcement.js';
import { type Fetch, type Finished, type NetworkContext, NO_TIMES } from './context.js';
import { NetOutcome, VisibleTo, WireMode } from './port.js';
import { flushFor, wayBetween } from './ways.js';
import { Wire } from './wire.js';

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
  /** Flushes requested so far. */
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
   * Fetches an announced version into `space` at `offset`; `received` follows. Not for inline ones. `keeps`: if the
   * run fails, this rank sends the arriving bytes to others from then on.
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
    const way = wayBetween(n, from, announcement.space, space);
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

  private takeTag(): number {
    do {
      this.nextTag = this.nextTag === MAX_TAG ? 1 : this.nextTag + 1;
    } while (this.tags.has(this.nextTag));
    this.tags.add(this.nextTag);
    return this.nextTag;
  }

  /** The port has finished a fetch. */
  over(finished: Finished, outcome: number): void {
    const { fetch } = finished;
    if (fetch.kind === 'receive') this.tags.delete(fetch.tag);
    else this.n.wire.write(fetch.from, Wire.done, [this.n.era, fetch.remoteOffer]);
    const needsFlush = this.neededFlush(fetch) > VisibleTo.none;
    if (outcome === NetOutcome.ok && needsFlush) {
      const list = this.unflushed[fetch.space];
      if (list === undefined) this.unflushed[fetch.space] = [finished];
      else list.push(finished);
    } else this.deliver(finished, outcome);
    if (fetch.way === 'staged') this.nextStaged();
  }

  private neededFlush({ space, way, forwards }: Fetch): number {
    return flushFor(this.n, space, way, forwards);
  }

  private nextStaged(): void {
    this.staged--;
    const next = this.waiting.shift();
    if (next !== undefined)
      this.fetch(next.announcement, next.cookie, next.space, next.offset, next.keeps);
  }

  private deliver({ fetch, times }: Finished, outcome: number): void {
    this.n.listener.received(fetch.cookie, outcome, fetch.way, fetch.bytes, times);
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

  /** The sender has withdrawn the offer that `request` asks for. */
  refused(request: number): void {
    if (this.n.has(request)) this.n.port.cancel(request);
  }

  /** A rank is gone: fetches without a request yet will not start. */
  lost(): void {
    for (const { announcement, cookie } of this.waiting.splice(0)) {
      this.n.listener.received(cookie, NetOutcome.lost, 'staged', announcement.bytes, NO_TIMES);
    }
  }
}
