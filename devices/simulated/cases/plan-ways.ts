// The three ways of a plan program: computed on plain arrays, inserted, and played. Each reads the same data at the same places
// of the program; differenceOf compares what they have read.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  type Datum,
  HeadraceError,
  type Plan,
  type PlayOptions,
  type Runtime,
  slot,
} from '../../../scheduler/index.js';
import {
  axpy,
  axpyBody,
  copy,
  failing,
  type PlanProgram,
  type Round,
  slotValue,
} from './plan-programs.js';

/** A value that was read: its elements, or '' where the datum has none. */
type Seen = string;

/** Calls `then` once so many kernels have run, or at some later time. */
export type After = (kernels: number, then: () => void) => void;

/** A round with the condition and the number of iterations that follow from its values. */
interface Known {
  readonly round: Round;
  readonly iterations: number;
  /** Of a round with a condition. */
  readonly limit?: { readonly above: number } | { readonly below: number };
}

/** One way to carry out a program. */
interface Way {
  /** Iterations of a round. Way and program go on when it is over, or, in a program that mixes, at once. */
  round(number: number, known: Known): Promise<void>;
  /** One more iteration, inserted. */
  more(number: number): void;
  read(datum: number): Promise<Seen>;
  set(values: readonly Float64Array[]): Promise<void>;
  end(): Promise<void>;
}

/** The places of a program at which a datum that was written may lack its value, because a play has failed. */
type Reading = { readonly datum: number; readonly mayLack: boolean };

/** What a program reads, in order. */
export interface Readings {
  readonly seen: readonly Seen[];
  readonly of: readonly Reading[];
}

const CODE = 7;
/** A condition compares with a number beside a value, so that rounding does not decide. */
const BESIDE = 1e-6;

async function carryOut(
  program: PlanProgram,
  rounds: readonly Known[],
  way: Way,
): Promise<Readings> {
  const seen: Promise<Seen>[] = [];
  const of: Reading[] = [];
  const look = (datum: number, mayLack: boolean): void => {
    seen.push(way.read(datum));
    of.push({ datum, mayLack: mayLack && program.writes(datum) });
  };
  const all = program.values(0).map((_, i) => i);
  if (program.mixes) way.more(0);
  for (const [k, known] of rounds.entries()) {
    const { kind } = known.round;
    await way.round(k, known);
    if (program.mixes) {
      look(k % all.length, false);
      way.more(k);
    } else if (kind === 'fails' || kind === 'aborts') {
      for (const i of all) look(i, true);
      await Promise.all(seen);
      await way.set(program.values(k + 1));
    }
  }
  for (const i of all) look(i, false);
  const values = await Promise.all(seen);
  await way.end();
  return { seen: values, of };
}

/** The condition of a round, and the number of its iterations, from the values of its datum after 1, 2, ... iterations. */
function limited(round: Round & { kind: 'while' }, firsts: readonly number[]): Known {
  const { at, every } = round;
  const goal = firsts[at - 1];
  const beside = BESIDE * (1 + Math.abs(goal));
  const isAbove = firsts[Math.min(every, firsts.length) - 1] > goal + beside;
  const limit = isAbove ? { above: goal + beside } : { below: goal - beside };
  let iterations = every;
  const holds = (value: number): boolean =>
    isAbove ? value > goal + beside : value < goal - beside;
  while (iterations < firsts.length && holds(firsts[iterations - 1])) iterations += every;
  return { round, limit, iterations: Math.min(iterations, firsts.length) };
}

/** A program with all conditions known, and what it reads. */
export interface Expected extends Readings {
  readonly rounds: readonly Known[];
}

/** Computes the program on plain arrays. */
export async function computed(program: PlanProgram): Promise<Expected> {
  const { times } = program;
  let values = program.values(0);
  const rounds = program.rounds.map((round): Known => ({ round, iterations: times }));
  const known: Known[] = [];
  const way: Way = {
    round(k, { round }) {
      let found: Known = { round, iterations: times };
      if (round.kind === 'while') {
        const trial = values.map((v) => v.slice());
        const firsts = Array.from({ length: times }, (_, i) => {
          program.compute(trial, k, i);
          return trial[round.datum][0];
        });
        found = limited(round, firsts);
      }
      known.push(found);
      for (let i = 0; i < found.iterations; i++) program.compute(values, k, i);
      return Promise.resolve();
    },
    more: (k) => program.compute(values, k, 0),
    read: (d) => Promise.resolve(values[d].join()),
    set(next) {
      values = next.map((v) => v.slice());
      return Promise.resolve();
    },
    end: () => Promise.resolve(),
  };
  return { ...(await carryOut(program, rounds, way)), rounds: known };
}

/** What plays and runs have in common: the data of a program on a runtime. */
class OnRuntime {
  readonly data: readonly Datum<'f64'>[];
  protected readonly program: PlanProgram;
  protected readonly runtime: Runtime;

  constructor(program: PlanProgram, runtime: Runtime) {
    this.program = program;
    this.runtime = runtime;
    this.data = program.values(0).map((v, i) => runtime.data(v, { name: `d${i}` }));
  }

  protected iterate(round: number, iteration: number): ReturnType<Runtime['run']> {
    return this.runtime.run((graph) =>
      this.program.insert(graph, this.data, (n) =>
        n === 'code' ? 0 : slotValue(n, round, iteration),
      ),
    );
  }

  more(round: number): void {
    this.iterate(round, 0);
  }

  async read(d: number): Promise<Seen> {
    try {
      return (await this.data[d].read()).join();
    } catch (error) {
      if (error instanceof HeadraceError && error.code === 'ERR_DATUM_POISONED') return '';
      throw error;
    }
  }

  async set(values: readonly Float64Array[]): Promise<void> {
    await Promise.all(values.map((v, i) => this.data[i].set(v as Float64Array<ArrayBuffer>)));
  }
}

class Inserted extends OnRuntime implements Way {
  async round(k: number, { round, limit }: Known): Promise<void> {
    for (let i = 0; i < this.program.times; i++) {
      const run = this.iterate(k, i);
      if (this.program.mixes) continue;
      await run;
      if (round.kind !== 'while' || limit === undefined || (i + 1) % round.every !== 0) continue;
      const [value] = await this.data[round.datum].read();
      if ('above' in limit ? !(value > limit.above) : !(value < limit.below)) return;
    }
  }

  end(): Promise<void> {
    return Promise.resolve();
  }
}

/** Inserts the program into runs of a runtime that recognises them. A kernel fails, or a run is aborted, in the last iteration. */
class Recognised extends OnRuntime implements Way {
  private readonly runs: Promise<void>[] = [];
  private readonly after: After;
  private readonly tell: (outcome: string) => void;
  /** A run has failed before its program had inserted all: what comes later in the program was not to be written. */
  private isCut = false;

  constructor(
    program: PlanProgram,
    runtime: Runtime,
    after: After,
    tell: (outcome: string) => void,
  ) {
    super(program, runtime);
    this.after = after;
    this.tell = tell;
  }

  async round(k: number, { round, iterations }: Known): Promise<void> {
    for (let i = 0; i < iterations; i++) {
      const run = this.run(k, i, i === iterations - 1 ? round : { kind: 'all' });
      // Awaited below or at the end, perhaps after another failure.
      run.catch(() => {});
      this.runs.push(run);
      if (!this.program.mixes) await run;
    }
  }

  override async read(d: number): Promise<Seen> {
    const { isCut } = this;
    const seen = await super.read(d);
    return isCut && this.program.writes(d) ? '' : seen;
  }

  override set(values: readonly Float64Array[]): Promise<void> {
    this.isCut = false;
    return super.set(values);
  }

  async end(): Promise<void> {
    await Promise.all(this.runs);
  }

  private async run(k: number, i: number, round: Round): Promise<void> {
    const { program, data } = this;
    const code = round.kind === 'fails' ? CODE : 0;
    const controller = new AbortController();
    const run = this.runtime.run(
      (graph) => {
        this.isCut = true;
        program.insert(graph, data, (n) => (n === 'code' ? code : slotValue(n, k, i)));
        this.isCut = false;
      },
      { signal: controller.signal },
    );
    if (round.kind === 'aborts')
      this.after(round.kernels % program.tasks, () => controller.abort(new Error('enough')));
    try {
      this.tell((await run).recognition ?? '');
    } catch (error) {
      const isAbort = error instanceof Error && error.name === 'AbortError';
      const isFailure = error instanceof HeadraceError && error.message.includes('task failing #');
      if (round.kind === 'aborts' ? isAbort : round.kind === 'fails' && isFailure) return;
      throw error;
    }
    if (round.kind === 'fails') throw new Error(`round ${k}: the run has not failed`);
  }
}

class Played extends OnRuntime implements Way {
  private plan: Plan | undefined;
  private readonly played: Promise<void>[] = [];
  private readonly after: After;

  constructor(program: PlanProgram, runtime: Runtime, after: After) {
    super(program, runtime);
    this.after = after;
  }

  async make(): Promise<void> {
    this.plan = await this.runtime.plan(
      (graph) =>
        this.program.insert(graph, this.data, (n) => slot(n === 'code' ? 'code' : `s${n}`)),
      { name: 'random' },
    );
  }

  /** Takes the plan of another runtime, by way of a file. */
  async load(from: Played): Promise<void> {
    const folder = mkdtempSync(path.join(tmpdir(), 'headrace-plan-'));
    const file = path.join(folder, 'random.plan');
    try {
      await from.plan?.save(file);
      const classes = [axpy, axpyBody, copy, failing];
      this.plan = await this.runtime.loadPlan(file, { data: this.data, classes });
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  async round(k: number, known: Known): Promise<void> {
    const play = this.play(k, known);
    // Awaited below or at the end, perhaps after another failure.
    play.catch(() => {});
    this.played.push(play);
    if (!this.program.mixes) await play;
  }

  async end(): Promise<void> {
    await Promise.all(this.played);
  }

  private options(k: number, { round, limit }: Known): PlayOptions {
    const { program, data } = this;
    const { slots, code } = program.open;
    const values = Object.fromEntries(
      slots.map((n) => [`s${n}`, (i: number) => slotValue(n, k, i)] as const),
    );
    const isFailing = (i: number): boolean => round.kind === 'fails' && i === round.iteration;
    if (code) values['code'] = (i) => (isFailing(i) ? CODE : 0);
    return {
      times: program.times,
      values,
      ...(round.kind === 'while'
        ? { while: { datum: data[round.datum], every: round.every, ...limit } }
        : {}),
    };
  }

  private async play(k: number, known: Known): Promise<void> {
    const { round, iterations } = known;
    const controller = new AbortController();
    const play = this.plan?.run({ ...this.options(k, known), signal: controller.signal });
    if (round.kind === 'aborts')
      this.after(round.kernels, () => controller.abort(new Error('enough')));
    let error: unknown;
    const report = await play?.catch((thrown: unknown) => {
      error = thrown;
    });
    if (error !== undefined) {
      if (!isExpected(round, error)) throw error;
    } else if (round.kind === 'fails') throw new Error(`round ${k}: the play has not failed`);
    else if (report?.iterations !== iterations)
      throw new Error(`round ${k}: ${report?.iterations} iterations, not ${iterations}`);
  }
}

function isExpected(round: Round, error: unknown): boolean {
  if (round.kind === 'aborts') return error instanceof Error && error.name === 'AbortError';
  if (round.kind !== 'fails' || !(error instanceof HeadraceError)) return false;
  const where = `in iteration ${round.iteration} of plan 'random'`;
  return error.code === 'ERR_TASK_FAILED' && error.message.includes(where);
}

/** Inserts the program. */
export function inserted(
  program: PlanProgram,
  rounds: readonly Known[],
  runtime: Runtime,
): Promise<Readings> {
  return carryOut(program, rounds, new Inserted(program, runtime));
}

/**
 * Inserts the program where runs are recognised. `tell` gets `RunReport.recognition` of each run.
 * @throws the error of a run that should not have failed, or not in this way
 */
export function recognised(
  program: PlanProgram,
  rounds: readonly Known[],
  runtime: Runtime,
  after: After,
  tell: (outcome: string) => void = () => {},
): Promise<Readings> {
  return carryOut(program, rounds, new Recognised(program, runtime, after, tell));
}

/** Plans the program and plays it. @throws the error of a play that should not have failed, or not in this way */
export async function played(
  program: PlanProgram,
  rounds: readonly Known[],
  runtime: Runtime,
  after: After,
): Promise<Readings> {
  const way = new Played(program, runtime, after);
  await way.make();
  return carryOut(program, rounds, way);
}

/**
 * Plans the program on another runtime, `planner`, which it closes, and loads the plan from a file. The result plays it, as
 * `played` does.
 */
export async function loaded(
  program: PlanProgram,
  rounds: readonly Known[],
  runtime: Runtime,
  after: After,
  planner: Runtime,
): Promise<() => Promise<Readings>> {
  const other = new Played(program, planner, after);
  await other.make();
  const way = new Played(program, runtime, after);
  await way.load(other);
  await planner.close();
  return () => carryOut(program, rounds, way);
}

/** The first value that differs; '' if none does. */
export function differenceOf(expected: Readings, found: Readings): string {
  const at = expected.seen.findIndex(
    (value, i) => found.seen[i] !== value && !(found.seen[i] === '' && found.of[i].mayLack),
  );
  if (at < 0) return '';
  const what = found.seen[at] === '' ? 'has no value' : 'has another value';
  return `reading ${at}: d${found.of[at].datum} ${what}`;
}
