// Makes the screenshots of docs/inspecting.md: pages of traces in headless Chromium, one picture per panel.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { commandLine } from './lib/command-line.mjs';
import { compiled } from './lib/compiled.mjs';
import { root } from './lib/prepare.mjs';

const usage = `usage: npm run screenshots -- [options]

Makes the pictures of docs/inspecting.md in Chromium. Installs Chromium if it may install packages.

  --trace FILE    show this trace; default: simulated runs of tiled Cholesky, which are the same everywhere
  --out FOLDER    folder of the pictures (docs/inspecting)
  --help          this text
`;
const { values } = commandLine(usage, { trace: { type: 'string' }, out: { type: 'string' } });
const out = path.resolve(values.out ?? path.join(root, 'docs', 'inspecting'));

const load = await compiled({ require: ['chromium'] });
const { launchChromium } = await load('bench/trace-chromium.js');
const { choleskyProgram, simulateInMemory, smallMachine } = await load('bench/trace-synthetic.js');
const { cropToRuns, loadTrace } = await load('trace/index.js');
const { writePage } = await load('trace/html/index.js');
const { writeTo } = await load('trace/export/index.js');

const browser = await launchChromium();
if (typeof browser === 'string') {
  console.error(`screenshots: ${browser}`);
  process.exit(1);
}
const folder = mkdtempSync(path.join(tmpdir(), 'headrace-screenshots-'));
try {
  mkdirSync(out, { recursive: true });
  const tile = 512 * 512 * 8;
  const machine = { ...smallMachine, gpuBytes: 30 * tile };
  const one = values.trace
    ? cropToRuns(loadTrace(values.trace))
    : loadTrace(simulateInMemory(choleskyProgram(12, tile, machine), machine));
  await panels(one);
  if (!values.trace) {
    const cluster = { ...smallMachine, ranks: 2, gpus: 1, gpuBytes: 60 * tile };
    const two = loadTrace(simulateInMemory(choleskyProgram(10, tile, cluster), cluster));
    await picture(two, 'ranks', async ({ run }) => {
      await run("v.showTab('summary'); v.view.show(v.model.span * 0.2, v.model.span * 0.2)");
    });
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}

async function panels(trace) {
  await picture(trace, 'overview', async () => {});
  await picture(trace, 'zoomed', async ({ run }) => {
    await run('v.view.show(v.model.span * 0.245, v.model.span * 0.05)');
    await run("v.showTab('legend')");
  });
  await picture(trace, 'task', async ({ run }) => {
    await run('v.view.show(v.model.span * 0.22, v.model.span * 0.2)');
    await run(`
      const c = v.model.columns;
      let row = 0;
      const asked = (r) => v.model.predecessors.start[r + 1] - v.model.predecessors.start[r];
      for (let r = 0; r < v.model.tasks; r++) {
        const t = c.tStart[r];
        if (t > v.model.span * 0.27 && t < v.model.span * 0.36 && v.model.transfersOf(r).length > 0 && asked(r) > 1) row = r;
      }
      v.select({ type: 'task', row });`);
  });
  await picture(trace, 'stages', async ({ run }) => {
    await run('v.view.show(v.model.span * 0.86, v.model.span * 0.05); v.toggleStages()');
    await run("v.showTab('legend')");
  });
  await picture(trace, 'critical-path', async ({ run }) => {
    await run('v.view.show(v.model.span * 0.74, v.model.span * 0.26)');
    await run('v.walkPath(v.model.columns.cRow.length - 3)');
  });
  await picture(
    trace,
    'dark',
    async ({ run }) => {
      await run("v.focusClass(v.model.meta.classes.length - 1); v.showTab('summary')");
    },
    'dark',
  );
}

async function picture(trace, name, prepare, colorScheme = 'light') {
  const file = path.join(folder, 'page.html');
  writeTo(file, (output) => writePage(trace, output));
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, colorScheme });
  await page.goto(pathToFileURL(file).href);
  const run = (script) =>
    page.evaluate(`(async () => {
      const v = await window.headrace;
      ${script};
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    })()`);
  await run('');
  await prepare({ page, run });
  const target = path.join(out, `${name}.png`);
  await page.screenshot({ path: target });
  console.log(path.relative(process.cwd(), target));
  await page.close();
}
