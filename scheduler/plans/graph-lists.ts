// The lists of a plan for a graph of the GPUs' driver (driver-graph.ts): the same commands in another order, on other queues.
//
// The planned order is one of virtual time, whose kernels take as long as the planner guesses. In a graph a wrong guess costs
// more than on threads: a queue goes on only after the command that was put in it, also when others are ready. So the commands
// are put level by level, dealt to the compute queues in turn. The level of a command is the length of the longest chain of
// commands before it. Commands of a level are independent.
//
// Why every value stays what it is: two commands that use the same bytes, one of them writing, are on different levels, in the
// planned order, and so are two tasks of which one was declared to follow the other.
import type { QueueInfo } from '../../devices/backend.js';
import type { Column, QueueId, SpaceId } from '../../devices/handles.js';
import type { CommandColumns } from '../../devices/planning/commands.js';
import { chainsBefore, type PlannedParts } from './chains.js';
import type { OpenParameter } from './insertions.js';
import { addressesOf, writeLists } from './layout.js';
import type { GraphLists } from './planned-program.js';
import { type ControlEdges, findWaits } from './waits.js';

export function listsForGraph(
  planned: PlannedParts,
  queues: readonly QueueInfo[],
  control: ControlEdges,
  open: { readonly parameters: readonly OpenParameter[]; readonly slots: readonly string[] },
): GraphLists {
  const levels = chainsBefore(planned, control, () => 1);
  const order = Int32Array.from(levels.keys()).sort((a, b) => levels[a] - levels[b] || a - b);
  const { commands, accesses } = inOrder(planned, order);
  const dealt = { ...commands, queue: inTurn(commands, queues) };
  const waits = findWaits(dealt, accesses, planned.ranges, queues.length, control);
  const lists = writeLists(dealt, waits, open.parameters, open.slots);
  const addresses = addressesOf(dealt, accesses, planned.ranges, lists);
  return { queues: lists.queues, addresses };
}

/** The commands and their accesses in another order; the arguments stay where they are. */
function inOrder(
  { commands, accesses }: PlannedParts,
  order: Int32Array,
): Omit<PlannedParts, 'ranges'> {
  const first = new Int32Array(order.length + 1);
  const of: number[] = [];
  const reads: number[] = [];
  order.forEach((c, at) => {
    first[at] = of.length;
    for (let i = accesses.first[c]; i < accesses.first[c + 1]; i++) {
      of.push(accesses.of[i]);
      reads.push(accesses.reads[i]);
    }
  });
  first[order.length] = of.length;
  return {
    commands: {
      ...commands,
      isCopy: Uint8Array.from(order, (c) => commands.isCopy[c]),
      message: Uint8Array.from(order, (c) => commands.message[c]),
      queue: Int16Array.from(order, (c) => commands.queue[c]) as Column<Int16Array, QueueId>,
      what: Int32Array.from(order, (c) => commands.what[c]),
      insertion: Int32Array.from(order, (c) => commands.insertion[c]),
      flows: Int32Array.from(order, (c) => commands.flows[c]),
      arguments: Int32Array.from(order, (c) => commands.arguments[c]),
      first: Int32Array.from(order, (c) => commands.first[c]),
    },
    accesses: { first, of: Int32Array.from(of), reads: Uint8Array.from(reads) },
  };
}

/** The queue of each command: kernels get the compute queues of their device in turn. */
function inTurn(
  commands: CommandColumns,
  queues: readonly QueueInfo[],
): Column<Int16Array, QueueId> {
  const queue = commands.queue.slice() as Column<Int16Array, QueueId>;
  const turns = new Map<SpaceId, { readonly among: QueueId[]; next: number }>();
  queues.forEach(({ space, kind }, q) => {
    if (kind !== 'compute') return;
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
