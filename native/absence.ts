// The reasons why the addon cannot be loaded, and their remedies. Each state of an installation has one cause and one
// remedy, and the remedy works in that state (test/native/absence.test.ts, scripts/release/check.mjs).
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  aptCommand,
  buildCommand,
  glibcVersion,
  isClone,
  manifestIn,
  missingTools,
  OLDEST_GLIBC,
  PLATFORMS,
  packageRoot,
  packageVersion,
  platformPackage,
  shellWord,
} from './installation.js';

/** One place in which the loader looked for the addon. */
export interface NativeAttempt {
  readonly path: string;
  readonly reason: string;
}

/** Why an addon that loads is not used: its contract is not that of this package. */
export const OTHER_SOURCES = 'it was built from other sources than this package';

/** Cause as part of a sentence; remedy as a command, or as a change to make. */
interface Absence {
  readonly cause: string;
  readonly remedy: string;
}

/** `HEADRACE_NATIVE` names a file that cannot be loaded. */
export function causeOfOverride(file: string): Absence {
  return {
    cause: `the environment variable HEADRACE_NATIVE names ${file}, which is not an addon for this process`,
    remedy: 'unset HEADRACE_NATIVE, or let it name a headrace.node',
  };
}

/** The state of the installation that left these attempts without success. */
export function causeOfAbsence(attempts: readonly NativeAttempt[]): Absence {
  const root = packageRoot();
  if (isClone(root)) return { cause: 'it is not built in this clone', remedy: build() };
  const platform = `${process.platform}-${process.arch}`;
  if (process.platform !== 'linux') {
    return {
      cause: `there is no built addon for ${process.platform}`,
      remedy: `run it on Linux with glibc ${OLDEST_GLIBC} or newer`,
    };
  }
  const glibc = glibcVersion();
  if (glibc === undefined) {
    return {
      cause: `the C library of this system is not glibc (it is musl, as on Alpine), for which there is no built addon`,
      remedy: `run it on a Linux with glibc ${OLDEST_GLIBC} or newer, such as Debian 12`,
    };
  }
  if (!PLATFORMS.includes(platform)) {
    return { cause: `there is no built addon for ${platform}`, remedy: build() };
  }
  const last = attempts.at(-1)?.reason ?? '';
  if (/GLIBC(XX)?_|CXXABI_/.test(last)) {
    return {
      cause: `the addon of ${platformPackage()} needs glibc ${OLDEST_GLIBC} or newer and a libstdc++ of GCC 12 or newer, but this system has glibc ${glibc}`,
      remedy: build(),
    };
  }
  if (last === OTHER_SOURCES) {
    return {
      cause: `the package ${platformPackage()} ${packageVersion()} was built from other sources than this package, as after a version was published twice`,
      remedy: build(),
    };
  }
  if (/not installed|its version/.test(last)) return packageAbsent(root, last);
  return { cause: `the addon of ${platformPackage()} does not load`, remedy: build() };
}

/** The package for this platform was left out, was not available, or has another version. */
function packageAbsent(root: string, reason: string): Absence {
  const wanted = `${platformPackage()} ${packageVersion()}`;
  if (manifestIn(root)?.optionalDependencies?.[platformPackage()] === undefined) {
    return { cause: `this version has no package ${platformPackage()}`, remedy: build() };
  }
  if (reason.startsWith('its version')) {
    return {
      cause: `the package ${wanted} is needed, and ${reason}`,
      remedy: installAgain(root) ?? build(),
    };
  }
  const project = projectOf(root);
  const lock = join(project?.folder ?? '', 'package-lock.json');
  if (project?.manager === 'npm' && existsSync(lock)) {
    // npm notes the packages that it leaves out, but not those that it could not find.
    if (!readFileSync(lock, 'utf8').includes(`node_modules/${platformPackage()}"`)) {
      return { cause: `npm did not find the package ${wanted}`, remedy: build() };
    }
  }
  return {
    cause: `the package ${wanted} is not installed; package managers leave it out with --omit=optional, --no-optional or a lock file made on another platform`,
    remedy: installAgain(root) ?? build(),
  };
}

/** The project in which `root` is installed, found by the traces of package managers in its node_modules. */
function projectOf(root: string): { folder: string; manager: 'npm' | 'pnpm' } | undefined {
  for (let folder = dirname(root); ; folder = dirname(folder)) {
    const modules = join(folder, 'node_modules');
    if (existsSync(join(modules, '.package-lock.json'))) return { folder, manager: 'npm' };
    if (existsSync(join(modules, '.modules.yaml'))) return { folder, manager: 'pnpm' };
    if (dirname(folder) === folder) return undefined;
  }
}

/** The command that brings optional dependencies back, by the package manager that installed `root`. */
function installAgain(root: string): string | undefined {
  const project = projectOf(root);
  if (project === undefined) return undefined;
  const { folder, manager } = project;
  const command = manager === 'npm' ? 'npm install --include=optional' : 'pnpm install --force';
  return folder === process.cwd() ? command : `cd ${shellWord(folder)} && ${command}`;
}

/** Builds the addon from source, with the tools that are missing for it. */
function build(): string {
  const tools = missingTools();
  const command = buildCommand();
  return tools.length === 0 ? command : `${aptCommand(tools)} && ${command}`;
}
