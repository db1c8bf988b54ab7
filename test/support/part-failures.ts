// Random sequences of failing tasks, tasks, reads and sets on a datum and its parts, against a table of the elements that have
// a value. One step ends before the next begins, or (`isHasty`) nothing is awaited.
import { expect } from 'vitest';
import type { Datum, Runtime } from '../../index.js';
import { common, type Region } from '../../scheduler/program/parts/region.js';
import { soon } from './machines.js';
import { add, fail, fill, random } from './tasks.js';

const COLUMNS = 3;
const ROWS = 4;
const LENGTH = ROWS * COLUMNS;

interface Seen {
  readonly datum: Datum<'f64'>;
  readonly region: Region;
  /** The places of its elements in the whole. */
  readonly places: readonly number[];
}

interface Elements {
  readonly values: number[];
  readonly isGood: boolean[];
}

function seen(datum: Datum<'f64'>, region: Region): Seen {
  const { row, column, rows, columns } = region;
  const places = Array.from(
    { length: rows * columns },
    (_, i) => (column + Math.floor(i / rows)) * ROWS + row + (i % rows),
  );
  return { datum, region, places };
}

/** The views of the program: the whole, its halves, and parts that overlap. */
function viewsOf(whole: Datum<'f64'>, below: (n: number) => number): Seen[] {
  const all = { row: 0, column: 0, rows: ROWS, columns: COLUMNS };
  const regions = [
    { ...all, rows: 2 },
    { ...all, row: 2, rows: 2 },
  ];
  for (let i = 0; i < 3; i++) {
    const [row, column] = [below(ROWS), below(COLUMNS)];
    const [rows, columns] = [1 + below(ROWS - row), 1 + below(COLUMNS - column)];
    regions.push({ row, column, rows, columns });
  }
  return [seen(whole, all), ...regions.map((region) => seen(whole.block(region), region))];
}

type Outcome = readonly number[] | string;
const outcomeOf = (runtime: Runtime, promise: PromiseLike<Iterable<number>>): Promise<Outcome> =>
  soon(
    runtime,
    promise.then(
      (values) => [...values],
      (error: unknown) => (error as { code: string }).code,
    ),
  );

/** Plays the sequence `seed`. */
export async function playFailures(
  runtime: Runtime,
  seed: number,
  { steps, isHasty }: { readonly steps: number; readonly isHasty: boolean },
): Promise<void> {
  const next = random(seed);
  const below = (n: number): number => Math.floor(next() * n);
  const whole = runtime.data(new Float64Array(LENGTH).fill(1), { rows: ROWS, name: 'whole' });
  const views = viewsOf(whole, below);
  const model: Elements = { values: Array(LENGTH).fill(1), isGood: Array(LENGTH).fill(true) };
  const { values, isGood } = model;
  const said: string[] = [];
  const ends: Promise<unknown>[] = [];
  const change = ({ places }: Seen, value: (at: number) => number | undefined): void => {
    for (const at of places) {
      const made = value(at);
      isGood[at] = made !== undefined;
      values[at] = made ?? 0;
    }
  };
  const all = ({ places }: Seen): boolean => places.every((at) => isGood[at]);
  const compare = (view: Seen, mayBePoisoned: boolean): Promise<void> => {
    const wanted = all(view) ? view.places.map((at) => values[at]) : 'ERR_DATUM_POISONED';
    return outcomeOf(runtime, view.datum.read()).then((got) => {
      if (!mayBePoisoned || got !== 'ERR_DATUM_POISONED')
        expect(got, `seed ${seed}: ${said.join(', ')}`).toEqual(wanted);
    });
  };
  for (let i = 0; i < steps; i++) {
    const view = views[below(views.length)];
    const { datum } = view;
    const kind = below(6);
    const one = views.find((v) => common(v.region, view.region) === undefined);
    const value = 2 + below(50);
    said.push(`${['fail', 'set', 'read', 'fill', 'add', 'read'][kind]} ${datum.name}`);
    let end: Promise<unknown> = Promise.resolve();
    if (kind === 0) {
      end = runtime.run((graph) => void graph.insert(fail, { of: datum, code: 3 })).done;
      change(view, () => undefined);
    } else if (kind === 1) {
      end = datum.set(new Float64Array(datum.length).fill(value));
      change(view, () => value);
    } else if (kind === 3) {
      const count = datum.length;
      end = runtime.run((graph) => void graph.insert(fill, { to: datum, count, value })).done;
      change(view, () => value);
    } else if (kind === 4 && one !== undefined) {
      const count = Math.min(datum.length, one.datum.length);
      const { datum: from, places } = one;
      end = runtime.run((graph) => void graph.insert(add, { to: datum, from, count })).done;
      const isDone = all(view) && all(one);
      const sums = view.places.map(
        (at, k) => [at, values[at] + (k < count ? values[places[k]] : 0)] as const,
      );
      const made = new Map(sums);
      change(view, (at) => (isDone ? made.get(at) : undefined));
    } else end = compare(view, isHasty);
    if (isHasty) ends.push(end.catch((error: { code?: string }) => refuseUnknown(error)));
    else await soon(runtime, end).catch(refuseUnknown);
  }
  await Promise.all(ends);
  whole.view?.family.versions.check();
  // Whatever was read before: all elements have a value again.
  for (const half of views.slice(1, 3)) {
    void half.datum.set(new Float64Array(half.datum.length).fill(seed));
    change(half, () => seed);
  }
  for (const view of [views[0], ...views]) await compare(view, false);
  whole.close();
}

const EXPECTED = ['ERR_TASK_FAILED', 'ERR_DATUM_POISONED'];
function refuseUnknown(error: { code?: string }): void {
  if (!EXPECTED.includes(error.code ?? '')) throw error;
}
