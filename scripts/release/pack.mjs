// Makes the tarballs that are published: headrace, and the platform package for this machine.
//
// usage: node scripts/release/pack.mjs [--out FOLDER] [--help]
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandLine } from '../lib/command-line.mjs';
import { prepare } from '../lib/prepare.mjs';
import { platforms, readManifest, root } from './platforms.mjs';
import { checkSymbols } from './symbols.mjs';
import { checkVariables } from './variables.mjs';

const usage = `usage: node scripts/release/pack.mjs [--out FOLDER]

Builds what is stale and makes the tarballs that are published: headrace, and the platform package for
this machine. Their contents are compared with scripts/release/contents.txt.

  --out FOLDER   their folder [release]
  --help         this text
`;

const list = readFileSync(new URL('contents.txt', import.meta.url), 'utf8');

/** A release must not be made; `problems` gives the reasons. */
export class ReleaseError extends Error {
  constructor(what, problems) {
    super(`${what}:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  }
}

/** Packs a folder with npm and checks the contents of the tarball; returns the tarball. */
async function pack(folder, out) {
  // This needs a dependency, which the set-up installs in a fresh clone.
  const { checkContents } = await import('./contents.mjs');
  const text = execFileSync('npm', ['pack', '--json', '--pack-destination', out], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 26,
  });
  const { name, version } = readManifest(folder);
  const file = path.join(out, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`);
  if (!text.includes('.tgz')) throw new ReleaseError(`npm pack in ${folder}`, [text]);
  const unpacked = mkdtempSync(path.join(tmpdir(), 'headrace-tarball-'));
  try {
    execFileSync('tar', ['-xzf', file, '-C', unpacked]);
    const problems = checkContents(path.join(unpacked, 'package'), list);
    if (problems.length > 0) throw new ReleaseError(`contents of ${file}`, problems);
  } finally {
    rmSync(unpacked, { recursive: true });
  }
  return file;
}

/** The package of this machine's platform, with the addon that was built and tested here. */
async function packPlatform(out) {
  const name = `${process.platform}-${process.arch}`;
  const platform = platforms().find((each) => each.name === name);
  if (platform === undefined) throw new ReleaseError('platform package', [`none for ${name}`]);
  const stage = mkdtempSync(path.join(tmpdir(), 'headrace-platform-'));
  try {
    cpSync(platform.folder, stage, { recursive: true });
    copyFileSync(path.join(root, 'LICENSE'), path.join(stage, 'LICENSE'));
    const addon = path.join(stage, 'headrace.node');
    copyFileSync(path.join(root, 'build', 'Release', 'headrace.node'), addon);
    execFileSync('strip', ['--strip-unneeded', addon]);
    const problems = checkSymbols(addon);
    if (problems.length > 0)
      throw new ReleaseError('the addon would not load everywhere', problems);
    const switches = checkVariables(addon);
    if (switches.length > 0) throw new ReleaseError('the addon is not one for users', switches);
    return await pack(stage, out);
  } finally {
    rmSync(stage, { recursive: true });
  }
}

/**
 * Makes all tarballs.
 *
 * @param {string} out folder
 * @returns {Promise<{ main: string, platform: string }>} their files
 */
export async function packAll(out) {
  mkdirSync(out, { recursive: true });
  // npm builds before it packs (package.json: prepack).
  const main = await pack(root, out);
  return { main, platform: await packPlatform(out) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = commandLine(usage, { out: { type: 'string', default: 'release' } });
  await prepare();
  try {
    for (const file of Object.values(await packAll(path.resolve(root, values.out)))) {
      process.stdout.write(`${path.relative(root, file)}\n`);
    }
  } catch (error) {
    if (!(error instanceof ReleaseError)) throw error;
    process.stderr.write(`release: ${error.message}\n`);
    process.exitCode = 1;
  }
}
