// Random graphs of which a rank looks at its own tasks only, among runs of other kinds: every rank runs this program. Arguments: the first
// seed and their number. The window is small: sends and tasks wait for room.

import { Random } from '../../../dist/devices/simulated/machine/random.js';
import { Runtime } from '../../../dist/index.js';
import { localDifferences, localProgram } from '../../../dist/test/support/local-programs.js';
import { report } from './report.mjs';

const RUNS = ['local', 'inserted', 'local', 'all', 'local', 'local', 'inserted'];
const [from, count] = process.argv.slice(2).map(Number);
const runtime = await Runtime.create({
  workers: 1,
  hostMemory: '64MiB',
  checked: true,
  window: 64,
});
const wrong = [];
for (let seed = from; seed < from + count; seed++)
  wrong.push(
    ...(await localDifferences(runtime, localProgram(new Random(seed)), RUNS, new Random(seed))),
  );
await runtime.engine.quiet();
report(runtime.rank, { wrong });
await runtime.close();
