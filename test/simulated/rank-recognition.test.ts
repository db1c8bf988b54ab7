// Recognised runs on several simulated ranks, whose machines and network delay what they can: all ranks play in place of a run, or none
// does, whatever each of them finds by itself.
import '../support/removable-guards.js';
import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { axpy } from '../../devices/simulated/cases/plan-programs.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import type { Datum, Graph, Runtime, TaskHandle, TaskOptions } from '../../scheduler/index.js';
import { codeOf } from '../support/outcomes.js';
import { check } from '../support/rank-plan-programs.js';
import { onRanks } from '../support/simulated-ranks.js';

const kernels = { empty: () => 0 };
const LENGTH = 12;
/** Tasks of a step: more than the least that is played. */
const TASKS = 60;

afterEach(() => {
  for (const guard of ['allPlay', 'votesAsked', 'votesBind'] as const) setGuard(guard, true);
});

/** Data of all ranks in turn. */
function dataOf(runtime: Runtime, count = 6): Datum<'f64'>[] {
  return Array.from({ length: count }, (_, d) =>
    runtime.data(new Float64Array(LENGTH).fill(d + 1), { name: `d${d}`, rank: d % runtime.ranks }),
  );
}

/** Inserts a step, whose tasks read data of other ranks; one of them fails with code `code`. `options`: of task `i`. */
function step(
  graph: Graph,
  data: readonly Datum<'f64'>[],
  a: number,
  code = 0,
  options: (i: number) => TaskOptions = () => ({}),
): TaskHandle[] {
  const handles: TaskHandle[] = [];
  for (let i = 0; i < TASKS; i++) {
    const [y, x] = [data[i % data.length], data[(i + 1) % data.length]];
    handles.push(graph.insert(axpy, { y, x, n: LENGTH, a: a / 64 }, options(i)));
    if (i === TASKS / 2) handles.push(graph.insert(check, { y, code }));
  }
  return handles;
}

/** Inserts a step, of whose tasks every third names a rank; `more` is added to these ranks. */
function onNamedRanks(graph: Graph, data: readonly Datum<'f64'>[], a: number, more = 0): void {
  step(graph, data, a, 0, (i) => (i % 3 === 0 ? { rank: ((i % 7) + more) % graph.ranks } : {}));
}

const valuesOf = (data: readonly Datum<'f64'>[]): Promise<string[]> =>
  Promise.all(data.map(async (datum) => (await datum.read()).join()));

type Plans = 'auto' | 'off';

describe.each([2, 4])('%i ranks', (ranks) => {
  const all = async <T>(seed: number, plans: Plans, program: (runtime: Runtime) => Promise<T>) =>
    onRanks({ ranks, seed, options: { plans }, kernels }, program);

  test.each([1, 2, 3])(
    'play the same run again, and the values are those of insertion (%i)',
    async (seed) => {
      const program = async (runtime: Runtime) => {
        const data = dataOf(runtime);
        const outcomes: (string | undefined)[] = [];
        for (let k = 0; k < 9; k++) {
          const { recognition } = await runtime.run((graph) => void step(graph, data, k + 1));
          outcomes.push(recognition);
          if (k === 6) await data[0].set(new Float64Array(LENGTH).fill(0.5));
        }
        return { outcomes, values: await valuesOf(data), tasks: runtime.recognised() };
      };
      const played = await all(seed, 'auto', program);
      const inserted = await all(seed, 'off', program);
      for (const [rank, { outcomes, values, tasks }] of played.entries()) {
        expect(outcomes.slice(4)).toEqual(Array(5).fill('played'));
        expect(values).toEqual(inserted[rank].values);
        expect(tasks?.played).toBe(5 * (tasks?.plans[0].tasks === TASKS + 1 ? tasks.tasks / 9 : 0));
      }
    },
  );

  test.each([1, 2, 3])(
    'play a run whose tasks name ranks, and insert it if they name others (%i)',
    async (seed) => {
      const program = async (runtime: Runtime) => {
        const data = dataOf(runtime);
        const outcomes: (string | undefined)[] = [];
        for (let k = 0; k < 9; k++) {
          const run = runtime.run((graph) => onNamedRanks(graph, data, k + 1, k === 6 ? 1 : 0));
          outcomes.push((await run).recognition);
        }
        return { outcomes, values: await valuesOf(data) };
      };
      const played = await all(seed, 'auto', program);
      const inserted = await all(seed, 'off', program);
      for (const [rank, { outcomes, values }] of played.entries()) {
        expect(values).toEqual(inserted[rank].values);
        const [other] = outcomes.splice(6, 1);
        expect(other).not.toBe('played');
        expect(outcomes.slice(4)).toEqual(Array(4).fill('played'));
      }
    },
  );

  test('a task that fails names itself, ends the run on all ranks, and the next run is played', async () => {
    const seen = await all(5, 'auto', async (runtime) => {
      const data = dataOf(runtime);
      const run = (k: number, code: number) =>
        runtime.run((graph) => void step(graph, data, k, code), { name: 'step' });
      // The code is open in the plan.
      for (let k = 0; k < 6; k++) await codeOf(run(k, k === 2 || k === 3 ? -0 : 0));
      const failure = await run(7, 5).done.then(
        () => '',
        (error: Error & { code: string }) => `${error.code}: ${error.message}`,
      );
      const lost = await Promise.all(data.map((datum) => codeOf(datum.read())));
      for (const [d, datum] of data.entries()) await datum.set(new Float64Array(LENGTH).fill(d));
      const { recognition } = await run(8, 0);
      return { failure, lost, recognition, values: await valuesOf(data) };
    });
    const failures = seen.map(({ failure }) => failure.slice(0, 16)).sort();
    expect(failures.filter((text) => text.startsWith('ERR_TASK_FAILED'))).toHaveLength(1);
    expect(failures.filter((text) => text.startsWith('ERR_PEER_FAILED'))).toHaveLength(ranks - 1);
    for (const { failure, lost, values } of seen) {
      expect(failure).toContain('check');
      expect(lost).toEqual(seen[0].lost);
      expect(values).toEqual(seen[0].values);
    }
  });

  test.each([1, 2, 3, 4])(
    'a run that is aborted while its tasks are held: the owner has no older value than that of another rank (%i)',
    async (seed) => {
      // The latest version of the first datum is on rank 1, not on rank 0, its owner.
      const begin = async (runtime: Runtime) => {
        const data = dataOf(runtime);
        for (let k = 0; k < 6; k++) await runtime.run((graph) => void step(graph, data, k + 1));
        await runtime.run((graph) => {
          graph.insert(axpy, { y: data[0], x: data[1], n: LENGTH, a: 1 }, { rank: 1 });
        });
        return data;
      };
      const [before] = await all(seed, 'off', async (runtime) =>
        Promise.all((await begin(runtime)).map((datum) => datum.read())),
      );
      // What the tasks that have run may have left, in program order.
      const values = before.map(([value]) => value);
      const possible = [String(values[0])];
      for (let i = 0; i < TASKS; i++) {
        values[i % values.length] += (7 / 64) * values[(i + 1) % values.length];
        if (i % values.length === 0) possible.push(String(values[0]));
      }
      const [ofOwner] = await all(seed, 'auto', async (runtime) => {
        const data = await begin(runtime);
        const stop = new AbortController();
        const aborted = runtime.run(
          (graph) => {
            step(graph, data, 7);
            if (runtime.rank === 1) stop.abort();
          },
          { signal: stop.signal },
        );
        await codeOf(aborted.done);
        await codeOf(data[0].restore());
        const value = await data[0].read().then(
          ([first]) => String(first),
          ({ code }: { code: string }) => code,
        );
        for (const datum of data) await datum.set(new Float64Array(LENGTH).fill(3));
        await runtime.run((graph) => void step(graph, data, 8));
        return value;
      });
      // It is gone, or had come to the owner.
      expect(['ERR_DATUM_POISONED', ...possible]).toContain(ofOwner);
    },
  );

  test.each(['awaits', 'reads', 'computes'] as const)(
    'one of which %s in its program: no rank plays, and the values are those of insertion',
    async (what) => {
      const program = async (runtime: Runtime) => {
        const data = dataOf(runtime);
        const outcomes: (string | undefined)[] = [];
        for (let k = 0; k < 9; k++) {
          const isApart = k === 6 && (runtime.rank === ranks - 1 || what === 'reads');
          const { recognition } = await runtime.run(async (graph) => {
            const insert = step(graph, data, k + 1);
            if (!isApart) return;
            if (what === 'awaits') for (let turn = 0; turn < 3; turn++) await setImmediate();
            if (what === 'reads') await data[1].read();
            // The program has the handles of tasks that were held back.
            if (what === 'computes') void runtime.memory();
            void insert;
          });
          outcomes.push(recognition);
        }
        return { outcomes, values: await valuesOf(data) };
      };
      const played = await all(7, 'auto', program);
      const inserted = await all(7, 'off', program);
      for (const [rank, { outcomes, values }] of played.entries()) {
        expect(values).toEqual(inserted[rank].values);
        expect(outcomes[5]).toBe('played');
        expect(outcomes[6]).not.toBe('played');
        expect(outcomes[8]).toBe('played');
      }
    },
  );

  test.each(['runs', 'reads', 'sets', 'asks', 'cancels', 'asks of tasks'] as const)(
    'which do not await a run (%s): what follows waits for the decision, and the values are those of insertion',
    async (what) => {
      const program = async (runtime: Runtime) => {
        const data = dataOf(runtime);
        let handle: TaskHandle | undefined;
        const run = (k: number) =>
          runtime.run((graph) => {
            [handle] = step(graph, data, k + 1);
          });
        const outcomes: (string | undefined)[] = [];
        for (let k = 0; k < 6; k++) outcomes.push((await run(k)).recognition);
        const values: string[] = [];
        for (let k = 6; k < 9; k++) {
          const first = run(k);
          if (what === 'runs') await Promise.all([first, run(k)]);
          if (what === 'reads') values.push((await data[2].read()).join());
          if (what === 'sets') await data[1].set(new Float64Array(LENGTH).fill(k));
          if (what === 'asks') runtime.memory();
          if (what === 'asks of tasks') {
            // The task runs on rank 0.
            if (runtime.rank === 0) expect(first.explain(handle as TaskHandle).stage).toBeDefined();
            await runtime.run((graph) => {
              const [y, x] = data;
              graph.insert(axpy, { y, x, n: LENGTH, a: 1 }, { after: [handle as TaskHandle] });
            });
          }
          if (what === 'cancels') {
            if (runtime.rank === 0) first.cancel();
            outcomes.push(await codeOf(first));
            for (const [d, datum] of data.entries())
              await datum.set(new Float64Array(LENGTH).fill(d + k));
          } else outcomes.push((await first).recognition);
        }
        return { outcomes, values: [...values, ...(await valuesOf(data))] };
      };
      const played = await all(11, 'auto', program);
      const inserted = await all(11, 'off', program);
      for (const [rank, { outcomes, values }] of played.entries()) {
        expect(values).toEqual(inserted[rank].values);
        expect(outcomes[5]).toBe('played');
      }
    },
  );

  test.each([
    'inserts another task',
    'inserts a task less',
    'gives another parameter',
    'names another rank',
    'reads a datum',
    'makes a run more',
  ])('one of which %s: all get the error that they get without recognition', async (what) => {
    const codes = (plans: Plans) =>
      all(3, plans, async (runtime) => {
        const data = dataOf(runtime);
        const isOther = runtime.rank === ranks - 1;
        const checks = (graph: Graph): void => void graph.insert(check, { y: data[0], code: 0 });
        const run = (k: number, isApart: boolean) =>
          runtime.run((graph) => {
            if (isApart && what === 'inserts a task less') return;
            if (what === 'names another rank') onNamedRanks(graph, data, k, isApart ? 1 : 0);
            else step(graph, data, isApart && what === 'gives another parameter' ? k + 1 : k);
            if (isApart && what === 'inserts another task') checks(graph);
          });
        for (let k = 1; k < 7; k++) await run(k, false);
        if (isOther && what === 'reads a datum') data[0].read().catch(() => {});
        if (isOther && what === 'makes a run more') runtime.run(checks).done.catch(() => {});
        return codeOf(run(7, isOther));
      }).catch((error: { code: string }) => [error.code]);
    const found = await codes('auto');
    expect(found[0]).toMatch(/ERR_(GRAPH|PROGRAM)_MISMATCH/);
    expect(found).toEqual(await codes('off'));
  });

  test.each([true, false])(
    'one of which fails in its program (%s: before it has inserted): all fail, and the next run is played',
    async (isEarly) => {
      const seen = await all(9, 'auto', async (runtime) => {
        const data = dataOf(runtime);
        const run = (k: number, fails: boolean) =>
          runtime.run((graph) => {
            if (fails && isEarly) throw new Error('early');
            step(graph, data, k);
            if (fails) throw new Error('late');
          });
        for (let k = 1; k < 7; k++) await run(k, false);
        const code = await codeOf(run(7, runtime.rank === ranks - 1));
        const lost = await Promise.all(data.map((datum) => codeOf(datum.read())));
        for (const [d, datum] of data.entries()) await datum.set(new Float64Array(LENGTH).fill(d));
        const { recognition } = await run(8, false);
        return { code, lost, recognition, values: await valuesOf(data) };
      });
      for (const [rank, { code, lost, recognition, values }] of seen.entries()) {
        expect(code).toBe(rank === ranks - 1 ? undefined : 'ERR_PEER_FAILED');
        expect(lost).toEqual(seen[0].lost);
        expect(values).toEqual(seen[0].values);
        expect(recognition).toBe('played');
      }
    },
  );

  test('one without recognition: no rank waits for it', async () => {
    const seen = await withoutOne(ranks);
    for (const { values, outcome } of seen) {
      expect(values).toEqual(seen[0].values);
      expect(outcome).not.toBe('played');
    }
  });
});

test('a plan that takes longer than insertion is given up after some plays', async () => {
  // Insertion takes no virtual time.
  const seen = await onRanks(
    { ranks: 2, seed: 4, options: { plans: 'auto' }, kernels },
    async (runtime) => {
      const data = dataOf(runtime);
      const outcomes: (string | undefined)[] = [];
      for (let k = 0; k < 24; k++)
        outcomes.push((await runtime.run((graph) => void step(graph, data, k + 1))).recognition);
      return { outcomes, values: await valuesOf(data), report: runtime.recognised() };
    },
  );
  const [{ outcomes, report }] = seen;
  expect(outcomes.slice(4, 12)).toEqual(Array(8).fill('played'));
  expect(outcomes.slice(12, 14)).toEqual(
    Array(2).fill('it was inserted, to see how long that takes'),
  );
  expect(seen[1].outcomes.slice(12, 14)).toEqual(Array(2).fill('not all ranks could play it'));
  expect(report?.givenUp[0].why).toBe('its tasks take less time when they are inserted');
  expect(seen[1].values).toEqual(seen[0].values);
});

/** The last rank recognises nothing. */
function withoutOne(ranks: number) {
  const given = { ranks, seed: 3, options: { plans: 'auto' as const }, kernels };
  return onRanks(given, async (runtime) => {
    if (runtime.rank === ranks - 1 && runtime.peers !== undefined)
      runtime.peers.votes.decided = undefined;
    const data = dataOf(runtime);
    let outcome: string | undefined;
    for (let k = 0; k < 9; k++)
      outcome = (await runtime.run((graph) => void step(graph, data, k + 1))).recognition;
    return { outcome, values: await valuesOf(data) };
  });
}

/** Runs that are played, and then some that a rank leaves in the middle for a while, or in whose play it asks for something else. */
function apart(what: 'awaits' | 'asks') {
  return onRanks({ ranks: 2, seed: 3, options: { plans: 'auto' }, kernels }, async (runtime) => {
    const data = dataOf(runtime);
    for (let k = 1; k < 12; k++) {
      const isApart = k > 6 && runtime.rank === k % 2;
      const run = runtime.run((graph) => {
        step(graph, data, k);
        if (isApart && what === 'awaits') return setImmediate().then(() => setImmediate());
        return undefined;
      });
      if (isApart && what === 'asks') runtime.memory();
      await run;
    }
    return valuesOf(data);
  });
}

test('without allPlay: a rank plays while another one inserts', async () => {
  const [expected] = await apart('awaits');
  setGuard('allPlay', false);
  const found = await apart('awaits').catch(() => []);
  expect(found[0]).not.toEqual(expected);
});

test('without votesAsked: ranks wait for the vote of one that knows of none', async () => {
  setGuard('votesAsked', false);
  await expect(withoutOne(2)).rejects.toThrow('still waiting');
});

test('without votesBind: a rank inserts what others play', async () => {
  const [expected] = await apart('asks');
  setGuard('votesBind', false);
  const found = await apart('asks').catch(() => []);
  expect(found[0]).not.toEqual(expected);
});
