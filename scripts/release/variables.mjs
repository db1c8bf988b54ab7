// The environment variables in an addon's text: an addon that is published reads the documented ones only. So it has no
// switch that only tests use.
import { readFileSync } from 'node:fs';

const NAME = /HEADRACE_[A-Z0-9_]+/g;
const page = new URL('../../docs/installation.md', import.meta.url);

/** The variables that docs/installation.md lists. */
export function documented() {
  const table = readFileSync(page, 'utf8').split('## Environment variables')[1].split('\n## ')[0];
  return new Set(table.match(NAME));
}

/** Problems of an addon file: names of variables that users are not told of. */
export function checkVariables(file) {
  const known = documented();
  const names = new Set(readFileSync(file, 'latin1').match(NAME));
  if (names.size === 0) return [`${file} reads no environment variable, so it is no addon`];
  return [...names]
    .filter((name) => !known.has(name))
    .map((name) => `it reads ${name}, which docs/installation.md does not list`);
}
