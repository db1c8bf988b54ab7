// The central promise: for every program, machine and memory, the results are those of executing the tasks one by one.
// Exact values, native and JavaScript bodies mixed, control edges, priorities, device choices.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Runtime, RuntimeOptions } from '../../index.js';
import { taskId } from '../support/handles.js';
import { nothingLeft, onMachine, soon } from '../support/machines.js';
import {
  decode,
  insertProgram,
  largestTask,
  makeData,
  type Operation,
  type RawProgram,
  rawPrograms,
  serial,
} from '../support/random-programs.js';

const SEED = Number(process.env['HEADRACE_TEST_SEED'] ?? 20260101);
const FACTOR = Number(process.env['HEADRACE_TEST_FACTOR'] ?? 1);

interface Setting {
  readonly gpus: number;
  readonly workers: number;
  readonly window: number;
  readonly runAhead: number;
  /** Units of 512 bytes beyond what the largest task needs. */
  readonly spare: number;
  readonly inTurns: boolean;
  readonly streams: number;
  /** Freed memory is poisoned and invariants are checked; without, other paths and timings. */
  readonly checked: boolean;
  /** Id of the first task: ids wrap as int32. */
  readonly firstId: number;
}

const settings = (gpus: readonly number[]): fc.Arbitrary<Setting> =>
  fc.record({
    gpus: fc.constantFrom(...gpus),
    workers: fc.integer({ min: 1, max: 2 }),
    window: fc.constantFrom(4, 8, 64),
    runAhead: fc.constantFrom(1, 2, 16, 1024),
    spare: fc.constantFrom(0, 0, 1, 3, 20),
    inTurns: fc.boolean(),
    streams: fc.constantFrom(1, 1, 2, 3),
    checked: fc.constantFrom(true, true, false),
    firstId: fc.constantFrom(1, 2 ** 31 - 20, -20),
  });

function optionsOf(setting: Setting, bytes: number): RuntimeOptions {
  const { gpus, workers, window, runAhead, spare, checked, streams: computeStreams } = setting;
  const gpuMemory = bytes + spare * 512;
  return {
    gpus,
    workers,
    window,
    runAhead,
    gpuMemory,
    hostMemory: '4MiB',
    checked,
    computeStreams,
  };
}

/** A runtime that has run so many tasks already that the next one has this id. */
function age(runtime: Runtime, firstId: number): void {
  runtime.engine.tasks.head = taskId(firstId);
  runtime.engine.tasks.next = taskId(firstId);
}

/** With asynchronous bodies a program must leave room in the window, or wait for it. */
function pauses(
  graph: { space(): Promise<void> },
  inTurns: boolean,
  operations: readonly Operation[],
) {
  if (inTurns) return () => graph.space();
  return operations.some((op) => op.kind === 'slowMix') ? () => graph.space() : undefined;
}

async function check(program: RawProgram, setting: Setting): Promise<void> {
  const operations = decode(program);
  const expected = serial(program, operations);
  await onMachine(optionsOf(setting, largestTask(program, operations)), async (runtime) => {
    age(runtime, setting.firstId);
    const data = makeData(runtime, program);
    const reads = new Map<number, Promise<Float64Array>>();
    const run = runtime.run(async (graph) => {
      await insertProgram(
        graph,
        data,
        operations,
        setting.gpus,
        reads,
        pauses(graph, setting.inTurns, operations),
      );
    });
    await soon(runtime, run);
    for (const [number, value] of reads) {
      expect(await soon(runtime, value), `read ${number}`).toEqual(expected.reads.get(number));
    }
    for (let d = 0; d < data.length; d++) {
      const value = expected.values[d];
      if (value !== undefined) expect(await soon(runtime, data[d].read()), `d${d}`).toEqual(value);
    }
    await nothingLeft(runtime, data);
  });
}

describe('a random program gives the values of its serial execution', () => {
  it.each([
    ['on host workers', [0], 60],
    ['on one GPU with hardly any memory', [1], 80],
    ['on two GPUs with hardly any memory', [2], 100],
    ['on four GPUs with hardly any memory', [4], 60],
  ] as const)(
    '%s',
    async (_, gpus, runs) => {
      await fc.assert(
        fc.asyncProperty(rawPrograms(70), settings(gpus), (program, setting) =>
          check(program, setting),
        ),
        { numRuns: runs * FACTOR, seed: SEED, endOnFailure: false },
      );
    },
    60_000 * FACTOR,
  );
});

/**
 * The same with host memory for a part of the data only: the program then either gives the right values or is told
 * that host memory is full. It never hangs, and never computes anything else.
 */
async function checkScarce(program: RawProgram, setting: Setting, share: number): Promise<void> {
  const operations = decode(program);
  const expected = serial(program, operations);
  const largest = largestTask(program, operations);
  const whole = program.data.reduce((sum, d) => sum + d.units * 512, 0);
  const hostMemory = Math.max(largest, 512 * Math.ceil((whole * share) / 51200));
  const full = (error: { code: string }): undefined => {
    expect(['ERR_OUT_OF_HOST_MEMORY', 'ERR_DATUM_POISONED', 'ERR_NEVER_WRITTEN']).toContain(
      error.code,
    );
    return undefined;
  };
  await onMachine({ ...optionsOf(setting, largest), hostMemory }, async (runtime) => {
    let data: ReturnType<typeof makeData>;
    try {
      data = makeData(runtime, program);
    } catch (error) {
      full(error as { code: string });
      return;
    }
    const run = runtime.run(async (graph) => {
      await insertProgram(
        graph,
        data,
        operations,
        setting.gpus,
        new Map(),
        pauses(graph, setting.inTurns, operations),
      );
    });
    const report = await soon(runtime, run).catch(full);
    for (let d = 0; d < data.length; d++) {
      const value = expected.values[d];
      if (value === undefined) continue;
      const found = await soon(runtime, data[d].read()).catch(full);
      if (report !== undefined && found !== undefined) expect(found, `d${d}`).toEqual(value);
    }
    await nothingLeft(runtime, data);
  });
}

describe('a random program with scarce host memory gives the right values or reports full memory', () => {
  it.each([
    ['on host workers', [0], 40],
    ['on one GPU', [1], 60],
    ['on two GPUs', [2], 60],
  ] as const)(
    '%s',
    async (_, gpus, runs) => {
      await fc.assert(
        fc.asyncProperty(
          rawPrograms(50),
          settings(gpus),
          fc.integer({ min: 30, max: 130 }),
          (program, setting, share) => checkScarce(program, setting, share),
        ),
        { numRuns: runs * FACTOR, seed: SEED, endOnFailure: false },
      );
    },
    60_000 * FACTOR,
  );
});

/** How a run is made to fail. */
const breakages = fc.record({
  kind: fc.constantFrom('fail' as const, 'throw' as const, 'abort' as const),
  at: fc.nat({ max: 1000 }),
  delay: fc.nat({ max: 3 }),
});

/**
 * Runs a program that fails or is aborted; every datum must then have no readable value, or one it had at some point
 * of the serial execution. Then the program runs to its end on the same runtime.
 */
async function checkBroken(
  program: RawProgram,
  setting: Setting,
  breakage: {
    readonly kind: 'fail' | 'throw' | 'abort';
    readonly at: number;
    readonly delay: number;
  },
): Promise<void> {
  const operations = decode(program);
  if (operations.length === 0) return;
  const expected = serial(program, operations);
  const at = breakage.at % operations.length;
  const broken = operations.map(
    (op, i): Operation =>
      i === at && breakage.kind !== 'abort' && op.kind !== 'read' && op.kind !== 'set'
        ? { ...op, kind: breakage.kind, data: op.data.slice(0, 1), device: 0 }
        : op,
  );
  await onMachine(optionsOf(setting, largestTask(program, operations)), async (runtime) => {
    age(runtime, setting.firstId);
    const data = makeData(runtime, program);
    const reads = new Map<number, Promise<Float64Array>>();
    const run = runtime.run(async (graph) => {
      const pause = pauses(graph, setting.inTurns, operations);
      await insertProgram(graph, data, broken, setting.gpus, reads, (i) => {
        if (breakage.kind === 'abort' && i === at) setTimeout(() => run.cancel(), breakage.delay);
        return pause?.();
      });
    });
    await soon(runtime, run).then(
      () => {},
      (error: unknown) =>
        expect([
          'ERR_TASK_FAILED',
          'ERR_ABORTED',
          'ERR_NEVER_WRITTEN',
          'ERR_DATUM_POISONED',
        ]).toContain((error as { code: string }).code),
    );
    for (const value of reads.values()) await soon(runtime, value).catch(() => {});
    for (let d = 0; d < data.length; d++) {
      const value = await soon(runtime, data[d].read()).catch((error: { code: string }) => {
        expect(['ERR_DATUM_POISONED', 'ERR_NEVER_WRITTEN']).toContain(error.code);
        return undefined;
      });
      if (value === undefined) continue;
      const known = expected.history[d].some((old) => old.every((x, i) => x === value[i]));
      expect(known, `d${d} has a value it never had: ${value.slice(0, 3)}`).toBe(true);
    }
    // Once more, without the fault, on data made new by writing them.
    const again = makeData(runtime, program);
    await soon(
      runtime,
      runtime.run(async (graph) => {
        await insertProgram(
          graph,
          again,
          operations,
          setting.gpus,
          new Map(),
          pauses(graph, setting.inTurns, operations),
        );
      }),
    );
    for (let d = 0; d < again.length; d++) {
      const value = expected.values[d];
      if (value !== undefined) expect(await soon(runtime, again[d].read()), `d${d}`).toEqual(value);
    }
    await nothingLeft(runtime, [...data, ...again]);
  });
}

describe('a random program that fails or is aborted leaves every datum whole or unreadable, and the runtime usable', () => {
  it.each([
    ['on host workers', [0], 60],
    ['on one GPU with hardly any memory', [1], 60],
    ['on two GPUs with hardly any memory', [2], 60],
  ] as const)(
    '%s',
    async (_, gpus, runs) => {
      await fc.assert(
        fc.asyncProperty(rawPrograms(50), settings(gpus), breakages, (program, setting, breakage) =>
          checkBroken(program, setting, breakage),
        ),
        { numRuns: runs * FACTOR, seed: SEED, endOnFailure: false },
      );
    },
    60_000 * FACTOR,
  );
});
