// Recognised runs on simulated machines whose memory has bytes: they give what inserted runs give, whatever the machine's delays.
// And the guard of the comparison: without it a plan is played in place of other tasks.
import '../support/removable-guards.js';
import { afterEach, describe, expect, test } from 'vitest';
import { planProblem, planRuntime } from '../../devices/simulated/cases/plan-cases.js';
import { axpy, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { guardNames, setGuard } from '../../devices/simulated/cases/set-guard.js';
import type { TaskHandle, TaskOptions } from '../../index.js';

/** A program with fewer tasks is not recognised. */
const LEAST = 48;

test.each([false, true])(
  'random programs give what insertion gives, and are played, with delays: %s',
  async (delays) => {
    let played = 0;
    const outcome = (text: string): void => {
      if (text === 'played') played++;
    };
    for (let seed = 1; seed <= 120; seed++) {
      const program = new PlanProgram(seed);
      if (program.tasks < LEAST) continue;
      const seedOfDelays = delays ? seed : undefined;
      expect(await planProblem(program, seedOfDelays, { outcome }), `seed ${seed}`).toBe('');
    }
    expect(played).toBeGreaterThan(30);
  },
  120_000,
);

/** What a run gives after equal ones if one of its tasks differs: its outcome, and the values. */
async function afterEqual(
  differs: 'datum' | 'device' | 'order' | 'nothing',
  plans: 'auto' | 'off',
) {
  // A machine with a GPU.
  const seed = Array.from({ length: 100 }, (_, i) => i).find((s) => new PlanProgram(s).gpus > 0);
  const runtime = planRuntime(new PlanProgram(seed ?? 0), { plans });
  const [x, y, z] = [1, 2, 3].map((v) => runtime.data(new Float64Array(8).fill(v)));
  const run = (kind: typeof differs) =>
    runtime.run((graph) => {
      const handles: TaskHandle[] = [];
      for (let i = 0; i < 60; i++) {
        const isOdd = i === 30;
        const other: TaskOptions =
          isOdd && kind === 'device'
            ? { device: 'host' }
            : isOdd && kind === 'order'
              ? { after: [handles[0]] }
              : {};
        const to = isOdd && kind === 'datum' ? z : y;
        handles.push(graph.insert(axpy, { y: to, x, n: 8, a: 1 }, other));
      }
    });
  for (let i = 0; i < 4; i++) await run('nothing');
  const { recognition } = await run(differs);
  const values = [(await y.read())[0], (await z.read())[0]];
  await runtime.close();
  return { recognition, values };
}

test.each(['datum', 'device', 'order'] as const)(
  'a run that differs in a %s is inserted',
  async (kind) => {
    const { recognition, values } = await afterEqual(kind, 'auto');
    expect(recognition).toBe('task 30 is not the expected one');
    expect(values).toEqual((await afterEqual(kind, 'off')).values);
  },
);

describe('guards', () => {
  afterEach(() => {
    for (const name of guardNames) setGuard(name, true);
  });

  test('without recognisedSame: a plan is played in place of tasks that differ', async () => {
    setGuard('recognisedSame', false);
    for (const kind of ['datum', 'device', 'order'] as const)
      expect((await afterEqual(kind, 'auto')).recognition).toBe('played');
    const wrong = await afterEqual('datum', 'auto');
    expect(wrong.values).not.toEqual((await afterEqual('datum', 'off')).values);
  });
});
