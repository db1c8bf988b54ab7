// What several queues share: the memory of the host, which the copies of all GPUs use; a GPU's link to the host, which has two directions;
// and a GPU, which the kernels of its streams use. Whatever is under way goes on at full speed while there is enough of all that it uses.
// Otherwise all that use the same are slowed down alike.
// Invariant: `left` is up to date as of `time`; the event of everything under way is scheduled for the time at which it ends if
// nothing else begins or ends before.
import type { QueueInfo } from '../../backend.js';
import { FIRST_GPU } from '../../handles.js';
import type { Adversary } from './adversary.js';
import type { MachineDescription } from './machine.js';
import type { World } from './world.js';

/** Bytes per second of copies from the host if there are no copies to it, and the other way round. */
export interface HostMemoryRates {
  readonly read: number;
  readonly write: number;
}

/** A resource, and the share of it that something takes while it goes on at full speed. */
export type Demand = readonly [resource: number, share: number];

export class SharedCapacity {
  private readonly world: World;
  private readonly firstEvent: number;
  /** Per queue, of what is under way: its demands, the nanoseconds at full speed that it still takes, and its part of the full speed. */
  private readonly demands: (readonly Demand[])[];
  private readonly left: Float64Array;
  private readonly speed: Float64Array;
  private readonly active: number[] = [];
  /** Per resource: sum of the shares. */
  private readonly sums: Float64Array;
  private time = 0;

  constructor(world: World, firstEvent: number, queues: number, resources: number) {
    this.world = world;
    this.firstEvent = firstEvent;
    this.demands = new Array<readonly Demand[]>(queues).fill([]);
    this.left = new Float64Array(queues);
    this.speed = new Float64Array(queues);
    this.sums = new Float64Array(resources);
  }

  /** Something on `queue` begins now. It takes `ns` at full speed. */
  begin(queue: number, ns: number, demands: readonly Demand[]): void {
    this.advance();
    this.left[queue] = ns;
    this.speed[queue] = 1;
    this.demands[queue] = demands;
    this.active.push(queue);
    this.world.schedule(this.firstEvent + queue, this.time + ns);
    this.adapt();
  }

  /** What was under way on `queue`, if anything was, has ended. */
  end(queue: number): void {
    const at = this.active.indexOf(queue);
    if (at < 0) return;
    this.advance();
    this.active.splice(at, 1);
    this.adapt();
  }

  /** Counts what was done until now. */
  private advance(): void {
    const { active, left, speed, world } = this;
    const passed = world.time - this.time;
    for (const q of active) left[q] = Math.max(0, left[q] - passed * speed[q]);
    this.time = world.time;
  }

  private adapt(): void {
    const { active, demands, left, speed, sums, world, time } = this;
    sums.fill(0);
    for (const q of active) for (const [resource, share] of demands[q]) sums[resource] += share;
    for (const q of active) {
      let most = 1;
      for (const [resource] of demands[q]) most = Math.max(most, sums[resource]);
      if (speed[q] * most === 1) continue;
      speed[q] = 1 / most;
      world.move(this.firstEvent + q, time + left[q] * most);
    }
  }
}

const NOTHING: readonly Demand[] = [];
const HOST_MEMORY = 0;

/** What the queues of a machine share. */
export class Sharing {
  private readonly copies: SharedCapacity;
  /** Demands of the copies of each queue; none: they are not slowed down. */
  private readonly ofCopies: readonly (readonly Demand[])[];
  /** Per space. */
  private readonly gpus: readonly SharedCapacity[];
  private readonly queues: readonly QueueInfo[];
  /** Per queue, of the command that is to begin: nanoseconds at full speed, and what it takes. */
  private readonly alone: Float64Array;
  private readonly next: (readonly Demand[])[];

  constructor(
    machine: MachineDescription,
    queues: readonly QueueInfo[],
    world: World,
    firstEvent: number,
  ) {
    const { length } = queues;
    const spaces = FIRST_GPU + machine.gpus;
    this.queues = queues;
    this.alone = new Float64Array(length);
    this.next = new Array<readonly Demand[]>(length).fill(NOTHING);
    this.copies = new SharedCapacity(world, firstEvent, length, spaces);
    this.gpus = Array.from(
      { length: spaces },
      () => new SharedCapacity(world, firstEvent, length, 1),
    );
    this.ofCopies = queues.map((queue) => copyDemands(machine, queue));
  }

  demandsOfCopies(queue: number): readonly Demand[] {
    return this.ofCopies[queue];
  }

  /** A command of `queue` will begin; it takes `alone` nanoseconds at full speed. */
  prepare(queue: number, alone: number, demands: readonly Demand[]): void {
    this.alone[queue] = alone;
    this.next[queue] = demands;
  }

  /** The command that was prepared begins. */
  begin(queue: number, adversary: Pick<Adversary, 'stretch'>): void {
    this.of(queue).begin(queue, adversary.stretch(this.alone[queue]), this.next[queue]);
  }

  /** The command of `queue` has ended, whether it shared anything or not. */
  end(queue: number): void {
    this.of(queue).end(queue);
  }

  private of(queue: number): SharedCapacity {
    const { kind, space } = this.queues[queue];
    return kind === 'compute' ? this.gpus[space] : this.copies;
  }
}

/** Those of a kernel that keeps a share of its GPU busy. */
export function kernelDemands(share: number): readonly Demand[] {
  return share === 0 ? NOTHING : [[0, share]];
}

/** Those of copies from or to the host. The memory of the host is resource 0, and the link of a GPU has the number of its space. */
function copyDemands(
  { hostCopies, bothWays, h2d, d2h }: MachineDescription,
  { kind, space }: QueueInfo,
): readonly Demand[] {
  if (kind !== 'h2d' && kind !== 'd2h') return NOTHING;
  const demands: Demand[] = [];
  const { bandwidth } = kind === 'h2d' ? h2d : d2h;
  if (hostCopies !== undefined)
    demands.push([HOST_MEMORY, bandwidth / hostCopies[kind === 'h2d' ? 'read' : 'write']]);
  if (bothWays !== undefined) demands.push([space, bandwidth / (2 * bothWays)]);
  return demands;
}
