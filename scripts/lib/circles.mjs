// Circles among files: sets of files in which each file imports every other one, directly or not.

/**
 * Circles of more than `most` files, largest first (Tarjan's algorithm).
 *
 * @param {Map<string, Iterable<string>>} imports file -> files it imports
 * @param {number} most
 * @returns {string[][]} the files of each circle, sorted
 */
export function circles(imports, most) {
  const number = new Map();
  const low = new Map();
  const stack = [];
  const onStack = new Set();
  const found = [];
  const visit = (file) => {
    number.set(file, number.size);
    low.set(file, number.get(file));
    stack.push(file);
    onStack.add(file);
    for (const next of imports.get(file) ?? []) {
      if (!imports.has(next)) continue;
      if (!number.has(next)) {
        visit(next);
        low.set(file, Math.min(low.get(file), low.get(next)));
      } else if (onStack.has(next)) low.set(file, Math.min(low.get(file), number.get(next)));
    }
    if (low.get(file) !== number.get(file)) return;
    const circle = [];
    let each;
    do {
      each = stack.pop();
      onStack.delete(each);
      circle.push(each);
    } while (each !== file);
    if (circle.length > most) found.push(circle.sort());
  };
  for (const file of imports.keys()) if (!number.has(file)) visit(file);
  return found.sort((a, b) => b.length - a.length);
}
