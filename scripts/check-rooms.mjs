// Checks the one-way street between the rooms (docs/architecture.md): a folder imports only from its permitted folders,
// and files do not import each other in circles.
// Also checks that packages imported by name are declared, so that no import works only by accident, and that an export
// has a user in another file.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { circles } from './lib/circles.mjs';
import { commandLine } from './lib/command-line.mjs';
import { prepare } from './lib/prepare.mjs';
import { listFiles } from './lib/stamp.mjs';
import { typescript } from './lib/typescript.mjs';
import { unusedExports } from './lib/unused-exports.mjs';

const usage = `usage: node scripts/check-rooms.mjs [project folder]

Checks that folders import only permitted folders, that no files import each other in a circle, and that other files
use what a file exports. Exit code 1 if there is a problem.

  --help    this text
`;

/**
 * Room -> rooms it may import. `.` is the package's entry, index.ts. A room may always import itself. A folder within a
 * room may be a room of its own: it may be imported only where it is listed.
 */
export const street = {
  '.': ['scheduler', 'devices', 'trace'],
  // What is checked in the simulated machine is the whole engine; its programs and checkers stand above it.
  'devices/simulated/checkers': [
    'devices',
    'stages',
    'scheduler',
    'trace',
    'devices/simulated/cases',
  ],
  'devices/simulated/cases': [
    'devices',
    'stages',
    'scheduler',
    'trace',
    'devices/simulated/checkers',
  ],
  scheduler: ['stages', 'devices', 'trace'],
  stages: ['devices', 'trace'],
  devices: ['trace'],
  native: [],
  trace: [],
  algorithms: ['scheduler'],
  cli: ['.', 'scheduler', 'devices', 'devices/simulated/cases', 'trace', 'algorithms'],
  examples: ['.', 'scheduler', 'trace', 'algorithms'],
  bench: ['.', 'scheduler', 'stages', 'devices', 'native', 'trace', 'algorithms', 'cli'],
  test: [
    '.',
    'scheduler',
    'stages',
    'devices',
    'devices/simulated/cases',
    'devices/simulated/checkers',
    'native',
    'trace',
    'algorithms',
    'cli',
    'examples',
    'bench',
    'scripts',
  ],
};

/** Doors, the one to native code above all: these files, and no others of their room, may import these. */
export const doors = [
  // The port passes on the outcome codes, which are shared with C++ and so defined there.
  { from: 'devices/backend.ts', to: ['native/contract.ts'] },
  { from: 'devices/native/backend.ts', to: ['native/contract.ts', 'native/index.ts'] },
  { from: 'devices/native/description.ts', to: ['native/contract.ts'] },
  { from: 'devices/native/doorbells.ts', to: ['native/contract.ts'] },
  { from: 'devices/native/graphs.ts', to: ['native/contract.ts'] },
  { from: 'devices/native/host-views.ts', to: ['native/contract.ts'] },
  { from: 'devices/native/native-errors.ts', to: ['native/index.ts'] },
  { from: 'devices/native/progress.ts', to: ['native/contract.ts'] },
  { from: 'devices/native/script-server.ts', to: ['native/contract.ts', 'native/index.ts'] },
  { from: 'devices/native/script-workers.ts', to: ['native/contract.ts'] },
  { from: 'devices/native/network.ts', to: ['native/mpi.ts'] },
  { from: 'devices/native/open-network.ts', to: ['native/mpi.ts'] },
  { from: 'devices/installation.ts', to: ['native/installation.ts'] },
  { from: 'devices/launch.ts', to: ['native/launch.ts'] },
  // The list of test suites.
  { from: 'vitest.config.ts', to: ['scripts/lib/suites.mts'] },
];

/** Parts do not know the whole that is made of them: files of these folders may not import this file. */
export const wholes = [
  { whole: 'scheduler/engine/engine.ts', parts: ['scheduler/engine', 'scheduler/failure'] },
];

/** Files that may import each other in a circle. */
const MOST_IN_CIRCLE = 2;

const sourceEndings = ['.ts', '.mts', '.tsx'];

/** Specifiers of all import and export statements and of `import()` with a literal, with their lines. */
export function importsOf(text) {
  const { importedFiles } = typescript().preProcessFile(text, true, true);
  return importedFiles.map(({ fileName, pos }) => ({
    specifier: fileName,
    line: text.slice(0, pos).split('\n').length,
  }));
}

/** The innermost folder that is a room; the top folder where none is. */
function roomOf(file) {
  const folders = path.posix.dirname(file).split('/');
  for (let n = folders.length; n > 1; n--) {
    const room = folders.slice(0, n).join('/');
    if (street[room] !== undefined) return room;
  }
  return folders[0];
}

/** `@scope/name/deep` -> `@scope/name`. */
function packageOf(specifier) {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

/** The file that a relative specifier names. */
function targetOf(file, specifier) {
  return path.posix.join(path.posix.dirname(file), specifier).replace(/\.([mc]?)js$/, '.$1ts');
}

/**
 * Problems of one file.
 *
 * @param {string} file path relative to the project
 * @param {string} text
 * @param {{ name: string, dependencies?: object, devDependencies?: object }} manifest
 * @returns {string[]}
 */
export function checkFile(file, text, manifest) {
  const room = roomOf(file);
  const allowed = street[room];
  if (allowed === undefined)
    return [`${file}: folder ${room} is not a room (scripts/check-rooms.mjs)`];
  const problems = [];
  for (const { specifier, line } of importsOf(text)) {
    const report = (text) => problems.push(`${file}:${line}: ${text}`);
    if (specifier.startsWith('.')) {
      const target = targetOf(file, specifier);
      if (target.startsWith('../')) {
        report(`imports ${specifier}, outside the project`);
        continue;
      }
      const whole = wholes.find((each) => each.whole === target);
      if (whole?.parts.includes(path.posix.dirname(file))) {
        report(`imports ${target}, of which it is a part`);
        continue;
      }
      const targetRoom = roomOf(target);
      if (targetRoom === room || allowed.includes(targetRoom)) continue;
      const door = doors.find(({ from }) => from === file);
      if (door?.to.includes(target)) continue;
      const list = allowed.length === 0 ? 'no other room' : `only ${allowed.join(', ')}`;
      report(`${room} imports ${target}, but may import ${list}`);
    } else if (!specifier.startsWith('node:')) {
      const name = packageOf(specifier);
      if (name === manifest.name && ['examples', 'bench', 'test'].includes(room)) continue;
      if (manifest.dependencies?.[name] !== undefined) continue;
      const isDevelopment = room === 'test' || room === 'bench' || file === 'vitest.config.ts';
      if (isDevelopment && manifest.devDependencies?.[name] !== undefined) continue;
      report(
        `imports package ${name}, which is not declared for this room (node built-ins need node:)`,
      );
    }
  }
  return problems;
}

/**
 * Circles of imports: of more files than may be, or across rooms.
 *
 * @param {Map<string, string>} texts by path relative to the project
 * @returns {string[]}
 */
export function checkCircles(texts) {
  const imports = new Map();
  for (const [file, text] of texts) {
    const targets = importsOf(text)
      .filter(({ specifier }) => specifier.startsWith('.'))
      .map(({ specifier }) => targetOf(file, specifier));
    imports.set(file, targets);
  }
  return circles(imports, 1)
    .filter((files) => files.length > MOST_IN_CIRCLE || new Set(files.map(roomOf)).size > 1)
    .map((files) => `${files.length} files import each other in a circle: ${files.join(', ')}`);
}

/** Problems of the whole project. */
export function checkProject(root) {
  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const { include } = JSON.parse(readFileSync(path.join(root, 'tsconfig.json'), 'utf8'));
  const files = listFiles(root, include, (file) =>
    sourceEndings.some((ending) => file.endsWith(ending)),
  );
  const texts = new Map(files.map((file) => [file, readFileSync(path.join(root, file), 'utf8')]));
  const problems = files.flatMap((file) => checkFile(file, texts.get(file), manifest));
  problems.push(...checkCircles(texts));
  const isOther = (file) => /\.(mjs|cjs|cts|md)$/.test(file);
  const places = ['scripts', 'docs', 'native', 'test', 'README.md', 'CONTRIBUTING.md'];
  const others = listFiles(root, places, isOther);
  problems.push(
    ...unusedExports(
      texts,
      new Map(others.map((file) => [file, readFileSync(path.join(root, file), 'utf8')])),
      targetOf,
    ),
  );
  return { files: files.length, problems };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { positionals } = commandLine(usage, {}, { words: true });
  await prepare({ only: ['dependencies'] });
  const root = path.resolve(
    positionals[0] ?? path.dirname(path.dirname(fileURLToPath(import.meta.url))),
  );
  const { files, problems } = checkProject(root);
  for (const problem of problems) console.log(problem);
  console.log(`rooms: ${files} files, ${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
