// The one-way street between the rooms, and the check's ability to see every form of import.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { checkCircles, checkFile, checkProject, importsOf } from '../../scripts/check-rooms.mjs';
import { unusedExports } from '../../scripts/lib/unused-exports.mjs';

const manifest = {
  name: 'headrace',
  dependencies: { eventemitter3: '^5' },
  devDependencies: { vitest: '^4' },
};
const check = (file: string, text: string): string[] => checkFile(file, text, manifest);

describe('rooms', () => {
  it.each([
    ['scheduler/a.ts', '../stages/b.js'],
    ['scheduler/deep/a.ts', '../../devices/b.js'],
    ['stages/a.ts', '../trace/b.js'],
    ['devices/a.ts', './b.js'],
    ['devices/native/backend.ts', '../../native/contract.js'],
    ['devices/native/backend.ts', '../../native/index.js'],
    ['algorithms/a.ts', '../scheduler/index.js'],
    ['cli/a.ts', '../index.js'],
    ['test/stages/a.test.ts', '../../native/loader.js'],
    ['index.ts', './scheduler/index.js'],
    ['scheduler/a.ts', 'eventemitter3'],
    ['scheduler/a.ts', 'node:fs'],
    ['test/a.ts', 'vitest'],
    ['examples/a.ts', 'headrace/algorithms'],
  ])('%s may import %s', (file, specifier) => {
    expect(check(file, `import x from '${specifier}';`)).toEqual([]);
  });

  it.each([
    ['stages/a.ts', '../scheduler/b.js', 'scheduler/b.ts'],
    ['devices/a.ts', '../stages/b.js', 'stages/b.ts'],
    ['devices/a.ts', '../native/index.js', 'native/index.ts'],
    ['devices/native/backend.ts', '../../native/other.js', 'native/other.ts'],
    ['trace/a.ts', '../devices/b.js', 'devices/b.ts'],
    ['native/loader.ts', '../trace/b.js', 'trace/b.ts'],
    ['algorithms/a.ts', '../devices/b.js', 'devices/b.ts'],
    ['scheduler/a.ts', '../algorithms/b.js', 'algorithms/b.ts'],
    ['cli/a.ts', '../native/loader.js', 'native/loader.ts'],
    ['scheduler/a.ts', 'vitest', 'vitest'],
    ['scheduler/a.ts', 'fs', 'fs'],
    ['cli/a.ts', '../../elsewhere.js', 'outside the project'],
    ['devices/simulated/machine/a.ts', '../cases/b.js', 'devices/simulated/cases/b.ts'],
    ['scheduler/a.ts', '../devices/simulated/checkers/b.js', 'devices/simulated/checkers/b.ts'],
    ['scheduler/engine/a.ts', './engine.js', 'of which it is a part'],
    ['scheduler/failure/a.ts', '../engine/engine.js', 'of which it is a part'],
  ])('%s may not import %s', (file, specifier, named) => {
    const problems = check(file, `\nimport x from '${specifier}';`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`${file}:2: `);
    expect(problems[0]).toContain(named);
  });

  it('sees every form of import and no comment or string', () => {
    const text = [
      "import a from './1.js';",
      "import type { B } from './2.js';",
      "export * from './3.js';",
      "export type { D } from './4.js';",
      "type E = import('./5.js').E;",
      "const f = await import('./6.js');",
      "import './7.js';",
      "// import x from './no.js';",
      'const s = "import x from \'./no.js\'";',
    ].join('\n');
    expect(importsOf(text)).toEqual(
      [1, 2, 3, 4, 5, 6, 7].map((line) => ({ specifier: `./${line}.js`, line })),
    );
  });

  it('finds circles of more than two files, and of two across rooms', () => {
    const imports = (...names: string[]): string => names.map((n) => `import '${n}';`).join('');
    const texts = new Map([
      ['scheduler/a.ts', imports('./b.js')],
      ['scheduler/b.ts', imports('./c.js', '../stages/alone.js')],
      ['scheduler/c.ts', 'type A = import("./a.js").A;'],
      ['scheduler/pair.ts', imports('./other.js', './a.js')],
      ['scheduler/other.ts', imports('./pair.js')],
      ['stages/alone.ts', imports('./alone-too.js')],
      ['stages/alone-too.ts', imports('../devices/x.js')],
      ['devices/x.ts', imports('../trace/y.js')],
      ['trace/y.ts', imports('../devices/x.js')],
    ]);
    expect(checkCircles(texts)).toEqual([
      '3 files import each other in a circle: scheduler/a.ts, scheduler/b.ts, scheduler/c.ts',
      '2 files import each other in a circle: devices/x.ts, trace/y.ts',
    ]);
  });

  it('finds exports that no other file uses, in modules whose names are not all passed on', () => {
    const sources = new Map([
      ['stages/a.ts', 'export const used = 1;\nexport async function alone() {}\nalone();'],
      ['stages/b.ts', "import { used } from './a.js';\nexport class Shown {}"],
      ['trace/index.ts', "export * from './public.js';"],
      ['trace/public.ts', 'export interface Given {}'],
      ['trace/own.ts', 'export type Hidden = 1;\nexport abstract class Base {}'],
    ]);
    const others = new Map([['docs/page.md', 'A `Shown` is one of these.']]);
    const targetOf = (file: string, specifier: string): string =>
      path.posix.join(path.posix.dirname(file), specifier).replace(/\.js$/, '.ts');
    expect(unusedExports(sources, others, targetOf)).toEqual([
      'stages/a.ts: exports alone, which no other file uses',
      'trace/own.ts: exports Hidden, which no other file uses',
      'trace/own.ts: exports Base, which no other file uses',
    ]);
  });

  it('knows every folder that holds sources', () => {
    expect(check('elsewhere/a.ts', '')[0]).toContain('elsewhere is not a room');
  });

  it('holds for the project as it is', () => {
    const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
    const { files, problems } = checkProject(root);
    expect(problems).toEqual([]);
    expect(files).toBeGreaterThan(10);
  });
});
