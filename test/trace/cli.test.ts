import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { choleskyProgram, simulate, smallMachine } from '../../bench/trace-synthetic.js';
import { resolveTraceFiles } from '../../cli/trace/files.js';
import { runTraceCommand } from '../../cli/trace/index.js';
import { csvTables } from '../../trace/export/index.js';
import { FileSink, rankTracePath } from '../../trace/index.js';
import { type TestContext, testContext } from '../cli/context.js';

let folder: string;
let file: string;
let ranks: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'headrace-trace-cli-'));
  file = join(folder, 'one.hrtrace');
  ranks = join(folder, 'two.hrtrace');
  const one = { ...smallMachine, gpuBytes: 16 * 65536 };
  simulate(choleskyProgram(7, 65536, one), one, [new FileSink(file)]);
  const two = { ...smallMachine, ranks: 2 };
  const sinks = [0, 1].map((rank) => new FileSink(rankTracePath(ranks, rank, 2)));
  simulate(choleskyProgram(6, 65536, two), two, sinks);
  writeFileSync(join(folder, 'foreign.txt'), 'hello');
  writeFileSync(join(folder, 'cut.hrtrace'), readFileSync(file).subarray(0, -5000));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function run(...argv: string[]): Promise<TestContext> {
  const context = testContext();
  expect(await runTraceCommand(argv, context)).toBe(0);
  return context;
}

describe('headrace trace summary', () => {
  test('text has every section', async () => {
    const text = (await run('summary', file)).out();
    for (const words of [
      'cholesky: 84 tasks, 1 rank, simulated time',
      'critical-path bound',
      'area bound',
      'Lanes (share of the makespan)',
      'and its remedies',
      'Task classes',
      'Slowest tasks',
      'Bytes by kind',
      'Moved and required',
      'Evictions',
      'Memory high-water',
      'Communication hidden',
    ]) {
      expect(text).toContain(words);
    }
  });

  test('--json is one object whose lanes add up', async () => {
    const summary = JSON.parse((await run('summary', file, '--json')).out());
    expect(summary).toMatchObject({ tasks: 84, ranks: 1, problems: [] });
    for (const lane of summary.lanes) {
      const idle = Object.values<number>(lane.idle).reduce((sum, part) => sum + part, 0);
      expect(lane.busy + idle).toBe(summary.makespan);
    }
  });

  test('all ranks of a run by the name they were recorded under, or one by one', async () => {
    expect(resolveTraceFiles([ranks])).toEqual([0, 1].map((r) => rankTracePath(ranks, r, 2)));
    const whole = await run('summary', ranks, '--json');
    expect(JSON.parse(whole.out())).toMatchObject({ ranks: 2, tasks: 56 });
    expect(whole.err()).toBe('');
    const half = await run('summary', rankTracePath(ranks, 1, 2));
    expect(half.err()).toMatch(/note: rank 0 of 2 missing/);
    expect(half.out()).toContain('Incomplete:');
  });

  test('a cut file gives a summary that is marked as partial', async () => {
    const context = await run('summary', join(folder, 'cut.hrtrace'));
    expect(context.err()).toMatch(/note: .*cut off/);
    expect(context.out()).toContain('cholesky: ');
  });
});

describe('headrace trace critical-path', () => {
  test('steps, gaps, releases; what-if', async () => {
    const text = (
      await run(
        'critical-path',
        file,
        '--what-if',
        'gemm=free',
        '--what-if',
        'h2d=2',
        '--limit',
        '6',
      )
    ).out();
    expect(text).toMatch(/^Critical path: \d+ steps/);
    expect(text).toMatch(/\.\.\. \d+ more \.\.\./);
    expect(text).toMatch(/What if gemm=free and h2d=2: .* instead of .* x\)/);
    const json = JSON.parse(
      (await run('critical-path', file, '--json', '--what-if', 'network=2')).out(),
    );
    expect(json.whatIf).toMatchObject({ settings: ['network=2'], speedup: 1 });
    expect(json.steps.at(-1).name).toBe('potrf(6)');
  });
});

test('headrace trace diff', async () => {
  const text = (await run('diff', file, ranks)).out();
  expect(text).toMatch(/makespan .*%/);
  expect(text).toContain('Options that differ');
  const same = JSON.parse((await run('diff', file, file, '--json')).out());
  expect(same.makespan.change).toBe(0);
  expect(same.options).toEqual([]);
});

describe('headrace trace export', () => {
  test.each([
    ['perfetto', 'one.perfetto-trace'],
    ['chrome', 'one.json'],
    ['csv', 'one.csv'],
    ['paje', 'one.paje'],
    ['dot', 'one.dot'],
    ['graphlib', 'one.graphlib.json'],
  ])('%s goes to %s by default', async (format, name) => {
    const context = await run('export', file, '--format', format);
    expect(existsSync(join(folder, name))).toBe(true);
    expect(context.err()).toContain(name);
    expect(context.out()).toBe('');
  });

  test('-o, --table, --no-flows', async () => {
    const out = join(folder, 'x.csv');
    for (const table of csvTables) {
      await run('export', file, '--format', 'csv', '--table', table, '-o', out);
      expect(readFileSync(out, 'utf8')).toMatch(/^rank,/);
    }
    await run('export', file, '--format', 'chrome', '-o', join(folder, 'flows.json'));
    await run('export', file, '--format', 'chrome', '--no-flows', '-o', join(folder, 'plain.json'));
    const size = (name: string): number => readFileSync(join(folder, name)).length;
    expect(size('plain.json')).toBeLessThan(size('flows.json'));
  });

  test('never writes over the trace', async () => {
    await expect(run('export', file, '-o', file)).rejects.toThrow(/would overwrite/);
  });
});

describe('headrace trace html and view', () => {
  test('html writes one file', async () => {
    const out = join(folder, 'page.html');
    await run('html', file, '-o', out);
    expect(readFileSync(out, 'utf8')).toMatch(/^<!doctype html>/);
  });

  test('view serves the page on the loopback address until interrupted, to local names only', async () => {
    const context = testContext();
    const ended = runTraceCommand(['view', file, '--no-open'], context);
    let address = '';
    for (let tries = 0; tries < 200 && address === ''; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      address = /^(http:\/\/127\.0\.0\.1:\d+\/)\n/.exec(context.out())?.[1] ?? '';
    }
    const status = (
      path: string,
      headers: Record<string, string> = {},
    ): Promise<[number, string]> =>
      new Promise((resolve, reject) => {
        get(address + path, { headers, agent: false }, (response) => {
          let text = '';
          response.on('data', (part: Buffer) => {
            text += part.toString('latin1');
          });
          response.on('end', () => resolve([response.statusCode ?? 0, text]));
        }).on('error', reject);
      });
    const [code, page] = await status('');
    expect(code).toBe(200);
    expect(page).toMatch(/^<!doctype html>/);
    expect((await status('other'))[0]).toBe(404);
    expect((await status('', { host: 'evil.example' }))[0]).toBe(403);
    context.interrupt();
    expect(await ended).toBe(0);
    await expect(status('')).rejects.toThrow();
  });
});

describe('wrong command lines', () => {
  test.each([
    [[], /a trace subcommand is needed/],
    [['sumary', 'x'], /did you mean summary/],
    [['summary'], /a trace file is needed/],
    [['diff', 'a'], /2 trace files are needed/],
    [['diff', 'a', 'b', 'c'], /unexpected argument "c"/],
    [['summary', 'x', '--jsn'], /unknown option --jsn, did you mean --json/],
    [['export', 'x', '--format', 'perfeto'], /--format expects .* did you mean perfetto/],
    [['export', 'x', '--format', 'csv', '--table', 'rows'], /--table expects tasks or/],
    [['export', 'x', '--limit', '-1'], /limit/],
    [['critical-path', 'x', '--limit', 'many'], /--limit expects a whole number/],
    [['view', 'x', '--port', '70000'], /--port expects/],
  ] as [string[], RegExp][])('%j is a usage error', async (argv, words) => {
    const error = await runTraceCommand(argv, testContext()).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'ERR_USAGE' });
    expect((error as Error).message).toMatch(words);
  });

  test('an unknown class in a what-if is one too', async () => {
    await expect(run('critical-path', file, '--what-if', 'gem=2')).rejects.toMatchObject({
      code: 'ERR_USAGE',
    });
  });

  test('files that are no traces fail with the code of the trace room', async () => {
    await expect(run('summary', join(folder, 'foreign.txt'))).rejects.toMatchObject({
      code: 'ERR_TRACE_FOREIGN',
    });
    await expect(run('summary', join(folder, 'absent.hrtrace'))).rejects.toMatchObject({
      code: 'ERR_TRACE_READ',
    });
  });

  test('--help of everything', async () => {
    for (const name of ['summary', 'critical-path', 'diff', 'export', 'view', 'html']) {
      expect((await run(name, '--help')).out()).toContain(`usage: headrace trace ${name}`);
    }
    expect((await run('--help')).out()).toContain('usage: headrace trace <subcommand>');
  });
});

describe('a trace that takes its time to read', () => {
  const terminal = { isTTY: true, env: { TERM: 'xterm' } };

  test('is shown on a terminal, and the bar leaves nothing behind', async () => {
    const context = testContext(terminal);
    expect(await runTraceCommand(['summary', file], context)).toBe(0);
    expect(context.err()).toMatch(/read traces {2}\[/);
    expect(context.err().endsWith('\r\u001b[2K')).toBe(true);
    const quiet = testContext(terminal);
    await runTraceCommand(['summary', file, '--json'], quiet);
    expect(quiet.err()).toBe('');
  });

  test.each(['summary', 'critical-path', 'html', 'export'])(
    '%s looks for signals while it reads',
    async (command) => {
      const context = testContext(terminal);
      let looked = 0;
      const out = join(folder, `interrupted-${command}`);
      const words = command === 'html' || command === 'export' ? ['-o', out] : [];
      const interrupted = runTraceCommand([command, file, ...words], {
        ...context,
        checkSignals: () => {
          if (++looked === 2) context.interrupt();
        },
      });
      await expect(interrupted).rejects.toMatchObject({ name: 'AbortError' });
      expect(looked).toBe(2);
      expect(context.out()).toBe('');
      expect(existsSync(out)).toBe(false);
    },
  );
});
