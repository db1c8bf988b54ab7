import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { alg, json } from '@dagrejs/graphlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  choleskyProgram,
  randomProgram,
  simulateInMemory,
  smallMachine,
} from '../../bench/trace-synthetic.js';
import { taskGraph } from '../../trace/analysis/index.js';
import { writeDot } from '../../trace/export/dot.js';
import {
  csvTables,
  exportChrome,
  exportCsv,
  exportDot,
  exportGraphlib,
  exportPaje,
  exportPerfetto,
  Output,
  writeTo,
  writeToMemory,
} from '../../trace/export/index.js';
import { assignRows } from '../../trace/export/rows.js';
import { loadTrace, type Trace, TransferReason } from '../../trace/index.js';
import { decodePerfetto } from './decode-perfetto.js';
import { task, testHeader, traced } from './support.js';

const machine = { ...smallMachine, ranks: 2, gpuBytes: 14 * 65536 };
let cholesky: Trace;
let random: Trace;
let folder: string;
beforeAll(() => {
  cholesky = loadTrace(simulateInMemory(choleskyProgram(8, 65536, machine), machine));
  random = loadTrace(simulateInMemory(randomProgram(800, 11, machine), machine));
  folder = mkdtempSync(join(tmpdir(), 'headrace-export-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const textOf = (produce: (output: Output) => void): string =>
  new TextDecoder().decode(writeToMemory(produce));

describe('Perfetto', () => {
  test('the track tree is rank, device, lane and counters, in that order', () => {
    const { tracks } = decodePerfetto(writeToMemory((out) => exportPerfetto(cholesky, out)));
    const path = (id: number): string => {
      const track = tracks.get(id)!;
      return track.parent ? `${path(track.parent)} / ${track.name}` : track.name;
    };
    const paths = [...tracks.keys()].map(path);
    for (const expected of [
      'rank 0 (node0)',
      'rank 1 (node1)',
      'rank 0 (node0) / gpu 1 / gpu 1 from gpu 0',
      'rank 1 (node1) / gpu 0 / gpu 0 compute',
      'rank 1 (node1) / gpu 0 / memory used',
      'rank 0 (node0) / ready tasks',
      'rank 0 (node0) / host / worker 0',
      'rank 0 (node0) / gpu 0 / stages / task 0',
    ]) {
      expect(paths).toContain(expected);
    }
    for (const track of tracks.values()) {
      if (track.parent === undefined) continue;
      expect(tracks.get(track.parent)?.explicit).toBe(true);
      expect(track.order).toBeGreaterThanOrEqual(0);
    }
    const ranks = [...tracks.values()].filter((track) => track.process);
    expect(ranks.map((track) => [track.process!.pid, track.order])).toEqual([
      [1, 0],
      [2, 1],
    ]);
    expect([...tracks.values()].find((track) => track.name === 'memory used')?.counterUnit).toBe(3);
  });

  test.each(['cholesky', 'random'])(
    'every task and transfer of %s is a slice with its times and arguments',
    (which) => {
      const trace = which === 'cholesky' ? cholesky : random;
      const decoded = decodePerfetto(writeToMemory((out) => exportPerfetto(trace, out)));
      const { tasks, transfers } = trace;
      const key = (name: string, start: number, end: number): string => `${name} ${start} ${end}`;
      const expectedTasks = Array.from({ length: tasks.count }, (_, row) =>
        key(
          trace.classes[tasks.taskClass[row]].name,
          tasks.times[6][row] - trace.start,
          tasks.times[7][row] - trace.start,
        ),
      );
      const ofTasks = decoded.slices.filter((slice) => slice.category === 'task');
      expect(ofTasks.map((s) => key(s.name, s.start, s.end)).sort()).toEqual(expectedTasks.sort());
      const byTask = new Map(
        ofTasks.map((slice) => [
          `${decoded.tracks.get(slice.track)!.name} ${slice.args.task}`,
          slice,
        ]),
      );
      for (let row = 0; row < tasks.count; row += 17) {
        const slice = byTask.get(`${trace.lanes[tasks.lane[row]].name} ${tasks.id[row]}`)!;
        expect(slice.args['queue ns'] ?? 0).toBe(tasks.times[6][row] - tasks.times[5][row]);
        expect(slice.args['alloc ns'] ?? 0).toBe(tasks.times[2][row] - tasks.times[1][row]);
      }
      const ofTransfers = decoded.slices.filter((slice) => slice.category === 'transfer');
      expect(ofTransfers.length).toBe(transfers.count);
      expect(ofTransfers.reduce((sum, s) => sum + (s.args.bytes as number), 0)).toBe(
        transfers.bytes.reduce((sum, bytes) => sum + bytes, 0),
      );
      expect(decoded.instants.length).toBe(trace.events.count);
    },
  );

  test('arrows are the dependencies, the messages and the transfers of tasks', () => {
    const decoded = decodePerfetto(writeToMemory((out) => exportPerfetto(cholesky, out)));
    const { predecessors } = taskGraph(cholesky);
    const between = (a: string, b: string): number =>
      decoded.arrows.filter(([from, to]) => from.category === a && to.category === b).length;
    expect(between('task', 'task')).toBe(predecessors.items.length);
    const { transfers } = cholesky;
    const rows = Array.from({ length: transfers.count }, (_, row) => row);
    const messages = rows.filter(
      (row) => transfers.partner[row] >= 0 && transfers.reason[row] === TransferReason.send,
    );
    expect(messages.length).toBeGreaterThan(10);
    expect(between('transfer', 'transfer')).toBe(messages.length);
    const feeding = rows.filter(
      (row) => transfers.task[row] >= 0 && transfers.reason[row] !== TransferReason.send,
    );
    expect(between('transfer', 'task')).toBe(feeding.length);
    for (const [from, to] of decoded.arrows) expect(from.start).toBeLessThanOrEqual(to.start);
  });

  test('stages of a task tile its life and share its correlation id with its kernel', () => {
    const decoded = decodePerfetto(writeToMemory((out) => exportPerfetto(cholesky, out)));
    const stages = new Map<number, number>();
    for (const slice of decoded.slices) {
      if (slice.category !== 'stage') continue;
      stages.set(
        slice.correlation!,
        (stages.get(slice.correlation!) ?? 0) + slice.end - slice.start,
      );
    }
    const { times, count } = cholesky.tasks;
    for (let row = 0; row < count; row++)
      expect(stages.get(row + 1)).toBe(times[9][row] - times[1][row]);
  });

  test('counters carry the samples', () => {
    const { counters, tracks } = decodePerfetto(
      writeToMemory((out) => exportPerfetto(cholesky, out)),
    );
    const used = counters
      .filter((sample) => tracks.get(sample.track)!.name === 'memory used')
      .map((s) => s.value);
    const expected = [...cholesky.counters.kind].flatMap((kind, row) =>
      kind === 0 ? [cholesky.counters.values[6 * row]] : [],
    );
    expect(used.sort()).toEqual(expected.sort());
  });

  test('without flows and stages only slices remain; overlapping transfers of a lane go to sibling tracks', () => {
    const overlapping = traced(
      (recorder) => {
        recorder.transfer({
          kind: 5,
          reason: 5,
          lane: 6,
          source: 255,
          destination: 0,
          task: 0xffffffff,
          datum: 0xffffffff,
          version: 0,
          peer: 1,
          message: 0,
          bytes: 8,
          issued: 1000,
          start: 1000,
          end: 1100,
        });
        recorder.transfer({
          kind: 5,
          reason: 5,
          lane: 6,
          source: 255,
          destination: 0,
          task: 0xffffffff,
          datum: 0xffffffff,
          version: 0,
          peer: 1,
          message: 1,
          bytes: 8,
          issued: 1000,
          start: 1050,
          end: 1150,
        });
        task(recorder, 1, 0, { start: 5, end: 5 });
      },
      testHeader({ ranks: 2 }),
    );
    const decoded = decodePerfetto(
      writeToMemory((out) => exportPerfetto(overlapping, out, { flows: false, stages: false })),
    );
    expect(decoded.arrows).toEqual([]);
    const names = decoded.slices
      .filter((s) => s.category === 'transfer')
      .map((s) => decoded.tracks.get(s.track)!.name);
    expect(names).toEqual(['network', 'network']);
    expect(decoded.slices.some((s) => s.category === 'stage')).toBe(false);
  });
});

test('rows: as few as overlap at one moment', () => {
  const start = Float64Array.of(0, 0, 5, 10, 11);
  const end = Float64Array.of(10, 4, 20, 12, 13);
  expect(assignRows([0, 1, 2, 3, 4], start, end)).toEqual({
    row: Uint16Array.of(0, 1, 1, 0, 2),
    rows: 3,
  });
});

describe('Chrome JSON', () => {
  test('parses; slices do not overlap on a thread; flows start and end inside their slices', () => {
    interface ChromeEvent {
      ph: string;
      pid: number;
      tid: number;
      ts: number;
      dur: number;
      id: number;
      cat: string;
      name: string;
    }
    for (const trace of [cholesky, random]) {
      const { traceEvents } = JSON.parse(textOf((out) => exportChrome(trace, out))) as {
        traceEvents: ChromeEvent[];
      };
      const slices = traceEvents.filter((e) => e.ph === 'X');
      expect(slices.length).toBe(trace.tasks.count + trace.transfers.count);
      const threads = new Map<string, ChromeEvent[]>();
      for (const slice of slices) {
        const key = `${slice.pid}/${slice.tid}`;
        threads.set(key, [...(threads.get(key) ?? []), slice]);
      }
      for (const list of threads.values()) {
        list.sort((a, b) => a.ts - b.ts);
        for (let i = 1; i < list.length; i++)
          expect(list[i].ts).toBeGreaterThanOrEqual(list[i - 1].ts + list[i - 1].dur - 1e-6);
      }
      const inside = (flow: ChromeEvent): boolean =>
        (threads.get(`${flow.pid}/${flow.tid}`) ?? []).some(
          (s) => s.ts <= flow.ts && flow.ts <= s.ts + s.dur,
        );
      const starts = traceEvents.filter((e) => e.ph === 's');
      const ends = traceEvents.filter((e) => e.ph === 'f');
      expect(starts.length).toBeGreaterThan(100);
      expect(new Set(starts.map((e) => `${e.cat}${e.id}`)).size).toBe(starts.length);
      expect(ends.map((e) => `${e.cat}${e.id}`).sort()).toEqual(
        starts.map((e) => `${e.cat}${e.id}`).sort(),
      );
      for (const flow of [...starts, ...ends].slice(0, 400)) expect(inside(flow)).toBe(true);
      expect(traceEvents.filter((e) => e.name === 'thread_name').length).toBeGreaterThanOrEqual(
        trace.lanes.length,
      );
    }
  });
});

describe('CSV', () => {
  const parse = (text: string): string[][] =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/));

  test('every table has one line per row and as many cells as the header', () => {
    const rows = {
      tasks: cholesky.tasks.count,
      transfers: cholesky.transfers.count,
      dependencies: cholesky.tasks.predecessors.items.length,
      accesses: cholesky.tasks.accesses.items.length,
      counters: cholesky.counters.count,
      events: cholesky.events.count,
      stolen: cholesky.stolen.count,
    };
    for (const table of csvTables) {
      const lines = parse(textOf((out) => exportCsv(cholesky, out, table)));
      expect(lines.length).toBe(rows[table] + 1);
      for (const line of lines) expect(line.length).toBe(lines[0].length);
    }
  });

  test('values, with names quoted where they contain commas', () => {
    const [header, first] = parse(textOf((out) => exportCsv(cholesky, out)));
    const cell = (name: string): string => first[header.indexOf(name)];
    expect(cell('class')).toBe('potrf');
    expect(cell('name')).toBe('potrf(0)');
    expect(textOf((out) => exportCsv(cholesky, out))).toContain(',gemm,"gemm(2, 1, 0)",');
    expect(Number(cell('execEnd'))).toBe(cholesky.tasks.times[7][0] - cholesky.start);
  });
});

describe('Paje', () => {
  test('events are in time order, containers and values are defined before use, states fill the lanes', () => {
    const lines = textOf((out) => exportPaje(cholesky, out))
      .trimEnd()
      .split('\n')
      .filter((line) => !line.startsWith('%'));
    const tokens = (line: string): string[] => line.match(/"[^"]*"|\S+/g)!;
    const defined = new Set<string>(['0']);
    let time = 0;
    let states = 0;
    const links = new Map<string, number>();
    for (const line of lines) {
      const t = tokens(line);
      const code = Number(t[0]);
      if (code <= 4) {
        defined.add(t[1]);
        expect(defined.has(t[2])).toBe(true);
      } else if (code === 5) {
        expect(defined.has(t[3]) && defined.has(t[4])).toBe(true);
        defined.add(t[2]);
      } else if (code >= 7) {
        expect(Number(t[1])).toBeGreaterThanOrEqual(time);
        time = Number(t[1]);
        expect(defined.has(t[2]) && defined.has(t[3])).toBe(true);
        if (code === 7) {
          expect(defined.has(t[4])).toBe(true);
          if (/^[ct]\d/.test(t[4])) states++;
        }
        if (code === 9) links.set(t[6], (links.get(t[6]) ?? 0) + 1);
        if (code === 10) links.set(t[6], (links.get(t[6]) ?? 0) - 1);
      }
    }
    expect(states).toBe(cholesky.tasks.count + cholesky.transfers.count);
    expect(links.size).toBeGreaterThan(cholesky.tasks.predecessors.items.length);
    expect([...links.values()].every((open) => open === 0)).toBe(true);
  });
});

describe('graphs', () => {
  test('graphlib reads its JSON back: same tasks, same dependencies, no cycle', () => {
    const graph = json.read(JSON.parse(textOf((out) => exportGraphlib(cholesky, out))));
    const { predecessors } = taskGraph(cholesky);
    expect(graph.nodeCount()).toBe(cholesky.tasks.count);
    expect(graph.edgeCount()).toBe(new Set(edgeKeys(cholesky)).size);
    expect(predecessors.items.length).toBeGreaterThan(100);
    expect(alg.isAcyclic(graph)).toBe(true);
    expect(graph.node('r0t0')).toMatchObject({
      name: 'potrf(0)',
      class: 'potrf',
      rank: 0,
      start: expect.any(Number),
    });
  });

  test('DOT has a box per task and a line per dependency; emphasis marks the path', () => {
    const rows = [0, 1];
    const text = textOf((out) => exportDot(cholesky, out, { emphasised: new Set(rows) }));
    expect(text.startsWith('digraph headrace {')).toBe(true);
    expect(text.match(/\[label=/g)!.length).toBe(cholesky.tasks.count);
    expect(text.match(/ -> /g)!.length).toBe(taskGraph(cholesky).predecessors.items.length);
    expect(text.match(/fillcolor="[^"]+", penwidth=3/g)!.length).toBe(2);
  });

  test('DOT takes any text: quotes and backslashes are the text, not its end', () => {
    const nodes = [{ id: 'a "1" \\', lines: ['x\\n"y"', 'z'], colour: 9 }];
    const edge = { from: 'a "1" \\', to: 'b', label: '"\\', isDashed: true, isEmphasised: true };
    expect(
      textOf((out) => writeDot(out, nodes, [edge]))
        .split('\n')
        .slice(3, 5),
    ).toEqual([
      '  "a \\"1\\" \\\\" [label="x\\\\n\\"y\\"\\nz", fillcolor="#f5cf8e"];',
      '  "a \\"1\\" \\\\" -> "b" [label="\\"\\\\", style=dashed, penwidth=3, color="#c00000"];',
    ]);
  });

  test('large graphs are refused without a limit', () => {
    const many = traced((recorder) => {
      for (let id = 0; id < 5001; id++) task(recorder, id, 0, { start: id, end: id + 1 });
    });
    expect(() => textOf((out) => exportDot(many, out))).toThrow(/5001 tasks.*--limit/);
    expect(textOf((out) => exportDot(many, out, { limit: 10 })).match(/\[label=/g)!.length).toBe(
      10,
    );
  });

  function edgeKeys(trace: Trace): string[] {
    const { start, items } = taskGraph(trace).predecessors;
    const keys: string[] = [];
    for (let row = 0; row < trace.tasks.count; row++) {
      for (let i = start[row]; i < start[row + 1]; i++) keys.push(`${items[i]}>${row}`);
    }
    return keys;
  }
});

describe('output', () => {
  test('texts and bytes of any size arrive in order, in bounded chunks', () => {
    const parts: Uint8Array[] = [];
    const output = new Output((bytes) => parts.push(bytes.slice()), 64);
    const texts = ['a', 'ü'.repeat(21), 'x'.repeat(63), '', 'long '.repeat(50), 'z'];
    for (const text of texts) output.text(text);
    output.raw(new Uint8Array(100).fill(33));
    output.flush();
    expect(Buffer.concat(parts).toString()).toBe(`${texts.join('')}${'!'.repeat(100)}`);
    expect(output.bytes).toBe(Buffer.byteLength(texts.join('')) + 100);
  });

  test('to a file, and the errors of a file', () => {
    const path = join(folder, 'out.csv');
    const bytes = writeTo(path, (out) => exportCsv(cholesky, out));
    expect(readFileSync(path).length).toBe(bytes);
    expect(() => writeTo(join(folder, 'no', 'out.csv'), () => {})).toThrow(/cannot write/);
    expect(() => writeTo('/dev/full', (out) => exportCsv(cholesky, out))).toThrow(
      expect.objectContaining({ code: 'ERR_TRACE_WRITE' }),
    );
  });
});
