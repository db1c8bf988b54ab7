// Records of plays by hand: their order, and what every tool says of a task that was played.
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { summarize, summaryText } from '../../trace/analysis/index.js';
import {
  exportChrome,
  exportCsv,
  exportPerfetto,
  writeToMemory,
} from '../../trace/export/index.js';
import { buildPayload } from '../../trace/html/payload.js';
import {
  AccessMode,
  cropTrace,
  FIRST_PLAYED,
  playedAs,
  TaskFlag,
  type Trace,
  taskName,
} from '../../trace/index.js';
import { decodePerfetto } from './decode-perfetto.js';
import { task, testHeader, traced } from './support.js';

const PLAYED = 6 | TaskFlag.played;
const viewerFolder = fileURLToPath(new URL('../../trace/viewer/', import.meta.url));
// biome-ignore lint/suspicious/noExplicitAny: the viewer's modules are JavaScript
const viewer = (file: string): Promise<Record<string, any>> =>
  import(pathToFileURL(viewerFolder + file).href);

/** Task 1, then two iterations (3 and 4) of a plan with two tasks, then task 2; all update one datum. Records out of order. */
function example(): Trace {
  return traced(
    (recorder) => {
      recorder.taskClass(0, 'step', ['k'], false);
      recorder.datum(0, 64, 0, 'x');
      const add = (id: number, at: number, flags: number): void => {
        recorder.access(id, 0, AccessMode.readWrite);
        task(recorder, id, 0, { start: at, end: at + 5 }, { flags });
      };
      add(2, 60, 6);
      add(1, 0, 6);
      recorder.play({
        plan: 'p',
        first: FIRST_PLAYED + 10,
        iterations: 2,
        tasks: 2,
        iteration: 3,
        before: 1,
      });
      for (const n of [2, 0, 1, 3]) add(FIRST_PLAYED + 10 + n, 10 + 10 * n, PLAYED);
    },
    testHeader({ dependencies: 'accesses' }),
  );
}

const textOf = (produce: Parameters<typeof writeToMemory>[0]): string =>
  new TextDecoder().decode(writeToMemory(produce));

describe('a task that was played', () => {
  test('comes after the tasks inserted before the play, in the order of the plan', () => {
    const trace = example();
    const { predecessors, id } = trace.tasks;
    const follows = Array.from(id, (each, row) => [
      each,
      ...Array.from(
        predecessors.items.subarray(predecessors.start[row], predecessors.start[row + 1]),
        (p) => id[p],
      ),
    ]);
    const p = FIRST_PLAYED + 10;
    expect(new Set(follows.map(String))).toEqual(
      new Set([[1], [p, 1], [p + 1, p], [p + 2, p + 1], [p + 3, p + 2], [2, p + 3]].map(String)),
    );
  });

  test('has its plan, iteration and number, also in a part of the trace', () => {
    const whole = example();
    const seen = (trace: Trace): string[] =>
      Array.from({ length: trace.tasks.count }, (_, row) => {
        const played = playedAs(trace, row);
        return `${taskName(trace, row)} ${played?.plan} ${played?.iteration}`;
      });
    expect(seen(whole)).toEqual([
      'step #2 x undefined undefined',
      'step #1 x undefined undefined',
      'step #p12 x p 4',
      'step #p10 x p 3',
      'step #p11 x p 3',
      'step #p13 x p 4',
    ]);
    expect(seen(cropTrace(whole, 15, 37))).toEqual(['step #p12 x p 4', 'step #p11 x p 3']);
  });

  test('is inserted for a reader that lost the record of the play', () => {
    const trace = traced((recorder) => {
      task(recorder, FIRST_PLAYED, 0, { start: 1, end: 2 }, { flags: PLAYED });
    });
    expect(playedAs(trace, 0)).toBeUndefined();
    expect(summarize(trace).plans).toEqual([]);
  });

  test('is in the summary, the tables and the other formats', () => {
    const trace = example();
    const summary = summarize(trace);
    expect(summary.plans).toEqual([{ plan: 'p', plays: 1, iterations: 2, tasks: 4 }]);
    expect(summaryText(summary)).toMatch(/ plan 'p' +1 play, 2 iterations, 4 of the tasks\n/);
    const [header, ...rows] = textOf((out) => exportCsv(trace, out))
      .trim()
      .split('\n');
    expect(header).toMatch(/,plan,iteration$/);
    expect(rows.map((row) => row.split(',').slice(-2).join())).toEqual([
      ',',
      ',',
      'p,4',
      'p,3',
      'p,3',
      'p,4',
    ]);
    const { traceEvents } = JSON.parse(textOf((out) => exportChrome(trace, out)));
    const slices = traceEvents.filter(({ cat }: { cat?: string }) => cat === 'task');
    expect(
      slices.map(({ args }: { args: { plan?: string; iteration?: number } }) => args.iteration),
    ).toEqual([undefined, 3, 3, 4, 4, undefined]);
    const perfetto = decodePerfetto(writeToMemory((out) => exportPerfetto(trace, out)));
    expect(
      perfetto.slices
        .filter(({ category }) => category === 'task')
        .map(({ args }) => args.iteration),
    ).toEqual([undefined, 3, 3, 4, 4, undefined]);
  });

  test('is found by its number in the viewer, which names its iteration', async () => {
    const { Model, unpack } = await viewer('model.js');
    const { findTask } = await viewer('search.js');
    const payload = buildPayload(example());
    const columns: Record<string, unknown> = {};
    for (const { name, bytes, type, delta } of payload.columns())
      columns[name] = unpack(new Uint8Array(gunzipSync(bytes)), type, delta);
    const model = new Model(JSON.parse(JSON.stringify(payload.meta)), columns);
    const { row, count } = findTask(model, '#p12', -1);
    expect(count).toBe(1);
    expect(model.taskName(row)).toBe('step #p12 x');
    expect(model.playedAs(row)).toBe("iteration 4 of plan 'p'");
    expect(model.playedAs(findTask(model, '#2', -1).row)).toBeUndefined();
  });
});
