// The iteration of a plan as one graph of the GPUs' driver (native/gpu/graphs.h): one launch instead of one per command.
//
// A graph serves a plan whose commands all belong to GPUs. Its addresses and its parameters are those of the capture: data that
// lie elsewhere in a later play, and other values of open parameters, need a new graph. Where the values differ between iterations,
// the plan is played from lists. An iteration begins when the one before has ended. Making a graph takes as long as launching its
// commands some ten times. So it is made once a plan is to be played that often with the same addresses and values.
import { type CommandGraphs, Status } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import { HOST } from '../../devices/handles.js';
import { oneOf } from '../checks.js';
import type { EngineState } from '../engine/state.js';
import { writeAddresses, writeOpen } from './layout.js';
import type { Placement } from './placement.js';
import {
  type GraphLists,
  type PlannedProgram,
  type PlannedQueue,
  recordsIn,
} from './planned-program.js';

/** Iterations, played and to come, from which on a graph pays. */
const WORTHWHILE = 16;
/** When the iterations of a plan are played as a graph of the GPU's driver. */
export type GraphChoice = 'auto' | 'always' | 'never';
/** A driver that has refused that often is not asked again. The first time, libraries may not have loaded all of their code. */
const REFUSALS = 2;

export class DriverGraph {
  private readonly state: EngineState;
  private readonly program: PlannedProgram;
  private readonly placement: Placement;
  /** Why the plan is never captured; undefined: it may be. */
  private never: string | undefined;
  private refusals = 0;
  private refusal = '';
  /** Iterations since the last capture, and with open parameters since the addresses or values have changed. */
  private played = 0;
  private wanted: readonly number[] = [];
  /** The values of the newest play differ between its iterations. */
  private isVaried = false;
  /** Those of the newest play are not those of the graph. */
  private isOther = false;
  private hasCaptured = false;
  private readonly worthwhile: number;
  /** The list that launches the graph, and the addresses and values with which it was captured. */
  private list: PlannedQueue | undefined;
  private captured: readonly number[] = [];
  /** The commands of the graph, made for its first capture. */
  private commands: GraphLists | undefined;

  constructor(
    state: EngineState,
    program: PlannedProgram,
    placement: Placement,
    choice: GraphChoice,
  ) {
    this.state = state;
    this.program = program;
    this.placement = placement;
    this.worthwhile = choice === 'always' ? 0 : WORTHWHILE;
    this.never = choice === 'never' ? "the plan was made with graph: 'never'" : this.objection();
  }

  /** 'captured', or why there is no graph. */
  get outlook(): string {
    if (this.isVaried)
      return `parameters differ between iterations: ${this.program.slots.join(', ')}`;
    if (this.list !== undefined && this.isOther)
      return `the graph has other values; one of these is made once ${WORTHWHILE} iterations are played`;
    if (this.list !== undefined) return 'captured';
    if (this.never !== undefined) return this.never;
    if (this.refusal !== '') return this.refusal;
    return `a graph is made once ${this.worthwhile} iterations are played`;
  }

  /**
   * The list to play instead of those of the plan, for so many iterations; undefined: those of the plan. `parameters`: the values
   * of all slots per iteration.
   */
  listFor(iterations: number, parameters: ArrayLike<number>): PlannedQueue | undefined {
    if (this.never !== undefined) return undefined;
    const { regions, slots } = this.program;
    this.isVaried = !isConstant(parameters, iterations, slots.length);
    if (this.isVaried) return undefined;
    const wanted = [
      ...regions.map((_, g) => this.placement.baseOf(g)),
      ...slots.map((_, s) => parameters[s]),
    ];
    if (slots.length > 0 && !isSame(wanted, this.wanted)) this.played = 0;
    this.wanted = wanted;
    this.played += iterations;
    this.isOther = slots.length > 0 && !isSame(wanted, this.captured);
    if (this.list !== undefined && isSame(wanted, this.captured)) return this.list;
    // Data that move between plays, and values that change, would mean a capture for each.
    const least = this.hasCaptured && slots.length > 0 ? WORTHWHILE : this.worthwhile;
    if (this.played < least) return undefined;
    this.played = 0;
    this.release();
    this.captured = wanted;
    this.isOther = false;
    this.hasCaptured = true;
    this.capture();
    return this.list;
  }

  /** What `Backend.playOutcome` would return had the lists of the plan been played: from the outcome of the graph's. */
  spread([allowed, launched, status]: ArrayLike<number> & Iterable<number>): number[] {
    const { queues } = this.program;
    const lengths = queues.map(recordsIn);
    if (status === Status.ok || status === Status.cancelled)
      return [allowed, ...lengths.flatMap((n) => [launched * n, status])];
    const { queue, records } = this.list as PlannedQueue;
    const place = this.graphs.failure(queue, records);
    // The iteration with the failure went on to its end, unless the launch was refused as a whole.
    const others = place === undefined ? launched : launched + 1;
    const { queues: captured } = this.commands as GraphLists;
    const insertion = place === undefined ? 0 : captured[place[0]].insertion[place[1]];
    const list = queues.findIndex((q) => q.insertion.includes(insertion));
    const record = queues[list].insertion.indexOf(insertion);
    return [
      allowed,
      ...lengths.flatMap((n, i) =>
        i === list ? [launched * n + record, status] : [others * n, Status.cancelled],
      ),
    ];
  }

  release(): void {
    if (this.list === undefined) return;
    this.graphs.release(this.list.queue, this.list.records);
    this.list = undefined;
  }

  private get graphs(): CommandGraphs {
    return this.state.backend.graphs as CommandGraphs;
  }

  private objection(): string | undefined {
    const { backend } = this.state;
    const { queues } = this.program;
    const spaces = new Set(queues.map(({ queue }) => backend.queues[queue].space));
    if (spaces.size === 0) return 'the plan has no commands';
    if (spaces.has(HOST))
      return spaces.size > 1 ? 'the plan uses the host as well' : 'the plan uses the host only';
    const without = [...spaces].find((space) => backend.graphs?.has(space) !== true);
    return without === undefined ? undefined : `${this.state.spaceName(without)} has no graphs`;
  }

  private capture(): void {
    this.commands ??= this.program.graphLists();
    const { queues, addresses } = this.commands;
    const values = queues.map(({ records }) => new Float64Array(records.buffer));
    const { length } = this.program.regions;
    this.captured.slice(0, length).forEach((base, g) => {
      writeAddresses(values, addresses, g, base);
    });
    writeOpen(values, queues, this.captured.slice(length));
    try {
      const records = this.graphs.capture(queues);
      const [{ queue }] = queues;
      this.list = { queue, records, open: new Int32Array(0), insertion: Int32Array.of(-1) };
    } catch (error) {
      if (!(error instanceof HeadraceError)) throw error;
      this.refusal = `the driver has refused: ${error.message}`;
      this.refusals++;
      if (this.refusals >= REFUSALS) this.never = this.refusal;
    }
  }
}

function isSame(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, i) => Object.is(value, b[i]));
}

/** Whether all iterations have the values of the first one. */
function isConstant(parameters: ArrayLike<number>, iterations: number, slots: number): boolean {
  for (let i = slots; i < iterations * slots; i++)
    if (!Object.is(parameters[i], parameters[i - slots])) return false;
  return true;
}

/** @throws HeadraceError `ERR_OPTION` */
export function checkGraphChoice(given: unknown): GraphChoice {
  if (given === undefined) return 'auto';
  return oneOf(given, 'the option graph of a plan', ['auto', 'always', 'never']);
}
