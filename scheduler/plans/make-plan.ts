// From the program of the user to a plan.
import { HeadraceError } from '../../devices/errors.js';
import { describeThrown, isError } from '../../trace/thrown.js';
import { checkOptions, checkText, shown } from '../checks.js';
import type { Engine } from '../engine/engine.js';
import { ClassBinder } from '../program/bound-class.js';
import type { GraphRuntime } from '../program/graph.js';
import type { ResolvedOptions } from '../program/options.js';
import type { ProgramData } from '../program/program-data.js';
import { Plan } from './plan.js';
import { PlanGraph } from './plan-graph.js';
import { Planner } from './planner.js';
import { PlanningEngine } from './planning-engine.js';

/** Options of `Runtime.plan`. */
export interface PlanOptions {
  /** Name in messages and reports; default 'plan'. */
  readonly name?: string;
}

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
  checkOptions(options, ['name'], 'options of a plan');
  const name = options.name === undefined ? 'plan' : checkText(options.name, 'the name of a plan');
  if (runtime.peers !== undefined)
    throw new HeadraceError(
      'ERR_PLAN_RANKS',
      `plan '${name}': a program on several ranks cannot be planned yet`,
      { remedy: 'insert the tasks with runtime.run' },
    );
  const { window, runAhead } = runtime.options;
  const planning = new PlanningEngine(engine, engine.backend, { window, runAhead, times: {} });
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
  const planned = new Planner(planning, engine).finish(name);
  const { data } = planning;
  return new Plan(engine, planned, { slots: graph.slots, classes: graph.classes, data, isOver });
}
