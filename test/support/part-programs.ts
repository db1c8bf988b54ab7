// Random programs on data and their parts, in several runs with calls between them, against plain arrays. All arithmetic is
// exact, so results must be equal.
import { expect } from 'vitest';
import type { SimulatedKernel } from '../../devices/simulated/machine/backend.js';
import {
  commute,
  type Datum,
  type Graph,
  type Runtime,
  readWrite,
  reduce,
  task,
} from '../../index.js';
import { common, type Region } from '../../scheduler/program/parts/region.js';
import { summing } from './body-tasks.js';
import { soon } from './machines.js';
import { add, fill, random } from './tasks.js';

const doubles = (memory: Uint8Array, offset: number, n: number): Float64Array =>
  new Float64Array(memory.buffer, memory.byteOffset + offset, n);

/** The kernels of these programs on simulated machines. */
export const partKernels: Readonly<
  Record<'fill_f64' | 'add_f64' | 'empty' | 'reduce_identity' | 'reduce_combine', SimulatedKernel>
> = {
  empty: () => 0,
  // Those of sums (native/kernels/combine.cpp).
  reduce_identity: ({ memory, flows, params }) => {
    doubles(memory, flows[0], params[1]).fill(params[2]);
    return 0;
  },
  reduce_combine: ({ memory, flows, params }) => {
    const from = doubles(memory, flows[1], params[1]);
    doubles(memory, flows[0], params[1]).forEach((value, i, to) => {
      to[i] = value + from[i];
    });
    return 0;
  },
  fill_f64: ({ memory, flows, params }) => {
    doubles(memory, flows[0], params[0]).fill(params[1]);
    return 0;
  },
  add_f64: ({ memory, flows, params }) => {
    const from = doubles(memory, flows[1], params[0]);
    doubles(memory, flows[0], params[0]).forEach((value, i, to) => {
      to[i] = value + from[i];
    });
    return 0;
  },
};

const raise = task({
  name: 'raise',
  flows: { of: readWrite('f64') },
  body: ({ of }) => {
    for (let i = 0; i < of.length; i++) of[i] += i + 1;
  },
});
const tick = task({
  name: 'tick',
  flows: { of: commute('f64') },
  body: ({ of }) => {
    for (let i = 0; i < of.length; i++) of[i] += 1;
  },
});
const count = task({
  name: 'count',
  flows: { of: reduce('f64', summing, { partials: 2 }) },
  body: ({ of }) => {
    for (let i = 0; i < of.length; i++) of[i] += 1;
  },
});

/** A datum as the program must see it. */
interface Model {
  readonly datum: Datum<'f64'>;
  readonly rows: number;
  readonly values: Float64Array;
  readonly isWritten: Uint8Array;
}

interface ModelView {
  readonly of: Model;
  readonly region: Region;
  readonly datum: Datum<'f64'>;
}

class PartProgram {
  private readonly runtime: Runtime;
  private readonly next: () => number;
  readonly models: Model[];
  private readonly gpus: number;

  constructor(runtime: Runtime, seed: number) {
    this.runtime = runtime;
    this.next = random(seed);
    this.gpus = runtime.gpus.length;
    this.models = [0, 1].map((i) => {
      const [rows, columns] = [1 + this.below(9), 1 + this.below(5)];
      const length = rows * columns;
      const options = { name: `whole-${i}`, rows, rank: i % runtime.ranks };
      const isEmpty = this.below(4) === 0;
      return {
        datum: isEmpty
          ? runtime.data('f64', length, options)
          : runtime.data(new Float64Array(length).fill(i + 1), options),
        rows,
        values: new Float64Array(length).fill(i + 1),
        isWritten: new Uint8Array(length).fill(isEmpty ? 0 : 1),
      };
    });
  }

  private below(n: number): number {
    return Math.floor(this.next() * n);
  }

  /** The places of a view's elements in its whole, in the order of its own memory. */
  private places({ of, region }: ModelView): number[] {
    const { row, column, rows, columns } = region;
    return Array.from(
      { length: rows * columns },
      (_, i) => (column + Math.floor(i / rows)) * of.rows + row + (i % rows),
    );
  }

  private hasValue(view: ModelView): boolean {
    return this.places(view).every((at) => view.of.isWritten[at] === 1);
  }

  private view(): ModelView {
    const of = this.models[this.below(this.models.length)];
    const columns = of.values.length / of.rows;
    const all = { row: 0, column: 0, rows: of.rows, columns };
    if (this.below(4) === 0) return { of, region: all, datum: of.datum };
    const row = this.below(of.rows);
    const column = this.below(columns);
    const region = {
      row,
      column,
      rows: 1 + this.below(of.rows - row),
      columns: 1 + this.below(columns - column),
    };
    if (this.below(3) > 0) return { of, region, datum: of.datum.block(region) };
    // By way of another part.
    const outer = { row: Math.max(0, row - 1), column: 0 };
    const part = of.datum.block(outer);
    const datum =
      region.columns === 1
        ? part.part(column * part.rows + row - outer.row, region.rows)
        : part.block({ ...region, row: row - outer.row });
    return { of, region, datum };
  }

  private change(view: ModelView, value: (at: number, i: number) => number): void {
    const { values, isWritten } = view.of;
    for (const [i, at] of this.places(view).entries()) {
      values[at] = value(at, i);
      isWritten[at] = 1;
    }
  }

  private place(): { device?: number | 'host'; rank?: number } {
    const g = this.below(this.gpus + 2);
    const device = g > this.gpus ? {} : { device: g === this.gpus ? ('host' as const) : g };
    const { ranks } = this.runtime;
    const rank = ranks === 1 ? 0 : this.below(2 * ranks);
    return rank > 0 && rank < ranks ? { ...device, rank } : device;
  }

  insertOne(graph: Graph): void {
    const view = this.view();
    const { datum, of } = view;
    if (this.below(4) === 0) {
      this.insertReduction(graph, view);
      return;
    }
    const kind = this.below(5);
    if (kind === 0 || !this.hasValue(view)) {
      const value = this.below(100);
      graph.insert(fill, { to: datum, count: datum.length, value }, this.place());
      this.change(view, () => value);
    } else if (kind === 1 && this.runtime.engine.backend.kind === 'native') {
      graph.insert(raise, { of: datum });
      this.change(view, (at, i) => of.values[at] + i + 1);
    } else if (kind === 2) {
      graph.insert(tick, { of: datum });
      this.change(view, (at) => of.values[at] + 1);
    } else this.insertAdd(graph, view);
  }

  private insertAdd(graph: Graph, to: ModelView): void {
    const from = this.view();
    if (!this.hasValue(from)) return;
    if (from.of === to.of && common(from.region, to.region) !== undefined) return;
    const count = Math.min(to.datum.length, from.datum.length);
    graph.insert(add, { to: to.datum, from: from.datum, count }, this.place());
    const places = this.places(from);
    this.change(to, (at, i) => to.of.values[at] + (i < count ? from.of.values[places[i]] : 0));
  }

  private closeParts({ datum }: Model): void {
    const parts = [...(datum.view?.family.parts.values() ?? [])];
    for (const part of parts) if (part.isHeld) part.datum.close();
  }

  /** Tasks that reduce into a datum or a part, or into a datum whose parts are closed. */
  private insertReduction(graph: Graph, view: ModelView): void {
    const { of, datum } = view;
    if (!this.hasValue(view)) return;
    if (datum === of.datum && this.below(4) === 0) this.closeParts(of);
    const tasks = 1 + this.below(5);
    const ranks = Array.from({ length: tasks }, () => this.below(this.runtime.ranks));
    for (const rank of ranks) graph.insert(count, { of: datum }, { rank });
    this.change(view, (at) => of.values[at] + tasks);
  }

  /** A call between runs. */
  async call(): Promise<void> {
    const view = this.view();
    const kind = this.below(5);
    if (kind === 4) this.closeParts(view.of);
    else if (kind === 0) {
      const values = new Float64Array(view.datum.length).map(() => this.below(50));
      void view.datum.set(values);
      this.change(view, (_, i) => values[i]);
    } else if (kind === 1 && view.datum !== view.of.datum) view.datum.close();
    else if (this.hasValue(view)) await this.compare(view);
  }

  private async compare(view: ModelView): Promise<void> {
    const got = [...(await soon(this.runtime, view.datum.read()))];
    expect(got).toEqual(this.places(view).map((at) => view.of.values[at]));
  }

  async compareAll(): Promise<void> {
    for (const of of this.models) {
      const { rows, values, datum } = of;
      of.datum.view?.family.versions.check();
      const view = {
        of,
        region: { row: 0, column: 0, rows, columns: values.length / rows },
        datum,
      };
      if (this.hasValue(view)) await this.compare(view);
      else await expect(datum.read()).rejects.toThrow('never written');
    }
  }
}

/** Plays the random program `seed`; returns its data. */
export async function playParts(
  runtime: Runtime,
  seed: number,
  tasks: number,
): Promise<readonly Datum[]> {
  const program = new PartProgram(runtime, seed);
  for (let round = 0; round < 4; round++) {
    const run = runtime.run((graph) => {
      for (let i = 0; i < tasks; i++) program.insertOne(graph);
    });
    if (round % 2 === 0) await soon(runtime, run.done);
    for (let i = 0; i < 4; i++) await program.call();
    await soon(runtime, run.done);
  }
  await program.compareAll();
  return program.models.map(({ datum }) => datum);
}
