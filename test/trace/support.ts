// Hand-made traces for tests: a header with few lanes, a recorder into memory, and tasks given by a short row.
import {
  loadTrace,
  MemorySink,
  NONE,
  type Trace,
  type TraceHeader,
  TraceRecorder,
} from '../../trace/index.js';

/** One host worker pair, one GPU with compute, in and out lanes. Clock origin 1000. */
export function testHeader(overrides: Partial<TraceHeader> = {}): TraceHeader {
  return {
    program: 'test',
    hostname: 'here',
    rank: 0,
    ranks: 1,
    started: '2026-11-21T00:00:00.000Z',
    clockOrigin: 1000,
    clockOffset: 0,
    simulated: false,
    spaces: [
      { kind: 'host', name: 'host', bytes: 1 << 20 },
      { kind: 'emulated', name: 'gpu 0', bytes: 4096 },
      { kind: 'emulated', name: 'gpu 1', bytes: 4096 },
    ],
    lanes: [
      { kind: 'worker', name: 'worker 0', space: 0, peer: -1 },
      { kind: 'worker', name: 'worker 1', space: 0, peer: -1 },
      { kind: 'compute', name: 'gpu 0 compute', space: 1, peer: -1 },
      { kind: 'h2d', name: 'gpu 0 in', space: 1, peer: -1 },
      { kind: 'd2h', name: 'gpu 0 out', space: 1, peer: -1 },
      { kind: 'peer', name: 'gpu 1 from gpu 0', space: 2, peer: 1 },
      { kind: 'network', name: 'network', space: 0, peer: -1 },
    ],
    options: {},
    ...overrides,
  };
}

/** Records into memory and returns the file's bytes. */
export function record(
  write: (recorder: TraceRecorder) => void,
  header: TraceHeader = testHeader(),
): Uint8Array {
  const sink = new MemorySink();
  const recorder = new TraceRecorder(sink, header);
  write(recorder);
  recorder.finish();
  return sink.bytes();
}

/** Records into memory and loads it. */
export function traced(
  write: (recorder: TraceRecorder) => void,
  header: TraceHeader = testHeader(),
): Trace {
  return loadTrace(record(write, header));
}

/** Times of a hand-made task relative to the clock origin; those left out follow from the ones before. */
interface HandTimes {
  readonly inserted?: number;
  readonly ready?: number;
  readonly alloc?: number;
  readonly stageIn?: number;
  readonly commIn?: number;
  readonly issued?: number;
  readonly start: number;
  readonly end: number;
  readonly stageOut?: number;
  readonly finalized?: number;
}

/** Records one task; by default it was inserted at 0 and everything before `start` took no time. */
export function task(
  recorder: TraceRecorder,
  id: number,
  lane: number,
  times: HandTimes,
  more: {
    readonly taskClass?: number;
    readonly device?: number;
    readonly releasedBy?: number;
    readonly flags?: number;
    readonly origin?: number;
  } = {},
): void {
  const origin = more.origin ?? 1000;
  const inserted = times.inserted ?? 0;
  const ready = times.ready ?? inserted;
  const alloc = times.alloc ?? ready;
  const stageIn = times.stageIn ?? alloc;
  const commIn = times.commIn ?? stageIn;
  const issued = times.issued ?? commIn;
  const stageOut = times.stageOut ?? times.end;
  const finalized = times.finalized ?? stageOut;
  recorder.task({
    id,
    taskClass: more.taskClass ?? 0,
    device: more.device ?? 0,
    lane,
    flags: more.flags ?? 6,
    releasedBy: more.releasedBy ?? NONE,
    inserted: origin + inserted,
    ready: origin + ready,
    alloc: origin + alloc,
    stageIn: origin + stageIn,
    commIn: origin + commIn,
    issued: origin + issued,
    execStart: origin + times.start,
    execEnd: origin + times.end,
    stageOut: origin + stageOut,
    finalized: origin + finalized,
  });
}
