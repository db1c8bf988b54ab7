// Bodies that insert tasks on several ranks, and windows full of asynchronous bodies: the behaviour is that of one rank.
import { describe, expect, test } from 'vitest';
import { needing, ranks } from '../support/needs.js';
import { mpirun, type RankResult } from './mpirun.js';

const grow = (what: string, overflow: number = 2 ** 20): Promise<RankResult> =>
  mpirun(2, 'growth.mjs', { args: [JSON.stringify({ what, overflow })], seconds: 60 });

describe('two ranks', needing(ranks), () => {
  test('a loop fills the window with asynchronous bodies, and goes on', async () => {
    const run = await grow('full');
    expect(run.code, run.output).toBe(0);
    expect(run.reports, run.output).toMatchObject([{ ran: 100 }, { ran: 100 }]);
  });

  test('a loop fills the window with tasks that wait for asynchronous bodies of both ranks, and goes on', async () => {
    const run = await grow('turns');
    expect(run.code, run.output).toBe(0);
    const values = [true, true, true, true];
    expect(run.reports, run.output).toMatchObject([{ values }, { values }]);
  });

  test('without room for them the error of the loop advises to await space', async () => {
    const run = await grow('full', 20);
    expect(run.code, run.output).toBe(0);
    expect(run.reports, run.output).toHaveLength(2);
    const codes = run.reports.map(({ code }) => code);
    expect(codes).toContain('ERR_WINDOW_FULL');
    for (const code of codes) expect(['ERR_WINDOW_FULL', 'ERR_PEER_FAILED']).toContain(code);
    const own = run.reports.find(({ code }) => code === 'ERR_WINDOW_FULL');
    expect(own?.['message']).toMatch(
      /the program cannot insert a task of class 'slow': the window of 16 tasks and its overflow of 20 are full/,
    );
  });

  test('trees grow on every rank while data travel', async () => {
    const run = await grow('tree');
    expect(run.code, run.output).toBe(0);
    const each = { ran: 2 ** 12 - 1, values: [true, true] };
    expect(run.reports, run.output).toMatchObject([each, each]);
  });

  test('parents await tasks that they insert behind an await, while all ranks insert', async () => {
    const run = await grow('parents');
    expect(run.code, run.output).toBe(0);
    expect(run.reports, run.output).toMatchObject([{ values: [255, 255] }, { values: [255, 255] }]);
  });
});
