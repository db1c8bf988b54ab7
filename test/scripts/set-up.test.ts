// The set-up on a small project of its own: the steps that run, the steps that are skipped, and the messages.
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  excerpt,
  isInstalledAsLocked,
  nodeProblem,
  orphans,
  setUp,
  toolProblem,
} from '../../scripts/lib/set-up.mjs';
import {
  ensureSystemPackage,
  installCommand,
  isDebian,
} from '../../scripts/lib/system-packages.mjs';

let root: string;
let bin: string;
/** Whether cmake finds MPI. */
let hasMpi: boolean;
let said: string[];
let calls: string[];
/** Programs that fail, by the first word of their call. */
let failing: Map<string, number>;

const debian = 'ID=debian\nVERSION_ID="12"\n';

function write(file: string, text: string): void {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  writeFileSync(path.join(root, file), text);
}

function program(name: string): void {
  writeFileSync(path.join(bin, name), '#!/bin/sh\nexit 0\n');
  chmodSync(path.join(bin, name), 0o755);
}

/** Stands in for npm, cmake-js, tsc and apt-get: notes the call and leaves what the real one would. */
async function fakeRun(command: string, args: string[]) {
  const text = [command, ...args].join(' ');
  const name = ['cmake-js', 'tsc', 'apt-get', 'npm'].find((word) => text.includes(word)) ?? text;
  const key =
    name === 'apt-get' || name === 'cmake-js'
      ? `${name} ${args[name === 'apt-get' ? 0 : 1]}`
      : name;
  calls.push(command === 'cmake' ? `cmake ${args[0]}` : key);
  const left = failing.get(key) ?? 0;
  if (left > 0) {
    failing.set(key, left - 1);
    return { code: 1, signal: null, output: `${key} says no\n`, stdout: '' };
  }
  if (name === 'npm') mkdirSync(path.join(root, 'node_modules'), { recursive: true });
  if (key === 'cmake-js build') write('build/Release/headrace.node', 'binary');
  if (command === 'cmake' && args[0] === '--build') {
    for (const file of ['headrace_gpu_tests', 'headrace_gpu_bench'].concat(
      ['cuda', 'hip', 'nvrtc', 'blas', ...(hasMpi ? ['mpi_aware'] : [])].map(
        (part) => `libstub_${part}.so`,
      ),
    ))
      write(`build-stubs/Release/${file}`, 'binary');
  }
  if (name === 'tsc') write('dist/cli/main.js', 'compiled');
  return { code: 0, signal: null, output: '', stdout: '' };
}

function run(options: Record<string, unknown> = {}): Promise<void> {
  return setUp({
    root,
    say: (line: string) => said.push(line),
    env: { PATH: bin, HEADRACE_NO_SYSTEM_INSTALL: '1', LD_LIBRARY_PATH: bin },
    run: fakeRun,
    isRoot: false,
    osRelease: debian,
    ...options,
  });
}

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'headrace-set-up-'));
  bin = path.join(root, '..', `${path.basename(root)}-bin`);
  mkdirSync(bin);
  hasMpi = false;
  said = [];
  calls = [];
  failing = new Map();
  for (const name of ['cmake', 'g++', 'make', 'npm', 'apt-get']) program(name);
  writeFileSync(path.join(bin, 'libopenblas.so.0'), '');
  write('package-lock.json', '{"packages":{}}');
  write('CMakeLists.txt', 'project(x)');
  write('native/src/a.cpp', 'int a;');
  write('native/contract.ts', 'export const a = 1;');
  write('native/loader.ts', 'export const b = 1;');
  write('cli/main.ts', 'export {};');
  write('tsconfig.json', '{}');
  write('tsconfig.build.json', '{"include":["cli","native"]}');
});

afterEach(() => {
  rmSync(root, { recursive: true, force: true });
  rmSync(bin, { recursive: true, force: true });
});

describe('steps', () => {
  it('runs every step on a fresh clone and nothing, silently, afterwards', async () => {
    await run();
    expect(calls).toEqual(['npm', 'cmake-js configure', 'cmake-js build', 'tsc']);
    said = [];
    calls = [];
    await run();
    expect(calls).toEqual([]);
    expect(said).toEqual([]);
  });

  it('builds natively again only when native sources or the contract change', async () => {
    await run();
    calls = [];
    write('native/src/a.cpp', 'int b;');
    await run();
    expect(calls).toEqual(['cmake-js configure', 'cmake-js build']);
    calls = [];
    write('native/contract.ts', 'export const a = 2;');
    await run();
    expect(calls).toEqual(['cmake-js configure', 'cmake-js build', 'tsc']);
    calls = [];
    write('native/loader.ts', 'export const b = 2;');
    await run();
    expect(calls).toEqual(['tsc']);
  });

  it('configures and builds again when an MPI library arrives', async () => {
    await run();
    for (const name of ['mpicc', 'mpicc.mpich']) {
      calls = [];
      program(name);
      await run();
      expect(calls).toEqual(['cmake-js configure', 'cmake-js build']);
    }
    calls = [];
    await run();
    expect(calls).toEqual([]);
  });

  it('builds the stub drivers when asked, and again when MPI arrives or they are gone', async () => {
    const stub = (name: string) => path.join(root, 'build/Release', `libstub_${name}.so`);
    const building = ['cmake -S', 'cmake --build'];
    await run();
    expect(existsSync(stub('cuda'))).toBe(false);
    calls = [];
    await run({ stubs: true });
    expect(calls).toEqual(building);
    expect(existsSync(stub('cuda'))).toBe(true);
    expect(existsSync(stub('mpi_aware'))).toBe(false);
    calls = [];
    await run({ stubs: true });
    expect(calls).toEqual([]);
    hasMpi = true;
    program('mpicc');
    await run({ stubs: true });
    expect(calls).toEqual(['cmake-js configure', 'cmake-js build', ...building]);
    expect(existsSync(stub('mpi_aware'))).toBe(true);
    calls = [];
    rmSync(stub('cuda'));
    await run({ stubs: true });
    expect(calls).toEqual(building);
  });

  it('builds again when an output is gone or a source was removed', async () => {
    await run();
    calls = [];
    rmSync(path.join(root, 'build/Release/headrace.node'));
    rmSync(path.join(root, 'native/loader.ts'));
    await run();
    expect(calls).toEqual(['cmake-js configure', 'cmake-js build', 'tsc']);
  });

  it('installs again when the lock file changes, unless npm already did so by hand', async () => {
    await run();
    calls = [];
    write('package-lock.json', '{"packages":{"node_modules/x":{"version":"1.0.0"}}}');
    write('node_modules/.package-lock.json', '{"packages":{"node_modules/x":{"version":"1.0.0"}}}');
    await run();
    expect(calls).not.toContain('npm');
    write('package-lock.json', '{"packages":{"node_modules/x":{"version":"2.0.0"}}}');
    await run();
    expect(calls).toContain('npm');
  });

  it('does not count an interrupted or failed step as done', async () => {
    failing.set('tsc', 1);
    await expect(run()).rejects.toThrow(/tsc found errors:\ntsc says no/);
    calls = [];
    await run();
    expect(calls).toEqual(['tsc']);
  });

  it('tries a failed native build once more from clean', async () => {
    write('build/CMakeCache.txt', 'of another folder');
    failing.set('cmake-js build', 1);
    await run();
    expect(calls).toEqual([
      'npm',
      'cmake-js configure',
      'cmake-js build',
      'cmake-js configure',
      'cmake-js build',
      'tsc',
    ]);
    expect(existsSync(path.join(root, 'build/CMakeCache.txt'))).toBe(false);
  });

  it('shows the build output when the second attempt fails too', async () => {
    write('build/CMakeCache.txt', '');
    failing.set('cmake-js build', 2);
    await expect(run()).rejects.toThrow(/native build failed:\ncmake-js build says no/);
  });

  it('shows the first and the last lines of a long output', () => {
    const lines = Array.from({ length: 100 }, (_, k) => `line ${k}`);
    expect(excerpt(lines.join('\n'), 4)).toBe('line 0\nline 1\n... (96 lines)\nline 98\nline 99');
    expect(excerpt('a\nb\n', 4)).toBe('a\nb');
  });

  it('finds compiled files whose source is gone', () => {
    write('dist/cli/main.js', '');
    write('dist/cli/main.d.ts.map', '');
    write('dist/cli/old.d.ts', '');
    write('dist/cli/data.json', '');
    expect(orphans(root)).toEqual(['dist/cli/old.d.ts']);
  });
});

describe('missing parts', () => {
  it('names the missing build tools and the command that gets them', async () => {
    rmSync(path.join(bin, 'cmake'));
    rmSync(path.join(bin, 'g++'));
    await expect(run()).rejects.toThrow(
      /cmake and g\+\+ not found on PATH\.\n {2}To get it: sudo apt-get update && sudo apt-get install -y --no-install-recommends cmake g\+\+/,
    );
    expect(toolProblem({ PATH: bin }, true, debian)).toContain(
      'To get it: apt-get update && apt-get install',
    );
  });

  it('refuses a Node that is too old, with a remedy', () => {
    expect(nodeProblem('18.20.1')).toContain('Node 20.19 or newer is needed, this is 18.20.1');
    expect(nodeProblem('20.18.9')).toBeDefined();
    expect(nodeProblem('20.19.0')).toBeUndefined();
    expect(nodeProblem('22.0.0')).toBeUndefined();
  });

  it('names the command for OpenBLAS once, goes on, and stays quiet afterwards', async () => {
    if (existsSync('/lib/x86_64-linux-gnu/libopenblas.so.0')) return; // tested with a stand-in below
    rmSync(path.join(bin, 'libopenblas.so.0'));
    await run();
    expect(said.join('\n')).toContain(
      'sudo apt-get install -y --no-install-recommends libopenblas0-pthread',
    );
    said = [];
    await run();
    expect(said).toEqual([]);
  });

  it('fails when a required package is missing and gives the remedy', async () => {
    await expect(run({ require: ['mpi'] })).rejects.toThrow(
      'Open MPI is required here and is missing',
    );
    expect(said.join('\n')).toContain('libopenmpi-dev openmpi-bin');
    calls = [];
    said = [];
    await run({ want: ['mpi'] });
    expect(said.join('\n')).toContain('runs use one process only');
    expect(calls).toEqual(['npm', 'cmake-js configure', 'cmake-js build', 'tsc']);
    said = [];
    await run({ want: ['mpi'] });
    expect(said).toEqual([]);
  });

  it('compares the installed packages with the lock file, except optional packages', () => {
    const lock = { packages: { '': {}, a: { version: '1' }, b: { version: '1', optional: true } } };
    expect(isInstalledAsLocked(lock, { packages: { a: { version: '1' } } })).toBe(true);
    expect(isInstalledAsLocked(lock, { packages: { a: { version: '2' } } })).toBe(false);
    expect(isInstalledAsLocked(lock, { packages: { b: { version: '1' } } })).toBe(false);
    expect(isInstalledAsLocked(lock, undefined)).toBe(false);
  });
});

describe('system packages', () => {
  const wanted = (present: () => boolean) => ({
    name: 'Thing',
    purpose: 'nothing works',
    packages: ['libthing'],
    isPresent: present,
  });
  const context = (env: Record<string, string> = {}) => ({
    say: (line: string) => said.push(line),
    env: { PATH: bin, ...env },
    isRoot: true,
    osRelease: debian,
    run: fakeRun,
  });

  it('installs as root on Debian and prints it', async () => {
    const outcome = await ensureSystemPackage(
      wanted(() => calls.includes('apt-get install')),
      context(),
    );
    expect(outcome).toBe('installed');
    expect(said.join('\n')).toMatch(
      /running apt-get install .* libthing[\s\S]*HEADRACE_NO_SYSTEM_INSTALL=1/,
    );
  });

  it('fetches the package lists when the first attempt fails', async () => {
    failing.set('apt-get install', 1);
    await ensureSystemPackage(
      wanted(() => calls.length === 3),
      context(),
    );
    expect(calls).toEqual(['apt-get install', 'apt-get update', 'apt-get install']);
  });

  it('continues with the output of apt-get when it cannot be installed', async () => {
    failing.set('apt-get install', 2);
    const outcome = await ensureSystemPackage(
      wanted(() => false),
      context(),
    );
    expect(outcome).toBe('missing');
    expect(said.join('\n')).toContain('apt-get install says no');
  });

  it('installs nothing when it is turned off, when not root, and on other systems than Debian', async () => {
    const never = wanted(() => false);
    await ensureSystemPackage(never, context({ HEADRACE_NO_SYSTEM_INSTALL: '1' }));
    await ensureSystemPackage(never, { ...context(), isRoot: false });
    await ensureSystemPackage(never, { ...context(), osRelease: 'ID=fedora\n' });
    expect(calls).toEqual([]);
    expect(said.filter((line) => line.includes('apt-get install'))).toHaveLength(3);
  });

  it('knows the relatives of Debian', () => {
    const env = { PATH: bin };
    expect(isDebian('ID=ubuntu\nID_LIKE=debian\n', env)).toBe(true);
    expect(isDebian('ID=linuxmint\nID_LIKE="ubuntu debian"\n', env)).toBe(true);
    expect(isDebian('ID=fedora\n', env)).toBe(false);
    expect(installCommand(['a', 'b'], false)).toBe(
      'sudo apt-get install -y --no-install-recommends a b',
    );
  });
});

describe('lock', () => {
  const lockModule = new URL('../../scripts/lib/lock.mjs', import.meta.url).href;

  /** A process that takes the lock, notes begin and end in a file and ends, or is killed inside. */
  function holder(file: string, log: string, killed = false): Promise<number | null> {
    const code = `
      import { appendFileSync } from 'node:fs';
      import { withLock } from ${JSON.stringify(lockModule)};
      await withLock(${JSON.stringify(file)}, async () => {
        appendFileSync(${JSON.stringify(log)}, 'begin\\n');
        if (${killed}) process.kill(process.pid, 'SIGKILL');
        // It keeps the lock for a while, in which the others come.
        await new Promise((resolve) => setTimeout(resolve, 50));
        appendFileSync(${JSON.stringify(log)}, 'end\\n');
      }, { pollMs: 5 });`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: 'inherit',
    });
    return new Promise((resolve) => child.on('close', resolve));
  }

  it('lets one process at a time in and takes over the lock of a dead one', async () => {
    const file = path.join(root, 'lock');
    const log = path.join(root, 'log');
    await holder(file, path.join(root, 'other-log'), true);
    expect(existsSync(file)).toBe(true);
    const codes = await Promise.all(Array.from({ length: 4 }, () => holder(file, log)));
    expect(codes).toEqual([0, 0, 0, 0]);
    expect(readFileSync(log, 'utf8')).toBe('begin\nend\n'.repeat(4));
    expect(existsSync(file)).toBe(false);
  });
});
