// Documentation and comments name files and sections that exist.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { listFiles } from '../../scripts/lib/stamp.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const rooms = [
  'algorithms',
  'bench',
  'cli',
  'devices',
  'docs',
  'examples',
  'native',
  'npm',
  'scheduler',
  'scripts',
  'stages',
  'test',
  'trace',
];
const atTop = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'CMakeLists.txt',
  'index.ts',
  'vitest.config.ts',
  'package.json',
  '.ci/run',
  '.clang-format',
];
const files = [
  ...atTop.filter((file) => existsSync(path.join(root, file))),
  ...listFiles(root, rooms, () => true),
];
const known = new Set(files);
const basenames = new Set(files.map((file) => path.basename(file)));
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const pages = files.filter((file) => file.endsWith('.md'));
const sources = files.filter((file) =>
  /\.(ts|cts|js|mjs|cjs|c|cpp|h|cu|cuh|cmake|sh|css)$|CMakeLists\.txt$|^\.ci\/run$/.test(file),
);

/** The anchor that a heading gets on a page. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[`*_]/g, '')
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .trim()
    .replace(/ /g, '-');
}

function anchorsOf(page: string): Set<string> {
  const text = read(page).replace(/```[\s\S]*?```/g, '');
  return new Set([...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchor(heading)));
}

/** Links of a page that lead nowhere. */
function brokenLinks(page: string): string[] {
  const text = read(page).replace(/```[\s\S]*?```/g, '');
  const broken: string[] = [];
  for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    const [file, section] = target.split('#');
    const at = file === '' ? page : path.normalize(path.join(path.dirname(page), file));
    if (!existsSync(path.join(root, at))) broken.push(target);
    else if (section !== undefined && at.endsWith('.md') && !anchorsOf(at).has(section))
      broken.push(target);
  }
  return broken;
}

/** Names of files as prose writes them: with an ending of ours, and a folder where there is one. */
const FILE_NAME =
  /(?<![\w/.$*{-])((?:\.{1,2}\/)*(?:[\w.-]+\/)*[\w-]+(?:\.[\w-]+)*\.(?:ts|mjs|cpp|h|cu|cuh|cmake|md|sh|svg|css))(?![\w/*])/g;

/** Headers of libraries that comments may name. */
const foreign = new Set(['cuda.h', 'cublas_v2.h', 'cusolverDn.h', 'mpi.h', 'hip_runtime.h']);

/** File names in a text that are neither in the repository nor beside the file that names them. */
function missingFiles(file: string, text: string): string[] {
  const missing: string[] = [];
  for (const [, name] of text.matchAll(FILE_NAME)) {
    const beside = path.normalize(path.join(path.dirname(file), name));
    const fromRoom = path.join(file.split('/')[0], name);
    const found = name.includes('/')
      ? [name, beside, fromRoom, `native/include/${name}`, `native/${name}`].some(
          (at) => known.has(at) || known.has(at.replace(/\.js$/, '.ts')),
        )
      : basenames.has(name);
    if (!found && !foreign.has(name)) missing.push(name);
  }
  return missing;
}

/** The comments of a source file, without code: on lines of their own, behind code, and over several lines. */
function comments(file: string): string {
  const text = read(file);
  if (/\.(cmake|sh)$|CMakeLists\.txt$|^\.ci\/run$/.test(file))
    return (text.match(/(?<=^|\s)#(?=\s).*$/gm) ?? []).join('\n');
  return (text.match(/(?<=^|\s)\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm) ?? []).join('\n');
}

/** Words that pages take from other runtimes and tools. */
const foreignWords =
  /^(STARPU_|starpu_|PARSEC_|parsec_|OMPI_COMM_WORLD_$|OUTPUT$|INOUT$|precede$|execute_task$|worker_client$|get_result$)/;

/** Words in code marks on a page that are in no source. */
function unknownWords(page: string, words: ReadonlySet<string>): string[] {
  const text = read(page).replace(/```[\s\S]*?```/g, '');
  const marked = [...text.matchAll(/`([^`\n]+)`/g)].flatMap(([, code]) => code.match(WORD) ?? []);
  return [...new Set(marked)].filter((word) => !words.has(word) && !foreignWords.test(word));
}

/** Shorter words are letters of formulas. */
const WORD = /(?<!\w)[A-Za-z_]\w{3,}/g;

describe('references', () => {
  test.each(pages)('links of %s lead somewhere', (page) => {
    expect(brokenLinks(page)).toEqual([]);
  });

  test.each(pages)('files named by %s exist', (page) => {
    const written = new Set(
      [...read(page).matchAll(/```js\n\/\/ (\S+)\n/g)].map(([, name]) => name),
    );
    const named = missingFiles(page, read(page).replace(/```[\s\S]*?```/g, ''));
    expect(named.filter((name) => !written.has(name))).toEqual([]);
  });

  test('every hazard that is cited by number is defined in the glossary', () => {
    const defined = new Set(
      [...read('docs/glossary.md').matchAll(/^\| (H\d+) \|/gm)].map((m) => m[1]),
    );
    expect(defined.size).toBe(18);
    const unknown = [...pages, ...sources].flatMap((file) =>
      [...read(file).matchAll(/\bH([1-9]\d?)\b(?!\d)/g)]
        .filter(([name, number]) => Number(number) < 100 && !defined.has(name))
        .map(([name]) => `${file}: ${name}`),
    );
    expect(unknown).toEqual([]);
  });

  test('files named in comments exist', () => {
    const missing = sources.flatMap((file) =>
      missingFiles(file, comments(file)).map((name) => `${file}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  test('functions, options, errors and commands that pages name are in the sources', () => {
    const words = new Set(
      [...sources, 'package.json'].flatMap((file) => read(file).match(WORD) ?? []),
    );
    const names = new Set(files.flatMap((file) => file.match(WORD) ?? []));
    for (const name of names) words.add(name);
    // The history names what was.
    const unknown = pages
      .filter((page) => page !== 'CHANGELOG.md')
      .flatMap((page) => unknownWords(page, words).map((word) => `${page}: ${word}`));
    expect(unknown).toEqual([]);
  });
});
