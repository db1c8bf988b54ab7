// Damages traces at random: changes bytes, records and header fields, cuts files and repeats parts. Then it passes every
// loadable trace through all commands that show traces.
import {
  Causes,
  criticalPath,
  criticalPathText,
  cropToRuns,
  csvTables,
  diffSummaries,
  diffText,
  exportChrome,
  exportCsv,
  exportDot,
  exportGraphlib,
  exportPaje,
  exportPerfetto,
  loadTrace,
  type Output,
  summarize,
  summaryText,
  type Trace,
  TraceError,
  UNIT,
  Waits,
  WhatIfModel,
  writePage,
  writeToMemory,
} from '../../trace/index.js';

type Random = () => number;

const odd: readonly unknown[] = [
  null,
  -1,
  0,
  1,
  1.5,
  255,
  256,
  65_536,
  1e300,
  -1e300,
  '',
  'x',
  [],
  {},
  true,
  undefined,
];
const oddBytes: readonly number[] = [0, 1, 0x7f, 0x80, 0xf0, 0xff];

const dataStartOf = (bytes: Uint8Array): number =>
  UNIT + new DataView(bytes.buffer, bytes.byteOffset).getUint32(12, true);

/** Changes one value somewhere in the header's JSON. */
function changedHeader(bytes: Uint8Array, random: Random): Uint8Array {
  const start = dataStartOf(bytes);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(UNIT, start)));
  let place = header as Record<string, unknown>;
  for (;;) {
    const keys = Object.keys(place);
    const key = keys[Math.floor(random() * keys.length)];
    if (key === undefined) break;
    const inner = place[key];
    if (typeof inner === 'object' && inner !== null && random() < 0.8) {
      place = inner as Record<string, unknown>;
      continue;
    }
    place[key] = odd[Math.floor(random() * odd.length)];
    break;
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const padded = Math.ceil(json.length / UNIT) * UNIT;
  const changed = new Uint8Array(UNIT + padded + bytes.length - start).fill(0x20);
  changed.set(bytes.subarray(0, UNIT));
  new DataView(changed.buffer).setUint32(12, padded, true);
  changed.set(json, UNIT);
  changed.set(bytes.subarray(start), UNIT + padded);
  return changed;
}

/** Puts odd bytes over a field of two, four or eight bytes, or a whole number in a single byte. */
function changedField(bytes: Uint8Array, from: number, random: Random): void {
  const size = [1, 2, 4, 8][Math.floor(random() * 4)];
  const fields = Math.max(1, Math.floor((bytes.length - from) / size));
  const at = from + size * Math.floor(random() * fields);
  if (size === 1 && at < bytes.length) bytes[at] = Math.floor(random() * 20);
  else if (size === 8 && at + 8 <= bytes.length && random() < 0.5)
    new DataView(bytes.buffer).setFloat64(
      at,
      [Number.NaN, Number.POSITIVE_INFINITY, -1e300, -1, 1e18][Math.floor(random() * 5)],
      true,
    );
  else bytes.fill(oddBytes[Math.floor(random() * oddBytes.length)], at, at + size);
}

/** A damaged copy of a trace. */
export function corrupted(good: Uint8Array, random: Random): Uint8Array {
  const kind = random();
  if (kind < 0.15) return changedHeader(good, random);
  const bytes = good.slice();
  const from = random() < 0.1 ? 0 : dataStartOf(bytes);
  const somewhere = (): number => from + Math.floor(random() * (bytes.length - from));
  if (kind < 0.2) return bytes.subarray(0, somewhere());
  if (kind < 0.25) {
    // A part of the file where another one belongs.
    const [a, b] = [somewhere(), somewhere()];
    const length = UNIT * (1 + Math.floor(random() * 4));
    bytes.copyWithin(a - ((a - from) % UNIT), b - ((b - from) % UNIT), b + length);
    return bytes;
  }
  const times = random() < 0.5 ? 1 : 1 + Math.floor(random() * 8);
  for (let i = 0; i < times; i++) {
    if (kind < 0.5) bytes[somewhere()] ^= 1 << Math.floor(random() * 8);
    else if (kind < 0.6) bytes[somewhere()] = Math.floor(random() * 256);
    else changedField(bytes, from, random);
  }
  return bytes;
}

/** Words that no output may have, whatever was read. */
const WRONG = /\b(NaN|undefined|Infinity|null)\b/;

function checkNumbers(value: unknown, place: string): void {
  if (value === undefined || (typeof value === 'number' && !Number.isFinite(value)))
    throw new Error(`${place} is ${value}`);
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return;
  for (const [key, inner] of Object.entries(value)) checkNumbers(inner, `${place}.${key}`);
}

function checkText(text: string, place: string): void {
  const found = WRONG.exec(text);
  if (found === null) return;
  const near = text.slice(Math.max(0, found.index - 80), found.index + 40);
  throw new Error(`${place} says ${JSON.stringify(near)}`);
}

/** Everything that shows a trace; throws when something is not a number or not defined. */
export function showAll(trace: Trace): void {
  const utf8 = new TextDecoder();
  const text = (place: string, produce: (output: Output) => void): void =>
    checkText(utf8.decode(writeToMemory(produce)), place);
  for (const shown of [trace, cropToRuns(trace)]) {
    const summary = summarize(shown);
    checkNumbers(summary, 'summary');
    checkText(summaryText(summary), 'the summary');
    const causes = new Causes(shown, new Waits(shown));
    const path = criticalPath(shown, causes);
    checkNumbers(path, 'path');
    checkText(criticalPathText(path, 40), 'the critical path');
    const diff = diffSummaries(summary, summary);
    checkNumbers(diff, 'diff');
    checkText(diffText(diff), 'the difference');
    checkNumbers(new WhatIfModel(shown, causes).evaluate({}), 'what-if');
  }
  writeToMemory((output) => exportPerfetto(trace, output, { flows: true, stages: true }));
  text('chrome', (output) => exportChrome(trace, output, { flows: true }));
  for (const table of csvTables) text(`csv ${table}`, (output) => exportCsv(trace, output, table));
  text('paje', (output) => exportPaje(trace, output, { flows: true }));
  text('dot', (output) => exportDot(trace, output, {}));
  text('graphlib', (output) => exportGraphlib(trace, output, {}));
  writeToMemory((output) => writePage(trace, output));
}

/** What a damaged file comes to: 'shown', or the code of the typed error. Throws anything else. */
export function outcomeOf(files: readonly Uint8Array[]): string {
  let trace: Trace;
  try {
    trace = loadTrace(files);
  } catch (error) {
    if (error instanceof TraceError) return error.code;
    throw error;
  }
  showAll(trace);
  return 'shown';
}
