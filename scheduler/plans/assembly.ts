// Assembles a plan from an iteration: the lists of the queues, the memory of the regions, and the report.
import { Opcode } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import { type DatumId, HOST, type QueueId } from '../../devices/handles.js';
import type { Engine } from '../engine/engine.js';
import { listsForGraph } from './graph-lists.js';
import type { Iteration } from './iteration.js';
import { addressesOf, type Lists, writeLists } from './layout.js';
import type {
  Decisions,
  PlannedCopy,
  PlannedProgram,
  PlannedRegion,
  PlannedResult,
  PlannedTask,
} from './planned-program.js';
import { queueName } from './queue-name.js';
import type { RankShare } from './rank-share.js';
import { findWaits } from './waits.js';

/**
 * The plan on the machine of an engine. `began`: when its making began, as of `performance.now`.
 * @throws HeadraceError `ERR_OUT_OF_HOST_MEMORY` when the host has not enough memory for the plan alone
 */
export function assemble(engine: Engine, decisions: Decisions, began: number): PlannedProgram {
  const { name, insertions, share, iteration } = decisions;
  const { commands, ranges, accesses } = iteration;
  const { queues } = engine.backend;
  const slots = [...new Set(insertions.open.map((o) => o.slot))];
  const waits = findWaits(
    commands,
    accesses,
    ranges,
    queues.length,
    insertions.after,
    share?.afterLast,
  );
  const lists = writeLists(commands, waits, insertions.open, slots);
  const regions = regionsOf(iteration);
  checkHost(engine, name, regions);
  return {
    queues: lists.queues,
    regions,
    addresses: addressesOf(commands, accesses, ranges, lists),
    entry: iteration.entry.map(
      ({ datum, range }): PlannedCopy => ({ datum, region: ranges.region[range] }),
    ),
    results: resultsOf(iteration, lists),
    number: iteration.number === undefined ? undefined : ranges.region[iteration.number],
    slots,
    task: (n): PlannedTask => {
      const cls = insertions.classOf(n);
      return {
        cls,
        data: cls.modes.map((_, i) => insertions.datum(n, i)),
        params: cls.paramNames.map((_, i) => insertions.parameter(n, i)),
        slots: cls.paramNames.map((_, i) => slots.indexOf(insertions.slot(n, i))),
        message: share?.messages.get(n),
      };
    },
    insertions: insertions.count,
    copied: copiedIn(iteration, engine.spaces.length),
    graphLists: () => {
      const open = { parameters: insertions.open, slots };
      return listsForGraph(iteration, queues, insertions.after, open, decisions.evictions > 0);
    },
    decisions,
    report: reportOf(engine, decisions, waits.queue.length, began),
  };
}

function messagesOf(share: RankShare | undefined): { sent: number; received: number } {
  const counts = { sent: 0, received: 0 };
  for (const [n, { isTurn }] of share?.messages ?? []) {
    if (isTurn) continue;
    if (share?.commands.get(n)?.opcode === Opcode.receive) counts.received++;
    else counts.sent++;
  }
  return counts;
}

function regionsOf({ ranges, users }: Iteration): PlannedRegion[] {
  return users.map((datum, g) => ({
    space: ranges.regionSpace[g],
    bytes: ranges.regionBytes[g],
    datum,
  }));
}

function checkHost(engine: Engine, name: string, regions: readonly PlannedRegion[]): void {
  const { capacity } = engine.spaces[HOST].zone;
  let bytes = 0;
  for (const region of regions) if (region.space === HOST) bytes += region.bytes;
  if (bytes <= capacity) return;
  throw new HeadraceError(
    'ERR_OUT_OF_HOST_MEMORY',
    `plan '${name}' needs ${bytes} bytes of host memory for its data, and the host has ${capacity}`,
    { bytes, limit: capacity, remedy: 'raise hostMemory' },
  );
}

function resultsOf(
  { commands, ranges, accesses, exits, number }: Iteration,
  lists: Lists,
): PlannedResult[] {
  const writer = new Int32Array(ranges.count).fill(-1);
  const task = new Map<DatumId, number>();
  for (let c = 0; c < commands.count; c++) {
    const begin = accesses.first[c];
    for (let i = begin; i < accesses.first[c + 1]; i++) {
      if ((accesses.of[i] & 1) === 0 || accesses.of[i] >> 1 === number) continue;
      writer[accesses.of[i] >> 1] = c;
      if (commands.isCopy[c] === 0)
        task.set(commands.data[commands.first[c] + i - begin] as DatumId, c);
    }
  }
  const placeOfCommand = (c: number): { list: number; record: number } => ({
    list: lists.listOf[commands.queue[c]],
    record: lists.recordOf[c],
  });
  return Array.from(exits, ([datum, list]) => ({
    datum,
    ...placeOfCommand(task.get(datum) as number),
    copies: list.map((range) => ({
      region: ranges.region[range],
      ...placeOfCommand(writer[range]),
    })),
  }));
}

function copiedIn({ commands }: Iteration, spaces: number): PlannedProgram['copied'] {
  const into = new Array<number>(spaces).fill(0);
  const outOf = new Array<number>(spaces).fill(0);
  for (let c = 0; c < commands.count; c++) {
    if (!commands.isCopy[c]) continue;
    const size = commands.values[commands.first[c] + 2];
    outOf[commands.what[c] >> 8] += size;
    into[commands.what[c] & 0xff] += size;
  }
  return { into, outOf };
}

function reportOf(
  engine: Engine,
  { name, insertions, share, iteration, evictions, makespan, criticalPath }: Decisions,
  waits: number,
  began: number,
): PlannedProgram['report'] {
  const { commands, ranges } = iteration;
  const bytes = { h2d: 0, d2h: 0, d2d: 0 };
  const counts = new Int32Array(engine.backend.queues.length);
  for (let c = 0; c < commands.count; c++) {
    counts[commands.queue[c]]++;
    if (!commands.isCopy[c]) continue;
    const size = commands.values[commands.first[c] + 2];
    const what = commands.what[c];
    bytes[what >> 8 === 0 ? 'h2d' : (what & 0xff) === 0 ? 'd2h' : 'd2d'] += size;
  }
  const memory: Record<string, number> = {};
  for (let g = 0; g < ranges.regions; g++) {
    const space = engine.spaceName(ranges.regionSpace[g]);
    memory[space] = (memory[space] ?? 0) + ranges.regionBytes[g];
  }
  return {
    name,
    tasks: insertions.count - (share?.messages.size ?? 0),
    messages: messagesOf(share),
    commands: Object.fromEntries(
      [...counts.entries()].flatMap(([q, n]) =>
        n === 0 ? [] : [[queueName(engine.backend, q as QueueId), n]],
      ),
    ),
    waits,
    bytes,
    memory,
    evictions,
    criticalPath,
    makespan,
    planning: (performance.now() - began) / 1000,
  };
}
