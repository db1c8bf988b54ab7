// Random programs of the public interface that repeat: runs with the same tasks, some of which take turns with others that begin
// alike, or runs that repeat a stretch of tasks, with small changes now and then. So most of their tasks are played if runs are
// recognised. What changes may come at any place of a run: other tasks, also with bodies, reads and values, a parameter or a datum
// that is another one, an early end, a failure. On several ranks runs repeat, and no stretches; and what one of them does besides
// keeps it from playing.
import {
  FAILS,
  FrontEndProgram,
  type Round,
  type Step,
  type TaskStep,
} from './front-end-program.js';

/** A run with fewer tasks is not recognised, nor is a stretch. */
const LEAST = 48;
/** A run that repeats stretches has at least that many tasks: 1024 must come before the first is played. */
const LONG = 1500;

interface PatternStep {
  readonly task: TaskStep;
  /** Its parameter is another one each time. */
  readonly isOpen: boolean;
  /** It follows that task of the pattern. */
  readonly after: number | undefined;
}

const CHANGES = [
  ...(['step', 'step', 'step', 'body', 'body', 'parameter', 'datum', 'datum'] as const),
  ...(['device', 'end', 'fails', 'checkFails', 'checkFails', 'aborts'] as const),
] as const;
type Change = (typeof CHANGES)[number];

/** A change at a place of one repetition of the pattern. */
interface Place {
  readonly change: Change;
  readonly repetition: number;
  readonly at: number;
}

export class RepeatingProgram extends FrontEndProgram {
  constructor(seed: number, ranks = 1) {
    // Ranks with GPUs recognise nothing. Runs that are not awaited fill no window.
    super(seed, ranks === 1 ? { ranks } : { ranks, gpus: 0, window: 2 ** 14 });
  }

  protected override makeRounds(): Round[] {
    const { r } = this;
    const isLong = r.chance(0.5) && this.ranks === 1;
    const count = isLong ? r.between(3, 40) : r.between(LEAST, LEAST + 20);
    const pattern = Array.from({ length: count }, (_, i) => this.patternStep(i));
    const repetitions = isLong ? Math.ceil(r.between(LONG, LONG + 500) / count) : 1;
    const changes = r.pick(isLong ? [0, 1, 3, 6] : [0, 0.2, 0.5]);
    // Of runs of several ranks that begin alike one is played.
    const isAlone = isLong || this.ranks > 1 || !this.ofTurns.chance(0.4);
    const patterns = isAlone ? [pattern] : this.inTurn(pattern);
    const rounds = isLong ? r.between(2, 3) : r.between(8, 14) * patterns.length;
    const all = Array.from({ length: rounds }, (_, turn) => {
      const many = Math.floor(changes) + (r.chance(changes % 1) ? 1 : 0);
      const places = Array.from({ length: many }, () => this.place(repetitions, count));
      return this.repeat(patterns[turn % patterns.length], repetitions, turn, places);
    });
    return this.withPlan(all, 0.4);
  }

  /** Runs that take turns with those of a pattern, and begin as these do. */
  private inTurn(pattern: readonly PatternStep[]): (readonly PatternStep[])[] {
    const { r } = this;
    const others = Array.from({ length: r.between(1, 2) }, () => {
      const alike = pattern.slice(0, r.between(1, pattern.length));
      const more = Array.from({ length: r.between(0, LEAST) }, (_, i) =>
        this.patternStep(alike.length + i),
      );
      return [...alike, ...more];
    });
    return [pattern, ...others];
  }

  private patternStep(i: number): PatternStep {
    const { r } = this;
    const kind = r.pick([
      ...(['kernel', 'kernel', 'kernel', 'kernel', 'initKernel', 'initKernel'] as const),
      ...(['commuteKernel', 'commuteKernel', 'check', 'steeredKernel'] as const),
    ]);
    const { options, ...task } = this.task(i);
    const { after, ...others } = options;
    return {
      task: { ...task, kind, alpha: task.y, options: others, root: undefined },
      isOpen: r.chance(0.3),
      // A run with such a task is not played on several ranks.
      after: this.ranks === 1 || r.chance(0.01) ? after : undefined,
    };
  }

  private place(repetitions: number, count: number): Place {
    const { r } = this;
    return { change: r.pick(CHANGES), repetition: r.below(repetitions), at: r.below(count) };
  }

  private repeat(
    pattern: readonly PatternStep[],
    repetitions: number,
    turn: number,
    places: readonly Place[],
  ): Round {
    const { r } = this;
    const isAlone = places.length > 0 || r.chance(0.6);
    const steps: Step[] = [];
    let aborts: Round['aborts'];
    for (let repetition = 0; repetition < repetitions; repetition++) {
      const here = places.filter((place) => place.repetition === repetition);
      const numbers: number[] = [];
      for (const [i, step] of pattern.entries()) {
        const changes = here.filter(({ at }) => at === i).map(({ change }) => change);
        if (changes.includes('end')) return { steps, aborts, isAlone, graph: undefined };
        if (changes.includes('aborts'))
          aborts = { rank: this.ranks === 1 ? 0 : r.below(this.ranks), at: steps.length };
        if (changes.includes('step')) steps.push(this.step(steps.length, true));
        if (changes.includes('fails')) steps.push(this.other('fails'));
        if (changes.includes('body')) steps.push(this.other(r.pick(['plain', 'async'])));
        numbers.push(steps.length);
        const after = step.after === undefined ? undefined : numbers[step.after];
        steps.push(this.changed(step, after, repetition + turn, changes));
      }
    }
    return { steps, aborts, isAlone, graph: undefined };
  }

  /** A task apart from the pattern. */
  private other(kind: 'fails' | 'plain' | 'async'): TaskStep {
    return { ...this.task(0, false), kind, root: undefined };
  }

  private changed(
    { task, isOpen }: PatternStep,
    after: number | undefined,
    turn: number,
    changes: readonly Change[],
  ): TaskStep {
    const { r, owners } = this;
    const plus = isOpen ? (task.plus + turn) % FAILS : task.plus;
    const options = after === undefined ? task.options : { ...task.options, after };
    let step: TaskStep = { ...task, plus, options };
    if (changes.includes('parameter')) step = { ...step, plus: (plus + 1) % FAILS };
    if (changes.includes('device')) step = { ...step, options: this.elsewhere(options, turn) };
    if (changes.includes('datum'))
      step = { ...step, y: (step.x + 1 + r.below(owners.length - 1)) % owners.length };
    if (changes.includes('checkFails')) step = { ...step, kind: 'check', plus: FAILS };
    return step;
  }

  /** Options that name another device, or another rank. */
  private elsewhere(options: TaskStep['options'], turn: number): TaskStep['options'] {
    if (this.ranks === 1 || turn % 2 === 0) return { ...options, device: 'host' };
    return { ...options, rank: ((options.rank ?? 0) + 1) % this.ranks };
  }
}
