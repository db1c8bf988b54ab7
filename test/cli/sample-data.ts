// Finds the large real matrix of some tests. It is not part of the repository: HEADRACE_DATA names its folder, or it is
// in a folder `data` in the checkout or beside it.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Path of a sample file, or undefined when it is not on this machine. */
export function findSample(name: string): string | undefined {
  const project = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
  const beside = path.dirname(project);
  const folders = [process.env['HEADRACE_DATA'], path.join(project, 'data')];
  try {
    for (const entry of readdirSync(beside)) folders.push(path.join(beside, entry, 'data'));
  } catch {
    // a folder that may not be listed holds nothing for us
  }
  return folders
    .filter((folder) => folder !== undefined)
    .map((folder) => path.join(folder, name))
    .find((file) => existsSync(file));
}
