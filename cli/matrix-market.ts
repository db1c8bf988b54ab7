// Reads and writes Matrix Market files (https://math.nist.gov/MatrixMarket/formats.html), in one pass over a
// stream, so that a file is never held as text.
// Invariant: whatever the defect of a file, the error names the line and the expected text. A size line alone
// never allocates memory; arrays grow with the entries that really arrive.
import { createReadStream, createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { HeadraceError } from '../scheduler/errors.js';
import { describeThrown } from '../trace/thrown.js';

/** A sparse matrix as stored: indices count from 0, entries in file order, no entry twice. */
export interface CoordinateMatrix {
  readonly format: 'coordinate';
  readonly rows: number;
  readonly cols: number;
  /** True: only the lower triangle is stored; entry (i, j), i > j, stands for (j, i) too. */
  readonly symmetric: boolean;
  readonly rowIndex: Int32Array;
  readonly colIndex: Int32Array;
  readonly value: Float64Array;
}

/** A dense matrix or vector as stored, column by column. */
export interface ArrayMatrix {
  readonly format: 'array';
  readonly rows: number;
  readonly cols: number;
  /** True: each column is stored from its diagonal entry down only. */
  readonly symmetric: boolean;
  /** `rows * cols` values, or `n (n + 1) / 2` of a symmetric matrix. */
  readonly value: Float64Array;
}

/** The content of a Matrix Market file. */
export type MatrixMarket = CoordinateMatrix | ArrayMatrix;

/** Text or bytes in pieces of any size. */
type TextChunks = AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>;

const maximumLine = 1 << 16;
const maximumSize = 2 ** 31 - 1;

/**
 * Reads a Matrix Market stream.
 *
 * @param chunks text or bytes, cut anywhere
 * @param name name of the source in error messages, usually the file's path
 * @throws HeadraceError `ERR_MATRIX_MARKET` with `details.line`: malformed, or of a kind that is not supported
 * (complex, pattern, skew-symmetric, hermitian).
 */
export async function readMatrixMarket(chunks: TextChunks, name = 'matrix'): Promise<MatrixMarket> {
  const parser = new Parser(name);
  const decoder = new TextDecoder('latin1'); // comments may hold anything; only ASCII matters
  let rest = '';
  for await (const chunk of chunks) {
    const text =
      rest + (typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true }));
    let begin = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', begin)) {
      parser.line(text.slice(begin, end));
      begin = end + 1;
    }
    rest = text.slice(begin);
    if (rest.length > maximumLine) parser.line(rest); // throws: no line is that long
  }
  if (rest !== '') parser.line(rest);
  return parser.finish();
}

/**
 * Reads a Matrix Market file.
 *
 * @throws HeadraceError `ERR_MATRIX_MARKET` when it cannot be read, is malformed or of an unsupported kind.
 */
export async function readMatrixMarketFile(path: string): Promise<MatrixMarket> {
  try {
    return await readMatrixMarket(createReadStream(path, { highWaterMark: 1 << 18 }), path);
  } catch (cause) {
    if (cause instanceof HeadraceError) throw cause;
    const reason = describeThrown(cause);
    throw new HeadraceError('ERR_MATRIX_MARKET', `cannot read ${path}: ${reason}`, { cause });
  }
}

/** The text of a Matrix Market file, in pieces. Values are written so that they read back bit for bit. */
export function* writeMatrixMarket(matrix: MatrixMarket, comment = ''): Generator<string, void> {
  const { format, rows, cols, symmetric, value } = matrix;
  yield `%%MatrixMarket matrix ${format} real ${symmetric ? 'symmetric' : 'general'}\n`;
  if (comment !== '') yield comment.replace(/^/gm, '% ').concat('\n');
  yield format === 'coordinate' ? `${rows} ${cols} ${value.length}\n` : `${rows} ${cols}\n`;
  let piece = '';
  for (let k = 0; k < value.length; k++) {
    // String(-0) is "0": the sign has to be written by hand.
    const number = Object.is(value[k], -0) ? '-0' : String(value[k]);
    piece +=
      format === 'coordinate'
        ? `${matrix.rowIndex[k] + 1} ${matrix.colIndex[k] + 1} ${number}\n`
        : `${number}\n`;
    if (piece.length > 1 << 16) {
      yield piece;
      piece = '';
    }
  }
  yield piece;
}

/** Writes a Matrix Market file, replacing an old one. */
export async function writeMatrixMarketFile(
  path: string,
  matrix: MatrixMarket,
  comment = '',
): Promise<void> {
  await pipeline(Readable.from(writeMatrixMarket(matrix, comment)), createWriteStream(path));
}

const integerPattern = /^[+-]?\d+$/;
const realPattern = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

/** One pass over the lines of one file: banner, comments, size line, entries. */
class Parser {
  readonly #name: string;
  #line = 0;
  #state: 'banner' | 'size' | 'entries' = 'banner';
  #format: 'coordinate' | 'array' = 'array';
  #isInteger = false;
  #symmetric = false;
  #rows = 0;
  #cols = 0;
  /** Entries that the file must hold. */
  #expected = 0;
  #sizeLine = 0;
  #count = 0;
  #rowIndex: Int32Array = new Int32Array(0);
  #colIndex: Int32Array = new Int32Array(0);
  #value: Float64Array = new Float64Array(0);

  constructor(name: string) {
    this.#name = name;
  }

  /** Takes the next line, without its line feed. */
  line(text: string): void {
    this.#line += 1;
    if (text.length > maximumLine) {
      throw this.#error(
        `expected lines of at most ${maximumLine} characters: is this a text file?`,
      );
    }
    if (this.#state === 'banner') {
      this.#banner(text);
      return;
    }
    const words = text.trim();
    if (words === '' || words.startsWith('%')) return;
    const fields = words.split(/\s+/);
    if (this.#state === 'size') this.#size(fields);
    else if (this.#count === this.#expected) {
      this.#fail(`end of file after ${this.#entries(this.#expected)}`, words);
    } else if (this.#format === 'coordinate') this.#coordinate(fields);
    else this.#element(fields);
  }

  finish(): MatrixMarket {
    this.#line += 1;
    if (this.#state === 'banner')
      this.#fail('a line that begins with %%MatrixMarket', 'end of file');
    if (this.#state === 'size') this.#fail('the size line', 'end of file');
    if (this.#count < this.#expected) {
      this.#fail(
        `${this.#entries(this.#expected)}, as line ${this.#sizeLine} says`,
        `end of file after ${this.#count}`,
      );
    }
    const [rows, cols, symmetric] = [this.#rows, this.#cols, this.#symmetric];
    const value = this.#value.slice(0, this.#count);
    if (this.#format === 'array') return { format: 'array', rows, cols, symmetric, value };
    const rowIndex = this.#rowIndex.slice(0, this.#count);
    const colIndex = this.#colIndex.slice(0, this.#count);
    return {
      format: 'coordinate',
      rows,
      cols,
      symmetric,
      ...sumDuplicates(rowIndex, colIndex, value),
    };
  }

  #banner(text: string): void {
    const words = text.trim().split(/\s+/);
    const banner = '%%MatrixMarket matrix coordinate|array real|integer general|symmetric';
    if (words[0]?.toLowerCase() !== '%%matrixmarket' || words.length !== 5) {
      this.#fail(`the banner "${banner}"`, text);
    }
    const [object, format, field, symmetry] = words.slice(1).map((word) => word.toLowerCase());
    if (object !== 'matrix') this.#fail('"matrix" as second word', words[1]);
    if (format !== 'coordinate' && format !== 'array') {
      this.#fail('"coordinate" or "array" as third word', words[2]);
    }
    if (field === 'complex' || field === 'pattern') this.#unsupported(`${field} matrices are`);
    if (field !== 'real' && field !== 'integer') {
      this.#fail('"real" or "integer" as fourth word', words[3]);
    }
    if (symmetry === 'skew-symmetric' || symmetry === 'hermitian') {
      this.#unsupported(`${symmetry} matrices are`);
    }
    if (symmetry !== 'general' && symmetry !== 'symmetric') {
      this.#fail('"general" or "symmetric" as fifth word', words[4]);
    }
    this.#format = format;
    this.#isInteger = field === 'integer';
    this.#symmetric = symmetry === 'symmetric';
    this.#state = 'size';
  }

  #size(fields: string[]): void {
    const coordinate = this.#format === 'coordinate';
    const expected = coordinate
      ? 'three integers "rows columns entries"'
      : 'two integers "rows columns"';
    if (fields.length !== (coordinate ? 3 : 2) || !fields.every((word) => /^\d+$/.test(word))) {
      this.#fail(expected, fields.join(' '));
    }
    const [rows, cols, entries] = fields.map(Number);
    if (rows < 1 || cols < 1 || rows > maximumSize || cols > maximumSize) {
      this.#fail(`numbers of rows and columns from 1 to ${maximumSize}`, fields.join(' '));
    }
    if (this.#symmetric && rows !== cols) {
      this.#fail('as many rows as columns in a symmetric matrix', fields.join(' '));
    }
    this.#rows = rows;
    this.#cols = cols;
    this.#expected = coordinate ? entries : this.#symmetric ? (rows * (rows + 1)) / 2 : rows * cols;
    this.#sizeLine = this.#line;
    if (!Number.isSafeInteger(this.#expected)) {
      this.#fail('a size that fits in memory', fields.join(' '));
    }
    this.#state = 'entries';
  }

  #coordinate(fields: string[]): void {
    if (fields.length !== 3) this.#fail('"row column value"', fields.join(' '));
    const row = this.#index(fields[0], 'row', this.#rows);
    const col = this.#index(fields[1], 'column', this.#cols);
    if (this.#symmetric && col > row) {
      this.#fail('row >= column, as a symmetric file stores its lower triangle', fields.join(' '));
    }
    this.#push(row - 1, col - 1, this.#number(fields[2]));
  }

  #element(fields: string[]): void {
    if (fields.length !== 1) this.#fail('one value', fields.join(' '));
    this.#push(0, 0, this.#number(fields[0]));
  }

  #index(text: string, what: string, limit: number): number {
    const index = integerPattern.test(text) ? Number(text) : Number.NaN;
    if (!(index >= 1 && index <= limit)) this.#fail(`a ${what} from 1 to ${limit}`, text);
    return index;
  }

  #number(text: string): number {
    if (this.#isInteger) {
      if (!integerPattern.test(text)) this.#fail('an integer', text);
    } else if (!realPattern.test(text)) this.#fail('a real number', text);
    const value = Number(text);
    if (!Number.isFinite(value)) this.#fail('a number that fits in 64 bits', text);
    return value;
  }

  #push(row: number, col: number, value: number): void {
    const at = this.#count;
    if (at === this.#value.length) {
      const room = Math.min(this.#expected, Math.max(1024, at * 2));
      this.#value = grown(this.#value, new Float64Array(room));
      if (this.#format === 'coordinate') {
        this.#rowIndex = grown(this.#rowIndex, new Int32Array(room));
        this.#colIndex = grown(this.#colIndex, new Int32Array(room));
      }
    }
    this.#value[at] = value;
    if (this.#format === 'coordinate') {
      this.#rowIndex[at] = row;
      this.#colIndex[at] = col;
    }
    this.#count = at + 1;
  }

  #entries(count: number): string {
    const noun = this.#format === 'coordinate' ? 'entries' : 'values';
    return count === 1 ? `1 ${noun === 'entries' ? 'entry' : 'value'}` : `${count} ${noun}`;
  }

  #unsupported(what: string): never {
    throw this.#error(
      `${what} not supported`,
      'store the matrix as real or integer, general or symmetric',
    );
  }

  #fail(expected: string, found: string | undefined): never {
    const shown = found === undefined || found.length <= 60 ? found : `${found.slice(0, 57)}...`;
    throw this.#error(`expected ${expected}, found ${JSON.stringify(shown ?? '')}`);
  }

  #error(text: string, remedy?: string): HeadraceError {
    const line = this.#line;
    return new HeadraceError('ERR_MATRIX_MARKET', `${this.#name}, line ${line}: ${text}`, {
      line,
      remedy,
    });
  }
}

function grown<T extends Int32Array | Float64Array>(old: T, larger: T): T {
  larger.set(old);
  return larger;
}

type Entries = Pick<CoordinateMatrix, 'rowIndex' | 'colIndex' | 'value'>;

/** Adds up entries of the same place, at the position of the first of them. */
function sumDuplicates(rowIndex: Int32Array, colIndex: Int32Array, value: Float64Array): Entries {
  const compare = (a: number, b: number): number =>
    colIndex[a] - colIndex[b] || rowIndex[a] - rowIndex[b];
  const count = value.length;
  let ordered = true;
  for (let k = 1; k < count && ordered; k++) ordered = compare(k - 1, k) < 0;
  if (ordered) return { rowIndex, colIndex, value }; // sorted by column, as most files are: no duplicates

  const order = Uint32Array.from({ length: count }, (_, k) => k).sort(
    (a, b) => compare(a, b) || a - b,
  );
  const isDuplicate = new Uint8Array(count);
  let first = order[0];
  let duplicates = 0;
  for (let k = 1; k < count; k++) {
    const entry = order[k];
    if (compare(first, entry) === 0) {
      value[first] += value[entry];
      isDuplicate[entry] = 1;
      duplicates += 1;
    } else first = entry;
  }
  if (duplicates === 0) return { rowIndex, colIndex, value };
  const keep = (_: number, k: number): boolean => isDuplicate[k] === 0;
  return {
    rowIndex: rowIndex.filter(keep),
    colIndex: colIndex.filter(keep),
    value: value.filter(keep),
  };
}
