// Guards that only real ranks need: with each the promise holds; without it a test detects the damage.
import { describe, expect, test } from 'vitest';
import type { Guards } from '../../devices/guards.js';
import { needing, ranks } from '../support/needs.js';
import { mpirun } from './mpirun.js';

interface Seen {
  readonly time?: number;
  readonly most?: number;
  readonly code?: string;
}

async function seen(what: string, off?: keyof Guards): Promise<readonly Seen[]> {
  const run = await mpirun(2, 'guards.mjs', {
    args: [JSON.stringify({ what, off })],
  });
  expect(run.code, run.output).toBe(0);
  expect(run.reports, run.output).toHaveLength(2);
  return run.reports as unknown as Seen[];
}

describe('two ranks', needing(ranks), () => {
  test.each([
    [undefined, true],
    ['afterTokens', false],
  ] as const)('without %s: a task follows one of the other rank: %s', async (off, follows) => {
    const [before, after] = await seen('after', off);
    expect(Number(after?.time) > Number(before?.time)).toBe(follows);
  });

  test.each([
    [undefined, true],
    ['pullShare', false],
  ] as const)('without %s: pulled inputs keep to their share: %s', async (off, keeps) => {
    const reports = await seen('pull', off);
    const most = Math.max(...reports.map((each) => Number(each.most)));
    expect(most).toBeGreaterThan(0);
    expect(most <= 1).toBe(keeps);
  });

  test.each([
    [undefined, 'ERR_GRAPH_MISMATCH'],
    ['graphDigest', 'none'],
  ] as const)('without %s: programs that differ end with %s', async (off, code) => {
    for (const each of await seen('digest', off)) expect(each.code).toBe(code);
  });

  test.each([
    [undefined, 'ERR_PROGRAM_MISMATCH'],
    ['callOrder', 'none'],
  ] as const)('without %s: calls that differ end with %s', async (off, code) => {
    for (const each of await seen('calls', off)) expect(each.code).toBe(code);
  });
});
