// Random bodies that spawn tasks on parts of their data, and what plain loops give. All arithmetic is exact.
import { type Datum, type Runtime, read, readWrite, type TaskClass, task } from '../../index.js';
import { common, type Region } from '../../scheduler/program/parts/region.js';
import { add, fail, fill, random } from './tasks.js';

/** A column-major matrix of a model. */
interface Matrix {
  readonly rows: number;
  readonly values: Float64Array;
}

/** What a body does with one datum: the same steps, on a datum or on a model. */
type Step =
  | { readonly kind: 'fill'; readonly to: Region; readonly value: number }
  | { readonly kind: 'add'; readonly to: Region; readonly from: Region; readonly whole: boolean }
  | { readonly kind: 'grow'; readonly to: Region; readonly seed: number; readonly depth: number }
  | { readonly kind: 'look'; readonly from: Region; readonly to: Region };

function stepsOf(seed: number, depth: number, { rows, values }: Matrix): Step[] {
  const next = random(seed);
  const below = (n: number): number => Math.floor(next() * n);
  const columns = values.length / rows;
  const region = (): Region => {
    const [row, column] = [below(rows), below(columns)];
    return {
      ...{ row, column, rows: 1 + below(rows - row) },
      columns: 1 + below(columns - column),
    };
  };
  const steps: Step[] = [];
  for (let i = 2 + below(5); i > 0; i--) {
    const [to, from] = [region(), region()];
    const kind = below(5);
    const apart = common(to, from) === undefined;
    if (kind === 0) steps.push({ kind: 'fill', to, value: below(50) });
    else if (kind === 1 && depth > 0)
      steps.push({ kind: 'grow', to, seed: 1 + below(1e6), depth: depth - 1 });
    else if (kind === 2) steps.push({ kind: 'add', to, from, whole: true });
    else if (apart) steps.push({ kind: kind === 3 ? 'look' : 'add', to, from, whole: false });
  }
  return steps;
}

const placesOf = (m: Matrix, { row, column, rows, columns }: Region): number[] =>
  Array.from(
    { length: rows * columns },
    (_, i) => (column + Math.floor(i / rows)) * m.rows + row + (i % rows),
  );

/** What the steps of a body give. */
function model(m: Matrix, seed: number, depth: number): void {
  for (let i = 0; i < m.values.length; i++) m.values[i] += 1;
  for (const step of stepsOf(seed, depth, m)) {
    const to = placesOf(m, step.to);
    if (step.kind === 'fill') for (const at of to) m.values[at] = step.value;
    else if (step.kind === 'grow') {
      const part = { rows: step.to.rows, values: Float64Array.from(to, (at) => m.values[at]) };
      model(part, step.seed, step.depth);
      for (const [i, at] of to.entries()) m.values[at] = part.values[i];
    } else {
      const from = placesOf(m, step.from).map((at) => m.values[at]);
      const count = Math.min(to.length, from.length);
      for (let i = 0; i < count; i++) m.values[to[i]] += from[i];
    }
  }
}

const lookAt = task({
  name: 'look at',
  flows: { to: readWrite('f64'), from: read('f64') },
  body: ({ to, from }) => {
    for (let i = 0; i < Math.min(to.length, from.length); i++) to[i] += from[i];
  },
});

/** Classes of one runtime. `fails`: places of tasks that fail, by the number of those spawned so far. */
export class BodyProgram {
  readonly grow: TaskClass;
  private spawned = 0;
  private readonly failing: number;
  private readonly gpus: number;

  constructor(runtime: Runtime, failing = -1) {
    this.gpus = runtime.gpus.length;
    this.failing = failing;
    const flows = { x: readWrite('f64') };
    const params = { seed: 'i32', depth: 'i32' } as const;
    this.grow = task({
      name: 'grow',
      ...{ flows, params },
      body: ({ x, seed, depth }, { data, spawn, temporary }) => {
        for (let i = 0; i < x.length; i++) x[i] += 1;
        const go = (): void =>
          this.spawnAll({ x, of: data.x, seed, depth }, spawn as never, temporary as never);
        // Some bodies go on later.
        if (seed % 3 !== 0) return void go();
        return new Promise<void>((resolve) => setImmediate(resolve)).then(go) as never;
      },
    }) as unknown as TaskClass;
  }

  private spawnAll(
    { x, of, seed, depth }: { x: Float64Array; of: Datum; seed: number; depth: number },
    spawn: (cls: unknown, args: object, options?: object) => void,
    temporary: (element: 'f64', length: number) => Datum<'f64'>,
  ): void {
    const { gpus } = this;
    for (const [n, step] of stepsOf(seed, depth, { rows: of.rows, values: x }).entries()) {
      const device = gpus > 0 && (seed + n) % 3 > 0 ? { device: (seed + n) % gpus } : {};
      const to = of.block(step.to);
      const count = to.length;
      if (++this.spawned === this.failing) spawn(fail, { of: to, code: 7 });
      if (step.kind === 'fill') spawn(fill, { to, count, value: step.value }, device);
      else if (step.kind === 'grow')
        spawn(this.grow, { x: to, seed: step.seed, depth: step.depth });
      else if (step.kind === 'look') spawn(lookAt, { to, from: of.block(step.from) });
      else if (!step.whole) {
        const from = of.block(step.from);
        spawn(add, { to, from, count: Math.min(count, from.length) }, device);
      } else {
        // By way of parts of a temporary, and of parts of parts.
        const from = of.block({ row: 0, column: 0 }).block(step.from);
        const sum = temporary('f64', from.length + 1);
        spawn(fill, { to: sum.part(0, 1), count: 1, value: 0 });
        spawn(fill, { to: sum.part(1, from.length), count: from.length, value: 0 });
        spawn(add, { to: sum.part(0, from.length), from, count: from.length }, device);
        spawn(add, { to, from: sum, count: Math.min(count, from.length) }, device);
      }
    }
  }
}

/** The values of a matrix behind such a body. */
export function grown(rows: number, values: Float64Array, seed: number, depth: number): number[] {
  const m = { rows, values: values.slice() };
  model(m, seed, depth);
  return [...m.values];
}
