// Matrix Market files: a written file reads back, and an error in a file is reported with its line.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ArrayMatrix,
  type CoordinateMatrix,
  type MatrixMarket,
  readMatrixMarket,
  readMatrixMarketFile,
  writeMatrixMarket,
  writeMatrixMarketFile,
} from '../../cli/matrix-market.js';
import { HeadraceError } from '../../scheduler/errors.js';
import { matrix as matrixNeed, needing } from '../support/needs.js';
import { findSample } from './sample-data.js';

const read = (text: string): Promise<MatrixMarket> => readMatrixMarket([text], 'test.mtx');

async function failure(text: string): Promise<HeadraceError> {
  const error = await read(text).then(
    () => undefined,
    (reason) => reason,
  );
  expect(error, `accepted: ${JSON.stringify(text)}`).toBeInstanceOf(HeadraceError);
  return error as HeadraceError;
}

const sym = '%%MatrixMarket matrix coordinate real symmetric\n';
const gen = '%%MatrixMarket matrix coordinate real general\n';
const arr = '%%MatrixMarket matrix array real general\n';

describe('reading', () => {
  it('reads comments, blank lines, tabs, carriage returns and a last line without line feed', async () => {
    const text =
      '%%matrixmarket MATRIX Coordinate Real Symmetric\r\n% c\r\n\r\n 2\t2  2 \r\n%d\r\n1 1 4.5e0\r\n\r\n2 1 -.5';
    expect(await read(text)).toEqual({
      format: 'coordinate',
      rows: 2,
      cols: 2,
      symmetric: true,
      rowIndex: Int32Array.of(0, 1),
      colIndex: Int32Array.of(0, 0),
      value: Float64Array.of(4.5, -0.5),
    });
  });

  it('reads integer arrays column by column, symmetric ones from the diagonal down', async () => {
    const general = '%%MatrixMarket matrix array integer general\n2 3\n1\n2\n3\n4\n5\n-6\n';
    expect(await read(general)).toMatchObject({
      rows: 2,
      cols: 3,
      value: Float64Array.of(1, 2, 3, 4, 5, -6),
    });
    const symmetric = '%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n';
    expect(await read(symmetric)).toMatchObject({
      symmetric: true,
      value: Float64Array.of(1, 2, 3),
    });
  });

  it('adds up duplicate entries in the place of the first', async () => {
    const matrix = (await read(
      `${gen}3 3 5\n3 1 1\n1 2 2\n3 1 10\n1 1 5\n3 1 100\n`,
    )) as CoordinateMatrix;
    expect([...matrix.rowIndex]).toEqual([2, 0, 0]);
    expect([...matrix.colIndex]).toEqual([0, 1, 0]);
    expect([...matrix.value]).toEqual([111, 2, 5]);
  });

  it('reads the same however the stream is cut', async () => {
    const bytes = new TextEncoder().encode(`${sym}% comment\n3 3 3\n1 1 1.25\n3 2 -7\n3 3 2e3\n`);
    const whole = await readMatrixMarket([bytes]);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 8 }), async (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        const pieces = at.slice(1).map((end, k) => bytes.subarray(at[k], end));
        expect(await readMatrixMarket(pieces)).toEqual(whole);
      }),
    );
  });

  it('does not allocate the claimed size of a size line', async () => {
    const error = await failure(`${gen}2147483647 2147483647 900000000000000\n1 1 1\n`);
    expect(error.message).toContain('end of file after 1');
    const dense = await failure('%%MatrixMarket matrix array real general\n90000000 90000000\n1\n');
    expect(dense.details.line).toBe(4);
  });

  it('names the file that cannot be read', async () => {
    await expect(readMatrixMarketFile('/nowhere/a.mtx')).rejects.toMatchObject({
      code: 'ERR_MATRIX_MARKET',
      message: expect.stringContaining('/nowhere/a.mtx'),
    });
  });

  const sample = findSample('bcsstk15.mtx');
  it('reads a real stiffness matrix', needing(matrixNeed('bcsstk15.mtx', sample)), async () => {
    const matrix = (await readMatrixMarketFile(sample ?? '')) as CoordinateMatrix;
    expect(matrix).toMatchObject({
      format: 'coordinate',
      rows: 3948,
      cols: 3948,
      symmetric: true,
    });
    expect(matrix.value).toHaveLength(60882);
    expect(matrix.value[0]).toBe(7.570118779216e6);
    let diagonal = 0;
    for (let k = 0; k < matrix.value.length; k++) {
      if (matrix.rowIndex[k] === matrix.colIndex[k] && matrix.value[k] > 0) diagonal += 1;
    }
    expect(diagonal).toBe(3948);
  });
});

describe('malformed files', () => {
  it.each<[name: string, text: string, line: number, expected: string]>([
    ['empty', '', 1, '%%MatrixMarket'],
    ['no banner', '1 1 1\n', 1, 'the banner'],
    ['short banner', '%%MatrixMarket matrix array\n', 1, 'the banner'],
    ['vector', '%%MatrixMarket vector array real general\n', 1, '"matrix"'],
    ['bad format', '%%MatrixMarket matrix sparse real general\n', 1, '"coordinate" or "array"'],
    ['bad field', '%%MatrixMarket matrix array float general\n', 1, '"real" or "integer"'],
    ['bad symmetry', '%%MatrixMarket matrix array real lower\n', 1, '"general" or "symmetric"'],
    [
      'complex',
      '%%MatrixMarket matrix array complex general\n',
      1,
      'complex matrices are not supported',
    ],
    [
      'pattern',
      '%%MatrixMarket matrix coordinate pattern general\n',
      1,
      'pattern matrices are not supported',
    ],
    [
      'skew',
      '%%MatrixMarket matrix array real skew-symmetric\n',
      1,
      'skew-symmetric matrices are not supported',
    ],
    [
      'hermitian',
      '%%MatrixMarket matrix array real hermitian\n',
      1,
      'hermitian matrices are not supported',
    ],
    ['no size', `${gen}% only comments\n`, 3, 'the size line'],
    ['two sizes', `${gen}% c\n3 3\n`, 3, 'three integers'],
    ['three sizes in array', `${arr}3 3 9\n`, 2, 'two integers'],
    ['words as size', `${gen}a b c\n`, 2, 'three integers'],
    ['zero rows', `${gen}0 3 0\n`, 2, 'from 1 to'],
    ['negative count', `${gen}3 3 -1\n`, 2, 'three integers'],
    ['not square', `${sym}3 2 1\n`, 2, 'as many rows as columns'],
    ['row 0', `${gen}2 2 1\n0 1 5\n`, 3, 'a row from 1 to 2'],
    ['row too large', `${gen}2 2 1\n3 1 5\n`, 3, 'a row from 1 to 2'],
    ['column too large', `${gen}2 2 1\n\n%x\n1 3 5\n`, 5, 'a column from 1 to 2'],
    ['fractional row', `${gen}2 2 1\n1.5 1 5\n`, 3, 'a row'],
    ['above the diagonal', `${sym}2 2 1\n1 2 5\n`, 3, 'row >= column'],
    ['no value', `${gen}2 2 1\n1 1\n`, 3, '"row column value"'],
    ['too many fields', `${gen}2 2 1\n1 1 2 3\n`, 3, '"row column value"'],
    ['word as value', `${gen}2 2 1\n1 1 x\n`, 3, 'a real number'],
    ['hexadecimal value', `${gen}2 2 1\n1 1 0x10\n`, 3, 'a real number'],
    ['infinite value', `${gen}2 2 1\n1 1 inf\n`, 3, 'a real number'],
    ['overflowing value', `${gen}2 2 1\n1 1 1e999\n`, 3, 'fits in 64 bits'],
    [
      'real in an integer file',
      '%%MatrixMarket matrix array integer general\n1 1\n1.5\n',
      3,
      'an integer',
    ],
    ['two values on a line', `${arr}2 1\n1 2\n`, 3, 'one value'],
    ['truncated', `${gen}2 2 3\n1 1 1\n2 2 1\n`, 5, '3 entries, as line 2 says'],
    ['truncated array', `${arr}2 1\n1\n`, 4, '2 values'],
    ['one entry too many', `${gen}2 2 1\n1 1 1\n2 2 1\n`, 4, 'end of file after 1 entry'],
    ['no text', `${gen}${'\u0000'.repeat(70_000)}`, 2, 'is this a text file'],
  ])('%s: the error names the line and what was expected', async (_, text, line, expected) => {
    const error = await failure(text);
    expect(error.code).toBe('ERR_MATRIX_MARKET');
    expect(error.details.line).toBe(line);
    expect(error.message).toContain(`test.mtx, line ${line}: `);
    expect(error.message).toContain(expected);
  });

  it('ends in a matrix or a typed error with a line, whatever happens to a good file', async () => {
    const good = `${sym}% c\n4 4 5\n1 1 4\n2 2 5e-1\n3 1 -1\n3 3 6\n4 4 7.25\n`;
    const change = fc.record({
      at: fc.nat(good.length),
      drop: fc.nat(12),
      insert: fc.oneof(
        fc.string({ maxLength: 6 }),
        fc.constantFrom('\n', ' ', '-1', '99999999999', '1e400', '%', '\r', '0', 'nan'),
      ),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
        let text = good;
        for (const { at, drop, insert } of changes) {
          text = text.slice(0, at) + insert + text.slice(at + drop);
        }
        try {
          const matrix = (await read(text)) as CoordinateMatrix;
          expect(matrix.value.every(Number.isFinite)).toBe(true);
          if (matrix.format === 'coordinate') {
            expect(matrix.rowIndex.every((row) => row >= 0 && row < matrix.rows)).toBe(true);
            expect(matrix.colIndex.every((col) => col >= 0 && col < matrix.cols)).toBe(true);
          }
        } catch (error) {
          if (!(error instanceof HeadraceError)) throw error;
          expect(error.code).toBe('ERR_MATRIX_MARKET');
          expect(error.details.line).toBeGreaterThan(0);
          expect(error.details.line).toBeLessThanOrEqual(text.split('\n').length + 1);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe('writing', () => {
  const finite = fc.double({ noNaN: true, noDefaultInfinity: true });
  const dense: fc.Arbitrary<ArrayMatrix> = fc
    .record({
      rows: fc.integer({ min: 1, max: 6 }),
      cols: fc.integer({ min: 1, max: 6 }),
      symmetric: fc.boolean(),
    })
    .chain(({ rows, cols, symmetric }) => {
      const width = symmetric ? rows : cols;
      const length = symmetric ? (rows * (rows + 1)) / 2 : rows * cols;
      return fc.array(finite, { minLength: length, maxLength: length }).map(
        (values): ArrayMatrix => ({
          format: 'array',
          rows,
          cols: width,
          symmetric,
          value: Float64Array.from(values),
        }),
      );
    });
  const sparse: fc.Arbitrary<CoordinateMatrix> = fc
    .record({ n: fc.integer({ min: 1, max: 9 }), symmetric: fc.boolean() })
    .chain(({ n, symmetric }) => {
      const place = fc
        .tuple(fc.nat(n - 1), fc.nat(n - 1))
        .map(([i, j]) => (symmetric && j > i ? ([j, i] as const) : ([i, j] as const)));
      return fc
        .uniqueArray(fc.tuple(place, finite), { selector: ([[i, j]]) => i * n + j, maxLength: 30 })
        .map(
          (entries): CoordinateMatrix => ({
            format: 'coordinate',
            rows: n,
            cols: n,
            symmetric,
            rowIndex: Int32Array.from(entries, ([[i]]) => i),
            colIndex: Int32Array.from(entries, ([[, j]]) => j),
            value: Float64Array.from(entries, ([, value]) => value),
          }),
        );
    });

  it('reads back a written matrix bit for bit', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(dense, sparse),
        fc.string({ maxLength: 20 }),
        async (matrix, comment) => {
          expect(await readMatrixMarket(writeMatrixMarket(matrix, comment))).toEqual(matrix);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('writes and reads files larger than a piece', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'headrace-mtx-'));
    try {
      const value = Float64Array.from({ length: 40_000 }, (_, k) => Math.sin(k));
      const matrix: ArrayMatrix = {
        format: 'array',
        rows: 40_000,
        cols: 1,
        symmetric: false,
        value,
      };
      await writeMatrixMarketFile(path.join(folder, 'b.mtx'), matrix, 'two\nlines');
      expect(await readMatrixMarketFile(path.join(folder, 'b.mtx'))).toEqual(matrix);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
