import fc from 'fast-check';
import { expect, test } from 'vitest';
import { criticalPath, summarize } from '../../trace/analysis/index.js';
import {
  cropToRuns,
  cropTrace,
  EventKind,
  runExtent,
  type Trace,
  taskName,
} from '../../trace/index.js';
import { randomTrace } from './random-traces.js';
import { task, traced } from './support.js';

// Two runs, 100-200 and 300-400; tasks before, within, between and after.
const program = (ended = true): Trace =>
  traced((recorder) => {
    recorder.taskClass(0, 'work', ['n']);
    recorder.datum(3, 64, 0, 'x');
    recorder.event(EventKind.runBegin, 1100);
    [
      [10, 20],
      [110, 150],
      [220, 230],
      [310, 380],
      [450, 460],
    ].forEach(([start, end], id) => {
      if (id > 0) recorder.dependency(id, id - 1);
      recorder.access(id, 3, 3);
      recorder.parameters(id, [-id]);
      task(
        recorder,
        id,
        0,
        { start, end, finalized: end + 30 },
        { releasedBy: id > 0 ? id - 1 : 0xffffffff },
      );
    });
    recorder.transfer({
      kind: 0,
      reason: 0,
      lane: 3,
      source: 0,
      destination: 1,
      task: 0,
      datum: 3,
      version: 0,
      peer: -1,
      message: 0xffffffff,
      bytes: 64,
      issued: 1005,
      start: 1012,
      end: 1016,
    });
    recorder.transfer({
      kind: 0,
      reason: 0,
      lane: 3,
      source: 0,
      destination: 1,
      task: 3,
      datum: 3,
      version: 1,
      peer: -1,
      message: 0xffffffff,
      bytes: 64,
      issued: 1005,
      start: 1302,
      end: 1306,
    });
    recorder.memory({ space: 1, time: 1050, used: 1, pinned: 0, dirty: 0, clean: 1, arriving: 0 });
    recorder.memory({ space: 1, time: 1150, used: 2, pinned: 0, dirty: 0, clean: 2, arriving: 0 });
    recorder.event(EventKind.runEnd, 1200);
    recorder.event(EventKind.runBegin, 1300);
    if (ended) recorder.event(EventKind.runEnd, 1400);
  });

test('only tasks between the first begin and the last end of a run are kept, with their relations', () => {
  const trace = cropToRuns(program());
  expect([trace.start, trace.end]).toEqual([100, 400]);
  expect([...trace.tasks.id]).toEqual([1, 2, 3]);
  expect(taskName(trace, 2)).toBe('work(-3)');
  // The first task kept was released by one that is not.
  expect([...trace.tasks.releasedBy]).toEqual([-1, 0, 1]);
  expect([...trace.tasks.predecessors.start]).toEqual([0, 0, 1, 2]);
  expect([...trace.tasks.times[0]]).toEqual([100, 100, 100]);
  expect(trace.transfers.count).toBe(1);
  expect([trace.transfers.task[0], trace.transfers.issued[0]]).toEqual([2, 100]);
  expect([...trace.counters.values]).toEqual([2, 0, 0, 2, 0, 0]);
  expect(trace.tasks.accessModes.length).toBe(3);
  const summary = summarize(trace);
  expect(summary).toMatchObject({ makespan: 300, tasks: 3, busy: 120 });
  expect(criticalPath(trace).makespan).toBe(300);
});

test('a run that did not end goes on to the end of the trace; without runs nothing is left out', () => {
  expect(runExtent(program(false))).toEqual({ from: 100, to: 490 });
  const plain = traced((recorder) => task(recorder, 1, 0, { start: 5, end: 9 }));
  expect(runExtent(plain)).toBeUndefined();
  expect(cropToRuns(plain)).toBe(plain);
});

test('cropping to everything changes nothing; any part has a summary whose buckets add up', () => {
  fc.assert(
    fc.property(randomTrace, fc.nat(400), fc.nat(400), (trace, a, b) => {
      expect(cropTrace(trace, trace.start, trace.end)).toBe(trace);
      const part = cropTrace(trace, Math.min(a, b), Math.max(a, b));
      const summary = summarize(part);
      const idle = Object.values(summary.idle).reduce((sum, each) => sum + each, 0);
      expect(summary.busy + idle).toBe(
        summary.lanes.filter(({ used }) => used).length * (part.end - part.start),
      );
      criticalPath(part);
    }),
  );
});
