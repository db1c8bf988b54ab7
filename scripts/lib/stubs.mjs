// The stub GPU drivers and their test programs: built in a folder of their own, then copied beside the addon. Tests look
// for them there, and they travel with the addon to other machines.
import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { hashInputs, listFiles, readStamp, writeStamp } from './stamp.mjs';

const programs = ['headrace_gpu_tests', 'headrace_gpu_bench'];
const libraries = ['stub_cuda', 'stub_hip', 'stub_nvrtc', 'stub_blas'].map((n) => `lib${n}.so`);
/** Built only if there is an MPI library. Name in the folder of the build, and beside the addon. */
const optional = {
  'libstub_mpi_aware.so': 'libstub_mpi_aware.so',
  // The message layer whose guards tests can switch off. Headrace does not look for a file of this name.
  'mpi.node': 'switches-mpi.node',
};

/** Settings for a program under a sanitizer. OpenBLAS is not instrumented, so findings inside it are ignored. */
export const sanitizerEnvironment = {
  ASAN_OPTIONS: 'detect_leaks=1',
  UBSAN_OPTIONS: 'print_stacktrace=1',
  HEADRACE_BLAS: 'plain',
};

/** Folder of the build. */
export function stubFolder(root, sanitize = '') {
  return path.join(root, sanitize === '' ? 'build-stubs' : `build-${sanitize}`);
}

/** Arguments of cmake for that build. With a sanitizer it has both native test programs, which share their objects. */
export function configuration(root, sanitize = '') {
  return [
    '-S',
    root,
    '-B',
    stubFolder(root, sanitize),
    '-DHEADRACE_STUBS=ON',
    '-DHEADRACE_TEST_SWITCHES=ON',
    `-DHEADRACE_SANITIZE=${sanitize}`,
  ];
}

/**
 * Builds them.
 *
 * @param {{ root: string, run: typeof import('./command.mjs').runCommand, env: NodeJS.ProcessEnv }} context
 * @param {'' | 'address' | 'thread'} [sanitize]
 * @returns {Promise<{ code: number, output: string }>}
 */
export async function buildStubs({ root, run, env }, sanitize = '') {
  const build = stubFolder(root, sanitize);
  const options = { cwd: root, env };
  const made = await run('cmake', configuration(root, sanitize), options);
  if (made.code !== 0) return made;
  const target = ['--parallel', '2', '--target', 'headrace_stubs'];
  const built = await run('cmake', ['--build', build, ...target], options);
  if (built.code !== 0 || sanitize !== '') return built;
  const beside = path.join(root, 'build', 'Release');
  mkdirSync(beside, { recursive: true });
  const results = path.join(build, 'Release');
  for (const file of [...programs, ...libraries])
    copyFileSync(path.join(results, file), path.join(beside, file));
  for (const [file, name] of Object.entries(optional)) {
    if (existsSync(path.join(results, file)))
      copyFileSync(path.join(results, file), path.join(beside, name));
    else rmSync(path.join(beside, name), { force: true });
  }
  return built;
}

/**
 * The step of the set-up.
 *
 * @param {Parameters<typeof buildStubs>[0] & { fail: (text: string) => never }} context
 * @param {string[]} sources native sources of the project
 * @param {string} mpi which MPI there is
 */
export function stubsStep({ root, run, env, fail }, sources, mpi) {
  const stampFile = path.join(stubFolder(root), '.headrace-stamp');
  const wanted = () =>
    hashInputs(
      root,
      [...sources, ...listFiles(root, ['test/native-gpu'], (file) => /\.(cpp|h)$/.test(file))],
      [mpi],
    );
  const beside = (file) => path.join(root, 'build', 'Release', file);
  return {
    name: 'stubs',
    title: 'building the stub GPU drivers',
    isFresh: () =>
      [...programs, ...libraries].every((file) => existsSync(beside(file))) &&
      readStamp(stampFile) === wanted(),
    async work() {
      const stamp = wanted();
      const { code, output } = await buildStubs({ root, run, env });
      if (code !== 0) fail(output);
      writeStamp(stampFile, stamp);
    },
  };
}
