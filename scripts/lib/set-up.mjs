// The set-up: dependencies, native addon and TypeScript, each only when missing or stale, and the optional system
// packages. `scripts/setup.mjs` is its command line.
// Invariant: a stamp is written only after its step succeeded, so an interrupted set-up starts that step again.
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { runCommand, which } from './command.mjs';
import { withLock } from './lock.mjs';
import { hashInputs, listFiles, readStamp, writeStamp } from './stamp.mjs';
import { stubsStep } from './stubs.mjs';
import { ensureSystemPackage, installLine, isDebian, systemPackages } from './system-packages.mjs';

export const MINIMUM_NODE = [20, 19];

/** A failure with a message for the user; its stack is not shown. */
export class SetUpError extends Error {}

/** The reason why this Node version is unsuitable, or undefined. */
export function nodeProblem(version = process.versions.node) {
  const [major, minor] = version.split('.').map(Number);
  const [wantMajor, wantMinor] = MINIMUM_NODE;
  if (major > wantMajor || (major === wantMajor && minor >= wantMinor)) return undefined;
  return [
    `Node ${wantMajor}.${wantMinor} or newer is needed, this is ${version}.`,
    '  To get it: https://nodejs.org/en/download, or with nvm: nvm install 20',
  ].join('\n');
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

function packageVersion(root, name) {
  return `${name} ${readJson(path.join(root, 'node_modules', name, 'package.json'))?.version ?? '-'}`;
}

/** True if the installed packages are those of the lock file; optional packages may be absent. */
export function isInstalledAsLocked(lock, installed) {
  if (lock?.packages === undefined || installed?.packages === undefined) return false;
  return Object.entries(lock.packages).every(([name, wanted]) => {
    if (name === '' || wanted.link === true) return true;
    const found = installed.packages[name];
    if (found === undefined) return wanted.optional === true || wanted.devOptional === true;
    return found.version === wanted.version && found.integrity === wanted.integrity;
  });
}

/** @typedef {'dependencies' | 'native' | 'typescript' | 'stubs'} StepName */

/**
 * @typedef {object} Step
 * @property {string} title
 * @property {StepName} name
 * @property {() => boolean} isFresh
 * @property {() => Promise<void>} work leaves the step fresh or throws SetUpError
 */

/**
 * @param {object} context
 * @param {string} context.root
 * @param {(line: string) => void} context.say
 * @param {NodeJS.ProcessEnv} context.env
 * @param {typeof runCommand} context.run
 * @returns {Step}
 */
export function dependenciesStep({ root, env, run }) {
  const lockFile = path.join(root, 'package-lock.json');
  const stampFile = path.join(root, 'node_modules', '.headrace-stamp');
  const wanted = () => hashInputs(root, ['package-lock.json']);
  return {
    name: 'dependencies',
    title: 'installing dependencies (npm ci)',
    isFresh() {
      if (!existsSync(lockFile)) return true; // installed as a package: npm brought the dependencies along
      if (!existsSync(path.join(root, 'node_modules'))) return false;
      const stamp = wanted();
      if (readStamp(stampFile) === stamp) return true;
      // The user ran npm by hand; that is fine if the result is the same.
      const installed = readJson(path.join(root, 'node_modules', '.package-lock.json'));
      if (!isInstalledAsLocked(readJson(lockFile), installed)) return false;
      writeStamp(stampFile, stamp);
      return true;
    },
    async work() {
      const stamp = wanted();
      const script = env['npm_execpath'];
      const viaNode = script !== undefined && /npm-cli\.js$/.test(script) && existsSync(script);
      const npm = viaNode ? process.execPath : which('npm', env);
      if (npm === undefined) {
        throw new SetUpError(
          'npm is not on PATH.\n  It comes with Node: https://nodejs.org/en/download',
        );
      }
      const args = ['ci', '--include=dev', '--no-audit', '--no-fund'];
      const result = await run(npm, viaNode ? [script, ...args] : args, { cwd: root, env });
      if (result.code !== 0) {
        throw new SetUpError(
          `npm ci failed with exit code ${result.code}:\n${excerpt(result.output, 40)}\n  To see it alone: npm ci`,
        );
      }
      writeStamp(stampFile, stamp);
    },
  };
}

/** Native sources: everything below native/ except TypeScript, of which only the contract is shared with C++. */
function nativeSources(root) {
  return listFiles(root, ['CMakeLists.txt', 'cmake', 'native'], (file) => {
    return !file.endsWith('.ts') || file === 'native/contract.ts';
  });
}

/** The optional MPI parts are built if MPI is installed. So a build is stale after the installation of MPI. */
export function mpiFact(env) {
  return `mpi ${which('mpicc', env) ?? 'none'}, mpich ${which('mpicc.mpich', env) ?? 'none'}`;
}

/** The missing tools for C++, with the command that installs them, or undefined. */
export function toolProblem(env, isRoot = process.getuid?.() === 0, osRelease = undefined) {
  const missing = [];
  if (which('cmake', env) === undefined) missing.push('cmake');
  const compilers = [env['CXX'] ?? '', 'g++', 'c++', 'clang++'];
  const hasCompiler = compilers.some(
    (name) =>
      name !== '' &&
      (which(name, env) !== undefined || (path.isAbsolute(name) && existsSync(name))),
  );
  if (!hasCompiler) missing.push('g++');
  if (missing.length === 0) return undefined;
  const where = isDebian(osRelease, env) ? 'To get it' : 'Debian/Ubuntu';
  return [
    `the native addon cannot be built: ${missing.join(' and ')} not found on PATH.`,
    `  ${where}: ${installLine(missing, isRoot)}`,
    '  macOS: xcode-select --install && brew install cmake',
  ].join('\n');
}

/** Checks that all tools for C++ exist; throws a SetUpError otherwise. */
export async function ensureTools(context) {
  const problem = toolProblem(context.env, context.isRoot, context.osRelease);
  if (problem !== undefined) throw new SetUpError(problem);
  const maker = await ensureSystemPackage(systemPackages.make, context);
  if (maker === 'missing')
    throw new SetUpError('the native addon cannot be built without make or ninja.');
}

/** @param {Parameters<typeof dependenciesStep>[0]} context @returns {Step} */
export function nativeStep({ root, env, run, say, isRoot, osRelease }) {
  const build = path.join(root, 'build');
  const stampFile = path.join(build, '.headrace-stamp');
  const wanted = () =>
    hashInputs(root, nativeSources(root), [
      `${process.platform} ${process.arch} napi ${process.versions.napi}`,
      packageVersion(root, 'cmake-js'),
      packageVersion(root, 'node-addon-api'),
      mpiFact(env),
    ]);
  const hasAddon = () => {
    try {
      return readdirSync(path.join(build, 'Release')).some((name) => name.endsWith('.node'));
    } catch {
      return false;
    }
  };
  return {
    name: 'native',
    title: 'building the native addon (cmake-js build)',
    isFresh: () =>
      !existsSync(path.join(root, 'CMakeLists.txt')) ||
      (hasAddon() && readStamp(stampFile) === wanted()),
    async work() {
      await ensureTools({ env, run, say, isRoot, osRelease });
      const stamp = wanted();
      const script = path.join(root, 'node_modules', 'cmake-js', 'bin', 'cmake-js');
      // `build` alone does not configure again, so it would not see libraries that were installed since then.
      const attempt = async () => {
        const configured = await run(process.execPath, [script, 'configure'], { cwd: root, env });
        if (configured.code !== 0) return configured;
        return run(process.execPath, [script, 'build'], { cwd: root, env });
      };
      let result = await attempt();
      if (result.code !== 0 && existsSync(build)) {
        say('the native build failed; trying once more from clean');
        rmSync(build, { recursive: true, force: true });
        result = await attempt();
      }
      if (result.code !== 0) {
        throw new SetUpError(
          `the native build failed:\n${excerpt(result.output, 80)}\n  To see it alone: npm run build:native`,
        );
      }
      if (!hasAddon())
        throw new SetUpError('the native build succeeded but left no .node file in build/Release.');
      writeStamp(stampFile, stamp);
    },
  };
}

/** Compiled files without a source, such as those of a renamed module in dist. */
export function orphans(root) {
  const endings = ['.d.ts.map', '.js.map', '.d.ts', '.js'];
  return listFiles(root, ['dist']).filter((file) => {
    const ending = endings.find((candidate) => file.endsWith(candidate));
    if (ending === undefined) return false;
    const source = `${file.slice('dist/'.length, -ending.length)}.ts`;
    return !existsSync(path.join(root, source));
  });
}

/** @param {Parameters<typeof dependenciesStep>[0]} context @returns {Step} */
export function typescriptStep({ root, env, run }) {
  const stampFile = path.join(root, 'dist', '.headrace-stamp');
  const sources = () => {
    const { include = [] } = readJson(path.join(root, 'tsconfig.build.json')) ?? {};
    return listFiles(root, include, (file) => file.endsWith('.ts'));
  };
  const wanted = () =>
    hashInputs(
      root,
      ['tsconfig.json', 'tsconfig.build.json', ...sources()],
      [packageVersion(root, 'typescript'), packageVersion(root, '@types/node')],
    );
  const entry = path.join(root, 'dist', 'cli', 'main.js');
  return {
    name: 'typescript',
    title: 'compiling TypeScript (tsc)',
    isFresh: () => existsSync(entry) && readStamp(stampFile) === wanted(),
    async work() {
      const stamp = wanted();
      const script = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
      const result = await run(process.execPath, [script, '-p', 'tsconfig.build.json'], {
        cwd: root,
        env,
      });
      if (result.code !== 0) {
        throw new SetUpError(
          `tsc found errors:\n${excerpt(result.output, 60)}\n  To see them alone: npm run build:ts`,
        );
      }
      for (const file of orphans(root)) rmSync(path.join(root, file));
      if (existsSync(entry)) chmodSync(entry, 0o755);
      writeStamp(stampFile, stamp);
    },
  };
}

/** A program's output, limited to a number of lines from both ends: npm names the reason first, compilers often last. */
export function excerpt(text, lines) {
  const all = text.trimEnd().split('\n');
  if (all.length <= lines) return all.join('\n');
  const half = Math.floor(lines / 2);
  return [...all.slice(0, half), `... (${all.length - 2 * half} lines)`, ...all.slice(-half)].join(
    '\n',
  );
}

/**
 * Brings everything up to date. Prints nothing if nothing is stale.
 *
 * @param {object} options
 * @param {string} options.root project folder
 * @param {(line: string) => void} options.say
 * @param {NodeJS.ProcessEnv} [options.env]
 * @param {typeof runCommand} [options.run]
 * @param {boolean} [options.isRoot]
 * @param {string} [options.osRelease] content of /etc/os-release
 * @param {('openblas' | 'mpi' | 'mpich' | 'chromium')[]} [options.want] system packages to try for
 * @param {('openblas' | 'mpi' | 'mpich' | 'chromium')[]} [options.require] system packages whose absence is a failure
 * @param {boolean} [options.stubs] build the stub GPU drivers for tests too
 * @param {StepName[]} [options.only] nothing but these steps
 * @param {boolean} [options.tools] make sure that C++ can be built, also if no step needs it
 * @param {boolean} [options.force] redo every step
 */
export async function setUp(options) {
  const { root, say, env = process.env, run = runCommand, force = false } = options;
  const { isRoot = process.getuid?.() === 0, osRelease } = options;
  const context = { root, say, env, run, isRoot, osRelease };
  const problem = nodeProblem();
  if (problem !== undefined) throw new SetUpError(problem);

  const required = options.require ?? [];
  const wanted = new Set([
    ...(process.platform === 'linux' && options.only === undefined ? ['openblas'] : []),
    ...(options.want ?? []),
    ...required,
  ]);
  const cache = path.join(root, '.cache', 'setup');
  const fail = (output) => {
    throw new SetUpError(`the stub GPU drivers could not be built:\n${excerpt(output, 80)}`);
  };
  const steps = [
    dependenciesStep(context),
    nativeStep(context),
    typescriptStep(context),
    ...(options.stubs === true
      ? [stubsStep({ ...context, fail }, nativeSources(root), mpiFact(env))]
      : []),
  ].filter(({ name }) => options.only === undefined || options.only.includes(name));
  if (options.tools === true) await ensureTools(context);
  const absent = (name) => !systemPackages[name].isPresent(env);
  // An absence that was reported is not repeated until another part is set up.
  const absenceFile = (name) => path.join(cache, `${name}.missing`);
  const absenceKey = `root ${isRoot} install ${env['HEADRACE_NO_SYSTEM_INSTALL'] !== '1'}`;
  const isNews = (name) =>
    absent(name) && (required.includes(name) || readStamp(absenceFile(name)) !== absenceKey);

  const isStale = () => force || [...wanted].some(isNews) || steps.some((step) => !step.isFresh());
  if (!isStale()) return;

  await withLock(
    path.join(cache, 'lock'),
    async () => {
      if (!isStale()) return; // the other set-up did it
      for (const name of wanted) {
        if (!absent(name)) {
          rmSync(absenceFile(name), { force: true });
          continue;
        }
        const outcome = await ensureSystemPackage(systemPackages[name], context);
        if (outcome === 'missing' && required.includes(name)) {
          throw new SetUpError(`${systemPackages[name].name} is required here and is missing.`);
        }
        if (outcome === 'missing') writeStamp(absenceFile(name), absenceKey);
      }
      for (const step of steps) {
        if (!force && step.isFresh()) continue;
        const begin = Date.now();
        say(`${step.title} ...`);
        await step.work();
        say(`  done in ${((Date.now() - begin) / 1000).toFixed(1)} s`);
      }
    },
    { onWait: (pid) => say(`another set-up is running (process ${pid}), waiting for it`) },
  );
}
