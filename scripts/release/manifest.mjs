// The commands that npm calls around packing (package.json: prepack, postpack, prepublishOnly). A clone has no optional
// dependencies: it builds its own addon, and `npm ci` must not ask for packages of an unpublished version. The package
// has one for each platform. The script leaves out modules that only tests use, so that no list of them is needed.
//
// usage: node scripts/release/manifest.mjs --for-npm             builds, then writes the optional dependencies
//        node scripts/release/manifest.mjs --restore             takes them out again
//        node scripts/release/manifest.mjs --require-platforms   fails unless the registry has the platform packages
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { released, root } from './platforms.mjs';

/** Patterns that packing adds to `files`: modules that are left out one by one. */
const isLeftOut = (entry) => /^!dist\/[^*]+\.(js|d\.ts)$/.test(entry);

/**
 * The manifest's text in its packed form: with the platform packages, and without the modules that only tests use.
 * Without both arguments it is the clone's text again. `text` has the format of JSON.stringify.
 *
 * @param {string} text
 * @param {{ manifest: { name: string, version: string } }[]} platforms
 * @param {string[]} unused
 */
export function packedManifest(text, platforms, unused) {
  const { optionalDependencies: _, ...manifest } = JSON.parse(text);
  const kept = manifest.files.filter((entry) => !isLeftOut(entry));
  manifest.files = [...kept, ...unused.map((file) => `!${file}`)];
  if (platforms.length > 0) {
    manifest.optionalDependencies = Object.fromEntries(
      platforms.map(({ manifest: { name, version } }) => [name, version]),
    );
  }
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/** Modules in dist that no part of the package uses, outside of folders that are left out as a whole. */
async function unusedModules() {
  // This needs a dependency, which the set-up installs in a fresh clone.
  const { modules } = await import('./contents.mjs');
  const whole = /^dist\/(bench|examples|test|kernel-|snippet-)|^dist\/cli\/.*\.d\.ts$/;
  return modules(root).unused.filter((file) => !whole.test(file));
}

/** Rewrites package.json in one step: a reader sees the old or the new text. */
function rewrite(platforms, unused) {
  const file = path.join(root, 'package.json');
  const next = `${file}.next`;
  writeFileSync(next, packedManifest(readFileSync(file, 'utf8'), platforms, unused));
  renameSync(next, file);
}

/** Headers with which `headrace build` compiles, so that users need not install their packages. */
export const headers = {
  'node-api-headers': ['LICENSE', 'include'],
  'node-addon-api': ['LICENSE.md', '.'],
};
const headerFiles = {
  'node-api-headers': [
    'js_native_api.h',
    'js_native_api_types.h',
    'node_api.h',
    'node_api_types.h',
  ],
  'node-addon-api': ['napi-inl.deprecated.h', 'napi-inl.h', 'napi.h'],
};

function copyHeaders() {
  const target = path.join(root, 'dist', 'node-api');
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const [name, [licence, folder]] of Object.entries(headers)) {
    const from = path.join(root, 'node_modules', name);
    copyFileSync(path.join(from, licence), path.join(target, `LICENSE.${name}`));
    for (const file of headerFiles[name]) {
      copyFileSync(path.join(from, folder, file), path.join(target, file));
    }
  }
}

/** Fails unless the registry has every platform package: headrace without them would install, but not run. */
function requirePlatforms() {
  for (const { manifest } of released()) {
    const wanted = `${manifest.name}@${manifest.version}`;
    try {
      execFileSync('npm', ['view', wanted, 'version'], { stdio: ['ignore', 'pipe', 'pipe'] });
    } catch {
      process.stderr.write(
        `${wanted} is not published yet: docs/installation.md tells the order\n`,
      );
      process.exitCode = 1;
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [task] = process.argv.slice(2);
  if (task === '--for-npm') {
    execFileSync(process.execPath, [path.join(root, 'scripts', 'setup.mjs')], {
      stdio: ['ignore', 2, 2],
    });
    copyHeaders();
    rewrite(released(), await unusedModules());
  } else if (task === '--restore') {
    rewrite([], []);
  } else if (task === '--require-platforms') {
    requirePlatforms();
  } else {
    process.stderr.write('usage: manifest.mjs --for-npm | --restore | --require-platforms\n');
    process.exitCode = 2;
  }
}
