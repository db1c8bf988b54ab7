// Loading on several ranks: each rank reads the file with its part, and all ranks do so in one run. The run compares what the parts
// know of the whole plan, and ends when all ranks have loaded: so either all ranks have the plan, or none.
//
// Invariant: ranks that have loaded have parts with the same digest and the same messages, on the same data. A rank that cannot
// load fails the run, so no rank waits for its part.
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { DatumId } from '../../devices/handles.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import { isError } from '../../trace/thrown.js';
import type { Engine } from '../engine/engine.js';
import type { Graph } from '../program/graph.js';
import type { ResolvedOptions } from '../program/options.js';
import type { TaskClass } from '../program/task-class.js';
import type { Ranks } from '../ranks/ranks.js';
import type { FileContent } from './file-format.js';
import type { PlanHeader } from './file-header.js';
import type { MessageFacts } from './messages.js';
import { type OpenSlot, openSlots } from './open-slots.js';
import type { Plan } from './plan.js';
import type { Decisions } from './planned-program.js';
import { agreementOf, RankColumns } from './rank-columns.js';
import { messageRows, ShareBuilder } from './rank-share.js';
import type { SavedShare } from './read-decisions.js';
import type { PlayingRuntime, Together } from './together.js';

/** The runtime that loads. */
export interface LoadingRuntime extends PlayingRuntime {
  readonly options: ResolvedOptions;
}

export interface LoadedPlan {
  readonly plan: Plan;
  /** On several ranks. */
  readonly together: Together | undefined;
}

interface PartSource {
  readonly file: string;
  readonly header: PlanHeader;
  readonly column: FileContent['column'];
  readonly runtime: LoadingRuntime;
  readonly engine: Engine;
  /** Rows of the data of the header. */
  readonly data: readonly DatumId[];
  /** Rows of its classes. */
  readonly rows: readonly TaskClassRow[];
}

/** With what the part of this rank is read, and what it knows of the whole plan then. */
interface SavedPart {
  readonly share: SavedShare;
  readonly together: (decisions: Decisions, classes: readonly TaskClass[]) => Together;
}

/** The messages have no kernel on the machine. */
const NO_KERNEL = 0;

/** Undefined for the plan of one rank. @throws HeadraceError `ERR_PLAN_FILE` */
export function partOf(source: PartSource): SavedPart | undefined {
  const { file, header, column, runtime, engine, data, rows: used } = source;
  const { peers } = runtime;
  const { ranks } = header;
  if (peers === undefined || ranks === undefined) return undefined;
  const { rank } = peers;
  const { backend, directory } = engine;
  const columns = new RankColumns(file, column, ranks);
  const facts = columns.facts(data);
  const classes: TaskClassRow[] = [];
  for (const row of used) classes[row.id] = row;
  const rows = messageRows(classes, NO_KERNEL, backend.spaces.length);
  const bytesOf = (d: DatumId): number => directory.bytes[d];
  const builder = new ShareBuilder(rank, rows, backend.queues, bytesOf);
  const isInline = (bytes: number): boolean => peers.device.isInline(bytes);
  const { digest, inlineBytes, treeFrom } = ranks;
  return {
    share: { rank, columns, facts, builder, isInline },
    together: (decisions, given) => ({
      ...{ runtime, peers, messages: facts, treeFrom },
      whole: { digest, data, inlineBytes },
      slots: slotsOf(ranks.slots, decisions, given),
    }),
  };
}

/** The slots of all ranks. Those of this rank take what its tasks take, whatever the file says. */
function slotsOf(
  saved: readonly (readonly [string, boolean, boolean])[],
  { insertions, share }: Decisions,
  classes: readonly TaskClass[],
): ReadonlyMap<string, OpenSlot> {
  const open = insertions.open.filter(({ insertion }) => share?.messages.has(insertion) !== true);
  const classOf = (n: number): TaskClassRow => insertions.classOf(n);
  const own = openSlots({ open, classOf }, classes);
  const slots = new Map<string, OpenSlot>();
  for (const [name, isWhole, isTruth] of saved) slots.set(name, { name, isWhole, isTruth });
  for (const [name, slot] of own) {
    const known = slots.get(name);
    const isWhole = slot.isWhole || known?.isWhole === true;
    slots.set(name, { name, isWhole, isTruth: slot.isTruth || known?.isTruth === true });
  }
  return slots;
}

/** The run in which all ranks load. */
export async function loadTogether(
  { runtime, peers, file }: { runtime: LoadingRuntime; peers: Ranks; file: string },
  load: () => Promise<LoadedPlan>,
): Promise<Plan> {
  let plan: Plan | undefined;
  const program = async ({ state }: Graph): Promise<void> => {
    const made = await load().catch((error: unknown) => {
      throw inFile(error, file);
    });
    const { messages, whole } = made.together as Together;
    if (guards.planParts)
      peers.runs.graphs.does(
        state,
        `loading plan '${made.plan.name}' of ${file}`,
        wordsOf(peers, messages, whole),
      );
    plan = made.plan;
  };
  try {
    await runtime.run(program, { name: 'loading a plan' });
  } catch (error) {
    if (!isError(error) || !(error instanceof HeadraceError)) throw error;
    if (error.code !== 'ERR_GRAPH_MISMATCH') throw error;
    const { rank } = peers;
    throw new HeadraceError(
      'ERR_PLAN_MISMATCH',
      `${file} of rank ${rank} is not of the same plan as the files of the other ranks: ${error.message}`,
      { rank, cause: error },
    );
  }
  return plan as Plan;
}

/** What must be the same on all ranks: the whole plan with its messages, and its data. */
function wordsOf(
  { plan }: Ranks,
  messages: MessageFacts,
  { digest, data }: Together['whole'],
): number[] {
  const numberOf = new Map(data.map((d, i) => [d, i]));
  return [
    ...agreementOf(digest, messages, (d) => numberOf.get(d) as number),
    ...data.map((d) => plan.data.gid[d]),
  ];
}

/** The error with the name of the file, which the other ranks do not know. */
function inFile(error: unknown, file: string): unknown {
  if (!isError(error) || !(error instanceof HeadraceError) || error.message.includes(file))
    return error;
  return new HeadraceError(error.code, `${file}: ${error.message}`, {
    ...error.details,
    remedy: undefined,
    report: undefined,
    cause: error,
  });
}
