// Loads compiled files for scripts, after it has brought them up to date.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { prepare, root } from './prepare.mjs';

/** Folder of the compiled files. HEADRACE_DIST names another folder, relative to the project; it is not rebuilt. */
export const dist = path.join(root, process.env['HEADRACE_DIST'] ?? 'dist');

/**
 * Makes the requested set-up, and loads modules by their path below `dist`.
 *
 * @param {Parameters<typeof prepare>[0]} [options]
 * @returns {Promise<(file: string) => Promise<any>>}
 */
export async function compiled(options) {
  if (process.env['HEADRACE_DIST'] === undefined) await prepare(options);
  return (file) => {
    const whole = path.join(dist, file);
    if (!existsSync(whole)) {
      process.stderr.write(
        `${whole} is missing; HEADRACE_DIST must name a folder of compiled files\n`,
      );
      process.exit(2);
    }
    return import(pathToFileURL(whole).href);
  };
}
