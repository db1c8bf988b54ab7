// Deals the kernels of a plan to the streams of their devices.
import type { QueueInfo } from '../../devices/backend.js';
import type { Column, QueueId, SpaceId } from '../../devices/handles.js';
import type { CommandColumns } from '../../devices/planning/commands.js';

/** The queue of each command: kernels get the compute queues of their device in turn. `on`: only kernels of these devices. */
export function inTurn(
  commands: Pick<CommandColumns, 'count' | 'queue'>,
  queues: readonly QueueInfo[],
  on?: ReadonlySet<SpaceId>,
): Column<Int16Array, QueueId> {
  const queue = commands.queue.slice() as Column<Int16Array, QueueId>;
  const turns = new Map<SpaceId, { readonly among: QueueId[]; next: number }>();
  queues.forEach(({ space, kind }, q) => {
    if (kind !== 'compute' || on?.has(space) === false) return;
    const turn = turns.get(space) ?? { among: [], next: 0 };
    turns.set(space, turn);
    turn.among.push(q as QueueId);
  });
  for (let c = 0; c < commands.count; c++) {
    const { space, kind } = queues[queue[c]];
    const turn = turns.get(space);
    if (kind === 'compute' && turn !== undefined)
      queue[c] = turn.among[turn.next++ % turn.among.length];
  }
  return queue;
}
