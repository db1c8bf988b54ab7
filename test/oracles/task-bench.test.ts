// Oracle "Task Bench": all eleven patterns; every consumer checks every pair of every input, and an epoch in the
// pairs makes a second run over the same data fail on anything stale.
import { describe, expect, it } from 'vitest';
import {
  TASK_BENCH_PATTERNS,
  type TaskBenchShape,
  taskBench,
  taskBenchColumns,
  taskBenchInputs,
} from '../../algorithms/index.js';
import type { Datum, Runtime } from '../../index.js';
import { GPUS, HOSTS, MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';

const WIDTH = 13;
const STEPS = 24;
/** Elements of an output: eight pairs. */
const LENGTH = 32;
const FIELDS = 2;

function makeOutputs(
  runtime: Runtime,
  width: number,
  fields: number,
  gpus: number,
): Datum<'i32'>[][] {
  return Array.from({ length: fields }, (_, f) =>
    Array.from({ length: width }, (_, p) =>
      runtime.data('i32', LENGTH, {
        name: `output ${f}/${p}`,
        ...(gpus > 0 ? { device: p % gpus } : {}),
      }),
    ),
  );
}

/** What the outputs hold when all tasks have run: the pair of the last task that wrote each. */
function lastPairs(shape: TaskBenchShape, fields: number): Map<string, readonly [number, number]> {
  const last = new Map<string, readonly [number, number]>();
  for (let t = 0; t < shape.steps; t++) {
    const { first, count } = taskBenchColumns(shape, t);
    for (let p = first; p < first + count; p++) last.set(`${t % fields}/${p}`, [t, p]);
  }
  return last;
}

async function runEpochs(
  runtime: Runtime,
  shape: TaskBenchShape,
  gpus: number,
  script: boolean,
): Promise<void> {
  const outputs = makeOutputs(runtime, shape.width, FIELDS, gpus);
  const pairs = lastPairs(shape, FIELDS);
  for (const epoch of [1, 2]) {
    let inserted = 0;
    const report = await soon(
      runtime,
      runtime.run((graph) => {
        inserted = taskBench(graph, shape, outputs, { epoch, script });
      }),
    );
    expect(report.tasks).toBe(inserted);
    for (const [key, [t, p]] of pairs) {
      const [f, column] = key.split('/').map(Number);
      const values = await outputs[f][column].read();
      for (let at = 0; at < LENGTH; at += 4) {
        expect([...values.subarray(at, at + 4)], key).toEqual([t, epoch, p, 0]);
      }
    }
  }
  await nothingLeft(runtime, outputs.flat());
}

describe.each(MACHINES)('native kernel on $name', ({ options, gpus }) => {
  it.each(TASK_BENCH_PATTERNS)('%s', async (pattern) => {
    // Room for 16 outputs: all_to_all needs 14 at once.
    const tight = { ...options, gpuMemory: 16 * 512, window: 64 };
    await onMachine(tight, (runtime) =>
      runEpochs(runtime, { pattern, width: WIDTH, steps: STEPS }, gpus, false),
    );
  });
});

describe.each(HOSTS)('JavaScript bodies on $name', ({ options }) => {
  it.each(TASK_BENCH_PATTERNS)('%s', async (pattern) => {
    await onMachine(options, (runtime) =>
      runEpochs(runtime, { pattern, width: WIDTH, steps: STEPS }, 0, true),
    );
  });
});

describe('the check itself', () => {
  it.each([...HOSTS, ...GPUS])('finds a wrong input on $name', async ({ options, gpus }) => {
    await onMachine(options, async (runtime) => {
      const outputs = makeOutputs(runtime, WIDTH, FIELDS, gpus);
      // Columns 3 and 4 share an output: what column 3 wrote is overwritten before it is read.
      outputs[0][3] = outputs[0][4];
      const shape = { pattern: 'no_comm', width: WIDTH, steps: 2 } as const;
      const run = runtime.run((graph) => void taskBench(graph, shape, outputs, { epoch: 5 }));
      await expect(soon(runtime, run)).rejects.toMatchObject({
        code: 'ERR_TASK_BENCH_MISMATCH',
        message: expect.stringContaining(
          'task (1, 3) of epoch 5 did not find the output of task (0, 3) in its input 0',
        ),
        details: { kernelCode: 1 },
      });
    });
  });

  it('finds a stale epoch', async () => {
    await onMachine(HOSTS[0].options, async (runtime) => {
      const outputs = makeOutputs(runtime, WIDTH, FIELDS, 0);
      const shape = { pattern: 'stencil_1d', width: WIDTH, steps: 3 } as const;
      for (const script of [false, true]) {
        await soon(
          runtime,
          runtime.run((graph) => void taskBench(graph, shape, outputs, { epoch: 1, script })),
        );
        // Step 0 goes elsewhere in the second epoch, so step 1 sees the first epoch's.
        const elsewhere = makeOutputs(runtime, WIDTH, FIELDS, 0);
        const mixed = runtime.run((graph) => {
          taskBench(graph, { ...shape, steps: 1 }, elsewhere, { epoch: 2, script });
          const late = { ...shape, steps: 2 };
          taskBench(
            Object.assign(Object.create(graph) as typeof graph, {
              insert: (...args: Parameters<typeof graph.insert>) =>
                (args[1] as unknown as { t: number }).t === 0 ? 0 : graph.insert(...args),
            }),
            late,
            outputs,
            { epoch: 2, script },
          );
        });
        await expect(soon(runtime, mixed)).rejects.toMatchObject({
          code: 'ERR_TASK_BENCH_MISMATCH',
        });
      }
    });
  });

  it('refuses outputs that do not fit', async () => {
    await onMachine(HOSTS[0].options, async (runtime) => {
      const outputs = makeOutputs(runtime, 4, 1, 0);
      const run = runtime.run(
        (graph) => void taskBench(graph, { pattern: 'trivial', width: 4, steps: 1 }, outputs),
      );
      await expect(run).rejects.toMatchObject({ code: 'ERR_SHAPE' });
    });
  });
});

describe('patterns', () => {
  const inputs = (
    shape: Partial<TaskBenchShape> & Pick<TaskBenchShape, 'pattern'>,
    t: number,
    p: number,
  ): number[] => taskBenchInputs({ width: 8, steps: 20, ...shape }, t, p);

  it('are those of the paper', () => {
    expect(inputs({ pattern: 'trivial' }, 5, 3)).toEqual([]);
    expect(inputs({ pattern: 'no_comm' }, 5, 3)).toEqual([3]);
    expect(inputs({ pattern: 'stencil_1d' }, 5, 0)).toEqual([0, 1]);
    expect(inputs({ pattern: 'stencil_1d' }, 5, 7)).toEqual([6, 7]);
    expect(inputs({ pattern: 'stencil_1d_periodic' }, 5, 0).sort()).toEqual([0, 1, 7]);
    expect(inputs({ pattern: 'stencil_1d_periodic', width: 2 }, 5, 0).sort()).toEqual([0, 1]);
    expect(inputs({ pattern: 'dom' }, 5, 3)).toEqual([2, 3]);
    expect(inputs({ pattern: 'tree' }, 5, 7)).toEqual([3]);
    expect(inputs({ pattern: 'fft' }, 1, 2)).toEqual([1, 2, 3]);
    expect(inputs({ pattern: 'fft' }, 2, 2)).toEqual([0, 2, 4]);
    expect(inputs({ pattern: 'fft' }, 3, 2)).toEqual([2, 6]);
    expect(inputs({ pattern: 'fft' }, 4, 2)).toEqual([1, 2, 3]);
    expect(inputs({ pattern: 'all_to_all' }, 5, 3)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(inputs({ pattern: 'nearest', radix: 5 }, 5, 4)).toEqual([2, 3, 4, 5, 6]);
    expect(inputs({ pattern: 'nearest', radix: 4 }, 5, 4)).toEqual([2, 3, 4, 5]);
    expect(inputs({ pattern: 'nearest', radix: 0 }, 5, 4)).toEqual([]);
    expect(inputs({ pattern: 'spread', radix: 2, period: 3 }, 4, 1)).toEqual([1, 6]);
    const some = inputs({ pattern: 'random_nearest', radix: 7 }, 5, 4);
    expect(some).toContain(4);
    expect(some.every((q) => q >= 1 && q <= 7)).toBe(true);
    expect(inputs({ pattern: 'random_nearest', radix: 7 }, 5, 4)).toEqual(some);
    expect(inputs({ pattern: 'random_nearest', radix: 7 }, 8, 4)).toEqual(some);
  });

  it('read no task that does not exist: the first step reads nothing, trees and diamonds grow', () => {
    for (const pattern of TASK_BENCH_PATTERNS) {
      const shape = { pattern, width: 8, steps: 20 } as const;
      for (let t = 0; t < shape.steps; t++) {
        const { first, count } = taskBenchColumns(shape, t);
        const before = taskBenchColumns(shape, t - 1);
        for (let p = first; p < first + count; p++) {
          const columns = taskBenchInputs(shape, t, p);
          if (t === 0) expect(columns).toEqual([]);
          expect(new Set(columns).size).toBe(columns.length);
          for (const q of columns) {
            expect(q >= before.first && q < before.first + before.count).toBe(true);
          }
        }
      }
    }
    const widths = (pattern: 'tree' | 'dom'): number[] =>
      [0, 1, 2, 3, 4].map((t) => taskBenchColumns({ pattern, width: 8, steps: 5 }, t).count);
    expect(widths('tree')).toEqual([1, 2, 4, 8, 8]);
    expect(widths('dom')).toEqual([1, 2, 3, 2, 1]);
  });
});
