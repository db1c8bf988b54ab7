// Options: accepted values, refused values, and the messages.
import fc from 'fast-check';
import { describe, expect, expectTypeOf, it } from 'vitest';
import {
  choice,
  describeOptions,
  flag,
  integer,
  leadingOptions,
  nearest,
  parseOptions,
  size,
  text,
  UsageError,
} from '../../cli/options.js';

const table = {
  n: integer({ min: 1, max: 100, fallback: 10, help: 'order' }),
  depth: integer({ min: 0, max: 5, fallback: undefined, shown: 'unlimited', help: 'depth' }),
  memory: size({ fallback: '24MiB', help: 'memory' }),
  dtype: choice(['f64', 'f32'], { fallback: 'f64', help: 'type' }),
  trace: text({ metavar: 'FILE', help: 'trace' }),
  json: flag({ help: 'JSON' }),
};

const USAGE = 'usage: of the command';
const parse = (line: string) => parseOptions(line === '' ? [] : line.split(' '), table, USAGE);

describe('parsing', () => {
  it('gives the fallbacks when nothing is said', () => {
    expect(parse('')).toEqual({
      n: 10,
      depth: undefined,
      memory: 24 * 2 ** 20,
      dtype: 'f64',
      trace: undefined,
      json: false,
    });
  });

  it('infers the type of every value', () => {
    const values = parse('');
    expectTypeOf(values.n).toEqualTypeOf<number>();
    expectTypeOf(values.depth).toEqualTypeOf<number | undefined>();
    expectTypeOf(values.dtype).toEqualTypeOf<'f64' | 'f32'>();
    expectTypeOf(values.trace).toEqualTypeOf<string | undefined>();
    expectTypeOf(values.json).toEqualTypeOf<boolean>();
  });

  it('takes the letter of an option for its name, and counts both as leading options', () => {
    const short = { output: text({ short: 'o', metavar: 'OUT', help: 'file' }), json: table.json };
    for (const words of [['-o', 'x.svg'], ['-ox.svg'], ['--output', 'x.svg']])
      expect(parseOptions(words, short, USAGE)).toEqual({ output: 'x.svg', json: false });
    expect(leadingOptions(['-o', 'a', '--json', 'file', '-o', 'b'], short)).toBe(3);
    expect(leadingOptions(['--output', 'a', 'file'], short)).toBe(2);
    expect(leadingOptions(['--output=a', 'file'], short)).toBe(1);
    expect(describeOptions(short)).toContain(
      '  -o, --output OUT  file\n  --json            JSON\n',
    );
  });

  it('reads both spellings; the last of repeated options counts', () => {
    expect(
      parse('--n 5 --memory=1.5GiB --json --dtype f32 --trace=a=b.hrtrace --n=7'),
    ).toMatchObject({
      n: 7,
      memory: 1.5 * 2 ** 30,
      dtype: 'f32',
      trace: 'a=b.hrtrace',
      json: true,
    });
  });

  it.each([
    ['4096', 4096],
    ['24MiB', 24 * 2 ** 20],
    ['24mib', 24 * 2 ** 20],
    ['1.5GiB', 1.5 * 2 ** 30],
    ['10MB', 1e7],
    ['3kB', 3000],
    ['7B', 7],
  ])('reads the size %s', (given, bytes) => {
    expect(parse(`--memory ${given}`).memory).toBe(bytes);
  });

  it.each([
    ['--n 0', '--n expects a whole number from 1 to 100, found "0"'],
    ['--n 101', '--n expects a whole number'],
    ['--n 1.5', '--n expects a whole number'],
    ['--n x', '--n expects a whole number'],
    ['--n 1e1', '--n expects a whole number'],
    ['--n=-3', '--n expects a whole number from 1 to 100, found "-3"'],
    ['--n', '--n needs a value'],
    ['--n --json', '--n needs a value'],
    ['--trace=', '--trace expects a value that is not empty'],
    ['--memory 24XB', '--memory expects a size such as 24MiB, 1.5GiB or 4096, found "24XB"'],
    ['--memory 0', '--memory expects a size'],
    ['--memory=-1', '--memory expects a size'],
    ['--memory 1e99GiB', '--memory expects a size'],
    ['--dtype f16', '--dtype expects f64 or f32, found "f16"'],
    ['--json=yes', '--json takes no value'],
    ['--jsn', 'unknown option --jsn, did you mean --json?'],
    ['--frobnicate 3', 'unknown option --frobnicate'],
    ['-x', 'unknown option -x'],
    ['--__proto__ 1', 'unknown option --__proto__'],
    ['extra', 'unexpected argument "extra"'],
    ['-- --json', 'unexpected argument "--json"'],
  ])('refuses %s', (line, message) => {
    expect(() => parse(line)).toThrow(UsageError);
    expect(() => parse(line)).toThrow(message);
  });

  it('ends in values within their limits or in a UsageError, whatever is typed', () => {
    const word = fc.oneof(
      fc.constantFrom(
        '--n',
        '--memory',
        '--json',
        '--dtype',
        '--depth=',
        '--',
        '-',
        '--no-json',
        '--n=',
        '-n',
        '5',
      ),
      fc.string({ maxLength: 8 }),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 5 }), (argv) => {
        try {
          const values = parseOptions(argv, table, USAGE);
          expect(values.n >= 1 && values.n <= 100 && values.memory >= 1).toBe(true);
          expect(['f64', 'f32']).toContain(values.dtype);
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

it('describes every option with its default, aligned', () => {
  expect(describeOptions(table)).toBe(
    [
      '  --n N            order [10]',
      '  --depth N        depth [unlimited]',
      '  --memory SIZE    memory [24MiB]',
      '  --dtype f64|f32  type [f64]',
      '  --trace FILE     trace',
      '  --json           JSON',
      '',
    ].join('\n'),
  );
});

it('suggests only words that are close', () => {
  expect(nearest('choleski', ['cholesky', 'gemm'])).toBe('cholesky');
  expect(nearest('xyz', ['cholesky', 'gemm'])).toBeUndefined();
  expect(nearest('a', ['n'])).toBeUndefined();
});
