// Builds and runs the native GPU tests: on stub driver libraries (default; needs no GPU), or on the GPUs of this
// machine. With --real, tests that make their process unusable (a lost device, the NULL stream) run last, one process
// each.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from './lib/command.mjs';
import { commandLine, usageError } from './lib/command-line.mjs';
import { prepare, root } from './lib/prepare.mjs';
import { buildStubs, sanitizerEnvironment, stubFolder } from './lib/stubs.mjs';

const usage = `usage: node scripts/gpu-native-tests.mjs [options] [part of a test's name]

Builds and runs the native GPU tests; without a name all of them.

  --real                       on the GPUs of this machine, not on the stub drivers
  --no-build                   take the programs beside the addon as they are
  --sanitize address|thread    build and run them with this sanitizer; undefined behaviour counts as address
  --help                       this text
`;
const { values, positionals } = commandLine(
  usage,
  {
    real: { type: 'boolean' },
    'no-build': { type: 'boolean' },
    sanitize: { type: 'string' },
  },
  { words: true },
);
const sanitize = values.sanitize ?? '';
if (!['', 'address', 'thread'].includes(sanitize))
  usageError(usage, `--sanitize is 'address' or 'thread', not '${sanitize}'`);
const build = stubFolder(root, sanitize);
// The programs lie beside the addon, so that they are copied with it to a machine with GPUs.
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

if (values['no-build'] !== true) {
  await prepare({ stubs: sanitize === '' });
  if (sanitize !== '') {
    const { code, output } = await buildStubs(
      { root, run: runCommand, env: process.env },
      sanitize,
    );
    if (code !== 0) {
      process.stderr.write(output);
      process.exit(1);
    }
  }
}

const folder = sanitize === '' && existsSync(beside) ? beside : join(build, 'Release');
const program = join(folder, 'headrace_gpu_tests');
if (!existsSync(program)) {
  console.error(`${program} is missing; leave out --no-build to build it`);
  process.exit(1);
}
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
          ...(sanitize === '' ? {} : sanitizerEnvironment),
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
