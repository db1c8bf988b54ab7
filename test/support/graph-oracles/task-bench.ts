// The patterns of Task Bench as a parameterised graph: every task checks every pair of every input.
import {
  TASK_BENCH_PATTERNS,
  type TaskBenchShape,
  taskBenchColumns,
  taskBenchInputs,
} from '../../../algorithms/index.js';
import {
  type Datum,
  list,
  type ParameterisedGraph,
  parameterised,
  range,
  read,
  task,
  write,
} from '../../../index.js';
import { differences, type Oracle } from './oracle.js';

const WIDTH = 6;
const STEPS = 8;
const PAIR = 4;

/** Task (t, p) fills its output with the pair (t, p) when it has found those of all inputs. */
const point = task({
  name: 'point',
  flows: { output: write('i32'), inputs: list(read('i32')) },
  params: { t: 'i32', p: 'i32', epoch: 'i32', pattern: 'i32' },
  body: ({ output, inputs, t, p, epoch, pattern }) => {
    const columns = taskBenchInputs(shapeOf(pattern), t, p);
    const seen = inputs.map((input) => [...input]);
    const expected = columns.map((q) => [t - 1, epoch, q, 0]);
    const [wrong] = differences(`inputs of (${t}, ${p})`, seen, expected);
    if (wrong !== undefined) throw new Error(wrong);
    output.set([t, epoch, p, 0]);
  },
});

const shapeOf = (pattern: number): TaskBenchShape => ({
  pattern: TASK_BENCH_PATTERNS[pattern],
  width: WIDTH,
  steps: STEPS,
});

interface Bench {
  readonly pattern: number;
  readonly epoch: number;
  /** Two fields, which the steps write in turn. */
  readonly outputs: readonly (readonly Datum<'i32'>[])[];
}

const benchGraph: ParameterisedGraph<Bench> = parameterised(
  'task bench',
  (g, { pattern, epoch, outputs }) => {
    const shape = shapeOf(pattern);
    const columns = (t: number) => {
      const { first, count } = taskBenchColumns(shape, t);
      return range(first, first + count);
    };
    const { cell } = g.declare({ cell: { runs: point, indices: ['t', 'p'] } });
    const own = (t: number, p: number) => outputs[t % 2][p];
    g.define(cell, {
      ranges: { t: () => range(0, STEPS), p: ({ t }) => columns(t) },
      on: ({ t, p }) => own(t, p),
      order: ({ t, p }) => t * WIDTH + p,
      flows: {
        output: {
          datum: ({ t, p }) => own(t, p),
          from: ({ t, p }) => (columns(t - 2).has(p) ? cell.output({ t: t - 2, p }) : own(t, p)),
          to: ({ t, p }) => [
            columns(t + 1)
              .map((q) => q)
              .filter((q) => taskBenchInputs(shape, t + 1, q).includes(p))
              .map((q) => cell.inputs({ t: t + 1, p: q })),
            columns(t + 2).has(p) ? cell.output({ t: t + 2, p }) : own(t, p),
          ],
        },
        inputs: {
          from: ({ t, p }) =>
            taskBenchInputs(shape, t, p).map((q) => cell.output({ t: t - 1, p: q })),
        },
      },
      params: ({ t, p }) => ({ t, p, epoch, pattern }),
    });
  },
);

/** Every pattern twice over the same data. */
export const taskBench: Oracle = async (runtime, options) => {
  const problems: string[] = [];
  for (const pattern of TASK_BENCH_PATTERNS.keys()) {
    const name = TASK_BENCH_PATTERNS[pattern];
    const outputs = [0, 1].map((f) =>
      range(0, WIDTH).map((p) =>
        runtime.data('i32', PAIR, { name: `${name} ${f}/${p}`, rank: (p + f) % runtime.ranks }),
      ),
    );
    const given = { pattern, epoch: 0, outputs };
    // A rank of a pruned run looks at its own tasks only.
    problems.push(...differences(`${name}, local`, benchGraph.whyNotLocal(given), undefined));
    problems.push(...differences(`${name}, verified`, benchGraph.verify(given).problems, []));
    for (const epoch of [1, 2]) {
      await runtime.run(benchGraph, { pattern, epoch, outputs }, options);
      for (const [f, field] of outputs.entries())
        for (const [p, datum] of field.entries()) {
          const times = range(f, STEPS, 2).map((t) => t);
          const last = times.findLast((t) => {
            const { first, count } = taskBenchColumns(shapeOf(pattern), t);
            return p >= first && p < first + count;
          });
          if (last === undefined) continue;
          problems.push(...differences(datum.name, [...(await datum.read())], [last, epoch, p, 0]));
        }
    }
    for (const one of outputs.flat()) one.close();
  }
  return problems;
};
