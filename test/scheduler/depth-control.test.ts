// Run-ahead depth: two milliseconds of work per queue, but at least three commands and at most the configured number.

import { describe, expect, it } from 'vitest';
import { Submission } from '../../devices/submission.js';
import { DepthControl } from '../../scheduler/engine/depth.js';
import { queueId } from '../support/handles.js';
import { ManualBackend } from '../support/manual-backend.js';

function control(maximum: number): {
  depth: Int32Array;
  submission: Submission;
  control: DepthControl;
} {
  const backend = new ManualBackend(2, 0);
  const depth = new Int32Array(2);
  const submission = new Submission(backend.port);
  // There is always more under way.
  submission.outstanding.fill(100);
  return { depth, submission, control: new DepthControl(submission, { depth }, maximum) };
}

/** Tells the control of `n` completions each `nanoseconds`, some at a time. */
function feed(c: DepthControl, queue: number, nanoseconds: number, n: number, batch = 16): void {
  let now = 1e9;
  c.completed(queueId(queue), 1, now);
  for (let i = 0; i < n; i += batch) {
    now += batch * nanoseconds;
    c.completed(queueId(queue), batch, now);
  }
}

describe('depth control', () => {
  it('starts small and within the maximum', () => {
    expect([...control(1024).depth]).toEqual([16, 16]);
    expect([...control(4).depth]).toEqual([4, 4]);
  });

  it('queues microsecond tasks by the hundred and millisecond tasks by threes', () => {
    const { depth, control: c } = control(1024);
    feed(c, 0, 5_000, 2000);
    feed(c, 1, 3e6, 40, 1);
    expect(depth[0]).toBeGreaterThanOrEqual(380);
    expect(depth[0]).toBeLessThanOrEqual(420);
    expect(depth[1]).toBe(3);
  });

  it('never leaves its limits', () => {
    for (const maximum of [4, 1024]) {
      const { depth, control: c } = control(maximum);
      feed(c, 0, 10, 5000);
      expect(depth[0]).toBe(maximum);
      feed(c, 0, 1e9, 40, 1);
      expect(depth[0]).toBe(3);
    }
  });

  it('does not take idle time for long tasks', () => {
    const { depth, submission, control: c } = control(1024);
    let now = 1e9;
    for (let i = 0; i < 200; i++) c.completed(queueId(0), 16, (now += 16 * 4_000));
    const before = depth[0];
    // The queue runs dry, and is given one task a long time later.
    submission.outstanding[0] = 0;
    c.completed(queueId(0), 16, (now += 16 * 4_000));
    c.completed(queueId(0), 1, (now += 1e9));
    expect(depth[0]).toBeGreaterThanOrEqual(before);
  });

  it('takes the first commands it sees as they are', () => {
    const { depth, control: c } = control(1024);
    c.completed(queueId(0), 1, 1e9);
    c.completed(queueId(0), 1, 1e9 + 100_000);
    expect(depth[0]).toBe(20);
  });

  it('knows whether commands are short on average, once it has seen some', () => {
    const { control: c } = control(1024);
    expect(c.isShort(queueId(0), 1e9)).toBe(false);
    feed(c, 0, 5_000, 2000);
    expect([
      c.isShort(queueId(0), 5_100),
      c.isShort(queueId(0), 4_900),
      c.isShort(queueId(1), 5_100),
    ]).toEqual([true, false, false]);
  });

  it('ignores steps without a change of time', () => {
    const { depth, control: c } = control(64);
    for (let i = 0; i < 10; i++) c.completed(queueId(0), 5, 1e9);
    c.completed(queueId(0), 0, 2e9);
    expect(depth[0]).toBe(16);
  });
});
