// From the program of the user to a plan.
import { HeadraceError } from '../../devices/errors.js';
import { type DatumId, HOST } from '../../devices/handles.js';
import { describeThrown, isError } from '../../trace/thrown.js';
import { checkText, optionsOf, shown } from '../checks.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import { type BoundClass, ClassBinder } from '../program/bound-class.js';
import type { ResolvedOptions } from '../program/options.js';
import { Partials } from '../program/partials.js';
import type { PlanParts } from '../program/parts/plan-parts.js';
import type { ProgramData } from '../program/program-data.js';
import { Reductions } from '../program/reductions.js';
import type { TaskClass } from '../program/task-class.js';
import type { Ranks } from '../ranks/ranks.js';
import { checkGraphChoice, type GraphChoice } from './driver-graph.js';
import type { Insertions } from './insertions.js';
import { planMessages } from './messages.js';
import { openSlots } from './open-slots.js';
import { Plan } from './plan.js';
import { PlanGraph } from './plan-graph.js';
import { PlannedParts } from './planned-parts.js';
import { Planner } from './planner.js';
import { PlanningEngine } from './planning-engine.js';
import { messageRows, rankShare } from './rank-share.js';
import type { PlayingRuntime } from './together.js';
import { wholePlanOf } from './whole-plan.js';

/** Options of `Runtime.plan`. */
export interface PlanOptions {
  /** Name in messages and reports; default 'plan'. */
  readonly name?: string;
  /**
   * Whether the iterations on one CUDA GPU are played as one CUDA graph: from the first play on, never, or once 16 iterations
   * are played or to be played ('auto', the default). `report.graph` says what is done.
   */
  readonly graph?: GraphChoice;
}

/** A plan is made anew if a queue is busy for that many times the mean. */
const UNEVEN = 1.1;
/** The other plan is taken if it is shorter by that factor. */
const BETTER = 1.05;
/** Commands queued ahead when tasks are dealt one by one. */
const RUN_AHEAD = 2;

/** Windows for tasks that are known: at least so many rows, and so many for each task. */
const LEAST_WINDOW = 1024;
const ROOM = 4;

/** A kernel of the host that does nothing: the planner's stand-in for an end of a message. */
const IDLE_KERNEL = 'empty';

/** The runtime that plans. */
interface PlanningRuntime extends PlayingRuntime {
  readonly options: ResolvedOptions;
  readonly programData: ProgramData;
}

/** The options of a plan, checked. */
interface PlanWish {
  readonly name: string;
  readonly choice: GraphChoice;
}

/** The graph of a plan, and what its program changes besides. */
interface PlanProgram {
  readonly graph: PlanGraph;
  readonly reductions: Reductions;
  readonly parts: PlannedParts;
}

/** Calls the program with a graph and makes the plan of its tasks. `Runtime.plan` has the errors. */
export async function makePlan(
  runtime: PlanningRuntime,
  engine: Engine,
  program: (graph: PlanGraph) => void | PromiseLike<void>,
  options: PlanOptions,
  isOver: () => boolean,
): Promise<Plan> {
  if (typeof program !== 'function')
    throw new HeadraceError(
      'ERR_ARGUMENT_TYPE',
      `a plan is made from a function that gets a graph, not ${shown(program)}`,
    );
  const given = optionsOf(options, ['name', 'graph'], 'the options of a plan');
  const name = checkText(given.name ?? 'plan', 'the name of a plan');
  const wish = { name, choice: checkGraphChoice(given.graph) };
  const { peers } = runtime;
  if (peers !== undefined) return planTogether(runtime, engine, peers, program, wish, isOver);
  const planning = plannerOf(runtime, engine);
  const made = graphOf(runtime, planning);
  try {
    await planned(made, program, name);
    if (isOver()) throw closedRuntime();
    return planOf(engine, planning, made, wish, isOver);
  } catch (error) {
    made.parts.held.letGo(true);
    if (!isOver()) for (const datum of made.graph.temporaries) datum.close();
    // What the program calls fails in other ways then.
    throw isOver() && (error as HeadraceError).code === 'ERR_PROGRAM'
      ? closedRuntime(error)
      : error;
  }
}

/** The program of a plan has awaited something, and the runtime was closed meanwhile. */
function closedRuntime(cause?: unknown): HeadraceError {
  return new HeadraceError('ERR_RUNTIME_CLOSED', 'the runtime is closed', { cause });
}

/**
 * The plan of tasks that `insert` inserts before it returns, `insertions` once more; on several ranks the part of this rank.
 * @throws HeadraceError as `makePlan` rejects
 */
export function planAtOnce(
  runtime: PlanningRuntime,
  engine: Engine,
  insert: (graph: PlanGraph) => void,
  insertions: Insertions,
  name: string,
  isOver: () => boolean,
): Plan {
  const planning = plannerOf(runtime, engine, insertions);
  const made = graphOf(runtime, planning);
  const { graph, reductions, parts } = made;
  insert(graph);
  reductions.endAll(graph);
  parts.endAll();
  graph.end();
  const { peers } = runtime;
  const wish: PlanWish = { name, choice: 'auto' };
  if (peers !== undefined)
    return shareOf(runtime, engine, peers, { recorder: planning, made }, wish, isOver);
  return planOf(engine, planning, made, wish, isOver);
}

/** `insertions`: what will be planned, if it is known. */
function plannerOf(
  { options, peers }: PlanningRuntime,
  engine: Engine,
  insertions?: Insertions,
): PlanningEngine {
  const { runAhead } = options;
  const isWhole = insertions === undefined || peers !== undefined;
  const window = isWhole ? options.window : windowFor(insertions, options.window);
  return new PlanningEngine(engine, engine.backend, { window, runAhead });
}

/**
 * The window in which the tasks have room several times over, so that they are planned as in the runtime's own window, `most`. The tables
 * of a planner lie outside the heap, and large ones make the garbage collector start every few plans.
 */
function windowFor({ count, mostFlows, mostParams }: Insertions, most: number): number {
  const needed = Math.max(ROOM * count, mostFlows, mostParams);
  let window = LEAST_WINDOW;
  while (window < needed) window *= 2;
  return Math.min(window, most);
}

/** The plan of the tasks that were inserted into `graph`, which is over. */
function planOf(
  engine: Engine,
  planning: PlanningEngine,
  { graph, parts: { held: parts } }: PlanProgram,
  { name, choice }: PlanWish,
  isOver: () => boolean,
): Plan {
  const planner = new Planner(planning, engine);
  let found = planner.finish(name);
  // Online, tasks are dealt to queues in runs, so that neighbours stay together; queues that run dry take others. A plan is
  // fixed. If a queue has much more to do than the mean, the tasks are dealt one by one, as queues become free.
  if (planning.planning.unevenness() > UNEVEN && !planner.isOfWorkers) {
    const few = { window: planning.tasks.window, runAhead: RUN_AHEAD };
    const other = new PlanningEngine(engine, engine.backend, few, planning);
    const even = new Planner(other, engine).again(name);
    if (even.report.makespan * BETTER < found.report.makespan) found = even;
  }
  const { mirrored: data } = planning;
  const { classes, temporaries } = graph;
  return new Plan(engine, found, { classes, data, temporaries, parts, isOver, choice });
}

function graphOf(
  { programData, peers, parts: real }: PlanningRuntime,
  planning: PlanningEngine,
  together?: RunState,
): PlanProgram {
  const classes = new ClassBinder(planning, programData);
  const partials = new Partials(programData, peers, undefined);
  const reductions = new Reductions({ engine: planning, peers, programData, classes, partials });
  const bind = (cls: TaskClass): BoundClass => classes.bind(cls);
  const parts = new PlannedParts(real, { engine: planning, bind }, peers);
  const graph = new PlanGraph(
    { peers, programData, classes, reductions, parts },
    planning,
    together,
  );
  parts.graph = graph as never;
  parts.reductions = reductions;
  return { graph, reductions, parts };
}

/** Calls the program. All of its tasks are in the graph then. */
async function planned(
  { graph, reductions, parts }: PlanProgram,
  program: (graph: PlanGraph) => void | PromiseLike<void>,
  name: string,
): Promise<void> {
  try {
    await parts.madeIn(() => program(graph));
    reductions.endAll(graph);
    parts.endAll();
  } catch (error) {
    if (isError(error) && error instanceof HeadraceError) throw error;
    throw new HeadraceError('ERR_PROGRAM', `plan '${name}' failed: ${describeThrown(error)}`, {
      cause: error,
    });
  }
  graph.end();
}

/**
 * The part of this rank. All ranks make the plan in a run, which compares their tasks and ends when all of them are done: so
 * either all ranks have the plan, or none.
 */
async function planTogether(
  runtime: PlanningRuntime,
  engine: Engine,
  peers: Ranks,
  program: (graph: PlanGraph) => void | PromiseLike<void>,
  wish: PlanWish,
  isOver: () => boolean,
): Promise<Plan> {
  const { name } = wish;
  let plan: Plan | undefined;
  let parts: PlanParts | undefined;
  await runtime
    .run(
      async (outer) => {
        const recorder = plannerOf(runtime, engine);
        const made = graphOf(runtime, recorder, outer.state);
        parts = made.parts.held;
        await planned(made, program, name);
        plan = shareOf(runtime, engine, peers, { recorder, made }, wish, isOver);
      },
      { name: `making plan '${name}'` },
    )
    .then(undefined, (error: unknown) => {
      parts?.letGo(false);
      throw error;
    });
  return plan as Plan;
}

/** The part of this rank in the plan of the tasks of all ranks, which `recorder` has from `graph`. */
function shareOf(
  runtime: PlanningRuntime,
  engine: Engine,
  peers: Ranks,
  { recorder, made }: { readonly recorder: PlanningEngine; readonly made: PlanProgram },
  { name, choice }: PlanWish,
  isOver: () => boolean,
): Plan {
  const { graph } = made;
  const { queues } = engine.backend;
  const { window, runAhead } = runtime.options;
  const { planning, tasks, insertions } = recorder;
  const rows = messageRows(
    recorder.x.classes,
    planning.kernel(IDLE_KERNEL, HOST),
    planning.spaces.length,
  );
  const bytesOf = (d: DatumId): number => engine.directory.bytes[d];
  const isShort = (d: DatumId): boolean => peers.device.isInline(bytesOf(d));
  const { treeFrom, inlineBytes } = runtime.options;
  const messages = planMessages(insertions, graph.rankOf, isShort, treeFrom);
  const { rank, size } = peers;
  const { maxArguments: mostArguments } = tasks;
  const machine = { rank, rows, queues, bytesOf, mostArguments };
  const share = rankShare(insertions, graph.rankOf, messages, machine);
  const own = new PlanningEngine(engine, engine.backend, { window, runAhead }, recorder, share);
  const found = new Planner(own, engine).again(name);
  const { classes, temporaries } = graph;
  const slots = openSlots(insertions, classes);
  const { mirrored: data } = recorder;
  const { readers, last, keys, pairs } = messages;
  const facts = { readers, last, keys, pairs };
  const infoOf = (d: DatumId): unknown => engine.directory.info[d];
  const same = { name, classes, infoOf, bytesOf, size, treeFrom, inlineBytes };
  const whole = wholePlanOf(insertions, graph.rankOf, same);
  const together = { runtime, peers, messages: facts, whole, slots, treeFrom };
  const parts = made.parts.held;
  const of = { classes, data, temporaries, parts, isOver, choice, together };
  return new Plan(engine, found, of);
}
