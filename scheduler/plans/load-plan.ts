// From the file of a plan to a plan of this runtime. Nothing is changed until all of the file is checked.
import { readFile } from 'node:fs/promises';
import { HeadraceError } from '../../devices/errors.js';
import type { SpaceId } from '../../devices/handles.js';
import { roundedBytes } from '../../devices/memory/zone.js';
import { describeThrown } from '../../trace/thrown.js';
import { checkOptions, checkText } from '../checks.js';
import type { Engine } from '../engine/engine.js';
import type { Datum } from '../program/datum.js';
import type { GraphRuntime } from '../program/graph.js';
import type { TaskClass } from '../program/task-class.js';
import { assemble } from './assembly.js';
import { contentOf } from './file-format.js';
import { checkedHeader, type PlanHeader } from './file-header.js';
import { givenClasses, givenData, mismatch } from './given-parts.js';
import { Plan } from './plan.js';
import { haveSameShape, machineOf, machineText } from './plan-machine.js';
import type { PlannedProgram } from './planned-program.js';
import { readDecisions } from './read-decisions.js';

/** What the file of a plan names. The program may give more than the plan uses. */
export interface LoadPlanOptions {
  /** Data by name: a datum, a tiled matrix, or a list of them. */
  readonly data: Datum | Iterable<Datum | Iterable<Datum>>;
  /** Task classes by name: one, or a list of them. */
  readonly classes: Pick<TaskClass, 'name' | 'modes'> | Iterable<Pick<TaskClass, 'name' | 'modes'>>;
}

/** `Runtime.loadPlan` has the errors. */
export async function loadPlan(
  runtime: GraphRuntime,
  engine: Engine,
  file: string,
  options: LoadPlanOptions,
  isOver: () => boolean,
): Promise<Plan> {
  checkText(file, 'the file of a plan');
  checkOptions(options, ['data', 'classes'], 'the options of loadPlan');
  if (runtime.peers !== undefined)
    throw new HeadraceError('ERR_PLAN_RANKS', 'a plan cannot be loaded on several ranks yet', {
      remedy: 'plan the program on every start',
    });
  const began = performance.now();
  const bytes = await contentsOf(file);
  if (isOver()) throw new HeadraceError('ERR_RUNTIME_CLOSED', 'the runtime is closed');
  const { header: saved, column } = contentOf(bytes, file);
  const header = checkedHeader(saved, file);
  const { name } = header;
  checkMachine(header, engine);
  const data = givenData(name, header.data, options.data, runtime.programData);
  const given = givenClasses(name, header.classes, options.classes);
  const rows = given.map((cls) => runtime.classes.bind(cls).row);
  const { backend, directory } = engine;
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
  });
  const program = assemble(engine, decisions, began);
  checkMemory(header, program, engine);
  checkValues(program, engine);
  const classes: TaskClass[] = [];
  for (const [i, { id }] of rows.entries()) classes[id] = given[i];
  return new Plan(engine, program, {
    classes,
    data: data.map(({ row }) => row),
    isOver,
    choice: header.graph,
  });
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

/** As an insertion does: what an iteration reads must have been written, or created with a value. */
function checkValues({ entry }: PlannedProgram, { directory }: Engine): void {
  for (const { datum } of entry) {
    if (directory.written[datum] !== 0) continue;
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
