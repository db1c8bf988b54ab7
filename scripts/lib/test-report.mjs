// Counts of passed, failed and skipped tests, read from what the suites themselves report.
// Invariant: a suite that ended badly never counts as zero failures.

/** @typedef {{ passed: number, failed: number, skipped: number, problems: string[] }} Counts */

function meaning(exitCode) {
  return exitCode === 124 ? 'it did not end in time' : `exit code ${exitCode}`;
}

/**
 * Counts of one vitest run. A file that could not be loaded, a crashed worker and an unhandled error have no
 * test to their name in the report, so they are counted from the file results and the exit code.
 *
 * @param {unknown} report parsed JSON report, undefined when there is none
 * @param {number} exitCode
 * @returns {Counts}
 */
export function countVitest(report, exitCode) {
  const problems = [];
  if (report === null || typeof report !== 'object' || !Array.isArray(report.testResults)) {
    return {
      passed: 0,
      failed: 1,
      skipped: 0,
      problems: [`no report was written (${meaning(exitCode)})`],
    };
  }
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  for (const file of report.testResults) {
    let failedHere = 0;
    for (const test of file.assertionResults ?? []) {
      if (test.status === 'passed') passed += 1;
      else if (test.status === 'failed') failedHere += 1;
      else if (test.status === 'pending') {
        problems.push(`${test.fullName}: did not come to an end`); // its worker crashed
        failedHere += 1;
      } else skipped += 1;
    }
    if (file.status === 'failed' && failedHere === 0) {
      problems.push(`${file.name}: ${file.message || 'failed outside a test'}`);
      failedHere = 1;
    }
    failed += failedHere;
  }
  if (exitCode !== 0 && failed === 0) {
    problems.push(
      `${meaning(exitCode)} although no test failed (a worker crashed, or an error outside a test)`,
    );
    failed = 1;
  }
  if (exitCode === 0 && passed + failed + skipped === 0) {
    problems.push('no test was run');
    failed = 1;
  }
  return { passed, failed, skipped, problems };
}

const countsLine = /^tests: (\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/;

/**
 * Counts of a program that prints `tests: N passed, N failed[, N skipped]`.
 *
 * @param {string} output
 * @param {number} exitCode
 * @returns {Counts}
 */
export function countProgram(output, exitCode) {
  const match = output
    .split('\n')
    .map((line) => countsLine.exec(line.trim()))
    .findLast((found) => found !== null);
  if (match === undefined || match === null) {
    return {
      passed: 0,
      failed: 1,
      skipped: 0,
      problems: [`no counts were printed (${meaning(exitCode)})`],
    };
  }
  const counts = {
    passed: Number(match[1]),
    failed: Number(match[2]),
    skipped: Number(match[3] ?? 0),
    problems: [],
  };
  if (exitCode !== 0 && counts.failed === 0) {
    counts.failed = 1;
    counts.problems.push(`${meaning(exitCode)} although no test failed`);
  }
  return counts;
}

/** The line every consumer of the test command reads. */
export function formatCounts({ passed, failed, skipped }) {
  return `tests: ${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/** @param {Counts[]} all @returns {Counts} */
export function sumCounts(all) {
  const sum = { passed: 0, failed: 0, skipped: 0, problems: [] };
  for (const counts of all) {
    sum.passed += counts.passed;
    sum.failed += counts.failed;
    sum.skipped += counts.skipped;
    sum.problems.push(...counts.problems);
  }
  return sum;
}
