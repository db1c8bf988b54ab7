// Ranks that never end by themselves: one inserts in a plain loop, so that its event loop does not turn; the others wait for
// it. Prints a line when the runtime is open. For launchers that end a job.
import { Runtime, readWrite, task } from '../../../dist/index.js';

const runtime = await Runtime.create({ workers: 1, hostMemory: '64MiB', window: 256 });
const step = task({
  name: 'step',
  flows: { x: readWrite('f64') },
  body: ({ x }) => {
    x[0] += 1;
  },
});
const x = runtime.data(new Float64Array(1024), { name: 'x', rank: 1 });
await x.read();
await new Promise((resolve) => process.stdout.write(`rank ${runtime.rank} is ready\n`, resolve));
await runtime.run((graph) => {
  while (runtime.rank === 1) graph.insert(step, { x });
  graph.insert(step, { x });
});
