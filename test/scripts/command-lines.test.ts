// Every script and benchmark prints its usage and refuses unknown words, and package.json calls it in that way.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));

/** Files of a folder that can be started: scripts all, of the benchmarks those that read a command line. */
const programs = [
  ...readdirSync(path.join(root, 'scripts')).filter((name) => /\.(mjs|sh)$/.test(name)),
].map((name) => `scripts/${name}`);
const benchmarks = readdirSync(path.join(root, 'bench'))
  .filter((name) => name.endsWith('.ts') && name !== 'command-line.ts')
  .filter((name) =>
    /commandLine\(|process\.argv\[2\]/.test(readFileSync(path.join(root, 'bench', name), 'utf8')),
  )
  .map((name) => `dist/bench/${name.replace(/\.ts$/, '.js')}`);

function start(file: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(
    file.endsWith('.sh') ? 'bash' : process.execPath,
    [path.join(root, file), ...args],
    { encoding: 'utf8', cwd: root, timeout: 25_000 },
  );
  return { status, stdout, stderr };
}

describe.each([...programs, ...benchmarks])('%s', (file) => {
  it('prints its usage for --help and does nothing else', () => {
    const { status, stdout, stderr } = start(file, '--help');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^usage: |\nusage: /);
    // The usage names a command that starts this file.
    const [, command] = /usage: (.*)/.exec(stdout) as unknown as [string, string];
    const npm = /^npm (?:run )?([\w:]+)/.exec(command)?.[1];
    expect(npm === undefined ? command : scripts[npm]).toContain(file);
  });

  it('refuses an option that it does not have', () => {
    const { status, stdout, stderr } = start(file, '--no-such-option');
    expect(status).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/option/);
  });
});

it('there are benchmarks and scripts to try', () => {
  expect(programs.length).toBeGreaterThanOrEqual(14);
  expect(benchmarks.length).toBeGreaterThanOrEqual(6);
});

it('package.json starts only files that are there', () => {
  const files = Object.values<string>(scripts).flatMap((line) => [
    ...line.matchAll(/(?:scripts|dist)\/[\w/.-]+\.(?:mjs|js|sh)/g),
  ]);
  expect(files.length).toBeGreaterThan(8);
  for (const [file] of files) expect(existsSync(path.join(root, file)), file).toBe(true);
});
