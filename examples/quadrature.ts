// Adaptive quadrature: the task of an interval inserts the tasks of its halves until Simpson's rule is precise enough there. The graph unfolds as
// it runs, and is deep only where the function needs it. W. M. McKeeman, "Algorithm 145: Adaptive numerical integration by Simpson's rule", CACM 5 (1962).
import { type Graph, Runtime, readWrite, task } from 'headrace';

const [FROM, TO, TOLERANCE] = [0.01, 1, 1e-9];
const f = (x: number): number => Math.sin(1 / x);
const simpson = (a: number, b: number): number =>
  ((b - a) / 6) * (f(a) + 4 * f((a + b) / 2) + f(b));
/** The rule on both halves, the better value from both (Richardson), and its estimated error. */
function estimate(a: number, b: number): { better: number; error: number } {
  const middle = (a + b) / 2;
  const halves = simpson(a, middle) + simpson(middle, b);
  const error = (halves - simpson(a, b)) / 15;
  return { better: halves + error, error: Math.abs(error) };
}

await using runtime = await Runtime.create({ workers: 1 });
const total = runtime.data(Float64Array.of(0), { name: 'total' });
const add = task({
  name: 'add',
  flows: { total: readWrite('f64') },
  params: { value: 'f64' },
  body: ({ total, value }) => void (total[0] += value),
});
let graph: Graph;
const interval = task({
  name: 'interval',
  flows: {},
  params: { a: 'f64', b: 'f64', tolerance: 'f64' },
  body: ({ a, b, tolerance }) => {
    const [{ better, error }, middle] = [estimate(a, b), (a + b) / 2];
    if (error <= tolerance) graph.insert(add, { total, value: better });
    else {
      graph.insert(interval, { a, b: middle, tolerance: tolerance / 2 });
      graph.insert(interval, { a: middle, b, tolerance: tolerance / 2 });
    }
  },
});
const report = await runtime.run((of) => {
  graph = of;
  graph.insert(interval, { a: FROM, b: TO, tolerance: TOLERANCE });
});
const [value] = await total.read();

let leaves = 0;
const plain = (a: number, b: number, tolerance: number): number => {
  const { better, error } = estimate(a, b);
  leaves += error <= tolerance ? 1 : 0;
  if (error <= tolerance) return better;
  return plain(a, (a + b) / 2, tolerance / 2) + plain((a + b) / 2, b, tolerance / 2);
};
const recursive = plain(FROM, TO, TOLERANCE);
console.log(`${report.tasks} tasks, ${leaves} leaves`);
console.log(`integral ${value.toFixed(9)}, by plain recursion ${recursive.toFixed(9)}`);
