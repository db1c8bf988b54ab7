// Data that are closed between the call of a play, or of a run, and its begin or end.
import { describe, expect, it } from 'vitest';
import {
  type HeadraceError,
  parameterised,
  type Run,
  type Runtime,
  range,
  read,
  readWrite,
  slot,
  task,
  temporary,
  write,
} from '../../index.js';
import { HOSTS, onMachine, soon } from '../support/machines.js';

const N = 8;
const add = task({
  name: 'add',
  flows: { y: readWrite('f64'), x: read('f64') },
  params: { n: 'i32', a: 'f64' },
  kernel: 'add_f64',
});
const numbers = (runtime: Runtime, value: number, name: string) =>
  runtime.data(new Float64Array(N).fill(value), { name });
const errorOf = (promise: PromiseLike<unknown>): Promise<HeadraceError> =>
  Promise.resolve(promise).then(
    () => Promise.reject(new Error('it succeeded')),
    (error: HeadraceError) => error,
  );

describe.each(HOSTS)('on $name', (machine) => {
  const options = { ...machine.options, plans: 'auto' } as const;

  it.each([false, true])(
    'a body closes a datum of a plan before its play begins (another takes its row: %s)',
    async (takes) => {
      await onMachine(options, async (runtime) => {
        const [y, q] = [numbers(runtime, 0, 'y'), numbers(runtime, 0, 'q')];
        const w = numbers(runtime, 1, 'w');
        const row = w.row;
        let other = q;
        const closer = task({
          name: 'closer',
          flows: { q: readWrite('f64') },
          body: async () => {
            w.close();
            while (takes && other.row !== row) {
              await new Promise((resolve) => setImmediate(resolve));
              other = numbers(runtime, 100, 'other');
            }
          },
        });
        const plan = await runtime.plan(
          (graph) => void graph.insert(add, { y: w, x: y, n: N, a: 1 }),
        );
        const run = runtime.run((graph) => void graph.insert(closer, { q }));
        const error = await soon(runtime, errorOf(plan.run()));
        expect(error.code).toBe('ERR_DATUM_CLOSED');
        expect(error.message).toContain("'w'");
        await soon(runtime, run);
        expect([...(await other.read())]).toEqual(new Array(N).fill(takes ? 100 : 0));
      });
    },
  );

  it('a getter of the options of a play closes one of its data', async () => {
    await onMachine(options, async (runtime) => {
      const [y, x] = [numbers(runtime, 0, 'y'), numbers(runtime, 1, 'x')];
      const plan = await runtime.plan(
        (graph) => void graph.insert(add, { y, x, n: N, a: slot('a') }),
      );
      const values = {
        get a() {
          y.close();
          return 1;
        },
      };
      expect((await soon(runtime, errorOf(plan.run({ values })))).code).toBe('ERR_DATUM_CLOSED');
      expect((await x.read())[0]).toBe(1);
    });
  });

  it('a getter of the options of a play begins a run that is recognised', async () => {
    await onMachine(options, async (runtime) => {
      const x = numbers(runtime, 1, 'x');
      const all = Array.from({ length: 64 }, (_, i) => numbers(runtime, 0, `y${i}`));
      const again = (): Run =>
        runtime.run((graph) => {
          for (const y of all) graph.insert(add, { y, x, n: N, a: 1 });
        });
      let outcome = '';
      for (let i = 0; i < 6; i++) outcome = (await soon(runtime, again())).recognition ?? '';
      expect(outcome).toBe('played');
      const plan = await runtime.plan((graph) => {
        graph.insert(add, { y: all[0], x, n: N, a: 1 });
      });
      const first = plan.run({ times: 1000 });
      let run: Run | undefined;
      const second = plan.run({
        get times() {
          run = again();
          return 1;
        },
      });
      runtime.memory();
      await soon(runtime, Promise.all([first, second, run]));
      expect((await all[0].read())[0]).toBe(1008);
      expect((await all[1].read())[0]).toBe(7);
    });
  });

  it.each([1, 4])(
    'data are closed behind each run that comes again, before its end (data of %s runs)',
    async (runs) => {
      await onMachine(options, async (runtime) => {
        const x = numbers(runtime, 1, 'x');
        let all: ReturnType<typeof numbers>[] = [];
        for (let step = 0; step < 12; step++) {
          if (step % runs === 0)
            all = Array.from({ length: 16 }, (_, i) => numbers(runtime, 0, `y${i}`));
          const run = runtime.run((graph) => {
            for (let k = 0; k < 4; k++)
              for (const y of all) graph.insert(add, { y, x, n: N, a: 1 });
          });
          if (step % runs === runs - 1) for (const y of all) y.close();
          expect((await soon(runtime, run)).tasks).toBe(64);
        }
      });
    },
  );

  it('an insertion that failed because its getter inserted does not fail the next ones', async () => {
    await onMachine(options, async (runtime) => {
      const x = numbers(runtime, 1, 'x');
      const all = Array.from({ length: 64 }, (_, i) => numbers(runtime, 0, `y${i}`));
      let caught: HeadraceError | undefined;
      for (let step = 0; step < 6; step++) {
        const run = runtime.run((graph) => {
          all.forEach((y, i) => {
            const insert = (): void => void graph.insert(add, { y, x, n: N, a: 1 });
            const inserting = {
              y,
              n: N,
              a: 1,
              get x() {
                insert();
                return x;
              },
            };
            if (step < 5 || i !== 20) insert();
            else
              try {
                graph.insert(add, inserting);
              } catch (error) {
                caught = error as HeadraceError;
              }
          });
          if (step === 5) graph.insert(add, { y: all[0], x, n: N, a: 1 });
        });
        await soon(runtime, run);
      }
      expect(caught?.code).toBe('ERR_ARGUMENT_TYPE');
      expect((await all[0].read())[0]).toBe(7);
    });
  });

  it('a plan that could not be made gives its temporaries back', async () => {
    await onMachine(options, async (runtime) => {
      const make = task({ name: 'make', flows: { x: write('f64') }, kernel: 'empty' });
      const change = task({ name: 'change', flows: { y: readWrite('f64') }, kernel: 'empty' });
      const pairs = parameterised('pairs', (graph) => {
        const { p, c } = graph.declare({
          p: { runs: make, indices: ['i'] },
          c: { runs: change, indices: ['i'] },
        });
        const ranges = { i: () => range(0, 100) };
        graph.define(p, {
          ranges,
          flows: { x: { from: () => temporary('f64', 10), to: ({ i }) => c.y({ i }) } },
        });
        graph.define(c, { ranges, flows: { y: { from: ({ i }) => p.x({ i }) } } });
      });
      const rows: number[] = [];
      for (let i = 0; i < 4; i++) {
        const plan = runtime.plan((graph) => {
          pairs.insertInto(graph, undefined);
          throw new Error('later');
        });
        expect((await soon(runtime, errorOf(plan))).code).toBe('ERR_PROGRAM');
        await soon(runtime, runtime.engine.quiet());
        const next = runtime.data('f64', 1);
        rows.push(next.row);
        next.close();
        await soon(runtime, runtime.engine.quiet());
      }
      expect(Math.max(...rows)).toBeLessThanOrEqual(101);
    });
  });
});
