// Programs that repeat a step, for the comparison of what a plan deals out with what the engine does (plan-balance.ts).
import { type Datum, type Graph, type Runtime, read, readWrite, task, write } from '../index.js';

/** Inserts the tasks of a step. */
type Step = (graph: Pick<Graph, 'insert'>) => void;

/** A program: makes the data; gives the step. */
export interface Program {
  /** Tasks of a step. */
  readonly tasks: number;
  readonly program: (rt: Runtime) => Step;
}

/** Times of the kernels, in times of a plain task. */
export const kernelFactors: Readonly<Record<string, number>> = {
  '*': 1,
  init: 0.1,
  long: 5,
  potrf: 0.5,
  trsm: 1,
  gemm: 2,
};

const link = task({ name: 'link', flows: { x: readWrite('f64') }, kernel: 'empty' });
const alone = task({ name: 'alone', flows: { x: write('f64') }, kernel: 'empty' });
const long = task({ name: 'long', flows: { x: readWrite('f64') }, kernel: 'long' });
const point = task({
  name: 'point',
  flows: { out: write('f64'), left: read('f64'), mid: read('f64'), right: read('f64') },
  kernel: 'empty',
});
const potrf = task({ name: 'potrf', flows: { a: readWrite('f64') }, kernel: 'potrf' });
const trsm = task({ name: 'trsm', flows: { a: readWrite('f64'), b: read('f64') }, kernel: 'trsm' });
const gemm = task({
  name: 'gemm',
  flows: { c: readWrite('f64'), a: read('f64'), b: read('f64') },
  kernel: 'gemm',
});
const init = task({ name: 'init', flows: { x: write('f64') }, kernel: 'init' });

const data = (rt: Runtime, n: number): Datum<'f64'>[] =>
  Array.from({ length: n }, () => rt.data(new Float64Array(2)));

/** Columns that read their neighbours. */
export function stencil(width: number, steps = 2): Program {
  return {
    tasks: steps * width,
    program: (rt: Runtime): Step => {
      const [even, odd] = [data(rt, width), data(rt, width)];
      return (graph) => {
        for (let t = 0; t < steps; t++) {
          const [from, to] = t % 2 === 0 ? [even, odd] : [odd, even];
          for (let p = 0; p < width; p++)
            graph.insert(point, {
              out: to[p],
              left: from[Math.max(0, p - 1)],
              mid: from[p],
              right: from[Math.min(width - 1, p + 1)],
            });
        }
      };
    },
  };
}

type Insert = (graph: Parameters<Step>[0], x: Datum<'f64'>) => void;

/** Chains beside each other. */
export function chains(count: number, steps: number): Program {
  return repeated(count, steps, (graph, x) => void graph.insert(link, { x }));
}

/** Tasks that follow none of their step. */
export function independent(count: number): Program {
  return repeated(count, 1, (graph, x) => void graph.insert(alone, { x }));
}

function repeated(count: number, steps: number, insert: Insert): Program {
  return {
    tasks: count * steps,
    program: (rt: Runtime): Step => {
      const all = data(rt, count);
      return (graph) => {
        for (let t = 0; t < steps; t++) for (const x of all) insert(graph, x);
      };
    },
  };
}

/** Every fourth chain has long tasks. */
export function unequal(count: number, steps: number): Program {
  return {
    tasks: count * steps,
    program: (rt: Runtime): Step => {
      const all = data(rt, count);
      return (graph) => {
        for (let t = 0; t < steps; t++)
          all.forEach((x, i) => {
            graph.insert(i % 4 === 0 ? long : link, { x });
          });
      };
    },
  };
}

/** A factorisation of that many rows of tiles. */
export function cholesky(n: number): Program {
  return {
    tasks: (n * (n + 1)) / 2 + (n * (n + 1) * (n + 2)) / 6,
    program: (rt: Runtime): Step => {
      const a = Array.from({ length: n }, (_, i) => data(rt, i + 1));
      return (graph) => {
        for (const row of a) for (const x of row) graph.insert(init, { x });
        for (let k = 0; k < n; k++) {
          graph.insert(potrf, { a: a[k][k] });
          for (let i = k + 1; i < n; i++) graph.insert(trsm, { a: a[i][k], b: a[k][k] });
          for (let i = k + 1; i < n; i++)
            for (let j = k + 1; j <= i; j++)
              graph.insert(gemm, { c: a[i][j], a: a[i][k], b: a[j][k] });
        }
      };
    },
  };
}
