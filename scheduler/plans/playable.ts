// The lists of a plan with their memory, in the forms in which they are played: as planned, and with the commands that bring the
// number of a condition to where it is looked at (look.ts), one form per datum.
//
// Invariant: plays run alone, so the forms are placed in turn and may share the memory of their data.
import { type DatumId, HOST } from '../../devices/handles.js';
import type { Engine } from '../engine/engine.js';
import type { Datum } from '../program/datum.js';
import { elementBytes } from '../program/element-type.js';
import { assemble } from './assembly.js';
import { DriverGraph, type GraphChoice } from './driver-graph.js';
import { type LookedNumber, withLook } from './look.js';
import { numberMessages } from './messages.js';
import { Placement } from './placement.js';
import type { PlannedProgram } from './planned-program.js';
import type { Together } from './together.js';

/** One form. */
export interface Playable {
  readonly program: PlannedProgram;
  readonly placement: Placement;
  readonly graph: DriverGraph;
}

export class Playables {
  /** The lists as planned. */
  readonly plain: Playable;
  private readonly engine: Engine;
  private readonly choice: GraphChoice;
  private readonly together: Together | undefined;
  private readonly looking: Map<DatumId, Playable> = new Map();
  /** The form that was played last. */
  private last: Playable;

  constructor(
    engine: Engine,
    program: PlannedProgram,
    choice: GraphChoice,
    together: Together | undefined,
  ) {
    this.engine = engine;
    this.choice = choice;
    this.together = together;
    this.plain = this.playable(program);
    this.last = this.plain;
  }

  /** How the plan was played last, or will be. */
  get outlook(): string {
    return this.last.graph.outlook;
  }

  /** Whether a task of the plan, on any rank, writes a datum. */
  writes({ row }: Datum): boolean {
    const { together, plain } = this;
    if (together !== undefined) return together.messages.last.has(row);
    return plain.program.results.some(({ datum }) => datum === row);
  }

  /**
   * The form whose iterations end with the first element of a datum at a place that the processor can read, on every rank. `datum`
   * undefined: the plain one.
   * @throws HeadraceError `ERR_OUT_OF_HOST_MEMORY`
   */
  lookingAt(datum: Datum | undefined): Playable {
    this.last = datum === undefined || this.isReachable(datum) ? this.plain : this.form(datum);
    return this.last;
  }

  release(): void {
    this.plain.graph.release();
    for (const { graph } of this.looking.values()) graph.release();
  }

  private isReachable({ row }: Datum): boolean {
    if (this.together !== undefined) return false;
    const { regions, results } = this.plain.program;
    const result = results.find(({ datum }) => datum === row);
    return (
      result?.copies.some(({ region }) => {
        const { space } = regions[region];
        const { kind } = this.engine.backend.spaces[space];
        return space === HOST || kind === 'emulated' || kind === 'simulated';
      }) === true
    );
  }

  private form(datum: Datum): Playable {
    const known = this.looking.get(datum.row);
    if (known !== undefined) return known;
    const began = performance.now();
    const { engine, plain } = this;
    const decisions = withLook(engine, plain.program.decisions, this.number(datum));
    const made = this.playable(assemble(engine, decisions, began));
    this.looking.set(datum.row, made);
    return made;
  }

  private number({ row, element }: Datum): LookedNumber {
    const { together } = this;
    const number = { datum: row, bytes: elementBytes(element) };
    if (together === undefined) return number;
    const { peers, messages, treeFrom } = together;
    const { rank, size, device } = peers;
    const isShort = device.isInline(number.bytes);
    const sent = numberMessages(messages, row, size, isShort, treeFrom);
    return { ...number, ranks: { rank, messages: sent } };
  }

  private playable(program: PlannedProgram): Playable {
    const { engine } = this;
    const placement = new Placement(engine, program);
    return { program, placement, graph: new DriverGraph(engine, program, placement, this.choice) };
  }
}
