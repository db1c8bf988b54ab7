// Words for a value that a program has given, in messages about mistakes. Names the value, not what is in it.
// Invariant: no function here throws, whatever its argument.

const MOST_LETTERS = 40;

/** A short text for a value of the program, for messages. It never throws. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return `'${shortened(value)}'`;
    case 'symbol':
      return shortened(String(value));
    case 'bigint':
      return `${shortened(String(value))}n`;
    case 'function':
      return 'a function';
    case 'object':
      return value === null ? 'null' : shownObject(value);
    default:
      return Object.is(value, -0) ? '-0' : String(value);
  }
}

/** The first letters of a text. Those that a terminal does not print are written as in a program. */
function shortened(text: string): string {
  const first = text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS)}...` : text;
  return first.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the letters meant.
    /[\u0000-\u001f\u007f-\u009f]/g,
    (letter) => `\\x${letter.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}

/** An object may be a proxy, whose traps may throw. */
function shownObject(value: object): string {
  try {
    if (Array.isArray(value)) return 'an array';
    const of: unknown = value.constructor;
    const name: unknown = typeof of === 'function' ? of.name : 'Object';
    return typeof name !== 'string' || name === 'Object' || name === ''
      ? 'an object'
      : `an object of class ${shortened(name)}`;
  } catch {
    return 'an object';
  }
}
