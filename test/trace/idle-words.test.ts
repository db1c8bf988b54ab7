// One vocabulary for idle time and one set of counted lanes, in every view of idle time.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  buildPayload,
  diffSummaries,
  idleAdvice,
  idleReasons,
  reasonText,
  summarize,
  summaryText,
} from '../../trace/index.js';
import { task, traced } from './support.js';

test('docs, viewer and JSON call the reasons by the same names', () => {
  const trace = traced((recorder) => task(recorder, 1, 0, { start: 0, end: 9 }));
  const docs = readFileSync(new URL('../../docs/inspecting.md', import.meta.url), 'utf8');
  const shown = (buildPayload(trace).meta as unknown as { idle: { title: string }[] }).idle;
  expect(shown.map(({ title }) => title)).toEqual(idleReasons.map(reasonText));
  expect(Object.keys(summarize(trace).idle)).toEqual(idleReasons);
  for (const reason of idleReasons)
    expect(docs).toContain(`| ${reasonText(reason)} | ${idleAdvice[reason].advice} |`);
});

test('summary and difference count the lanes in use, and no lane is busy for longer than the run', () => {
  // One GPU works for 100 ns, half of it; the two host workers run nothing.
  const trace = traced((recorder) => {
    task(recorder, 1, 2, { start: 0, end: 25 }, { device: 1 });
    task(recorder, 2, 2, { inserted: 25, start: 75, end: 100 }, { device: 1 });
  });
  const summary = summarize(trace);
  expect(summary.makespan).toBe(100);
  expect(summary.busy).toBe(50);
  expect(Object.values(summary.idle).reduce((sum, part) => sum + part, 0)).toBe(50);
  const diff = diffSummaries(summary, summary);
  for (const { name, a } of diff.idle)
    expect(a).toBe(summary.idle[name as keyof typeof summary.idle]);
  expect(diff.lanes.map(({ name }) => name)).toEqual(['gpu 0 compute']);
  expect(summaryText(summary)).toContain(`50.0 %  ${reasonText('scheduler')}`);
  for (const lane of summary.lanes) expect(lane.busy).toBeLessThanOrEqual(summary.makespan);
});
