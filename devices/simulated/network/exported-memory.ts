// Memory shared between processes by handles (hazards H6, H17) and the semaphores that order it (H7).
//
// Handles: an address is used again after a free, with another generation. An importer that keys its cache by address
// alone reads other memory. An exporter that frees a block while another process has it open breaks the importer.
// Semaphores: one writer per slot, counters that only grow, waits for "at least". Then a peer that laps the waiter is
// no problem; a wait for equality would miss it for ever.

export interface Handle {
  readonly address: number;
  readonly generation: number;
}

export class ExportedMemory {
  readonly violations: string[] = [];
  /** Opens that reached the driver. */
  opens = 0;
  private generation = 0;
  private readonly live: Map<number, { generation: number; value: number; imports: number }> =
    new Map();
  private readonly recycled: number[] = [];
  private next = 0;

  /** Allocates; freed addresses are used again first. */
  allocate(value: number): Handle {
    const address = this.recycled.pop() ?? this.next++;
    const generation = ++this.generation;
    this.live.set(address, { generation, value, imports: 0 });
    return { address, generation };
  }

  write(handle: Handle, value: number): void {
    const block = this.live.get(handle.address);
    if (block?.generation === handle.generation) block.value = value;
  }

  free(handle: Handle): void {
    const block = this.live.get(handle.address);
    if (block === undefined || block.generation !== handle.generation) return;
    if (block.imports > 0) {
      this.violations.push(
        `address ${handle.address} is freed while ${block.imports} importers have it open`,
      );
    }
    this.live.delete(handle.address);
    this.recycled.push(handle.address);
  }

  open(handle: Handle): void {
    this.opens++;
    const block = this.live.get(handle.address);
    if (block?.generation !== handle.generation) {
      this.violations.push(`a stale handle of address ${handle.address} is opened`);
      return;
    }
    block.imports++;
  }

  close(handle: Handle): void {
    const block = this.live.get(handle.address);
    if (block?.generation === handle.generation) block.imports--;
  }

  /** The content that an importer finds through a mapping of that generation: poison if the block is another one by now. */
  readThrough(mapped: Handle): number {
    const block = this.live.get(mapped.address);
    if (block === undefined || block.generation !== mapped.generation) {
      this.violations.push(
        `a mapping of generation ${mapped.generation} of address ${mapped.address} is stale`,
      );
      return Number.NaN;
    }
    return block.value;
  }
}

/** The importer's cache of open mappings, with its guards as switches for tests. */
export class ImportCache {
  private readonly memory: ExportedMemory;
  private readonly byAddress: Map<number, Handle> = new Map();
  private readonly checksGeneration: boolean;

  constructor(memory: ExportedMemory, checksGeneration = true) {
    this.memory = memory;
    this.checksGeneration = checksGeneration;
  }

  map(handle: Handle): Handle {
    const known = this.byAddress.get(handle.address);
    if (known !== undefined) {
      if (known.generation === handle.generation || !this.checksGeneration) return known;
      this.memory.close(known);
    }
    this.memory.open(handle);
    this.byAddress.set(handle.address, handle);
    return handle;
  }

  /** The exporter wants the block back: acknowledged when it is closed. */
  release(handle: Handle): void {
    const known = this.byAddress.get(handle.address);
    if (known === undefined || known.generation !== handle.generation) return;
    this.memory.close(known);
    this.byAddress.delete(handle.address);
  }
}

/** A counter with one writer. */
export class Semaphore {
  private value = 0;

  signal(value: number): void {
    if (value <= this.value)
      throw new Error(`semaphore: ${value} after ${this.value} does not grow`);
    this.value = value;
  }

  /** Whether a wait for `value` is over; `equal` is the mutation that misses a lap. */
  isOver(value: number, equal = false): boolean {
    return equal ? this.value === value : this.value >= value;
  }
}
