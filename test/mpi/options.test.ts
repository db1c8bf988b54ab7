// Options that must be the same on all ranks: every rank gets an error that names the option, and can open another runtime.
import { describe, expect, test } from 'vitest';
import { LIBRARIES, layers, needing } from '../support/needs.js';
import { mpirun } from './mpirun.js';

describe.each(LIBRARIES)('options of the ranks over %s', (library) => {
  test.each([
    ['treeFrom', [{ treeFrom: 2 }, {}], '`treeFrom` is 2 on rank 0 and 4 on rank 1'],
    ['inlineBytes', [{}, { inlineBytes: 64 }], '`inlineBytes` is 4096 on rank 0 and 64 on rank 1'],
    ['nothing', [{ window: 64 }, { runAhead: 4, plans: 'off' }], ''],
  ])('that differ in %s', needing(layers[library]), async (_, options, message) => {
    const run = await mpirun(3, 'options.mjs', { library, args: [JSON.stringify(options)] });
    expect(run.code, run.output).toBe(0);
    expect(run.reports, run.output).toHaveLength(3);
    for (const report of run.reports) {
      expect(report['code'], run.output).toBe(message === '' ? '' : 'ERR_OPTION');
      expect(report['message']).toContain(message);
    }
  });
});
