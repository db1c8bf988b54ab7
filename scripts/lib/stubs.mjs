// The stub GPU drivers and the programs that test on them: built in a folder of their own, then copied beside the addon,
// where tests look for them and whatever carries the addon to another machine takes them along.
import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { hashInputs, listFiles, readStamp, writeStamp } from './stamp.mjs';

const programs = ['headrace_gpu_tests', 'headrace_gpu_bench'];
const libraries = ['stub_cuda', 'stub_hip', 'stub_nvrtc', 'stub_blas'].map((n) => `lib${n}.so`);
/** Only where there is an MPI library to imitate. */
const optional = ['libstub_mpi_aware.so'];

/** Folder of the build. */
export function stubFolder(root, sanitize = '') {
  return path.join(root, sanitize === '' ? 'build-stubs' : `build-${sanitize}`);
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
  const settings = ['-DHEADRACE_STUBS=ON', `-DHEADRACE_SANITIZE=${sanitize}`];
  const options = { cwd: root, env };
  const made = await run('cmake', ['-S', root, '-B', build, ...settings], options);
  if (made.code !== 0) return made;
  const target = ['--parallel', '2', '--target', 'headrace_stubs'];
  const built = await run('cmake', ['--build', build, ...target], options);
  if (built.code !== 0 || sanitize !== '') return built;
  const beside = path.join(root, 'build', 'Release');
  mkdirSync(beside, { recursive: true });
  for (const file of [...programs, ...libraries, ...optional]) {
    const from = path.join(build, 'Release', file);
    if (optional.includes(file) && !existsSync(from))
      rmSync(path.join(beside, file), { force: true });
    else copyFileSync(from, path.join(beside, file));
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
