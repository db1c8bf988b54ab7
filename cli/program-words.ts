// How the user can call this program again: commands that are printed must work when they are pasted into the shell
// that started it, in a fresh clone as well as where the package is installed.
import path from 'node:path';

/** A word as a POSIX shell reads it back: quoted only when it must be. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/**
 * The words that start the program whose script is `script` (as in `process.argv[1]`) from the folder `cwd`:
 * `npx headrace` where it is a dependency, `headrace` where it is on the path, else `node` with the script.
 */
export function programWords(script: string | undefined, cwd: string): string {
  if (script === undefined) return 'npx headrace';
  const relative = path.relative(cwd, script);
  const parts = relative.split(path.sep);
  if (parts[0] === 'node_modules') return 'npx headrace';
  if (path.basename(script) === 'headrace') return 'headrace';
  return `node ${shellWord(parts[0] === '..' ? script : relative)}`;
}
