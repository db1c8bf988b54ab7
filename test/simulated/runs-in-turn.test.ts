// Runs that begin alike and take turns: each of them is recognised, and gives what inserted runs give.
import '../support/removable-guards.js';
import { afterEach, describe, expect, it, test } from 'vitest';
import { planRuntime } from '../../devices/simulated/cases/plan-cases.js';
import { axpy, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';

/** Tasks that all runs begin with, and tasks of each. */
const ALIKE = 20;
const TASKS = 60;

interface Outcome {
  /** What came of each run. */
  readonly outcomes: readonly (string | undefined)[];
  readonly values: readonly (number | undefined)[];
}

/** Runs in the order of their names: 'B' differs from 'A' behind the tasks that they begin with; '-' ends there, but is not too short. */
async function inTurn(order: string, plans: 'auto' | 'off' = 'auto'): Promise<Outcome> {
  const runtime = planRuntime(new PlanProgram(1), { plans });
  const [x, ...ys] = Array.from({ length: 9 }, (_, v) => runtime.data(new Float64Array(8).fill(v)));
  const outcomes: (string | undefined)[] = [];
  for (const [k, name] of [...order].entries()) {
    const report = await runtime.run((graph) => {
      const tasks = name === '-' ? TASKS - 8 : TASKS;
      for (let i = 0; i < tasks; i++) {
        const kind = i < ALIKE || name === '-' ? 0 : name.charCodeAt(0);
        // The parameter of the first tasks is another one each time.
        const a = i < 4 ? k : 1 + (kind % 3);
        graph.insert(axpy, { y: ys[(i * (1 + kind)) % ys.length], x, n: 8, a });
      }
    });
    outcomes.push(report.recognition);
  }
  const values = await Promise.all(ys.map(async (y) => (await y.read())[0]));
  await runtime.close();
  return { outcomes, values };
}

afterEach(() => setGuard('straysNoted', true));

describe('runs that begin alike', () => {
  it.each(['AB', 'ABC', 'AAB', 'ABB', 'A-', 'AB-', 'AABB'])(
    'are all played in the end: %s',
    async (turn) => {
      const order = turn.repeat(16);
      const { outcomes, values } = await inTurn(order);
      expect(outcomes.slice(-turn.length)).toEqual([...turn].map(() => 'played'));
      expect(values).toEqual((await inTurn(order, 'off')).values);
    },
  );

  it('are played also when others come now and then', async () => {
    const order = [...Array(40).keys()]
      .map((i) => (i % 5 === 4 ? String.fromCharCode(68 + i) : 'AB'))
      .join('');
    const { outcomes, values } = await inTurn(order);
    expect(outcomes.at(-2)).toBe('played');
    expect(values).toEqual((await inTurn(order, 'off')).values);
  });
});

test('without straysNoted: of two runs that take turns at most one is played', async () => {
  setGuard('straysNoted', false);
  const { outcomes } = await inTurn('AB'.repeat(20));
  expect(outcomes.slice(-2).filter((outcome) => outcome === 'played').length).toBeLessThan(2);
});
