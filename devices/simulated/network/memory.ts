// GPU memory that a network card writes: the view of a reader, and the flush that it needs (hazards H1, H2, H4, H16).
//
// The card writes without the queues' knowledge. "Receive complete" means that the last write was handed over, not
// that any observer sees it: a write stays pending until a flush or an order drains it for that observer.
//   - the owning GPU sees it in work submitted by the CPU after completion, or after a flush to the owner, or at
//     once if the device orders such writes for its owner;
//   - another GPU, or another card, sees it only after a flush to all devices, or if the device orders for all;
//   - if two paths lead to the device ("twoPaths": GB200), no order is promised whatever the attribute says, and
//     only a fence of the path helps (`force`).
// Invariant: a read without a justifying rule gets the older contents, and is reported.

/** The order that the device keeps by itself (CUDA attribute 118). */
export type WritesOrdering = 'none' | 'owner' | 'allDevices';
type FlushScope = 'owner' | 'allDevices';

const RANK = { none: 0, owner: 1, allDevices: 2 } as const;

interface NetworkMemoryOptions {
  readonly ordering: WritesOrdering;
  readonly twoPaths?: boolean;
}

interface PendingWrite {
  readonly version: number;
  completed: boolean;
  /** The scope of its flush. */
  flushed: number;
}

export class NetworkMemory {
  readonly violations: string[] = [];
  /** Flush calls with an effect. */
  flushes = 0;
  private readonly options: NetworkMemoryOptions;
  private readonly blocks: Map<number, PendingWrite[]> = new Map();
  private pendingBlocks: Set<number> = new Set();

  constructor(options: NetworkMemoryOptions) {
    this.options = options;
  }

  /** The card begins to write a version to a block. */
  receive(block: number, version: number): void {
    const list = this.blocks.get(block) ?? [];
    list.push({ version, completed: false, flushed: 0 });
    this.blocks.set(block, list);
  }

  /** The message layer reports the receive complete; no write need have drained. */
  complete(block: number): void {
    const last = this.blocks.get(block)?.at(-1);
    if (last === undefined) throw new Error(`block ${block}: nothing was received`);
    last.completed = true;
    this.pendingBlocks.add(block);
  }

  /** Makes every completed write visible to the scope; one call per batch of completions. */
  flush(scope: FlushScope, force = false): void {
    const needed = RANK[scope];
    if (!force && RANK[this.options.ordering] >= needed) return; // the driver does nothing either
    this.flushes++;
    if (this.options.twoPaths === true && !force) return;
    for (const block of this.pendingBlocks) {
      for (const write of this.blocks.get(block) ?? []) {
        if (write.completed && write.flushed < needed) write.flushed = needed;
      }
    }
  }

  /**
   * The version that a reader sees; `submittedAfter`: the CPU submitted it after it had seen the completion.
   * `observer` is the owning device, or any other (a peer GPU, another card).
   */
  read(block: number, observer: 'owner' | 'other', submittedAfter: boolean): number {
    const list = this.blocks.get(block) ?? [];
    let seen = 0;
    for (const write of list)
      if (this.isVisible(write, observer, submittedAfter)) seen = write.version;
    const last = list.at(-1);
    if (last !== undefined && last.version !== seen) {
      const missing = !submittedAfter
        ? 'it was submitted before the data were ready'
        : observer === 'owner'
          ? 'flush to the owner'
          : 'flush to all devices';
      this.violations.push(
        `block ${block}: ${observer} reads version ${seen} instead of ${last.version}; missing: ${missing}`,
      );
    }
    return seen;
  }

  private isVisible(
    write: PendingWrite,
    observer: 'owner' | 'other',
    submittedAfter: boolean,
  ): boolean {
    if (!write.completed) return false;
    const needed = observer === 'owner' ? RANK.owner : RANK.allDevices;
    if (write.flushed >= needed) return true;
    if (this.options.twoPaths === true || !submittedAfter) return false;
    // Submission after completion orders for the owner, on devices with one path.
    return observer === 'owner' || RANK[this.options.ordering] >= needed;
  }
}

/** The scope of the flush before a receive's copy counts as valid. The rule of the runtime (H1). */
export function requiredScope(
  consumers: 'ownerOnly' | 'others',
  gated: boolean,
): FlushScope | undefined {
  if (consumers === 'others') return 'allDevices';
  return gated ? 'owner' : undefined;
}
