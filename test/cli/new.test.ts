// `headrace new` from the packed package: the project that it makes runs, tests and traces. Nothing is downloaded: the
// package and its dependencies are put where npm would put them.
import { execFile } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../../cli/commands.js';
import { packageVersion } from '../../devices/installation.js';
import { testContext } from './context.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'headrace-new-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const start = promisify(execFile);

/** `npm install` of the packed package in a project, without a registry. */
async function install(project: string): Promise<void> {
  await start('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: root });
  const modules = path.join(project, 'node_modules');
  mkdirSync(path.join(modules, '.bin'), { recursive: true });
  const tarball = path.join(folder, `headrace-${packageVersion()}.tgz`);
  await start('tar', ['-xzf', tarball, '-C', modules]);
  await start('mv', [path.join(modules, 'package'), path.join(modules, 'headrace')]);
  for (const dependency of ['@dagrejs', 'eventemitter3'])
    symlinkSync(path.join(root, 'node_modules', dependency), path.join(modules, dependency));
  const command = path.join(modules, 'headrace', 'dist', 'cli', 'main.js');
  await start('chmod', ['+x', command]);
  symlinkSync(command, path.join(modules, '.bin', 'headrace'));
}

describe('headrace new', () => {
  it('makes a project that runs, tests and traces with the packed package', async () => {
    const project = path.join(folder, 'my-project');
    const context = testContext();
    expect(await runCli(['new', project], context)).toBe(0);
    expect(context.out()).toContain(`  cd ${project}\n  npm install\n  npm start\n`);
    expect(readdirSync(project).sort()).toEqual([
      '.gitignore',
      'package.json',
      'program.js',
      'sums.js',
      'sums.test.js',
    ]);
    await install(project);
    const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...plain } = process.env;
    const addon = path.join(root, 'build', 'Release', 'headrace.node');
    const env = { ...plain, HEADRACE_NATIVE: addon, NO_COLOR: '1' };
    const npm = async (...words: string[]): Promise<string> =>
      (await start('npm', words, { cwd: project, env })).stdout;
    expect(await npm('start')).toContain('200 tasks, total[0] = 4950000\n');
    expect(await npm('test')).toMatch(/pass 2\n[\s\S]*fail 0\n/);
    const traced = await npm('run', 'trace');
    // And up to a hundred that free a block whose tasks are not over.
    expect(traced).toMatch(/^headrace: [23]\d\d tasks, 1 rank$/m);
    expect(traced).toMatch(/^fill +100 /m);
    expect(traced).toMatch(/^add +100 /m);
    await start('npx', ['headrace', 'new', 'inner'], { cwd: project, env });
    const inner = readFileSync(path.join(project, 'inner', 'package.json'), 'utf8');
    expect(JSON.parse(inner)).toMatchObject({
      name: 'inner',
      dependencies: { headrace: `^${packageVersion()}` },
    });
  });

  it('refuses folders with files, and names that a package cannot have; writes nothing then', async () => {
    const full = path.join(folder, 'full');
    mkdirSync(full);
    writeFileSync(path.join(full, 'mine.txt'), 'mine');
    const cases: readonly (readonly [readonly string[], string])[] = [
      [[full], `${full} is not empty: it has mine.txt`],
      [[path.join(full, 'mine.txt')], `${path.join(full, 'mine.txt')} is no folder`],
      [[path.join(full, 'mine.txt', 'x')], 'cannot be written: ENOTDIR'],
      [[path.join(folder, 'Upper')], '"Upper" cannot be the name of the package'],
      [[path.join(folder, 'headrace')], '"headrace" cannot be'],
      [[path.join(folder, '.hidden')], '".hidden" cannot be'],
      [[path.join(folder, 'a b')], '"a b" cannot be'],
      [['/'], '"" cannot be'],
      [[], 'a folder is needed'],
      [['--force', path.join(folder, 'x')], 'unexpected argument "--force"'],
      [[path.join(folder, 'x'), 'y'], 'unexpected argument "y"'],
    ];
    const before = readdirSync(folder);
    for (const [words, message] of cases) {
      const context = testContext();
      expect(await runCli(['new', ...words], context)).toBe(2);
      expect(context.err()).toContain(message);
    }
    expect(readdirSync(folder)).toEqual(before);
    expect(readdirSync(full)).toEqual(['mine.txt']);
  });

  it('takes an empty folder, with a repository too', async () => {
    const empty = path.join(folder, 'empty');
    mkdirSync(path.join(empty, '.git'), { recursive: true });
    expect(await runCli(['new', empty], testContext())).toBe(0);
    expect(JSON.parse(readFileSync(path.join(empty, 'package.json'), 'utf8')).name).toBe('empty');
  });
});
