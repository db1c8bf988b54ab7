// Task Bench and the stencil across ranks.
import {
  stencil as insertStencil,
  taskBench as insertTaskBench,
  TASK_BENCH_PATTERNS,
  taskBenchColumns,
} from '../../../../dist/algorithms/index.js';
import { closeAll, collector, random } from './world.mjs';

const WIDTH = 7;
const STEPS = 12;
const FIELDS = 2;
/** int32 elements of an output: sixteen pairs. */
const LENGTH = 64;

/** Every pattern twice over the same data: each task checks every pair of every input. */
export async function taskBench({ runtime, home }) {
  const { problems, check } = collector();
  let report;
  for (const pattern of TASK_BENCH_PATTERNS) {
    const shape = { pattern, width: WIDTH, steps: STEPS };
    const outputs = Array.from({ length: FIELDS }, (_, f) =>
      // Fields lie on different ranks, so that columns without neighbours cross ranks, too.
      Array.from({ length: WIDTH }, (_, p) =>
        runtime.data('i32', LENGTH, { name: `${pattern} ${f}/${p}`, ...home(p + f) }),
      ),
    );
    for (const epoch of [1, 2]) {
      const next = await runtime.run(
        (graph) => void insertTaskBench(graph, shape, outputs, { epoch }),
      );
      report = pattern === 'all_to_all' ? next : report;
      const last = new Map();
      for (let t = 0; t < STEPS; t++) {
        const { first, count } = taskBenchColumns(shape, t);
        for (let p = first; p < first + count; p++) last.set(outputs[t % FIELDS][p], [t, epoch, p]);
      }
      for (const [datum, expected] of last) {
        const values = await datum.read();
        const isRight = values.every((v, i) => (i & 3) === 3 || v === expected[i & 3]);
        check(isRight, () => `${datum.name}: ${values.slice(0, 3)} for ${expected}`);
      }
    }
    closeAll(outputs);
  }
  return { problems, report };
}

/** Steps with a halo over uneven blocks equal the serial loop bit for bit. */
export async function stencil({ runtime, home }) {
  const { problems, check } = collector();
  const lengths = [50, 64, 17, 129, 33, 64];
  let report;
  for (const [radius, steps] of [
    [1, 20],
    [7, 9],
  ]) {
    const next = random(radius);
    const total = lengths.reduce((a, b) => a + b);
    const start = Float64Array.from({ length: total }, () => next() * 2 - 1);
    const weights = Float64Array.from({ length: 2 * radius + 1 }, () => next() - 0.4);
    let expected = start;
    for (let t = 0; t < steps; t++) {
      const from = expected;
      expected = from.map((_, i) => {
        let sum = 0;
        for (let k = -radius; k <= radius; k++) sum += weights[k + radius] * (from[i + k] ?? 0);
        return sum;
      });
    }
    let at = 0;
    const blocks = lengths.map((n, b) => runtime.data(start.subarray(at, (at += n)), home(b)));
    const scratch = lengths.map((n, b) => runtime.data('f64', n, home(b)));
    const w = runtime.data(weights, { rank: 0 });
    const beyond = runtime.data(new Float64Array(radius), { rank: 0 });
    let result = [];
    report = await runtime.run((graph) => {
      result = insertStencil(graph, { blocks, scratch, weights: w, beyond }, steps);
    });
    at = 0;
    for (const block of result) {
      const values = await block.read();
      const isRight = values.every((v, i) => v === expected[at + i]);
      check(isRight, () => `radius ${radius}: block at ${at} differs from the serial loop`);
      at += values.length;
    }
    closeAll(blocks, scratch, w, beyond);
  }
  return { problems, report };
}
