// The cost of analysing a large trace: loading, summary, critical path, exports, writing the page, and the viewer in
// headless Chromium (loading, and panning at several zooms). The trace is synthetic, one million slices by default.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';
import { Causes, criticalPath, summarize, Waits, WhatIfModel } from '../trace/analysis/index.js';
import {
  exportChrome,
  exportCsv,
  exportPaje,
  exportPerfetto,
  writeTo,
} from '../trace/export/index.js';
import { writePage } from '../trace/html/index.js';
import { FileSink, loadTrace, type Trace } from '../trace/index.js';
import type { BenchEntry } from './harness.js';
import { launchChromium } from './trace-chromium.js';
import { randomProgram, simulate, smallMachine } from './trace-synthetic.js';

/** Loading and summing up the trace of a million tasks. */
export function benchSummary(tasks = 1_000_000): BenchEntry[] {
  const folder = mkdtempSync(join(tmpdir(), 'headrace-bench-'));
  try {
    const file = join(folder, 'trace.hrtrace');
    const machine = { ...smallMachine, gpuBytes: 100e6 };
    simulate(randomProgram(tasks, 1, machine), machine, [new FileSink(file)]);
    const begin = performance.now();
    const trace = loadTrace(file);
    summarize(trace, new Waits(trace));
    const value = Math.round(performance.now() - begin);
    const params = { tasks: trace.tasks.count, transfers: trace.transfers.count };
    return [{ name: 'trace/load+summary', value, unit: 'ms', params }];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Measures everything with about `slices` slices (tasks and transfers together). */
export async function benchInspection(slices = 1_000_000): Promise<BenchEntry[]> {
  const folder = mkdtempSync(join(tmpdir(), 'headrace-bench-'));
  try {
    const file = join(folder, 'trace.hrtrace');
    const machine = { ...smallMachine, gpuBytes: 100e6 };
    // A random task causes 1.16 transfers on this machine.
    simulate(randomProgram(Math.round(slices / 2.16), 1, machine), machine, [new FileSink(file)]);
    const figures: BenchEntry[] = [];
    const trace = measure(figures, 'trace/load', () => loadTrace(file));
    const params = { tasks: trace.tasks.count, transfers: trace.transfers.count };
    figures.push({ name: 'trace/file', value: statSync(file).size / 1e6, unit: 'MB', params });
    analysis(figures, trace);
    exports(figures, trace, folder);
    const page = join(folder, 'page.html');
    measure(figures, 'trace/html', () => writeTo(page, (output) => writePage(trace, output)));
    figures.push({ name: 'trace/html/size', value: statSync(page).size / 1e6, unit: 'MB', params });
    figures.push({
      name: 'trace/memory',
      value: process.memoryUsage().rss / 1e6,
      unit: 'MB',
      params: { ...params, what: 'resident memory after all of this' },
    });
    figures.push(...(await viewer(page, params)));
    return figures;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function measure<T>(figures: BenchEntry[], name: string, action: () => T): T {
  const begin = performance.now();
  const result = action();
  figures.push({ name, value: Math.round(performance.now() - begin), unit: 'ms', params: {} });
  return result;
}

function analysis(figures: BenchEntry[], trace: Trace): void {
  const waits = measure(figures, 'trace/waits', () => new Waits(trace));
  measure(figures, 'trace/summary', () => summarize(trace, waits));
  const causes = measure(figures, 'trace/causes', () => new Causes(trace, waits));
  measure(figures, 'trace/critical-path', () => criticalPath(trace, causes));
  const model = measure(figures, 'trace/what-if/build', () => new WhatIfModel(trace, causes));
  measure(figures, 'trace/what-if/evaluate', () => model.evaluate({ h2d: 2 }));
}

function exports(figures: BenchEntry[], trace: Trace, folder: string): void {
  const out = join(folder, 'out');
  const formats = {
    perfetto: exportPerfetto,
    chrome: exportChrome,
    csv: exportCsv,
    paje: exportPaje,
  } as const;
  for (const [name, write] of Object.entries(formats)) {
    measure(figures, `trace/export/${name}`, () => writeTo(out, (output) => write(trace, output)));
  }
}

// Runs in the page: pans back and forth for a while and returns milliseconds per frame, as drawn and as shown.
const pan = `(async (zoom, moves = true) => {
  const v = await window.headrace;
  v.fit();
  v.state.to = v.model.span / zoom;
  v.view.clamp();
  const frames = [];
  const drawn = [];
  let last = performance.now();
  for (let i = 0; i < 120; i++) {
    if (moves) v.pan(i < 60 ? 25 : -25);
    await new Promise((done) => requestAnimationFrame(done));
    await new Promise((done) => setTimeout(done, 0));
    drawn.push(v.lastFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  const at = (list, p) => list.sort((a, b) => a - b)[Math.floor(p * (list.length - 1))];
  return [at(drawn, 0.5), at(drawn, 0.99), at(frames, 0.5), at(frames, 0.99)];
})`;

async function viewer(path: string, params: BenchEntry['params']): Promise<BenchEntry[]> {
  const browser = await launchChromium();
  if (typeof browser === 'string') {
    throw new Error(`the viewer cannot be measured: ${browser}`);
  }
  try {
    const page = await browser.newPage({ viewport: { width: 1600, height: 900 } });
    const figures: BenchEntry[] = [];
    const begin = performance.now();
    await page.goto(pathToFileURL(path).href, { timeout: 120_000 });
    await page.evaluate('window.headrace.then(() => 0)');
    const load = Math.round(performance.now() - begin);
    figures.push({ name: 'trace/viewer/load', value: load, unit: 'ms', params });
    // A frame without drawing costs the browser's and the machine's own time.
    const [, , idle50, idle99] = await page.evaluate<number[]>(`${pan}(1, false)`);
    figures.push({ name: 'trace/viewer/no-pan/frame/p50', value: idle50, unit: 'ms', params });
    figures.push({ name: 'trace/viewer/no-pan/frame/p99', value: idle99, unit: 'ms', params });
    for (const zoom of [1, 10, 100, 1000, 10_000]) {
      const times = await page.evaluate<number[]>(`${pan}(${zoom})`);
      ['draw/p50', 'draw/p99', 'frame/p50', 'frame/p99'].forEach((what, i) => {
        const name = `trace/viewer/pan/${zoom}x/${what}`;
        figures.push({ name, value: times[i], unit: 'ms', params: { ...params, budget: 16.7 } });
      });
    }
    return figures;
  } finally {
    await browser.close();
  }
}
