// Oracles as parameterised graphs on several ranks, pruned and not: every rank runs this program, and reports each oracle.

import { Runtime } from '../../../dist/index.js';
import { graphOracles } from '../../../dist/test/support/graph-oracles/all.js';
import { report } from './report.mjs';

const runtime = await Runtime.create({ workers: 1, gpus: 2, hostMemory: '64MiB', checked: true });
for (const pruned of [false, true])
  for (const [name, oracle] of Object.entries(graphOracles)) {
    let problems;
    try {
      problems = await oracle(runtime, { pruned });
    } catch (error) {
      problems = [`${error.code}: ${error.message}`];
    }
    await runtime.engine.quiet();
    const used = runtime.memory().reduce((sum, device) => sum + device.used + device.pinned, 0);
    report(runtime.rank, { name, pruned, problems, used });
  }
await runtime.close();
