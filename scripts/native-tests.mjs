// Builds and runs the native test program (no Node inside), plain or under a sanitizer.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { commandLine, usageError } from './lib/command-line.mjs';
import { prepare, root } from './lib/prepare.mjs';
import { configuration, sanitizerEnvironment, stubFolder } from './lib/stubs.mjs';

const usage = `usage: node scripts/native-tests.mjs [options] [part of a test's name]

Builds and runs the native tests; without a name all of them.

  --sanitize address|thread    build and run them with this sanitizer; undefined behaviour counts as address
  --help                       this text
`;
const { values, positionals } = commandLine(
  usage,
  { sanitize: { type: 'string' } },
  { words: true },
);
const sanitize = values.sanitize ?? '';
if (!['', 'address', 'thread'].includes(sanitize))
  usageError(usage, `--sanitize is 'address' or 'thread', not '${sanitize}'`);
await prepare({ only: ['dependencies'], tools: true });
const build = sanitize === '' ? join(root, 'build-tests') : stubFolder(root, sanitize);

function run(command, args, env = {}) {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  if (error !== undefined) console.error(error.message);
  if (status !== 0) process.exit(status ?? 1);
}

// Settings that differ from those of the GPU tests would compile everything twice.
const settings = sanitize === '' ? ['-S', root, '-B', build] : configuration(root, sanitize);
run('cmake', [...settings, '-DHEADRACE_TESTS=ON']);
run('cmake', ['--build', build, '--target', 'headrace_tests', '--parallel', '2']);
run(join(build, 'headrace_tests'), positionals, {
  ...(sanitize === '' ? {} : sanitizerEnvironment),
});
