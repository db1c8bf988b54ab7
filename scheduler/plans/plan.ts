// A plan as the program has it: a handle to play the planned tasks again and again.
import { HeadraceError, RunAbortedError } from '../../devices/errors.js';
import type { DatumId } from '../../devices/handles.js';
import { describeThrown } from '../../trace/thrown.js';
import { checkFile, isInstance, optionsOf, shown } from '../checks.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import type { Datum } from '../program/datum.js';
import type { PlanParts } from '../program/parts/plan-parts.js';
import type { TaskClass } from '../program/task-class.js';
import type { GraphChoice } from './driver-graph.js';
import { type OpenSlot, openSlots } from './open-slots.js';
import { machineOf } from './plan-machine.js';
import type { PlannedProgram, PlanReport } from './planned-program.js';
import { Play, type PlayWish, type Stand } from './play.js';
import { type Playable, Playables } from './playable.js';
import { ERA_SLOT } from './rank-share.js';
import { bytesOf, writePlan } from './save-plan.js';
import { beginTogether, runTogether, type Together } from './together.js';
import { checkedCondition, type WhileCondition } from './while-condition.js';

/** The value of an open parameter, or a function of the number of the iteration, from 0. */
export type SlotValue = number | boolean | ((iteration: number) => number | boolean);

/** Options of a play. */
export interface PlayOptions {
  /** Iterations; default 1, and without a limit if there is a condition. */
  readonly times?: number;
  /** Values of the open parameters by name. */
  readonly values?: Readonly<Record<string, SlotValue>>;
  /** Ends the play before `times` iterations. */
  readonly while?: WhileCondition;
  /** Ends the play between two commands. */
  readonly signal?: AbortSignal;
}

/** Figures of a play. */
export interface PlayReport {
  /** Iterations played. */
  readonly iterations: number;
  /** Tasks played, over all iterations. */
  readonly tasks: number;
  /** Seconds from the call of `run` to the end. */
  readonly seconds: number;
}

type Ends = Pick<PlayWish, 'done' | 'failed'>;

/** On one rank no message needs an era. */
const NO_ERA = (_: number): number => 0;
const NO_SLOT = (name: string): OpenSlot => ({ name, isWhole: false, isTruth: false });

/** A plan: tasks whose order, devices and copies are decided once. Made by `Runtime.plan`. */
export class Plan {
  readonly name: string;
  /** What the planner decided. */
  private readonly engine: Engine;
  /** The open parameters of all ranks. */
  private readonly allSlots: readonly OpenSlot[];
  private readonly together: Together | undefined;
  private readonly choice: GraphChoice;
  private readonly classes: readonly TaskClass[];
  private readonly data: ReadonlyMap<DatumId, Datum>;
  private readonly temporaries: readonly Datum[];
  /** Parts that end with the plan. */
  private readonly parts: PlanParts;
  private readonly forms: Playables;
  private isClosed = false;
  /** They give up the temporaries of a closed plan, when no play needs them any more. */
  private closings: (() => void)[] = [];
  private readonly planned: PlannedProgram['report'];
  /** Plays that are not over. */
  private plays = 0;
  private readonly isOver: () => boolean;

  /** @internal Use `runtime.plan`. */
  constructor(
    engine: Engine,
    program: PlannedProgram,
    of: {
      /** The classes of the program by the id of their row. */
      readonly classes: readonly TaskClass[];
      readonly data: Iterable<DatumId>;
      /** Data that are closed with the plan. */
      readonly temporaries?: readonly Datum[];
      /** Parts that the plan has open. */
      readonly parts: PlanParts;
      readonly isOver: () => boolean;
      readonly choice: GraphChoice;
      /** On several ranks. */
      readonly together?: Together | undefined;
    },
  ) {
    this.engine = engine;
    this.forms = new Playables(engine, program, of.choice, of.together);
    this.name = program.report.name;
    this.planned = program.report;
    this.together = of.together;
    const slots = of.together?.slots ?? openSlots(program.decisions.insertions, of.classes);
    this.allSlots = [...slots.values()];
    this.classes = of.classes;
    this.temporaries = of.temporaries ?? [];
    this.parts = of.parts;
    this.isOver = of.isOver;
    this.choice = of.choice;
    this.data = new Map(
      Array.from(of.data, (d) => [d, engine.directory.info[d] as Datum] as const),
    );
  }

  /** What the planner decided, and how the plan is played. */
  get report(): PlanReport {
    return { ...this.planned, graph: this.forms.outlook };
  }

  /**
   * Plays the plan: all its tasks, `times` times. The play runs alone: it begins when all that was inserted or called before
   * is over, and what is inserted meanwhile starts after it.
   *
   * @throws HeadraceError `ERR_OPTION` for options out of range, `ERR_SLOT` for an open parameter without a value or a value
   *   without a parameter, `ERR_ARGUMENT_TYPE` for a value that the parameter does not take, `ERR_PLAN_CLOSED`,
   *   `ERR_RUNTIME_CLOSED`, `ERR_DATUM_CLOSED`, `ERR_PLAN_IN_BODY` in a JavaScript body, `ERR_TOO_MANY_RUNS`.
   * Rejects with the failure of a task, which names its iteration; with an AbortError; with `ERR_DATUM_POISONED` when a datum
   * that the plan reads has no value; with `ERR_OUT_OF_HOST_MEMORY` or `ERR_OUT_OF_DEVICE_MEMORY`.
   */
  run(options: PlayOptions = {}): Promise<PlayReport> {
    const { engine, forms } = this;
    engine.callbacks.check('run()', 'plan', this);
    this.checkOpen();
    if (engine.inBody)
      throw new HeadraceError(
        'ERR_PLAN_IN_BODY',
        `plan '${this.name}' was played in the body of a task; a play waits for all tasks before it, so it would wait for that task`,
        { remedy: 'play it in the program' },
      );
    engine.held?.settle();
    const known = ['times', 'values', 'while', 'signal'];
    const given = optionsOf(options, known, 'the options of a play');
    this.checkData(({ closed }) => closed);
    const condition = checkedCondition(given.while, this.name, (datum) => {
      return this.data.get(datum.row) === datum && forms.writes(datum);
    });
    const looked = condition?.of;
    const times = checkTimes(
      given.times ?? (condition === undefined ? 1 : Number.MAX_SAFE_INTEGER),
    );
    const value = this.values(given.values ?? {});
    const signal = checkSignal(given.signal);
    this.beginWhole(times);
    // The getters of options, and bodies that ran, may have begun runs.
    engine.held?.settle();
    const { together } = this;
    const began = performance.now();
    const report = (iterations: number): PlayReport => {
      const tasks = iterations * this.planned.tasks;
      return { iterations, tasks, seconds: (performance.now() - began) / 1000 };
    };
    const wish = { times, condition };
    const enter = (run: RunState, isPart: boolean, ends: Ends, eraOf = NO_ERA): Play => {
      const playable = forms.lookingAt(looked);
      const names = this.slotsOf(playable.program);
      return this.enter(playable, { ...wish, run, isPart, ...ends }, (slot, iteration) =>
        names[slot].name === ERA_SLOT ? eraOf(iteration) : value(names[slot], iteration),
      );
    };
    if (together !== undefined) {
      const of = { name: `playing plan '${this.name}'`, signal, times, condition };
      const part = (run: RunState, eraOf: (iteration: number) => number): Promise<number> =>
        new Promise((resolve, failed) => {
          // A rank without commands in the plan has nothing to play, and is at the end at once.
          enter(run, true, { done: (played) => resolve(looked ? played : times), failed }, eraOf);
        });
      return runTogether(together, of, part).then(report);
    }
    return this.playAlone(signal, report, enter);
  }

  private has(d: DatumId): boolean {
    const datum = this.data.get(d);
    return datum === undefined || this.engine.directory.info[d] === datum;
  }

  /** @throws HeadraceError `ERR_DATUM_CLOSED` if a datum is gone, or is to count as closed */
  private checkData(isClosed: (datum: Datum) => boolean): void {
    for (const [d, datum] of this.data)
      if (!this.has(d) || isClosed(datum))
        throw new HeadraceError(
          'ERR_DATUM_CLOSED',
          `plan '${this.name}' uses datum '${datum.name}', which is closed`,
          { datum: datum.name },
        );
  }

  /** The play begins with whole data. Without iterations it leaves them as they are. */
  private beginWhole(times: number): void {
    const data = [...this.data.values()];
    const wholeOf = (datum: Datum): Datum => datum.view?.family.whole.datum ?? datum;
    // Bodies that run meanwhile may reduce into data of the plan.
    do {
      for (const datum of data) datum.owner.reductions.use(wholeOf(datum));
      for (const { owner } of data.slice(0, 1)) owner.parts.gather(data);
    } while (data.some((datum) => datum.owner.reductions.concerns(wholeOf(datum).row)));
    if (times > 0)
      for (const datum of data) datum.owner.parts.play(datum, (whole) => this.forms.writes(whole));
  }

  /** Makes a play and lets it begin when it is alone. */
  private enter(
    { program, placement, graph }: Playable,
    of: Pick<PlayWish, 'times' | 'condition' | 'run' | 'isPart' | 'stand'> & Ends,
    value: PlayWish['value'],
  ): Play {
    const { engine } = this;
    this.plays++;
    const end = (): void => {
      this.plays--;
      this.releaseIfOver();
    };
    const { stand } = of;
    const play = new Play(engine, engine.completions, program, placement, {
      ...of,
      graph,
      has: (d) => this.has(d),
      // Closes that come after the play wait for it.
      check: () => this.checkData(() => false),
      value,
      after: program.decisions.insertions.after,
      explain: (insertion, code, params) => this.explain(program, { insertion, params }, code),
      done: (iterations) => {
        end();
        of.done(iterations);
      },
      failed: (error) => {
        end();
        of.failed(error);
      },
      stand: stand && {
        ...stand,
        refused:
          stand.refused &&
          ((error) => {
            end();
            stand.refused?.(error);
          }),
      },
    });
    engine.sections.enter(play);
    return play;
  }

  /**
   * Plays the plan, which is open, in place of tasks of run `run`, `stand.times()` times. `given`: the values of an open parameter,
   * by its name. What is returned takes the play back, as long as it has not begun.
   * @internal
   */
  stand(
    run: RunState,
    stand: Stand,
    ends: Ends,
    given: (slot: string) => (iteration: number) => number,
    eraOf: (iteration: number) => number = NO_ERA,
  ): () => void {
    const { engine } = this;
    // A runtime that is being closed waits for its runs.
    const playable = this.forms.lookingAt(undefined);
    const { program } = playable;
    const done = (iterations: number): void => {
      this.countCopies(program, iterations);
      ends.done(iterations);
    };
    const of = { times: 1, condition: undefined, run, isPart: true, stand, ...ends, done };
    const values = program.slots.map((slot) => (slot === ERA_SLOT ? eraOf : given(slot)));
    const play = this.enter(playable, of, (slot, iteration) => values[slot](iteration));
    return () => {
      engine.sections.withdraw(play);
      play.withdraw();
      this.plays--;
      this.releaseIfOver();
    };
  }

  /**
   * On several ranks, all of which play the plan in place of the tasks of run `run`: as `stand`, at once and without a way back.
   * `words`: what else must be the same on all ranks.
   * @throws HeadraceError the error of the run; then nothing is played
   * @internal
   */
  standTogether(
    run: RunState,
    words: readonly number[],
    stand: Stand,
    ends: Ends,
    given: (slot: string) => (iteration: number) => number,
  ): void {
    const { together, name } = this;
    if (together === undefined) throw new Error('the plan has no other ranks');
    together.peers.runs.graphs.does(run, `playing run '${name}' as a plan`, words);
    const eraOf = beginTogether(together, run);
    this.stand(run, stand, ends, given, eraOf);
  }

  /** The digest by which the parts of several ranks know each other. @internal */
  get digest(): string {
    return this.together?.whole.digest ?? '';
  }

  /** Whether a play has the values and the memory that it begins with, if nothing changes. @internal */
  get mayBegin(): boolean {
    const have = this.together?.peers.plan.data.have;
    return this.forms.plain.placement.mayEnter((d) => have?.[d] !== 0);
  }

  /** Adds the copies of the iterations to the totals of the engine, from which runs are reported. */
  private countCopies({ report, copied }: PlannedProgram, iterations: number): void {
    const { transfers, x } = this.engine;
    for (const kind of ['h2d', 'd2h', 'd2d'] as const)
      transfers.bytes[kind] += iterations * report.bytes[kind];
    copied.into.forEach((bytes, s) => {
      transfers.bytesIn[s] += iterations * bytes;
      transfers.bytesOut[s] += iterations * copied.outOf[s];
    });
    x.counters.evictions += iterations * report.evictions;
  }

  private playAlone(
    signal: AbortSignal | undefined,
    report: (iterations: number) => PlayReport,
    enter: (run: RunState, isPart: boolean, ends: Ends) => Play,
  ): Promise<PlayReport> {
    const { engine } = this;
    const run = engine.openRun();
    return new Promise<PlayReport>((resolve, reject) => {
      const end = (): void => {
        signal?.removeEventListener('abort', abort);
        engine.closeRun(run);
      };
      const play = enter(run, false, {
        done: (iterations) => {
          end();
          resolve(report(iterations));
        },
        failed: (error) => {
          end();
          reject(error);
        },
      });
      const abort = (): void => {
        const reason: unknown = signal?.reason;
        const words = reason === undefined ? '' : `: ${describeThrown(reason)}`;
        play.abort(new RunAbortedError(`${play.name} was aborted${words}`, reason));
      };
      if (signal?.aborted === true) abort();
      else signal?.addEventListener('abort', abort, { once: true });
    });
  }

  /**
   * Writes the plan to a file, which `Runtime.loadPlan` reads on a machine of the same shape. The file has no values of data and
   * no code. A file of that name is replaced as a whole. On several ranks each rank writes its part, to a file of its own; no rank
   * waits for another.
   *
   * Rejects with `ERR_PLAN_NAMES` when data have no name of their own, or two task classes are the same by name, flows,
   * parameters and kernels; with `ERR_PLAN_FILE` when the file cannot be written; with `ERR_PLAN_CLOSED`,
   * `ERR_RUNTIME_CLOSED`, `ERR_OPTION`.
   */
  save(file: string): Promise<void> {
    return this.engine.callbacks.refusal('save()', 'plan', this) ?? this.writeTo(file);
  }

  private async writeTo(file: string): Promise<void> {
    const { engine, classes, data, choice: graph } = this;
    this.checkOpen();
    checkFile(file, 'the file of a plan');
    const { decisions } = this.forms.plain.program;
    const { insertions } = decisions;
    const { together } = this;
    const machine = machineOf(engine.backend);
    const datum = (d: DatumId): Datum => data.get(d) as Datum;
    const classOf = (n: number): TaskClass => classes[insertions.classOf(n).id];
    await writePlan(file, bytesOf({ decisions, classOf, datum, machine, graph, together }));
  }

  /**
   * Gives up the lists of the plan, and the parts that only the plan has. Plays under way go on to their end. Idempotent. On several ranks
   * every rank must call it, in the program.
   */
  close(): void {
    const { engine, parts, together } = this;
    engine.callbacks.check('close()', 'plan', this);
    if (!this.isClosed && !this.isOver())
      this.closings = this.temporaries.map((datum) => datum.owner.closingLater(datum));
    this.isClosed = true;
    // In program order the parts end behind the plays. A body closes the plan on its own rank alone.
    if (!this.isOver()) parts.letGo(together === undefined || !engine.inBody);
    this.releaseIfOver();
  }

  private releaseIfOver(): void {
    if (!this.isClosed || this.plays > 0 || this.isOver()) return;
    this.forms.release();
    // The last play may have ended in a pass.
    for (const close of this.closings.splice(0)) close();
  }

  private checkOpen(): void {
    if (this.isOver()) throw new HeadraceError('ERR_RUNTIME_CLOSED', 'the runtime is closed');
    if (this.isClosed) throw new HeadraceError('ERR_PLAN_CLOSED', `plan '${this.name}' is closed`);
  }

  /** The open parameters of a form, by slot. */
  private slotsOf(program: PlannedProgram): OpenSlot[] {
    return program.slots.map(
      (name) => this.allSlots.find((slot) => slot.name === name) ?? NO_SLOT(name),
    );
  }

  /** Value of a slot in an iteration, checked. */
  private values(
    given: Readonly<Record<string, SlotValue>>,
  ): (slot: OpenSlot, iteration: number) => number {
    const { allSlots } = this;
    const names = allSlots.map((s) => s.name);
    const own = optionsOf(given, names, `the values of plan '${this.name}'`);
    const sourceOf = ({ name }: OpenSlot): SlotValue => {
      const source = own[name] ?? (name === 't' ? (i: number) => i : undefined);
      if (source !== undefined) return source;
      throw new HeadraceError('ERR_SLOT', `plan '${this.name}' needs a value for '${name}'`, {
        remedy: `run({ values: { ${name}: ... } })`,
      });
    };
    const sources = new Map<string, SlotValue>();
    for (const slot of allSlots) {
      const source = sourceOf(slot);
      if (typeof source !== 'function') this.number(slot, source);
      sources.set(slot.name, source);
    }
    return (slot, iteration) => {
      const source = sources.get(slot.name);
      return this.number(
        slot,
        typeof source === 'function' ? this.computed(slot, source, iteration) : source,
      );
    };
  }

  private computed(
    { name }: OpenSlot,
    source: (iteration: number) => unknown,
    iteration: number,
  ): unknown {
    const who = (): string =>
      `the function of '${name}' in iteration ${iteration} of plan '${this.name}'`;
    try {
      return this.engine.callbacks.call(who, () => source(iteration));
    } catch (cause) {
      if (isInstance(cause, HeadraceError) && cause.code === 'ERR_CALLBACK') throw cause;
      throw new HeadraceError(
        'ERR_PROGRAM',
        `the value of '${name}' in iteration ${iteration} of plan '${this.name}' could not be computed: ${describeThrown(cause)}`,
        { cause },
      );
    }
  }

  private number({ name, isWhole, isTruth }: OpenSlot, value: unknown): number {
    const fits = isTruth
      ? typeof value === 'boolean'
      : typeof value === 'number' && (!isWhole || (value | 0) === value);
    if (fits) return Number(value);
    const wanted = isTruth ? 'true or false' : isWhole ? 'an integer of 32 bits' : 'a number';
    throw new HeadraceError(
      'ERR_ARGUMENT_TYPE',
      `the value of '${name}' in plan '${this.name}' must be ${wanted}, not ${shown(value)}`,
    );
  }

  private explain(
    program: PlannedProgram,
    { insertion, params }: { readonly insertion: number; readonly params: readonly number[] },
    code: number,
  ): string | undefined {
    const { cls, data } = program.task(insertion);
    const explain = this.classes[cls.id]?.definition.explain;
    return explain?.(code, {
      params: Object.fromEntries(cls.paramNames.map((name, i) => [name, params[i]])),
      data: Object.fromEntries(
        cls.flowNames.map((name, i) => [name, this.data.get(data[i])?.name ?? '']),
      ),
    } as never);
  }
}

function checkTimes(times: unknown): number {
  if (Number.isSafeInteger(times) && (times as number) >= 0) return times as number;
  throw new HeadraceError(
    'ERR_OPTION',
    `times must be a whole number of at least 0, not ${shown(times)}`,
  );
}

function checkSignal(signal: unknown): AbortSignal | undefined {
  if (signal === undefined || isInstance(signal, AbortSignal)) return signal;
  throw new HeadraceError('ERR_OPTION', `signal must be an AbortSignal, not ${shown(signal)}`);
}
