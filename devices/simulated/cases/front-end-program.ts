// Random programs of the public interface, as plain data. What they do to plain arrays is in front-end-reference.ts.
import { Random } from '../machine/random.js';

export type Values = Float64Array<ArrayBuffer>;

/** A task of a body, with those that it spawns. `x` and `y`: places among the data that the parent gives. */
export interface Kin {
  readonly kind: 'plain' | 'kernel' | 'init' | 'sum' | 'family';
  readonly x: number;
  readonly y: number;
  readonly plus: number;
  readonly isAsync: boolean;
  readonly temporaries: number;
  readonly children: readonly Kin[];
  /** It uses parts of its data: `count` elements, from these on. */
  readonly range: TaskStep['range'] | undefined;
  /** Its place among those of its program: the same on all ranks. */
  readonly number: number;
}

/** What the insertion of a task says besides its data. */
interface StepOptions {
  readonly priority?: number;
  readonly device?: number | 'host';
  readonly rank?: number;
  /** An earlier step of the same run. */
  readonly after?: number;
}

/** Operators of reducing flows. */
export const OPERATORS = ['sum', 'min', 'max', 'own'] as const;
export type Operator = (typeof OPERATORS)[number];

export interface TaskStep {
  readonly kind:
    | ('plain' | 'async' | 'kernel' | 'script' | 'init' | 'commute')
    | ('reduce' | 'list' | 'steered' | 'steeredKernel' | 'family' | 'fails')
    | ('part' | 'partKernel' | 'reduceKernel' | 'reducePart' | 'reducePartKernel')
    | ('initKernel' | 'commuteKernel' | 'check');
  readonly x: number;
  readonly y: number;
  readonly plus: number;
  /** Datum of the parameter. */
  readonly alpha: number;
  readonly parts: readonly number[];
  readonly operator: Operator;
  /** How it fails. */
  readonly how: 'body' | 'promise' | 'kernel' | 'child';
  readonly root: Kin | undefined;
  /** Of a task on parts: they have `count` elements, from these on. */
  readonly range: { readonly x: number; readonly y: number; readonly count: number };
  readonly options: StepOptions;
}

/** The program waits: for a value, which decides which of two tasks comes next; for a whole datum; or for room. */
export type Step =
  | TaskStep
  | {
      readonly kind: 'value';
      readonly d: number;
      readonly odd: TaskStep;
      readonly even: TaskStep;
    }
  | { readonly kind: 'read'; readonly d: number }
  | { readonly kind: 'readPart'; readonly d: number; readonly from: number; readonly count: number }
  | {
      readonly kind: 'closePart';
      readonly d: number;
      readonly from: number;
      readonly count: number;
    }
  | {
      readonly kind: 'setPart';
      readonly d: number;
      readonly from: number;
      readonly count: number;
      readonly value: number;
    }
  | { readonly kind: 'space' };

/** A run. */
export interface Round {
  readonly steps: readonly Step[];
  /** The rank that aborts it, and the step before which. */
  readonly aborts: { readonly rank: number; readonly at: number } | undefined;
  /** The program awaits it before the next one. */
  readonly isAlone: boolean;
  /** Seed of a random parameterised graph that runs behind it. */
  readonly graph: number | undefined;
  /** Its tasks are played so often instead, as a plan, and inserted once after each play. */
  readonly plays?: readonly number[];
}

/** Kinds of tasks that a plan may have, besides those on parts. */
const PLANNED = [
  ...(['kernel', 'kernel', 'kernel', 'initKernel', 'commuteKernel'] as const),
  ...(['check', 'steeredKernel', 'reduceKernel', 'reduceKernel', 'reduceKernel'] as const),
] as const;
/** And those on parts. */
const PLANNED_ON_PARTS = ['partKernel', 'reducePartKernel', 'reducePartKernel'] as const;

const ON_PARTS: readonly Step['kind'][] = ['part', 'partKernel', 'reducePart', 'reducePartKernel'];

/** Whether a task uses parts of its data. */
export const isOnParts = ({ kind }: Step): boolean => ON_PARTS.includes(kind);

/** Kinds of tasks that do not need the value before. */
export const OVERWRITING: readonly Step['kind'][] = ['init', 'initKernel'];

export const isTask = (step: Step): step is TaskStep => 'plus' in step;

/** The kernel of a check fails from this parameter on. */
export const FAILS = 50;

/** Whether a step cannot succeed. */
export const isFailing = (step: Step): boolean =>
  step.kind === 'fails' || (step.kind === 'check' && step.plus >= FAILS);

/** Whether a run cannot succeed. */
export function isBad({ steps, aborts }: Round): boolean {
  return aborts !== undefined || steps.some(isFailing);
}

export class FrontEndProgram {
  readonly ranks: number;
  readonly gpus: number;
  readonly workers: number;
  readonly scriptWorkers: number;
  readonly lanes: number;
  readonly gpuMemory: number;
  readonly window: number;
  readonly inlineBytes: number;
  readonly treeFrom: number;
  readonly length: number;
  /** The rank of each datum. */
  readonly owners: readonly number[];
  readonly rounds: readonly Round[];
  /** The last two data have parts. */
  readonly hasParts: boolean;
  readonly kin: Kin[] = [];
  protected readonly r: Random;
  /** Decides on parts, so that programs without them are those that were found earlier. */
  private readonly ofParts: Random;
  /** The same for plans. */
  private readonly ofPlans: Random;
  /** And for the parts that bodies make. */
  private readonly ofBodies: Random;
  /** And for runs that take turns. */
  protected readonly ofTurns: Random;

  /** What is not given is any number. */
  constructor(
    seed: number,
    given: { readonly ranks?: number; readonly gpus?: number; readonly window?: number } = {},
  ) {
    const r = new Random(seed);
    this.r = r;
    this.ofParts = new Random(seed + 1_000_003);
    this.ofPlans = new Random(seed + 2_000_003);
    this.ofBodies = new Random(seed + 3_000_017);
    this.ofTurns = new Random(seed + 4_000_037);
    this.hasParts = seed % 3 === 1;
    this.ranks = given.ranks ?? r.pick([1, 1, 2, 2, 3, 4]);
    const gpus = r.below(3);
    this.gpus = given.gpus ?? gpus;
    this.workers = r.between(1, 2);
    this.scriptWorkers = r.below(3);
    this.lanes = r.pick([2, 8, 32]);
    this.gpuMemory = r.pick([2 ** 13, 2 ** 14, 2 ** 20]);
    // Simulated ranks share a thread. A rank that blocks it for room in its window waits for programs of others in vain.
    const window = this.ranks === 1 ? r.pick([8, 16, 64, 1024]) : r.pick([512, 4096]);
    this.window = given.window ?? window;
    this.inlineBytes = r.pick([0, 64, 4096]);
    this.treeFrom = r.between(2, 4);
    this.length = r.between(1, 9);
    this.owners = Array.from({ length: r.between(2, 6) }, () => r.below(this.ranks));
    this.rounds = this.makeRounds();
  }

  protected makeRounds(): Round[] {
    const rounds = Array.from({ length: this.r.between(1, 4) }, () => this.round());
    return this.withPlan(rounds, 0.3);
  }

  /** With that probability one more round, which is planned and played. */
  protected withPlan(rounds: readonly Round[], probability: number): Round[] {
    const { ofPlans: r } = this;
    if (!r.chance(probability)) return [...rounds];
    const at = r.below(rounds.length + 1);
    return [...rounds.slice(0, at), this.plan(), ...rounds.slice(at)];
  }

  private plan(): Round {
    const { ofPlans: r, ranks } = this;
    const steps = Array.from({ length: r.between(1, 25) }, (_, i): TaskStep => {
      const task = this.task(i);
      const kind = isOnParts(task) ? r.pick(PLANNED_ON_PARTS) : r.pick(PLANNED);
      const { after, ...options } = task.options;
      // A task of a plan cannot follow one of another rank.
      const all = ranks > 1 || after === undefined ? options : { ...options, after };
      return { ...task, kind, alpha: task.y, root: undefined, options: all };
    });
    const plays = Array.from({ length: r.between(1, 2) }, () => r.below(4));
    return { steps, plays, aborts: undefined, isAlone: true, graph: undefined };
  }

  /** The value of a datum at the beginning, and after a run that has failed. */
  start(d: number, turn: number): Values {
    return Float64Array.from({ length: this.length }, (_, i) => 100 * d + 10 * turn + i);
  }

  private round(): Round {
    const { r, ranks } = this;
    const hazard = r.pick(['none', 'none', 'none', 'fails', 'aborts']);
    const isAlone = hazard !== 'none' || r.chance(0.7);
    const steps = Array.from({ length: r.between(1, 30) }, (_, i) => this.step(i, isAlone));
    if (hazard === 'fails') {
      const at = r.below(steps.length);
      steps[at] = this.withParts({ ...this.task(at), kind: 'fails' });
    }
    const at = r.below(steps.length);
    return {
      steps,
      isAlone,
      aborts: hazard === 'aborts' ? { rank: r.below(ranks), at } : undefined,
      graph: isAlone && r.chance(0.2) ? r.below(1 << 20) : undefined,
    };
  }

  isPartable(d: number): boolean {
    return this.hasParts && d >= this.owners.length - 2;
  }

  /** The first of `count` elements of a datum, and that of another one. */
  private range(r = this.ofParts): TaskStep['range'] {
    const { length } = this;
    const count = r.between(1, length);
    const most = length - count + 1;
    return { x: r.below(most), y: r.below(most), count };
  }

  /** A step in its place that uses parts, or that can be done on data with parts. */
  private withParts(step: TaskStep): TaskStep {
    const { ofParts, hasParts, owners } = this;
    if (!hasParts) return step;
    if (step.kind !== 'fails' && ofParts.chance(0.4)) {
      const x = owners.length - ofParts.between(1, 2);
      const y = 2 * owners.length - 3 - x;
      const kind = ofParts.pick([
        ...(['part', 'partKernel', 'reducePart', 'reducePart', 'reducePartKernel'] as const),
      ]);
      return { ...step, kind, x, y, range: this.range() };
    }
    return step;
  }

  protected step(i: number, mayWait: boolean): Step {
    const { r, owners, ofParts } = this;
    if (this.hasParts && mayWait && ofParts.chance(0.1)) {
      const { x: from, count } = this.range();
      const d = owners.length - ofParts.between(1, 2);
      const kind = ofParts.pick(['readPart', 'closePart', 'setPart'] as const);
      const part = { d, from, count };
      return kind === 'setPart' ? { kind, ...part, value: ofParts.below(100) } : { kind, ...part };
    }
    const wait = mayWait ? r.below(20) : -1;
    if (wait === 0)
      return {
        kind: 'value',
        d: r.below(owners.length),
        odd: this.task(i, false),
        even: this.task(i, false),
      };
    if (wait === 1) return { kind: 'read', d: r.below(owners.length) };
    if (wait === 2) return { kind: 'space' };
    return this.task(i);
  }

  /** A task; the options of one that a value decides on are none. */
  protected task(i: number, hasOptions = true): TaskStep {
    const { r, owners } = this;
    const n = owners.length;
    const kind = r.pick([
      ...(['plain', 'async', 'kernel', 'kernel', 'script', 'init', 'commute', 'commute'] as const),
      ...(['reduce', 'reduce', 'reduce', 'list', 'steered', 'steeredKernel', 'family'] as const),
    ]);
    const x = r.below(n);
    // Another datum.
    const y = (x + 1 + r.below(n - 1)) % n;
    const alpha = r.pick([y, (x + 1 + r.below(n - 1)) % n]);
    const parts = Array.from({ length: r.below(4) }, () => (x + 1 + r.below(n - 1)) % n);
    return this.withParts({
      ...{ kind, x, y, alpha, parts, plus: r.below(50), operator: r.pick(OPERATORS) },
      how: r.pick(['body', 'promise', 'kernel', 'child']),
      root: kind === 'family' ? this.family(2, 2, 3) : undefined,
      range: { x: 0, y: 0, count: 1 },
      options: hasOptions ? this.options(i) : {},
    });
  }

  private options(i: number): StepOptions {
    const { r, ranks, gpus } = this;
    return {
      ...(r.chance(0.2) ? { priority: r.between(0, 4) - 2 } : {}),
      ...(r.chance(0.15) ? { device: gpus > 0 && r.chance(0.6) ? r.below(gpus) : 'host' } : {}),
      ...(r.chance(0.15) ? { rank: r.below(ranks) } : {}),
      ...(i > 0 && r.chance(0.15) ? { after: r.below(i) } : {}),
    };
  }

  /** A task of a family: it writes one of the first `writable` of `visible` data. */
  private family(writable: number, visible: number, depth: number): Kin {
    const { r } = this;
    const isRoot = depth === 3;
    const x = isRoot ? 0 : r.below(writable);
    const y = isRoot ? 1 : (x + 1 + r.below(visible - 1)) % visible;
    const kind = isRoot
      ? 'family'
      : r.pick<Kin['kind']>([
          'plain',
          'kernel',
          'init',
          'sum',
          ...(depth > 0 ? (['family'] as const) : []),
        ]);
    const temporaries = kind === 'family' ? r.below(3) : 0;
    const children: Kin[] = [];
    if (kind === 'family') {
      // Their data: those of the parent, x first and y last, with the temporaries between them.
      const all = 2 + temporaries;
      for (let t = 0; t < temporaries; t++)
        children.push({ ...this.family(all, all, 0), kind: 'init', x: 1 + t, range: undefined });
      for (let c = r.below(4); c > 0; c--) children.push(this.family(all - 1, all, depth - 1));
    }
    const mayUseParts = (kind === 'plain' || kind === 'kernel') && this.ofBodies.chance(0.3);
    const range = mayUseParts ? this.range(this.ofBodies) : undefined;
    const made: Kin = {
      ...{ kind, x, y, temporaries, children, range, number: this.kin.length },
      plus: r.below(50),
      isAsync: r.chance(0.2),
    };
    this.kin.push(made);
    return made;
  }
}

const usesParts = (kin: Kin | undefined): boolean =>
  kin !== undefined && (kin.range !== undefined || kin.children.some(usesParts));

/** How often each kind of step occurs in a program. */
export function kindsOf({ rounds, ranks }: FrontEndProgram): Record<string, number> {
  const kinds: Record<string, number> = {};
  const count = (kind: string): void => {
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  };
  for (const round of rounds) {
    count(isBad(round) ? 'runs that fail' : 'runs');
    if (round.graph !== undefined) count('parameterised graphs');
    if (round.plays !== undefined) count('plans');
    if (round.plays !== undefined && round.steps.some(isOnParts)) count('plans with parts');
    for (const step of round.steps) {
      count(step.kind);
      if (step.kind === 'family' && ranks > 1) count('family on ranks');
      if (step.kind === 'family' && usesParts(step.root)) count('family with parts');
    }
  }
  return kinds;
}
