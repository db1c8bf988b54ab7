// From the program of the user to a plan.
import { HeadraceError } from '../../devices/errors.js';
import { describeThrown, isError } from '../../trace/thrown.js';
import { checkOptions, checkText, shown } from '../checks.js';
import type { Engine } from '../engine/engine.js';
import { ClassBinder } from '../program/bound-class.js';
import type { GraphRuntime } from '../program/graph.js';
import type { ResolvedOptions } from '../program/options.js';
import type { ProgramData } from '../program/program-data.js';
import { checkGraphChoice, type GraphChoice } from './driver-graph.js';
import { Plan } from './plan.js';
import { PlanGraph } from './plan-graph.js';
import { Planner } from './planner.js';
import { PlanningEngine } from './planning-engine.js';

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

/** The runtime that plans. */
interface PlanningRuntime extends GraphRuntime {
  readonly options: ResolvedOptions;
  readonly programData: ProgramData;
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
  checkOptions(options, ['name', 'graph'], 'options of a plan');
  const name = options.name === undefined ? 'plan' : checkText(options.name, 'the name of a plan');
  const choice = checkGraphChoice(options.graph);
  if (runtime.peers !== undefined)
    throw new HeadraceError(
      'ERR_PLAN_RANKS',
      `plan '${name}': a program on several ranks cannot be planned yet`,
      { remedy: 'insert the tasks with runtime.run' },
    );
  const { window, runAhead } = runtime.options;
  const planning = new PlanningEngine(engine, engine.backend, { window, runAhead });
  const { programData } = runtime;
  const classes = new ClassBinder(planning, programData);
  const graph = new PlanGraph({ peers: undefined, programData, classes }, planning);
  try {
    await program(graph);
  } catch (error) {
    if (isError(error) && error instanceof HeadraceError) throw error;
    throw new HeadraceError('ERR_PROGRAM', `plan '${name}' failed: ${describeThrown(error)}`, {
      cause: error,
    });
  }
  graph.end();
  let planned = new Planner(planning, engine).finish(name);
  // Online, tasks are dealt to queues in runs, so that neighbours stay together; queues that run dry take others. A plan is
  // fixed. If a queue has much more to do than the mean, the tasks are dealt one by one, as queues become free.
  const { most, mean } = planning.planning.balance();
  if (most > UNEVEN * mean) {
    const few = { window, runAhead: RUN_AHEAD };
    const other = new PlanningEngine(engine, engine.backend, few, planning);
    const even = new Planner(other, engine).again(name);
    if (even.report.makespan * BETTER < planned.report.makespan) planned = even;
  }
  const { mirrored: data, insertions } = planning;
  const { slots, classes: classesOf } = graph;
  const { after } = insertions;
  return new Plan(engine, planned, { slots, classes: classesOf, data, after, isOver, choice });
}
