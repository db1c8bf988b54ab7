// Mistakes of JavaScript bodies: awaiting what waits for the body itself, and writing data that they only read.
import { isAsyncFunction } from 'node:util/types';
import { describe, expect, it } from 'vitest';
import { type Datum, type Graph, type Runtime, read, readWrite, task, write } from '../../index.js';
import { GPUS, HOSTS, nothingLeft, onMachine, soon } from '../support/machines.js';
import { script } from '../support/tasks.js';

const { options } = HOSTS[0];
const sum = task({
  name: 'sum',
  flows: { to: readWrite('f64'), from: read('f64') },
  body: ({ to, from }) => void (to[0] += from[0]),
});

type Data = Readonly<Record<'x' | 'y' | 'z', Datum<'f64'>>>;
type Made = (data: Data, graph: Graph) => unknown;

/** Runs a task that changes x with that body, and `more` after it; gives the run's failure, or undefined. */
async function failureOf(
  runtime: Runtime,
  body: Made,
  more: (graph: Graph, data: Data) => void = () => {},
): Promise<unknown> {
  const datum = (name: string): Datum<'f64'> => runtime.data(Float64Array.of(1), { name });
  const data: Data = { x: datum('x'), y: datum('y'), z: datum('z') };
  const run = runtime.run((graph) => {
    const call = (): unknown => body(data, graph);
    const mine = task({
      name: 'mine',
      flows: { of: readWrite('f64') },
      body: isAsyncFunction(body) ? async () => void (await call()) : () => call() as undefined,
    });
    graph.insert(mine, { of: data.x });
    more(graph, data);
  });
  const failure = await soon(
    runtime,
    run.then(
      () => undefined,
      (error: unknown) => error,
    ),
  );
  for (const each of Object.values(data)) each.close();
  await nothingLeft(runtime, []);
  return failure;
}

const itself = (kind: string, name: string): unknown =>
  expect.objectContaining({
    code: 'ERR_AWAITS_ITSELF',
    message: expect.stringMatching(
      new RegExp(
        `^task mine #\\d+ failed: the body of task mine #\\d+ calls ${kind}\\(\\) of datum '${name}', `,
      ),
    ),
    details: expect.objectContaining({ datum: name, task: expect.stringMatching(/^mine #\d+$/) }),
  });

describe('a body that awaits', () => {
  // Functions that are not `async` show by their promise that they may await.
  it.each<[string, string, string, Made]>([
    ['its own datum', 'read', 'x', async ({ x }) => void (await x.read())],
    ['it after another await', 'read', 'x', async ({ x, y }) => y.read().then(() => x.read())],
    ['it without async', 'read', 'x', ({ x }) => x.read().then(() => {})],
    ['a set of it', 'set', 'x', async ({ x }) => await x.set(Float64Array.of(2))],
    ['a restore of it', 'restore', 'x', async ({ x }) => await x.restore()],
    [
      'what a child computes from it',
      'read',
      'y',
      async ({ x, y }, graph) => {
        graph.insert(sum, { to: y, from: x });
        await y.read();
      },
    ],
    [
      'what a grandchild computes from it',
      'read',
      'z',
      async ({ x, y, z }, graph) => {
        graph.insert(sum, { to: y, from: x });
        graph.insert(sum, { to: z, from: y });
        await z.read();
      },
    ],
  ])('%s fails at once and by name', async (_, kind, name, body) => {
    await onMachine({ ...options, watchdog: 0 }, async (runtime) => {
      expect(await failureOf(runtime, body)).toEqual(itself(kind, name));
    });
  });

  it('what the program has inserted after it fails, too', async () => {
    await onMachine({ ...options, watchdog: 0 }, async (runtime) => {
      let go = (): void => {};
      const inserted = new Promise<void>((resolve) => {
        go = resolve;
      });
      const failure = await failureOf(
        runtime,
        async ({ y }) => {
          await inserted;
          await y.read();
        },
        (graph, { x, y }) => {
          graph.insert(sum, { to: y, from: x });
          go();
        },
      );
      expect(failure).toEqual(itself('read', 'y'));
    });
  });

  it.each<[string, Made]>([
    ['other data', async ({ y, z }) => y.read().then(() => z.set(Float64Array.of(3)))],
    [
      'what its children compute from other data',
      async ({ y, z }, graph) => {
        graph.insert(sum, { to: z, from: y });
        expect([...(await z.read())]).toEqual([2]);
      },
    ],
    ['nothing: it only asks for its own value', ({ x }) => void x.read().catch(() => {})],
  ])('%s is fine', async (_, body) => {
    await onMachine(options, async (runtime) => {
      expect(await failureOf(runtime, body)).toBeUndefined();
    });
  });

  it('the first body of a class that returns a promise is known behind its awaits', async () => {
    await onMachine(options, async (runtime) => {
      const seen: boolean[] = [];
      const helper = async (): Promise<void> => {
        await null;
        seen.push(runtime.engine.inBody);
      };
      const first = task({ name: 'first', flows: {}, body: () => helper() });
      const plain = task({
        name: 'plain',
        flows: {},
        body: () => void seen.push(runtime.engine.inBody),
      });
      for (let i = 0; i < 2; i++)
        await runtime.run((graph) => {
          graph.insert(plain, {});
          graph.insert(first, {});
        });
      await null;
      expect(runtime.engine.inBody).toBe(false);
      expect(seen).toEqual([true, true, true, true]);
    });
  });

  it('a datum that it only reads is fine, until a later task writes it', async () => {
    await onMachine({ ...options, watchdog: 0 }, async (runtime) => {
      const x = runtime.data(Float64Array.of(7), { name: 'x' });
      const looks = task({
        name: 'looks',
        flows: { of: read('f64') },
        body: async () => void (await x.read()),
      });
      const one = runtime.run((graph) => void graph.insert(looks, { of: x }));
      expect((await soon(runtime, one)).tasks).toBe(1);
      const two = runtime.run((graph) => {
        graph.insert(looks, { of: x });
        graph.insert(
          script('writes', () => {}),
          { of: x },
        );
      });
      await expect(soon(runtime, two)).rejects.toMatchObject({ code: 'ERR_AWAITS_ITSELF' });
      x.close();
    });
  });

  it('does not make a caller of the listeners that the engine calls meanwhile', async () => {
    await onMachine(options, async (runtime) => {
      const [x, y] = ['x', 'y'].map((name) => runtime.data(Float64Array.of(1), { name }));
      let end = (): void => {};
      const ended = new Promise<void>((resolve) => {
        end = resolve;
      });
      const child = task({
        name: 'child',
        flows: { to: write('f64') },
        body: ({ to }) => void to.fill(5),
      });
      const read: Promise<Float64Array>[] = [];
      const body = async ({ of }: { readonly of: Float64Array }): Promise<void> => {
        await null;
        const other = runtime.run((graph) => void graph.insert(child, { to: y }));
        other.events.on('end', () => {
          read.push(x.read());
          end();
        });
        await ended;
        of[0] = 2;
      };
      const flows = { of: readWrite('f64') };
      const mine = task({ name: 'mine', flows, params: {}, body });
      const run = runtime.run((graph) => void graph.insert(mine, { of: x }));
      await soon(runtime, run);
      expect((await read[0])[0]).toBe(2);
      await nothingLeft(runtime, [x, y]);
    });
  });
});

describe('in checked runs a body that writes a datum that it only reads', () => {
  const bodies: readonly [string, (values: Float64Array) => void | Promise<void>][] = [
    ['at once', (values) => void values.fill(9, 2)],
    [
      'later',
      async (values) => {
        await null;
        values[2] = 9;
      },
    ],
    [
      'with another NaN',
      (values) => void new Int32Array(values.buffer, values.byteOffset + 16, 1).fill(5),
    ],
  ];
  for (const { name, options } of [HOSTS[0], GPUS[0]]) {
    it.each(bodies)(`${name}: fails %s, and the datum keeps its value`, async (_, body) => {
      await onMachine({ ...options, checked: true }, async (runtime) => {
        const seen = runtime.data(Float64Array.of(0, 1, Number.NaN, 3), { name: 'seen' });
        const other = runtime.data(Float64Array.of(0), { name: 'other' });
        const looks = task({
          name: 'looks',
          flows: { to: readWrite('f64'), from: read('f64') },
          body: ({ from }) => body(from as Float64Array),
        });
        const run = runtime.run((graph) => void graph.insert(looks, { to: other, from: seen }));
        await expect(soon(runtime, run)).rejects.toMatchObject({
          code: 'ERR_READ_FLOW_WRITTEN',
          message: expect.stringMatching(
            /^task looks #\d+ failed: the body of task class 'looks' has written element 2 of flow 'from', which it only reads \(declare the flow as readWrite\('f64'\)\)$/,
          ),
        });
        expect([...(await seen.read())]).toEqual([0, 1, Number.NaN, 3]);
        await expect(other.read()).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
        seen.close();
        other.close();
      });
    });
  }

  it('a body that leaves them alone, or writes its other flows, is fine', async () => {
    await onMachine({ ...options, checked: true }, async (runtime) => {
      const to = runtime.data(Float64Array.of(1));
      const from = runtime.data(Float64Array.of(2));
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(sum, { to, from })),
      );
      expect([...(await to.read())]).toEqual([3]);
      await nothingLeft(runtime, [to, from]);
    });
  });
});
