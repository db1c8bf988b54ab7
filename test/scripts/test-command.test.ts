// The test command counts what really happened: a crash, a file that does not load, a type error.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { countProgram, countVitest, formatCounts } from '../../scripts/lib/test-report.mjs';

const project = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

/** False for a process that has ended, also while nobody has collected its exit code. */
function isRunning(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

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

  it('counts skipped and todo tests as skipped, and one that never ended as failed', () => {
    const statuses = ['skipped', 'pending', 'todo', 'passed'];
    const report = {
      testResults: [
        { name: 'a', status: 'passed', assertionResults: statuses.map((status) => ({ status })) },
      ],
    };
    expect(formatCounts(countVitest(report, 0))).toBe('tests: 1 passed, 1 failed, 2 skipped');
  });

  it('reads the counts of a program and does not believe zero failures with a bad exit code', () => {
    expect(countProgram('x\ntests: 3 passed, 0 failed\n', 0)).toMatchObject({
      passed: 3,
      failed: 0,
      skipped: 0,
    });
    expect(countProgram('tests: 3 passed, 0 failed, 2 skipped\n', 0)).toMatchObject({ skipped: 2 });
    expect(countProgram('tests: 3 passed, 0 failed\n', 139)).toMatchObject({
      passed: 3,
      failed: 1,
    });
    expect(countProgram('', 134)).toMatchObject({ failed: 1 });
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
      `${imports}it('a', () => {}); it.skip('b', () => {}); it.todo('c');\n`,
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

  it('counts passed, skipped and todo tests, a crashed worker and a native program', async () => {
    const { code, last, output } = await command('unit', 'cpp');
    expect(last, output).toBe('tests: 6 passed, 1 failed, 2 skipped');
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
    seconds = 4;
    try {
      const { code, last, output } = await command('native');
      expect(last, output).toBe('tests: 0 passed, 1 failed, 0 skipped');
      expect(output).toContain('it did not end in time');
      expect(code).toBe(1);
      const pid = Number(readFileSync(pidFile, 'utf8'));
      await vi.waitFor(() => expect(isRunning(pid)).toBe(false), 3000);
    } finally {
      seconds = 120;
      rmSync(stuck);
    }
  });

  it('exits with 0 when everything passes and with 2 for an unknown suite', async () => {
    expect(await command('cpp')).toMatchObject({
      code: 0,
      last: 'tests: 5 passed, 0 failed, 0 skipped',
    });
    expect(await command('unknown')).toMatchObject({ code: 2 });
  });
});
