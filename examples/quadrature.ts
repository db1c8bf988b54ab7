// Adaptive quadrature: the task of an interval spawns the tasks of its halves until Simpson's rule is precise enough there. The graph unfolds as
// it runs, and is deep only where the function needs it. W. M. McKeeman, "Algorithm 145: Adaptive numerical integration by Simpson's rule", CACM 5 (1962).
import { Runtime, read, readWrite, task, write } from 'headrace';

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

const sum = task({
  name: 'sum',
  flows: { to: write('f64'), left: read('f64'), right: read('f64') },
  body: ({ to, left, right }) => void (to[0] = left[0] + right[0]),
});
const interval = task({
  name: 'interval',
  flows: { to: write('f64') },
  params: { a: 'f64', b: 'f64', tolerance: 'f64' },
  body: ({ to, a, b, tolerance }, { data, spawn, temporary }) => {
    const [{ better, error }, middle] = [estimate(a, b), (a + b) / 2];
    to[0] = better;
    if (error <= tolerance) return;
    const [left, right] = [temporary('f64', 1), temporary('f64', 1)];
    spawn(interval, { to: left, a, b: middle, tolerance: tolerance / 2 });
    spawn(interval, { to: right, a: middle, b, tolerance: tolerance / 2 });
    spawn(sum, { to: data.to, left, right });
  },
});
const scale = task({
  name: 'scale',
  flows: { x: readWrite('f64') },
  params: { by: 'f64' },
  body: ({ x, by }) => void (x[0] *= by),
});

await using runtime = await Runtime.create({ workers: 1 });
const total = runtime.data('f64', 1, { name: 'total' });
const report = await runtime.run((graph) => {
  graph.insert(interval, { to: total, a: FROM, b: TO, tolerance: TOLERANCE });
  // The mean: this task is inserted before the tree is known, and sees all of it.
  graph.insert(scale, { x: total, by: 1 / (TO - FROM) });
});
const [value] = await total.read();

let leaves = 0;
const plain = (a: number, b: number, tolerance: number): number => {
  const { better, error } = estimate(a, b);
  leaves += error <= tolerance ? 1 : 0;
  if (error <= tolerance) return better;
  return plain(a, (a + b) / 2, tolerance / 2) + plain((a + b) / 2, b, tolerance / 2);
};
const recursive = plain(FROM, TO, TOLERANCE) * (1 / (TO - FROM));
console.log(`${report.tasks} tasks, ${leaves} leaves`);
console.log(
  `mean ${value.toFixed(9)}, ${value === recursive ? 'same' : 'other'} bits as recursion`,
);
