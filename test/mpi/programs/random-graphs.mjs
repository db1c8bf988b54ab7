// Random parameterised graphs on several ranks, pruned and not: every rank runs this program. Arguments: the first seed and their number.
import { Random } from '../../../dist/devices/simulated/machine/random.js';
import { Runtime } from '../../../dist/index.js';
import { graphOf, randomProgram, start } from '../../../dist/test/support/random-graphs.js';
import { report } from './report.mjs';

const [from, count] = process.argv.slice(2).map(Number);
const runtime = await Runtime.create({ workers: 1, hostMemory: '64MiB', checked: true });
const { rank, ranks } = runtime;
const wrong = [];
for (let seed = from; seed < from + count; seed++) {
  const r = new Random(seed);
  const program = randomProgram(r);
  const places = program.nodes.map(() => r.below(ranks));
  const expected = start(program.data);
  const data = expected.map((value, d) =>
    runtime.data(value, { name: `d${d}`, rank: r.below(ranks) }),
  );
  const graph = graphOf(program, (node) => places[node]);
  for (const pruned of [false, true, true]) {
    program.run(expected);
    await runtime.run(graph, { data }, { pruned });
    for (const [d, datum] of data.entries()) {
      const value = (await datum.read()).join();
      if (value !== expected[d].join())
        wrong.push(`seed ${seed}, pruned ${pruned}, d${d}: ${value}, not ${expected[d].join()}`);
    }
  }
  for (const datum of data) datum.close();
}
await runtime.engine.quiet();
report(rank, { wrong, used: runtime.memory().map(({ used }) => used) });
await runtime.close();
