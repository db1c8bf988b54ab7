// Checks the contents of a tarball: every file is on the list (contents.txt), every line of the list has its files,
// every module is reachable from the package's exports or commands, and every imported module exists. So the package
// contains neither tests nor code that only tests use.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { listFiles } from '../lib/stamp.mjs';

/** `*` matches a part of a name, a leading `**` folder any folders. */
export function pattern(glob) {
  const source = glob
    .split('**/')
    .map((part) => part.split('*').map(literal).join('[^/]*'))
    .join('(?:[^/]+/)*');
  return new RegExp(`^${source}$`);
}

function literal(text) {
  return text.replace(/[.+?^${}()|[\]\\]/g, '\\$&');
}

/** Lines of a list for one package: `# name` begins its part. */
export function linesFor(list, name) {
  const part = list.split(/^# /m).find((text) => text.startsWith(`${name}\n`));
  if (part === undefined) throw new Error(`contents.txt has no part for ${name}`);
  return part
    .split('\n')
    .slice(1)
    .filter((line) => line !== '');
}

/** Differences between files and list. */
export function compare(files, lines) {
  const patterns = lines.map((line) => ({ line, matches: pattern(line) }));
  return [
    ...files
      .filter((file) => !patterns.some(({ matches }) => matches.test(file)))
      .map((file) => `${file} is in the package, but not on the list`),
    ...patterns
      .filter(({ matches }) => !files.some((file) => matches.test(file)))
      .map(({ line }) => `${line} is on the list, but no such file is in the package`),
  ];
}

/** Relative modules that a file names: imports, and strings such as './program.js' that become the URL of one. */
function modulesOf(text) {
  const imported = ts.preProcessFile(text, true, true).importedFiles.map((each) => each.fileName);
  const named = [...text.matchAll(/['"`](\.{1,2}\/[^'"`\s]*\.js)['"`]/g)].map((match) => match[1]);
  return [...new Set([...imported, ...named])].filter((name) => name.startsWith('.'));
}

/** Modules that are reached from `entries`, and modules that are named but absent. */
function reach(folder, entries, ending) {
  const seen = new Set();
  const absent = [];
  const visit = (file, from) => {
    if (seen.has(file)) return;
    if (!existsSync(path.join(folder, file))) {
      absent.push(`${from} imports ${file}, which is not in the package`);
      return;
    }
    seen.add(file);
    for (const name of modulesOf(readFileSync(path.join(folder, file), 'utf8'))) {
      const target = path.posix.join(path.posix.dirname(file), name);
      visit(target.replace(/\.js$/, ending), file);
    }
  };
  for (const entry of entries) visit(entry, 'package.json');
  return { seen, absent };
}

/** A module without code: interfaces only. */
function isEmpty(text) {
  return text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '').trim() === 'export {};';
}

/**
 * Modules below dist that are absent, each with the one that imports it, and modules that nothing public uses.
 *
 * @param {string} folder of the package
 * @returns {{ absent: string[], unused: string[] }}
 */
export function modules(folder) {
  const manifest = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const places = Object.values(manifest.exports ?? {}).filter((each) => typeof each === 'object');
  const clean = (files) => files.map((file) => file.replace(/^\.\//, ''));
  const programs = Object.values(manifest.bin ?? {});
  const code = reach(folder, clean([...places.map((each) => each.default), ...programs]), '.js');
  const types = reach(folder, clean(places.map((each) => each.types)), '.d.ts');
  const unused = listFiles(folder, ['dist'], (file) => /\.(js|d\.ts)$/.test(file)).filter(
    (file) => {
      const [js, declaration] = file.endsWith('.d.ts')
        ? [file.replace(/\.d\.ts$/, '.js'), file]
        : [file, file.replace(/\.js$/, '.d.ts')];
      if (code.seen.has(js) || types.seen.has(declaration)) return false;
      return !(file === js && isEmpty(readFileSync(path.join(folder, file), 'utf8')));
    },
  );
  return { absent: [...code.absent, ...types.absent], unused };
}

/** Problems of an unpacked package. */
export function checkContents(folder, list) {
  const { name } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const { absent, unused } = modules(folder);
  return [
    ...compare(listFiles(folder, ['.']), linesFor(list, name)),
    ...absent,
    ...unused.map((file) => `${file} is in the package, but nothing public uses it`),
  ];
}
