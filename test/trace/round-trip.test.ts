import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  AccessMode,
  datumName,
  EventKind,
  FIRST_PLAYED,
  FileSink,
  loadTrace,
  MAX_STRING_BYTES,
  MemorySink,
  NO_INDEX,
  NONE,
  rankTracePath,
  type TaskRecord,
  TraceError,
  TraceReader,
  TraceRecorder,
  type TransferRecord,
  UNIT,
} from '../../trace/index.js';
import { record, task, testHeader } from './support.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'headrace-trace-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('the reader returns the values that the recorder wrote', () => {
  test('every field of a task and a transfer', () => {
    const { spaces, lanes } = testHeader();
    const largest = testHeader({
      spaces: Array.from({ length: 8 }, () => spaces[0]),
      lanes: Array.from({ length: 251 }, () => lanes[0]),
    });
    const bytes = record((recorder) => {
      recorder.taskClass(65535, 'gemm', ['m', 'n']);
      recorder.task({
        id: 4e9,
        taskClass: 65535,
        device: 7,
        lane: 250,
        flags: 6 | 8,
        releasedBy: 3e9,
        inserted: 1001,
        ready: 1002,
        alloc: 1003,
        stageIn: 1004,
        commIn: 1005,
        issued: 1006,
        execStart: 1007,
        execEnd: 1008,
        stageOut: 1009,
        finalized: 1010,
      });
      recorder.transfer({
        kind: 3,
        reason: 5,
        lane: 249,
        source: 1,
        destination: 255,
        task: 4e9,
        datum: 77,
        version: 4e9 + 1,
        peer: -1,
        message: 12,
        bytes: 1e15,
        issued: 2000,
        start: 2001,
        end: 2002,
      });
    }, largest);
    const tasks: TaskRecord[] = [];
    const transfers: TransferRecord[] = [];
    const classes: unknown[] = [];
    const outcome = TraceReader.from(bytes).read({
      task: (t) => tasks.push({ ...t, times: t.times.slice() }),
      transfer: (t) => transfers.push({ ...t }),
      taskClass: (...args) => classes.push(args),
    });
    expect(outcome).toMatchObject({ complete: true, tasks: 1, transfers: 1, problems: [] });
    expect(classes).toEqual([[65535, 'gemm', ['m', 'n'], true]]);
    expect(tasks[0]).toMatchObject({
      id: 4e9,
      taskClass: 65535,
      device: 7,
      lane: 250,
      flags: 14,
      releasedBy: 3e9,
    });
    expect([...tasks[0].times]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(transfers[0]).toEqual({
      kind: 3,
      reason: 5,
      lane: 249,
      source: 1,
      destination: 255,
      task: 4e9,
      datum: 77,
      version: 4e9 + 1,
      peer: -1,
      message: 12,
      bytes: 1e15,
      issued: 1000,
      start: 1001,
      end: 1002,
    });
  });

  test('a task that lived longer than 32 bits of nanoseconds', () => {
    const bytes = record((recorder) => {
      task(recorder, 1, 0, { start: 5e9, end: 6e9, finalized: 7e12 });
      task(recorder, 2, 0, { start: 5, end: 6 });
    });
    const seen: number[][] = [];
    TraceReader.from(bytes).read({ task: (t) => seen.push([...t.times]) });
    expect(seen).toEqual([
      [0, 0, 0, 0, 0, 0, 5e9, 6e9, 6e9, 7e12],
      [0, 0, 0, 0, 0, 0, 5, 6, 6, 6],
    ]);
  });

  test('stage times are clamped around exact execution times; skipped ones count as passed at once', () => {
    const bytes = record((recorder) => {
      // ready and alloc unset, stage-in earlier than inserted, issued after the start, finalized before the end.
      recorder.task({
        id: 1,
        taskClass: 0,
        device: 0,
        lane: 0,
        flags: 6,
        releasedBy: NONE,
        inserted: 1010,
        ready: 0,
        alloc: Number.NaN,
        stageIn: 1005,
        commIn: 1020,
        issued: 1050,
        execStart: 1040,
        execEnd: 1060,
        stageOut: 0,
        finalized: 1055,
      });
      // Failed before it ran: no execution times.
      recorder.task({
        id: 2,
        taskClass: 0,
        device: 0,
        lane: 0,
        flags: 2 | 8,
        releasedBy: NONE,
        inserted: 1010,
        ready: 1011,
        alloc: 1012,
        stageIn: 0,
        commIn: 0,
        issued: 0,
        execStart: 0,
        execEnd: 0,
        stageOut: 0,
        finalized: 1015,
      });
    });
    const seen: number[][] = [];
    TraceReader.from(bytes).read({ task: (t) => seen.push([...t.times]) });
    expect(seen[0]).toEqual([10, 10, 10, 10, 20, 40, 40, 60, 60, 60]);
    expect(seen[1]).toEqual([10, 11, 12, 12, 12, 12, 12, 12, 12, 15]);
  });

  test('times that were never taken: insertion at the begin of the run, issue at the start of the transfer', () => {
    const trace = loadTrace(
      record((recorder) => {
        recorder.event(EventKind.runBegin, 1050);
        recorder.task({
          id: 1,
          taskClass: 0,
          device: 0,
          lane: 0,
          flags: 6,
          releasedBy: NONE,
          inserted: 0,
          ready: 0,
          alloc: 0,
          stageIn: 0,
          commIn: 0,
          issued: 0,
          execStart: 1100,
          execEnd: 1200,
          stageOut: 0,
          finalized: 0,
        });
        recorder.transfer({
          kind: 0,
          reason: 0,
          lane: 3,
          source: 0,
          destination: 1,
          task: 1,
          datum: NONE,
          version: 0,
          peer: -1,
          message: NONE,
          bytes: 8,
          issued: 0,
          start: 1060,
          end: 1090,
        });
        recorder.transfer({
          kind: 0,
          reason: 0,
          lane: 3,
          source: 0,
          destination: 1,
          task: 1,
          datum: NONE,
          version: 0,
          peer: -1,
          message: NONE,
          bytes: 8,
          issued: 1095,
          start: 1090,
          end: 1099,
        });
      }),
    );
    expect([trace.start, trace.end]).toEqual([50, 200]);
    expect(trace.tasks.times[0][0]).toBe(50);
    expect([...trace.transfers.issued]).toEqual([60, 90]);
  });

  test('fractional times keep their order', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 2 }),
        (times) => {
          times.sort((a, b) => a - b);
          const bytes = record((recorder) => {
            times.forEach((t, id) => {
              recorder.task({
                id,
                taskClass: 0,
                device: 0,
                lane: 0,
                flags: 6,
                releasedBy: NONE,
                inserted: 1000,
                ready: 0,
                alloc: 0,
                stageIn: 0,
                commIn: 0,
                issued: 0,
                execStart: 1000 + t,
                execEnd: 1000 + t,
                stageOut: 0,
                finalized: 0,
              });
            });
          });
          let last = -1;
          TraceReader.from(bytes).read({
            task: (t) => {
              expect(t.times[6]).toBeGreaterThanOrEqual(last);
              last = t.times[6];
            },
          });
        },
      ),
    );
  });

  test('dependencies and accesses of one task share records of six, across chunk borders too', () => {
    const sink = new MemorySink();
    const recorder = new TraceRecorder(sink, testHeader(), { chunkBytes: 16 * 1024 });
    const expected: number[][] = [];
    for (let id = 0; id < 2000; id++) {
      const list: number[] = [];
      for (let i = 0; i < id % 15; i++) {
        list.push(id * 20 + i);
        recorder.dependency(id, id * 20 + i);
        recorder.access(id, id * 20 + i, 1 + (i % 3));
      }
      expected.push(list);
    }
    recorder.finish();
    expect(sink.chunks.length).toBeGreaterThan(2);
    const dependencies: number[][] = expected.map(() => []);
    const accesses: number[][] = expected.map(() => []);
    const outcome = TraceReader.from(sink.bytes()).read({
      dependencies: (l) => dependencies[l.task].push(...l.values.subarray(0, l.count)),
      accesses: (l) => {
        for (let i = 0; i < l.count; i++) {
          expect((l.modes >>> (2 * i)) & 3).toBe(1 + ((l.values[i] - l.task * 20) % 3));
        }
        accesses[l.task].push(...l.values.subarray(0, l.count));
      },
    });
    expect(outcome.complete).toBe(true);
    expect(dependencies).toEqual(expected);
    expect(accesses).toEqual(expected);
  });

  test('strings of any script and length', () => {
    const long = 'ü'.repeat(MAX_STRING_BYTES);
    const texts = ['', 'A', '瓦片 (3, 4)', 'x'.repeat(24), 'x'.repeat(25), long];
    const bytes = record((recorder) => {
      for (const text of texts)
        recorder.event(EventKind.note, 1000, { space: 0, task: NONE, datum: NONE, text });
    });
    const seen: string[] = [];
    TraceReader.from(bytes).read({ event: (e) => seen.push(e.text) });
    expect(seen.slice(0, 5)).toEqual(texts.slice(0, 5));
    expect(seen[5]).toBe('ü'.repeat(MAX_STRING_BYTES / 2));
  });

  test('data, parameters, counters, events and clocks', () => {
    const bytes = record((recorder) => {
      recorder.datum(5, 2048, 3, 'A', [1, -2]);
      recorder.parameters(9, [1, -2, 2 ** 31 - 1, -(2 ** 31)]);
      recorder.memory({
        space: 1,
        time: 1500,
        used: 100,
        pinned: 20,
        dirty: 30,
        clean: 40,
        arriving: 10,
      });
      recorder.progress({
        time: 1600,
        ready: 5,
        window: 6,
        bytesInFlight: 7,
        messagesInFlight: 8,
        inserted: 9,
        retired: 10,
      });
      recorder.event(EventKind.spill, 1700, {
        space: 1,
        task: 9,
        datum: 5,
        bytes: 2048,
        text: 'why',
      });
      recorder.stolen(2, 1750, 1790);
      recorder.stolen(NO_INDEX, 1760, 1795);
      recorder.clock(0, 1800, -12.5, 3);
      recorder.play({
        plan: 'step',
        first: FIRST_PLAYED,
        iterations: 20,
        tasks: 3,
        iteration: 2 ** 40,
        before: 0xfffffffe,
      });
    });
    const seen: unknown[] = [];
    TraceReader.from(bytes).read({
      datum: (d) => seen.push({ ...d }),
      parameters: (l) => seen.push([l.task, ...l.values.subarray(0, l.count)]),
      counter: (c) => seen.push([c.kind, c.space, c.time, ...c.values]),
      event: (e) => seen.push({ ...e }),
      stolen: (s) => seen.push({ ...s }),
      clock: (c) => seen.push({ ...c }),
      play: (p) => seen.push({ ...p }),
    });
    expect(seen).toEqual([
      { id: 5, home: 3, bytes: 2048, name: 'A', i: 1, j: -2, k: -0x80000000 },
      [9, 1, -2, 2 ** 31 - 1, -(2 ** 31)],
      [0, 1, 500, 100, 20, 30, 40, 10, 0],
      [1, 255, 600, 5, 6, 7, 8, 9, 10],
      { kind: EventKind.spill, space: 1, task: 9, datum: 5, time: 700, bytes: 2048, text: 'why' },
      { lane: 2, from: 750, to: 790 },
      { lane: 255, from: 760, to: 795 },
      { peer: 0, time: 800, offset: -12.5, error: 3 },
      {
        plan: 'step',
        first: FIRST_PLAYED,
        iterations: 20,
        tasks: 3,
        iteration: 2 ** 40,
        before: 0xfffffffe,
      },
    ]);
  });

  test('a file, chunk by chunk, equals the trace in memory', () => {
    const path = join(folder, 'file.hrtrace');
    const write = (recorder: TraceRecorder): void => {
      for (let id = 0; id < 20_000; id++) {
        recorder.access(id, id % 7, AccessMode.read);
        task(recorder, id, 0, { start: id * 10, end: id * 10 + 9 });
      }
      recorder.finish();
    };
    const memory = new MemorySink();
    write(new TraceRecorder(memory, testHeader()));
    write(new TraceRecorder(new FileSink(path), testHeader()));
    expect(statSync(path).size).toBe(memory.bytes().length);
    expect(loadTrace(path).tasks).toEqual(loadTrace(memory.bytes()).tasks);
  });
});

test('an id that is given to another datum means that one from there on', () => {
  const trace = loadTrace(
    record((recorder) => {
      for (const [id, name] of ['first', 'second'].entries()) {
        recorder.datum(5, 64, 0, name);
        recorder.datum(4e9, 64, 0, `far ${name}`);
        recorder.access(id, 5, AccessMode.read);
        recorder.access(id, 4e9, AccessMode.read);
        recorder.access(id, 6, AccessMode.read);
        task(recorder, id, 0, { start: id, end: id + 1 });
      }
    }),
  );
  const { start, items } = trace.tasks.accesses;
  const names = [0, 1].map((row) =>
    [...items.subarray(start[row], start[row + 1])].map((datum) => datumName(trace, datum)),
  );
  expect(names).toEqual([
    ['first', 'far first'],
    ['second', 'far second'],
  ]);
});

describe('counter samples', () => {
  test('are due at most once per interval', () => {
    const recorder = new TraceRecorder(new MemorySink(), testHeader(), { counterInterval: 100 });
    const due = [0, 50, 99, 100, 150, 200, 1000, 1001].filter((time) => recorder.counterDue(time));
    expect(due).toEqual([0, 100, 200, 1000]);
  });
});

describe('writing in the background', () => {
  const write = (recorder: TraceRecorder, from: number, to: number): void => {
    for (let id = from; id < to; id++) {
      recorder.access(id, id % 7, AccessMode.read);
      task(recorder, id, 0, { start: id * 10, end: id * 10 + 9 });
    }
  };

  test('a program that never returns to the event loop still gets its whole file', () => {
    const path = join(folder, 'busy.hrtrace');
    const recorder = new TraceRecorder(new FileSink(path), testHeader(), { chunkBytes: 65536 });
    write(recorder, 0, 30_000);
    recorder.finish();
    const trace = loadTrace(path);
    expect(trace.problems).toEqual([]);
    expect(trace.tasks.count).toBe(30_000);
    expect(trace.tasks.id.every((id, row) => id === row)).toBe(true);
  });

  test('a program that does, too, and the file stays as it was when it was finished', async () => {
    const path = join(folder, 'turns.hrtrace');
    const recorder = new TraceRecorder(new FileSink(path), testHeader(), { chunkBytes: 65536 });
    for (let i = 0; i < 40; i++) {
      write(recorder, i * 1000, (i + 1) * 1000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    recorder.finish();
    const bytes = readFileSync(path);
    expect(loadTrace(bytes).tasks.count).toBe(40_000);
    expect(loadTrace(bytes).problems).toEqual([]);
    // A write behind the end would come in its own time: nothing but time shows that none does.
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });

  test('a pipe is written in order, at once', async () => {
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    const out = join(folder, 'from-pipe.hrtrace');
    const reader = spawn('sh', ['-c', 'cat "$0" > "$1"', path, out]);
    const closed = new Promise((resolve) => reader.on('close', resolve));
    const recorder = new TraceRecorder(new FileSink(path), testHeader(), { chunkBytes: 65536 });
    write(recorder, 0, 5000);
    recorder.finish();
    await closed;
    expect(loadTrace(out).tasks.count).toBe(5000);
  });
});

describe('a failing disk', () => {
  test('does not disturb recording and is reported when the trace ends', () => {
    // /dev/full accepts the open and refuses every write.
    const recorder = new TraceRecorder(new FileSink('/dev/full'), testHeader());
    for (let id = 0; id < 50_000; id++) task(recorder, id, 0, { start: 1, end: 2 });
    let error: unknown;
    try {
      recorder.finish();
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(TraceError);
    expect(error).toMatchObject({ code: 'ERR_TRACE_WRITE', path: '/dev/full' });
    expect((error as Error).message).toMatch(/incomplete.*not affected/);
    expect(() => recorder.finish()).not.toThrow();
  });

  test('a path that cannot be created is refused at once', () => {
    expect(() => new FileSink(join(folder, 'no', 'such', 'folder.hrtrace'))).toThrow(
      expect.objectContaining({ code: 'ERR_TRACE_WRITE' }),
    );
  });
});

test('trace files of several ranks have the rank before the suffix', () => {
  expect(rankTracePath('out.hrtrace', 0, 1)).toBe('out.hrtrace');
  expect(rankTracePath('out.hrtrace', 2, 4)).toBe('out.2.hrtrace');
  expect(rankTracePath('/a.b/out', 1, 4)).toBe('/a.b/out.1.hrtrace');
});

test('every record starts on a unit, so a trace is a whole number of units', () => {
  const bytes = record((recorder) => {
    recorder.string('x'.repeat(100));
    task(recorder, 1, 0, { start: 1, end: 2 });
  });
  expect(bytes.length % UNIT).toBe(0);
});
