// The reason why the addon cannot be loaded, in every state of an installation. The states are made beside a copy of the
// loader, with the layouts of package managers. scripts/release/check.mjs runs the remedies.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkSymbols } from '../../scripts/release/symbols.mjs';
import { linux, needing } from '../support/needs.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const platform = '@headrace/linux-x64';
let project: string;
let installed: string;

const write = (file: string, text: string): void => {
  mkdirSync(path.dirname(path.join(project, file)), { recursive: true });
  writeFileSync(path.join(project, file), text);
};

beforeEach(() => {
  project = mkdtempSync(path.join(tmpdir(), 'headrace installed '));
  installed = path.join(project, 'node_modules', 'headrace');
  const manifest = { name: 'headrace', version: '1.2.3', type: 'module' };
  const optionalDependencies = { [platform]: '1.2.3' };
  write(
    'node_modules/headrace/package.json',
    JSON.stringify({ ...manifest, optionalDependencies }),
  );
  write('node_modules/.bin/headrace', '');
  write('node_modules/.package-lock.json', '{}');
  cpSync(path.join(root, 'dist', 'native'), path.join(installed, 'dist', 'native'), {
    recursive: true,
  });
});
afterEach(() => rmSync(project, { recursive: true }));

/** The platform package as installed, with an addon that fails with those words. */
function platformPackage(version: string, words: string): void {
  const folder = `node_modules/${platform}`;
  write(`${folder}/package.json`, JSON.stringify({ name: platform, version, main: 'addon.js' }));
  write(`${folder}/addon.js`, `throw new Error(${JSON.stringify(words)});`);
}

/** Loads in a process of its own, in the folder `cwd` of the project, after `change` was run. */
function load(change = '', cwd = '.'): { code: string; message: string; remedy: string } {
  const loader = path.join(installed, 'dist/native/index.js');
  const script = `
    Object.defineProperty(process, 'platform', { value: 'linux' });
    Object.defineProperty(process, 'arch', { value: 'x64' });
    process.report.getReport = () => ({ header: { glibcVersionRuntime: '2.36' } });
    ${change}
    try {
      (await import(${JSON.stringify(loader)})).loadNative();
    } catch ({ code, message, remedy }) {
      console.log(JSON.stringify({ code, message, remedy }));
    }`;
  const { HEADRACE_NATIVE: _, ...env } = process.env;
  const text = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: path.join(project, cwd),
    encoding: 'utf8',
    env,
  });
  return JSON.parse(text);
}

describe('an addon that is not there', () => {
  test('the package was left out by npm: npm brings it back, from any folder', () => {
    write('package-lock.json', `{ "packages": { "node_modules/${platform}": {} } }`);
    const error = load();
    expect(error.code).toBe('NATIVE_UNAVAILABLE');
    expect(error.message).toMatch(/the package @headrace\/linux-x64 1\.2\.3 is not installed/);
    expect(error.remedy).toBe('npm install --include=optional');
    mkdirSync(path.join(project, 'src'));
    expect(load('', 'src').remedy).toBe(`cd '${project}' && npm install --include=optional`);
  });

  test('npm could not find the package: build from source', () => {
    write('package-lock.json', '{ "packages": { "node_modules/headrace": {} } }');
    const error = load();
    expect(error.message).toMatch(/npm did not find the package @headrace\/linux-x64 1\.2\.3/);
    expect(error.remedy).toMatch(/npx headrace build$/);
  });

  test('the package was left out by pnpm', () => {
    rmSync(path.join(project, 'node_modules/.package-lock.json'));
    write('node_modules/.modules.yaml', '');
    expect(load().remedy).toBe('pnpm install --force');
  });

  test('another version of the package is there', () => {
    platformPackage('1.2.2', 'never loaded');
    const error = load();
    expect(error.message).toMatch(
      /package @headrace\/linux-x64 1\.2\.3 is needed, and its version is 1\.2\.2/,
    );
    expect(error.remedy).toBe('npm install --include=optional');
  });

  test.each([
    ['another contract', '{ contract: 1 }'],
    ['no contract', '{}'],
  ])('the package has the right version, but %s', (_name, exported) => {
    platformPackage('1.2.3', 'never thrown');
    write(`node_modules/${platform}/addon.js`, `module.exports = ${exported};`);
    const error = load();
    expect(error.code).toBe('NATIVE_UNAVAILABLE');
    expect(error.message).toMatch(
      /@headrace\/linux-x64 1\.2\.3 was built from other sources than this package/,
    );
    expect(error.remedy).toMatch(/npx headrace build$/);
  });

  test('the system is too old for it', () => {
    const words = "/lib/libc.so.6: version `GLIBC_2.34' not found (required by headrace.node)";
    platformPackage('1.2.3', words);
    const error = load(
      "process.report.getReport = () => ({ header: { glibcVersionRuntime: '2.31' } });",
    );
    expect(error.message).toMatch(/needs glibc 2\.34 or newer .*, but this system has glibc 2\.31/);
    expect(error.message).toContain(words);
    expect(error.remedy).toMatch(/npx headrace build$/);
  });

  test('it is there and does not load for another reason', () => {
    platformPackage('1.2.3', 'file too short');
    const error = load();
    expect(error.message).toMatch(
      /the addon of @headrace\/linux-x64 does not load.*file too short/,
    );
    expect(error.remedy).toMatch(/npx headrace build$/);
  });

  test.each([
    ['musl', 'process.report.getReport = () => ({ header: {} });', /musl/, /Debian 12/],
    [
      'a processor without a package',
      "Object.defineProperty(process, 'arch', { value: 'riscv64' });",
      /no built addon for linux-riscv64/,
      /npx headrace build$/,
    ],
    [
      'a processor whose package is prepared only',
      "Object.defineProperty(process, 'arch', { value: 'arm64' });",
      /this version has no package @headrace\/linux-arm64/,
      /npx headrace build$/,
    ],
    [
      'another system',
      "Object.defineProperty(process, 'platform', { value: 'darwin' });",
      /no built addon for darwin/,
      /run it on Linux/,
    ],
  ])('%s', (_name, change, cause, remedy) => {
    const error = load(change);
    expect(error.code).toBe('NATIVE_UNAVAILABLE');
    expect(error.message).toMatch(cause);
    expect(error.remedy).toMatch(remedy);
  });

  test('in a clone the set-up is named, by a command that works from the folder of the process', () => {
    write('node_modules/headrace/scripts/setup.mjs', '');
    expect(load('', 'node_modules/headrace').remedy).toMatch(/npm run setup$/);
    const script = path.join(installed, 'scripts/setup.mjs');
    expect(load().remedy).toContain(`node '${script}'`);
  });
});

test('the addon that is built here needs nothing newer than promised', needing(linux), () => {
  expect(checkSymbols(path.join(root, 'build/Release/headrace.node'))).toEqual([]);
});
