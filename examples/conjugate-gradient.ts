// Conjugate gradients for -x[i-1] + 2 x[i] - x[i+1] = 0.1 over blocks of several ranks: the dot products are reductions, whose
// results every block reads. In one process, or on ranks: mpirun -n 2 node dist/examples/conjugate-gradient.js
// The method: Golub and Van Loan, "Matrix Computations", 4th edition, algorithm 11.3.3.
import { type Datum, Runtime, read, readWrite, task, write } from 'headrace';
import { allReduce, reducePartials } from 'headrace/algorithms';

const BLOCKS = 4;
const COUNT = 16;
const N = BLOCKS * COUNT;
/** The residual is symmetric, so it has N / 2 different elements: as many steps make it zero, but for rounding. */
const STEPS = N / 2;

const apply = task({
  name: 'apply',
  flows: { q: write('f64'), left: read('f64'), p: read('f64'), right: read('f64') },
  body: ({ q, left, p, right }) => {
    for (let i = 0; i < p.length; i++)
      q[i] = 2 * p[i] - (i > 0 ? p[i - 1] : left[left.length - 1]) - (p[i + 1] ?? right[0]);
  },
});
const dot = task({
  name: 'dot',
  flows: { to: write('f64'), a: read('f64'), b: read('f64') },
  body: ({ to, a, b }) => {
    to[0] = a.reduce((sum, value, i) => sum + value * b[i], 0);
  },
});
const advance = task({
  name: 'advance',
  flows: {
    x: readWrite('f64'),
    r: readWrite('f64'),
    p: read('f64'),
    q: read('f64'),
    rr: read('f64'),
    pq: read('f64'),
  },
  body: ({ x, r, p, q, rr, pq }) => {
    const alpha = rr[0] / pq[0];
    for (let i = 0; i < x.length; i++) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
  },
});
const turn = task({
  name: 'turn',
  flows: { p: readWrite('f64'), r: read('f64'), before: read('f64'), rr: read('f64') },
  body: ({ p, r, before, rr }) => {
    for (let i = 0; i < p.length; i++) p[i] = r[i] + (rr[0] / before[0]) * p[i];
  },
});

await using runtime = await Runtime.create({ workers: 1 });
/** One datum per block, on its rank. */
const blocks = (name: string, make: () => Float64Array): Datum<'f64'>[] =>
  Array.from({ length: BLOCKS }, (_, b) =>
    runtime.data(make(), { name: `${name}(${b})`, rank: b % runtime.ranks }),
  );
const zeros = (): Float64Array => new Float64Array(COUNT);
const tenths = (): Float64Array => new Float64Array(COUNT).fill(0.1);
const number = (): Float64Array => new Float64Array(1);
const [x, r, p, q] = [
  blocks('x', zeros),
  blocks('r', tenths),
  blocks('p', tenths),
  blocks('q', zeros),
];
const [inputs, pq] = [blocks('dot', number), blocks('pq', number)];
let [before, rr] = [blocks('rr', number), blocks('rr', number)];
const beyond = runtime.data(zeros(), { name: 'beyond' });
const partials = reducePartials(runtime, inputs);

await runtime.run((graph) => {
  /** The dot product of two vectors, for every block. */
  const product = (a: Datum<'f64'>[], b: Datum<'f64'>[], results: Datum<'f64'>[]): void => {
    for (const [i, to] of inputs.entries()) graph.insert(dot, { to, a: a[i], b: b[i] });
    allReduce(graph, { inputs, partials, results }, 'sum');
  };
  product(r, r, rr);
  for (let step = 0; step < STEPS; step++) {
    for (const [b, to] of q.entries()) {
      const [left, right] = [p[b - 1] ?? beyond, p[b + 1] ?? beyond];
      graph.insert(apply, { q: to, left, p: p[b], right });
    }
    product(p, q, pq);
    for (const b of x.keys())
      graph.insert(advance, { x: x[b], r: r[b], p: p[b], q: q[b], rr: rr[b], pq: pq[b] });
    [before, rr] = [rr, before];
    product(r, r, rr);
    for (const b of p.keys())
      graph.insert(turn, { p: p[b], r: r[b], before: before[b], rr: rr[b] });
  }
});
const [residual] = await rr[0].read();
const middle = (await x[BLOCKS / 2].read())[0];
if (runtime.rank === 0) {
  console.log(`${STEPS} steps, residual ${Math.sqrt(residual).toExponential(1)}`);
  // The exact solution is x[i] = (i + 1) (N - i) / 20.
  console.log(`x[${N / 2}] = ${middle.toFixed(6)}`);
  console.log(`bits: ${new BigUint64Array(Float64Array.of(residual, middle).buffer).join(' ')}`);
}
