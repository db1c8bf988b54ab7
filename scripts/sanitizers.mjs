// Builds and runs both native test programs under each sanitizer: the suite `sanitizers` of `npm test`.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isEnding, runCommand } from './lib/command.mjs';
import { commandLine } from './lib/command-line.mjs';
import { prepare, root } from './lib/prepare.mjs';
import { countProgram, formatCounts, sumCounts } from './lib/test-report.mjs';

commandLine(`usage: node scripts/sanitizers.mjs

Runs the native tests, those of the core and those of the GPU drivers on stub libraries, under the address sanitizer with the
undefined-behaviour sanitizer, then under the thread sanitizer. A finding fails. The last line is the sum of the tests.

  --help   this text
`);

/** The compiler's names for the sanitizers. */
const flags = { address: 'address,undefined', thread: 'thread' };

/** True if the compiler has the sanitizer and its programs run on this kernel. */
async function works(sanitizer) {
  const folder = mkdtempSync(join(tmpdir(), 'headrace-sanitizer-'));
  try {
    const source = join(folder, 'empty.cpp');
    const program = join(folder, 'empty');
    writeFileSync(source, 'int main() {}\n');
    const compiler = process.env['CXX'] ?? 'c++';
    const built = await runCommand(compiler, [
      `-fsanitize=${flags[sanitizer]}`,
      source,
      '-o',
      program,
    ]);
    return built.code === 0 && (await runCommand(program, [])).code === 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One test program under one sanitizer. */
async function runTests(script, sanitizer) {
  process.stdout.write(`${script} --sanitize ${sanitizer}\n`);
  const { code, output, stdout } = await runCommand(
    process.execPath,
    [join(root, 'scripts', script), '--sanitize', sanitizer],
    { cwd: root },
  );
  const counts = countProgram(stdout, code, output);
  // Without the reasons of skipped tests, which follow: each counts once.
  if (counts.failed > 0) process.stdout.write(output.replaceAll(/^ *\(left out here: .*\n/gm, ''));
  // The test command reads the reasons of skipped tests from these lines.
  for (const { what, count } of counts.skips)
    for (let i = 0; i < count; i++) process.stdout.write(`  (left out here: needs ${what})\n`);
  for (const problem of counts.problems) process.stdout.write(`${problem}\n`);
  process.stdout.write(`  ${counts.passed} passed, ${counts.failed} failed\n`);
  return counts;
}

await prepare({ only: ['dependencies'], tools: true });
const required = (process.env['HEADRACE_TEST_REQUIRE'] ?? '').split(',').includes('sanitizers');
const all = [];
for (const sanitizer of Object.keys(flags)) {
  if (isEnding()) break;
  if (!required && !(await works(sanitizer))) {
    const what = `a compiler whose ${sanitizer} sanitizer runs here`;
    process.stdout.write(`  (left out here: needs ${what})\n`);
    all.push({ passed: 0, failed: 0, skipped: 1, problems: [], skips: [] });
    continue;
  }
  all.push(await runTests('native-tests.mjs', sanitizer));
  all.push(await runTests('gpu-native-tests.mjs', sanitizer));
}
const sum = sumCounts(all);
console.log(formatCounts(sum));
process.exitCode = sum.failed > 0 || isEnding() ? 1 : 0;
