// Checks the JSON header of a trace, once, so that the code behind the reader may rely on it.
import { type LaneKind, NO_INDEX, type TraceHeader } from './format.js';

const laneKinds: readonly LaneKind[] = [
  'worker',
  'script-worker',
  'compute',
  'h2d',
  'd2h',
  'peer',
  'network',
  'script',
];
/** Ranks are stored in 16 bits. */
const MOST_RANKS = 0xffff;

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown, place: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${place} is not an object`);
  return value as Fields;
}

function text(fields: Fields, name: string, place: string): void {
  if (typeof fields[name] !== 'string') throw new Error(`${place}${name} is not text`);
}

function number(fields: Fields, name: string, place: string, least: number, most: number): void {
  const value = fields[name];
  if (typeof value !== 'number' || !(value >= least && value <= most))
    throw new Error(`${place}${name} is not a number from ${least} to ${most}`);
}

function whole(fields: Fields, name: string, place: string, least: number, most: number): void {
  number(fields, name, place, least, most);
  if (!Number.isInteger(fields[name])) throw new Error(`${place}${name} is not a whole number`);
}

function table(fields: Fields, name: string): readonly unknown[] {
  const value = fields[name];
  if (!Array.isArray(value) || value.length > NO_INDEX)
    throw new Error(`${name} is not a list of at most ${NO_INDEX} entries`);
  return value;
}

/** The header, if every known field is valid; throws an Error that names the first invalid one. */
export function checkHeader(json: unknown): TraceHeader {
  const header = fieldsOf(json, 'the header');
  for (const name of ['program', 'hostname', 'started']) text(header, name, '');
  if (header['run'] !== undefined) text(header, 'run', '');
  if (header['cores'] !== undefined) whole(header, 'cores', '', 1, 2 ** 20);
  whole(header, 'ranks', '', 1, MOST_RANKS);
  whole(header, 'rank', '', 0, (header['ranks'] as number) - 1);
  const far = Number.MAX_SAFE_INTEGER;
  number(header, 'clockOrigin', '', -far, far);
  number(header, 'clockOffset', '', -far, far);
  if (typeof header['simulated'] !== 'boolean') throw new Error('simulated is not true or false');
  const { dependencies } = header;
  if (![undefined, 'recorded', 'accesses'].includes(dependencies as string | undefined))
    throw new Error('dependencies is not a known word');
  fieldsOf(header['options'], 'options');
  const spaces = table(header, 'spaces');
  spaces.forEach((entry, i) => {
    const place = `spaces[${i}].`;
    const space = fieldsOf(entry, `spaces[${i}]`);
    text(space, 'kind', place);
    text(space, 'name', place);
    number(space, 'bytes', place, 0, far);
  });
  table(header, 'lanes').forEach((entry, i) => {
    const place = `lanes[${i}].`;
    const lane = fieldsOf(entry, `lanes[${i}]`);
    if (!laneKinds.includes(lane['kind'] as LaneKind)) throw new Error(`${place}kind is not known`);
    text(lane, 'name', place);
    whole(lane, 'space', place, 0, spaces.length - 1);
    whole(lane, 'peer', place, -1, spaces.length - 1);
  });
  return json as TraceHeader;
}
