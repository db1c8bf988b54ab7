// Conjugate gradients for -x[i-1] + 2 x[i] - x[i+1] = 0.1 as a plan: a step is planned, and played until the residual is small.
// No JavaScript runs between the steps: scalars are data of one element, and the residual is compared natively.
// The method: Golub and Van Loan, "Matrix Computations", 4th edition, algorithm 11.3.3.
import { type Datum, Runtime, read, readWrite, task, write } from 'headrace';
import { compile } from './support/compile.js';

const [BLOCKS, COUNT, LIMIT] = [4, 16, 1e-20];
const N = BLOCKS * COUNT;
const [to, y, of] = [write('f64'), readWrite('f64'), read('f64')];
const apply = task({
  name: 'apply',
  flows: { to, left: of, middle: of, right: of, weights: of },
  params: { radius: 'i32', leftCount: 'i32', count: 'i32' },
  kernel: 'stencil_1d_f64',
});
const dot = task({
  name: 'dot',
  flows: { to, a: of, b: of },
  params: { n: 'i32' },
  kernel: 'dot_f64',
});
const sum = task({ name: 'sum', flows: { to, a: of, b: of, c: of, d: of }, kernel: 'sum_f64' });
const divide = task({ name: 'divide', flows: { to, a: of, b: of }, kernel: 'divide_f64' });
const update = { flows: { y, x: of, a: of }, params: { n: 'i32', factor: 'f64' } } as const;
const axpy = task({ name: 'axpy', ...update, kernel: 'axpy_f64' });
const xpay = task({ name: 'xpay', ...update, kernel: 'xpay_f64' });

using stencils = compile('kernels.c');
using vectors = compile('plans.c');
await using runtime = await Runtime.create({ workers: 2 });
for (const { file } of [stencils, vectors]) runtime.loadKernels(file);
const data = (...values: number[]): Datum<'f64'> => runtime.data(Float64Array.from(values));
const blocks = (value: number): Datum<'f64'>[] =>
  Array.from({ length: BLOCKS }, () => data(...new Array<number>(COUNT).fill(value)));
const [x, r, p, q] = [blocks(0), blocks(0.1), blocks(0.1), blocks(0)];
const [parts, beyond, weights] = [[data(0), data(0), data(0), data(0)], data(0), data(-1, 2, -1)];
const [rr, next, pq, alpha, beta] = [data(N * 0.01), data(0), data(0), data(0), data(0)];

const step = await runtime.plan((graph) => {
  const total = (into: Datum<'f64'>): void =>
    void graph.insert(sum, { to: into, a: parts[0], b: parts[1], c: parts[2], d: parts[3] });
  for (const [b, middle] of p.entries()) {
    const [left, right] = [p[b - 1] ?? beyond, p[b + 1] ?? beyond];
    const sizes = { radius: 1, leftCount: left.length, count: COUNT };
    graph.insert(apply, { to: q[b], left, middle, right, weights, ...sizes });
    graph.insert(dot, { to: parts[b], a: middle, b: q[b], n: COUNT });
  }
  total(pq);
  graph.insert(divide, { to: alpha, a: rr, b: pq });
  for (const [b, part] of parts.entries()) {
    graph.insert(axpy, { y: x[b], x: p[b], a: alpha, n: COUNT, factor: 1 });
    graph.insert(axpy, { y: r[b], x: q[b], a: alpha, n: COUNT, factor: -1 });
    graph.insert(dot, { to: part, a: r[b], b: r[b], n: COUNT });
  }
  total(next);
  graph.insert(divide, { to: beta, a: next, b: rr });
  for (const b of p.keys()) graph.insert(xpay, { y: p[b], x: r[b], a: beta, n: COUNT, factor: 1 });
  total(rr);
});
const { iterations } = await step.run({ times: N, while: { datum: rr, above: LIMIT } });
const residual = Math.sqrt((await rr.read())[0]);
console.log(`${iterations} steps of ${step.report.tasks} tasks`);
console.log(`residual ${residual.toExponential(1)}`);
const solution = (await Promise.all(x.map((block) => block.read()))).flatMap((part) => [...part]);

const product = (a: number[], b: number[]): number => a.reduce((s, v, i) => s + v * b[i], 0);
let [steps, plain, rest] = [0, new Array<number>(N).fill(0), new Array<number>(N).fill(0.1)];
for (let d = rest, before = product(rest, rest); before > LIMIT && steps < N; steps++) {
  const ad = d.map((value, i) => 2 * value - (d[i - 1] ?? 0) - (d[i + 1] ?? 0));
  const a = before / product(d, ad);
  plain = plain.map((value, i) => value + a * d[i]);
  rest = rest.map((value, i) => value - a * ad[i]);
  const after = product(rest, rest);
  d = rest.map((value, i) => value + (after / before) * d[i]);
  before = after;
}
const worst = Math.max(...solution.map((value, i) => Math.abs(value / plain[i] - 1)));
console.log(`a plain loop takes ${steps} steps, x is ${worst < 1e-12 ? 'the same' : 'different'}`);
