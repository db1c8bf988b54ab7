// Random parameterised graphs that repeat: chains of tasks on columns, which also read a value of another column. Classes take turns at the
// positions of a chain, and promise a random part of where they repeat. One position may be another, at which the promise ends or begins.

import {
  type Datum,
  type ParameterisedGraph,
  parameterised,
  type Range,
  type Runtime,
  range,
  read,
  readWrite,
  type TaskClass,
  task,
} from '../../../scheduler/index.js';
import { Random } from '../machine/random.js';
import { scaled } from './front-end-reference.js';

const link = task({
  name: 'link',
  flows: { x: readWrite('f64'), y: read('f64') },
  params: { plus: 'f64' },
  kernel: 'scaled_f64',
});
/** Numbers of positions begin here. */
const ORIGIN = 1000;

/** What `y` reads: a constant, by number, or the value of an earlier column at the same position or the one before. */
type Reads = number | { readonly column: number; readonly back: number };

/** A program, and what it leaves. */
class Chains {
  readonly columns: number;
  readonly length: number;
  readonly classes: number;
  readonly stride: number;
  /** Parameters are given by a function. */
  readonly hasFunction: boolean;
  /** Positions in which the classes repeat, without the last one. */
  readonly promised: readonly [number, number];
  private readonly table: readonly (readonly Reads[])[];
  /** A position and a column that read something else; none if it is outside. */
  private readonly odd: readonly [number, number];

  constructor(r: Random, longest: number) {
    this.columns = r.between(1, 5);
    this.length = r.between(60, longest);
    this.classes = r.between(1, 3);
    this.stride = r.pick([1, 1, 2, -1, -3]);
    this.hasFunction = r.chance(0.3);
    this.table = Array.from({ length: this.classes }, () =>
      Array.from({ length: this.columns }, (_, p): Reads => {
        return p === 0 || r.chance(0.2) ? 0 : { column: r.below(p), back: r.below(2) };
      }),
    );
    const at = r.between(20, this.length - 3);
    this.odd = [r.chance(0.5) ? at : this.length, r.below(this.columns)];
    // The task before the odd one sends its value elsewhere, too.
    const isBehind = this.odd[0] === at && r.chance(0.5);
    const first = isBehind ? at + 1 : 1;
    const end = isBehind || this.odd[0] !== at ? this.length - 1 : at - 1;
    const cuts = (): number => (r.chance(0.3) ? r.below(1 + (end - first) / 2) : 0);
    this.promised = [first + cuts(), end - cuts()];
  }

  reads(c: number, p: number): Reads {
    const isOdd = c === this.odd[0] && p === this.odd[1];
    const reads = isOdd ? 1 : this.table[c % this.classes][p];
    return typeof reads === 'object' && c < reads.back ? 0 : reads;
  }

  plus(c: number): number {
    return this.hasFunction ? 1 + (c % 7) : 3;
  }

  /** Numbers of the positions between two ones, both included, which are so far apart. */
  span(from: number, to: number, apart = 1): Range {
    const ends = [from, to].map((c) => ORIGIN + c * this.stride);
    return range(Math.min(...ends), Math.max(...ends) + 1, apart * Math.abs(this.stride));
  }

  /** The positions of a class. */
  positionsOf(n: number): Range {
    const { classes, length } = this;
    return this.span(n, n + classes * Math.floor((length - 1 - n) / classes), classes);
  }

  /** The values of the columns, given those before. */
  run(
    columns: readonly Float64Array<ArrayBuffer>[],
    constants: readonly Float64Array[],
  ): Float64Array<ArrayBuffer>[] {
    let before = [...columns];
    for (let c = 0; c < this.length; c++) {
      const now: Float64Array<ArrayBuffer>[] = [];
      for (let p = 0; p < this.columns; p++) {
        const reads = this.reads(c, p);
        const y =
          typeof reads === 'number'
            ? constants[reads]
            : (reads.back === 0 ? now : before)[reads.column];
        const x = before[p].slice();
        scaled(x, y, this.plus(c));
        now.push(x);
      }
      before = now;
    }
    return before;
  }
}

interface Given {
  readonly columns: readonly Datum<'f64'>[];
  readonly constants: readonly Datum<'f64'>[];
}

function graphOf(program: Chains): ParameterisedGraph<Given> {
  const { classes, columns: width, length, stride } = program;
  const names = Array.from({ length: classes }, (_, n) => `link${n}`);
  // biome-ignore lint/suspicious/noExplicitAny: the number of classes is random.
  return parameterised<Given>('chains', (graph: any, { columns, constants }) => {
    const runs = link as unknown as TaskClass;
    const declared = graph.declare(
      Object.fromEntries(names.map((name) => [name, { runs, indices: ['c', 'p'] }])),
    );
    const end = (flow: 'x' | 'y', c: number, p: number): unknown =>
      declared[names[c % classes]][flow]({ c: ORIGIN + c * stride, p });
    const readers = (c: number, p: number): unknown[] => {
      const all: unknown[] = [];
      for (const back of [0, 1])
        for (let q = 0; q < width && c + back < length; q++) {
          const reads = program.reads(c + back, q);
          if (typeof reads === 'object' && reads.column === p && reads.back === back)
            all.push(end('y', c + back, q));
        }
      return all;
    };
    type Of = { readonly c: number; readonly p: number };
    const positionOf = ({ c }: Of): number => (c - ORIGIN) / stride;
    const [first, last] = program.promised;
    const promise = program.span(first, last - 1);
    names.forEach((name, n) => {
      graph.define(declared[name], {
        ranges: { c: () => program.positionsOf(n), p: () => range(0, width) },
        starts: { c: () => (n === 0 ? program.span(0, 0) : range(0, 0)), p: () => range(0, width) },
        ...(last > first ? { repeats: { c: () => range(promise.first, promise.end) } } : {}),
        params: program.hasFunction
          ? (of: Of) => ({ plus: program.plus(positionOf(of)) })
          : { plus: program.plus(0) },
        flows: {
          x: {
            from: (of: Of) =>
              positionOf(of) === 0 ? columns[of.p] : end('x', positionOf(of) - 1, of.p),
            to: (of: Of) => {
              const next = positionOf(of) + 1;
              return [
                readers(next - 1, of.p),
                next < length ? end('x', next, of.p) : columns[of.p],
              ];
            },
          },
          y: {
            from: (of: Of) => {
              const c = positionOf(of);
              const reads = program.reads(c, of.p);
              return typeof reads === 'number'
                ? constants[reads]
                : end('x', c - reads.back, reads.column);
            },
          },
        },
      });
    });
  }) as never;
}

/** What differs from the values of arrays after two runs of a random graph that repeats; each datum has so many elements. */
export async function differencesOfRepeating(
  runtime: Runtime,
  seed: number,
  elements: number,
): Promise<string[]> {
  const r = new Random(seed);
  const program = new Chains(r, 600);
  const graph = graphOf(program);
  const start = (count: number, of: number): Float64Array<ArrayBuffer>[] =>
    Array.from({ length: count }, (_, d) =>
      Float64Array.from({ length: elements }, (_, i) => of + 10 * d + i),
    );
  const constants = start(2, 7);
  let expected = start(program.columns, 100);
  const made = (values: readonly Float64Array[], name: string): Datum<'f64'>[] =>
    values.map((value, d) =>
      runtime.data(value.slice(), { name: `${name}${d}`, rank: r.below(runtime.ranks) }),
    );
  const data = { columns: made(expected, 'column'), constants: made(constants, 'constant') };
  const wrong: string[] = [];
  for (let k = 0; k < 2; k++) {
    expected = program.run(expected, constants);
    await runtime.run(graph, data);
    for (const [d, datum] of data.columns.entries()) {
      const value = (await datum.read()).join();
      if (value !== expected[d].join())
        wrong.push(`seed ${seed}, column ${d}: ${value}, not ${expected[d].join()}`);
    }
  }
  for (const datum of [...data.columns, ...data.constants]) datum.close();
  return wrong;
}
