// A program with script workers that ends in one of several ways.
import { awaits, mixes, Runtime, spins } from './script-classes.mjs';

const mode = process.argv[2];
const runtime = await Runtime.create({ scriptWorkers: 2, workers: 1 });
const x = runtime.data(Float64Array.of(1));
await runtime.run((graph) => void graph.insert(mixes, { x, seed: 4 }));
console.log(JSON.stringify([...(await x.read())]));
if (mode === 'closed') await runtime.close();
if (mode === 'exit') process.exit(0);
if (mode === 'busy') {
  const others = [1, 2].map(() => runtime.data(Float64Array.of(1)));
  runtime.run((graph) => {
    graph.insert(spins, { x: others[0], ms: 1e9 });
    graph.insert(awaits, { x: others[1], ms: 1e9 });
  });
  setTimeout(() => process.exit(5), 200);
}
