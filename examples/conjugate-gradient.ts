// The Poisson equation on a square plate with edges of 0, by conjugate gradients: four blocks of rows, a matrix that is stored nowhere, and step
// lengths that are data. In one process, or on ranks: mpirun -n 2 node dist/examples/conjugate-gradient.js. A plain loop of the same method is beside it.
import { type Datum, Runtime } from 'headrace';
import { conjugateGradient, conjugateGradientData } from 'headrace/algorithms';

const [N, BLOCKS, TOLERANCE] = [48, 4, 1e-10];
const MIDDLE = (N * N + N) / 2;
const A = { columns: N };

await using runtime = await Runtime.create({ workers: 1 });
const blocks = (name: string, value: number): Datum<'f64'>[] =>
  Array.from({ length: BLOCKS }, (_, b) =>
    runtime.data(new Float64Array((N * N) / BLOCKS).fill(value), {
      name: `${name}(${b})`,
      rank: b % runtime.ranks,
    }),
  );
const [B, X] = [blocks('b', 1), blocks('x', 0)];
const data = conjugateGradientData(runtime, A, X);
let found = { iterations: 0, residual: 1 };
const { seconds } = await runtime.run(async (graph) => {
  found = await conjugateGradient(graph, A, B, X, data, { tolerance: TOLERANCE });
});
const parts = await Promise.all(X.map((block) => block.read()));
const x = parts.flatMap((part) => [...part]);

const product = (a: Float64Array, b: Float64Array): number =>
  a.reduce((sum, value, i) => sum + value * b[i], 0);
const began = performance.now();
const [plain, r] = [new Float64Array(N * N), new Float64Array(N * N).fill(1)];
const [p, q] = [r.slice(), r.slice()];
let [steps, rr] = [0, product(r, r)];
for (const goal = TOLERANCE ** 2 * rr; rr > goal; steps++) {
  for (let i = 0; i < q.length; i++) {
    const [left, right] = [i % N > 0 ? p[i - 1] : 0, (i + 1) % N > 0 ? p[i + 1] : 0];
    q[i] = 4 * p[i] - left - right - (p[i - N] ?? 0) - (p[i + N] ?? 0);
  }
  const alpha = rr / product(p, q);
  for (let i = 0; i < q.length; i++) {
    plain[i] += alpha * p[i];
    r[i] -= alpha * q[i];
  }
  const before = rr;
  rr = product(r, r);
  for (let i = 0; i < q.length; i++) p[i] = r[i] + (rr / before) * p[i];
}
const ms = performance.now() - began;
const worst = Math.max(...x.map((value, i) => Math.abs(value / plain[i] - 1)));
if (runtime.rank === 0) {
  console.log(`${found.iterations} iterations, residual ${found.residual.toExponential(1)}`);
  console.log(`bits: ${new BigUint64Array(Float64Array.of(x[MIDDLE]).buffer).join()}`);
  console.log(`a plain loop takes ${steps}, x is ${worst < 1e-7 ? 'the same' : 'different'}`);
  console.log(`${(seconds * 1e3).toFixed(0)} ms, the plain loop ${ms.toFixed(0)} ms`);
}
