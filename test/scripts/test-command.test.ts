// The test command counts correctly after a crash, an unloadable file, and a type error.
import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { suites } from '../../scripts/lib/suites.mjs';
import {
  countProgram,
  countVitest,
  formatCounts,
  formatProblems,
  formatSkips,
  sumCounts,
} from '../../scripts/lib/test-report.mjs';

const project = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

/** False for a process that has ended, also while nobody has collected its exit code. */
function isRunning(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

describe('suites', () => {
  it('have every test file, each once', () => {
    const files = readdirSync(path.join(project, 'test'), { recursive: true, encoding: 'utf8' })
      .map((file) => `test/${file}`)
      .filter((file) => /\.test(-d)?\.ts$/.test(file));
    const owners = files.map((file) => {
      const names = Object.entries(
        suites as Record<string, { folders?: string[]; ending?: string }>,
      )
        .filter(
          ([, { folders = [], ending = '' }]) =>
            file.endsWith(ending) && folders.some((folder) => file.startsWith(`${folder}/`)),
        )
        .map(([name]) => name);
      return names.length === 1 ? '' : `${file} is in ${names.length} suites`;
    });
    expect(files.length).toBeGreaterThan(100);
    expect(owners.filter((problem) => problem !== '')).toEqual([]);
  });
});

describe('counting', () => {
  it('counts a missing report, an unloadable file and a crashed worker as failures', () => {
    expect(countVitest(undefined, 0)).toMatchObject({ passed: 0, failed: 1 });
    const unloadable = {
      testResults: [{ name: 'a', status: 'failed', message: 'm', assertionResults: [] }],
    };
    expect(countVitest(unloadable, 1)).toMatchObject({ failed: 1, problems: ['a: m'] });
    const passed = {
      testResults: [{ name: 'a', status: 'passed', assertionResults: [{ status: 'passed' }] }],
    };
    expect(countVitest(passed, 0)).toMatchObject({ passed: 1, failed: 0 });
    expect(countVitest(passed, 1)).toMatchObject({ passed: 1, failed: 1 });
    expect(countVitest({ testResults: [] }, 0)).toMatchObject({ failed: 1 });
  });

  const MPI = { id: 'openmpi', what: 'Open MPI', remedy: 'get it' };
  const reportOf = (...assertionResults: object[]) => ({
    testResults: [{ name: 'a', status: 'passed', assertionResults }],
  });

  it('counts one that never ended as failed, and one skipped without a reason', () => {
    const statuses = ['skipped', 'pending', 'todo', 'passed'];
    const counts = countVitest(
      reportOf(...statuses.map((status) => ({ status, fullName: status }))),
      0,
    );
    expect(formatCounts(counts)).toBe('tests: 1 passed, 3 failed, 0 skipped');
    expect(counts.problems).toContain('todo: was skipped without a reason');
  });

  it('counts a test whose need is not met as skipped, unless it is required here', () => {
    const report = reportOf({ status: 'skipped', fullName: 'x', meta: { needs: MPI } });
    const counts = countVitest(report, 0);
    expect(counts).toMatchObject({ failed: 0, skipped: 1, problems: [] });
    expect(counts.skips).toEqual([{ ...MPI, count: 1 }]);
    const required = countVitest(report, 0, { required: ['openmpi'] });
    expect(required).toMatchObject({ failed: 1, skipped: 0 });
    expect(required.problems).toEqual(['x: needs Open MPI, which is required here']);
    expect(countVitest(report, 0, { required: ['chromium'] })).toMatchObject({ skipped: 1 });
  });

  it('needs no reason if the arguments chose some of the tests', () => {
    const report = reportOf({ status: 'skipped', fullName: 'x', meta: {} });
    expect(countVitest(report, 0, { isPartial: true })).toMatchObject({ failed: 0, skipped: 1 });
  });

  it('adds up skips by reason, most first', () => {
    const needs = (what: string, times: number) =>
      Array.from({ length: times }, () => ({
        status: 'skipped',
        fullName: what,
        meta: { needs: { ...MPI, what } },
      }));
    const sum = sumCounts([
      countVitest(reportOf(...needs('a', 1)), 0),
      countVitest(reportOf(...needs('b', 2), ...needs('a', 11)), 0),
      countProgram(
        'x\n  (left out here: needs a real GPU)\ntests: 1 passed, 0 failed, 1 skipped',
        0,
      ),
    ]);
    expect(formatSkips(sum)).toBe(
      'skipped tests by reason:\n      12  needs a; to get it: get it\n       2  needs b; to get it: get it\n       1  needs a real GPU\n',
    );
    expect(formatSkips(sumCounts([]))).toBe('');
  });

  it('says at the end what failed, with the beginning of each message', () => {
    const failureMessages = [`expected 1\nto be 2\n${'    at x\n'.repeat(20)}`];
    const failing = reportOf({ status: 'failed', fullName: 'sum of two', failureMessages });
    const text = formatProblems(sumCounts([countVitest(failing, 1)]));
    expect(text).toMatch(
      /^what failed:\n {2}sum of two: expected 1\n {4}to be 2\n( {8}at x\n){10}$/,
    );
    expect(formatProblems(sumCounts([]))).toBe('');
  });

  it('reads the counts of a program and does not believe zero failures with a bad exit code', () => {
    expect(countProgram('x\ntests: 3 passed, 0 failed\n', 0)).toMatchObject({
      passed: 3,
      failed: 0,
      skipped: 0,
    });
    // Two are skipped, one says why.
    const unexplained = '  (left out here: needs x)\ntests: 3 passed, 0 failed, 2 skipped\n';
    expect(countProgram(unexplained, 0)).toMatchObject({ skipped: 2, failed: 1 });
    expect(countProgram('tests: 3 passed, 0 failed\n', 139)).toMatchObject({
      passed: 3,
      failed: 1,
    });
    expect(countProgram('', 134)).toMatchObject({ failed: 1 });
    const found =
      'x\nSUMMARY: ThreadSanitizer: data race a.cpp:1 in f()\nSUMMARY: ThreadSanitizer: data race a.cpp:1 in f()\n';
    expect(countProgram('tests: 3 passed, 0 failed\n', 66, found).problems).toEqual([
      'exit code 66 although no test failed\nSUMMARY: ThreadSanitizer: data race a.cpp:1 in f()',
    ]);
    expect(countProgram('', 1, 'rings.cpp:12: not true: a == b\n').problems).toEqual([
      'no counts were printed (exit code 1)\nrings.cpp:12: not true: a == b',
    ]);
    expect(countProgram('', 0)).toMatchObject({ failed: 1 });
  });
});

describe('the command on a project of its own', () => {
  let root: string;

  beforeAll(() => {
    // Inside the checkout's cache folder, so that package names resolve.
    mkdirSync(path.join(project, '.cache'), { recursive: true });
    root = mkdtempSync(path.join(project, '.cache', 'test-command-'));
    symlinkSync(path.join(project, 'node_modules'), path.join(root, 'node_modules'));
    const write = (file: string, text: string) => {
      mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
      writeFileSync(path.join(root, file), text);
    };
    write('package.json', '{"type":"module"}');
    write(
      'tsconfig.json',
      '{"compilerOptions":{"module":"nodenext","strict":true,"types":["node"],"skipLibCheck":true},"include":["test"]}',
    );
    write(
      'vitest.config.ts',
      `import base from ${JSON.stringify(path.join(project, 'vitest.config.ts'))};\nexport default base;\n`,
    );
    const imports = "import { expect, expectTypeOf, it } from 'vitest';\n";
    write(
      'test/cli/good.test.ts',
      `${imports}const needs = { id: 'x', what: 'a thing', remedy: 'get it' };
it('a', () => {}); it('b', { skip: true, meta: { needs } }, () => {}); it.skip('c', () => {});\n`,
    );
    write(
      'test/cli/crash.test.ts',
      `${imports}it('d', () => { process.kill(process.pid, 'SIGKILL'); });\n`,
    );
    write(
      'test/native/unloadable.test.ts',
      `${imports}import './gone.js';\nit('e', () => { expect(1).toBe(1); });\n`,
    );
    write(
      'test/types/wrong.test-d.ts',
      `${imports}it('f', () => { expectTypeOf<string>().toEqualTypeOf<number>(); });\n`,
    );
    write(
      'test/types/right.test-d.ts',
      `${imports}it('g', () => { expectTypeOf<string>().toEqualTypeOf<string>(); });\n`,
    );
    write('build-tests/headrace_tests', '#!/bin/sh\necho "tests: 5 passed, 0 failed"\n');
    write('native/test/main.cpp', '');
    execFile('chmod', ['+x', path.join(root, 'build-tests/headrace_tests')]);
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  let seconds = 120;

  function command(...suites: string[]): Promise<{ code: number; last: string; output: string }> {
    const env: NodeJS.ProcessEnv = {
      ...process.env,
      HEADRACE_TEST_ROOT: root,
      HEADRACE_TEST_SECONDS: String(seconds),
    };
    for (const name of Object.keys(env))
      if (/^VITEST|^TEST$|^NODE_ENV$/.test(name)) delete env[name];
    return new Promise((resolve) => {
      const script = path.join(project, 'scripts/test.mjs');
      const child = execFile(
        process.execPath,
        [script, ...suites],
        { env },
        (error, stdout, stderr) => {
          const last = stdout.trimEnd().split('\n').at(-1) ?? '';
          resolve({ code: error === null ? 0 : Number(error.code), last, output: stdout + stderr });
        },
      );
      child.stdin?.end();
    });
  }

  it('counts passed and skipped tests, a crashed worker and a native program', async () => {
    const { code, last, output } = await command('unit', 'cpp');
    expect(last, output).toBe('tests: 6 passed, 2 failed, 1 skipped');
    expect(output).toContain('c: was skipped without a reason');
    expect(output).toContain(
      'skipped tests by reason:\n       1  needs a thing; to get it: get it\nwhat failed:\n',
    );
    expect(code).toBe(1);
  });

  it('fails on a file that cannot be loaded', async () => {
    const { code, last, output } = await command('native');
    expect(last, output).toBe('tests: 0 passed, 1 failed, 0 skipped');
    expect(code).toBe(1);
  });

  it('fails on a type error in a type test', async () => {
    const { code, last, output } = await command('types');
    expect(last, output).toBe('tests: 1 passed, 1 failed, 0 skipped');
    expect(code).toBe(1);
  });

  it('ends a suite stuck in native code, with its workers, and counts it as failed', async () => {
    const pidFile = path.join(root, 'pid');
    const stuck = path.join(root, 'test/native/stuck.test.ts');
    // Blocks the thread itself, as a deadlock between native threads does.
    writeFileSync(
      stuck,
      `import { writeFileSync } from 'node:fs';
       import { it } from 'vitest';
       it('h', () => {
         writeFileSync(${JSON.stringify(pidFile)}, String(process.pid));
         Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
       });`,
    );
    try {
      // The limit begins with the start of the command: a longer one if the test had not begun within it.
      let ended = { code: 0, last: '', output: '' };
      for (seconds = 5; !existsSync(pidFile) && seconds < 100; seconds *= 2)
        ended = await command('native');
      const { code, last, output } = ended;
      expect(last, output).toBe('tests: 0 passed, 1 failed, 0 skipped');
      expect(output).toContain('it did not end in time');
      expect(code).toBe(1);
      const pid = Number(readFileSync(pidFile, 'utf8'));
      await vi.waitFor(() => expect(isRunning(pid)).toBe(false), 10_000);
    } finally {
      seconds = 120;
      rmSync(stuck);
    }
  }, 180_000);

  it('exits with 0 when everything passes and with 2 for an unknown suite', async () => {
    expect(await command('cpp')).toMatchObject({
      code: 0,
      last: 'tests: 5 passed, 0 failed, 0 skipped',
    });
    expect(await command('unknown')).toMatchObject({ code: 2 });
  });
});
