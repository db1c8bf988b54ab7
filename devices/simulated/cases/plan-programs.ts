// Random programs that are planned and played, and inserted (plan-ways.ts): rounds of the same tasks, with open parameters,
// conditions, kernels that fail, and aborts.
import {
  type Datum,
  type Flow,
  type PlanGraph,
  read,
  readWrite,
  type Slot,
  type TaskClass,
  type TaskHandle,
  task,
  write,
} from '../../../scheduler/index.js';
import { Random } from '../machine/random.js';

/** y += a x, on `n` elements. The order of additions changes the last bits. */
export const axpy: TaskClass<
  { y: Flow<'f64', 'readWrite'>; x: Flow<'f64', 'read'> },
  { n: 'i32'; a: 'f64' }
> = task({
  name: 'axpy',
  flows: { y: readWrite('f64'), x: read('f64') },
  params: { n: 'i32', a: 'f64' },
  kernel: 'add_f64',
});
/** The same as a body on script workers: on a simulated machine a kernel with the name of the class. */
export const axpyBody: typeof axpy = task({
  name: 'axpyBody',
  module: import.meta.url,
  flows: { y: readWrite('f64'), x: read('f64') },
  params: { n: 'i32', a: 'f64' },
  body: ({ y, x, n, a }) => {
    for (let i = 0; i < n; i++) y[i] += a * x[i];
  },
});
/** y := x. */
export const copy: TaskClass<
  { y: Flow<'f64', 'write'>; x: Flow<'f64', 'read'> },
  { bytes: 'i32' }
> = task({
  name: 'copy',
  flows: { y: write('f64'), x: read('f64') },
  params: { bytes: 'i32' },
  kernel: 'copy_bytes',
});
/** Fails with a code. */
export const failing: TaskClass<{ y: Flow<'f64', 'readWrite'> }, { code: 'i32' }> = task({
  name: 'failing',
  flows: { y: readWrite('f64') },
  params: { code: 'i32' },
  kernel: 'fail',
});

interface Step {
  readonly kind: 'axpy' | 'copy' | 'failing';
  readonly y: number;
  readonly x: number;
  readonly n: number;
  /** The factor, and the number of the slot in its place. */
  readonly a: number;
  readonly open: number | undefined;
  readonly device: number | 'host' | undefined;
  readonly after: number | undefined;
  /** It is a body. */
  readonly isBody: boolean;
}

/** How a round ends. */
export type Round =
  | { readonly kind: 'all' }
  /** By a condition on the first element of a datum: on its value after `at` iterations, every so many iterations. */
  | { readonly kind: 'while'; readonly datum: number; readonly at: number; readonly every: number }
  /** A kernel fails in that iteration. */
  | { readonly kind: 'fails'; readonly iteration: number }
  /** It is aborted when so many kernels have run. */
  | { readonly kind: 'aborts'; readonly kernels: number };

const SLOTS = 3;

/** Value of a slot of axpy in an iteration of a round. */
export function slotValue(n: number, round: number, iteration: number): number {
  return (((iteration * 7 + n * 3 + round * 5) % 11) - 5) / 64;
}

/** What a task gets for an open parameter: the code of `failing`, or a slot of axpy. */
type Parameter = (slot: 'code' | number) => number | Slot;

/** A random program for a machine with that many GPUs. */
export class PlanProgram {
  readonly gpus: number;
  readonly workers: number;
  readonly scriptWorkers: number;
  readonly computeStreams: number;
  /** Bytes per GPU: sometimes less than the data. */
  readonly gpuMemory: number;
  readonly window: number;
  readonly times: number;
  /** Runs are inserted between the plays, without waiting. */
  readonly mixes: boolean;
  readonly tasks: number;
  readonly rounds: readonly Round[];
  private readonly sizes: readonly number[];
  private readonly steps: readonly Step[];

  /**
   * `hazards: false`: all iterations of all rounds are played, and no kernel fails. `bodies`: some tasks are bodies on script workers.
   * The rest is the same.
   */
  constructor(
    seed: number,
    options: { readonly hazards?: boolean; readonly bodies?: boolean } = {},
  ) {
    const r = new Random(seed);
    const ofBodies = options.bodies === true ? new Random(seed + 1) : undefined;
    this.scriptWorkers = ofBodies?.between(1, 3) ?? 0;
    const share = ofBodies?.pick([0.3, 0.6, 1]) ?? 0;
    this.gpus = r.below(3);
    this.workers = r.between(1, 3);
    this.computeStreams = r.between(1, 2);
    this.sizes = Array.from({ length: r.between(2, 11) }, () => 64 * r.between(1, 4));
    const { sizes } = this;
    const all = sizes.reduce((sum, n) => sum + n * 8, 0);
    const least = 2 * Math.max(...sizes) * 8 + 512;
    this.gpuMemory = r.chance(0.5)
      ? 2 ** 20
      : Math.max(least, Math.floor(all * (0.2 + 0.6 * r.real())));
    this.window = 2 ** r.between(3, 10);
    this.times = r.between(1, 6);
    this.mixes = r.chance(0.5);
    const slots = r.pick([0, 0.3, 1]);
    this.steps = Array.from({ length: r.between(1, 60) }, (_, i) => {
      const step = this.randomStep(r, i, slots);
      const mayBeBody = step.kind === 'axpy' && typeof step.device !== 'number';
      return { ...step, isBody: mayBeBody && ofBodies?.chance(share) === true };
    });
    // Runs and reads behind a failure are a matter of the programs of several runs (mixed-programs.ts).
    const risk = this.mixes ? 0 : r.pick([0, 0.3, 0.8]);
    const hazards = options.hazards === false ? 0 : risk;
    this.rounds = Array.from({ length: r.between(1, 4) }, () =>
      r.chance(hazards) ? this.hazard(r) : { kind: 'all' },
    );
    this.tasks = this.steps.length;
  }

  private randomStep(r: Random, i: number, slots: number): Step {
    const { sizes, gpus } = this;
    const y = r.below(sizes.length);
    const other = r.below(sizes.length);
    const x = other === y ? (y + 1) % sizes.length : other;
    const isFailing = !this.mixes && r.chance(0.05);
    const copies = r.chance(0.25) && sizes[x] >= sizes[y];
    const host = gpus === 0 || r.chance(1 / (gpus + 1));
    return {
      kind: isFailing ? 'failing' : copies ? 'copy' : 'axpy',
      y,
      x,
      n: Math.min(sizes[x], sizes[y]),
      a: (r.below(200) - 100) / 1000,
      open: r.chance(slots) ? r.below(SLOTS) : undefined,
      device: r.chance(0.75) ? undefined : host ? 'host' : r.below(gpus),
      after: i > 0 && r.chance(1 / 6) ? r.below(i) : undefined,
      isBody: false,
    };
  }

  private hazard(r: Random): Round {
    const written = this.steps.map(({ y }) => y);
    const list: Round[] = [
      {
        kind: 'while',
        datum: r.pick(written),
        at: r.between(1, this.times),
        every: r.between(1, 3),
      },
      { kind: 'aborts', kernels: r.below(this.steps.length * this.times + 1) },
    ];
    if (this.steps.some(({ kind }) => kind === 'failing'))
      list.push({ kind: 'fails', iteration: r.below(this.times) });
    return r.pick(list);
  }

  /** The values with which a round begins, if it sets its data: others than those of other rounds. */
  values(round: number): Float64Array[] {
    return this.sizes.map((n, i) =>
      Float64Array.from({ length: n }, (_, k) => i + 1 + k / 64 + round),
    );
  }

  /** Whether some task writes the datum. */
  writes(datum: number): boolean {
    return this.steps.some(({ y }) => y === datum);
  }

  /** The slots of axpy that tasks use, and whether some task may fail. */
  get open(): { readonly slots: readonly number[]; readonly code: boolean } {
    const slots = this.steps.flatMap(({ kind, open }) =>
      kind === 'axpy' && open !== undefined ? [open] : [],
    );
    const code = this.steps.some(({ kind }) => kind === 'failing');
    return { slots: [...new Set(slots)], code };
  }

  /** Inserts one iteration. */
  insert(
    graph: Pick<PlanGraph, 'insert'>,
    data: readonly Datum<'f64'>[],
    parameter: Parameter,
  ): void {
    const handles: TaskHandle[] = [];
    for (const { kind, y: to, x: from, n, a, open, device, after, isBody } of this.steps) {
      const before = after === undefined ? {} : { after: [handles[after]] };
      const options = device === undefined ? before : { ...before, device };
      const [y, x] = [data[to], data[from]];
      if (kind === 'copy')
        handles.push(graph.insert(copy, { y, x, bytes: this.sizes[to] * 8 }, options));
      else if (kind === 'failing')
        handles.push(graph.insert(failing, { y, code: parameter('code') }, options));
      else {
        const factor = open === undefined ? a : parameter(open);
        handles.push(graph.insert(isBody ? axpyBody : axpy, { y, x, n, a: factor }, options));
      }
    }
  }

  /** One iteration on plain arrays, one task after the other; no task fails. */
  compute(values: readonly Float64Array[], round: number, iteration: number): void {
    for (const { kind, y, x, n, a, open } of this.steps) {
      const [to, from] = [values[y], values[x]];
      if (kind === 'copy') to.set(from.subarray(0, to.length));
      if (kind !== 'axpy') continue;
      const factor = open === undefined ? a : slotValue(open, round, iteration);
      for (let i = 0; i < n; i++) to[i] += factor * from[i];
    }
  }
}
