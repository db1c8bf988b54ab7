// Sums, minima and maxima of data of all ranks: the bits of the same tree on every rank, wherever the inputs lie.
import { createHash } from 'node:crypto';
import {
  allReduce,
  reduce as insertReduce,
  reducePartials,
} from '../../../../dist/algorithms/index.js';
import { closeAll, collector, fill, random } from './world.mjs';

const ARRAYS = {
  f64: Float64Array,
  f32: Float32Array,
  i32: Int32Array,
  u32: Uint32Array,
  u8: Uint8Array,
};
const COMBINE = {
  sum: (a, b) => a + b,
  min: (a, b) => (a < b ? a : b),
  max: (a, b) => (a > b ? a : b),
};
/** Uneven, so that inputs go up a level alone. */
const INPUTS = 11;
const LENGTH = 33;

/** The value of some arrays: that of the left ones, the largest power of two below their number, and that of the others. */
function treeOf(arrays, combine) {
  if (arrays.length === 1) return arrays[0];
  const half = 2 ** (Math.ceil(Math.log2(arrays.length)) - 1);
  const right = treeOf(arrays.slice(half), combine);
  return treeOf(arrays.slice(0, half), combine).map((value, i) => combine(value, right[i]));
}

/** The data of a reduction of one element type, and what it gives by operation; a result on every rank. */
function reductionOf(element, { runtime, ranks, home }) {
  const List = ARRAYS[element];
  const next = random(List.BYTES_PER_ELEMENT);
  const scale = element === 'u8' ? 256 : 2 ** 31;
  const arrays = Array.from({ length: INPUTS }, () =>
    List.from({ length: LENGTH }, () => next() * scale),
  );
  const inputs = arrays.map((values, i) => runtime.data(values, home(i)));
  const onRanks = () =>
    Array.from({ length: ranks }, (_, rank) => runtime.data(element, LENGTH, { rank }));
  const operations = Object.entries(COMBINE).map(([operation, combine]) => ({
    operation,
    expected: Buffer.from(treeOf(arrays, combine).buffer),
    results: onRanks(),
  }));
  return { element, inputs, partials: reducePartials(runtime, inputs), operations };
}

/** Every element type and operation, at once. */
export async function reductions(world) {
  const { problems, check } = collector();
  const hash = createHash('sha256');
  const all = Object.keys(ARRAYS).map((element) => reductionOf(element, world));
  const report = await world.runtime.run((graph) => {
    for (const { inputs, partials, operations } of all)
      for (const { operation, results } of operations)
        allReduce(graph, { inputs, partials, results }, operation);
  });
  for (const { element, inputs, partials, operations } of all) {
    for (const { operation, expected, results } of operations) {
      const values = await Promise.all(results.map((result) => result.read()));
      for (const [rank, { buffer }] of values.entries()) {
        const isRight = expected.equals(Buffer.from(buffer));
        check(isRight, () => `${operation} of ${element} on rank ${rank}`);
      }
      hash.update(values[0]);
      closeAll(results);
    }
    closeAll(inputs, partials);
  }
  return { problems, report, hash: hash.digest('hex').slice(0, 16) };
}

/** Steps of an iteration: the inputs are written where they lie, reduced to each rank in turn, and written again. */
export async function reducedInTurn({ runtime, ranks, home }) {
  const { problems, check } = collector();
  const inputs = Array.from({ length: INPUTS }, (_, i) => runtime.data('f64', LENGTH, home(i)));
  const partials = reducePartials(runtime, inputs);
  const steps = 2 * ranks;
  const results = Array.from({ length: steps }, (_, step) =>
    runtime.data('f64', LENGTH, home(step)),
  );
  const report = await runtime.run((graph) => {
    for (const [step, result] of results.entries()) {
      for (const [i, to] of inputs.entries())
        graph.insert(fill, { to, count: LENGTH, value: 1 / (1 + i + step) });
      insertReduce(graph, { inputs, partials, result }, 'sum');
    }
  });
  for (const [step, result] of results.entries()) {
    const arrays = inputs.map((_, i) => Float64Array.of(1 / (1 + i + step)));
    const [expected] = treeOf(arrays, COMBINE.sum);
    const values = await result.read();
    check(
      values.every((value) => value === expected),
      () => `step ${step}: ${values[0]}, not ${expected}`,
    );
  }
  closeAll(inputs, partials, results);
  return { problems, report };
}
