import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { choleskyProgram, simulateInMemory, smallMachine } from '../../bench/trace-synthetic.js';
import { idleReasons, percentile, summarize } from '../../trace/analysis/index.js';
import {
  AccessMode,
  EventKind,
  loadTrace,
  NO_INDEX,
  NONE,
  type TraceRecorder,
  TransferKind,
  TransferReason,
} from '../../trace/index.js';
import { randomTrace } from './random-traces.js';
import { slowLane, slowLongestChain, slowOverlap, slowRequired } from './slow-reference.js';
import { record, task, testHeader, traced } from './support.js';

// Two workers and a GPU, 0 to 200 ns. Worker 0: tasks 0 and 2; worker 1: task 1; the GPU: tasks 3 and 4.
const small = traced((recorder) => {
  recorder.taskClass(0, 'load');
  recorder.taskClass(1, 'work');
  recorder.datum(0, 512, 0, 'x');
  recorder.datum(1, 256, 0, 'y');
  recorder.event(EventKind.throttleBegin, 1010);
  recorder.event(EventKind.throttleEnd, 1025);
  recorder.access(3, 0, AccessMode.read);
  recorder.access(3, 1, AccessMode.readWrite);
  recorder.access(4, 1, AccessMode.readWrite);
  recorder.dependency(2, 0);
  recorder.dependency(3, 0);
  recorder.dependency(4, 3);
  // Starts at once and runs 0-40.
  task(recorder, 0, 0, { start: 0, end: 40 });
  // Inserted at 30: before that the program was slow (0-10, 25-30) or held back (10-25); 5 ns of launching.
  task(recorder, 1, 1, { inserted: 30, start: 35, end: 95 }, { taskClass: 1 });
  // Ready at 45 (after task 0 ended at 40), issued at 50.
  task(recorder, 2, 0, { ready: 45, issued: 50, start: 50, end: 60 }, { releasedBy: 0 });
  // Waits for task 0 until 40, for memory until 60, for a copy out and then one in until 100, launched at 104.
  recorder.transfer({
    kind: TransferKind.d2h,
    reason: TransferReason.spill,
    lane: 4,
    source: 1,
    destination: 0,
    task: NONE,
    datum: 1,
    version: 0,
    peer: -1,
    message: NONE,
    bytes: 256,
    issued: 1041,
    start: 1042,
    end: 1058,
  });
  recorder.event(EventKind.spill, 1058, { space: 1, task: NONE, datum: 1, bytes: 256 });
  recorder.transfer({
    kind: TransferKind.h2d,
    reason: TransferReason.stageIn,
    lane: 3,
    source: 0,
    destination: 1,
    task: 3,
    datum: 0,
    version: 0,
    peer: -1,
    message: NONE,
    bytes: 512,
    issued: 1060,
    start: 1062,
    end: 1090,
  });
  recorder.transfer({
    kind: TransferKind.h2d,
    reason: TransferReason.stageIn,
    lane: 3,
    source: 0,
    destination: 1,
    task: 3,
    datum: 1,
    version: 0,
    peer: -1,
    message: NONE,
    bytes: 256,
    issued: 1060,
    start: 1090,
    end: 1100,
  });
  task(
    recorder,
    3,
    2,
    { ready: 40, alloc: 60, stageIn: 100, issued: 102, start: 104, end: 150 },
    { taskClass: 1, device: 1, releasedBy: 0 },
  );
  // Comm-in took until 158; finalized at 200, which ends the trace.
  task(
    recorder,
    4,
    2,
    { ready: 150, commIn: 158, issued: 158, start: 160, end: 190, finalized: 200 },
    { taskClass: 1, device: 1, releasedBy: 3, flags: 6 | 8 },
  );
  recorder.memory({
    space: 1,
    time: 1050,
    used: 768,
    pinned: 256,
    dirty: 128,
    clean: 384,
    arriving: 0,
  });
  recorder.memory({
    space: 1,
    time: 1100,
    used: 700,
    pinned: 300,
    dirty: 0,
    clean: 400,
    arriving: 0,
  });
  recorder.event(EventKind.evict, 1059, { space: 1, task: NONE, datum: 0, bytes: 100 });
  recorder.transfer({
    kind: TransferKind.d2h,
    reason: TransferReason.readBack,
    lane: 4,
    source: 1,
    destination: 0,
    task: NONE,
    datum: 1,
    version: 2,
    peer: -1,
    message: NONE,
    bytes: 256,
    issued: 1190,
    start: 1191,
    end: 1199,
  });
});

describe('a summary computed by hand', () => {
  const summary = summarize(small);
  const lane = (name: string) => summary.lanes.find((l) => l.lane === name)!;

  test('makespan, counts and bounds', () => {
    expect(summary.makespan).toBe(200);
    expect(summary).toMatchObject({ tasks: 5, failed: 1, cancelled: 0, program: 'test', ranks: 1 });
    // Chain 0 -> 3 -> 4: 40 + 46 + 30. Workers: (40 + 60 + 10) / 2; GPU: 76 on one lane.
    expect(summary.bounds.criticalPath).toBe(116);
    expect(summary.bounds.area).toBe(76);
    expect(summary.bounds.efficiency).toBeCloseTo(186 / 600, 12);
    expect(summary.bounds.ofBound).toBeCloseTo(116 / 200, 12);
  });

  test('idle time by reason, worker 0', () => {
    // 40-45 not ready, 45-50 deciding, 60-200 nothing left.
    expect(lane('worker 0')).toMatchObject({ tasks: 2, busy: 50 });
    expect(lane('worker 0').idle).toEqual({
      noTask: 5 + 140,
      h2d: 0,
      d2h: 0,
      d2d: 0,
      network: 0,
      memory: 0,
      scheduler: 5,
      submission: 0,
      throttled: 0,
      stolen: 0,
    });
  });

  test('idle time by reason, worker 1: the program inserted late, partly because the window was full', () => {
    expect(lane('worker 1').idle).toEqual({
      noTask: 105,
      h2d: 0,
      d2h: 0,
      d2d: 0,
      network: 0,
      memory: 0,
      scheduler: 5,
      submission: 15,
      throttled: 15,
      stolen: 0,
    });
  });

  test('idle time by reason, GPU: predecessor, memory, copies, launch, network', () => {
    // 0-40 task 0, 40-60 memory, 60-100 h2d, 100-104 launch, 150-158 network, 158-160 launch, 190-200 nothing left.
    expect(lane('gpu 0 compute').idle).toEqual({
      noTask: 50,
      h2d: 40,
      d2h: 0,
      d2d: 0,
      network: 8,
      memory: 20,
      scheduler: 6,
      submission: 0,
      throttled: 0,
      stolen: 0,
    });
  });

  test('buckets of all lanes sum to lanes x makespan', () => {
    const idle = idleReasons.reduce((sum, reason) => sum + summary.idle[reason], 0);
    expect(summary.busy + idle).toBe(3 * 200);
    expect(summary.busy).toBe(186);
  });

  test('bytes: moved and necessary', () => {
    expect(summary.traffic.bytes).toMatchObject({ h2d: 768, d2h: 512, d2d: 0, staged: 0 });
    expect(summary.traffic.transfers).toMatchObject({ h2d: 2, d2h: 2 });
    // x and y to the GPU once each, y back because the program read it; the spill was not required.
    expect(summary.traffic.required).toEqual({ h2d: 768, d2h: 256, d2d: 0, network: 0 });
    expect(summary.traffic.spills).toEqual({ count: 1, bytes: 256 });
    expect(summary.traffic.evictions).toEqual({ count: 1, bytes: 100 });
  });

  test('classes: work first (most time), percentiles by nearest rank', () => {
    expect(summary.classes.map((c) => c.name)).toEqual(['work', 'load']);
    expect(summary.classes[0]).toMatchObject({
      count: 3,
      total: 136,
      minimum: 30,
      p50: 46,
      p99: 60,
      maximum: 60,
      failed: 1,
    });
    expect(summary.classes[0].mean).toBeCloseTo(136 / 3, 12);
    expect(summary.classes[0].stages).toMatchObject({
      alloc: 20 / 3,
      stageIn: 40 / 3,
      commIn: 8 / 3,
      queue: (5 + 2 + 2) / 3,
    });
  });

  test('slowest tasks, latency, memory, transfer lanes, overlap', () => {
    expect(summary.slowest.map((t) => [t.id, t.nanoseconds])).toEqual([
      [1, 60],
      [3, 46],
      [0, 40],
      [4, 30],
      [2, 10],
    ]);
    expect(summary.latency).toMatchObject({
      count: 5,
      total: 0 + 5 + 5 + 64 + 10,
      maximum: 64,
      p50: 5,
    });
    expect(summary.memory).toMatchObject([
      { space: 'gpu 0', capacity: 4096, highWater: 768, pinned: 300, dirty: 128, samples: 2 },
      { space: 'gpu 1', capacity: 4096, samples: 0 },
    ]);
    const out = summary.transferLanes.find((l) => l.lane === 'gpu 0 out')!;
    expect(out).toMatchObject({
      transfers: 2,
      bytes: 512,
      busy: 24,
      idle: 176,
      bandwidth: (512 / 24) * 1e9,
    });
    // Transfers 42-58, 62-100, 191-199; the GPU runs 104-150 and 160-190: nothing hidden there.
    expect(summary.overlap[0]).toEqual({
      where: 'gpu 0',
      communication: 62,
      execution: 76,
      both: 0,
      hidden: 0,
    });
    // Over all lanes: kernels 0-95, so 42-58 and 62-95 are hidden.
    expect(summary.overlap[1]).toMatchObject({ where: 'all', communication: 62, both: 16 + 33 });
  });

  test('a trace without tasks has a summary too', () => {
    const empty = summarize(traced(() => {}));
    expect(empty).toMatchObject({ makespan: 0, tasks: 0, slowest: [], classes: [], busy: 0 });
    expect(empty.bounds).toEqual({ criticalPath: 0, area: 0, efficiency: 0, ofBound: 0 });
  });
});

describe('waiting for transfers', () => {
  // One GPU task that starts at 100 after the given transfers [kind, start, end].
  const idleWith = (...transfers: [number, number, number][]) =>
    summarize(
      traced((recorder) => {
        for (const [kind, start, end] of transfers) {
          recorder.transfer({
            kind,
            reason: TransferReason.stageIn,
            lane: 3,
            source: 0,
            destination: 1,
            task: 1,
            datum: NONE,
            version: 0,
            peer: -1,
            message: NONE,
            bytes: 8,
            issued: 1000,
            start: 1000 + start,
            end: 1000 + end,
          });
        }
        task(recorder, 1, 2, { stageIn: 90, start: 100, end: 110 }, { device: 1 });
      }),
    ).lanes[2].idle;

  test('of a chain of copies each is charged for its own time', () => {
    const idle = idleWith([TransferKind.d2h, 10, 40], [TransferKind.h2d, 45, 90]);
    expect(idle).toMatchObject({ d2h: 40, h2d: 50, scheduler: 10 });
  });

  test('of copies at the same time the one that ends last is charged', () => {
    const idle = idleWith([TransferKind.d2d, 10, 95], [TransferKind.h2d, 0, 50]);
    expect(idle).toMatchObject({ h2d: 10, d2d: 85, scheduler: 5 });
  });

  test('a copy made for another task counts when this task attached to it', () => {
    const summary = summarize(
      traced((recorder) => {
        recorder.datum(9, 64, 0, 'z');
        recorder.access(1, 9, AccessMode.read);
        recorder.access(2, 9, AccessMode.read);
        recorder.transfer({
          kind: TransferKind.h2d,
          reason: TransferReason.stageIn,
          lane: 3,
          source: 0,
          destination: 1,
          task: 2,
          datum: 9,
          version: 0,
          peer: -1,
          message: NONE,
          bytes: 64,
          issued: 1000,
          start: 1010,
          end: 1060,
        });
        task(recorder, 1, 2, { start: 60, end: 70 }, { device: 1 });
        task(recorder, 2, 2, { start: 70, end: 80 }, { device: 1 });
      }),
    );
    expect(summary.lanes[2].idle).toMatchObject({ h2d: 60, scheduler: 0, noTask: 0 });
  });

  test('a message whose producer still runs on the other rank is no fault of the network', () => {
    const header = (rank: number) => testHeader({ ranks: 2, rank });
    const receive = record((recorder) => {
      recorder.transfer({
        kind: TransferKind.staged,
        reason: TransferReason.receive,
        lane: 6,
        source: NO_INDEX,
        destination: 0,
        task: 1,
        datum: NONE,
        version: 1,
        peer: 1,
        message: 0,
        bytes: 8,
        issued: 1000,
        start: 1080,
        end: 1100,
      });
      task(recorder, 1, 0, { commIn: 100, start: 100, end: 110 });
      recorder.clock(1, 1000, 0, 0);
    }, header(0));
    const send = record((recorder) => {
      recorder.clock(0, 1000, 0, 0);
      task(recorder, 5, 0, { start: 0, end: 75 });
      recorder.transfer({
        kind: TransferKind.staged,
        reason: TransferReason.send,
        lane: 6,
        source: 0,
        destination: NO_INDEX,
        task: 5,
        datum: NONE,
        version: 1,
        peer: 0,
        message: 0,
        bytes: 8,
        issued: 1075,
        start: 1080,
        end: 1099,
      });
    }, header(1));
    const summary = summarize(loadTrace([receive, send]));
    expect(summary.lanes[0].idle).toMatchObject({ noTask: 75, network: 25 });
    // The message counts once although both sides recorded it, and the chain crosses the ranks.
    expect(summary.traffic.bytes.staged).toBe(8);
    expect(summary.bounds.criticalPath).toBe(85);
  });
});

describe('a task behind a receive or a send waits for the network', () => {
  const NETWORK = 6;
  const header = (rank: number, ranks: number) => testHeader({ rank, ranks });
  /** The record of one side of message `message`. */
  const side = (
    recorder: TraceRecorder,
    reason: number,
    ends: { task: number; peer: number; message: number; start: number; end: number },
  ) =>
    recorder.transfer({
      kind: TransferKind.direct,
      reason,
      lane: NETWORK,
      source: reason === TransferReason.send ? 0 : NO_INDEX,
      destination: reason === TransferReason.send ? NO_INDEX : 0,
      datum: NONE,
      version: 1,
      bytes: 8,
      issued: 1000 + ends.start,
      ...ends,
      start: 1000 + ends.start,
      end: 1000 + ends.end,
    });
  /** The first rank: task 1 makes a value until 40, task 2 sends it until 75, task 3 overwrites it from 78 on. */
  const writer = (ranks: number) =>
    record(
      (recorder) => {
        for (let peer = 1; peer < ranks; peer++) recorder.clock(peer, 1000, 0, 0);
        task(recorder, 1, 0, { start: 0, end: 40 });
        recorder.dependency(2, 1);
        task(recorder, 2, NETWORK, { start: 75, end: 75 });
        side(recorder, TransferReason.send, { task: 2, peer: 1, message: 7, start: 45, end: 70 });
        recorder.dependency(3, 2);
        task(recorder, 3, 0, { ready: 75, start: 78, end: 90 }, { releasedBy: 2 });
      },
      header(0, ranks),
    );
  /** A rank that receives a message of `peer` in task 1 at `end`; task 2 reads the value 10 ns later. */
  const reader = (
    { rank, ranks, peer, message }: { rank: number; ranks: number; peer: number; message: number },
    start: number,
    end: number,
    more: (recorder: TraceRecorder) => void = () => {},
  ) =>
    record(
      (recorder) => {
        for (let other = 0; other < ranks; other++)
          if (other !== rank) recorder.clock(other, 1000, 0, 0);
        task(recorder, 1, NETWORK, { start: end, end });
        side(recorder, TransferReason.receive, { task: 1, peer, message, start, end });
        recorder.dependency(2, 1);
        const times = { ready: end + 2, start: end + 10, end: end + 20 };
        task(recorder, 2, 0, times, { releasedBy: 1 });
        more(recorder);
      },
      header(rank, ranks),
    );
  const worker = (summary: ReturnType<typeof summarize>, rank: number) =>
    summary.lanes.find((l) => l.rank === rank && l.lane.includes('worker 0'))!.idle;

  test('from the end of its producer on the other rank to the arrival', () => {
    const summary = summarize(
      loadTrace([writer(2), reader({ rank: 1, ranks: 2, peer: 0, message: 7 }, 45, 70)]),
    );
    // 0-40 the producer ran, 40-70 the message, 70-72 not released yet, 72-80 launching.
    expect(worker(summary, 1)).toMatchObject({ noTask: 42, network: 30, scheduler: 8 });
  });

  test('a writer waits until the value has left', () => {
    const summary = summarize(
      loadTrace([writer(2), reader({ rank: 1, ranks: 2, peer: 0, message: 7 }, 45, 70)]),
    );
    // 40-75 the send, 75-78 launching; the trace ends with this task.
    expect(worker(summary, 0)).toMatchObject({ noTask: 0, network: 35, scheduler: 3 });
  });

  test('a value that a third rank passes on is on the network from the end of its first producer', () => {
    const passed = reader({ rank: 1, ranks: 3, peer: 0, message: 7 }, 45, 70, (recorder) => {
      recorder.dependency(3, 1);
      task(recorder, 3, NETWORK, { start: 115, end: 115 });
      side(recorder, TransferReason.send, { task: 3, peer: 2, message: 8, start: 74, end: 110 });
    });
    const summary = summarize(
      loadTrace([writer(3), passed, reader({ rank: 2, ranks: 3, peer: 1, message: 8 }, 74, 110)]),
    );
    expect(worker(summary, 2)).toMatchObject({ noTask: 42, network: 70, scheduler: 8 });
  });

  test('but not while another task before it runs', () => {
    const both = reader({ rank: 1, ranks: 2, peer: 0, message: 7 }, 45, 70, (recorder) => {
      task(recorder, 5, 1, { start: 0, end: 60 });
      recorder.dependency(2, 5);
    });
    const summary = summarize(loadTrace([writer(2), both]));
    expect(worker(summary, 1)).toMatchObject({ noTask: 62, network: 10, scheduler: 8 });
  });
});

describe('random traces agree with a slow reference', () => {
  test('idle time by reason, lane by lane', () => {
    fc.assert(
      fc.property(randomTrace, (trace) => {
        const summary = summarize(trace);
        for (const lane of [0, 1, 2]) {
          const expected = slowLane(trace, lane);
          const actual = summary.lanes[lane];
          expect(new Map([['busy', actual.busy], ...Object.entries(actual.idle)])).toEqual(
            expected,
          );
        }
      }),
      { numRuns: 150 },
    );
  });

  test('longest chain, required bytes, overlap, percentiles', () => {
    fc.assert(
      fc.property(randomTrace, (trace) => {
        const summary = summarize(trace);
        expect(summary.bounds.criticalPath).toBe(slowLongestChain(trace));
        expect(summary.traffic.required).toEqual(slowRequired(trace));
        const all = summary.overlap[summary.overlap.length - 1];
        expect(all).toMatchObject(
          slowOverlap(
            trace,
            () => true,
            () => true,
          ),
        );
        for (const entry of summary.overlap.slice(0, -1)) {
          const space = trace.spaces.findIndex((s) => s.name === entry.where);
          const { source, destination } = trace.transfers;
          expect(entry).toMatchObject(
            slowOverlap(
              trace,
              (row) => source[row] === space || destination[row] === space,
              (row) => trace.tasks.space[row] === space,
            ),
          );
        }
        for (const use of summary.classes) {
          const times: number[] = [];
          for (let row = 0; row < trace.tasks.count; row++) {
            if (trace.classes[trace.tasks.taskClass[row]].name !== use.name) continue;
            times.push(trace.tasks.times[7][row] - trace.tasks.times[6][row]);
          }
          expect(use.count).toBe(times.length);
          for (const [p, value] of [
            [0.5, use.p50],
            [0.99, use.p99],
          ]) {
            const atOrBelow = (x: number): number => times.filter((v) => v <= x).length;
            expect(atOrBelow(value)).toBeGreaterThanOrEqual(p * times.length);
            expect(times.filter((v) => v < value).length).toBeLessThan(p * times.length);
          }
        }
      }),
      { numRuns: 150 },
    );
  });
});

test('a simulated Cholesky on GPUs that are too small: sums hold and spills show as more moved than required', () => {
  const machine = { ...smallMachine, gpuBytes: 12 * 65536 };
  const summary = summarize(
    loadTrace(simulateInMemory(choleskyProgram(10, 65536, machine), machine)),
  );
  const idle = idleReasons.reduce((sum, reason) => sum + summary.idle[reason], 0);
  expect(summary.busy + idle).toBe(
    summary.lanes.filter(({ used }) => used).length * summary.makespan,
  );
  expect(summary.traffic.spills.count).toBeGreaterThan(0);
  expect(summary.traffic.moved.h2d).toBeGreaterThan(summary.traffic.required.h2d);
  expect(summary.bounds.criticalPath).toBeLessThanOrEqual(summary.makespan);
  expect(summary.bounds.ofBound).toBeLessThanOrEqual(1);
  expect(summary.problems).toEqual([]);
});

test('percentiles are nearest rank', () => {
  const values = Float64Array.from({ length: 100 }, (_, i) => i + 1);
  expect([0, 0.01, 0.5, 0.501, 0.99, 1].map((p) => percentile(values, p))).toEqual([
    1, 1, 50, 51, 99, 100,
  ]);
  expect(percentile(new Float64Array(0), 0.5)).toBe(0);
});
