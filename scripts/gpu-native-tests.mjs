// Builds and runs the native GPU tests: on stub driver libraries (default; needs no GPU), or on the GPUs of this machine.
//   node scripts/gpu-native-tests.mjs [--real] [--no-build] [--sanitize address|thread] [part of a test's name]
// With --real, tests that ruin their process (a lost device, the NULL stream) run afterwards, one process each.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values, positionals } = parseArgs({
  options: {
    real: { type: 'boolean' },
    'no-build': { type: 'boolean' },
    sanitize: { type: 'string' },
  },
  allowPositionals: true,
});
const sanitize = values.sanitize ?? '';
const build = join(root, sanitize === '' ? 'build-stubs' : `build-${sanitize}`);
// What is carried to a machine with GPUs lies beside the addon.
const beside = join(root, 'build', 'Release');

function run(command, args, env = {}) {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  if (error !== undefined) console.error(error.message);
  return status ?? 1;
}

function must(command, args) {
  const status = run(command, args);
  if (status !== 0) process.exit(status);
}

const libraries = ['stub_cuda', 'stub_hip', 'stub_nvrtc', 'stub_blas', 'stub_mpi_aware'];
if (values['no-build'] !== true) {
  must('cmake', [
    '-S',
    root,
    '-B',
    build,
    '-DHEADRACE_STUBS=ON',
    `-DHEADRACE_SANITIZE=${sanitize}`,
  ]);
  must('cmake', [
    ...['--build', build, '--parallel', '2', '--target'],
    ...['headrace_gpu_tests', 'headrace_gpu_bench', ...libraries],
  ]);
}

const programs = ['headrace_gpu_tests', 'headrace_gpu_bench'];
if (values['no-build'] !== true && sanitize === '') {
  mkdirSync(beside, { recursive: true });
  for (const file of [...programs, ...libraries.map((name) => `lib${name}.so`)]) {
    copyFileSync(join(build, 'Release', file), join(beside, file));
  }
}

const folder = sanitize === '' && existsSync(beside) ? beside : join(build, 'Release');
const program = join(folder, 'headrace_gpu_tests');
const cache = mkdtempSync(join(tmpdir(), 'headrace-kernels-'));
const stub = (name) => join(folder, `lib${name}.so`);
let status;
try {
  const env =
    values.real === true
      ? { HEADRACE_CACHE: cache }
      : {
          HEADRACE_CACHE: cache,
          HEADRACE_CUDA_LIBRARY: stub('stub_cuda'),
          HEADRACE_HIP_LIBRARY: stub('stub_hip'),
          HEADRACE_NVRTC_LIBRARY: stub('stub_nvrtc'),
          HEADRACE_CUBLAS_LIBRARY: stub('stub_blas'),
          HEADRACE_CUSOLVER_LIBRARY: stub('stub_blas'),
          // OpenBLAS is not instrumented: what happens inside it cannot be judged.
          ...(sanitize === '' ? {} : { HEADRACE_BLAS: 'plain' }),
        };
  status = run(program, positionals, env);
  if (values.real === true && positionals.length === 0) {
    for (const name of ['alone: an illegal address', 'alone: a kernel on the NULL stream']) {
      status = run(program, [name], { ...env, HEADRACE_GPU_ALONE: '1' }) || status;
    }
  }
} finally {
  rmSync(cache, { recursive: true, force: true });
}
process.exitCode = status;
