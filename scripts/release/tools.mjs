// The programs that release:check needs besides npm: publint and are-the-types-wrong always; pnpm, yarn, other versions
// of Node and of TypeScript for the whole check. They have a lock file of their own (tools/) and are installed in
// .cache.
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../lib/command.mjs';
import { hashInputs, readStamp, writeStamp } from '../lib/stamp.mjs';
import { root } from './platforms.mjs';

const source = fileURLToPath(new URL('tools', import.meta.url));
const files = ['package.json', 'package-lock.json'];

/**
 * Installs the tools unless they are there.
 *
 * @param {boolean} all the optional ones too
 * @returns {Promise<(...parts: string[]) => string>} path of a file in their node_modules
 */
export async function installTools(all) {
  const folder = path.join(root, '.cache', 'release-tools', all ? 'all' : 'few');
  const stampFile = path.join(folder, '.stamp');
  const stamp = hashInputs(source, files, [process.arch]);
  if (readStamp(stampFile) !== stamp) {
    mkdirSync(folder, { recursive: true });
    for (const file of files) copyFileSync(path.join(source, file), path.join(folder, file));
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
    const { code, output } = await runCommand('npm', all ? args : [...args, '--omit=optional'], {
      cwd: folder,
      timeoutMs: 300_000,
    });
    if (code !== 0) throw new Error(`the tools could not be installed:\n${output}`);
    writeStamp(stampFile, stamp);
  }
  return (...parts) => path.join(folder, 'node_modules', ...parts);
}

/** The versions of Node that are installed with the tools, by name: `node-22`. */
export function nodesOf(tool) {
  return ['node-20', 'node-22', 'node-24']
    .map((name) => ({ name, program: tool(name, 'bin', 'node') }))
    .filter(({ program }) => existsSync(program));
}
