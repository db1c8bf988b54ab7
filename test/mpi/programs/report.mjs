// The report of a rank program: it goes to a file of its own, because launchers mix, cut and lose standard output.
import { appendFileSync } from 'node:fs';
import path from 'node:path';

/** Reports one JSON object. */
export function report(rank, value) {
  const line = `${JSON.stringify({ rank, ...value })}\n`;
  const folder = process.env['HEADRACE_REPORTS'];
  if (folder === undefined) process.stdout.write(line);
  else appendFileSync(path.join(folder, `rank-${rank}.jsonl`), line);
}
