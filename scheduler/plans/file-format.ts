// The file of a plan: a prelude, a header in JSON, and columns of whole or other numbers. All numbers are little-endian, as on
// every machine that Headrace runs on. The header and each column begin at multiples of 8 bytes.
//
// The prelude, in all versions of the format: `MAGIC`; the version and the bytes of the header, as uint32; the bytes of the file, as
// float64; SHA-256 of all other bytes. `headrace` in the header names the version that has written the file.
//
// The checksum finds damage. It does not prove who has written the file: whoever reads it checks every number.
import { createHash } from 'node:crypto';
import { HeadraceError } from '../../devices/errors.js';
import { describeThrown } from '../../trace/thrown.js';

/** Of a plan of one rank, and of the part of one of several ranks, whose header has `ranks`. */
const FORMAT = 1;
const PART_FORMAT = 2;
const MAGIC = 'hrplan\r\n';
const AT_FORMAT = 8;
const AT_HEADER_BYTES = 12;
const AT_FILE_BYTES = 16;
const AT_CHECKSUM = 24;
const PRELUDE = 56;

const KINDS = {
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  f64: Float64Array,
} as const;
type Kind = keyof typeof KINDS;
type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** Name, kind and length of a column, in the header. */
type ColumnEntry = readonly [string, Kind, number];

/** Columns by name: the narrowest whole numbers that hold the values, unless they are float64. */
export type Columns = Readonly<Record<string, readonly number[] | Float64Array>>;

/** What a file holds. */
export interface FileContent {
  /** Of unknown shape. */
  readonly header: Readonly<Record<string, unknown>>;
  /** @throws HeadraceError `ERR_PLAN_FILE` if there is no such column */
  readonly column: (name: string) => Column;
}

/** The error of a file that is no plan, or a plan with wrong content. */
export function badFile(file: string, text: string, remedy?: string): HeadraceError {
  return new HeadraceError('ERR_PLAN_FILE', `${file} cannot be loaded: ${text}`, { remedy });
}

/** The bytes of a file. */
export function fileOf(header: Readonly<Record<string, unknown>>, columns: Columns): Uint8Array {
  const arrays = Object.values(columns).map((c) => (c instanceof Float64Array ? c : narrow(c)));
  const entries = Object.keys(columns).map(
    (name, i): ColumnEntry => [name, kindOf(arrays[i]), arrays[i].length],
  );
  const text = Buffer.from(JSON.stringify({ ...header, columns: entries }));
  const length = arrays.reduce((at, { byteLength }) => at + padded(byteLength), begin(text.length));
  const file = new Uint8Array(length);
  const view = new DataView(file.buffer);
  file.set(Buffer.from(MAGIC, 'latin1'));
  view.setUint32(AT_FORMAT, formatOf(header), true);
  view.setUint32(AT_HEADER_BYTES, text.length, true);
  view.setFloat64(AT_FILE_BYTES, length, true);
  file.set(text, PRELUDE);
  let at = begin(text.length);
  for (const array of arrays) {
    file.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), at);
    at += padded(array.byteLength);
  }
  file.set(checksum(file), AT_CHECKSUM);
  return file;
}

/** The content of the bytes of a file. @throws HeadraceError `ERR_PLAN_FILE` */
export function contentOf(bytes: Uint8Array, file: string): FileContent {
  const isPlan =
    bytes.length >= PRELUDE && Buffer.from(bytes.subarray(0, 8)).toString('latin1') === MAGIC;
  if (!isPlan) throw badFile(file, 'it is not the file of a plan');
  // Columns are views, which must be aligned. (A Buffer may be part of a larger one, and its `slice` copies nothing.)
  const whole = new Uint8Array(bytes);
  const view = new DataView(whole.buffer);
  const length = view.getFloat64(AT_FILE_BYTES, true);
  if (length !== whole.length)
    throw badFile(file, `it has ${whole.length} bytes, and should have ${length}`);
  if (!checksum(whole).equals(whole.subarray(AT_CHECKSUM, PRELUDE)))
    throw badFile(file, 'it was changed: its checksum does not match');
  const headerBytes = view.getUint32(AT_HEADER_BYTES, true);
  const header = headerOf(whole.subarray(PRELUDE, PRELUDE + headerBytes), file);
  const format = view.getUint32(AT_FORMAT, true);
  if (format !== formatOf(header))
    throw badFile(
      file,
      `it has version ${format} of the format, by headrace ${String(header['headrace'])}, and this headrace reads versions ${FORMAT} and ${PART_FORMAT}`,
      'plan the program again, and save it with this headrace',
    );
  return { header, column: columnsOf(whole, begin(headerBytes), header, file) };
}

function formatOf(header: Readonly<Record<string, unknown>>): number {
  return header['ranks'] === undefined ? FORMAT : PART_FORMAT;
}

function headerOf(bytes: Uint8Array, file: string): Record<string, unknown> {
  let header: unknown;
  try {
    header = JSON.parse(Buffer.from(bytes).toString());
  } catch (error) {
    throw badFile(file, `its header is no JSON: ${describeThrown(error)}`);
  }
  if (header === null || typeof header !== 'object') throw badFile(file, 'it has no header');
  return header as Record<string, unknown>;
}

function columnsOf(
  bytes: Uint8Array,
  first: number,
  header: Readonly<Record<string, unknown>>,
  file: string,
): FileContent['column'] {
  const columns = new Map<string, Column>();
  const entries = header['columns'];
  let at = first;
  for (const entry of Array.isArray(entries) ? (entries as unknown[]) : []) {
    const [name, kind, length] = (Array.isArray(entry) ? entry : []) as unknown as ColumnEntry;
    const isKnown = typeof name === 'string' && Object.hasOwn(KINDS, kind);
    if (!isKnown || !Number.isSafeInteger(length) || length < 0)
      throw badFile(file, 'its header describes a column wrongly');
    const type = KINDS[kind];
    if (at + length * type.BYTES_PER_ELEMENT > bytes.length)
      throw badFile(file, `column '${name}' goes beyond its end`);
    columns.set(name, new type(bytes.buffer as ArrayBuffer, at, length));
    at += padded(length * type.BYTES_PER_ELEMENT);
  }
  return (name) => {
    const column = columns.get(name);
    if (column === undefined) throw badFile(file, `it has no column '${name}'`);
    return column;
  };
}

function checksum(file: Uint8Array): Buffer {
  const hash = createHash('sha256');
  return hash.update(file.subarray(0, AT_CHECKSUM)).update(file.subarray(PRELUDE)).digest();
}

function begin(headerBytes: number): number {
  return PRELUDE + padded(headerBytes);
}

function padded(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

function narrow(values: readonly number[]): Column {
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  const kind = most < 2 ** 8 ? 'u8' : most < 2 ** 16 ? 'u16' : 'u32';
  return KINDS[kind].from(values);
}

function kindOf(array: Column): Kind {
  const [kind] = Object.entries(KINDS).find(([, type]) => array instanceof type) as [Kind, unknown];
  return kind;
}
