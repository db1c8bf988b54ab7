// Content stamps: a step is fresh when the hash of its inputs equals the hash of its last success.
// The stamp uses contents, never times: a checkout or a copy changes every time and must not cause a rebuild.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Files below `root/entry` that `keep` accepts, as sorted paths relative to `root`. Missing entries are
 * skipped, dot files and node_modules too.
 *
 * @param {string} root
 * @param {string[]} entries files or folders relative to root
 * @param {(file: string) => boolean} [keep]
 * @returns {string[]}
 */
export function listFiles(root, entries, keep = () => true) {
  const found = [];
  const visit = (relative) => {
    let entry;
    try {
      entry = statSync(path.join(root, relative));
    } catch {
      return;
    }
    if (entry.isFile()) {
      if (keep(relative)) found.push(relative);
      return;
    }
    if (!entry.isDirectory()) return;
    for (const name of readdirSync(path.join(root, relative))) {
      if (name.startsWith('.') || name === 'node_modules') continue;
      visit(path.posix.join(relative, name));
    }
  };
  for (const entry of entries) visit(entry);
  return [...new Set(found)].sort();
}

/**
 * Hash of the names and contents of files, and of some further facts (versions, settings).
 *
 * @param {string} root
 * @param {string[]} files paths relative to root
 * @param {string[]} [facts]
 */
export function hashInputs(root, files, facts = []) {
  const hash = createHash('sha256');
  for (const fact of facts) hash.update(`fact ${fact.length}\n${fact}\n`);
  for (const file of files) {
    let content;
    try {
      content = readFileSync(path.join(root, file));
    } catch {
      continue; // removed between listing and reading; the next call sees it
    }
    hash.update(`file ${file} ${content.length}\n`);
    hash.update(content);
  }
  return hash.digest('hex');
}

/** Stored stamp, or '' when there is none. */
export function readStamp(file) {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
}

export function writeStamp(file, stamp) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `${stamp}\n`);
}

export function clearStamp(file) {
  rmSync(file, { force: true });
}
