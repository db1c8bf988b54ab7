import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Browser, launchChromium, type Page } from '../../bench/trace-chromium.js';
import { choleskyProgram, simulateInMemory, smallMachine } from '../../bench/trace-synthetic.js';
import { criticalPath, summarize } from '../../trace/analysis/index.js';
import { writeToMemory } from '../../trace/export/index.js';
import {
  buildPayload,
  viewerModules,
  viewerProgram,
  viewerStyle,
  writePage,
} from '../../trace/html/index.js';
import { loadTrace, type Trace, taskName } from '../../trace/index.js';
import { chromium, needing } from '../support/needs.js';
import { randomTrace } from './random-traces.js';
import { testHeader, traced } from './support.js';

const viewerFolder = fileURLToPath(new URL('../../trace/viewer/', import.meta.url));
// biome-ignore lint/suspicious/noExplicitAny: the viewer's modules are JavaScript
const viewer = (file: string): Promise<Record<string, any>> =>
  import(pathToFileURL(viewerFolder + file).href);

const machine = { ...smallMachine, gpuBytes: 30 * 65536 };
let trace: Trace;
let folder: string;
beforeAll(() => {
  trace = loadTrace(simulateInMemory(choleskyProgram(10, 65536, machine), machine));
  folder = mkdtempSync(join(tmpdir(), 'headrace-viewer-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('the program of the viewer', () => {
  test('joins all modules, in an order in which nothing is used before it is defined', () => {
    const files = readdirSync(viewerFolder).filter((file) => file.endsWith('.js'));
    expect([...viewerModules].sort()).toEqual(files.sort());
    const before = new Set<string>();
    for (const file of viewerModules) {
      const source = readFileSync(viewerFolder + file, 'utf8');
      for (const [, other] of source.matchAll(/^import [^;]*'\.\/([^']+)';$/gm)) {
        expect(before, `${file} imports ${other}`).toContain(other);
      }
      before.add(file);
    }
  });

  test('parses, has no imports left, and no two modules use one name', () => {
    const program = viewerProgram();
    expect(() => new Function(program)).not.toThrow();
    expect(program).not.toMatch(/^(import|export) /m);
    expect(program).not.toContain('</script');
    const names = viewerModules.flatMap((file) =>
      [
        ...readFileSync(viewerFolder + file, 'utf8').matchAll(
          /^(?:export )?(?:async )?(?:function|class|const|let) (\w+)/gm,
        ),
      ].map((m) => m[1]),
    );
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  test('stays small, and fetches nothing', () => {
    expect(viewerProgram().length + viewerStyle().length).toBeLessThan(80_000);
    expect(viewerProgram()).not.toMatch(/\bfetch\(|XMLHttpRequest|https?:|import\(/);
    expect(viewerStyle()).not.toMatch(/url\(|@import/);
  });

  test('type-checks', () => {
    const tsc = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));
    const { stdout, status } = spawnSync(process.execPath, [tsc, '-p', viewerFolder], {
      encoding: 'utf8',
    });
    expect(stdout).toBe('');
    expect(status).toBe(0);
  }, 60_000);
});

describe('levels of detail', () => {
  test('cover the same time as the slices, whatever is in view and however little may be drawn', async () => {
    const { forEachVisible, makeSeries } = await viewer('detail-levels.js');
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(20), fc.nat(30), fc.nat(4)), { minLength: 1, maxLength: 600 }),
        fc.nat(8000),
        fc.integer({ min: 1, max: 8000 }),
        fc.integer({ min: 2, max: 100 }),
        (slices, from, length, most) => {
          const start = new Uint32Array(slices.length);
          const dur = new Uint32Array(slices.length);
          const key = Uint8Array.from(slices, (slice) => slice[2]);
          let time = 0;
          slices.forEach(([gap, duration], i) => {
            start[i] = time + gap;
            dur[i] = duration;
            time = start[i] + duration;
          });
          const series = makeSeries(start, dur, key, 0, slices.length);
          const to = from + length;
          const seen: [number, number][] = [];
          let filled = 0;
          let visits = 0;
          forEachVisible(
            series,
            from,
            to,
            most,
            (a: number, b: number, _key: number, share: number) => {
              seen.push([a, b]);
              filled += share * (b - a);
              visits++;
            },
          );
          // Every slice in view is inside something visited.
          for (let i = 0; i < slices.length; i++) {
            if (start[i] > to || start[i] + dur[i] < from) continue;
            expect(seen.some(([a, b]) => a <= start[i] && start[i] + dur[i] <= b)).toBe(true);
          }
          // Whole view: filled time is exact.
          if (from === 0 && to >= time)
            expect(filled).toBeCloseTo(
              dur.reduce((sum, d) => sum + d, 0),
              6,
            );
          expect(visits).toBeLessThanOrEqual(Math.max(most, 40) + 10);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('a group shows the key that fills most of it', async () => {
    const { makeSeries } = await viewer('detail-levels.js');
    const n = 64;
    const start = Uint32Array.from({ length: n }, (_, i) => 100 * i);
    const dur = Uint32Array.from({ length: n }, (_, i) => (i % 8 === 3 ? 90 : 10));
    const key = Uint8Array.from({ length: n }, (_, i) => (i % 8 === 3 ? 7 : 1));
    const { levels } = makeSeries(start, dur, key, 0, n);
    expect([...levels[0].key]).toEqual(new Array(8).fill(7));
    expect([...levels[0].filled]).toEqual(new Array(8).fill(160));
  });

  test('the slice at a moment, and near it', async () => {
    const { makeSeries, sliceAt } = await viewer('detail-levels.js');
    const series = makeSeries(
      Uint32Array.of(0, 100, 200),
      Uint32Array.of(50, 50, 50),
      new Uint8Array(3),
      0,
      3,
    );
    expect(
      [10, 60, 60, 149, 300].map((time, i) => sliceAt(series, time, i === 2 ? 15 : 0)),
    ).toEqual([0, -1, 0, 1, -1]);
  });
});

describe('the data of the page', () => {
  // The viewer's own decoder, fed from the payload as the page would.
  // biome-ignore lint/suspicious/noExplicitAny: the viewer's modules are JavaScript
  async function modelOf(which: Trace): Promise<any> {
    const { Model, unpack } = await viewer('model.js');
    const payload = buildPayload(which);
    const columns: Record<string, unknown> = {};
    for (const column of payload.columns()) {
      columns[column.name] = unpack(
        new Uint8Array(gunzipSync(column.bytes)),
        column.type,
        column.delta,
      );
    }
    return new Model(JSON.parse(JSON.stringify(payload.meta)), columns);
  }

  test('times, names and graph of every task survive the way into the viewer', async () => {
    const { taskTimes } = await viewer('explain.js');
    const model = await modelOf(trace);
    const rowOfId = new Map<number, number>();
    for (let row = 0; row < model.tasks; row++) rowOfId.set(model.columns.tId[row], row);
    const { tasks } = trace;
    expect(model.tasks).toBe(tasks.count);
    for (let row = 0; row < tasks.count; row++) {
      const here = rowOfId.get(tasks.id[row])!;
      const times = Object.values(taskTimes(model, here));
      expect(times).toEqual(tasks.times.map((column) => column[row] - trace.start));
      expect(model.taskLane(here)).toBe(tasks.lane[row]);
      const { start, items } = tasks.predecessors;
      const expected = [...items.subarray(start[row], start[row + 1])]
        .map((p) => tasks.id[p])
        .sort();
      const { start: s, items: i } = model.predecessors;
      const actual = [...i.subarray(s[here], s[here + 1])]
        .map((p: number) => model.columns.tId[p])
        .sort();
      expect(actual).toEqual(expected);
    }
    expect(model.taskName(rowOfId.get(0))).toBe('potrf(0)');
    expect([...model.columns.cRow].length).toBe(criticalPath(trace).steps.length);
    const successors = [...model.successors(rowOfId.get(0))].map((row: number) =>
      model.taskName(row),
    );
    expect(successors).toContain('trsm(1, 0)');
  });

  test('long traces use coarser quanta and keep their order', async () => {
    const long = traced((recorder) => {
      for (let id = 0; id < 50; id++) {
        const start = 1000 + id * 1e9;
        recorder.task({
          id,
          taskClass: 0,
          device: 0,
          lane: 0,
          flags: 6,
          releasedBy: 0xffffffff,
          inserted: 1000,
          ready: start,
          alloc: start,
          stageIn: start,
          commIn: start,
          issued: start,
          execStart: start,
          execEnd: start + 5e8,
          stageOut: start + 5e8,
          finalized: start + 5e8,
        });
      }
    });
    const model = await modelOf(long);
    expect(model.meta.quantum).toBe(12);
    expect(model.ns(model.columns.tStart[49])).toBeCloseTo(49e9, -3);
    expect(model.ns(model.columns.tDur[20])).toBeCloseTo(5e8, -3);
  });

  test('random traces, empty ones, and traces with tasks on no lane make a page', async () => {
    await fc.assert(
      fc.asyncProperty(randomTrace, async (random) => {
        const model = await modelOf(random);
        expect(model.tasks).toBe(random.tasks.count);
        expect(model.transfers).toBe(random.transfers.count);
        // The drawn idle time is that of the summary.
        const idle: number = model.columns.iDur.reduce((sum: number, d: number) => sum + d, 0);
        const expected = summarize(random)
          .lanes.flatMap((lane) => Object.values(lane.idle))
          .reduce((sum, part) => sum + part, 0);
        expect(idle).toBe(expected);
      }),
      { numRuns: 50 },
    );
    expect((await modelOf(traced(() => {}))).tasks).toBe(0);
    const stray = await modelOf(
      traced((recorder) =>
        recorder.task({
          id: 1,
          taskClass: 0,
          device: 255,
          lane: 255,
          flags: 6,
          releasedBy: 0xffffffff,
          inserted: 1000,
          ready: 0,
          alloc: 0,
          stageIn: 0,
          commIn: 0,
          issued: 0,
          execStart: 1001,
          execEnd: 1002,
          stageOut: 0,
          finalized: 0,
        }),
      ),
    );
    expect(stray.laneName(stray.taskLane(0))).toBe('no lane');
  });

  test('the sources of inputs and the reasons', async () => {
    const { inputsOf } = await viewer('explain.js');
    const small = loadTrace(
      simulateInMemory(choleskyProgram(4, 65536, smallMachine), smallMachine),
    );
    const model = await modelOf(small);
    const rowOf = (name: string): number => {
      for (let row = 0; row < model.tasks; row++) if (model.taskName(row) === name) return row;
      throw new Error(name);
    };
    const [potrf] = inputsOf(model, rowOf('potrf(0)'));
    expect(potrf).toMatchObject({
      name: 'A(0, 0)',
      bytes: 65536,
      mode: 'read-write',
      from: 'h2d from host (stageIn)',
    });
    expect(potrf.why).toMatch(/only host memory had a valid copy/);
    const syrk = inputsOf(model, rowOf('syrk(1, 0)'));
    const [a10] = syrk;
    expect(a10.name).toBe('A(1, 0)');
    expect(model.taskName(a10.writer)).toBe('trsm(1, 0)');
    expect(a10.from).toMatch(/already on|d2d from/);
  });

  test('tasks without parameters are named after their outputs, and are found by them', async () => {
    const { findTask } = await viewer('search.js');
    const plain = traced((recorder) => {
      recorder.taskClass(0, 'syrk');
      recorder.datum(0, 64, 0, 'A(3, 4)');
      recorder.datum(1, 64, 0, 'B', [5]);
      recorder.access(7, 0, 1);
      recorder.access(7, 1, 3);
      recorder.task({
        id: 7,
        taskClass: 0,
        device: 0,
        lane: 0,
        flags: 6,
        releasedBy: 0xffffffff,
        inserted: 1000,
        ready: 0,
        alloc: 0,
        stageIn: 0,
        commIn: 0,
        issued: 0,
        execStart: 1001,
        execEnd: 1002,
        stageOut: 0,
        finalized: 0,
      });
    });
    const model = await modelOf(plain);
    expect(taskName(plain, 0)).toBe('syrk #7 B(5)');
    expect(model.taskName(0)).toBe('syrk #7 B(5)');
    for (const text of ['A(3, 4)', 'b(5)', '7', 'syrk'])
      expect(findTask(model, text, -1).row).toBe(0);
  });

  test('marks of the ruler differ from their neighbours', async () => {
    const { formatMark, roundStep } = await viewer('format.js');
    expect([0, 0.2e6, 200.1e6].map((ns) => formatMark(ns, 1e5))).toEqual([
      '0 ns',
      '200 us',
      '200.1 ms',
    ]);
    fc.assert(
      fc.property(fc.nat(1e9), fc.double({ min: 1, max: 1e8, noNaN: true }), (from, least) => {
        const step = roundStep(least);
        expect(step).toBeGreaterThanOrEqual(least);
        const first = Math.ceil(from / step) * step;
        const labels = [0, 1, 2, 3].map((i) => formatMark(Math.round(first + i * step), step));
        expect(new Set(labels).size).toBe(4);
      }),
    );
  });

  test('search understands classes, parameters, numbers and data', async () => {
    const { findTask } = await viewer('search.js');
    const model = await modelOf(trace);
    const name = (text: string, after = -1): [string, number] => {
      const { row, count } = findTask(model, text, after);
      return [row < 0 ? '' : model.taskName(row), count];
    };
    expect(name('gemm(6, 3, 1)')).toEqual(['gemm(6, 3, 1)', 1]);
    expect(name('potrf')).toEqual(['potrf(0)', 10]);
    expect(name('POT')).toEqual(['potrf(0)', 10]);
    expect(name('#0')).toEqual(['potrf(0)', 1]);
    expect(name('A(9, 9)')[1]).toBe(10);
    expect(name('nothing')).toEqual(['', 0]);
    expect(name('')).toEqual(['', 0]);
    expect(name('gemm(6, 3', 0)[1]).toBe(3);
  });
});

test('hostile names cannot end the data or the page', () => {
  const evil = '</script><script>alert(1)</script><!--';
  const page = new TextDecoder().decode(
    writeToMemory((output) =>
      writePage(
        traced(
          (recorder) => recorder.taskClass(0, evil),
          testHeader({ program: evil, options: { evil } }),
        ),
        output,
      ),
    ),
  );
  expect(page).not.toContain(evil);
  expect(page.match(/<script/g)!.length).toBe(page.match(/<\/script>/g)!.length);
});

describe('in headless Chromium, from disk', needing(chromium), () => {
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];
  const run = <T>(script: string): Promise<T> =>
    page.evaluate<T>(`(async () => { const v = await window.headrace; ${script} })()`);
  const frame = (): Promise<void> =>
    run('await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));');

  beforeAll(async () => {
    const launched = await launchChromium();
    if (typeof launched === 'string') throw new Error(launched);
    browser = launched;
    const path = join(folder, 'page.html');
    writeFileSync(
      path,
      writeToMemory((output) => writePage(trace, output)),
    );
    page = await browser.newPage({ viewport: { width: 1300, height: 750 } });
    page.on('console', (message: { type(): string; text(): string }) => {
      if (message.type() === 'error' || message.type() === 'warning')
        complaints.push(message.text());
    });
    page.on('pageerror', (error: Error) => complaints.push(String(error)));
    page.on('request', (request: { url(): string }) => {
      if (!request.url().startsWith('file:') && !request.url().startsWith('data:'))
        complaints.push(`fetched ${request.url()}`);
    });
    await page.goto(pathToFileURL(path).href);
    await frame();
  }, 60_000);
  afterAll(async () => {
    await browser.close();
  });

  test('loads and draws: the lanes show the colours of the classes', async () => {
    expect(await run('return v.model.tasks')).toBe(trace.tasks.count);
    expect(await run('return v.drawn')).toBeGreaterThan(0);
    // Colours on the lane of gpu 0: all four classes appear.
    const colours = await run<number>(`
      const row = v.rows.find((r) => r.kind === 'tasks' && r.label === 'compute');
      const image = v.context.getImageData(150, 24 + row.y + 5, v.width - 150, 1).data;
      const seen = new Set();
      for (let i = 0; i < image.length; i += 4) seen.add('#' + [image[i], image[i + 1], image[i + 2]].map((c) => c.toString(16).padStart(2, '0')).join(''));
      return v.theme.classes.slice(0, 4).filter((colour) => seen.has(colour)).length`);
    expect(colours).toBe(4);
  });

  test('finds a task, shows its stages, data and neighbours', async () => {
    await page.press('canvas.timeline', '/');
    await page.fill('#search', 'gemm(5, 3, 1)');
    await page.press('#search', 'Enter');
    const text = (await page.textContent('#panel')) ?? '';
    for (const expected of [
      'gemm(5, 3, 1)',
      'stage-in',
      'Released by',
      'A(5, 1)',
      '64.0 KiB',
      'Why:',
      'Predecessors',
      'Successors',
    ]) {
      expect(text).toContain(expected);
    }
    expect(await page.textContent('#found')).toBe('1 found');
    expect(await page.textContent('#said')).toMatch(/^gemm\(5, 3, 1\), at .* took/);
  });

  test('walks from task to task with the keyboard, and to the task or copy that released it', async () => {
    const selected = (): Promise<string> =>
      run('return v.state.selected ? v.describe(v.state.selected).split(", at")[0] : ""');
    await page.press('canvas.timeline', 'Escape');
    expect(await selected()).toBe('');
    await page.press('canvas.timeline', 'Enter');
    expect(await selected()).toBe('potrf(0)');
    await page.press('canvas.timeline', 'ArrowRight');
    const second = await selected();
    expect(second).not.toBe('potrf(0)');
    await page.press('canvas.timeline', 'ArrowLeft');
    expect(await selected()).toBe('potrf(0)');
    await page.press('canvas.timeline', 'ArrowDown');
    expect(await selected()).not.toBe('potrf(0)');
    await run('v.search("trsm(1, 0)"); ');
    await page.press('canvas.timeline', 'r');
    expect(await selected()).toBe('potrf(0)');
  });

  test('walks the whole critical path backwards, step by step, by key and by click', async () => {
    const path = criticalPath(trace);
    await page.press('canvas.timeline', 'Escape');
    await page.press('canvas.timeline', '[');
    expect(await run('return v.state.path')).toBe(true);
    for (let step = path.steps.length; step > path.steps.length - 6; step--) {
      expect(await page.textContent('#panel')).toContain(
        `step ${step} of ${path.steps.length} of the critical path`,
      );
      if (step % 2 === 0) await page.press('canvas.timeline', '[');
      else await page.click('#panel .onpath button');
    }
    await run('v.walkPath(0)');
    expect(await page.textContent('#panel')).toContain(`step 1 of ${path.steps.length}`);
    await page.click('#path');
    expect(await run('return v.state.path')).toBe(false);
  });

  test('zooms at the cursor, pans by dragging, fits', async () => {
    await page.press('canvas.timeline', 'Escape');
    await page.press('canvas.timeline', 'f');
    const box = await run<{ left: number; top: number }>(
      'const b = v.canvas.getBoundingClientRect(); return { left: b.left, top: b.top }',
    );
    const at = (x: number): Promise<number> =>
      run(`return v.state.from + (${x} - 150) / (v.width - 150) * (v.state.to - v.state.from)`);
    const before = await at(500);
    await page.mouse.move(box.left + 500, box.top + 200);
    await page.mouse.wheel(0, -600);
    await frame();
    expect(await at(500)).toBeCloseTo(before, -2);
    expect(await run('return v.state.to - v.state.from < 0.6 * v.model.span')).toBe(true);
    const from = await run<number>('return v.state.from');
    await page.mouse.down();
    await page.mouse.move(box.left + 400, box.top + 200);
    await page.mouse.up();
    expect(await run<number>('return v.state.from')).toBeGreaterThan(from);
    await page.press('canvas.timeline', 'f');
    expect(await run('return [v.state.from, v.state.to]')).toEqual([
      0,
      await run('return v.model.span'),
    ]);
  });

  test('a click selects the item under it, and idle time shows its reason', async () => {
    const spot = await run<{ x: number; y: number; name: string }>(`
      const row = v.rows.find((r) => r.kind === 'tasks' && r.label === 'compute' && v.model.laneName(r.index) === 'gpu 1 compute');
      const t = v.series[row.index].tasks;
      const i = t.from + 3;
      const b = v.canvas.getBoundingClientRect();
      const x = 150 + (t.start[i] + t.dur[i] / 2) / v.model.span * (v.width - 150);
      return { x: b.left + x, y: b.top + 24 + row.y + 8 - v.state.scroll, name: v.model.taskName(i) }`);
    await page.mouse.click(spot.x, spot.y);
    expect(await page.textContent('#panel h2')).toBe(spot.name);
    const tip = await run<string>(`
      const row = v.rows.find((r) => r.kind === 'tasks' && r.label === 'worker 0');
      return v.wordsAt(400, 24 + row.y + 20)`);
    expect(tip).toMatch(/no ready task.*Much of this/);
    const memory = await run<string>(`
      const row = v.rows.find((r) => r.kind === 'memory' && v.model.meta.spaces[r.index].name === 'gpu 0');
      return v.wordsAt(600, 24 + row.y + 20)`);
    expect(memory).toMatch(/^[\d.]+ \w+ of [\d.]+ \w+ used: .*(pinned|dirty|clean|arriving)/);
  });

  test('rows grow into free room, and keep their least height without it', async () => {
    const heights = (): Promise<{ rows: number; room: number; task: number }> =>
      run(`
        const last = v.rows.at(-1);
        const task = v.rows.find((r) => r.kind === 'tasks').height;
        return { rows: last.y + last.height, room: v.canvas.clientHeight - 24, task }`);
    const before = await heights();
    await page.setViewportSize({ width: 1300, height: 2400 });
    await frame();
    const tall = await heights();
    expect(tall.task).toBe(52);
    expect(tall.rows).toBeLessThanOrEqual(tall.room);
    await page.setViewportSize({ width: 1300, height: 300 });
    await frame();
    expect((await heights()).task).toBe(26);
    await page.setViewportSize({ width: 1300, height: 750 });
    await frame();
    expect(await heights()).toEqual(before);
  });

  test('stages, classes in focus, dark colours, small windows: nothing breaks', async () => {
    await page.press('canvas.timeline', 'g');
    await frame();
    expect(await run('return v.rows.some((r) => r.kind === "stages")')).toBe(true);
    await page.click('#tab-legend');
    expect(await page.textContent('#panel')).toMatch(/much of this\?.*prefetch/is);
    await page.click('#panel .legend button');
    expect(await run('return v.state.focus.size')).toBe(1);
    await page.emulateMedia({ colorScheme: 'dark' });
    await frame();
    expect(await run('return v.theme.dark && document.documentElement.dataset.theme')).toBe('dark');
    await page.setViewportSize({ width: 500, height: 400 });
    await frame();
    await page.setViewportSize({ width: 1300, height: 750 });
    await page.click('#tab-summary');
    const text = (await page.textContent('#panel')) ?? '';
    for (const expected of [
      'critical-path bound',
      'Idle time',
      'gemm',
      'Memory high-water',
      'moved',
    ])
      expect(text).toContain(expected);
  });

  test('the console stayed empty and nothing was fetched', () => {
    expect(complaints).toEqual([]);
  });
});
