// The lists of a plan for a graph of the GPUs' driver (driver-graph.ts): the same commands in another order, on other queues.
//
// The planned order is one of virtual time, whose kernels take as long as the planner guesses. In a graph a wrong guess costs
// more than on threads: a queue goes on only after the command that was put in it, also when others are ready. So the commands
// are put level by level, dealt to the compute queues in turn. The level of a command is the length of the longest chain of
// commands before it. Commands of a level are independent.
//
// A plan that evicts keeps its order: levels would mix copies for kernels that are far apart, and memory was planned for the order of
// the kernels. They are dealt to the compute queues already (planner.ts).
//
// Why every value stays what it is: two commands that use the same bytes, one of them writing, are on different levels, in the
// planned order, and so are two tasks of which one was declared to follow the other.
import type { QueueInfo } from '../../devices/backend.js';
import type { Column, QueueId } from '../../devices/handles.js';
import { chainsBefore, type PlannedParts } from './chains.js';
import { inTurn } from './deal-to-streams.js';
import type { OpenParameter } from './insertions.js';
import { addressesOf, writeLists } from './layout.js';
import type { GraphLists } from './planned-program.js';
import { type ControlEdges, findWaits } from './waits.js';

/** The open parameters, and the names of their slots. */
interface OpenSlots {
  readonly parameters: readonly OpenParameter[];
  readonly slots: readonly string[];
}

/** `evicts`: copies leave GPUs during the iteration to make room. */
export function listsForGraph(
  planned: PlannedParts,
  queues: readonly QueueInfo[],
  control: ControlEdges,
  open: OpenSlots,
  evicts: boolean,
): GraphLists {
  if (evicts) return listsOf(planned, planned, queues, control, open);
  const levels = chainsBefore(planned, control, () => 1);
  const order = Int32Array.from(levels.keys()).sort((a, b) => levels[a] - levels[b] || a - b);
  const { commands, accesses } = inOrder(planned, order);
  const dealt = { ...commands, queue: inTurn(commands, queues) };
  return listsOf({ commands: dealt, accesses }, planned, queues, control, open);
}

function listsOf(
  { commands, accesses }: Omit<PlannedParts, 'ranges'>,
  { ranges }: Pick<PlannedParts, 'ranges'>,
  queues: readonly QueueInfo[],
  control: ControlEdges,
  { parameters, slots }: OpenSlots,
): GraphLists {
  const waits = findWaits(commands, accesses, ranges, queues.length, control);
  const lists = writeLists(commands, waits, parameters, slots);
  return { queues: lists.queues, addresses: addressesOf(commands, accesses, ranges, lists) };
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
