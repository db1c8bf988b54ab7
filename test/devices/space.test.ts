// The two rules of a memory space for waiting tasks: when its line is served again, and for which task it is emptied.

import { describe, expect, it } from 'vitest';
import { datumId, taskId } from '../support/handles.js';
import { Bench, GPU } from '../support/stage-bench.js';

describe('the line of a space is served again', () => {
  it('after the last pin of a copy returned, and only until it was served', () => {
    const { gpu, ...bench } = withGpu();
    const d = bench.clean();
    gpu.beginServing();
    gpu.pin(datumId(d));
    gpu.pin(datumId(d));
    gpu.unpin(datumId(d));
    expect(gpu.mustServeLine).toBe(false);
    gpu.unpin(datumId(d));
    expect(gpu.mustServeLine).toBe(true);
    gpu.beginServing();
    expect(gpu.mustServeLine).toBe(false);
  });

  it('not when blocks come back that were never used, unless it had to be before', () => {
    for (const before of [false, true]) {
      const { gpu, ...bench } = withGpu();
      const d = bench.clean();
      gpu.pin(datumId(d));
      gpu.beginServing();
      if (before) gpu.wakeLine();
      const poisoned: number[] = [];
      gpu.onDrop = (datum) => poisoned.push(datum) > 0;
      const { onDrop } = gpu;
      gpu.returnUnused(() => {
        gpu.unpin(datumId(d));
        gpu.drop(datumId(d));
      });
      expect([gpu.mustServeLine, poisoned, gpu.onDrop]).toEqual([before, [], onDrop]);
    }
  });
});

describe('a space is emptied for a task', () => {
  it('until this task is served; the end of another changes nothing', () => {
    const { gpu } = withGpu();
    expect(gpu.isCompactingFor(taskId(0))).toBe(false);
    gpu.beginCompaction(taskId(0));
    gpu.endCompaction(taskId(7));
    expect([gpu.isCompactingFor(taskId(0)), gpu.isCompactingFor(taskId(7))]).toEqual([true, false]);
    gpu.endCompaction(taskId(0));
    expect(gpu.isCompactingFor(taskId(0))).toBe(false);
  });
});

function withGpu(): { gpu: Bench['gpu']; clean: () => number } {
  const bench = new Bench(10, 100);
  return { gpu: bench.spaces[GPU], clean: () => bench.clean(1) };
}
