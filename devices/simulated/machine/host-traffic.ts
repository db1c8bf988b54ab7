// The memory of the host, which the copies of all GPUs share: a copy goes on as fast as its link, or as its fair share allows.
// Reads and writes take different shares of the memory's time.
// Invariant: `moved` is up to date as of `time`; the event of every copy under way is scheduled for the time at which it ends if
// no other copy begins or ends before.
import type { QueueInfo } from '../../backend.js';
import type { MachineDescription } from './machine.js';
import type { World } from './world.js';

/** Bytes per second of copies from the host if there are no copies to it, and the other way round. */
export interface HostMemoryRates {
  readonly read: number;
  readonly write: number;
}

export class HostTraffic {
  private readonly world: World;
  private readonly firstEvent: number;
  /** Per queue: share of the memory's time that a copy at the full speed of its link takes; 0: no copies from or to the host. */
  private readonly demand: Float64Array;
  /** Per queue: nanoseconds at full speed that the copy under way still takes. */
  private readonly left: Float64Array;
  private readonly active: number[] = [];
  private time = 0;
  /** Part of its full speed at which every copy goes on. */
  private speed = 1;

  constructor(world: World, firstEvent: number, queues: number) {
    this.world = world;
    this.firstEvent = firstEvent;
    this.demand = new Float64Array(queues);
    this.left = new Float64Array(queues);
  }

  /** The copies of `queue` take `demand` of the memory's time. */
  share(queue: number, demand: number): void {
    this.demand[queue] = demand;
  }

  /** Whether copies of `queue` use the host's memory. */
  concerns(queue: number): boolean {
    return this.demand[queue] > 0;
  }

  /** A copy of `queue`, which takes `ns` at full speed, begins now. */
  begin(queue: number, ns: number): void {
    this.advance();
    this.left[queue] = ns;
    this.active.push(queue);
    this.world.schedule(this.firstEvent + queue, this.time + ns);
    this.adapt();
  }

  /** The copy of `queue` has ended. */
  end(queue: number): void {
    this.advance();
    this.active.splice(this.active.indexOf(queue), 1);
    this.adapt();
  }

  /** Counts what was moved until now. */
  private advance(): void {
    const { active, left, world } = this;
    const passed = (world.time - this.time) * this.speed;
    for (const q of active) left[q] = Math.max(0, left[q] - passed);
    this.time = world.time;
  }

  private adapt(): void {
    const { active, demand, left, world, time } = this;
    let sum = 0;
    for (const q of active) sum += demand[q];
    this.speed = sum > 1 ? 1 / sum : 1;
    for (const q of active) world.move(this.firstEvent + q, time + left[q] / this.speed);
  }
}

/** Undefined for a machine whose copies do not slow each other down. */
export function hostTrafficOf(
  { hostCopies, h2d, d2h }: MachineDescription,
  queues: readonly QueueInfo[],
  world: World,
  firstEvent: number,
): HostTraffic | undefined {
  if (hostCopies === undefined) return undefined;
  const traffic = new HostTraffic(world, firstEvent, queues.length);
  queues.forEach((queue, q) => {
    if (queue.kind === 'h2d') traffic.share(q, h2d.bandwidth / hostCopies.read);
    else if (queue.kind === 'd2h') traffic.share(q, d2h.bandwidth / hostCopies.write);
  });
  return traffic;
}
