import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { VERSION } from '../../trace/format.js';
import { loadTrace, TraceError, type TraceErrorCode, UNIT } from '../../trace/index.js';
import { record, task, testHeader } from './support.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'headrace-trace-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const good = record((recorder) => {
  for (let id = 0; id < 100; id++) task(recorder, id, 0, { start: id * 10, end: id * 10 + 9 });
});
const dataStart = UNIT + new DataView(good.buffer).getUint32(12, true);

function failure(bytes: Uint8Array | string): TraceError {
  try {
    loadTrace(bytes);
  } catch (error) {
    if (error instanceof TraceError) return error;
    throw error;
  }
  throw new Error('loaded without an error');
}

describe('files that are not a readable trace are refused with a reason', () => {
  const changed = (at: number, ...values: number[]): Uint8Array => {
    const copy = good.slice();
    copy.set(values, at);
    return copy;
  };
  const cases: [string, Uint8Array, TraceErrorCode, RegExp][] = [
    ['an empty file', new Uint8Array(0), 'ERR_TRACE_FOREIGN', /not a Headrace trace/],
    ['a text file', new TextEncoder().encode('{"traceEvents":[]}'), 'ERR_TRACE_FOREIGN', /--trace/],
    [
      'a file of the right size but another kind',
      new Uint8Array(4096).fill(7),
      'ERR_TRACE_FOREIGN',
      /not a/,
    ],
    [
      'a newer major version',
      changed(8, 2),
      'ERR_TRACE_VERSION',
      new RegExp(`format 2\\.${VERSION.minor}.*up to 1`),
    ],
    ['the other byte order', changed(16, 1, 2, 3, 4), 'ERR_TRACE_HEADER', /header/],
    ['a header cut short', good.subarray(0, dataStart - 1), 'ERR_TRACE_HEADER', /header/],
    ['a preamble cut short', good.subarray(0, 20), 'ERR_TRACE_HEADER', /header/],
    ['a header that is not JSON', changed(UNIT, 0x78), 'ERR_TRACE_HEADER', /damaged/],
  ];
  test.each(cases)('%s', (_name, bytes, code, words) => {
    const error = failure(bytes);
    expect(error.code).toBe(code);
    expect(error.message).toMatch(words);
  });

  test('a path that does not exist, and a folder', () => {
    expect(failure(join(folder, 'absent.hrtrace'))).toMatchObject({ code: 'ERR_TRACE_READ' });
    expect(failure(folder).message).toMatch(/directory/);
    const path = join(folder, 'foreign.txt');
    writeFileSync(path, 'hello');
    expect(failure(path).message).toContain(path);
  });
});

test('a pipe is refused before anybody waits for it, and a copy of it is read', () => {
  const pipe = join(folder, 'pipe.hrtrace');
  execFileSync('mkfifo', [pipe]);
  const { code, message } = failure(pipe);
  expect(code).toBe('ERR_TRACE_READ');
  expect(message).toContain(`cannot open ${pipe}: it is not a file`);
  const remedy = /\((cat .*)\)/.exec(message)![1];
  const source = join(folder, 'source.hrtrace');
  writeFileSync(source, good);
  execFileSync('sh', ['-c', `cat ${source} > ${pipe} & ${remedy}`], { cwd: folder });
  expect(loadTrace(join(folder, 'copy.hrtrace')).tasks.count).toBe(100);
});

describe('a cut trace', () => {
  test('gives every whole record before the cut, for any cut, and reports the cut', () => {
    for (let length = dataStart; length < good.length; length += 7) {
      const trace = loadTrace(good.subarray(0, length));
      const units = Math.floor((length - dataStart) / UNIT);
      expect(trace.tasks.count).toBe(Math.min(100, Math.floor(units / 2)));
      expect(trace.problems.join()).toMatch(/cut off/);
      expect(trace.ranks[0].outcome.complete).toBe(false);
    }
  });

  test('damage in the middle ends the trace there', () => {
    const damaged = good.slice();
    damaged.fill(0, dataStart + 50 * 2 * UNIT, dataStart + 51 * 2 * UNIT);
    const trace = loadTrace(damaged);
    expect(trace.tasks.count).toBe(50);
    expect(trace.problems.join()).toMatch(/damaged from unit 100/);
  });
});

test('records of a kind this version does not know are skipped and counted', () => {
  const extended = good.slice();
  // Turns the first task into an unknown record of the same length, as a newer minor version might write.
  extended[dataStart] = 200;
  extended[10] = 1;
  const trace = loadTrace(extended);
  expect(trace.tasks.count).toBe(99);
  expect(trace.problems.join()).toMatch(/1 records of a newer format/);
});

describe('traces of several ranks', () => {
  const rank = (r: number, ranks: number, run = 'a'): Uint8Array =>
    record(
      (recorder) => task(recorder, r, 0, { start: 0, end: 10 }),
      testHeader({ rank: r, ranks, run }),
    );

  test('missing ranks give a partial result that names them', () => {
    const trace = loadTrace([rank(3, 4), rank(1, 4)]);
    expect(trace.tasks.count).toBe(2);
    expect(trace.ranks.map((r) => r.rank)).toEqual([1, 3]);
    expect(trace.problems[0]).toMatch(/ranks 0, 2 of 4 missing/);
  });

  test('the same rank twice, or ranks of different runs, are refused', () => {
    const merge =
      (...files: Uint8Array[]): (() => unknown) =>
      () =>
        loadTrace(files);
    expect(merge(rank(0, 2), rank(0, 2))).toThrow(/both of rank 0/);
    expect(merge(rank(0, 2), rank(1, 3))).toThrow(/not of the same run/);
    expect(merge(rank(0, 2, 'a'), rank(1, 2, 'b'))).toThrow(/not of the same run/);
    expect(merge()).toThrow(/no trace file/);
  });
});
