// Checks that the C++ files are formatted according to .clang-format. Formats differ between versions of clang-format,
// so only version 14 (Debian 12) counts. The set-up installs it if it may install packages.
import { spawnSync } from 'node:child_process';
import { which } from './lib/command.mjs';
import { commandLine } from './lib/command-line.mjs';
import { root } from './lib/prepare.mjs';
import { listFiles } from './lib/stamp.mjs';
import { ensureSystemPackage } from './lib/system-packages.mjs';

const MAJOR = 14;
/** Files that scripts write and format. */
const generated = [
  'native/include/headrace/contract.h',
  'native/mpi/contract.h',
  'native/gpu/cuda/kernels_ptx.h',
  'native/gpu/cuda/triangles_ptx.h',
];

const { values } = commandLine(
  `usage: node scripts/check-format.mjs [--write]

Checks the format of the C++ files. Exit code 1 when a file differs; 0 with a line that says why when clang-format 14 cannot
be had.

  --write   formats the files
  --help    this text
`,
  { write: { type: 'boolean' } },
);

/** The command of the right version, or undefined. */
function findFormatter() {
  for (const name of [`clang-format-${MAJOR}`, 'clang-format']) {
    if (which(name, process.env) === undefined) continue;
    const { stdout } = spawnSync(name, ['--version'], { encoding: 'utf8' });
    if (new RegExp(`version ${MAJOR}\\.`).test(stdout)) return name;
  }
  return undefined;
}

await ensureSystemPackage(
  {
    name: `clang-format ${MAJOR}`,
    purpose: 'the format of the C++ files is not checked',
    packages: [`clang-format-${MAJOR}`],
    isPresent: () => findFormatter() !== undefined,
  },
  { say: (line) => console.log(line) },
);
const formatter = findFormatter();
if (formatter === undefined) {
  console.log(`format: not checked, there is no clang-format ${MAJOR} here`);
  process.exit(0);
}
const files = listFiles(
  root,
  ['native', 'test/native-gpu', 'bench/peers'],
  (file) => /\.(cpp|h)$/.test(file) && !generated.includes(file),
);
const mode = values.write === true ? ['-i'] : ['--dry-run', '--Werror'];
const { status, stderr } = spawnSync(formatter, [...mode, ...files], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 1e8,
});
const differing = [...new Set([...stderr.matchAll(/^(\S+?):\d+:\d+: error/gm)].map((m) => m[1]))];
for (const file of differing)
  console.log(`format: ${file} differs; to correct it: node scripts/check-format.mjs --write`);
if (status !== 0 && differing.length === 0) console.error(stderr);
if (status === 0) console.log(`format: ${files.length} files`);
process.exitCode = status ?? 1;
