// The versions of the system's libraries that an addon needs, compared with the promised ones (docs/installation.md).
// The linker writes the newest version of each bound symbol. The oldest system that has all of them is the limit.
import { execFileSync } from 'node:child_process';

/** The newest versions that an addon of a platform package may need: those of Ubuntu 22.04 and Debian 12. */
export const limits = { GLIBC: '2.34', GLIBCXX: '3.4.30', CXXABI: '1.3.13' };

/** Libraries to which an addon may be linked: the libraries that Node itself needs. */
export const libraries = [
  /^libc\.so\.6$/,
  /^libm\.so\.6$/,
  /^libstdc\+\+\.so\.6$/,
  /^libgcc_s\.so\.1$/,
  /^ld-linux-[\w-]+\.so\.\d$/,
  /^libpthread\.so\.0$/,
  /^libdl\.so\.2$/,
];

/** True when version `a` is newer than `b`. */
export function isNewer(a, b) {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}

/**
 * The output of `objdump -p` and `objdump -T` for a file: libraries, and versioned symbols that the file does not
 * define.
 */
export function needsOf(dynamic, symbols) {
  const needed = [...dynamic.matchAll(/^\s*NEEDED\s+(\S+)/gm)].map((match) => match[1]);
  const versions = [
    ...symbols.matchAll(/\*UND\*.*?\((GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)\)\s+(\S+)/g),
  ].map(([, kind, version, symbol]) => ({ kind, version, symbol }));
  return { needed, versions };
}

/** Problems of a file's needs, each with the symbol that causes it. */
export function problemsOf({ needed, versions }) {
  const strangers = needed
    .filter((name) => !libraries.some((allowed) => allowed.test(name)))
    .map((name) => `it needs ${name}, which not every system with Node has`);
  const tooNew = versions
    .filter(({ kind, version }) => limits[kind] !== undefined && isNewer(version, limits[kind]))
    .map(
      ({ kind, version, symbol }) =>
        `${symbol} needs ${kind}_${version}, promised is ${limits[kind]}`,
    );
  return [...strangers, ...tooNew];
}

/** Problems of an addon file. */
export function checkSymbols(file) {
  const say = (option) => execFileSync('objdump', [option, file], { encoding: 'utf8' });
  const needs = needsOf(say('-p'), say('-T'));
  if (needs.versions.length === 0) return ['objdump shows no versioned symbols'];
  return problemsOf(needs);
}
