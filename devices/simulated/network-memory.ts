// GPU memory that a network card writes: what a reader sees, and which flush it needs (hazards H1, H2, H4, H16).
//
// The card writes behind the back of the queues. "Receive complete" says that the last write was handed over, not
// that any observer sees it: a write stays pending until something drains it for that observer.
//   - the owning GPU sees it in work submitted by the CPU after completion, or after a flush to the owner, or at
//     once where the device orders such writes for its owner;
//   - another GPU, or another card, sees it only after a flush to all devices, or where the device orders for all;
//   - where two paths lead to the device ("twoPaths": GB200), no order is promised whatever the attribute says, and
//     only a fence of the path helps (`force`).
// Invariant: a read that no rule justifies is answered with the older contents, and named.

/** What the device orders by itself (CUDA attribute 118). */
export type WritesOrdering = 'none' | 'owner' | 'allDevices';
export type FlushScope = 'owner' | 'allDevices';

const RANK = { none: 0, owner: 1, allDevices: 2 } as const;

export interface NetworkMemoryOptions {
  readonly ordering: WritesOrdering;
  readonly twoPaths?: boolean;
}

export interface PendingWrite {
  readonly version: number;
  completed: boolean;
  /** How far it was flushed. */
  flushed: number;
}

export class NetworkMemory {
  readonly violations: string[] = [];
  /** Flush calls that did something. */
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

  /** The message layer reports the receive complete; nothing need have drained. */
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
   * Version that a reader sees; `submittedAfter`: the CPU submitted it after it had seen the completion.
   * `observer` is the owning device, or anyone else (a peer GPU, another card).
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

/** The scope a receive must be flushed to before its copy counts as valid. The rule of the runtime (H1). */
export function requiredScope(
  consumers: 'ownerOnly' | 'others',
  gated: boolean,
): FlushScope | undefined {
  if (consumers === 'others') return 'allDevices';
  return gated ? 'owner' : undefined;
}
