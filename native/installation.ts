// The folder of this installation of Headrace, the package with the addon for this machine, and the commands that mend
// the installation. Invariant: a returned command works when it is pasted into a shell in the current folder.
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The oldest glibc on which the addons of the platform packages load. `scripts/release/symbols.mjs` checks them. */
export const OLDEST_GLIBC = '2.34';

/** Platforms for which there is a package with the addon, or a template of one (npm/). */
export const PLATFORMS: readonly string[] = ['linux-x64', 'linux-arm64'];

/** The part of a package.json that this file reads. */
interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** The manifest in a folder; undefined when there is none. */
export function manifestIn(folder: string): Manifest | undefined {
  const file = join(folder, 'package.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Manifest) : undefined;
}

let root: string | undefined;

/** The package's directory: the nearest one above this file whose package.json is headrace's (source or dist layout). */
export function packageRoot(): string {
  if (root !== undefined) return root;
  const here = dirname(fileURLToPath(import.meta.url));
  let directory = here;
  while (manifestIn(directory)?.name !== 'headrace') {
    const parent = dirname(directory);
    if (parent === directory) return (root = here);
    directory = parent;
  }
  return (root = directory);
}

/** A clone has the scripts that build it; an installed package does not. */
export function isClone(folder: string = packageRoot()): boolean {
  return existsSync(join(folder, 'scripts', 'setup.mjs'));
}

/** Version of this package. */
export function packageVersion(): string {
  return manifestIn(packageRoot())?.version ?? 'unknown';
}

/** Name of the package with the addon for this machine, whether it exists or not. */
export function platformPackage(): string {
  return `@headrace/${process.platform}-${process.arch}`;
}

/** Version of the glibc this process runs on; undefined on musl and outside of Linux. */
export function glibcVersion(): string | undefined {
  const report = process.report;
  if (process.platform !== 'linux' || report === undefined) return undefined;
  // A look-up of the names of open connections can take seconds.
  const settings = report as { excludeNetwork?: boolean };
  const before = settings.excludeNetwork;
  settings.excludeNetwork = true;
  try {
    const { header } = report.getReport() as unknown as {
      header: { glibcVersionRuntime?: string };
    };
    return header.glibcVersionRuntime;
  } finally {
    if (before !== undefined) settings.excludeNetwork = before;
  }
}

/** A word as a POSIX shell reads it back: quoted only when it must be. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The folder at or above `cwd` where npx finds the program of this package. */
function hasProgram(cwd: string): boolean {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'node_modules', '.bin', 'headrace'))) return true;
    if (dirname(folder) === folder) return false;
  }
}

/**
 * The words that start the program whose script is `script` (as in `process.argv[1]`) from the folder `cwd`:
 * `npx headrace` if it is a dependency, `headrace` if it is on the path, else `node` with the script.
 */
export function programWords(script: string | undefined, cwd: string): string {
  if (script === undefined) return 'npx headrace';
  const place = relative(cwd, script);
  const parts = place.split(sep);
  if (parts[0] === 'node_modules') return 'npx headrace';
  if (parts.at(-1) === 'headrace' && !parts.includes('node_modules')) return 'headrace';
  if (parts.includes('node_modules') && hasProgram(cwd)) return 'npx headrace';
  return `node ${shellWord(parts[0] === '..' ? script : place)}`;
}

/** The command that builds the missing parts from source: the set-up of a clone, or `headrace build` if installed. */
export function buildCommand(cwd: string = process.cwd()): string {
  const folder = packageRoot();
  if (!isClone(folder)) {
    return `${programWords(join(folder, 'dist', 'cli', 'main.js'), cwd)} build`;
  }
  const inside = relative(folder, cwd);
  if (!inside.startsWith('..') && !isAbsolute(inside)) return 'npm run setup';
  return `node ${shellWord(join(folder, 'scripts', 'setup.mjs'))}`;
}

/** The command that reports the abilities of this machine. */
export function doctorCommand(cwd: string = process.cwd()): string {
  return `${programWords(join(packageRoot(), 'dist', 'cli', 'main.js'), cwd)} doctor`;
}

/** The command that installs Debian packages; the lists of a fresh machine are empty, so it fetches them first. */
export function aptCommand(packages: readonly string[]): string {
  const sudo = process.getuid?.() === 0 ? '' : 'sudo ';
  return `${sudo}apt-get update && ${sudo}apt-get install -y --no-install-recommends ${packages.join(' ')}`;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** True when a program of that name is on the path. */
export function isOnPath(program: string, env: Environment = process.env): boolean {
  const isThere = (file: string): boolean => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  if (isAbsolute(program)) return isThere(program);
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.some((folder) => isThere(join(folder, program)));
}

/** Debian packages with the tools that a build needs and that are not on the path. */
export function missingTools(env: Environment = process.env): string[] {
  const tools: [string, readonly string[]][] = [
    ['cmake', ['cmake']],
    ['g++', [env['CXX'] ?? 'c++', 'c++', 'g++', 'clang++']],
    ['make', ['make', 'ninja']],
  ];
  return tools
    .filter(([, programs]) => !programs.some((program) => isOnPath(program, env)))
    .map(([name]) => name);
}

/** Debian packages of an MPI library: for a build of the message layer and for a launch. */
const MPI_PACKAGES = {
  openmpi: ['libopenmpi-dev', 'openmpi-bin'],
  mpich: ['libmpich-dev', 'mpich'],
} as const;

/** True if an MPI compiler wrapper is installed. Without one no message layer can be built. */
function hasMpi(library: keyof typeof MPI_PACKAGES, env: Environment): boolean {
  return isOnPath(`mpicc.${library}`, env) && isOnPath(`mpirun.${library}`, env);
}

/** The command that gets the message layer for an MPI library, from the state of this machine. */
export function mpiRemedy(
  library: keyof typeof MPI_PACKAGES = 'openmpi',
  env: Environment = process.env,
): string {
  const isPresent =
    hasMpi(library, env) ||
    (library === 'openmpi' && isOnPath('mpicc', env) && isOnPath('mpirun', env));
  const packages = [...missingTools(env), ...(isPresent ? [] : MPI_PACKAGES[library])];
  const build = buildCommand();
  return packages.length === 0 ? build : `${aptCommand(packages)} && ${build}`;
}
