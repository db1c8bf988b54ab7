// The smallest whole program: two task classes, two data, eleven tasks in program order.
import { Runtime, read, readWrite, task, write } from 'headrace';

const fill = task({
  name: 'fill',
  flows: { x: write('f64') },
  params: { value: 'f64' },
  body: ({ x, value }) => void x.fill(value),
});
const axpy = task({
  name: 'axpy',
  flows: { x: read('f64'), y: readWrite('f64') },
  params: { alpha: 'f64' },
  body: ({ x, y, alpha }) => y.forEach((_, i) => void (y[i] += alpha * x[i])),
});

await using runtime = await Runtime.create();
const x = runtime.data('f64', 1000); // has no copy until a task writes it
const y = runtime.data(new Float64Array(1000));
const report = await runtime.run((graph) => {
  graph.insert(fill, { x, value: 2 });
  for (let i = 0; i < 10; i++) graph.insert(axpy, { x, y, alpha: 1 });
});
console.log(`y[0] = ${(await y.read())[0]} after ${report.tasks} tasks`);
