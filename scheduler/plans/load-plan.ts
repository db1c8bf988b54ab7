// From the file of a plan to a plan of this runtime. Nothing is changed until all of the file is checked. On several ranks each
// loads the file with its part, and all of them find out whether the parts belong together (load-together.ts).
import { readFile } from 'node:fs/promises';
import { HeadraceError } from '../../devices/errors.js';
import type { DatumId, SpaceId } from '../../devices/handles.js';
import { roundedBytes } from '../../devices/memory/zone.js';
import { describeThrown } from '../../trace/thrown.js';
import { checkFile, optionsOf } from '../checks.js';
import type { Engine } from '../engine/engine.js';
import type { Datum } from '../program/datum.js';
import { PlanParts } from '../program/parts/plan-parts.js';
import type { TaskClass } from '../program/task-class.js';
import { assemble } from './assembly.js';
import { badFile, contentOf } from './file-format.js';
import { checkedHeader, type PlanHeader } from './file-header.js';
import { givenClasses, givenData, mismatch } from './given-parts.js';
import { type LoadedPlan, type LoadingRuntime, loadTogether, partOf } from './load-together.js';
import { Plan } from './plan.js';
import { haveSameShape, machineOf, machineText } from './plan-machine.js';
import type { PlannedProgram } from './planned-program.js';
import { readDecisions } from './read-decisions.js';
import { checkPlaces } from './saved-parts.js';

/** What the file of a plan names. The program may give more than the plan uses. */
export interface LoadPlanOptions {
  /** Data by name: a datum, a tiled matrix, or a list of them. */
  readonly data: Datum | Iterable<Datum | Iterable<Datum>>;
  /** Task classes by name: one, or a list of them. */
  readonly classes: Pick<TaskClass, 'name' | 'modes'> | Iterable<Pick<TaskClass, 'name' | 'modes'>>;
}

/** A file, and what it is loaded with. */
interface LoadedFile {
  readonly file: string;
  readonly bytes: Uint8Array;
  readonly given: Partial<LoadPlanOptions>;
  /** Those that the plan has open. */
  readonly parts: PlanParts;
  readonly isOver: () => boolean;
  /** As of `performance.now`. */
  readonly began: number;
}

/** `Runtime.loadPlan` has the errors. */
export async function loadPlan(
  runtime: LoadingRuntime,
  engine: Engine,
  file: string,
  options: LoadPlanOptions,
  isOver: () => boolean,
): Promise<Plan> {
  const parts = new PlanParts(runtime.parts);
  const load = async (): Promise<LoadedPlan> => {
    checkFile(file, 'the file of a plan');
    const given = optionsOf(options, ['data', 'classes'], 'the options of loadPlan');
    const began = performance.now();
    const bytes = await contentsOf(file);
    if (isOver()) throw new HeadraceError('ERR_RUNTIME_CLOSED', 'the runtime is closed');
    return loaded(runtime, engine, { file, bytes, given, parts, isOver, began });
  };
  const { peers } = runtime;
  try {
    if (peers !== undefined) return await loadTogether({ runtime, peers, file }, load);
    const { plan } = await load();
    return plan;
  } catch (error) {
    if (!isOver()) parts.letGo(peers === undefined);
    throw error;
  }
}

function loaded(
  runtime: LoadingRuntime,
  engine: Engine,
  { file, bytes, given: { data: ofData, classes: ofClasses }, parts, isOver, began }: LoadedFile,
): LoadedPlan {
  const { header: saved, column } = contentOf(bytes, file);
  const header = checkedHeader(saved, file);
  const { name } = header;
  checkPlaces(header, file);
  checkRanks(header, runtime);
  checkMachine(header, engine);
  const data = runtime.parts.madeFor(parts, () =>
    givenData(name, header.data, ofData, runtime.programData),
  );
  const given = givenClasses(name, header.classes, ofClasses);
  const rows = given.map((cls) => runtime.classes.bind(cls).row);
  const { backend, directory } = engine;
  const rowOf = data.map(({ row }) => row);
  const part = partOf({ file, header, column, runtime, engine, data: rowOf, rows });
  const decisions = readDecisions({
    file,
    header,
    column,
    data,
    classes: rows,
    types: header.classes.map(({ params }) => params.map(([, type]) => type)),
    queues: backend.queues,
    directory,
    spaceName: (s) => engine.spaceName(s),
    share: part?.share,
  });
  const program = assemble(engine, decisions, began);
  checkMemory(header, program, engine);
  const { facts } = part?.share ?? {};
  const begin = [...(facts?.readers.keys() ?? program.entry.map(({ datum }) => datum))];
  // The whole data have all values when an iteration begins (planned-parts.ts).
  if (begin.some((d) => header.data[rowOf.indexOf(d)].part !== undefined))
    throw badFile(file, 'a part is read before it is copied from its datum');
  checkValues(begin, runtime, engine);
  const classes: TaskClass[] = [];
  for (const [i, { id }] of rows.entries()) classes[id] = given[i];
  const together = part?.together(decisions, classes);
  const choice = header.graph;
  return {
    plan: new Plan(engine, program, { classes, data: rowOf, parts, isOver, choice, together }),
    together,
  };
}

/** A part fits its rank among as many ranks, which send alike. A plan of one rank has no parts. */
function checkRanks({ name, ranks }: PlanHeader, { peers, options }: LoadingRuntime): void {
  const remedy = 'plan the program again, or give each rank the file that this rank has saved';
  const text = (rank: number, size: number): string => `rank ${rank} of ${size}`;
  if (ranks?.rank !== peers?.rank || ranks?.size !== peers?.size) {
    const made = ranks === undefined ? 'one rank alone' : text(ranks.rank, ranks.size);
    const here = peers === undefined ? 'a rank alone' : text(peers.rank, peers.size);
    throw mismatch(name, `it was made for ${made}, and this is ${here}`, { remedy });
  }
  if (ranks === undefined) return;
  const { inlineBytes } = options;
  if (ranks.inlineBytes !== inlineBytes)
    throw mismatch(
      name,
      `it was made with the option inlineBytes: ${ranks.inlineBytes}, and this runtime has ${inlineBytes}`,
      { remedy: 'open the runtime with the same options, or plan the program again' },
    );
}

async function contentsOf(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new HeadraceError('ERR_PLAN_FILE', `${file} cannot be read: ${describeThrown(cause)}`, {
      cause,
    });
  }
}

function checkMachine({ name, machine }: PlanHeader, { backend }: Engine): void {
  const here = machineOf(backend);
  if (haveSameShape(machine, here)) return;
  throw mismatch(
    name,
    `it was made for ${machineText(machine)}, and this runtime has ${machineText(here)}`,
    { remedy: 'open the runtime with the same options, or plan the program again' },
  );
}

/** A plan may have been made for more memory than the GPUs have here. The host was checked before. */
function checkMemory({ name, machine }: PlanHeader, program: PlannedProgram, engine: Engine): void {
  const needed = new Map<SpaceId, number>();
  for (const { space, bytes } of program.regions)
    needed.set(space, (needed.get(space) ?? 0) + roundedBytes(bytes));
  for (const [s, bytes] of needed) {
    const { capacity } = engine.spaces[s].zone;
    if (bytes <= capacity) continue;
    const device = engine.spaceName(s);
    throw mismatch(
      name,
      `it needs ${bytes} bytes of ${device}, which has ${capacity}; it was made for ${machine.spaces[s].bytes}`,
      {
        device,
        bytes,
        limit: capacity,
        remedy: 'raise the memory option of the device, or plan the program again',
      },
    );
  }
}

/** As an insertion does: what an iteration reads must have been written, or created with a value, as far as this rank knows. */
function checkValues(
  read: Iterable<DatumId>,
  { peers }: LoadingRuntime,
  { directory }: Engine,
): void {
  for (const datum of read) {
    if (directory.written[datum] !== 0 || peers?.datumCalls.mustKnow(datum) === false) continue;
    const { name } = directory.info[datum] as Datum;
    throw new HeadraceError(
      'ERR_NEVER_WRITTEN',
      `datum '${name}' is read, and nothing has written it`,
      {
        datum: name,
        remedy: 'create it from an array, or set it, before the plan is loaded',
      },
    );
  }
}
