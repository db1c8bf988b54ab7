// What the tasks of random programs (front-end-program.ts) do to plain arrays, one after the other.
//
// All numbers are whole and below 2^53, so reductions and tasks that commute give the same in any order. A run that fails may leave
// what any of the tasks that commute have added, and not only the first of them.
import {
  isFailing,
  isOnParts,
  isTask,
  type Kin,
  type Operator,
  OVERWRITING,
  type Step,
  type TaskStep,
  type Values,
} from './front-end-program.js';

const MODULUS = 1_000_003;

export function mix(x: Float64Array, y: Readonly<Float64Array>, plus: number): void {
  for (let i = 0; i < x.length; i++) x[i] = (3 * (x[i] % MODULUS) + y[i] + plus + i) % MODULUS;
}

export function scaled(x: Float64Array, y: Readonly<Float64Array>, factor: number): void {
  for (let i = 0; i < x.length; i++)
    x[i] = ((x[i] % MODULUS) + (factor % MODULUS) * (y[i] % MODULUS)) % MODULUS;
}

export function commuted(x: Float64Array, y: Readonly<Float64Array>, plus: number): void {
  for (let i = 0; i < x.length; i++) x[i] += ((y[i] % 97) + plus) % 89;
}

export function listed(
  x: Float64Array,
  parts: readonly Readonly<Float64Array>[],
  plus: number,
): void {
  for (let i = 0; i < x.length; i++) {
    let all = (x[i] % MODULUS) + plus;
    for (const part of parts) all = (2 * all + part[i]) % MODULUS;
    x[i] = all;
  }
}

const CONTRIBUTIONS: Readonly<Record<Operator, (a: number, b: number) => number>> = {
  sum: (a, b) => a + b,
  min: Math.min,
  max: Math.max,
  own: (a, b) => (a % MODULUS) + (b % MODULUS),
};

/** Combines the contribution of `y` into `x`. */
export function contribute(
  operator: Operator,
  x: Float64Array,
  y: Readonly<Float64Array>,
  plus: number,
): void {
  for (let i = 0; i < x.length; i++) {
    const one = CONTRIBUTIONS[operator](x[i], (y[i] % 101) + plus);
    x[i] = operator === 'own' ? one % MODULUS : one;
  }
}

function recurse(kin: Kin, data: readonly Float64Array[]): void {
  const { kind, plus, range } = kin;
  let [x, y] = [data[kin.x], data[kin.y]];
  if (range !== undefined) {
    x = x.subarray(range.x, range.x + range.count);
    y = y.subarray(range.y, range.y + range.count);
  }
  if (kind === 'init') x.fill(plus);
  else if (kind === 'sum') contribute('sum', x, y, plus);
  else if (kind === 'kernel') scaled(x, y, plus);
  else mix(x, y, plus);
  if (kind !== 'family') return;
  const temporaries = Array.from(
    { length: kin.temporaries },
    () => new Float64Array(data[0].length),
  );
  for (const child of kin.children) recurse(child, [x, ...temporaries, y]);
}

function performPart({ kind, range, plus, operator }: TaskStep, x: Values, y: Values): void {
  const { count } = range;
  const [to, from] = [x.subarray(range.x, range.x + count), y.subarray(range.y, range.y + count)];
  if (kind === 'part') mix(to, from, plus);
  else if (kind === 'reducePart') contribute(operator, to, from, plus);
  else if (kind === 'reducePartKernel') contribute('sum', to, from, plus);
  else scaled(to, from, plus);
}

/** Does a task. Returns false if it has failed, so that its datum has no value. */
export function perform(step: TaskStep, values: readonly Values[]): void {
  const { kind, plus } = step;
  const [x, y] = [values[step.x], values[step.y]];
  if (kind === 'check') return;
  if (OVERWRITING.includes(kind)) x.fill(plus);
  else if (kind === 'commute' || kind === 'commuteKernel') commuted(x, y, plus);
  else if (kind === 'reduce') contribute(step.operator, x, y, plus);
  else if (kind === 'reduceKernel') contribute('sum', x, y, plus);
  else if (kind === 'list')
    listed(
      x,
      step.parts.map((d) => values[d]),
      plus,
    );
  else if (kind === 'steered') mix(x, y, values[step.alpha][0]);
  else if (kind === 'steeredKernel') scaled(x, y, values[step.alpha][0]);
  else if (kind === 'kernel') scaled(x, y, plus);
  else if (isOnParts(step)) performPart(step, x, y);
  else if (kind === 'family') recurse(step.root as Kin, [x, y]);
  else mix(x, y, plus);
}

/** The data that a task reads besides `x`. */
function inputsOf(step: TaskStep): readonly number[] {
  if (OVERWRITING.includes(step.kind) || step.kind === 'check') return [];
  if (step.kind === 'list') return step.parts;
  return step.kind === 'steered' || step.kind === 'steeredKernel' ? [step.y, step.alpha] : [step.y];
}

/** Tasks that commute on a datum, with no other use of it between them. */
interface CommutingTasks {
  /** The value before them. */
  readonly base: Values;
  /** What each adds. */
  readonly added: Values[];
}

/** Up to so many tasks that commute, each of their subsets is tried. */
const TRIED = 12;

/** Whether a value is that before the tasks plus what some of them have added; for many tasks, whether it may be. */
function isSumOfSome({ base, added }: CommutingTasks, seen: readonly number[]): boolean {
  const rest = seen.map((value, i) => value - base[i]);
  if (added.length > TRIED)
    return rest.every((r, i) => r >= 0 && r <= added.reduce((sum, one) => sum + one[i], 0));
  for (let subset = 0; subset < 1 << added.length; subset++) {
    const chosen = added.filter((_, t) => ((subset >> t) & 1) === 1);
    if (rest.every((r, i) => r === chosen.reduce((sum, one) => sum + one[i], 0))) return true;
  }
  return false;
}

const COMMUTING: readonly string[] = ['commute', 'commuteKernel'];

/** The program on plain arrays. */
export class Reference {
  readonly values: Values[];
  /** Data without a value, or of which elements have none, because of a task that failed: these elements. */
  readonly lost: Map<number, ReadonlySet<number>> = new Map();
  /** The values that each datum has had since the last run, as texts. */
  private readonly points: Set<string>[];
  /** The tasks that have commuted on each datum since then; the last ones go on if the datum is in `commutes`. */
  private readonly commuting: CommutingTasks[][];
  private readonly commutes: Set<number> = new Set();

  constructor(values: Values[]) {
    this.values = values;
    this.points = values.map((value) => new Set([value.join()]));
    this.commuting = values.map(() => []);
  }

  /** Whether datum `d` may have a value, as a text, after a run that failed. */
  mayBe(d: number, seen: string): boolean {
    if (this.points[d].has(seen)) return true;
    const values = seen.split(',').map(Number);
    return this.commuting[d].some((tasks) => isSumOfSome(tasks, values));
  }

  step(step: Step): void {
    if (isTask(step)) this.perform(step);
    else if (step.kind === 'setPart') this.set(step);
    else if (step.kind === 'value')
      this.perform(this.values[step.d][0] % 2 === 1 ? step.odd : step.even);
  }

  private set({ d, from, count, value }: Extract<Step, { kind: 'setPart' }>): void {
    const values = this.values[d].fill(value, from, from + count);
    const left = [...(this.lost.get(d) ?? [])].filter((i) => i < from || i >= from + count);
    if (left.length === 0) this.lost.delete(d);
    else this.lost.set(d, new Set(left));
    this.commutes.delete(d);
    this.points[d].add(values.join());
  }

  /** Whether one of `count` elements of datum `d` has no value. */
  lacks(d: number, from: number, count: number): boolean {
    const lost = this.lost.get(d);
    return lost !== undefined && [...lost].some((i) => i >= from && i < from + count);
  }

  private perform(step: TaskStep): void {
    const { lost, values } = this;
    const { kind, range, x } = step;
    const { length } = values[x];
    const isOfParts = isOnParts(step);
    const [from, count] = isOfParts ? [range.x, range.count] : [0, length];
    const inputs = isOfParts
      ? this.lacks(step.y, range.y, count)
      : inputsOf(step).some((d) => lost.has(d));
    for (const d of inputsOf(step)) this.commutes.delete(d);
    if (!COMMUTING.includes(kind)) this.commutes.delete(x);
    const isMissing = !OVERWRITING.includes(kind) && (inputs || this.lacks(x, from, count));
    if (isFailing(step) || isMissing) {
      if (COMMUTING.includes(kind)) this.mayCommute(step, !inputs && !isFailing(step));
      const elements = Array.from({ length: count }, (_, i) => from + i);
      lost.set(x, new Set([...(lost.get(x) ?? []), ...elements]));
      return;
    }
    if (!isOfParts) lost.delete(x);
    const before = values[x].slice();
    perform(step, values);
    this.points[x].add(values[x].join());
    if (COMMUTING.includes(kind)) this.addCommuting(x, before);
  }

  /**
   * The task does not run, or it commutes with one that does not run and `mayRun` before that one: then its part may be in the value
   * from before the failure.
   */
  private mayCommute(step: TaskStep, mayRun: boolean): void {
    const { x } = step;
    if (this.lost.has(x) && !this.commutes.has(x)) return;
    const before = this.values[x].slice();
    this.beginCommuting(x, before);
    if (!mayRun) return;
    perform(step, this.values);
    this.addCommuting(x, before);
    before.forEach((value, i) => {
      this.values[x][i] = value;
    });
  }

  private beginCommuting(x: number, base: Values): void {
    if (!this.commutes.has(x)) this.commuting[x].push({ base, added: [] });
    this.commutes.add(x);
  }

  private addCommuting(x: number, before: Values): void {
    this.beginCommuting(x, before);
    const added = this.values[x].map((value, i) => value - before[i]);
    this.commuting[x].at(-1)?.added.push(added);
  }
}
