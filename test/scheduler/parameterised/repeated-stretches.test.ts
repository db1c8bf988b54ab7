// Graphs whose classes promise that they repeat, in runs that play what comes again: whole stretches of tasks are added to a play without a look
// at them. Results, counts, failures and traces are those of graphs without promises.
import '../../support/removable-guards.js';
import { afterEach, expect, test, vi } from 'vitest';
import { HeadraceError } from '../../../devices/errors.js';
import { guardNames, setGuard } from '../../../devices/simulated/cases/set-guard.js';
import {
  type Datum,
  type ParameterisedGraph,
  parameterised,
  Runtime,
  type RuntimeOptions,
  range,
} from '../../../index.js';
import { HeldStretches } from '../../../scheduler/recognition/held-stretches.js';
import { RunWatch } from '../../../scheduler/recognition/run-watch.js';
import { axpy, copy } from '../../support/tasks.js';

const N = 8;
const COLUMNS = 5;

/** How the values of the parameters are given: once, by a function, or by one that returns other ones at every step. */
type Parameters = 'object' | 'function' | 'counting';

interface Given {
  readonly first: readonly Datum<'f64'>[];
  readonly second: readonly Datum<'f64'>[];
  readonly zeros: readonly Datum<'f64'>[];
  readonly steps: number;
  readonly params: Parameters;
  readonly promises: boolean;
}

function paramsOf(params: Parameters) {
  if (params === 'object') return { n: N, a: 2 ** -4 };
  return ({ t }: { readonly t: number }) => ({
    ...{ n: N, a: params === 'counting' ? 1 / (2 + t) : 2 ** -4 },
  });
}
const right = (p: number): number => (p + 1) % COLUMNS;
const left = (p: number): number => (p + COLUMNS - 1) % COLUMNS;

/** Two sets of data take turns, so the tasks of two steps make a round. */
const turns: ParameterisedGraph<Given> = parameterised(
  'turns',
  (graph, { first, second, steps, params, promises }) => {
    const { cell } = graph.declare({ cell: { runs: axpy, indices: ['t', 'p'] } });
    const written = (t: number) => (t % 2 === 0 ? second : first);
    graph.define(cell, {
      ranges: { t: () => range(0, steps), p: () => range(0, COLUMNS) },
      starts: { t: () => range(0, 1) },
      ...(promises ? { repeats: { t: () => range(2, steps - 2) } } : {}),
      params: paramsOf(params),
      flows: {
        y: {
          from: ({ t, p }) => (t < 2 ? written(t)[p] : cell.y({ t: t - 2, p })),
          to: ({ t, p }) => [
            t + 1 < steps && cell.x({ t: t + 1, p: left(p) }),
            t + 2 < steps ? cell.y({ t: t + 2, p }) : written(t)[p],
          ],
        },
        x: {
          from: ({ t, p }) => (t === 0 ? first[right(p)] : cell.y({ t: t - 1, p: right(p) })),
        },
      },
    });
  },
);

/** The tasks of one class compute, those of the other one copy what their neighbours need. */
const halos: ParameterisedGraph<Given> = parameterised(
  'halos',
  (graph, { first, second, zeros, steps, params, promises }) => {
    const { compute, halo } = graph.declare({
      compute: { runs: axpy, indices: ['t', 'p'] },
      halo: { runs: copy, indices: ['p', 't'] },
    });
    const repeats = promises ? { repeats: { t: () => range(1, steps - 1) } } : {};
    const ranges = { t: () => range(0, steps), p: () => range(0, COLUMNS) };
    graph.define(compute, {
      ...repeats,
      ranges,
      starts: { t: () => range(0, 1) },
      params: paramsOf(params),
      flows: {
        y: {
          from: ({ t, p }) => (t === 0 ? first[p] : compute.y({ t: t - 1, p })),
          to: ({ t, p }) => [
            halo.from({ t, p: left(p) }),
            t + 1 < steps ? compute.y({ t: t + 1, p }) : first[p],
          ],
        },
        x: { from: ({ t, p }) => (t === 0 ? zeros[p] : halo.to({ t: t - 1, p })) },
      },
    });
    graph.define(halo, {
      ...repeats,
      ranges,
      starts: { p: () => range(0, 0) },
      params: { bytes: 8 * N },
      flows: {
        to: {
          from: ({ t, p }) => (t === 0 ? second[p] : halo.to({ t: t - 1, p })),
          to: ({ t, p }) =>
            t + 1 < steps ? [compute.x({ t: t + 1, p }), halo.to({ t: t + 1, p })] : second[p],
        },
        from: { from: ({ t, p }) => compute.y({ t, p: right(p) }) },
      },
    });
  },
);
const GRAPHS = { turns, halos };

interface Options {
  readonly graph: keyof typeof GRAPHS;
  readonly params: Parameters;
  readonly promises: boolean;
  readonly steps?: number;
  /** Tasks of other data that come before, so that stretches begin elsewhere. */
  readonly before?: number;
  readonly more?: RuntimeOptions;
  /** The data get new values before the second run. */
  readonly isNew?: boolean;
  /** Of the first run. */
  readonly signal?: AbortSignal;
  /** Instances that one run inserts. */
  readonly times?: number;
}

/** What two runs leave, and how many tasks were taken without a look at them. */
async function ran({ graph, before = 0, times = 1, steps = 900, more = {}, ...rest }: Options) {
  const { isNew = false, signal } = rest;
  await using runtime = await Runtime.create({ workers: 2, window: 256, ...more });
  const values = (seed: number, p: number) =>
    Float64Array.from({ length: N }, (_, i) => Math.sin(seed + 10 * p + i));
  const made = (name: string, seed: number): Datum<'f64'>[] =>
    Array.from({ length: COLUMNS }, (_, p) =>
      runtime.data(values(seed, p), { name: `${name}${p}` }),
    );
  const given = { first: made('f', 1), second: made('s', 2), zeros: made('z', 3), steps, ...rest };
  let taken = 0;
  const { again } = RunWatch.prototype;
  const spy = vi.spyOn(RunWatch.prototype, 'again').mockImplementation(function (
    this: RunWatch,
    of,
  ) {
    const tasks = again.call(this, of);
    taken += tasks;
    return tasks;
  });
  const ends: unknown[] = [];
  for (let k = 0; k < 2; k++) {
    if (k > 0 && isNew)
      for (const [seed, data] of [given.first, given.second].entries())
        for (const [p, datum] of data.entries()) await datum.set(values(seed, p));
    const end = await runtime
      .run(
        (insert) => {
          for (let n = 0; n < before; n++)
            insert.insert(axpy, { y: given.zeros[0], x: given.zeros[1], n: 0, a: 0 });
          for (let n = 0; n < times; n++) GRAPHS[graph].insertInto(insert, given);
        },
        k === 0 && signal !== undefined ? { signal } : {},
      )
      .done.then(
        ({ tasks }) => tasks,
        (error: HeadraceError) => `${error.code}: ${error.message}`,
      );
    ends.push(end);
  }
  spy.mockRestore();
  const left: string[] = [];
  for (const datum of [...given.first, ...given.second])
    left.push(
      await datum.read().then(
        (value) => value.join(),
        ({ code }: HeadraceError) => code,
      ),
    );
  return { found: { ends, values: left }, taken };
}

afterEach(() => {
  vi.restoreAllMocks();
  for (const name of guardNames) setGuard(name, true);
});

const WAYS = (['turns', 'halos'] as const).flatMap((graph) =>
  (['object', 'function', 'counting'] as const).flatMap((params) =>
    [0, 7].map((before) => ({ graph, params, before })),
  ),
);

test.each(WAYS)('results are those without promises: %o', async (way) => {
  const { found } = await ran({ ...way, promises: false, more: { plans: 'off' } });
  expect((await ran({ ...way, promises: false })).found).toEqual(found);
  const promised = await ran({ ...way, promises: true });
  expect(promised.found).toEqual(found);
  if (way.params === 'object') expect(promised.taken).toBeGreaterThan(900 * COLUMNS);
  else expect(promised.taken).toBe(0);
  const off = await ran({ ...way, promises: true, more: { plans: 'off' } });
  expect(off).toEqual({ found, taken: 0 });
  const checked = await ran({ ...way, promises: true, more: { checked: true } });
  expect(checked).toEqual({ found, taken: 0 });
});

test('several instances in one run', async () => {
  for (const graph of ['turns', 'halos'] as const) {
    const way = { graph, params: 'object', times: 3, before: 3, steps: 501 } as const;
    const { found } = await ran({ ...way, promises: false, more: { plans: 'off' } });
    const promised = await ran({ ...way, promises: true });
    expect(promised.found).toEqual(found);
    expect(promised.taken).toBeGreaterThan(0);
  }
});

/** Calls `then` when so many stretches have been compared or taken. */
function behind(stretches: number, then: (held: HeldStretches) => void): void {
  let count = 0;
  const { stretchEnds } = HeldStretches.prototype;
  vi.spyOn(HeldStretches.prototype, 'stretchEnds').mockImplementation(function (
    this: HeldStretches,
  ) {
    stretchEnds.call(this);
    if (++count === stretches) then(this);
  });
}

test.each([12, 20, 25])(
  'a run fails behind %i stretches, and the next one works',
  async (stretches) => {
    const way = { graph: 'turns', params: 'object' } as const;
    const { found } = await ran({ ...way, promises: false, more: { plans: 'off' }, isNew: true });
    for (const promises of [false, true]) {
      behind(stretches, (held) => {
        const error = new HeadraceError('ERR_TASK_FAILED', 'a task has failed');
        Reflect.get(held, 'engine').failRun(Reflect.get(held, 'run'), error);
      });
      const failed = await ran({ ...way, promises, isNew: true });
      vi.restoreAllMocks();
      expect(failed.taken > 0).toBe(promises);
      expect(failed.found.ends).toEqual(['ERR_TASK_FAILED: a task has failed', found.ends[1]]);
      expect(failed.found.values).toEqual(found.values);
    }
  },
);

test('a run that is aborted while its program goes on', async () => {
  const way = { graph: 'turns', params: 'object', promises: true } as const;
  const { found } = await ran({ ...way, promises: false, more: { plans: 'off' }, isNew: true });
  const controller = new AbortController();
  behind(20, () => controller.abort());
  const aborted = await ran({ ...way, isNew: true, signal: controller.signal });
  expect(aborted.found.ends).toEqual([expect.stringMatching(/abort/i), found.ends[1]]);
  expect(aborted.found.values).toEqual(found.values);
});

test('without againAtStretch: insertions in the middle of a stretch are taken for those of its begin', async () => {
  const way = { graph: 'turns', params: 'object' } as const;
  const { found } = await ran({ ...way, promises: false, more: { plans: 'off' } });
  setGuard('againAtStretch', false);
  const wrong = await ran({ ...way, promises: true });
  expect(wrong.found).not.toEqual(found);
});
