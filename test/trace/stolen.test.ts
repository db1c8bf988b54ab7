// Stolen time: the summary of times at which a thread wanted to run and had no core. Hand-made traces with known
// answers, and one real run with more busy threads than cores.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Runtime } from '../../index.js';
import {
  cropToRuns,
  cropTrace,
  EventKind,
  type IdleReason,
  idleAdvice,
  loadTrace,
  NO_INDEX,
  NONE,
  reasonText,
  summarize,
  summaryText,
  type TraceHeader,
  type TraceRecorder,
  type TraceSummary,
  TransferKind,
  TransferReason,
} from '../../trace/index.js';
import { soon } from '../support/machines.js';
import { spin } from '../support/tasks.js';
import { record, task, testHeader, traced } from './support.js';

/** Engine and lanes of the header in support.ts. */
const ENGINE = NO_INDEX;
const GPU = 2;
const H2D = 3;

const ORIGIN = 1000;
function stolen(recorder: TraceRecorder, lane: number, from: number, to: number): void {
  recorder.stolen(lane, ORIGIN + from, ORIGIN + to);
}

/** The summary of a lane, its idle time without the reasons that are 0. */
function laneOf(summary: TraceSummary, name: string) {
  const lane = summary.lanes.find((each) => each.lane === name)!;
  const idle = Object.fromEntries(Object.entries(lane.idle).filter(([, value]) => value > 0));
  return { busy: lane.busy, stretched: lane.stretched, idle };
}

function adviceFor(summary: TraceSummary, reason: IdleReason): string {
  return summary.advice.find((each) => each.reason === reason)!.text;
}

/** A copy of 256 bytes to the GPU, or from `source`, for a task. */
function copyIn(recorder: TraceRecorder, id: number, issued: number, start: number, end: number) {
  recorder.transfer({
    kind: TransferKind.h2d,
    reason: TransferReason.stageIn,
    lane: H2D,
    source: 0,
    destination: 1,
    task: id,
    datum: NONE,
    version: 0,
    peer: -1,
    message: NONE,
    bytes: 256,
    issued: ORIGIN + issued,
    start: ORIGIN + start,
    end: ORIGIN + end,
  });
}

describe('idle time', () => {
  test('between issue and start: stolen while the lane or the engine had no core, else scheduling', () => {
    const summary = summarize(
      traced((recorder) => {
        task(recorder, 1, 0, { start: 0, end: 10 });
        task(recorder, 2, 0, { issued: 12, start: 100, end: 110 });
        stolen(recorder, 0, 20, 60);
        stolen(recorder, ENGINE, 50, 70);
        // Another worker's thread is of no account here.
        stolen(recorder, 1, 70, 100);
      }),
    );
    expect(laneOf(summary, 'worker 0')).toEqual({
      busy: 20,
      stretched: 0,
      idle: { stolen: 50, scheduler: 40 },
    });
  });

  test('before insertion and until a task is known to be ready: only the engine counts', () => {
    const summary = summarize(
      traced((recorder) => {
        task(recorder, 1, 0, { start: 0, end: 10 });
        task(recorder, 2, 0, { inserted: 40, ready: 80, start: 80, end: 90 });
        stolen(recorder, ENGINE, 20, 30);
        stolen(recorder, ENGINE, 60, 75);
        stolen(recorder, 0, 10, 80);
      }),
    );
    expect(laneOf(summary, 'worker 0').idle).toEqual({ submission: 20, noTask: 25, stolen: 25 });
  });

  test('while a predecessor was under way: stolen if the predecessor stood still', () => {
    const summary = summarize(
      traced((recorder) => {
        task(recorder, 1, 0, { start: 0, end: 100 });
        recorder.dependency(2, 1);
        task(recorder, 2, 1, { ready: 100, start: 100, end: 110 }, { releasedBy: 1 });
        stolen(recorder, 0, 30, 70);
        // The thread that waits needs no core, nor does the engine.
        stolen(recorder, 1, 0, 30);
        stolen(recorder, ENGINE, 0, 30);
      }),
    );
    expect(laneOf(summary, 'worker 1').idle).toEqual({ noTask: 60, stolen: 40 });
    expect(laneOf(summary, 'worker 0')).toMatchObject({ busy: 100, stretched: 40 });
  });

  function copied(kind: string) {
    const header = testHeader();
    const spaces = header.spaces.map((space, s) => (s === 0 ? space : { ...space, kind }));
    return summarize(
      traced(
        (recorder) => {
          task(recorder, 1, GPU, { stageIn: 90, start: 90, end: 100 }, { device: 1 });
          copyIn(recorder, 1, 0, 40, 90);
          // One thread serves all lanes of a GPU.
          stolen(recorder, GPU, 10, 30);
          stolen(recorder, ENGINE, 35, 45);
          stolen(recorder, H2D, 60, 80);
        },
        { ...header, spaces },
      ),
    );
  }

  test('before a copy starts engine and GPU thread count, while it is under way the thread that copies', () => {
    expect(laneOf(copied('emulated'), 'gpu 0 compute').idle).toEqual({ h2d: 45, stolen: 45 });
  });

  test('a real GPU copies without its thread', () => {
    expect(laneOf(copied('cuda'), 'gpu 0 compute').idle).toEqual({ h2d: 65, stolen: 25 });
  });
});

test('kernels are stretched by their own thread, on real GPUs by none; spans may overlap and come in any order', () => {
  const write = (recorder: TraceRecorder): void => {
    task(recorder, 1, 0, { start: 0, end: 100 });
    task(recorder, 2, GPU, { start: 0, end: 100 }, { device: 1 });
    stolen(recorder, 0, 60, 90);
    stolen(recorder, 0, 10, 40);
    stolen(recorder, 0, 30, 70);
    stolen(recorder, GPU, 20, 30);
  };
  const emulated = summarize(traced(write));
  expect(laneOf(emulated, 'worker 0')).toEqual({ busy: 100, stretched: 80, idle: {} });
  expect(laneOf(emulated, 'gpu 0 compute').stretched).toBe(10);
  expect(emulated.stretched).toBe(90);
  const header = testHeader();
  const spaces = header.spaces.map((space, s) => (s === 0 ? space : { ...space, kind: 'cuda' }));
  expect(laneOf(summarize(traced(write, { ...header, spaces })), 'gpu 0 compute').stretched).toBe(
    0,
  );
});

test('a part of a trace has the part of the spans, and clocks of ranks move them', () => {
  const whole = traced((recorder) => {
    task(recorder, 1, 0, { start: 0, end: 100 });
    task(recorder, 2, 0, { inserted: 100, start: 100, end: 200 });
    stolen(recorder, 0, 50, 150);
    stolen(recorder, ENGINE, 10, 20);
  });
  const part = cropTrace(whole, 100, 200);
  expect([part.stolen.count, part.stolen.from[0], part.stolen.to[0]]).toEqual([1, 100, 150]);
  expect(laneOf(summarize(part), 'worker 0')).toMatchObject({ busy: 100, stretched: 50 });

  const ranks = [0, 1].map((rank) =>
    record(
      (recorder) => {
        // Rank 1's clock is 300 behind.
        if (rank === 1) recorder.clock(0, ORIGIN, 300, 0);
        task(recorder, 1, 0, { start: 0, end: 100 });
        stolen(recorder, 0, 20, 30);
      },
      testHeader({ rank, ranks: 2 }),
    ),
  );
  const merged = loadTrace(ranks);
  expect([...merged.stolen.from].map((time) => time - merged.stolen.from[0])).toEqual([0, 300]);
});

describe('advice', () => {
  /** Two tasks of `kernel` ns on one worker with a gap of 400 000 ns, the last `missing` of them without a core. */
  const gap = (kernel: number, missing: number, header: Partial<TraceHeader> = {}): TraceSummary =>
    summarize(
      traced((recorder) => {
        task(recorder, 1, 0, { start: 0, end: kernel });
        task(recorder, 2, 0, { start: kernel + 400_000, end: 2 * kernel + 400_000 });
        if (missing > 0) stolen(recorder, 0, kernel + 400_000 - missing, kernel + 400_000);
      }, testHeader(header)),
    );

  test('short tasks are called too short, long ones are not', () => {
    expect(adviceFor(gap(5000, 0), 'scheduler')).toBe(idleAdvice.scheduler.advice);
    const long = summaryText(gap(142_000, 0));
    expect(long).toContain(`${reasonText('scheduler')}: tasks are long enough (142 us on average)`);
    expect(long).not.toContain('too short');
  });

  test('stolen time names threads, cores, and how many workers fit', () => {
    // Two workers, one GPU, the engine and the network of the header in support.ts; the second GPU has no lane to run on.
    const summary = gap(142_000, 400_000, { cores: 4 });
    expect(adviceFor(summary, 'stolen')).toBe(
      '5 threads (2 workers, 1 GPU, the engine, the network) share 4 cores: use fewer workers (workers: 1)',
    );
    const text = summaryText(summary);
    expect(text).toContain(`${reasonText('stolen')}: 5 threads`);
    expect(text).not.toContain('too short');
    expect(adviceFor(gap(142_000, 400_000, { cores: 8 }), 'stolen')).toContain('other programs');
    expect(adviceFor(gap(142_000, 400_000), 'stolen')).toBe(idleAdvice.stolen.advice);
  });

  test('a wait for copies that hardly copied is not blamed on the copies', () => {
    const waited = (start: number): string =>
      adviceFor(
        summarize(
          traced((recorder) => {
            task(recorder, 1, GPU, { stageIn: 1000, start: 1000, end: 1100 }, { device: 1 });
            copyIn(recorder, 1, 0, start, 1000);
          }),
        ),
        'h2d',
      );
    expect(waited(0)).toBe(idleAdvice.h2d.advice);
    expect(waited(996)).toContain('the copies themselves took 4.00 ns only');
  });
});

describe('a real run with more busy threads than cores', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'headrace-stolen-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  // Where the kernel does not count the time on run queues, there is nothing to record.
  const counted = existsSync('/proc/thread-self/schedstat');

  test.skipIf(!counted)(
    'names the reason, and does not call tasks of 400 us too short',
    async () => {
      const file = path.join(folder, 'run.hrtrace');
      const workers = 3 * availableParallelism();
      const runtime = await Runtime.create({ workers, trace: file });
      try {
        const run = runtime.run((graph) => {
          for (let i = 0; i < 200 * workers; i++) graph.insert(spin, { microseconds: 400 });
        });
        await soon(runtime, run);
      } finally {
        await soon(runtime, runtime.close());
      }
      const trace = cropToRuns(loadTrace(file));
      expect([...trace.events.kind]).toContain(EventKind.runBegin);
      const summary = summarize(trace);
      const { stolen: idle, scheduler, h2d, d2h, d2d } = summary.idle;
      // Two of three threads have no core at any time while all have work.
      expect(idle + summary.stretched).toBeGreaterThan(scheduler + h2d + d2h + d2d);
      for (const lane of summary.lanes) {
        expect(lane.busy).toBeLessThanOrEqual(summary.makespan);
        expect(lane.stretched).toBeLessThanOrEqual(lane.busy);
      }
      const text = summaryText(summary);
      expect(text).toContain(`${workers + 1} threads (${workers} workers, the engine) share`);
      expect(text).not.toContain('too short');
    },
  );
});
