// Writes a plan to a file: the decisions, in the words of the program where it has words. Addresses, waits, lists and regions are
// not in the file: they follow from the decisions (assembly.ts).
//
// A *place* is memory of one datum in a space, at the offset that it had while the plan was made. Tables of the file:
// - places: datum, space, offset;
// - tasks in program order: class, parameters, and the place of each flow;
// - commands in the order of issue: queue, and the task + 1; 0 for a copy, whose places are in a table of their own;
// - exits: the places of the data that are written, after an iteration; those of a datum together, the owner's first;
// - open parameters: task, parameter, slot; and pairs of a task and one that it was declared to follow.
//
// On several ranks each has a file with its part. Ends of messages are among the tasks, with the number behind the last class; what
// else belongs to them follows from rank-columns.ts.
import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import { HeadraceError } from '../../devices/errors.js';
import type { DatumId } from '../../devices/handles.js';
import { packageVersion } from '../../devices/installation.js';
import { describeThrown } from '../../trace/thrown.js';
import { checkText } from '../checks.js';
import type { Datum } from '../program/datum.js';
import { isDefaultName } from '../program/datum-options.js';
import type { TaskClass } from '../program/task-class.js';
import type { GraphChoice } from './driver-graph.js';
import { type Columns, fileOf } from './file-format.js';
import { type PlanHeader, type SavedRanks, savedClass } from './file-header.js';
import { among } from './given-parts.js';
import type { PlanMachine } from './plan-machine.js';
import type { Decisions } from './planned-program.js';
import { factColumns, messageColumn } from './rank-columns.js';
import { ERA_SLOT, type RankShare } from './rank-share.js';
import { classInFile, isOfLibrary, savedPlace } from './saved-parts.js';
import type { Together } from './together.js';

/** A plan, with the objects of the program that its rows stand for. */
interface SavedPlan {
  readonly decisions: Decisions;
  /** Class of an insertion. */
  readonly classOf: (n: number) => TaskClass;
  readonly datum: (d: DatumId) => Datum;
  readonly machine: PlanMachine;
  readonly graph: GraphChoice;
  /** On several ranks: the part of this one is saved. */
  readonly together: Together | undefined;
}

/** The bytes of the file of a plan. @throws HeadraceError `ERR_PLAN_NAMES` */
export function bytesOf(plan: SavedPlan): Uint8Array {
  const { decisions, machine, graph, together } = plan;
  const { name, evictions, makespan, criticalPath, insertions } = decisions;
  const { share } = decisions;
  const data = (together?.whole.data ?? usedData(decisions)).map(
    (d) => [d, plan.datum(d)] as const,
  );
  for (const [, { partialOf }] of data) if (partialOf !== undefined) throw reduces(name, partialOf);
  const isTask = (n: number): boolean => share?.messages.has(n) !== true;
  const classes = Array.from({ length: insertions.count }, (_, n) =>
    isTask(n) ? classInFile(plan.classOf(n)) : undefined,
  );
  const used = [...new Set(classes)].filter((cls) => cls !== undefined);
  const open = insertions.open.filter(({ slot }) => slot !== ERA_SLOT);
  const slots = [...new Set(open.map(({ slot }) => slot))];
  const numberOf = new Map(data.map(([d], i) => [d, i]));
  const header: PlanHeader = {
    headrace: packageVersion(),
    name,
    graph,
    evictions,
    makespan,
    criticalPath,
    machine,
    data: data.map(([, datum]) => {
      const { name, element, bytes } = datum;
      const place = savedPlace(datum, ({ row }) => numberOf.get(row) as number);
      return { name, element, bytes, ...place };
    }),
    classes: used.map((cls) => ({
      ...savedClass(cls),
      ...(isOfLibrary(cls) && { library: true }),
    })),
    slots,
    ranks: together && savedRanks(together),
  };
  checkDataNames(name, header);
  checkClassNames(name, header);
  const place = new Map(used.map((cls, i) => [cls, i]));
  return fileOf(
    { ...header },
    {
      ...columnsOf(decisions, numberOf),
      params: paramsOf(decisions),
      class: classes.map((cls) => (cls === undefined ? used.length : (place.get(cls) as number))),
      open: open.flatMap(({ insertion, parameter, slot }) => [
        insertion,
        parameter,
        slots.indexOf(slot),
      ]),
      after: [...insertions.after].flatMap(([n, before]) =>
        isTask(n) ? before.flatMap((b) => [n, b]) : [],
      ),
      ...(together && rankColumns(together, share, numberOf)),
    },
  );
}

/** Replaces the file as a whole. Rejects with `ERR_PLAN_FILE` */
export async function writePlan(file: string, bytes: Uint8Array): Promise<void> {
  const part = `${checkText(file, 'the file of a plan')}.${randomUUID()}.part`;
  try {
    await writeFile(part, bytes);
    await rename(part, file);
  } catch (cause) {
    await rm(part, { force: true }).catch(() => {});
    throw new HeadraceError(
      'ERR_PLAN_FILE',
      `${file} cannot be written: ${describeThrown(cause)}`,
      { cause },
    );
  }
}

/** The data of the tasks, in the order of their first use. */
function usedData({ insertions }: Decisions): DatumId[] {
  const used = new Set<DatumId>();
  for (let n = 0; n < insertions.count; n++)
    for (let i = 0; i < insertions.classOf(n).modes.length; i++) used.add(insertions.datum(n, i));
  return [...used];
}

function columnsOf({ iteration }: Decisions, numberOf: ReadonlyMap<DatumId, number>): Columns {
  const { commands, accesses, ranges, exits } = iteration;
  const places = new Map<number, number>();
  const [placeDatum, placeSpace, placeOffset]: number[][] = [[], [], []];
  const place = (range: number, d: number): number => {
    const datum = numberOf.get(d as DatumId) as number;
    const key = range * numberOf.size + datum;
    const known = places.get(key);
    if (known !== undefined) return known;
    placeDatum.push(datum);
    placeSpace.push(ranges.space[range]);
    placeOffset.push(ranges.offset[range]);
    places.set(key, places.size);
    return places.size - 1;
  };
  const flows: number[][] = [];
  const copies: number[] = [];
  for (let c = 0; c < commands.count; c++) {
    const data = commands.data.subarray(commands.first[c]);
    const used = accesses.of.subarray(accesses.first[c], accesses.first[c + 1]);
    if (commands.isCopy[c]) for (const access of used) copies.push(place(access >> 1, data[0]));
    else
      flows[commands.insertion[c]] = Array.from(used, (access, i) => place(access >> 1, data[i]));
  }
  const left = Array.from(exits, ([d, list]) => list.map((range) => place(range, d)));
  return {
    placeDatum,
    placeSpace,
    placeOffset: Float64Array.from(placeOffset),
    flows: flows.flat(),
    // The lanes of messages are chosen anew.
    queue: Array.from(commands.queue.subarray(0, commands.count), (q, c) =>
      commands.message[c] === 0 ? q : 0,
    ),
    task: Array.from(commands.insertion.subarray(0, commands.count), (n) => n + 1),
    copies,
    exits: left.flat(),
  };
}

/** The parameters of the tasks. */
function paramsOf({ insertions, share }: Decisions): Float64Array {
  if (share === undefined) return insertions.allParameters();
  const params: number[] = [];
  for (let n = 0; n < insertions.count; n++)
    if (!share.messages.has(n))
      insertions.classOf(n).paramNames.forEach((_, i) => {
        params.push(insertions.parameter(n, i));
      });
  return Float64Array.from(params);
}

function savedRanks({ peers, messages, whole, treeFrom, slots }: Together): SavedRanks {
  const { rank, size } = peers;
  const { digest, inlineBytes } = whole;
  return {
    ...{ rank, size, treeFrom, inlineBytes, digest },
    keys: messages.keys,
    slots: Array.from(slots.values(), ({ name, isWhole, isTruth }) => [name, isWhole, isTruth]),
  };
}

function rankColumns(
  { messages }: Together,
  share: RankShare | undefined,
  numberOf: ReadonlyMap<DatumId, number>,
): Columns {
  return {
    ...factColumns(messages, (d) => numberOf.get(d) as number),
    ...messageColumn(share?.messages.values() ?? []),
  };
}

function checkDataNames(plan: string, { data }: PlanHeader): void {
  const names = data.map(({ name }) => name);
  const unnamed = names.filter(isDefaultName);
  const repeated = repeatedIn(names.filter((name) => !isDefaultName(name)));
  const texts = [
    ...(unnamed.length > 0
      ? [`${among('datum', 'data', unnamed)} got no name from the program`]
      : []),
    ...(repeated.length > 0 ? [`several data are named ${repeated.join(', ')}`] : []),
  ];
  if (texts.length === 0) return;
  throw new HeadraceError(
    'ERR_PLAN_NAMES',
    `plan '${plan}' cannot be saved, because a file names its data: ${texts.join('; ')}`,
    {
      remedy:
        "give each datum of the plan a name of its own: runtime.data(values, { name: '...' }); a tiled matrix passes its name on to its tiles",
    },
  );
}

function reduces(plan: string, { name }: Datum): HeadraceError {
  return new HeadraceError(
    'ERR_PLAN_NAMES',
    `plan '${plan}' cannot be saved: it reduces into datum '${name}', and a program that loads it has no names for the partial results`,
    { datum: name, remedy: 'make the plan anew at start' },
  );
}

function checkClassNames(plan: string, { classes }: PlanHeader): void {
  const [text] = repeatedIn(classes.map((cls) => JSON.stringify(cls)));
  if (text === undefined) return;
  const { name } = JSON.parse(text) as { name: string };
  throw new HeadraceError(
    'ERR_PLAN_NAMES',
    `plan '${plan}' cannot be saved: two of its task classes are named '${name}' and have the same flows, parameters and kernels`,
    { task: name, remedy: 'make the class once, or give one of them another name' },
  );
}

/** Texts that occur more than once. */
function repeatedIn(texts: readonly string[]): string[] {
  const seen = new Set<string>();
  return [...new Set(texts.filter((text) => seen.size === seen.add(text).size))];
}
