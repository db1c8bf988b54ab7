// Exports that no other file names. Such an export says that others use it, and no compiler notices that none does.
// A name counts as used if any other file contains it as a word, so an equal name elsewhere hides an unused one.

const EXPORT =
  /^export (?:declare |abstract |async )*(?:const|let|function\*?|class|interface|type|enum) ([\w$]+)/gm;
const STAR = /^export \* from '([^']+)'/gm;
const WORD = /[A-Za-z_$][\w$]*/g;

/** Everything in these files is read by name at run time. */
const readAsWhole = ['native/contract.ts', 'native/mpi-contract.ts'];

/**
 * @param {Map<string, string>} sources texts whose exports are checked, by path relative to the project
 * @param {Map<string, string>} others further texts in which names may be used
 * @param {(file: string, specifier: string) => string} targetOf the file that an import names
 * @returns {string[]} problems
 */
export function unusedExports(sources, others, targetOf) {
  const files = new Map();
  const passedOn = new Set(readAsWhole);
  for (const [file, text] of [...sources, ...others]) {
    for (const word of new Set(text.match(WORD))) files.set(word, (files.get(word) ?? 0) + 1);
    for (const [, specifier] of text.matchAll(STAR)) passedOn.add(targetOf(file, specifier));
  }
  return [...sources]
    .filter(([file]) => !passedOn.has(file))
    .flatMap(([file, text]) => [...text.matchAll(EXPORT)].map(([, name]) => ({ file, name })))
    .filter(({ name }) => files.get(name) === 1)
    .map(({ file, name }) => `${file}: exports ${name}, which no other file uses`);
}
