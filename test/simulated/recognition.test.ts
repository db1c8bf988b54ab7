// Recognised runs on simulated machines whose memory has bytes: they give what inserted runs give, whatever the machine's delays.
// And the guard of the comparison: without it a plan is played in place of other tasks.
import '../support/removable-guards.js';
import { afterEach, describe, expect, test } from 'vitest';
import { planProblem, planRuntime } from '../../devices/simulated/cases/plan-cases.js';
import { axpy, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { guardNames, setGuard } from '../../devices/simulated/cases/set-guard.js';
import type { Graph, TaskHandle, TaskOptions } from '../../index.js';

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
  for (let i = 0; i < 5; i++) await run('nothing');
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

const PAUSED = 'recognition pauses: it has cost more than it saves';

/** A small machine with data, and its account at a balance. */
function withBalance(balance: number) {
  const runtime = planRuntime(new PlanProgram(1), { plans: 'auto' });
  const { account } = Reflect.get(runtime, 'recognition');
  account.balance = balance;
  const [x, ...ys] = Array.from({ length: 9 }, (_, v) =>
    runtime.data(new Float64Array(8).fill(v + 1)),
  );
  const step = (graph: Graph): void => {
    for (let i = 0; i < 60; i++) graph.insert(axpy, { y: ys[i % 8], x, n: 8, a: 1 });
  };
  const once = async (program: (graph: Graph) => void): Promise<string | undefined> =>
    (await runtime.run(program)).recognition;
  return { runtime, account: account as { balance: number }, x, ys, step, once };
}

/** Whether runs that never come again are watched: the outcomes of 60 of them, of few tasks, from a small balance on. */
async function neverAgain(): Promise<(string | undefined)[]> {
  const { runtime, x, ys, once } = withBalance(100);
  const outcomes: (string | undefined)[] = [];
  for (let k = 0; k < 60; k++)
    outcomes.push(
      await once((graph) => {
        for (let i = 0; i < 4; i++)
          graph.insert(axpy, { y: ys[(i + k) % 8], x, n: 8, a: 1 }, { priority: k });
      }),
    );
  await runtime.close();
  return outcomes;
}

/** What it costs to watch runs that never come again, in tasks that are inserted. */
async function costOfWatching(): Promise<number> {
  const { runtime, account, x, ys, once } = withBalance(0);
  account.balance = 0;
  for (let k = 0; k < 10; k++)
    await once((graph) => {
      for (let i = 0; i < 1000; i++) {
        const y = ys[(i + ((i * i * (k + 1)) >> 3)) % 8];
        graph.insert(axpy, { y, x, n: 8, a: 1 }, { priority: (i * k) % 7 });
      }
    });
  const { balance } = account;
  await runtime.close();
  return -balance;
}

/** A run is open that began during a pause, and inserts when a recognised one has ended its program. */
async function besideUnwatched(): Promise<{ recognition: string | undefined; values: number[] }> {
  const { runtime, account, x, ys, step, once } = withBalance(1e6);
  account.balance = -1;
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const unseen = runtime.run(async (graph) => {
    await gate;
    graph.insert(axpy, { y: ys[0], x, n: 8, a: 100 });
  });
  account.balance = 1e6;
  for (let i = 0; i < 5; i++) await once(step);
  const other = runtime.run(step);
  open();
  const [{ recognition }] = await Promise.all([other, unseen]);
  const values = await Promise.all(ys.map(async (y) => (await y.read())[0]));
  await runtime.close();
  return { recognition, values };
}

describe('recognition pauses', () => {
  test('when runs do not come again, and looks at one now and then', async () => {
    const outcomes = await neverAgain();
    const first = outcomes.indexOf(PAUSED);
    expect(first).toBeGreaterThan(3);
    expect(first).toBeLessThan(8);
    const later = outcomes.slice(first);
    expect(later.filter((outcome) => outcome !== PAUSED).length).toBeLessThan(later.length / 8);
  });

  test('and runs that never come again cost less than they may', async () => {
    expect(await costOfWatching()).toBeLessThan(0);
  });

  test('and comes back when the program has worked for long enough', async () => {
    const { runtime, account, step, once } = withBalance(-2);
    const outcomes: (string | undefined)[] = [];
    for (let i = 0; i < 200; i++) outcomes.push(await once(step));
    expect(outcomes.slice(0, 2)).toEqual([PAUSED, PAUSED]);
    expect(outcomes).toContain('its tasks have come 4 of 4 times');
    account.balance = 1;
    expect(await once(step)).toBe('played');
    // What a play saves pays for the next run.
    expect(await once(step)).toBe('played');
    await runtime.close();
  });

  test('and a run that it does not see comes before or after those that are recognised', async () => {
    const { recognition, values } = await besideUnwatched();
    expect(recognition).toBe('its tasks have come 4 of 4 times');
    expect(values[0]).toBe(2 + 6 * 8 + 100);
  });
});

/** Runs that are planned, parts that are made before the last of them is over, and a run of the plan's tasks behind one that writes a part. */
async function withParts(plans: 'auto' | 'off'): Promise<string[]> {
  const runtime = planRuntime(new PlanProgram(0), { plans });
  const [x, y] = [1, 2].map((v) => runtime.data(new Float64Array(8).fill(v)));
  const step = (graph: Graph): void => {
    for (let i = 0; i < LEAST; i++) graph.insert(axpy, { y, x, n: 8, a: 1 });
  };
  for (let i = 0; i < 3; i++) await runtime.run(step);
  const last = runtime.run(step);
  const part = y.part(2, 4);
  await last;
  await runtime.run((graph) => void graph.insert(axpy, { y: part, x, n: 4, a: 100 }));
  await runtime.run(step);
  const values = [(await y.read()).join(), (await part.read()).join()];
  await runtime.close();
  return values;
}

test('a run whose data have got parts begins with what these have', async () => {
  expect(await withParts('auto')).toEqual(await withParts('off'));
});

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

  test('without recordsOnEvidence: runs that never come again are recorded', async () => {
    setGuard('recordsOnEvidence', false);
    expect(await costOfWatching()).toBeGreaterThan(100);
  });

  test('without recognitionPauses: all runs are recorded in vain', async () => {
    setGuard('recognitionPauses', false);
    expect(await neverAgain()).not.toContain(PAUSED);
  });

  test('without recognitionAlone: a run is held back while another one inserts', async () => {
    setGuard('recognitionAlone', false);
    const found = await besideUnwatched().catch((error: unknown) => error);
    expect(found).not.toMatchObject({ recognition: 'its tasks have come 4 of 4 times' });
  });

  test('without recognisedWhole: a play begins with data as they were before a task wrote a part', async () => {
    setGuard('recognisedWhole', false);
    expect(await withParts('auto').catch(() => [])).not.toEqual(await withParts('off'));
  });
});
