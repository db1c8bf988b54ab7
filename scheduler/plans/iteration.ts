// An iteration of a plan: its commands, the bytes that they use, and where the data lie before it and after it.
import type { QueueInfo } from '../../devices/backend.js';
import { guards } from '../../devices/guards.js';
import { type DatumId, HOST, type SpaceId } from '../../devices/handles.js';
import type { Directory } from '../../devices/memory/directory.js';
import type { PlannedCommands } from '../../devices/planning/commands.js';
import { AccessMode } from '../../trace/format.js';
import type { PlannedParts } from './chains.js';
import type { Insertions } from './insertions.js';
import { type Accesses, Ranges } from './ranges.js';

/** A copy of a datum in planned memory. */
export interface CopyPlace {
  readonly space: SpaceId;
  readonly offset: number;
}

/** The copies of each datum that the plan writes, after the iteration; the owner's first. */
type Exits = ReadonlyMap<DatumId, readonly CopyPlace[]>;

export interface Iteration extends PlannedParts {
  readonly commands: PlannedCommands;
  /** The range of each copy of `Exits`. */
  readonly exits: ReadonlyMap<DatumId, readonly number[]>;
  readonly entry: readonly { readonly datum: DatumId; readonly range: number }[];
  /** The only datum in each region; undefined for a region that several data use in turn, or that belongs to none. */
  readonly users: readonly (DatumId | undefined)[];
  /** The range of `IterationParts.number`. */
  readonly number: number | undefined;
}

/** Memory of the host for the number that a condition looks at. It is a copy of the begin of a datum and belongs to no datum. */
export interface NumberPlace {
  readonly offset: number;
  readonly bytes: number;
}

/** What an iteration is made of. */
interface IterationParts {
  readonly insertions: Insertions;
  readonly commands: PlannedCommands;
  readonly exits: Exits;
  /** Sizes of data. */
  readonly directory: Pick<Directory, 'bytes'>;
  readonly queues: readonly QueueInfo[];
  /** Set if a condition looks at memory of its own (look.ts). */
  readonly number?: NumberPlace | undefined;
}

export function iterationOf(parts: IterationParts): Iteration {
  const { commands, directory } = parts;
  const ranges = new Ranges();
  const accesses = accessesOf(parts, ranges);
  const exits = new Map<DatumId, number[]>();
  for (const [d, places] of parts.exits)
    exits.set(
      d,
      places.map(({ space, offset }) => ranges.of(space, offset, directory.bytes[d])),
    );
  const place = parts.number;
  const number = place && ranges.of(HOST, place.offset, place.bytes);
  ranges.cut();
  const entry = entryOf(commands, accesses, ranges);
  const users = usersOf({ commands, ranges, accesses, exits, entry, number });
  return { commands, ranges, accesses, exits, entry, users, number };
}

/**
 * Whether all copies that are needed at the begin are there at the end, and whether the copies that stay have memory that
 * no other datum uses.
 */
export function repeats({ entry, exits, ranges, users }: Iteration): boolean {
  if (!guards.planRepeats) return true;
  if (!entry.every(({ datum, range }) => exits.get(datum)?.includes(range) ?? true)) return false;
  const isOwn = (d: DatumId, range: number): boolean => users[ranges.region[range]] === d;
  return (
    entry.every(({ datum, range }) => isOwn(datum, range)) &&
    [...exits].every(([d, list]) => list.every((range) => isOwn(d, range)))
  );
}

function accessesOf(
  { insertions, commands, directory, queues, number }: IterationParts,
  ranges: Ranges,
): Accesses {
  const rangeOf = (space: SpaceId, offset: number, datum: number): number => {
    const isNumber = space === HOST && offset === number?.offset;
    return ranges.of(space, offset, isNumber ? number.bytes : directory.bytes[datum]);
  };
  const first = new Int32Array(commands.count + 1);
  let most = 0;
  for (let c = 0; c < commands.count; c++) most += Math.max(2, commands.flows[c]);
  const of = new Int32Array(most);
  const reads = new Uint8Array(most);
  let n = 0;
  for (let c = 0; c < commands.count; c++) {
    first[c] = n;
    const at = commands.first[c];
    if (commands.isCopy[c]) {
      const datum = commands.data[at];
      const to = (commands.what[c] & 0xff) as SpaceId;
      const from = (commands.what[c] >> 8) as SpaceId;
      reads[n] = 1;
      of[n++] = rangeOf(from, commands.values[at + 1], datum) * 2;
      of[n++] = rangeOf(to, commands.values[at], datum) * 2 + 1;
      continue;
    }
    const { modes } = insertions.classOf(commands.insertion[c]);
    const { space } = queues[commands.queue[c]];
    for (let i = 0; i < modes.length; i++) {
      const range = rangeOf(space, commands.values[at + i], commands.data[at + i]);
      const writes = modes[i] === AccessMode.read ? 0 : 1;
      reads[n] = modes[i] === AccessMode.write ? 0 : 1;
      of[n++] = range * 2 + writes;
    }
  }
  first[commands.count] = n;
  return { first, of: of.subarray(0, n), reads: reads.subarray(0, n) };
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
  number,
}: Omit<Iteration, 'users'>): (DatumId | undefined)[] {
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
  if (number !== undefined) isShared[ranges.region[number]] = 1;
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
