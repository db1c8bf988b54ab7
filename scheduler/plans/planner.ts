// Makes a plan: inserts the tasks into the engine over the planning backend and turns the commands into lists.
//
// A plan can be played again and again only if every copy that an iteration needs at its begin is there again at its end.
// Three ways are tried in this order:
// 1. from the host: all data lie on the host before the iteration. It serves if they do so afterwards, as with tasks of the
//    host only;
// 2. resident: the iteration begins where the first one ended. It serves if no copy has to leave a GPU: then every datum has
//    its own memory on every device that uses it;
// 3. from the host, and back to the host at the end.

import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { type DatumId, HOST, type SpaceId } from '../../devices/handles.js';
import type { CommandColumns, PlannedCommands } from '../../devices/planning/commands.js';
import { AccessMode } from '../../trace/format.js';
import type { Engine } from '../engine/engine.js';
import { criticalPath } from './chains.js';
import { listsForGraph } from './graph-lists.js';
import { addressesOf, type Lists, writeLists } from './layout.js';
import type {
  PlannedCopy,
  PlannedProgram,
  PlannedRegion,
  PlannedResult,
  PlannedTask,
} from './planned-program.js';
import type { PlanningEngine } from './planning-engine.js';
import { queueName } from './queue-name.js';
import { type Accesses, Ranges } from './ranges.js';
import { findWaits } from './waits.js';

/** The commands of one way to run the tasks, and where the data lie afterwards. */
interface Attempt {
  readonly commands: CommandColumns;
  readonly ranges: Ranges;
  readonly accesses: Accesses;
  /** Range of the memory of each datum per space after the iteration, owner's first; for data that are written. */
  readonly exits: ReadonlyMap<DatumId, readonly number[]>;
  readonly entry: readonly { readonly datum: DatumId; readonly range: number }[];
  /** The only datum in each region; undefined for a region that several data use in turn. */
  readonly users: readonly (DatumId | undefined)[];
  readonly evictions: number;
  readonly makespan: number;
}

export class Planner {
  private readonly engine: PlanningEngine;
  private readonly real: Engine;
  private readonly began: number = performance.now();

  constructor(engine: PlanningEngine, real: Engine) {
    this.engine = engine;
    this.real = real;
  }

  /** The tasks are inserted into the engine: makes the plan. */
  finish(name: string): PlannedProgram {
    this.engine.drain();
    return this.plan(name);
  }

  /** Inserts the tasks of the engine that this one is like, and makes the plan. */
  again(name: string): PlannedProgram {
    this.engine.repeat();
    return this.plan(name);
  }

  private plan(name: string): PlannedProgram {
    const { engine } = this;
    const fromHost = this.attempt(0, 0);
    if (this.repeats(fromHost)) return this.program(name, fromHost);
    const evictions = engine.x.counters.evictions;
    const begin = engine.backend.now();
    engine.repeat();
    const resident = this.attempt(evictions, begin);
    if (resident.evictions === 0 && this.repeats(resident)) return this.program(name, resident);
    engine.goHome();
    const before = engine.x.counters.evictions;
    const beginAgain = engine.backend.now();
    engine.repeat();
    const dropped = engine.x.counters.evictions - before;
    engine.goHome();
    const after = engine.x.counters.evictions - dropped;
    const home = this.attempt(after, beginAgain);
    // Before and after, all data lie on the host, each in a place of its own: this way always repeats.
    return this.program(name, home);
  }

  /** What the commands since the last begin need and leave. */
  private attempt(evictionsBefore: number, begin: number): Attempt {
    const { engine } = this;
    const { commands } = engine.planning;
    engine.planning.end();
    const ranges = new Ranges();
    const accesses = this.accesses(commands, ranges);
    const exits = new Map<DatumId, number[]>();
    const dir = engine.directory;
    for (const d of this.written()) {
      const list: number[] = [];
      const owner = dir.owner(d);
      for (let s = HOST; s < dir.spaces; s++) {
        if (((dir.validMask[d] >> s) & 1) === 0) continue;
        const range = ranges.of(s, dir.block[d * dir.spaces + s], dir.bytes[d]);
        if (s === owner) list.unshift(range);
        else list.push(range);
      }
      exits.set(d, list);
    }
    ranges.cut();
    const entry = entryOf(commands, accesses, ranges);
    return {
      commands,
      ranges,
      accesses,
      exits,
      entry,
      users: usersOf({ commands, ranges, accesses, exits, entry }),
      evictions: engine.x.counters.evictions - evictionsBefore,
      makespan: (engine.backend.now() - begin) * 1e-9,
    };
  }

  /**
   * Whether all copies that are needed at the begin are there at the end, and whether the copies that stay have memory that
   * no other datum uses.
   */
  private repeats({ entry, exits, ranges, users }: Attempt): boolean {
    if (!guards.planRepeats) return true;
    if (!entry.every(({ datum, range }) => exits.get(datum)?.includes(range) ?? true)) return false;
    const isOwn = (d: DatumId, range: number): boolean => users[ranges.region[range]] === d;
    return (
      entry.every(({ datum, range }) => isOwn(datum, range)) &&
      [...exits].every(([d, list]) => list.every((range) => isOwn(d, range)))
    );
  }

  private *written(): Iterable<DatumId> {
    const { insertions } = this.engine;
    const seen = new Set<DatumId>();
    for (let n = 0; n < insertions.count; n++) {
      const { modes } = insertions.classes[n];
      for (let i = 0; i < modes.length; i++) {
        const d = insertions.datum(n, i);
        if (modes[i] === AccessMode.read || seen.has(d)) continue;
        seen.add(d);
        yield d;
      }
    }
  }

  private accesses(commands: PlannedCommands, ranges: Ranges): Accesses {
    const { insertions, directory, backend } = this.engine;
    const first = new Int32Array(commands.count + 1);
    const of: number[] = [];
    const reads: number[] = [];
    for (let c = 0; c < commands.count; c++) {
      first[c] = of.length;
      const at = commands.first[c];
      if (commands.isCopy[c]) {
        const bytes = commands.values[at + 2];
        const to = (commands.what[c] & 0xff) as SpaceId;
        const from = (commands.what[c] >> 8) as SpaceId;
        of.push(ranges.of(from, commands.values[at + 1], bytes) * 2);
        of.push(ranges.of(to, commands.values[at], bytes) * 2 + 1);
        reads.push(1, 0);
        continue;
      }
      const { modes } = insertions.classes[commands.insertion[c]];
      const { space } = backend.queues[commands.queue[c]];
      for (let i = 0; i < modes.length; i++) {
        const bytes = directory.bytes[commands.data[at + i]];
        const writes = modes[i] === AccessMode.read ? 0 : 1;
        of.push(ranges.of(space, commands.values[at + i], bytes) * 2 + writes);
        reads.push(modes[i] === AccessMode.write ? 0 : 1);
      }
    }
    first[commands.count] = of.length;
    return { first, of: Int32Array.from(of), reads: Uint8Array.from(reads) };
  }

  private program(name: string, attempt: Attempt): PlannedProgram {
    const { engine } = this;
    const { insertions } = engine;
    const { commands, ranges, accesses } = attempt;
    const slots = [...new Set(insertions.open.map((o) => o.slot))];
    const queues = engine.backend.queues.length;
    const waits = findWaits(commands, accesses, ranges, queues, insertions.after);
    const lists = writeLists(commands, waits, insertions.open, slots);
    const regions = regionsOf(attempt, addressesOf(commands, accesses, ranges, lists));
    this.checkHost(name, regions);
    return {
      queues: lists.queues,
      regions,
      entry: attempt.entry.map(
        ({ datum, range }): PlannedCopy => ({ datum, region: ranges.region[range] }),
      ),
      results: this.results(attempt, lists),
      slots,
      task: (n): PlannedTask => ({
        cls: insertions.classes[n],
        data: insertions.classes[n].modes.map((_, i) => insertions.datum(n, i)),
        params: insertions.classes[n].paramNames.map((_, i) => insertions.parameter(n, i)),
        slots: insertions.classes[n].paramNames.map((_, i) => slots.indexOf(insertions.slot(n, i))),
      }),
      graphLists: () => listsForGraph(attempt, engine.backend.queues, insertions.after),
      report: this.report(name, attempt, waits.queue.length),
    };
  }

  /** @throws HeadraceError `ERR_OUT_OF_HOST_MEMORY` when the host has not enough memory for the plan alone */
  private checkHost(name: string, regions: readonly PlannedRegion[]): void {
    const { capacity } = this.real.spaces[HOST].zone;
    let bytes = 0;
    for (const region of regions) if (region.space === HOST) bytes += region.bytes;
    if (bytes <= capacity) return;
    throw new HeadraceError(
      'ERR_OUT_OF_HOST_MEMORY',
      `plan '${name}' needs ${bytes} bytes of host memory for its data, and the host has ${capacity}`,
      { bytes, limit: capacity, remedy: 'raise hostMemory' },
    );
  }

  private results({ commands, ranges, accesses, exits }: Attempt, lists: Lists): PlannedResult[] {
    const writer = new Int32Array(ranges.count).fill(-1);
    const task = new Map<DatumId, number>();
    for (let c = 0; c < commands.count; c++) {
      const begin = accesses.first[c];
      for (let i = begin; i < accesses.first[c + 1]; i++) {
        if ((accesses.of[i] & 1) === 0) continue;
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

  private report(name: string, attempt: Attempt, waits: number): PlannedProgram['report'] {
    const { commands, ranges } = attempt;
    const { insertions } = this.engine;
    const bytes = { h2d: 0, d2h: 0, d2d: 0 };
    const counts = new Map<string, number>();
    for (let c = 0; c < commands.count; c++) {
      const queue = queueName(this.real.backend, commands.queue[c]);
      counts.set(queue, (counts.get(queue) ?? 0) + 1);
      if (!commands.isCopy[c]) continue;
      const size = commands.values[commands.first[c] + 2];
      const what = commands.what[c];
      bytes[what >> 8 === 0 ? 'h2d' : (what & 0xff) === 0 ? 'd2h' : 'd2d'] += size;
    }
    const memory: Record<string, number> = {};
    for (let g = 0; g < ranges.regions; g++) {
      const space = this.real.spaceName(ranges.regionSpace[g]);
      memory[space] = (memory[space] ?? 0) + ranges.regionBytes[g];
    }
    return {
      name,
      tasks: insertions.count,
      commands: Object.fromEntries(counts),
      waits,
      bytes,
      memory,
      evictions: attempt.evictions,
      criticalPath: criticalPath(attempt, insertions.after),
      makespan: attempt.makespan,
      planning: (performance.now() - this.began) / 1000,
    };
  }
}

function regionsOf({ ranges, users }: Attempt, addresses: readonly number[][]): PlannedRegion[] {
  return addresses.map((list, g) => ({
    space: ranges.regionSpace[g],
    bytes: ranges.regionBytes[g],
    datum: users[g],
    addresses: Float64Array.from(list),
  }));
}

/**
 * The only datum in each region; undefined for a region that several data use in turn. A datum that has left a GPU and come
 * back has several regions there: one of them is its own, that of its copy before or after the iteration if there is one.
 */
function usersOf({
  commands,
  ranges,
  accesses,
  exits,
  entry,
}: Omit<Attempt, 'users' | 'evictions' | 'makespan'>): (DatumId | undefined)[] {
  const users = new Array<DatumId | undefined>(ranges.regions);
  const isShared = new Uint8Array(ranges.regions);
  const rangeOf = new Int32Array(ranges.regions).fill(-1);
  const use = (d: DatumId, range: number): void => {
    const g = ranges.region[range];
    // A datum that has come back to memory that overlaps its old one lies in two ranges of a region larger than itself.
    if (rangeOf[g] >= 0 && (users[g] !== d || rangeOf[g] !== range)) isShared[g] = 1;
    users[g] = d;
    rangeOf[g] = range;
  };
  for (let c = 0; c < commands.count; c++) {
    const begin = accesses.first[c];
    for (let i = begin; i < accesses.first[c + 1]; i++) {
      const flow = commands.isCopy[c] ? 0 : i - begin;
      use(commands.data[commands.first[c] + flow] as DatumId, accesses.of[i] >> 1);
    }
  }
  for (const [d, list] of exits) for (const range of list) use(d, range);
  const kept = [...exits.values()].flat().concat(entry.map(({ range }) => range));
  const own = new Map<string, number>();
  for (const g of [...kept.map((range) => ranges.region[range]), ...users.keys()]) {
    const place = `${ranges.regionSpace[g]} ${users[g]}`;
    if (isShared[g] === 0 && !own.has(place)) own.set(place, g);
  }
  return users.map((d, g) => (own.get(`${ranges.regionSpace[g]} ${d}`) === g ? d : undefined));
}

/** Copies whose first use in the iteration reads a value that lies there before it. */
function entryOf(
  commands: PlannedCommands,
  accesses: Accesses,
  ranges: Ranges,
): { datum: DatumId; range: number }[] {
  const touched = new Uint8Array(ranges.segments);
  const entry: { datum: DatumId; range: number }[] = [];
  for (let c = 0; c < commands.count; c++) {
    const begin = accesses.first[c];
    for (let i = begin; i < accesses.first[c + 1]; i++) {
      const range = accesses.of[i] >> 1;
      const first = ranges.firstSegment[range];
      if (touched[first] === 0 && accesses.reads[i] === 1) {
        // Both ends of a copy hold the datum that is kept with its first argument.
        const flow = commands.isCopy[c] ? 0 : i - begin;
        entry.push({ datum: commands.data[commands.first[c] + flow] as DatumId, range });
      }
      touched.fill(1, first, ranges.lastSegment[range] + 1);
    }
  }
  return entry;
}
