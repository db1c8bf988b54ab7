// The platform packages (npm/): each holds the built addon for one platform. A template marked private is prepared, but
// the package does not depend on it until the mark is removed, because yarn fails on an optional dependency that does
// not exist.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');

/** @returns {{ name: string, version: string, private?: boolean }} */
export function readManifest(folder) {
  return JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
}

/** Every platform package: its short name such as `linux-x64`, its folder, and its manifest. */
export function platforms() {
  const folder = path.join(root, 'npm');
  return readdirSync(folder)
    .sort()
    .map((name) => ({
      name,
      folder: path.join(folder, name),
      manifest: readManifest(path.join(folder, name)),
    }));
}

/** The platforms on which headrace depends. */
export function released() {
  return platforms().filter(({ manifest }) => manifest.private !== true);
}
