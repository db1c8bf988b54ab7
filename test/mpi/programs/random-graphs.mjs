// Random parameterised graphs on several ranks, pruned and not: every rank runs this program. Arguments: the first seed and their number.

import { differencesOnRanks } from '../../../dist/devices/simulated/cases/random-graphs.js';
import { Runtime } from '../../../dist/index.js';
import { report } from './report.mjs';

const [from, count] = process.argv.slice(2).map(Number);
const runtime = await Runtime.create({ workers: 1, hostMemory: '64MiB', checked: true });
const wrong = [];
for (let seed = from; seed < from + count; seed++)
  wrong.push(...(await differencesOnRanks(runtime, seed, [false, true, true], () => true)));
await runtime.engine.quiet();
report(runtime.rank, { wrong, used: runtime.memory().map(({ used }) => used) });
await runtime.close();
