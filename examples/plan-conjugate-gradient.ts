// Conjugate gradients for -x[i-1] + 2 x[i] - x[i+1] = 0.1 as a plan: a step is planned, and played until the residual is small. No JavaScript runs
// between the steps. Dot products are reductions, step lengths are parameters that are data, and the kernels are built in (docs/kernels.md).
// The method: Golub and Van Loan, "Matrix Computations", 4th edition, algorithm 11.3.3.
import type { Datum } from 'headrace';
import { list, Runtime, read, readWrite, reduce, TiledMatrix, task, write } from 'headrace';
import { tile } from 'headrace/algorithms';

const [BLOCKS, COUNT, LIMIT] = [4, 16, 1e-20];
const N = BLOCKS * COUNT;
const [to, y, of, parts] = [write('f64'), readWrite('f64'), read('f64'), list(read('f64'))];
const dots = { total: reduce('f64', 'sum'), a: of, b: of };
const dot = task({ name: 'dot', flows: dots, params: { count: 'i32' }, kernel: 'dot_f64' });
const zero = task({ name: 'zero', flows: { to, parts }, kernel: 'parts_sum' });
const lengths = { alpha: to, minus: to, iterations: y, rr: of, parts };
const step = task({ name: 'step', flows: lengths, params: { goal: 'f64' }, kernel: 'cg_step' });
const turned = { beta: to, rr: y, parts };
const turn = task({ name: 'turn', flows: turned, params: { goal: 'f64' }, kernel: 'cg_turn' });
const scalars = { count: 'i32', alpha: 'f64', beta: 'f64' } as const;
const axpby = task({ name: 'axpby', flows: { y, x: of }, params: scalars, kernel: 'axpby_f64' });

await using runtime = await Runtime.create({ workers: 2 });
const shape = { rows: N, tile: COUNT };
const A = new TiledMatrix(runtime, 'f64', shape, (values, row, column, rows) => {
  for (let k = 0; k < values.length; k++) {
    const apart = Math.abs(row + (k % rows) - column - Math.floor(k / rows));
    values[k] = apart === 0 ? 2 : apart === 1 ? -1 : 0;
  }
});
const number = (value = 0): Datum<'f64'> => runtime.data(Float64Array.of(value));
const blocks = (value: number): Datum<'f64'>[] =>
  Array.from({ length: BLOCKS }, () => runtime.data(new Float64Array(COUNT).fill(value)));
const [x, r, p, q] = [blocks(0), blocks(0.1), blocks(0.1), blocks(0)];
const [rr, next, pq, iterations] = [number(N * 0.01), number(), number(), number()];
const [alpha, minus, beta] = [number(), number(), number()];

const plan = await runtime.plan((graph) => {
  const product = (total: Datum<'f64'>, left: Datum<'f64'>[], right: Datum<'f64'>[]): void => {
    graph.insert(zero, { to: total, parts: [] });
    for (const [i, a] of left.entries()) graph.insert(dot, { total, a, b: right[i], count: COUNT });
  };
  // q = A p
  for (const [i, c] of q.entries())
    for (const [j, b] of p.entries()) tile.gemm(graph, A.at(i, j), b, c, { beta: j === 0 ? 0 : 1 });
  product(pq, p, q);
  graph.insert(step, { alpha, minus, iterations, rr, parts: [pq], goal: LIMIT });
  for (const b of p.keys()) {
    graph.insert(axpby, { y: x[b], x: p[b], count: COUNT, alpha, beta: 1 });
    graph.insert(axpby, { y: r[b], x: q[b], count: COUNT, alpha: minus, beta: 1 });
  }
  product(next, r, r);
  graph.insert(turn, { beta, rr, parts: [next], goal: LIMIT });
  for (const b of p.keys()) graph.insert(axpby, { y: p[b], x: r[b], count: COUNT, alpha: 1, beta });
});
const played = await plan.run({ times: N, while: { datum: rr, above: LIMIT } });
console.log(`${played.iterations} steps of ${plan.report.tasks} tasks`);
console.log(`residual ${Math.sqrt((await rr.read())[0]).toExponential(1)}`);
const solution = (await Promise.all(x.map((block) => block.read()))).flatMap((part) => [...part]);
const worst = Math.max(...solution.map((value, i) => Math.abs(value - ((i + 1) * (N - i)) / 20)));
console.log(`x is ${worst < 1e-9 ? 'the exact solution' : 'wrong'}`);
