// `headrace run program` as a process: the program has its arguments, streams, signals and exit code as under node, and
// the options of the command reach the runtimes that it creates.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loaderOptions } from '../../cli/program-loader.js';
import { HeadraceError } from '../../scheduler/errors.js';
import { loadTrace } from '../../trace/index.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const main = path.join(root, 'dist', 'cli', 'main.js');
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'headrace-program-'));
  mkdirSync(path.join(folder, 'node_modules'));
  symlinkSync(root, path.join(folder, 'node_modules', 'headrace'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

/** Starts node in the folder. */
function node(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): { child: ChildProcess; ended: Promise<Ended> } {
  const { NODE_OPTIONS: _, ...plain } = process.env;
  const child = spawn(process.execPath, words, { cwd: folder, env: { ...plain, ...env } });
  let [out, err] = ['', ''];
  child.stdout.on('data', (text) => (out += text));
  child.stderr.on('data', (text) => (err += text));
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal, out, err })),
  );
  return { child, ended };
}

const run = (...words: string[]): Promise<Ended> => node([main, 'run', ...words]).ended;
const write = (name: string, text: string): void => writeFileSync(path.join(folder, name), text);
const traces = (): string[] => readdirSync(folder).filter((name) => name.endsWith('.hrtrace'));

/** The whole traces in the folder, and the number of tasks in each. */
function tasksOf(names: readonly string[]): number[] {
  return names.map((name) => {
    const trace = loadTrace([path.join(folder, name)]);
    expect(trace.problems).toEqual([]);
    return trace.tasks.count;
  });
}

/** A program that runs ten tasks on a runtime with `options`, and then goes on with `then`. */
const program = (then: string, options = ''): string => `
  import { Runtime, task, write } from 'headrace';
  const fill = task({ name: 'fill', flows: { x: write('f64') }, kernel: 'empty' });
  async function ten(options) {
    const runtime = await Runtime.create(options);
    const x = runtime.data('f64', 10);
    await runtime.run((graph) => { for (let i = 0; i < 10; i++) graph.insert(fill, { x }); });
    console.log('gpus', runtime.gpus.length);
    return runtime;
  }
  const runtime = await ten({ workers: 1, ${options} });
  ${then}
`;
const close = 'await runtime.close();';

describe('the program', () => {
  it('has its arguments, its input and its exit code as under node', async () => {
    const text = `
      let input = '';
      for await (const chunk of process.stdin) input += chunk;
      console.log(JSON.stringify([process.argv, input, import.meta.url]));
      process.exitCode = 5;`;
    write('p.mjs', text);
    const words = ['--trace', 'a', '--help', '-n', '--', 'x y'];
    const both = [node(['p.mjs', ...words]), node([main, 'run', './p.mjs', ...words])];
    for (const { child } of both) child.stdin?.end('words');
    const [plain, ours] = await Promise.all(both.map(({ ended }) => ended));
    expect(plain.code).toBe(5);
    expect(ours).toEqual(plain);
  });

  it.each([
    ['ends without closing its runtime', '', 0],
    ['closes its runtime', close, 0],
    ['calls process.exit', 'process.exit(3);', 3],
    ['throws', "throw new Error('mine');", 1],
    ['rejects', "Promise.reject(new Error('mine')); await new Promise(() => {});", 1],
    ['never ends its last await', 'await new Promise(() => {});', 13],
  ])('leaves a whole trace and its exit code when it %s', async (_, then, code) => {
    write('p.mjs', program(then));
    const ended = await run('--trace', 'run.hrtrace', 'p.mjs');
    expect(ended.code).toBe(code);
    expect(traces()).toEqual(['run.hrtrace']);
    expect(tasksOf(traces())).toEqual([10]);
    expect(ended.err).toMatch(/To open the timeline of this run:\n\n.* trace view run\.hrtrace\n/);
    if (code === 1) expect(ended.err).toContain('Error: mine');
  });

  it('says that there is no trace when it creates no runtime', async () => {
    write('p.mjs', "console.log('nothing');");
    expect(await run('--trace', 'run.hrtrace', '--gpus', '2', '--watch', 'p.mjs')).toEqual({
      code: 0,
      signal: null,
      out: 'nothing\n',
      err: 'headrace: the program has written no trace: it created no runtime that takes --trace\n',
    });
  });

  it('has a trace file for each runtime', async () => {
    write('p.mjs', program(`${close} await ten(); await ten({ trace: 'own.hrtrace' });`));
    const { code, err } = await run('--trace', 'run.hrtrace', 'p.mjs');
    expect(code).toBe(0);
    expect(traces().sort()).toEqual(['own.hrtrace', 'run-2.hrtrace', 'run.hrtrace']);
    expect(tasksOf(traces())).toEqual([10, 10, 10]);
    expect(err).toMatch(/trace view run\.hrtrace\n.*trace view run-2\.hrtrace\n/);
  });

  it('gets the options as defaults; its own options win, and a warning names both', async () => {
    write('p.mjs', program(`${close} await (await ten()).close();`, 'gpus: 1'));
    const { code, out, err } = await run('--gpus', '3', 'p.mjs');
    expect([code, out]).toEqual([0, 'gpus 1\ngpus 3\n']);
    expect(err.match(/HEADRACE_OPTION/g)).toHaveLength(1);
    expect(err).toContain("gpus: 1 of the program's own, so HEADRACE_GPUS=3");
    write('same.mjs', program(close, "gpus: 3, driver: 'emulated'"));
    expect(await run('--gpus', '3', '--driver', 'emulated', 'same.mjs')).toMatchObject({
      code: 0,
      err: '',
    });
    write('cuda.mjs', program(close, "driver: 'emulated', gpus: undefined"));
    expect((await run('--driver', 'hip', '--gpus', '2', 'cuda.mjs')).out).toBe('gpus 2\n');
  });

  it('is watched: lines on stderr, the last one with all tasks', async () => {
    write('p.mjs', program(close));
    const { out, err } = await run('--watch', 'p.mjs');
    expect(out).toBe('gpus 0\n');
    expect(err).toMatch(/: 10 of 10 tasks \(100 %\);.*\n$/);
  });

  it('gets the signals, and decides when it ends', async () => {
    write(
      'p.mjs',
      "process.on('SIGTERM', () => process.exit(7)); console.log('on'); setInterval(() => {}, 99);",
    );
    const { child, ended } = node([main, 'run', 'p.mjs']);
    child.stdout?.once('data', () => child.kill('SIGTERM'));
    expect((await ended).code).toBe(7);
    write('q.mjs', "console.log('on'); setInterval(() => {}, 99);");
    const dies = node([main, 'run', 'q.mjs']);
    dies.child.stdout?.once('data', () => dies.child.kill('SIGINT'));
    expect((await dies.ended).code).toBe(130);
  });
});

describe('TypeScript', () => {
  it('is run by Node, or by the tsx of the project; else the error names the remedy', () => {
    const file = path.join(folder, 'p.ts');
    expect(loaderOptions(file, true)).toEqual([]);
    expect(loaderOptions(path.join(folder, 'p.mjs'), false)).toEqual([]);
    expect(() => loaderOptions(file, false)).toThrow(HeadraceError);
    expect(() => loaderOptions(file, false)).toThrow('npm install --save-dev tsx');
  });

  it('runs with the loader of the project, with its arguments', async () => {
    const tsx = path.join(folder, 'node_modules', 'tsx');
    mkdirSync(tsx);
    writeFileSync(path.join(tsx, 'package.json'), '{"type":"module","exports":"./loader.js"}');
    writeFileSync(
      path.join(tsx, 'loader.js'),
      `import { register } from 'node:module'; register('./hooks.js', import.meta.url);`,
    );
    writeFileSync(
      path.join(tsx, 'hooks.js'),
      `import { readFileSync } from 'node:fs';
      import { fileURLToPath } from 'node:url';
      import ts from ${JSON.stringify(path.join(root, 'node_modules/typescript/lib/typescript.js'))};
      const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
      export async function load(url, context, next) {
        if (!url.endsWith('.ts')) return next(url, context);
        const { outputText } = ts.transpileModule(readFileSync(fileURLToPath(url), 'utf8'), { compilerOptions });
        return { format: 'module', source: outputText, shortCircuit: true };
      }`,
    );
    write('p.ts', `${program(close)}\nconsole.log(process.argv[2] as string);`);
    const { code, out } = await run('--gpus', '2', 'p.ts', '--last');
    expect([code, out]).toEqual([0, 'gpus 2\n--last\n']);
  });
});

describe('HEADRACE_TRACE', () => {
  it('traces any process, its worker threads too; %p is the process', async () => {
    write('worker.mjs', program(close));
    write(
      'p.mjs',
      program(`${close}
      const { Worker } = await import('node:worker_threads');
      await new Promise((ended) => new Worker('./worker.mjs').once('exit', ended));
      console.log(process.pid);`),
    );
    const { code, out } = await node(['p.mjs'], { HEADRACE_TRACE: 'of-%p.hrtrace' }).ended;
    expect(code).toBe(0);
    const pid = out.trim().split('\n').at(-1);
    expect(traces().sort()).toEqual([`of-${pid}-thread1.hrtrace`, `of-${pid}.hrtrace`]);
    expect(tasksOf(traces())).toEqual([10, 10]);
  });

  it('traces the algorithms of the command line under that name', async () => {
    const words = ['run', 'cholesky', '--n', '64', '--tile', '32', '--gpus', '1'];
    const { code, out, err } = await node([main, ...words], { HEADRACE_TRACE: 'all.hrtrace' })
      .ended;
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('trace view all.hrtrace');
    expect(traces()).toEqual(['all.hrtrace']);
  });

  it('plays runs that repeat, unless --plans off or HEADRACE_PLANS=off', async () => {
    write(
      'p.mjs',
      `import { Runtime, task, write } from 'headrace';
      const fill = task({ name: 'fill', flows: { x: write('f64') }, kernel: 'empty' });
      const runtime = await Runtime.create({ workers: 1 });
      const x = runtime.data('f64', 10);
      let report;
      for (let step = 0; step < 5; step++)
        report = await runtime.run((graph) => { for (let i = 0; i < 64; i++) graph.insert(fill, { x }); });
      console.log(report.recognition);
      await runtime.close();`,
    );
    expect(await run('p.mjs')).toMatchObject({ code: 0, out: 'played\n' });
    expect(await run('--plans', 'off', 'p.mjs')).toMatchObject({ code: 0, out: 'undefined\n' });
    const byVariable = await node(['p.mjs'], { HEADRACE_PLANS: 'off' }).ended;
    expect(byVariable).toMatchObject({ code: 0, out: 'undefined\n' });
    const wrong = await node(['p.mjs'], { HEADRACE_PLANS: 'on' }).ended;
    expect(wrong.err).toContain("HEADRACE_PLANS must be auto or off, not 'on'");
  });

  it('and HEADRACE_GPUS are refused by name when they are wrong', async () => {
    write('p.mjs', program(close));
    const wrong = await node(['p.mjs'], { HEADRACE_GPUS: 'two' }).ended;
    expect(wrong.err).toContain("HEADRACE_GPUS must be a number of GPUs, not 'two'");
    const nowhere = await run('--trace', 'no/folder/run.hrtrace', 'p.mjs');
    expect(nowhere.code).toBe(1);
    expect(nowhere.err).toContain('ERR_TRACE_WRITE');
  });
});
