// Tasks of parameterised graphs that repeat are played as plans, as inserted ones are: they give what insertion gives, also where the
// graph differs for one step, and errors name the same functions.
import '../../support/removable-guards.js';
import { afterEach, expect, test } from 'vitest';
import { guardNames, setGuard } from '../../../devices/simulated/cases/set-guard.js';
import {
  type Datum,
  type ParameterisedGraph,
  parameterised,
  Runtime,
  range,
} from '../../../index.js';
import { axpy } from '../../support/tasks.js';

const N = 8;
const COLUMNS = 5;
const STEPS = 400;
/** The step that differs, long after the stretch is known. */
const ODD = 301;

/** What is different at step `ODD`. */
type Difference = 'nothing' | 'parameter' | 'datum' | 'priority' | 'device' | 'type';

interface Given {
  readonly columns: readonly Datum<'f64'>[];
  readonly others: readonly Datum<'f64'>[];
  readonly odd: Difference;
  readonly hasControls: boolean;
  /** A parameter has another value at every step. */
  readonly counts: boolean;
}

/** Two classes that take turns on each column. */
const turns: ParameterisedGraph<Given> = parameterised(
  'turns',
  (graph, { columns, others, odd, hasControls, counts }) => {
    const controls = hasControls ? ['done'] : [];
    const { one, two } = graph.declare({
      one: { runs: axpy, indices: ['t', 'p'], controls },
      two: { runs: axpy, indices: ['t', 'p'], controls },
    });
    const isOdd = (t: number, what: Difference): boolean => t === ODD && odd === what;
    const ranges = { t: () => range(0, STEPS), p: () => range(0, COLUMNS) };
    graph.define(one, {
      ranges,
      starts: { t: () => range(0, 1) },
      flows: {
        y: {
          from: ({ t, p }) => (t === 0 ? columns[p] : two.y({ t: t - 1, p })),
          to: ({ t, p }) => two.y({ t, p }),
        },
        x: { from: ({ t, p }) => others[isOdd(t, 'datum') ? 0 : p] },
      },
      ...(hasControls ? { controls: { done: { to: ({ t, p }) => two['done']({ t, p }) } } } : {}),
      params: ({ t }) => ({
        n: isOdd(t, 'type') ? (0.5 as number) : N,
        a: isOdd(t, 'parameter') ? 2 : 2 ** -9 * (counts ? t : 1),
      }),
      priority: ({ t }) => (isOdd(t, 'priority') ? 1 : 0),
      device: ({ t }) => (isOdd(t, 'device') ? 'host' : undefined),
    });
    graph.define(two, {
      ranges,
      starts: { t: () => range(0, 0) },
      flows: {
        y: {
          from: ({ t, p }) => one.y({ t, p }),
          to: ({ t, p }) => (t + 1 === STEPS ? columns[p] : one.y({ t: t + 1, p })),
        },
        x: { from: ({ p }) => others[(p + 1) % COLUMNS] },
      },
      ...(hasControls ? { controls: { done: { from: ({ t, p }) => one['done']({ t, p }) } } } : {}),
      params: () => ({ n: N, a: 2 ** -8 }),
    });
  },
);

type Options = Omit<Given, 'columns' | 'others'> & { readonly checked: boolean };

/** The values of the columns, and what came of recognition. */
async function ran(
  plans: 'auto' | 'off',
  { checked, ...given }: Options,
): Promise<{ readonly values: string; readonly played: number }> {
  await using runtime = await Runtime.create({ workers: 2, window: 256, plans, checked });
  const made = (seed: number): Datum<'f64'>[] =>
    Array.from({ length: COLUMNS }, (_, p) =>
      runtime.data(Float64Array.from({ length: N }, (_, i) => Math.sin(seed + 10 * p + i))),
    );
  const columns = made(1);
  const others = made(2);
  let played = 0;
  // Other stretches are known in the second one.
  for (let k = 0; k < 2; k++) {
    const { recognition = '' } = await runtime.run(turns, { columns, others, ...given });
    const [, tasks] = /^played(?: (\d+) of)?/.exec(recognition) ?? [];
    if (recognition.startsWith('played')) played += Number(tasks ?? 2 * STEPS * COLUMNS);
  }
  const values = await Promise.all(columns.map((column) => column.read()));
  return { values: values.map((value) => value.join()).join(), played };
}

afterEach(() => {
  for (const name of guardNames) setGuard(name, true);
});

const DIFFERENCES = ['nothing', 'parameter', 'datum', 'priority', 'device'] as const;
const OPTIONS = [
  { hasControls: false, counts: false, checked: false },
  { hasControls: false, counts: true, checked: true },
  { hasControls: true, counts: true, checked: false },
];

test.each(DIFFERENCES.flatMap((odd) => OPTIONS.map((options) => ({ odd, ...options }))))(
  'tasks that repeat are played and give what insertion gives: %o',
  async (options) => {
    const auto = await ran('auto', options);
    expect(auto.values).toBe((await ran('off', options)).values);
    expect(auto.played).toBeGreaterThan(STEPS * COLUMNS);
  },
);

test('a mistake behind tasks that were played names the function and the task', async () => {
  for (const checked of [false, true])
    for (const plans of ['auto', 'off'] as const) {
      const given = { odd: 'type', hasControls: false, counts: false, checked } as const;
      await expect(ran(plans, given)).rejects.toMatchObject({
        code: 'ERR_ARGUMENT_TYPE',
        message: expect.stringContaining('one(t=301, p=0)'),
      });
    }
});

test('without recognisedSame: a plan is played in place of tasks of a graph that differ', async () => {
  setGuard('recognisedSame', false);
  const given = { odd: 'datum', hasControls: false, counts: false, checked: false } as const;
  const wrong = await ran('auto', given);
  expect(wrong.values).not.toBe((await ran('off', given)).values);
});
