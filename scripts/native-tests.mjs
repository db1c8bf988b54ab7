// Builds and runs the native test program (no Node inside), plain or under a sanitizer:
//   node scripts/native-tests.mjs [--sanitize address|thread] [part of a test's name]
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values, positionals } = parseArgs({
  options: { sanitize: { type: 'string' } },
  allowPositionals: true,
});
const sanitize = values.sanitize ?? '';
if (!['', 'address', 'thread'].includes(sanitize)) {
  console.error(`--sanitize is 'address' or 'thread', not '${sanitize}'`);
  process.exit(2);
}
const build = join(root, sanitize === '' ? 'build-tests' : `build-${sanitize}`);

function run(command, args, env = {}) {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  if (error !== undefined) console.error(error.message);
  if (status !== 0) process.exit(status ?? 1);
}

run('cmake', ['-S', root, '-B', build, '-DHEADRACE_TESTS=ON', `-DHEADRACE_SANITIZE=${sanitize}`]);
run('cmake', ['--build', build, '--target', 'headrace_tests', '--parallel', '2']);
run(join(build, 'headrace_tests'), positionals, {
  ASAN_OPTIONS: 'detect_leaks=1',
  // OpenBLAS is not instrumented: what happens inside it cannot be judged.
  ...(sanitize === 'thread' ? { HEADRACE_BLAS: process.env.HEADRACE_BLAS ?? 'plain' } : {}),
});
