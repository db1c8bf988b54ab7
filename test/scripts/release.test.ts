// The checks of a release detect the defects that they look for.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OLDEST_GLIBC, PLATFORMS } from '../../native/installation.js';
import {
  checkContents,
  compare,
  linesFor,
  modules,
  pattern,
} from '../../scripts/release/contents.mjs';
import { packedManifest } from '../../scripts/release/manifest.mjs';
import { platforms, released } from '../../scripts/release/platforms.mjs';
import { isNewer, limits, needsOf, problemsOf } from '../../scripts/release/symbols.mjs';
import { checkVariables } from '../../scripts/release/variables.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

describe('contents', () => {
  const list = `# thing
package.json
dist/*.js
dist/*.d.ts
`;
  let folder: string;
  const write = (file: string, text: string): void => {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    writeFileSync(path.join(folder, file), text);
  };
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'headrace-contents-'));
    const exported = { types: './dist/index.d.ts', default: './dist/index.js' };
    write(
      'package.json',
      JSON.stringify({
        name: 'thing',
        exports: { '.': exported, './package.json': './package.json' },
        bin: { thing: './dist/main.js' },
      }),
    );
    write('dist/index.js', "export * from './a.js';\n");
    write('dist/index.d.ts', "export * from './a.js';\n");
    write('dist/a.js', "const worker = new URL('./worker.js', import.meta.url);\n");
    write('dist/a.d.ts', "export type { B } from './b.js';\n");
    write('dist/b.js', 'export {};\n');
    write('dist/b.d.ts', 'export interface B {}\n');
    write('dist/worker.js', '');
    write('dist/main.js', "import './index.js';\n");
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('finds every module of the command line, those included that only a process or a thread loads', () => {
    const { absent, unused } = modules(root);
    expect(absent).toEqual([]);
    expect(unused.filter((file: string) => /^dist\/cli\/.*\.js$/.test(file))).toEqual([]);
  });

  it('accepts a package whose files are all listed and used', () => {
    expect(checkContents(folder, list)).toEqual([]);
  });

  it('notices a module that nothing public uses', () => {
    write('dist/only-tests.js', 'export const x = 1;\n');
    expect(checkContents(folder, list)).toEqual([
      'dist/only-tests.js is in the package, but nothing public uses it',
    ]);
  });

  it('notices a module that is imported and was left out', () => {
    rmSync(path.join(folder, 'dist/a.js'));
    expect(checkContents(folder, list)).toContain(
      'dist/index.js imports dist/a.js, which is not in the package',
    );
    rmSync(path.join(folder, 'dist'), { recursive: true });
    expect(checkContents(folder, list)).toContain(
      'dist/*.js is on the list, but no such file is in the package',
    );
  });

  it('notices a file that is not on the list, in any folder', () => {
    write('test/a.test.js', '');
    write('dist/deep/c.js', '');
    expect(compare(['package.json', 'test/a.test.js', 'dist/deep/c.js'], ['package.json'])).toEqual(
      [
        'test/a.test.js is in the package, but not on the list',
        'dist/deep/c.js is in the package, but not on the list',
      ],
    );
  });

  it('reads patterns and the parts of the list', () => {
    expect(pattern('dist/*.js').test('dist/a.js')).toBe(true);
    expect(pattern('dist/*.js').test('dist/a/b.js')).toBe(false);
    expect(pattern('dist/**/*.js').test('dist/a.js')).toBe(true);
    expect(pattern('dist/**/*.js').test('dist/a/b/c.js')).toBe(true);
    expect(pattern('a.js').test('axjs')).toBe(false);
    const real = read('scripts/release/contents.txt');
    for (const { manifest } of platforms()) {
      expect(linesFor(real, manifest.name)).toContain('headrace.node');
    }
    expect(linesFor(real, 'headrace').some((line: string) => /test|bench|stub/.test(line))).toBe(
      false,
    );
  });
});

describe('symbols', () => {
  const symbols = `
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.34) dlsym
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.36) arc4random
0000000000000000  w   DF *UND*  0000000000000000 (GLIBCXX_3.4.31) _ZNSt5thing
00000000000a3b10 g    DF .text  0000000000000012  Base        napi_register_module_v1
`;
  it('names the symbols that are too new, and libraries that are not everywhere', () => {
    const needs = needsOf('  NEEDED               libc.so.6\n  NEEDED   libmpi.so.40\n', symbols);
    expect(problemsOf(needs)).toEqual([
      'it needs libmpi.so.40, which not every system with Node has',
      'arc4random needs GLIBC_2.36, promised is 2.34',
      '_ZNSt5thing needs GLIBCXX_3.4.31, promised is 3.4.30',
    ]);
  });

  it('compares versions by their numbers', () => {
    expect(isNewer('2.4', '2.34')).toBe(false);
    expect(isNewer('2.100', '2.34')).toBe(true);
    expect(isNewer('3.4.30', '3.4.30')).toBe(false);
    expect(isNewer('3.4.30.1', '3.4.30')).toBe(true);
  });

  it('names the variables of an addon that users are not told of', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'headrace-addon-'));
    const file = path.join(folder, 'an.node');
    try {
      writeFileSync(file, '\x7fELF\0HEADRACE_BLAS\0HEADRACE_WITHOUT\0');
      const told = 'it reads HEADRACE_WITHOUT, which docs/installation.md does not list';
      expect(checkVariables(file)).toEqual([told]);
      writeFileSync(file, '\x7fELF\0HEADRACE_BLAS\0');
      expect(checkVariables(file)).toEqual([]);
      writeFileSync(file, '');
      expect(checkVariables(file)).toHaveLength(1);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('promises in every place the same', () => {
    expect(limits.GLIBC).toBe(OLDEST_GLIBC);
    expect(read('README.md')).toContain(`glibc ${limits.GLIBC} or newer`);
    expect(read('docs/installation.md')).toContain(`glibc ${limits.GLIBC}`);
    expect(read('docs/installation.md')).toContain(`GLIBCXX_${limits.GLIBCXX}`);
    for (const name of readdirSync(path.join(root, 'npm'))) {
      expect(read(`npm/${name}/README.md`)).toContain(`glibc ${limits.GLIBC} or newer`);
    }
  });
});

describe('manifests', () => {
  const text = read('package.json');

  it('the packed one has the platform packages of its version; the clone gets its text back', () => {
    const packed = packedManifest(text, released(), ['dist/cli/soak.js']);
    expect(JSON.parse(packed).optionalDependencies).toEqual({
      '@headrace/linux-x64': JSON.parse(text).version,
    });
    expect(JSON.parse(packed).files).toContain('!dist/cli/soak.js');
    expect(packedManifest(packed, [], [])).toBe(text);
  });

  it('every platform has a template that the loader knows', () => {
    expect(platforms().map(({ name }: { name: string }) => name)).toEqual([...PLATFORMS].sort());
    const { version, engines } = JSON.parse(text);
    for (const { name, manifest } of platforms()) {
      const [os, cpu] = name.split('-');
      expect(manifest).toMatchObject({
        name: `@headrace/${name}`,
        version,
        engines,
        os: [os],
        cpu: [cpu],
        libc: ['glibc'],
      });
    }
  });

  it('a package has no script that runs when it is installed', () => {
    const { scripts, dependencies } = JSON.parse(text);
    expect(Object.keys(scripts)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(pre|post)?install$|^prepare$/)]),
    );
    expect(Object.keys(dependencies)).toEqual(['@dagrejs/graphlib', 'eventemitter3']);
  });
});
