// Optional system packages: the set-up finds them, installs them with a message (root on Debian/Ubuntu), or prints the
// command that installs them. With HEADRACE_NO_SYSTEM_INSTALL=1 it installs nothing.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand, which } from './command.mjs';

/** Folders that the dynamic linker searches on the usual distributions. */
function libraryFolders(env) {
  const folders = (env['LD_LIBRARY_PATH'] ?? '').split(':').filter((folder) => folder !== '');
  folders.push('/lib', '/usr/lib', '/lib64', '/usr/lib64', '/usr/local/lib', '/usr/local/lib64');
  for (const base of ['/lib', '/usr/lib', '/usr/local/lib']) {
    try {
      for (const name of readdirSync(base)) {
        if (name.endsWith('-linux-gnu')) folders.push(path.join(base, name));
      }
    } catch {
      // no such folder
    }
  }
  return folders;
}

/** Path of the first shared library of that name, or undefined. */
export function findLibrary(names, env = process.env) {
  for (const folder of libraryFolders(env)) {
    for (const name of names) {
      const file = path.join(folder, name);
      if (existsSync(file)) return file;
    }
  }
  return undefined;
}

/**
 * @typedef {object} SystemPackage
 * @property {string} name for messages
 * @property {string} purpose the feature that is missing without it
 * @property {string[]} packages Debian packages
 * @property {(env: NodeJS.ProcessEnv) => boolean} isPresent
 */

/** @type {Record<'openblas' | 'mpi' | 'mpich' | 'slurm' | 'chromium' | 'make', SystemPackage>} */
export const systemPackages = {
  openblas: {
    name: 'OpenBLAS',
    purpose: 'tile kernels run on the slower built-in code',
    packages: ['libopenblas0-pthread'],
    isPresent: (env) => findLibrary(['libopenblas.so.0', 'libopenblas.so'], env) !== undefined,
  },
  mpi: {
    name: 'Open MPI',
    purpose: 'runs use one process only',
    packages: ['libopenmpi-dev', 'openmpi-bin'],
    isPresent: (env) => which('mpirun', env) !== undefined && which('mpicc', env) !== undefined,
  },
  mpich: {
    name: 'MPICH',
    purpose: 'the message layer is tested over Open MPI only',
    packages: ['libmpich-dev', 'mpich'],
    isPresent: (env) =>
      which('mpirun.mpich', env) !== undefined && which('mpicc.mpich', env) !== undefined,
  },
  slurm: {
    name: 'Slurm',
    purpose: 'launches by srun cannot be tested',
    packages: ['slurmctld', 'slurmd', 'slurm-client', 'munge'],
    isPresent: (env) =>
      ['slurmctld', 'slurmd', 'srun', 'munged'].every((name) => which(name, env) !== undefined),
  },
  chromium: {
    name: 'Chromium',
    purpose: 'the trace viewer cannot be checked in a browser',
    packages: ['chromium'],
    isPresent: (env) =>
      ['chromium', 'chromium-browser', 'google-chrome'].some(
        (name) => which(name, env) !== undefined,
      ),
  },
  make: {
    name: 'make or ninja',
    purpose: 'cmake cannot build without one',
    packages: ['make'],
    isPresent: (env) => which('ninja', env) !== undefined || which('make', env) !== undefined,
  },
};

/** True on Debian and its derivatives. */
export function isDebian(osRelease = readOsRelease(), env = process.env) {
  const words = [...osRelease.matchAll(/^ID(?:_LIKE)?=(.*)$/gm)].flatMap((match) =>
    match[1].replaceAll('"', '').split(/\s+/),
  );
  return (
    words.some((word) => word === 'debian' || word === 'ubuntu') &&
    which('apt-get', env) !== undefined
  );
}

function readOsRelease() {
  try {
    return readFileSync('/etc/os-release', 'utf8');
  } catch {
    return '';
  }
}

/** The command that installs these packages. */
export function installCommand(packages, isRoot) {
  return `${isRoot ? '' : 'sudo '}apt-get install -y --no-install-recommends ${packages.join(' ')}`;
}

/** The whole command line: a fresh image has no package lists. */
export function installLine(packages, isRoot = process.getuid?.() === 0) {
  return `${isRoot ? '' : 'sudo '}apt-get update && ${installCommand(packages, isRoot)}`;
}

/**
 * Installs a system package if that is allowed here; otherwise prints the command to type.
 *
 * @param {SystemPackage} wanted
 * @param {{ say: (line: string) => void, env?: NodeJS.ProcessEnv, isRoot?: boolean, osRelease?: string,
 *   run?: typeof runCommand }} context everything that decides, so that tests can stand in for it
 * @returns {Promise<'present' | 'installed' | 'missing'>}
 */
export async function ensureSystemPackage(wanted, context) {
  const { say, env = process.env, isRoot = process.getuid?.() === 0, run = runCommand } = context;
  if (wanted.isPresent(env)) return 'present';
  const command = installCommand(wanted.packages, isRoot);
  const debian = isDebian(context.osRelease ?? readOsRelease(), env);
  if (!debian || !isRoot || env['HEADRACE_NO_SYSTEM_INSTALL'] === '1') {
    say(`${wanted.name} is not installed (${wanted.purpose}).`);
    const line = installLine(wanted.packages, isRoot);
    say(debian ? `  To get it: ${line}` : `  Debian/Ubuntu: ${line}`);
    return 'missing';
  }
  say(`${wanted.name} is not installed: running ${command}`);
  say('  (HEADRACE_NO_SYSTEM_INSTALL=1 turns this off)');
  const aptEnv = { ...env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = () =>
    run('apt-get', ['install', '-y', '--no-install-recommends', ...wanted.packages], {
      env: aptEnv,
      timeoutMs: 600_000,
    });
  let result = await install();
  if (result.code !== 0) {
    // A fresh image has no package lists yet.
    await run('apt-get', ['update'], { env: aptEnv, timeoutMs: 300_000 });
    result = await install();
  }
  if (result.code === 0 && wanted.isPresent(env)) {
    say(`${wanted.name} installed.`);
    return 'installed';
  }
  say(`${wanted.name} could not be installed (${wanted.purpose}). apt-get said:`);
  for (const line of result.output.trim().split('\n').slice(-4)) say(`  ${line}`);
  say(`  To try again: ${installLine(wanted.packages, isRoot)}`);
  return 'missing';
}
