// What is refused of parts of data: the error has a remedy, and the remedy works in the state in which it is printed.
import { describe, expect, it, test } from 'vitest';
import {
  type Datum,
  type HeadraceError,
  parameterised,
  type Runtime,
  range,
  readWrite,
  task,
} from '../../index.js';
import { copyOf, raise } from '../support/body-tasks.js';
import { HOSTS, nothingLeft, onMachine, soon } from '../support/machines.js';
import { partKernels } from '../support/part-programs.js';
import { onRanks } from '../support/simulated-ranks.js';
import { add, fail, fill } from '../support/tasks.js';

const { options } = HOSTS[0];

/** A refusal with `code`, whose remedy contains `remedy`. */
async function refused(promise: PromiseLike<unknown>, remedy: string): Promise<void> {
  const error = await Promise.resolve(promise).then(
    () => undefined,
    (reason: unknown) => reason as HeadraceError,
  );
  expect(error).toMatchObject({ code: 'ERR_PART', details: { remedy } });
  expect(error?.message).toContain(`(${remedy})`);
}

/** x is 1 2 3 4, and has a part that a task has written: the last two are 7 8. */
async function withPart(
  use: (runtime: Runtime, x: Datum<'f64'>, part: Datum<'f64'>) => Promise<void>,
): Promise<void> {
  await onMachine(options, async (runtime) => {
    const x = runtime.data(Float64Array.of(1, 2, 3, 4), { name: 'x' });
    const part = x.part(2, 2);
    const four = runtime.data(Float64Array.of(4, 4));
    await runtime.run((graph) => void graph.insert(add, { to: part, from: four, count: 2 }));
    await use(runtime, x, part);
    await nothingLeft(runtime, [x, four]);
  });
}

describe('the remedy works', () => {
  it.each(['x', 'its part'])('of restore() of %s behind a cancelled run', async (which) => {
    await withPart(async (runtime, x, part) => {
      const datum = which === 'x' ? x : part;
      const stop = new AbortController();
      const run = runtime.run(
        async (graph) => {
          graph.insert(raise, { x: datum });
          stop.abort();
          await graph.space();
        },
        { signal: stop.signal },
      );
      await expect(soon(runtime, run)).rejects.toMatchObject({ code: 'ERR_ABORTED' });
      await refused(datum.restore(), 'write all of it again, with set() or by tasks');
      await datum.set(new Float64Array(datum.length).fill(9));
      expect([...(await datum.read())]).toEqual(new Array(datum.length).fill(9));
      await runtime.run((graph) => void graph.insert(fill, { to: x, count: 4, value: 5 }));
      expect([...(await x.read())]).toEqual([5, 5, 5, 5]);
    });
  });

  it('of a parameterised graph on a part', async () => {
    await withPart(async (runtime, x, part) => {
      const graphOn = (datum: Datum<'f64'>) =>
        parameterised('steps', (graph) => {
          const { step } = graph.declare({ step: { runs: raise, indices: ['i'] } });
          graph.define(step, {
            ranges: { i: () => range(0, 3) },
            flows: {
              x: {
                from: ({ i }) => (i === 0 ? datum : step.x({ i: i - 1 })),
                to: ({ i }) => (i === 2 ? datum : step.x({ i: i + 1 })),
              },
            },
          });
        });
      await refused(
        runtime.run(graphOn(part), undefined),
        'copy the elements to a datum without parts in a task before the graph',
      );
      const own = runtime.data('f64', 2);
      await runtime.run((graph) => {
        graph.insert(copyOf, { to: own, from: part });
        graphOn(own).insertInto(graph, undefined);
        graph.insert(copyOf, { to: part, from: own });
      });
      expect([...(await x.read())]).toEqual([1, 2, 10, 11]);
      own.close();
    });
  });

  it('of a condition of a play on a part', async () => {
    await withPart(async (runtime, x, part) => {
      const number = runtime.data(new Float64Array(1), { name: 'number' });
      const ones = runtime.data(Float64Array.of(1, 1));
      const steps = await runtime.plan((graph) => {
        graph.insert(add, { to: part, from: ones, count: 2 });
        graph.insert(fill, { to: number, count: 1, value: 0 });
        graph.insert(add, { to: number, from: part, count: 1 });
      });
      await refused(
        (async () => steps.run({ while: { datum: part, below: 10 } }))(),
        'let a task of the plan write the number to a datum of its own',
      );
      const { iterations } = await steps.run({ while: { datum: number, below: 10 } });
      expect(iterations).toBe(3);
      expect([...(await x.read())]).toEqual([1, 2, 10, 11]);
      steps.close();
      for (const datum of [number, ones]) datum.close();
    });
  });
});

/** Every rank runs the program; the outcomes are those of the ranks. */
const ranks = <T>(program: (runtime: Runtime, x: Datum<'f64'>) => Promise<T>): Promise<T[]> =>
  onRanks({ ranks: 2, seed: 1, kernels: partKernels }, async (runtime) =>
    program(runtime, runtime.data(Float64Array.of(1, 2, 3, 4), { name: 'x' })),
  );

const outcome = (promise: PromiseLike<unknown>): Promise<string> =>
  Promise.resolve(promise).then(
    () => 'none',
    ({ code, details }: HeadraceError) => `${code}: ${details.remedy}`,
  );

describe('the remedy works on two ranks', () => {
  test('of parts in a pruned run', async () => {
    const all = await ranks(async (runtime, x) => {
      const run = (pruned: boolean) =>
        runtime.run((graph) => void graph.insert(fill, { to: x.part(0, 2), count: 2, value: 7 }), {
          pruned,
        });
      const first = await outcome(run(true));
      await x.set(Float64Array.of(1, 2, 3, 4));
      await run(false);
      return [first, [...(await x.read())].join(' ')];
    });
    expect(all.map(([, values]) => values)).toEqual(['7 7 3 4', '7 7 3 4']);
    expect(all.map(([first]) => first)).toContain('ERR_PART: run the program without `pruned`');
  });

  test('of a task on a part that a body inserts', async () => {
    const all = await ranks(async (runtime, x) => {
      let refusal = '';
      const parent = (spawns: boolean) =>
        task({
          name: 'parent',
          flows: { of: readWrite('f64') },
          body: (_, { graph, data, spawn }) => {
            const args = { x: data.of.part(0, 2) };
            if (spawns) spawn(raise, args);
            else graph.insert(raise, { x: x.part(2, 2) });
          },
        });
      const run = (spawns: boolean) =>
        runtime.run((graph) => void graph.insert(parent(spawns), { of: x }));
      refusal = await run(false).then(
        () => 'none',
        (error: unknown) => `${String(error)} ${String((error as HeadraceError).cause)}`,
      );
      await x.set(Float64Array.of(1, 2, 3, 4));
      await run(true);
      return [refusal, [...(await x.read())].join(' ')];
    });
    expect(all.map(([, values]) => values)).toEqual(['2 3 3 4', '2 3 3 4']);
    expect(all.map(([first]) => first).join()).toContain(
      'give the datum to the task of the body, and spawn the task on a part of it',
    );
  });

  test('of restore() of a part: set() on all ranks', async () => {
    const all = await ranks(async (_, x) => {
      const part = x.part(0, 2);
      const first = await outcome(part.restore());
      await part.set(Float64Array.of(8, 9));
      return [first, [...(await x.read())].join(' ')];
    });
    const refusal = 'ERR_PART: write all of it again, with set() or by tasks';
    expect(all).toEqual([
      [refusal, '8 9 3 4'],
      [refusal, '8 9 3 4'],
    ]);
  });

  test('of restore() of a value that is gone: read() says so on all ranks, and set() mends it', async () => {
    const all = await ranks(async (runtime, x) => {
      const run = runtime.run((graph) => void graph.insert(fail, { of: x, code: 3 }));
      await outcome(run);
      await outcome(x.restore());
      const read = await outcome(x.read());
      await x.set(Float64Array.of(4, 3, 2, 1));
      return [read, [...(await x.read())].join(' ')];
    });
    for (const [first, values] of all) {
      expect(first).toMatch(/^ERR_DATUM_POISONED|^ERR_PEER_FAILED/);
      expect(values).toBe('4 3 2 1');
    }
  });
});
