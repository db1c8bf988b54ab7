// The work of a script in several processes side by side: each does a part of it with `--json`, and the reports are merged.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { dist } from './compiled.mjs';
import { root } from './prepare.mjs';

/**
 * Runs a script once for each list of arguments, all at the same time, and passes signals on to all of them. The compiled files must be
 * up to date.
 *
 * @param {string} script path of the script
 * @param {readonly (readonly string[])[]} argumentLists
 * @returns {Promise<{ reports: any[], silent: number, code: number }>} the JSON objects that were printed, the number of
 * processes without one, of which stderr tells, and the largest exit code: not 0 if there are such processes
 */
export async function runJobs(script, argumentLists) {
  const env = { ...process.env, HEADRACE_DIST: path.relative(root, dist) };
  const children = argumentLists.map((args) =>
    // In a group of its own: from a terminal, a signal would reach it twice, and the second one ends it without a report.
    spawn(process.execPath, [script, ...args, '--json'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
      env,
    }),
  );
  for (const signal of ['SIGINT', 'SIGTERM']) {
    // The set-up has ended its children; its signal handlers would end this process without the reports.
    process.removeAllListeners(signal);
    process.on(signal, () => {
      for (const child of children) child.kill(signal);
    });
  }
  const ends = await Promise.all(children.map(endOf));
  const reports = ends.flatMap(({ report }) => (report === undefined ? [] : [report]));
  const silent = ends.length - reports.length;
  if (silent > 0)
    process.stderr.write(`${silent} of ${ends.length} processes ended without a report\n`);
  return { reports, silent, code: Math.max(...ends.map((end) => end.code), silent > 0 ? 1 : 0) };
}

/** @param {import('node:child_process').ChildProcess} child */
function endOf(child) {
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout?.on('data', (data) => (output += data));
    child.once('error', reject);
    child.once('close', (code) => {
      let report;
      try {
        report = JSON.parse(output);
      } catch {
        // It ended without a report.
      }
      resolve({ report, code: code ?? 1 });
    });
  });
}

/**
 * One report of reports of the same shape: numbers are added, lists joined, and objects merged by key.
 *
 * @param {readonly any[]} reports
 */
export function merged(reports) {
  const [first] = reports;
  if (typeof first === 'number') return reports.reduce((a, b) => a + b, 0);
  if (Array.isArray(first)) return reports.flat();
  const keys = new Set(reports.flatMap((report) => Object.keys(report)));
  return Object.fromEntries(
    [...keys].map((key) => [
      key,
      merged(reports.map((report) => report[key]).filter((value) => value !== undefined)),
    ]),
  );
}
