// The promises of README and docs: examples run and print the shown output, and the page of errors lists all errors.
// Links: references.test.ts.
import { execFileSync } from 'node:child_process';
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
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { blocks } from '../support/markdown.js';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const text = (page: string): string => readFileSync(path.join(root, page), 'utf8');

/** Runs a snippet in a process of its own, as a user would; returns what it printed. */
function run(code: string, files: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(path.join(root, 'dist', 'snippet-'));
  try {
    const file = path.join(folder, 'snippet.mjs');
    const entry = pathToFileURL(path.join(root, 'dist/index.js')).href;
    const algorithms = pathToFileURL(path.join(root, 'dist/algorithms/index.js')).href;
    for (const [name, text] of Object.entries({ ...files, 'snippet.mjs': code }))
      writeFileSync(
        path.join(folder, name),
        text
          .replaceAll("'headrace'", `'${entry}'`)
          .replaceAll("'headrace/algorithms'", `'${algorithms}'`),
      );
    return execFileSync(process.execPath, [file], {
      encoding: 'utf8',
      timeout: 30_000,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('README', () => {
  test('the example prints the output in its comment', () => {
    const [example] = blocks('README.md', 'js');
    expect(run(example).trim()).toBe('20 11');
  });
  test('the two commands exist', () => {
    const scripts = (JSON.parse(text('package.json')) as { scripts: Record<string, string> })
      .scripts;
    expect(scripts['start']).toContain('run cholesky');
    expect(scripts['test']).toContain('scripts/test.mjs');
  });
});

/** The snippets that are modules of others, by their names. */
function modulesOf(snippets: readonly string[]): Record<string, string> {
  const named = snippets.flatMap((code) => {
    const name = /^\/\/ (\S+\.mjs)$/m.exec(code)?.[1];
    return name === undefined ? [] : [[name, code] as const];
  });
  return Object.fromEntries(named);
}

describe('guide', () => {
  const snippets = blocks('docs/guide.md', 'js');
  const named = modulesOf(snippets);
  const outputs = [
    '3 6',
    '3',
    '0 4 0',
    '28500',
    '1 4 9',
    '4 10 11 12 14 14 15 20',
    '14 26',
    '6',
    '2.000000',
    '',
    '3 1 1 3',
  ];

  test('has as many snippets as outputs are known', () => {
    expect(snippets).toHaveLength(outputs.length);
  });

  test.each(snippets.map((code, i) => [i + 1, code] as const))(
    'snippet %i prints what its comments say',
    (i, code) => {
      expect(run(code, named).trim()).toBe(outputs[i - 1]);
    },
  );
});

describe('algorithms', () => {
  test.each(blocks('docs/algorithms.md', 'js').map((code, i) => [i + 1, code] as const))(
    'snippet %i prints what the comment below its console.log says',
    (_, code) => {
      const promised = [...code.matchAll(/console\.log\(.*\);\n\/\/ (.*)$/gm)].map((m) => m[1]);
      expect(promised.length).toBeGreaterThan(0);
      expect(run(code).trim().split('\n')).toEqual(promised);
    },
  );
});

describe('plans', () => {
  const snippets = blocks('docs/plans.md', 'js');
  const { 'program.mjs': _, ...modules } = modulesOf(snippets);
  const programs = snippets.filter((code) => !Object.values(modules).includes(code));
  test.each(programs.map((code, i) => [i + 1, code] as const))(
    'snippet %i prints what the comments beside its console.log say',
    (_, code) => {
      const promised = [...code.matchAll(/console\.log\(.*\);\s+\/\/ (.*)$/gm)].map((m) => m[1]);
      expect(promised).not.toEqual([]);
      expect(run(code, modules).trimEnd().split('\n')).toEqual(promised);
    },
  );
  test('there are eleven programs, and a module', () => {
    expect(programs).toHaveLength(11);
    expect(snippets).toHaveLength(12);
  });
});

describe('parameterised graphs', () => {
  const snippets = blocks('docs/parameterised-graphs.md', 'js');
  test('there are six snippets', () => {
    expect(snippets).toHaveLength(6);
  });
  test.each([0, 2, 3, 5])('snippet %i prints what the comments beside its console.log say', (i) => {
    const promised = [...snippets[i].matchAll(/console\.log\(.*\);\s+\/\/ (.*)$/gm)].map(
      (m) => m[1],
    );
    expect(promised.length).toBeGreaterThan(1);
    expect(run(snippets[i]).trimEnd().split('\n')).toEqual(promised);
  });
  test('the mistake prints what the comments below its console.log say', () => {
    const promised = [...snippets[1].matchAll(/console\.log\(.*\);\n\/\/ (.*)$/gm)].map(
      (m) => m[1],
    );
    expect(promised).toHaveLength(2);
    expect(run(snippets[1]).trimEnd().split('\n')).toEqual(promised);
  });
  test('the commands print what the page shows', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'headrace-graph-'));
    try {
      mkdirSync(path.join(folder, 'node_modules'));
      symlinkSync(root, path.join(folder, 'node_modules', 'headrace'));
      const name = /^\/\/ (\S+\.mjs)\n/.exec(snippets[4])?.[1] as string;
      writeFileSync(path.join(folder, name), snippets[4]);
      const [commands] = blocks('docs/parameterised-graphs.md', 'sh');
      const lines = commands.trimEnd().split('\n');
      expect(lines).toHaveLength(3);
      const printed = lines.map((line) => {
        const [npx, headrace, ...words] = line.split(' ');
        expect([npx, headrace]).toEqual(['npx', 'headrace']);
        const options = { cwd: folder, encoding: 'utf8', timeout: 20_000 } as const;
        const main = path.join(root, 'dist/cli/main.js');
        return execFileSync(process.execPath, [main, ...words], { ...options, stdio: 'pipe' });
      });
      expect(printed.join('')).toBe(blocks('docs/parameterised-graphs.md', 'text').at(-1));
      const tasks = readFileSync(path.join(folder, 'prefix.dot'), 'utf8');
      expect(tasks.match(/^ {2}"step\(i=\d\)" \[/gm)).toHaveLength(3);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('kernels', () => {
  /** Compiles C example `i` with the command of the page and runs the code that `use` makes of the library's path. */
  function runWith(i: number, use: (library: string) => string): string {
    const folder = mkdtempSync(path.join(root, 'dist', 'kernel-'));
    try {
      const source = path.join(folder, 'scale.c');
      const library = path.join(folder, 'scale.so');
      writeFileSync(source, blocks('docs/kernels.md', 'c')[i]);
      const flags = [
        '-O2',
        '-shared',
        '-fPIC',
        '-Wall',
        '-Werror',
        '-I',
        path.join(root, 'native/include'),
      ];
      execFileSync('cc', [...flags, source, '-o', library]);
      return run(use(JSON.stringify(library)));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  test('the first C example loads, and scales a datum', () => {
    const printed = runWith(
      0,
      (library) => `
        import { readWrite, Runtime, task } from 'headrace';
        const runtime = await Runtime.create({ workers: 1 });
        console.log(runtime.loadKernels(${library}).join());
        const scale = task({ name: 'scale', flows: { x: readWrite('f64') }, params: { factor: 'f64' }, kernel: 'scale' });
        const x = runtime.data(Float64Array.of(1, 2, 3));
        await runtime.run((graph) => { graph.insert(scale, { x, factor: 10 }); });
        console.log((await x.read()).join());
        await runtime.close();`,
    );
    expect(printed).toBe('scale\n10,20,30\n');
  });

  test('the second sums the data of a list, with the class of the page', () => {
    const cls = /`(task\(\{ name: 'sum'.*)`:/.exec(text('docs/kernels.md'))?.[1];
    const printed = runWith(
      1,
      (library) => `
        import { list, read, Runtime, task, write } from 'headrace';
        const runtime = await Runtime.create({ workers: 1 });
        runtime.loadKernels(${library});
        const sum = ${cls};
        const parts = [[1, 2, 3], [4], []].map((values) => runtime.data(Float64Array.of(0, ...values)));
        const to = runtime.data('f64', 1);
        for (const n of [3, 1, 0]) {
          await runtime.run((graph) => { graph.insert(sum, { parts: parts.slice(0, n), to, factor: 10 }); });
          console.log((await to.read())[0]);
        }
        await runtime.close();`,
    );
    expect(printed).toBe('100\n60\n0\n');
  });
});

describe('pages', () => {
  test('docs/errors.md lists exactly the codes the sources raise', () => {
    const rooms = ['scheduler', 'stages', 'devices', 'trace', 'algorithms', 'cli', 'native'];
    const raised = new Set<string>();
    for (const room of rooms) {
      for (const entry of readdirSync(path.join(root, room), {
        recursive: true,
        encoding: 'utf8',
      })) {
        if (!entry.endsWith('.ts') && !entry.endsWith('.js')) continue;
        for (const [, code] of readFileSync(path.join(root, room, entry), 'utf8').matchAll(
          /'(ERR_[A-Z_]+)'/g,
        )) {
          if (!code.startsWith('ERR_PARSE_ARGS') && !code.startsWith('ERR_MODULE'))
            raised.add(code);
        }
      }
    }
    const listed = new Set(
      [...text('docs/errors.md').matchAll(/`(ERR_[A-Z_]+)`/g)].map((m) => m[1]),
    );
    expect([...raised].filter((c) => !listed.has(c)).sort(), 'raised but not listed').toEqual([]);
    expect([...listed].filter((c) => !raised.has(c)).sort(), 'listed but never raised').toEqual([]);
  });
});
