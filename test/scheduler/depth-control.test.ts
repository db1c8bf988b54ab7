// Run-ahead depth: two milliseconds of work per queue, but at least three commands and at most the configured number.

import { describe, expect, it } from 'vitest';
import { Submission } from '../../devices/submission.js';
import { DepthControl } from '../../scheduler/engine/depth.js';
import { queueId } from '../support/handles.js';
import { ManualBackend } from '../support/manual-backend.js';

interface Setup {
  depth: Int32Array;
  control: DepthControl;
  /** The queue completes `n` commands after that many nanoseconds of work. */
  work: (queue: number, nanoseconds: number, n: number) => void;
}

function setUp(maximum: number): Setup {
  const backend = new ManualBackend(2, 0);
  const worked = [0, 0];
  const port = Object.assign(backend.port, { busy: (q: number) => worked[q] });
  const depth = new Int32Array(2);
  const control = new DepthControl(new Submission(port), { depth }, maximum);
  const work = (queue: number, nanoseconds: number, n: number): void => {
    worked[queue] += nanoseconds;
    control.completed(queueId(queue), n);
  };
  return { depth, control, work };
}

/** The queue completes `n` commands of `nanoseconds` each, some at a time. */
function feed({ work }: Setup, queue: number, nanoseconds: number, n: number, batch = 16): void {
  for (let i = 0; i < n; i += batch) work(queue, batch * nanoseconds, batch);
}

describe('depth control', () => {
  it('starts small and within the maximum', () => {
    expect([...setUp(1024).depth]).toEqual([16, 16]);
    expect([...setUp(4).depth]).toEqual([4, 4]);
  });

  it('queues microsecond tasks by the hundred and millisecond tasks by threes', () => {
    const c = setUp(1024);
    feed(c, 0, 5_000, 2000);
    feed(c, 1, 3e6, 40, 1);
    expect(c.depth[0]).toBeGreaterThanOrEqual(380);
    expect(c.depth[0]).toBeLessThanOrEqual(420);
    expect(c.depth[1]).toBe(3);
  });

  it('never leaves its limits', () => {
    for (const maximum of [4, 1024]) {
      const c = setUp(maximum);
      feed(c, 0, 10, 5000);
      expect(c.depth[0]).toBe(maximum);
      feed(c, 0, 1e9, 100, 1);
      expect(c.depth[0]).toBe(3);
    }
  });

  it('one long command among short ones does not rule', () => {
    const c = setUp(1024);
    feed(c, 0, 2_000, 2000);
    const before = c.depth[0];
    c.work(0, 100e6, 1);
    expect(c.depth[0]).toBeGreaterThan(before / 5);
    expect(c.depth[0]).toBeLessThan(before);
    feed(c, 0, 2_000, 64);
    expect(c.depth[0]).toBeGreaterThan(0.8 * before);
  });

  it('short commands between long ones do not hide them', () => {
    const c = setUp(1024);
    for (let i = 0; i < 100; i++) {
      c.work(0, 1_000, 1);
      c.work(0, 10e6, 1);
    }
    expect(c.depth[0]).toBe(3);
    expect(c.control.isShort(queueId(0), 100_000)).toBe(false);
  });

  it('takes the first commands it sees as they are', () => {
    const { depth, work } = setUp(1024);
    work(0, 100_000, 1);
    expect(depth[0]).toBe(20);
  });

  it('knows whether commands are short on average, once it has seen some', () => {
    const c = setUp(1024);
    expect(c.control.isShort(queueId(0), 1e9)).toBe(false);
    feed(c, 0, 5_000, 2000);
    expect([
      c.control.isShort(queueId(0), 5_100),
      c.control.isShort(queueId(0), 4_900),
      c.control.isShort(queueId(1), 5_100),
    ]).toEqual([true, false, false]);
  });

  it('ignores commands without work, and looks without commands', () => {
    const { depth, work } = setUp(64);
    work(0, 0, 5);
    work(0, 1e9, 0);
    expect(depth[0]).toBe(16);
  });
});
