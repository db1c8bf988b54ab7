// Checks the one-way street between the rooms (docs/architecture.md): which folder may import from which.
// Also checks that packages imported by name are declared, so that nothing works only by accident.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandLine } from './lib/command-line.mjs';
import { prepare } from './lib/prepare.mjs';
import { listFiles } from './lib/stamp.mjs';
import { typescript } from './lib/typescript.mjs';

const usage = `usage: node scripts/check-rooms.mjs [project folder]

Checks which folder imports from which. Exit code 1 when an import is forbidden.

  --help    this text
`;

/** Room -> rooms it may import. `.` is the package's entry, index.ts. A room may always import itself. */
export const street = {
  '.': ['scheduler', 'devices', 'trace'],
  scheduler: ['stages', 'devices', 'trace'],
  stages: ['devices', 'trace'],
  devices: ['trace'],
  native: [],
  trace: [],
  algorithms: ['scheduler'],
  cli: ['.', 'scheduler', 'devices', 'trace', 'algorithms'],
  examples: ['.', 'scheduler', 'trace', 'algorithms'],
  bench: ['.', 'scheduler', 'stages', 'devices', 'native', 'trace', 'algorithms'],
  test: [
    '.',
    'scheduler',
    'stages',
    'devices',
    'native',
    'trace',
    'algorithms',
    'cli',
    'examples',
    'bench',
    'scripts',
  ],
};

/** The single door to native code: these files, and no others of their room, may import these. */
export const doors = [
  // The port passes on the outcome codes, which are shared with C++ and so defined there.
  { from: 'devices/backend.ts', to: ['native/contract.ts'] },
  { from: 'devices/native-backend.ts', to: ['native/contract.ts', 'native/index.ts'] },
  { from: 'devices/native-network.ts', to: ['native/mpi.ts'] },
  { from: 'devices/installation.ts', to: ['native/installation.ts'] },
];

const sourceEndings = ['.ts', '.mts', '.tsx'];

/** Specifiers of all import and export statements and of `import()` with a literal, with their lines. */
export function importsOf(text) {
  const { importedFiles } = typescript().preProcessFile(text, true, true);
  return importedFiles.map(({ fileName, pos }) => ({
    specifier: fileName,
    line: text.slice(0, pos).split('\n').length,
  }));
}

function roomOf(file) {
  const slash = file.indexOf('/');
  return slash === -1 ? '.' : file.slice(0, slash);
}

/** `@scope/name/deep` -> `@scope/name`. */
function packageOf(specifier) {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
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
      const target = path.posix
        .join(path.posix.dirname(file), specifier)
        .replace(/\.([mc]?)js$/, '.$1ts');
      if (target.startsWith('../')) {
        report(`imports ${specifier}, outside the project`);
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

/** Problems of the whole project. */
export function checkProject(root) {
  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const { include } = JSON.parse(readFileSync(path.join(root, 'tsconfig.json'), 'utf8'));
  const files = listFiles(root, include, (file) =>
    sourceEndings.some((ending) => file.endsWith(ending)),
  );
  const problems = files.flatMap((file) =>
    checkFile(file, readFileSync(path.join(root, file), 'utf8'), manifest),
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
  console.log(`rooms: ${files} files, ${problems.length} forbidden imports`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
