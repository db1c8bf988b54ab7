// Counts of passed, failed and skipped tests, read from the reports of the suites.
// Invariants: a suite that ended badly never counts as zero failures, and every skipped test names its need.

/**
 * Tests that were skipped for one reason.
 * @typedef {{ id: string, what: string, remedy?: string, count: number }} Skip
 */
/** @typedef {{ passed: number, failed: number, skipped: number, problems: string[], skips: Skip[] }} Counts */

function meaning(exitCode) {
  return exitCode === 124 ? 'it did not end in time' : `exit code ${exitCode}`;
}

/** A failure that belongs to no test. */
function failure(problem) {
  return { passed: 0, failed: 1, skipped: 0, problems: [problem], skips: [] };
}

/** Adds skips with their reasons to a list. */
function addSkip(skips, { id, what, remedy }, count) {
  const known = skips.find((each) => each.what === what);
  if (known === undefined) skips.push({ id, what, remedy, count });
  else known.count += count;
}

const notChosen = { id: 'chosen', what: 'to be chosen by the arguments' };

/**
 * Counts of one vitest run. A file that could not be loaded, a crashed worker and an unhandled error have no
 * test to their name in the report, so they are counted from the file results and the exit code. A skipped test without a
 * reason (test/support/needs.ts gives it one) counts as failed.
 *
 * @param {unknown} report parsed JSON report, undefined when there is none
 * @param {number} exitCode
 * @param {{ isPartial?: boolean, required?: readonly string[] }} [options] isPartial: arguments chose some of the tests;
 *   required: needs (by id) whose absence is a failure
 * @returns {Counts}
 */
export function countVitest(report, exitCode, options = {}) {
  if (report === null || typeof report !== 'object' || !Array.isArray(report.testResults)) {
    return failure(`no report was written (${meaning(exitCode)})`);
  }
  const counts = { passed: 0, failed: 0, skipped: 0, problems: [], skips: [] };
  for (const file of report.testResults) {
    const failedHere = countFile(file, counts, options);
    if (file.status === 'failed' && failedHere === 0) {
      counts.problems.push(`${file.name}: ${file.message || 'failed outside a test'}`);
      counts.failed += 1;
    }
    counts.failed += failedHere;
  }
  const { passed, failed, skipped, problems } = counts;
  if (exitCode !== 0 && failed === 0) {
    problems.push(
      `${meaning(exitCode)} although no test failed (a worker crashed, or an error outside a test)`,
    );
    counts.failed = 1;
  }
  if (exitCode === 0 && passed + failed + skipped === 0) {
    problems.push('no test was run');
    counts.failed = 1;
  }
  return counts;
}

/** Adds the tests of one file except the failed ones, and returns the number of failed ones. */
function countFile(file, counts, { isPartial = false, required = [] }) {
  let failed = 0;
  for (const { status, fullName, meta, failureMessages } of file.assertionResults ?? []) {
    if (status === 'passed') counts.passed += 1;
    else if (status === 'failed') {
      counts.problems.push(`${fullName}: ${beginning(failureMessages)}`);
      failed += 1;
    } else if (status === 'pending') {
      counts.problems.push(`${fullName}: did not end`); // its worker crashed
      failed += 1;
    } else if (meta?.needs === undefined && !isPartial) {
      counts.problems.push(`${fullName}: was skipped without a reason`);
      failed += 1;
    } else if (required.includes(meta?.needs?.id)) {
      counts.problems.push(`${fullName}: needs ${meta.needs.what}, which is required here`);
      failed += 1;
    } else {
      counts.skipped += 1;
      addSkip(counts.skips, meta?.needs ?? notChosen, 1);
    }
  }
  return failed;
}

/** The first lines of a failed test's message: what was expected, without most of the stack. */
function beginning(messages) {
  return (messages?.join('\n') ?? 'failed').split('\n').slice(0, 12).join('\n');
}

const countsLine = /^tests: (\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/;
const leftOut = /^\(left out here: needs (.*)\)$/;

/**
 * Counts of a program that prints `tests: N passed, N failed[, N skipped]`, and for each skipped test a line
 * `(left out here: needs ...)`.
 *
 * @param {string} output
 * @param {number} exitCode
 * @param {string} [errors] what it printed to standard error
 * @returns {Counts}
 */
export function countProgram(output, exitCode, errors = '') {
  const trimmed = (text) => text.split('\n').map((line) => line.trim());
  const lines = trimmed(output);
  const found = findings([...lines, ...trimmed(errors)]);
  const match = lines.map((line) => countsLine.exec(line)).findLast((found) => found !== null);
  if (match === undefined || match === null) {
    const text = `no counts were printed (${meaning(exitCode)})`;
    return failure([text, ...found].join('\n'));
  }
  const [passed, failed, skipped] = [1, 2, 3].map((at) => Number(match[at] ?? 0));
  const counts = { passed, failed, skipped, problems: [], skips: [] };
  if (failed > 0)
    counts.problems.push([`${failed} failed; its output names them`, ...found].join('\n'));
  for (const line of lines) {
    const what = leftOut.exec(line)?.[1];
    if (what !== undefined) addSkip(counts.skips, { id: 'native', what }, 1);
  }
  const explained = counts.skips.reduce((sum, { count }) => sum + count, 0);
  if (explained !== skipped) {
    counts.problems.push(`${skipped} tests were skipped, but reasons were given for ${explained}`);
    counts.failed += 1;
  }
  if (exitCode !== 0 && counts.failed === 0) {
    counts.failed = 1;
    const text = `${meaning(exitCode)} although no test failed`;
    counts.problems.push([text, ...found].join('\n'));
  }
  return counts;
}

/** Lines of a program's output that say what was found: checks that failed and the sanitizers' summaries, each once. */
function findings(lines) {
  const said = lines.filter((line) => /^SUMMARY: \w+Sanitizer: |^\S+:\d+: not true: /.test(line));
  return [...new Set(said)].slice(0, 12);
}

/** The last line of the test command, for all its readers. */
export function formatCounts({ passed, failed, skipped }) {
  return `tests: ${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/** The reasons of skipped tests, most frequent first: one line per reason; '' without skipped tests. */
export function formatSkips({ skips }) {
  if (skips.length === 0) return '';
  const rows = [...skips]
    .sort((a, b) => b.count - a.count)
    .map(({ what, remedy, count }) => {
      const end = remedy === undefined ? '' : `; to get it: ${remedy}`;
      return `${String(count).padStart(8)}  needs ${what}${end}\n`;
    });
  return `skipped tests by reason:\n${rows.join('')}`;
}

/** What went wrong, for the end of a long output; '' when nothing did. */
export function formatProblems({ problems }) {
  if (problems.length === 0) return '';
  return `what failed:\n${problems.map((problem) => `  ${problem.replaceAll('\n', '\n    ')}\n`).join('')}`;
}

/** @param {Counts[]} all @returns {Counts} */
export function sumCounts(all) {
  const sum = { passed: 0, failed: 0, skipped: 0, problems: [], skips: [] };
  for (const counts of all) {
    sum.passed += counts.passed;
    sum.failed += counts.failed;
    sum.skipped += counts.skipped;
    sum.problems.push(...counts.problems);
    for (const skip of counts.skips) addSkip(sum.skips, skip, skip.count);
  }
  return sum;
}
